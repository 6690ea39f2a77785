package books_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
)

// with adds a text to a payment.
func with(d *models.Document, text string) *models.Document {
	d.Content.Attributes = map[string]string{"text": text}
	return d
}

func (b *bundle) match(o books.MatchOptions) []string {
	b.t.Helper()
	list, err := books.MatchOpenItems(b.t.Context(), b.Pool, org, o)
	require.NoError(b.t, err)
	var out []string
	for _, m := range list {
		assert.Equal(b.t, o.DryRun, m.GroupID == 0, "a dry run makes no group")
		out = append(out, string(m.MatchedBy)+" "+m.DocumentID+" "+m.OtherID)
	}
	return out
}

func TestMatchOpenItems(t *testing.T) {
	t.Parallel()
	b := setup(t)
	credit := sold(org, "credit", "Ada", 4, 300)
	credit.Type, credit.Content.RefersTo = models.DocumentCreditNote, []string{"N-a"}
	fixture.Ready(t, b.Pool,
		// By reference: a number, an id, and a number that two have, of which one is the counterparty's.
		sold(org, "a", "Ada", 1, 1000), credit, pays(org, "p-a", "", 9, 700, "N-a"),
		sold(org, "b", "Bo", 2, 500), pays(org, "p-b", "", 9, 400, "b"),
		numbered(sold(org, "c1", "Cy", 2, 900), "77"), numbered(sold(org, "c2", "Di", 2, 900), "77"), pays(org, "p-c", "Di", 9, 100, "77"),
		pays(org, "p-none", "", 9, 111, "77", "unknown"),
		// By number: as a whole word, and of the amount.
		sold(org, "e", "Ed", 3, 650), with(pays(org, "p-e", "", 9, 650), "Thanks for n-E! 2026"),
		sold(org, "f", "Fe", 3, 660), with(pays(org, "p-f", "", 9, 660), "N-ff"), with(pays(org, "p-f2", "", 9, 661), "N-f"),
		sold(org, "g", "Gu", 3, 670), with(pays(org, "p-g", "", 9, 670), "N-g"), with(pays(org, "p-g2", "", 9, 670), "N-g"),
		// By amount: where one alone fits.
		sold(org, "h", "Ho", 3, 42), sold(org, "h2", "Ho", 3, 43), pays(org, "p-h", "Ho", 9, 42),
		sold(org, "i", "Io", 3, 42), sold(org, "i2", "Io", 3, 42), pays(org, "p-i", "Io", 9, 42))
	b.work()
	want := []string{
		"reference credit a", "reference p-a a", "reference p-b b", "reference p-c c2", "number p-e e", "amount p-h h",
	}
	assert.Equal(t, want, b.match(books.MatchOptions{DryRun: true}))
	assert.Equal(t, want[4:5], b.match(books.MatchOptions{Rules: []models.MatchedBy{models.MatchedByNumber}, DryRun: true}))
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.reconciled`))
	assert.Equal(t, want, b.match(books.MatchOptions{}))
	assert.Empty(t, b.match(books.MatchOptions{}))
	assert.Equal(t, map[string]string{
		"b 1200": "100", "c1 1200": "900", "c2 1200": "800", "p-none 1200": "-111", "f 1200": "660", "p-f 1200": "-660", "p-f2 1200": "-661",
		"g 1200": "670", "p-g 1200": "-670", "p-g2 1200": "-670", "h2 1200": "43", "i 1200": "42", "i2 1200": "42", "p-i 1200": "-42",
	}, b.openItems(org, models.Date{}))
	d, err := books.OpenItemsOf(t.Context(), b.Pool, org, "a")
	require.NoError(t, err)
	assert.True(t, d.Group.Closed)
	assert.Len(t, d.Group.Documents, 3)

	_, err = books.MatchOpenItems(t.Context(), b.Pool, org, books.MatchOptions{Rules: []models.MatchedBy{"guess"}})
	require.ErrorIs(t, err, books.ErrInvalid)
	require.ErrorContains(t, err, `"guess"`)
}

// TestMatchBySchedule: a job of the type db_function may match, as the worker's role.
func TestMatchBySchedule(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, sold(org, "a", "Ada", 1, 1000), pays(org, "p", "Ada", 2, 1000))
	b.work()
	var result string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `
SELECT (SELECT daybook.match_open_items_job('{"rules": ["amount"]}')::text) FROM (SELECT set_config('daybook.org_id', $1, false) OFFSET 0) s`, org).Scan(&result))
	assert.JSONEq(t, `{"matched": 1}`, result)
}

func numbered(d *models.Document, number string) *models.Document {
	d.Content.Number = number
	return d
}
