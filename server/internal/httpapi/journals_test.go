package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// TestJournalsOverHTTP: a journal is written by the token's name, posted with its dimensions, listed,
// and reversed when it is deleted; what cannot be posted says why.
func TestJournalsOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, "acme")
	fixture.Organization(t, b.Pool, "other")
	acme, other := b.token("acme", tokens.ScopeRead, tokens.ScopeOperate), b.token("other", tokens.ScopeRead, tokens.ScopeOperate)
	journal := func(credit string) object {
		return object{
			"id": "rent-3", "date": "2026-03-31", "reason": "Accrued rent", "currency": "EUR", "dimensions": object{"cost_centre": "office"},
			"entries": []object{{"account": "6300", "amountMinor": "500"}, {"account": "1600", "amountMinor": credit, "note": "owed"}},
		}
	}
	a := b.send(acme, http.MethodPost, "/api/journals", journal("-499"))
	assert.Equal(t, "DOCUMENT_REFUSED", a.code())
	assert.Contains(t, string(a.body), `"UNBALANCED"`)
	assert.Equal(t, http.StatusForbidden, b.send(b.token("acme", tokens.ScopeRead), http.MethodPost, "/api/journals", journal("-500")).status)

	for _, wrong := range []any{-500, "-5.00", "", "9223372036854775808"} {
		j := journal("-500")
		j["entries"].([]object)[1]["amountMinor"] = wrong
		a = b.send(acme, http.MethodPost, "/api/journals", j)
		assert.Equal(t, http.StatusUnprocessableEntity, a.status, wrong)
		assert.Contains(t, string(a.body), `"body.entries[1].amountMinor"`, wrong)
	}

	dry := journal("-500")
	dry["dryRun"] = true
	var c answers.JournalChange
	b.send(acme, http.MethodPost, "/api/journals", dry).into(t, &c)
	assert.False(t, c.Changed)
	assert.Equal(t, "2026-03-31", c.PostingDate)
	b.send(acme, http.MethodPost, "/api/journals", journal("-500")).into(t, &c)
	assert.True(t, c.Changed)
	assert.Equal(t, "journal:rent-3", c.DocumentID)
	c = answers.JournalChange{}
	b.send(acme, http.MethodPost, "/api/journals", journal("-500")).into(t, &c)
	assert.False(t, c.Changed, "the same again")
	queuetest.DrainAccounting(t, b.Pool, queuetest.AccountingOptions{})

	var list answers.JournalList
	b.send(acme, http.MethodGet, "/api/journals", nil).into(t, &list)
	require.Len(t, list.Journals, 1)
	assert.Equal(t, "Accrued rent", list.Journals[0].Reason)
	assert.NotEmpty(t, list.Journals[0].By)
	assert.Equal(t, answers.Decimal("-5.00"), list.Journals[0].Entries[1].Amount)
	assert.Equal(t, answers.Minor("-500"), list.Journals[0].Entries[1].AmountMinor)
	b.send(other, http.MethodGet, "/api/journals", nil).into(t, &list)
	assert.Empty(t, list.Journals)
	var entries answers.EntryList
	b.send(acme, http.MethodGet, "/api/entries", nil).into(t, &entries)
	require.Len(t, entries.Entries, 2)
	assert.Equal(t, map[string]string{"cost_centre": "office"}, entries.Entries[0].Dimensions)

	assert.Equal(t, "DOCUMENT_NOT_FOUND", b.send(other, http.MethodDelete, "/api/journals/journal:rent-3", nil).code())
	c = answers.JournalChange{}
	b.send(acme, http.MethodDelete, "/api/journals/journal:rent-3", nil).into(t, &c)
	assert.True(t, c.Changed)
	queuetest.DrainAccounting(t, b.Pool, queuetest.AccountingOptions{})
	assert.Zero(t, fixture.Balance(t, b.Pool, "acme", "6300", "EUR"))
}
