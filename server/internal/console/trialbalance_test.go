package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// follow gets the page of the first link whose text holds something.
func (s *site) follow(body, text string) string {
	s.t.Helper()
	found := links(body, text)
	require.NotEmpty(s.t, found, "a link %q in %s", text, body)
	path, _, _ := strings.Cut(found[0], "#")
	return s.see(path)
}

// posted writes and posts two invoices of March and one of April.
func posted(s *site) {
	april := fixture.Invoice("acme", "april", 30000)
	april.IssueDate = models.NewDate(2026, 4, 2)
	s.write(fixture.Invoice("acme", "march-1", 100000), fixture.Invoice("acme", "march-2", 20000), april)
	s.work()
}

func TestTheTrialBalanceLeadsToDocuments(t *testing.T) {
	t.Parallel()
	s := books(t)
	assert.Contains(t, s.see("/console/trial-balance"), "Nothing is posted yet")
	posted(s)

	body := s.see("/console/trial-balance?org=acme")
	assert.Contains(t, body, "balanced")
	assert.Contains(t, body, "1\u202f785.00", "the total of both sides")
	assert.NotContains(t, body, "Opening")

	body = s.see("/console/trial-balance?org=acme&period=2026-04")
	assert.Contains(t, body, "Opening")
	assert.Contains(t, body, "357.00", "what April posted to the receivable account")
	assert.Contains(t, body, "1\u202f428.00", "what was posted before")

	body = s.follow(body, "1200")
	assert.Contains(t, body, "Account 1200")
	assert.Contains(t, body, "april")
	assert.NotContains(t, body, "march-1", "the span stays")
	assert.Contains(t, body, "1\u202f785.00", "the running balance")
	body = s.follow(body, "april")
	assert.Contains(t, body, "Document april")

	for query, says := range map[string]string{
		"period=2026-13": "want a month", "period=2026&from=2026-01-01": "either a period", "from=x": "want YYYY-MM-DD",
	} {
		status, body := s.get("/console/trial-balance?" + query)
		assert.Equal(t, http.StatusUnprocessableEntity, status, query)
		assert.Contains(t, body, says, query)
	}
	assert.Contains(t, s.see("/console/trial-balance?currency=JPY"), "Nothing was posted in this span")
	status, body := s.get("/console/accounts?account=none")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, body, "ACCOUNT_NOT_FOUND")
}

func TestEntriesAreListed(t *testing.T) {
	t.Parallel()
	s := books(t)
	assert.Contains(t, s.see("/console/entries"), "Nothing is posted yet")
	posted(s)
	for query, want := range map[string][2]string{
		"":                                 {"march-1", "No entry"},
		"document=march-2":                 {"march-2", "april"},
		"account=1200":                     {"march-1", ">4400<"},
		"from=2026-04-01&to=2026-04-30":    {"april", "march"},
		"to=2026-03-31&account=4400":       {"march-1", "april"},
		"currency=USD":                     {"No entry matches", "march"},
		"account=" + url.QueryEscape(`'"`): {"No entry matches", "march"},
	} {
		body := s.see("/console/entries?org=acme&" + query)
		assert.Contains(t, body, want[0], query)
		assert.NotContains(t, body, want[1], query)
	}
	status, _ := s.get("/console/entries?after=x")
	assert.Equal(t, http.StatusUnprocessableEntity, status)
}

func TestEntriesGoOnFromPageToPage(t *testing.T) {
	t.Parallel()
	s := books(t)
	fixture.ManyReady(t, s.Pool, "acme", "doc-", 50)
	s.work()
	body := s.see("/console/entries?org=acme&account=1200")
	assert.NotContains(t, body, "Next »")
	body = s.see("/console/entries?org=acme")
	assert.Equal(t, 100, strings.Count(body, "minor units")/2)
	body = s.follow(body, "Next »")
	assert.Equal(t, 50, strings.Count(body, "minor units")/2)
	assert.Contains(t, body, "« First")
	assert.NotContains(t, body, "Next »")
}

func TestTheChartOfAccounts(t *testing.T) {
	t.Parallel()
	s := books(t)
	const hostileName = `<b onclick="x">`
	fixture.Tx(t, s.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := ledgerdb.PutAccounts(ctx, tx, "acme",
			[]models.Account{{
				Code: hostileName, Name: hostileName, Type: models.AccountAsset,
				Currencies: []string{"EUR", "JPY"},
			}}, nil)
		require.NoError(t, err)
	})
	body := s.see("/console/accounts?org=acme")
	assert.Contains(t, body, "4400")
	assert.Contains(t, body, "EUR JPY")
	assert.NotContains(t, body, hostileName)
	body = s.see("/console/accounts?org=acme&account=" + url.QueryEscape(hostileName))
	assert.NotContains(t, body, hostileName)
	assert.Contains(t, body, "Nothing was posted to the account yet")
}
