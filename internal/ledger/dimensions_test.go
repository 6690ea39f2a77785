package ledger_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// dimensions are the dimensions of a document's entries, in order.
func (b *bundle) dimensions(document string) []string {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(), `
SELECT i.kind || ' ' || coalesce(e.dimensions::text, '-')
  FROM daybook.entries e JOIN daybook.impacts i ON i.id = e.impact_id
 WHERE i.document_id = $1 ORDER BY i.seq, e.line_no`, document)
	require.NoError(b.t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	return all
}

// TestDimensionsAreKeptAndMirrored: entries have their document's dimensions, others are a posting
// anew, and a reversal has those of what it takes back.
func TestDimensionsAreKeptAndMirrored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := fixture.Invoice(org, "doc", 1000)
	d.Content.Dimensions = models.Dimensions{"project": "7", "cost_centre": "sales"}
	d.Content.Lines[0].Dimensions = models.Dimensions{"cost_centre": "east"}
	fixture.Ready(t, b.Pool, d, fixture.Invoice(org, "plain", 1000))
	b.work()
	const all, line = `post {"project": "7", "cost_centre": "sales"}`, `post {"project": "7", "cost_centre": "east"}`
	assert.Equal(t, []string{all, line, all}, b.dimensions("doc"))
	assert.Equal(t, []string{"post -", "post -", "post -"}, b.dimensions("plain"))

	fixture.Ready(t, b.Pool, d)
	b.work()
	assert.Equal(t, 1, b.confirmations(), "the same dimensions are the same posting")

	d.Content.Dimensions = nil
	fixture.Ready(t, b.Pool, d)
	b.work()
	const mirrored, mirroredLine = `reverse {"project": "7", "cost_centre": "sales"}`, `reverse {"project": "7", "cost_centre": "east"}`
	assert.Equal(t, []string{
		all, line, all, mirrored, mirroredLine, mirrored, "post -", `post {"cost_centre": "east"}`, "post -",
	}, b.dimensions("doc"))

	b.tx(func(ctx context.Context, tx pgx.Tx) {
		_, err := store.MarkDocumentDeleted(ctx, tx, org, "doc")
		require.NoError(t, err)
	})
	b.work()
	assert.Equal(t, []string{"reverse -", `reverse {"cost_centre": "east"}`, "reverse -"}, b.dimensions("doc")[9:])
}

// TestReversalMirrorsDimensions: PostgreSQL refuses a reversal with other dimensions, whatever
// program inserts it.
func TestReversalMirrorsDimensions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := fixture.Invoice(org, "doc", 1000)
	d.Content.Dimensions = models.Dimensions{"cost_centre": "sales"}
	fixture.Ready(t, b.Pool, d)
	b.work()
	const reverse = `
WITH m AS (
    INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
    SELECT nextval('daybook.impact_id_seq'), org_id, document_id, document_version, 2, 'reverse', document_date, posting_date, entry_count, job_id, 1
      FROM daybook.impacts WHERE document_id = 'doc' RETURNING id
)
INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency, rule_line_id, document_line, dimensions)
SELECT m.id, e.line_no, e.org_id, e.account_code, CASE e.side WHEN 'debit' THEN 'credit' ELSE 'debit' END::daybook.entry_side,
       e.amount_minor, e.currency, e.rule_line_id, e.document_line, CASE e.line_no WHEN 2 THEN $1::jsonb ELSE e.dimensions END
  FROM daybook.entries e, m`
	for _, wrong := range []any{nil, `{"cost_centre": "sale"}`, `{"cost_centre": "sales", "project": "7"}`} {
		_, err := b.Pool.Exec(t.Context(), reverse, wrong)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, "%v", wrong)
		assert.Equal(t, "DB006", refused.Code)
	}
	_, err := b.Pool.Exec(t.Context(), reverse, `{"cost_centre": "sales"}`)
	require.NoError(t, err)
}
