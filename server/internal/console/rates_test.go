package console_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

func TestRatesPage(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	assert.Contains(t, s.see("/console/rates?org=acme"), "no currency of its own")
	next := "/console/rates?org=acme"
	s.done("/console/rates/own", url.Values{"currency": {"EUR"}, "next": {next}})
	body := s.done("/console/rates/set", url.Values{
		"currency": {"USD"}, "valid_on": {"2026-03-31"}, "rate": {"0.9248"}, "source": {"ECB"}, "next": {next},
	})
	sees(t, body, "The rate is set.", "0.9248", "ECB", "Exchange differences")
}

// TestExchangeDifferencesAreBooked: the page lists them, and its button writes the journal once.
func TestExchangeDifferencesAreBooked(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	invoice, payment := fixture.Invoice("acme", "inv-1", 100000), fixture.Invoice("acme", "pay-1", 0)
	payment.Type, payment.Direction, payment.Content = models.DocumentPayment, models.DirectionIn, models.Content{Amount: 50000}
	invoice.Currency, payment.Currency, payment.IssueDate = "USD", "USD", models.NewDate(2026, 3, 20)
	s.write(invoice, payment)
	s.work()
	next := "/console/rates?org=acme&until=2026-03-31"
	s.done("/console/open-items/reconcile", url.Values{"org": {"acme"}, "document": {"inv-1", "pay-1"}})
	s.done("/console/rates/own", url.Values{"currency": {"EUR"}, "next": {next}})
	for day, rate := range map[string]string{"2026-03-01": "0.90", "2026-03-15": "0.92"} {
		s.done("/console/rates/set", url.Values{"currency": {"USD"}, "valid_on": {day}, "rate": {rate}, "next": {next}})
	}
	sees(t, s.see(next), "inv-1", "pay-1", "Accounts receivable", "10.00", "Book…")
	form := url.Values{
		"org": {"acme"}, "until": {"2026-03-31"}, "adjustment": {"1370"}, "gain": {"4920"}, "loss": {"6960"}, "next": {next},
	}
	sees(t, s.done("/console/rates/book", form), "The journal of 10.00 EUR is written", "exchange:2026-03-31/1")
	sees(t, s.done("/console/rates/book", form), "booked already", "booked 10.00, to book 0.00")
	assert.Equal(t, 2, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.actions WHERE action = 'exchange.book' AND outcome = 'done'`))
	s.work()
	assert.EqualValues(t, 1000, fixture.Balance(t, s.Pool, "acme", "1370", "EUR"))
}
