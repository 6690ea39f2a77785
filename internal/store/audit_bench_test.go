package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/audit"
)

// auditedDocuments is how many documents are audited; each tenth was changed, so that it has three
// impacts.
const auditedDocuments = 200_000

// The books of organization $1 with $2 documents, three entries an impact.
const periodsBySQL = `
INSERT INTO daybook.periods (org_id, starts_on, ends_on, state, closed_at)
SELECT $1, d::date, (d + interval '1 month' - interval '1 day')::date, 'closed', clock_timestamp() + interval '1 hour'
  FROM generate_series(timestamp '2020-01-01', timestamp '2025-12-01', interval '1 month') d`

const jobsBySQL = `
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, run_count, finished_at)
SELECT $1, 'd' || n, 1 + (n % 10 = 0)::int, 'completed', 1, clock_timestamp() FROM generate_series(1, $2::int) n`

const documentsBySQL = `
INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content, accounting_ready_at, accounting_ready_version)
SELECT $1, 'd' || n, 'invoice', 'out', 'EUR', '2026-03-14',
       '{"lines": [{"kind": "item", "net": 1000, "rate": 19}], "taxes": [{"category": "VAT", "rate": 19, "amount": 190}], "total": 1190, "payable": 1190}',
       clock_timestamp(), 1 + (n % 10 = 0)::int
  FROM generate_series(1, $2::int) n`

const impactsBySQL = `
WITH links AS MATERIALIZED (
    SELECT n, seq, row_number() OVER (ORDER BY seq, n) + (SELECT coalesce(max(id), 0) FROM daybook.impacts) AS id
      FROM generate_series(1, $2::int) n, generate_series(1, CASE WHEN n % 10 = 0 THEN 3 ELSE 1 END) seq
), inserted AS (
    INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, rule_set_version, rule_id, document_date, posting_date, entry_count, job_id, attempt)
    SELECT id, $1, 'd' || n, 1 + (seq > 1)::int, seq, CASE seq WHEN 2 THEN 'reverse' ELSE 'post' END::daybook.impact_kind, 1, 'sale',
           date '2026-01-01' + n % 365, date '2026-01-01' + n % 365, 3, 'j', 1
      FROM links ORDER BY id
)
INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency)
SELECT l.id, e.line, $1, e.account, CASE WHEN (e.side = 'debit') = (l.seq <> 2) THEN 'debit' ELSE 'credit' END::daybook.entry_side, e.amount, 'EUR'
  FROM links l, (VALUES (1, '1200', 'debit', 1190), (2, '4400', 'credit', 1000), (3, '3806', 'credit', 190)) AS e (line, account, side, amount)
 ORDER BY 1, 2`

// booksOf makes an organization whose books are those of documents.
func booksOf(tb testing.TB, pool *pgxpool.Pool, org string, documents int) {
	tb.Helper()
	fixture.Organization(tb, pool, org)
	_, err := pool.Exec(tb.Context(),
		`INSERT INTO daybook.accounts (org_id, code, type) VALUES ($1, '1200', 'asset'), ($1, '4400', 'income'), ($1, '3806', 'liability') ON CONFLICT DO NOTHING`, org)
	require.NoError(tb, err)
	for _, stmt := range []string{documentsBySQL, jobsBySQL, impactsBySQL} {
		_, err := pool.Exec(tb.Context(), stmt, org, documents)
		require.NoError(tb, err)
	}
}

// TestAuditByOldStatistics: what the planner knows is older than the audited organization, so that
// it expects no row of it. The audit reads a number of rows in proportion to the organization's all
// the same.
func TestAuditByOldStatistics(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	tables := []string{"documents", "accounting_work_queue", "impacts", "entries"}
	for _, table := range tables {
		_, err := db.Pool.Exec(t.Context(), `ALTER TABLE daybook.`+table+` SET (autovacuum_enabled = off)`)
		require.NoError(t, err)
	}
	booksOf(t, db.Pool, org, 50)
	_, err := db.Pool.Exec(t.Context(), `VACUUM ANALYZE`)
	require.NoError(t, err)
	const documents = 300
	booksOf(t, db.Pool, "big", documents)
	db.Pool.Reset()
	pool, err := pgxpool.New(t.Context(), db.URL)
	require.NoError(t, err)
	read := func() (n int64) {
		require.NoError(t, db.Pool.QueryRow(t.Context(),
			`SELECT sum(idx_tup_fetch + seq_tup_read)::bigint FROM pg_stat_user_tables WHERE schemaname = 'daybook' AND relname = ANY ($1)`, tables).Scan(&n))
		return n
	}
	before := read()
	r, err := audit.Run(t.Context(), pool, audit.Options{OrgID: "big"})
	pool.Close() // the session's figures are counted when it ends
	require.NoError(t, err)
	require.Equal(t, int64(documents), r.Figures.Live)
	require.Eventually(t, func() bool { return read()-before > 10*documents }, time.Minute, 10*time.Millisecond)
	assert.Less(t, read()-before, int64(500*documents))
}

// BenchmarkAudit audits auditedDocuments documents.
func BenchmarkAudit(b *testing.B) {
	db := pgtest.New(b)
	booksOf(b, db.Pool, org, auditedDocuments)
	_, err := db.Pool.Exec(b.Context(), periodsBySQL, org)
	require.NoError(b, err)
	_, err = db.Pool.Exec(b.Context(), `ANALYZE`)
	require.NoError(b, err)
	for b.Loop() {
		r, err := audit.Run(b.Context(), db.Pool, audit.Options{})
		require.NoError(b, err)
		require.Zero(b, r.Wrong())
		require.Equal(b, int64(auditedDocuments), r.Figures.Live)
	}
	b.ReportMetric(float64(b.Elapsed().Seconds())/float64(b.N)/auditedDocuments*1e6, "s/million")
}
