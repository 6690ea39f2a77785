package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// TestExchangeDifferencesOverHTTP: they are read, and booked once, by a token that may.
func TestExchangeDifferencesOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, "acme")
	_, err := books.SetOwnCurrency(t.Context(), b.Pool, "acme", "EUR")
	require.NoError(t, err)
	token := b.token("acme", tokens.ScopeRead, tokens.ScopeOperate)
	b.send(token, http.MethodPut, "/api/rates", object{"rates": []object{
		{"currency": "USD", "validOn": "2026-03-01", "rate": "0.90"}, {"currency": "USD", "validOn": "2026-03-15", "rate": "0.92"},
	}})
	var page answers.RateList
	b.get(&page, "/api/rates?orgId=acme&limit=1")
	require.Len(t, page.Rates, 1)
	assert.Equal(t, "2026-03-15", page.Rates[0].ValidOn)
	next := "/api/rates?orgId=acme&limit=1&cursor=" + page.NextCursor
	page = answers.RateList{}
	b.get(&page, next)
	require.Len(t, page.Rates, 1)
	assert.Equal(t, "2026-03-01", page.Rates[0].ValidOn)
	assert.Empty(t, page.NextCursor)

	invoice, payment := fixture.Invoice("acme", "inv-1", 1000_00), fixture.Invoice("acme", "pay-1", 0)
	payment.Type, payment.Direction, payment.Content = models.DocumentPayment, models.DirectionIn, models.Content{Amount: 500_00}
	invoice.Currency, payment.Currency, payment.IssueDate = "USD", "USD", models.NewDate(2026, 3, 20)
	fixture.Ready(t, b.Pool, invoice, payment)
	queuetest.DrainAccounting(t, b.Pool, queuetest.AccountingOptions{})
	b.send(token, http.MethodPost, "/api/open-items/reconcile", object{"documents": []string{"inv-1", "pay-1"}})

	body := object{"until": "2026-03-31"}
	assert.Equal(t, "INVALID", b.send(token, http.MethodPost, "/api/exchange", body).code(), "no accounts")
	body["adjustment"], body["gain"], body["loss"] = "1370", "4920", "6960"
	assert.Equal(t, http.StatusForbidden, b.send(b.token("acme", tokens.ScopeRead), http.MethodPost, "/api/exchange", body).status)
	var e answers.Exchange
	b.send(token, http.MethodPost, "/api/exchange", body).into(t, &e)
	assert.Equal(t, "exchange:2026-03-31/1", e.DocumentID)
	assert.Equal(t, answers.Decimal("10.00"), e.ToBook)
	assert.Equal(t, answers.Minor("1000"), e.ToBookMinor)
	e = answers.Exchange{}
	b.send(token, http.MethodPost, "/api/exchange", object{"until": "2026-03-31"}).into(t, &e)
	assert.Empty(t, e.DocumentID, "it is booked")
	assert.Equal(t, []string{"1370", "4920", "6960"}, e.Accounts)
	b.send(token, http.MethodGet, "/api/exchange?until=2026-03-31", nil).into(t, &e)
	assert.Equal(t, answers.Decimal("0.00"), e.ToBook)
}
