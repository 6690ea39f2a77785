package console_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// From the sums of all counterparties to a group, and back.
func TestOpenItemsPages(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	assert.Contains(t, s.see("/console/open-items?org=acme"), "Nothing is open")
	invoice, payment := fixture.Invoice("acme", "inv-1", 100000), fixture.Invoice("acme", "pay-1", 0)
	invoice.Content.Counterparty = "Ada & Co"
	payment.Type, payment.Direction = models.DocumentPayment, models.DirectionIn
	payment.Content = models.Content{Amount: 50000}
	s.write(invoice, payment)
	s.work()

	body := s.see("/console/open-items?org=acme&on=2026-03-31")
	assert.Contains(t, body, "1\u202f190.00")
	assert.Contains(t, body, "500.00")
	assert.Contains(t, s.follow(body, "none"), "pay-1")
	body = s.follow(body, "Ada &amp; Co")
	assert.Contains(t, body, "inv-1")
	assert.Contains(t, body, `type="checkbox"`)

	form := url.Values{"org": {"acme"}, "document": {"inv-1", "pay-1"}, "reason": {"by phone"}}
	body = s.done("/console/open-items/reconcile", form)
	assert.Contains(t, body, "690.00 EUR open on 1200")
	assert.Contains(t, body, "by phone")
	assert.Contains(t, s.see("/console/open-items?org=acme&on=2026-03-31"), "690.00")

	form = url.Values{"org": {"acme"}, "document": {"pay-1"}, "next": {"/console/open-items?org=acme"}}
	assert.Contains(t, s.done("/console/open-items/unreconcile", form), "2 documents have left the group.")
	assert.Contains(t, s.done("/console/open-items/match", url.Values{"org": {"acme"}, "next": {"/console/open-items?org=acme"}}),
		"0 pairs of documents were put together.")
}
