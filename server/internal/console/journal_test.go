package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// journalOf is a form of two lines.
func journalOf(id string) url.Values {
	return url.Values{
		"org": {"acme"}, "id": {id}, "date": {"2026-03-31"}, "reason": {"Accrued rent"}, "currency": {"eur"},
		"dimensions": {"cost_centre=office"},
		"account":    {"6300", "1200", ""}, "debit": {"1,234.50", "", ""}, "credit": {"", "1234.5", ""},
		"line_currency": {"", "", ""}, "note": {"March", "", ""}, "line_dimensions": {"", "cost_centre=", ""},
	}
}

// TestAJournalIsWrittenAndDeleted goes the way of the form: what is wrong is said beside it, what
// would be posted is shown, and it is posted and reversed as any document.
func TestAJournalIsWrittenAndDeleted(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	page := s.see("/console/journal?org=acme")
	found := regexp.MustCompile(`name="id" value="(journal:[^"]+)"`).FindStringSubmatch(page)
	require.NotNil(t, found)
	form := journalOf(found[1])

	for field, c := range map[string]struct{ value, says string }{
		"reason":   {"", "the reason is missing"},
		"date":     {"31.3.2026", "write it as 2026-03-31"},
		"currency": {"", "the currency is missing"},
		"credit":   {"1234.51", "give a debit or a credit"},
	} {
		wrong := journalOf(found[1])
		wrong.Set(field, c.value)
		_, body := s.post("/console/journal/check?org=acme", wrong)
		sees(t, body, "It cannot be posted", c.says, `value="6300"`)
	}
	wrong := journalOf(found[1])
	wrong["credit"] = []string{"", "1234.51", ""}
	_, body := s.post("/console/journal/check?org=acme", wrong)
	sees(t, body, "credits", "0.01 EUR")
	assert.NotContains(t, body, "journal/post")
	wrong = journalOf(found[1])
	wrong["account"] = []string{"6300", "no-such", ""}
	_, body = s.post("/console/journal/check?org=acme", wrong)
	sees(t, body, "no-such")

	form.Set("more", "1")
	_, body = s.post("/console/journal/check?org=acme", form)
	assert.Greater(t, len(regexp.MustCompile(`name="account"`).FindAllString(body, -1)), 5)
	form.Del("more")
	status, body := s.post("/console/journal/check?org=acme", form)
	require.Equal(t, http.StatusOK, status)
	sees(t, body, "What would be posted on 2026-03-31", "1\u202f234.50", "cost_centre=office", "journal/post")
	assert.Zero(t, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.documents`))

	sees(t, s.done("/console/journal/post", form), "The journal is written", "Accrued rent", "by test", "Delete")
	sees(t, s.done("/console/journal/post", form), "Nothing was changed")
	s.work()
	assert.EqualValues(t, 123450, fixture.Balance(t, s.Pool, "acme", "6300", "EUR"))
	sees(t, s.see("/console/journal?org=acme"), "Accrued rent", found[1])
	sees(t, s.see("/console/entries?org=acme"), "cost_centre=office", found[1])
	sees(t, s.see("/console/documents?org=acme"), found[1], "1\u202f234.50")

	sees(t, s.done("/console/journal/delete", url.Values{"document": {found[1]}}), "A worker reverses", "deleted")
	s.work()
	assert.Zero(t, fixture.Balance(t, s.Pool, "acme", "6300", "EUR"))
	status, body = s.post("/console/journal/post", form)
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	sees(t, body, "was deleted")
	status, _ = s.post("/console/journal/delete", url.Values{"org": {"acme"}, "document": {"nothing"}})
	assert.Equal(t, http.StatusNotFound, status)
	sees(t, s.see("/console/actions?org=acme"), "journals.put", "journals.delete")
}

// TestWhoMayReadWritesNoJournal: the form is for those who may use it.
func TestWhoMayReadWritesNoJournal(t *testing.T) {
	t.Parallel()
	s := books(t)
	assert.NotContains(t, s.see("/console/journal?org=acme"), "<textarea")
	status, _ := s.post("/console/journal/post", journalOf("journal:x"))
	assert.Equal(t, http.StatusForbidden, status)
}
