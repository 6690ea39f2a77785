package ledgerdb_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// statementBooks is an organization whose postings and periods change at random. Its days are those
// of January to June 2026.
type statementBooks struct {
	pool *pgxpool.Pool
	t    *rapid.T
	next int64
}

var firstOf2026 = models.NewDate(2026, 1, 1)

// firstDay is the day that days are counted from, in SQL.
const firstDay = "date '2026-01-01'"

func (b *statementBooks) day(name string) int { return rapid.IntRange(0, 180).Draw(b.t, name) }

// try runs a statement in a transaction; the database may refuse it.
func (b *statementBooks) try(ctx context.Context, stmt string, args ...any) {
	_, err := b.pool.Exec(ctx, stmt, args...)
	if state := store.SQLState(err); err != nil && state != "DB005" && state != "DB010" && state != "23505" {
		b.t.Fatalf("%s: %v", stmt, err)
	}
}

// post posts an impact with two entries, some with dimensions, and some of a year-end close.
func (b *statementBooks) post(ctx context.Context) {
	b.next++
	lines := []string{"a", "b", "year-end"}
	b.try(ctx, `
WITH i AS (
    INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
    VALUES ($1::bigint, 'o', 'd' || $1::bigint, 1, 1, 'post', `+firstDay+` + $2::int, `+firstDay+` + $2::int, 2, 'j', 1))
INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency, rule_line_id, dimensions)
VALUES ($1::bigint, 1, 'o', $3, 'debit', $4, 'EUR', $5, nullif($6, '')::jsonb), ($1::bigint, 2, 'o', $7, 'credit', $4, 'EUR', $5, nullif($8, '')::jsonb)`,
		b.next, b.day("day"), rapid.SampledFrom([]string{"cash", "cost"}).Draw(b.t, "debit"), rapid.Int64Range(1, 1000).Draw(b.t, "amount"),
		rapid.SampledFrom(lines).Draw(b.t, "line"), rapid.SampledFrom(someDimensions).Draw(b.t, "dimensions"),
		rapid.SampledFrom([]string{"sales", "owed"}).Draw(b.t, "credit"), rapid.SampledFrom(someDimensions).Draw(b.t, "more dimensions"))
}

var someDimensions = []string{"", `{"cc": "x"}`, `{"cc": "y"}`, `{"cc": "x", "p": "1"}`, `{"p": "2"}`}

// reverse reverses a posting, on its day or another one.
func (b *statementBooks) reverse(ctx context.Context) {
	if b.next == 0 {
		return
	}
	of := rapid.Int64Range(1, b.next).Draw(b.t, "of")
	b.next++
	b.try(ctx, `
WITH i AS (
    INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
    SELECT $1::bigint, i.org_id, i.document_id, 1, 2, 'reverse', i.document_date, coalesce(`+firstDay+` + nullif($3, 0)::int, i.posting_date), i.entry_count, 'j', 1
      FROM daybook.impacts i WHERE i.id = $2::bigint AND i.kind = 'post' RETURNING id)
INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency, rule_line_id, dimensions)
SELECT i.id, e.line_no, e.org_id, e.account_code, CASE e.side WHEN 'debit' THEN 'credit' ELSE 'debit' END::daybook.entry_side,
       e.amount_minor, e.currency, e.rule_line_id, e.dimensions FROM i JOIN daybook.entries e ON e.impact_id = $2::bigint`,
		b.next, of, rapid.SampledFrom([]int{0, b.day("later")}).Draw(b.t, "on"))
}

// period adds, changes, closes, opens or removes a period, by plain SQL.
func (b *statementBooks) period(ctx context.Context) {
	day, length := b.day("period"), rapid.IntRange(0, 40).Draw(b.t, "length")
	switch rapid.IntRange(0, 6).Draw(b.t, "change") {
	case 0, 1:
		b.try(ctx, `INSERT INTO daybook.periods (org_id, starts_on, ends_on) VALUES ('o', `+firstDay+` + $1::int, `+firstDay+` + $1::int + $2::int)`, day, length)
	case 2, 3:
		b.try(ctx, `
UPDATE daybook.periods SET state = 'closed', closed_at = clock_timestamp()
 WHERE org_id = 'o' AND starts_on <= `+firstDay+` + $1::int AND state = 'open'`, day)
	case 4:
		b.try(ctx, `
UPDATE daybook.periods SET state = 'open', closed_at = NULL
 WHERE org_id = 'o' AND `+firstDay+` + $1::int BETWEEN starts_on AND ends_on`, day)
	case 5:
		b.try(ctx, `UPDATE daybook.periods SET ends_on = starts_on + $2::int WHERE org_id = 'o' AND `+firstDay+` + $1::int BETWEEN starts_on AND ends_on`, day, length)
	case 6:
		b.try(ctx, `DELETE FROM daybook.periods WHERE org_id = 'o' AND `+firstDay+` + $1::int BETWEEN starts_on AND ends_on`, day)
	}
}

// differs lists where the sums with kept ones are not those of the entries alone.
const differs = `
WITH kept AS (
    SELECT s.account_code, s.currency, s.year_end, s.value, s.debit, s.credit
      FROM daybook.account_sums('o', $1, $2, nullif($3, ''), nullif($4, ''), $5) s
), plain AS (
    SELECT e.account_code, e.currency, e.rule_line_id = 'year-end' AS year_end, coalesce(e.dimensions ->> nullif($3, ''), '') AS value,
           coalesce(sum(e.amount_minor) FILTER (WHERE e.side = 'debit'), 0) AS debit, coalesce(sum(e.amount_minor) FILTER (WHERE e.side = 'credit'), 0) AS credit
      FROM daybook.entries e JOIN daybook.impacts i ON i.id = e.impact_id
     WHERE i.org_id = 'o' AND (i.posting_date < $1::date) IS NOT TRUE AND (i.posting_date > $2::date) IS NOT TRUE
       AND ($4 = '' OR coalesce(e.dimensions ->> $4, '') = $5)
     GROUP BY 1, 2, 3, 4
)
SELECT count(*), coalesce(string_agg(x::text, ' '), '') FROM ((TABLE kept EXCEPT TABLE plain) UNION ALL (TABLE plain EXCEPT TABLE kept)) x`

// check compares sums of a random span, and that nothing is kept of days that are open.
func (b *statementBooks) check(ctx context.Context) {
	from, to := b.day("from"), b.day("to")
	var first, last any
	if from > 0 {
		first = firstOf2026.AddDays(from).Time()
	}
	if to > 0 {
		last = firstOf2026.AddDays(max(from, to)).Time()
	}
	by := rapid.SampledFrom([]string{"", "cc", "p"}).Draw(b.t, "by")
	where := rapid.SampledFrom([]string{"", "cc", "p"}).Draw(b.t, "where")
	value := rapid.SampledFrom([]string{"", "x", "1"}).Draw(b.t, "value")
	var n int
	var rows string
	require.NoError(b.t, b.pool.QueryRow(ctx, differs, first, last, by, where, value).Scan(&n, &rows))
	assert.Zero(b.t, n, "%s", rows)
	require.NoError(b.t, b.pool.QueryRow(ctx, `
SELECT count(*), coalesce(string_agg(x::text, ' '), '')
  FROM ((SELECT starts_on, ends_on FROM daybook.closed_sum_spans EXCEPT SELECT starts_on, ends_on FROM daybook.closed_spans('o'))
        UNION ALL
        (SELECT starts_on, ends_on FROM daybook.closed_spans('o') EXCEPT SELECT starts_on, ends_on FROM daybook.closed_sum_spans)) x`).Scan(&n, &rows))
	assert.Zero(b.t, n, "closed days and kept ones differ: %s", rows)
}

// TestKeptSumsEqualThePlainOnes: whatever is posted, closed, opened and changed in which order, sums
// with those that are kept of closed days are those of the entries.
func TestKeptSumsEqualThePlainOnes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ctx := t.Context()
	_, err := db.Pool.Exec(ctx, `
INSERT INTO daybook.organizations (id) VALUES ('o');
INSERT INTO daybook.accounts (org_id, code, type) VALUES ('o', 'cash', 'asset'), ('o', 'cost', 'expense'), ('o', 'sales', 'income'), ('o', 'owed', 'liability')`)
	require.NoError(t, err)
	// One posting has each dimension: a key that no entry has is refused.
	_, err = db.Pool.Exec(ctx, `
WITH i AS (
    INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
    VALUES (1, 'o', 'd1', 1, 1, 'post', '2026-06-30', '2026-06-30', 2, 'j', 1))
INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency, dimensions)
VALUES (1, 1, 'o', 'cost', 'debit', 1, 'EUR', '{"cc": "x", "p": "1"}'), (1, 2, 'o', 'owed', 'credit', 1, 'EUR', NULL)`)
	require.NoError(t, err)
	b := &statementBooks{pool: db.Pool, next: 1}
	rapid.Check(t, func(r *rapid.T) {
		b.t = r
		for range rapid.IntRange(1, 15).Draw(r, "steps") {
			switch rapid.IntRange(0, 5).Draw(r, "step") {
			case 0, 1, 2:
				b.post(ctx)
			case 3:
				b.reverse(ctx)
			default:
				b.period(ctx)
			}
			b.check(ctx)
		}
	})
	var kept int
	require.NoError(t, db.Pool.QueryRow(ctx, `SELECT count(*) FROM daybook.closed_sums`).Scan(&kept))
	t.Logf("%d impacts, %d kept sums", b.next, kept)
}

// TestAStrictTransactionClosesNothing: it may not see what was posted before it had the lock.
func TestAStrictTransactionClosesNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ctx := t.Context()
	_, err := db.Pool.Exec(ctx, `
INSERT INTO daybook.organizations (id) VALUES ('o');
INSERT INTO daybook.periods (org_id, starts_on, ends_on) VALUES ('o', '2026-01-01', '2026-01-31')`)
	require.NoError(t, err)
	closing := func(level pgx.TxIsoLevel) error {
		return pgx.BeginTxFunc(ctx, db.Pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE daybook.periods SET state = 'closed', closed_at = clock_timestamp()`)
			return err
		})
	}
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		err := closing(level)
		require.Equal(t, "DB010", store.SQLState(err), err)
	}
	require.NoError(t, closing(pgx.ReadCommitted))
	var kept int
	require.NoError(t, db.Pool.QueryRow(ctx, `SELECT count(*) FROM daybook.closed_sum_spans`).Scan(&kept))
	assert.Equal(t, 2, kept, "the period, and the days before it")
}
