package posting_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

const marketplace = `
ruleset: marketplace
accounts: {shop: "4400", partner: "1705"}
rules:
  - id: sale
    when: doc.type == "invoice"
    lines:
      - {id: receivable, side: debit, account: "1200", amount: doc.payable}
      - id: revenue
        side: credit
        each: doc.lines
        amount: line.net
        split:
          - {account: shop, share: 60}
          - {account: partner, share: 40}
  - {id: credit, when: doc.type == "credit_note", like: sale, negate: true}
`

func TestSplit(t *testing.T) {
	t.Parallel()
	rules := compile(t, marketplace)
	assert.Equal(t, []string{"1200", "1705", "4400"}, rules.Accounts())
	chart := posting.NewAccounts(rules.Accounts()...)
	doc := &models.Document{Type: "invoice", Currency: "EUR", IssueDate: day, Content: models.Content{
		Lines: []models.Line{{Net: 101}, {Net: 1}, {Net: -7}, {}}, Payable: 95,
	}}
	impact, err := rules.Evaluate(doc, chart)
	require.NoError(t, err)
	assert.Equal(t, `receivable 0 1200 debit 95 EUR
revenue 1 4400 credit 61 EUR
revenue 1 1705 credit 40 EUR
revenue 2 4400 credit 1 EUR
revenue 3 4400 debit 4 EUR
revenue 3 1705 debit 3 EUR
`, entries(impact))

	_, err = rules.Evaluate(doc, posting.NewAccounts("1200", "4400"))
	e := requireError(t, err, models.CodeUnknownAccount)
	assert.Equal(t, posting.Place{Line: 15, Column: 13}, e.Place, "the place is the part's")
}

func TestSplitBalancesAtAnyAmount(t *testing.T) {
	t.Parallel()
	rules := compile(t, marketplace)
	chart := posting.NewAccounts(rules.Accounts()...)
	rapid.Check(t, func(t *rapid.T) {
		net := rapid.OneOf(amounts(), rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64, math.MinInt64 + 1})).Draw(t,
			"net")
		doc := &models.Document{
			Type: rapid.SampledFrom([]models.DocumentType{"invoice", "credit_note"}).Draw(t, "type"), Currency: "EUR",
			IssueDate: day,
			Content:   models.Content{Lines: []models.Line{{Net: net}}, Payable: net},
		}
		impact, err := rules.Evaluate(doc, chart)
		switch {
		case net < 0 && doc.Type == models.DocumentCreditNote:
			requireErrorT(t, err, models.CodeAmountSign)
			return
		case net == math.MinInt64:
			requireErrorT(t, err, models.CodeDocumentInvalid)
			return
		}
		require.NoError(t, err)
		checkImpact(t, rules, chart, doc)
		if net != 0 {
			require.NotEmpty(t, impact.Entries)
		}
	})
}

func requireErrorT(t require.TestingT, err error, code models.ErrorCode) {
	var e *posting.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, code, e.Code)
}
