package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

func TestStatementsLeadToEntries(t *testing.T) {
	t.Parallel()
	s := books(t)
	assert.Contains(t, s.see("/console/statements?org=acme"), "Nothing was posted in this span")
	assert.Contains(t, s.see("/console/vat?org=acme"), "No tax is stated")
	posted(s)
	body := s.see("/console/statements?org=acme&kind=income&period=2026-04&compare=previous")
	assert.Contains(t, body, "300.00")
	assert.Contains(t, body, "1\u202f200.00", "March")
	assert.Contains(t, s.follow(body, "4400"), "april")
	body = s.see("/console/statements?org=acme")
	assert.Contains(t, body, "Total liabilities and equity")
	assert.Contains(t, s.see("/console/statements?org=acme&kind=cash"), "role cash")
	body = s.see("/console/vat?org=acme&period=2026-03")
	assert.Contains(t, body, "228.00")
	assert.NotContains(t, body, "Documents that cause")
	for _, format := range []string{"CSV", "JSON", "PDF"} {
		assert.NotEmpty(t, s.follow(body, format))
	}
	for _, query := range []string{"kind=none", "kind=income&compare=year", "where=x", "period=x"} {
		status, _ := s.get("/console/statements?org=acme&" + query)
		assert.Equal(t, http.StatusUnprocessableEntity, status, query)
	}
}

func TestAYearIsClosedInTheConsole(t *testing.T) {
	t.Parallel()
	s := books(t)
	posted(s)
	s.exec(`INSERT INTO daybook.accounts (org_id, code, type) VALUES ('acme', '2900', 'equity')`)
	form := url.Values{"org": {"acme"}, "year": {"2026"}, "account": {"2900"}}
	s.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	sees(t, s.see("/console/statements?org=acme"), "Close the year…", "Take the close back…")
	s.done("/console/statements/close-year", form)
	s.work()
	require.Equal(t, 1, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.impacts WHERE document_id = 'year-end:2026'`))
	assert.Contains(t, s.see("/console/statements?org=acme"), "2900")
	s.done("/console/statements/close-year", url.Values{"org": {"acme"}, "year": {"2026"}, "undo": {"true"}})
	s.work()
	require.Equal(t, 2, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.impacts WHERE document_id = 'year-end:2026'`))
}
