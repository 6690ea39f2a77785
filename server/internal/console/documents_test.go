package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// books is a site with the organization acme, which has the sample's chart and rules, and a caller
// who may read it.
func books(t *testing.T, scopes ...tokens.Scope) *site {
	t.Helper()
	s := newSite(t)
	fixture.Organization(t, s.Pool, "acme")
	s.signIn("", append(scopes, tokens.ScopeRead)...)
	return s
}

// write makes documents ready.
func (s *site) write(documents ...*models.Document) {
	s.t.Helper()
	fixture.Ready(s.t, s.Pool, documents...)
}

// work posts what is due.
func (s *site) work() {
	s.t.Helper()
	queuetest.DrainAccounting(s.t, s.Pool, queuetest.AccountingOptions{})
}

const markup = `<img src=x onerror="alert('x')">`

func TestDocumentsAreListed(t *testing.T) {
	t.Parallel()
	s := books(t)
	s.write(fixture.Invoice("acme", "inv-1", 1000), fixture.Invoice("acme", "inv-2", 2000),
		fixture.Unbalanced("acme", "off-1"))
	s.work()
	s.write(fixture.Invoice("acme", "new/1", 1000))

	body := s.see("/console/documents")
	for _, id := range []string{"inv-1", "inv-2", "off-1", "new/1", "UNBALANCED", "posted"} {
		assert.Contains(t, body, id)
	}
	for query, want := range map[string][2]string{
		"id=inv-":                         {"inv-2", "off-1"},
		"state=failed":                    {"off-1", "inv-1"},
		"state=posted":                    {"inv-1", "off-1"},
		"state=unposted":                  {"new/1", "inv-1"},
		"state=pending":                   {"new/1", "off-1"},
		"from=2026-03-15&id=inv":          {"No document matches", "inv-1<"},
		"from=2026-03-01&to=2026-03-31":   {"inv-1", "No document"},
		"type=invoice&org=acme":           {"inv-1", "No document"},
		"type=payment":                    {"No document matches", "inv-1<"},
		"after=inv-2&org=acme&id=&state=": {"off-1", "inv-1<"},
	} {
		body := s.see("/console/documents?" + query)
		assert.Contains(t, body, want[0], query)
		assert.NotContains(t, body, want[1], query)
	}
	for _, query := range []string{"state=lost", "from=yesterday", "from=2026-03-02&to=2026-03-01"} {
		status, body := s.get("/console/documents?" + query)
		assert.Equal(t, http.StatusUnprocessableEntity, status, query)
		assert.Contains(t, body, "INVALID", query)
	}
}

func TestADocumentsPageExplainsIt(t *testing.T) {
	t.Parallel()
	s := books(t)
	s.write(fixture.Invoice("acme", "inv/1", 123456))
	s.work()
	changed := fixture.Invoice("acme", "inv/1", 200000)
	changed.Content.Lines[0].Description = "Two chairs"
	s.write(changed)
	s.work()

	body := s.see("/console/documents?document=inv%2F1&org=acme")
	for _, want := range []string{
		"Two chairs", "2\u202f000.00", "200000 minor units", "19\u202f%", // what it says
		"sale", "rule set version 1", `/console/accounting/`, // explanation
		"3 lines differ", "1\u202f469.12", "2\u202f380.00", // old against new
		"Reverses", "number 3 of the chain",
	} {
		assert.Contains(t, body, want)
	}
	assert.Contains(t, body, `class="changed"`)

	status, body := s.get("/console/documents?document=unknown&org=acme")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, body, "DOCUMENT_NOT_FOUND")
}

// TestADocumentsOpenAmount: what is posted and what is open stand on one page, and so does the group
// that a payment makes of both.
func TestADocumentsOpenAmount(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	d := fixture.Invoice("acme", "inv-1", 1000)
	d.Content.Counterparty, d.Content.Number = "Muster GmbH", "2026-7"
	paid := &models.Document{
		OrgID: "acme", ID: "pay-1", Type: models.DocumentPayment, Direction: models.DirectionIn, Currency: "EUR",
		IssueDate: models.NewDate(2026, 3, 20), Content: models.Content{Amount: 1000, Counterparty: "Muster GmbH"},
	}
	s.write(d, paid)
	s.work()
	sees(t, s.see("/console/documents?org=acme&document=inv-1"), "What is posted", "Accounts receivable", "Open amount", "11.90")
	sees(t, s.see("/console/documents?org=acme"), "Muster GmbH", "2026-7", "11.90")
	s.done("/console/open-items/reconcile", url.Values{"document": {"inv-1", "pay-1"}})
	sees(t, s.see("/console/documents?org=acme&document=inv-1"), "1.90", "It is in", "pay-1")
}

func TestADocumentOfTheApplicationsOwnTables(t *testing.T) {
	t.Parallel()
	s := books(t)
	_, err := s.Pool.Exec(t.Context(), `SELECT daybook.enqueue_accounting_job('acme', 'own-1', 3)`)
	require.NoError(t, err)
	_, err = s.Pool.Exec(t.Context(), `UPDATE daybook.organizations SET source = 'shop' WHERE id = 'acme'`)
	require.NoError(t, err)
	assert.Contains(t, s.see("/console/documents?org=acme"), "own table")
	body := s.see("/console/documents?org=acme&document=own-1")
	assert.Contains(t, body, "<code>shop</code>")
	assert.Contains(t, body, "version 3")
	assert.Contains(t, body, "Nothing of this document was ever posted")
}

func TestRatesAreShownExactly(t *testing.T) {
	t.Parallel()
	s := books(t)
	d := fixture.Invoice("acme", "quebec", 100)
	d.Content.Lines[0].Rate, d.Content.Taxes[0].Rate = models.MustRate("9.975"), models.MustRate("8.875")
	s.write(d)
	body := s.see("/console/documents?document=quebec&org=acme")
	assert.Contains(t, body, "9.975\u202f%")
	assert.Contains(t, body, "8.875\u202f%")
}

func TestABigDocumentIsShownInParts(t *testing.T) {
	t.Parallel()
	s := books(t)
	d := fixture.Invoice("acme", "big", 0)
	d.Content.Lines, d.Content.Taxes, d.Content.Total, d.Content.Payable = nil, nil, 0, 0
	for range 3000 {
		d.Content.Lines = append(d.Content.Lines,
			models.Line{Kind: "item", Code: "chair", Net: 10, Rate: models.MustRate("19")})
		d.Content.Payable += 10
	}
	s.write(d)
	s.work()
	body := s.see("/console/documents?document=big&org=acme")
	assert.Contains(t, body, "1 to 100 of 3\u202f000")
	assert.Contains(t, body, "100 of 3\u202f001 entries")
	assert.Less(t, len(body), 150<<10, "bytes of the page")
	assert.Contains(t, s.see("/console/documents?document=big&org=acme&line=2901"), "2901 to 3000 of 3\u202f000")
}

func TestHostileDocumentsAreShownAsText(t *testing.T) {
	t.Parallel()
	s := books(t)
	const id = `<script>alert(1)</script>`
	s.write(fixture.Hostile("acme", id, markup))
	s.work()
	d := fixture.Hostile("acme", "type", markup)
	d.Type = markup
	s.write(d)
	s.work()
	for _, path := range []string{
		"/console/documents?org=acme", "/console/documents?org=acme&type=" + url.QueryEscape(markup) + "&id=" +
			url.QueryEscape(markup) + "&after=" + url.QueryEscape(markup),
		"/console/documents?org=acme&document=" + url.QueryEscape(id), "/console/documents?org=acme&document=type",
	} {
		body := s.see(path)
		assert.NotContains(t, body, markup, path)
		assert.NotContains(t, body, "<script>alert", path)
	}
	assert.Contains(t, s.see("/console/documents?org=acme&document="+url.QueryEscape(id)), "&lt;img src=x")
}

// ledgerPages are the addresses of the pages about documents and books, each with what it shows of
// acme.
var ledgerPages = map[string]string{
	"documents": "inv-1", "documents?document=inv-1": "SECRET", "entries": "inv-1", "entries?document=inv-1": "11.90",
	"trial-balance": "11.90", "statements": "11.90", "vat": "1.90", "statements/file": "11.90",
	"periods": "2031-01-01", "rules": "SECRET", "rules/1": "SECRET", "rules/1/preview": "SECRET",
	"rules/edit": "SECRET", "accounts": "SECRET", "accounts?account=1200": "inv-1",
}

func TestAnotherOrganizationSeesNothingOfTheLedger(t *testing.T) {
	t.Parallel()
	s := books(t)
	d := fixture.Invoice("acme", "inv-1", 1000)
	d.Content.Counterparty = "SECRET"
	s.write(d)
	s.work()
	s.exec(`UPDATE daybook.accounts SET name = 'SECRET' WHERE code = '1200'`)
	s.exec(`INSERT INTO daybook.periods (org_id, starts_on, ends_on) VALUES ('acme', '2031-01-01', '2031-01-31')`)
	s.exec(`UPDATE daybook.rule_sets SET name = 'SECRET', source = replace(source, 'ruleset: sample', 'ruleset: SECRET')`)
	fixture.Organization(t, s.Pool, "other")
	of := func(path, org string) string {
		u, err := url.Parse("/console/" + path)
		require.NoError(t, err)
		q := u.Query()
		q.Set("org", org)
		u.RawQuery = q.Encode()
		return u.String()
	}
	for path, secret := range ledgerPages {
		assert.Contains(t, s.see(of(path, "acme")), secret, path)
	}
	s.signIn("other", tokens.ScopeRead, tokens.ScopeOperate)
	for path, secret := range ledgerPages {
		status, body := s.get("/console/" + path)
		if status == http.StatusOK {
			assert.NotContains(t, body, secret, path)
		} else {
			assert.Equal(t, http.StatusNotFound, status, path)
		}
		status, body = s.get(of(path, "acme"))
		assert.Equal(t, http.StatusNotFound, status, path)
		assert.Contains(t, body, "ORGANIZATION_NOT_FOUND", path)
	}
}

func TestAnOrganizationIsChosen(t *testing.T) {
	t.Parallel()
	s := books(t)
	fixture.Organization(t, s.Pool, "other & more")
	body := s.see("/console/documents")
	assert.Contains(t, body, "Choose one here")
	assert.Contains(t, body, "%26")
	assert.Contains(t, s.see("/console/documents?org=other+%26+more"), "There is no document yet")
}
