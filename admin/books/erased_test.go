package books_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/erasure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/models"
)

func (b *bundle) erase(scope store.EraseScope) {
	b.t.Helper()
	scope.OrgID = org
	require.NoError(b.t, second(erasure.Erase(b.t.Context(), b.Pool, scope, erasure.Options{Actor: "operator"})))
}

// What the books need of a document stays when it is erased: it is posted later, or taken back, as if it
// had not been, and is due when it was.
func TestBooksGoOnAfterAnErasure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	posted := b.journal(rent("posted", 500))
	due := sold(org, "due", "Ada", 1, 1000)
	due.Content.Dimensions, due.Content.RefersTo = models.Dimensions{"region": "east"}, []string{"other"}
	due.Content.Lines[0].Dimensions, due.Content.Lines[0].TaxCode = models.Dimensions{"project": "7"}, "S"
	fixture.Ready(t, b.Pool, due)
	b.work()
	waits := b.journal(rent("waits", 70))
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content) VALUES ($1, 'odd', 'x', 'out', 'EUR', '2026-03-01', '[]')`, org)
	require.NoError(t, err)
	b.erase(store.EraseScope{})

	assert.Zero(t, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.documents WHERE content::text ~ 'Accrued|clerk|Landlord|March|Ada'`))
	b.work()
	assert.EqualValues(t, 570, fixture.Balance(t, b.Pool, org, "6300", "EUR"), "%+v", fixture.Job(t, b.Pool, org, waits.DocumentID))
	require.NoError(t, second(books.DeleteJournal(t.Context(), b.Pool, org, posted.DocumentID)))
	b.work()
	assert.EqualValues(t, 70, fixture.Balance(t, b.Pool, org, "6300", "EUR"))

	items, err := books.OpenItemsOf(t.Context(), b.Pool, org, "due")
	require.NoError(t, err)
	require.Len(t, items.Items, 1)
	assert.Equal(t, "2026-03-15", items.Items[0].DueDate.String())
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.documents WHERE id = 'due' AND content @> '{"dimensions": {"region": "east"}, "refers_to": ["other"], "lines": [{"dimensions": {"project": "7"}, "tax_code": "S"}]}'`))
}

// Why documents belong together may be about the person of any of them: an erasure of one takes the
// reason from all, and the log of actions never has it.
func TestTheReasonOfAGroupIsErasedWithEachDocument(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, sold(org, "a", "Ada", 1, 1000), pays(org, "p", "Ada", 9, 1000), sold(org, "c", "Cy", 2, 900),
		pays(org, "q", "Cy", 9, 900), sold(org, "opening:o", "Eve", 1, 500), pays(org, "r", "Eve", 9, 500))
	b.work()
	_, err := b.Pool.Exec(t.Context(), `SELECT daybook.stand_for_documents(ARRAY[$1], '{opening:o}', '{old}')`, org)
	require.NoError(t, err)
	reconcile := func(reason string, documents ...string) {
		ctx, _ := actions.Begin(t.Context(), actions.Action{Via: actions.CLI, Action: "open-items.reconcile", Actor: "clerk " + reason})
		require.NoError(t, second(books.Reconcile(ctx, b.Pool, org, documents, reason)))
	}
	reconcile("Ada rang", "p", "a")
	reconcile("Cy rang", "q", "c")
	reconcile("Eve rang", "r", "old")
	having := func(text string) int {
		return fixture.Count(t, b.Pool, `
SELECT (SELECT count(*) FROM daybook.reconciled r WHERE strpos(r::text, $1) > 0) + (SELECT count(*) FROM daybook.actions a WHERE strpos(a.details::text, $1) > 0)`, text)
	}
	require.Equal(t, 2, having("Ada rang"), "with the documents alone")
	b.erase(store.EraseScope{Kind: "document", ID: "a"})
	assert.Zero(t, having("Ada rang"))
	b.erase(store.EraseScope{Kind: "document", ID: "old"})
	assert.Zero(t, having("Eve rang"), "an open item stands for the document")
	assert.Equal(t, 2, having("Cy rang"), "another group's reason stays")
}

// Two counterparties that were erased are not the same one.
func TestErasedCounterpartiesAreNotTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, sold(org, "a", "Ada", 1, 1000), pays(org, "p", "Bo", 9, 1000),
		numbered(sold(org, "c", "Cy", 2, 900), "77"), numbered(sold(org, "d", "Di", 2, 800), "77"), pays(org, "q", "Ed", 9, 100, "77"),
		sold(org, "e", "Eve", 2, 700), pays(org, "r", "", 9, 50, "N-e"))
	b.work()
	for _, id := range []string{"a", "p", "c", "q", "e"} {
		b.erase(store.EraseScope{Kind: "document", ID: id})
	}
	assert.Equal(t, []string{"reference r e"}, b.match(books.MatchOptions{}))
}

// A content whose names the reports and an erasure do not know is refused as any other name, so that
// nothing is posted that states no tax, belongs to no counterparty and loses its amounts.
func TestNamesOfAContentAreThoseOfTheReports(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "a", 1000))
	require.NoError(t, second(b.Pool.Exec(t.Context(), `
UPDATE daybook.documents SET content = '{"Number": "a", "Counterparty": "Ada", "Total": 1190, "Payable": 1190,
    "Lines": [{"Kind": "item", "Net": 1000, "Rate": 19, "Category": "VAT"}],
    "Taxes": [{"Category": "VAT", "Rate": 19, "Base": 1000, "Amount": 190}]}' WHERE id = 'a'`)))
	b.work()
	job := fixture.Job(t, b.Pool, org, "a")
	require.NotNil(t, job.LastErrorCode)
	assert.Equal(t, models.CodeDocumentInvalid, *job.LastErrorCode)
	assert.Regexp(t, `there is no field "(\w+)": write "[a-z]+"`, *job.LastError)
	assert.Empty(t, fixture.Impacts(t, b.Pool, org, "a"))
}
