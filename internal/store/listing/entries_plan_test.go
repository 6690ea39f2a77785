package listing_test

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
)

// lastQuery keeps the last statement about entries that was sent.
type lastQuery struct {
	stmt string
	args []any
}

func (l *lastQuery) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "daybook.entries") {
		l.stmt, l.args = data.SQL, data.Args
	}
	return ctx
}

func (l *lastQuery) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// planNode is a part of a plan as EXPLAIN (FORMAT JSON) prints it.
type planNode struct {
	Table   string     `json:"Relation Name"`
	Rows    float64    `json:"Actual Rows"`
	Loops   float64    `json:"Actual Loops"`
	Removed float64    `json:"Rows Removed by Filter"`
	Plans   []planNode `json:"Plans"`
}

func (n planNode) read() float64 {
	rows := 0.0
	if n.Table != "" {
		rows = (n.Rows + n.Removed) * n.Loops
	}
	for _, p := range n.Plans {
		rows += p.read()
	}
	return rows
}

// TestAPageOfEntriesReadsAPart: a page of the list reads a small part of many entries, whichever
// filter it has. Those of an account are found by its index; so small a table would be read as a
// whole beside it.
func TestAPageOfEntriesReadsAPart(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, stmt := range []string{
		`INSERT INTO daybook.organizations (id, name) SELECT 'o' || g, '' FROM generate_series(0, 2) g`,
		`INSERT INTO daybook.accounts (org_id, code, name, type) SELECT 'o' || g % 3, 'a' || g / 3, '', 'asset' FROM generate_series(0, 149) g`,
		`INSERT INTO daybook.accounts (org_id, code, name, type) SELECT 'o' || g, 'all', '', 'asset' FROM generate_series(0, 2) g`,
		`WITH i AS (
		INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
		SELECT g, 'o' || g % 3, 'd' || g, 1, 1, 'post', date '2026-01-01' + g / 30, date '2026-01-01' + g / 30, 2, 'j', 1 FROM generate_series(1, 6000) g
		) INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency, rule_line_id)
		SELECT g, l, 'o' || g % 3, CASE l WHEN 1 THEN 'a' || g % 50 ELSE 'all' END, CASE l WHEN 1 THEN 'debit' ELSE 'credit' END::daybook.entry_side, 100, 'EUR', ''
		  FROM generate_series(1, 6000) g, generate_series(1, 2) l`,
		`INSERT INTO daybook.organizations (id, name) VALUES ('old', '')`,
		`INSERT INTO daybook.accounts (org_id, code, name, type) VALUES ('old', 'all', '', 'asset')`,
		`WITH i AS (
		INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
		SELECT -g, 'old', 'd' || g, 1, 1, 'post', '2020-01-01', '2020-01-01', 2, 'j', 1 FROM generate_series(1, 200) g
		) INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency, rule_line_id)
		SELECT -g, l, 'old', 'all', CASE l WHEN 1 THEN 'debit' ELSE 'credit' END::daybook.entry_side, 100, 'EUR', ''
		  FROM generate_series(1, 200) g, generate_series(1, 2) l`,
		`ANALYZE daybook.entries, daybook.impacts`,
	} {
		_, err := db.Pool.Exec(t.Context(), stmt)
		require.NoError(t, err)
	}
	sent := &lastQuery{}
	config := db.Pool.Config().Copy()
	config.ConnConfig.Tracer = sent
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	l, err := listing.New(pool)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })

	from, to := models.NewDate(2026, 2, 1), models.NewDate(2026, 2, 3)
	for name, f := range map[string]listing.EntryFilter{
		"all": {}, "a document": {DocumentID: "d3000"}, "an account that few post to": {Account: "a9"},
		"a currency": {Currency: "EUR"},
		"three days": {From: from, To: to}, "three days of an account": {From: from, To: to, Account: "all"},
		"an organization that others have posted after": {OrgID: "old"},
	} {
		f.OrgID, f.Limit = cmp.Or(f.OrgID, "o0"), 50
		found, err := l.Entries(t.Context(), f, listing.EntryPlace{})
		require.NoError(t, err, name)
		assert.NotEmpty(t, found, name)
		assert.LessOrEqual(t, len(found), 50, name)
		var text string
		require.NoError(t, db.Pool.QueryRow(t.Context(), `EXPLAIN (ANALYZE, FORMAT JSON) `+sent.stmt,
			sent.args...).Scan(&text))
		if f.Account != "" {
			assert.Contains(t, text, "entries_account", name)
			continue
		}
		var plans []struct{ Plan planNode }
		require.NoError(t, json.Unmarshal([]byte(text), &plans))
		assert.LessOrEqual(t, plans[0].Plan.read(), 800.0, "%s: rows read, of 18,000", name)
	}
}
