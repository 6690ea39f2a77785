package books_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
)

// depositRules post an invoice for a deposit to the account of advances, and deduct it where the
// final invoice states it as prepaid.
const depositRules = `ruleset: deposits
rules:
  - id: deposit
    when: '"deposit" in doc.attributes'
    lines:
      - {id: receivable, side: debit, account: "1200", amount: doc.payable}
      - {id: advance, side: credit, account: "3250", amount: doc.payable}
  - id: sale
    when: doc.type == "invoice" && !("deposit" in doc.attributes)
    lines:
      - {id: receivable, side: debit, account: "1200", amount: doc.payable}
      - {id: prepaid, side: debit, account: "3250", amount: doc.prepaid}
      - {id: revenue, side: credit, account: "4400", each: doc.lines, amount: line.net}
  - id: payment
    when: doc.type == "payment"
    lines:
      - {id: bank, side: debit, account: "1000", amount: doc.amount}
      - {id: receivable, side: credit, account: "1200", amount: doc.amount}
`

// A deposit and the final invoice that deducts it are one group, which is closed when both are paid.
func TestDeposit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := books.ApplyRules(t.Context(), b.Pool, org, []byte(depositRules), books.ApplyOptions{})
	assert.NoError(t, err)
	deposit := sold(org, "deposit", "Ada", 1, 300)
	deposit.Content.Attributes = map[string]string{"deposit": "true"}
	final := sold(org, "final", "Ada", 10, 1000)
	final.Content.Prepaid, final.Content.Payable, final.Content.RefersTo = 300, 700, []string{"N-deposit"}
	fixture.Ready(t, b.Pool, deposit, pays(org, "p-1", "Ada", 3, 300, "N-deposit"), final)
	b.work()
	assert.Equal(t, map[string]string{
		"deposit 1200": "300", "deposit 3250": "-300", "p-1 1200": "-300", "final 1200": "700", "final 3250": "300",
	}, b.openItems(org, models.Date{}))
	assert.ElementsMatch(t, []string{"reference final deposit", "reference final deposit", "reference p-1 deposit"},
		b.match(books.MatchOptions{Rules: []models.MatchedBy{models.MatchedByReference}}))
	assert.Equal(t, map[string]string{"final 1200": "700"}, b.openItems(org, models.Date{}))
	fixture.Ready(t, b.Pool, pays(org, "p-2", "Ada", 20, 700, "N-final"))
	b.work()
	b.match(books.MatchOptions{})
	assert.Empty(t, b.openItems(org, models.Date{}))
	assert.Equal(t, map[string]string{"deposit 1200": "300", "deposit 3250": "-300"}, b.openItems(org, models.NewDate(2026, 3, 2)))
}
