package posting_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

// extremes are amounts at which 64 bits end.
func extremes() *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.SampledFrom([]int64{
			math.MinInt64, math.MinInt64 + 1, -1 << 62, -1, 0, 1, 1 << 62, math.MaxInt64 - 1,
			math.MaxInt64,
		}),
		rapid.Int64(), rapid.Int64Range(-10, 10),
	)
}

// arithmetic holds expressions over doc.total (a) and doc.payable (b), and what they come to; nil:
// nothing, they fail.
var arithmetic = map[string]func(a, b *big.Int) *big.Int{
	`doc.total + doc.payable`:              func(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) },
	`doc.total - doc.payable`:              func(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) },
	`doc.total * doc.payable`:              func(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) },
	`-doc.total`:                           func(a, _ *big.Int) *big.Int { return new(big.Int).Neg(a) },
	`doc.total / doc.payable`:              quotient,
	`doc.total % doc.payable`:              remainder,
	`doc.lines[0].net + doc.taxes[0].base`: func(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) },
	`int(string(doc.total)) + doc.payable`: func(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) },
}

func quotient(a, b *big.Int) *big.Int {
	if b.Sign() == 0 {
		return nil
	}
	return new(big.Int).Quo(a, b)
}

func remainder(a, b *big.Int) *big.Int {
	// Where the quotient does not fit, there is no remainder either.
	if b.Sign() == 0 || !new(big.Int).Quo(a, b).IsInt64() {
		return nil
	}
	return new(big.Int).Rem(a, b)
}

// An expression gives what whole numbers of any size give, or fails where 64 bits do not hold it.
// It never wraps.
func TestArithmeticNeverWraps(t *testing.T) {
	t.Parallel()
	for expression, exact := range arithmetic {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			rules := compile(t, fmt.Sprintf(`
ruleset: arithmetic
rules:
  - id: r
    when: true
    lines:
      - {id: a, side: debit, account: "1", amount: %q}
      - {id: b, side: credit, account: "1", amount: %q}
`, expression, expression))
			rapid.Check(t, func(t *rapid.T) {
				a, b := extremes().Draw(t, "a"), extremes().Draw(t, "b")
				doc := &models.Document{Currency: "EUR", IssueDate: day, Content: models.Content{
					Total: a, Payable: b, Lines: []models.Line{{Net: a}}, Taxes: []models.Tax{{Base: b}},
				}}
				impact, err := rules.Evaluate(doc, posting.NewAccounts("1"))
				want := exact(big.NewInt(a), big.NewInt(b))
				// The least int64 has no counterpart on the other side.
				if want == nil || !want.IsInt64() || want.Int64() == math.MinInt64 {
					requireErrorT(t, err, models.CodeDocumentInvalid)
					return
				}
				if want.Sign() == 0 && (a != 0 || b != 0) {
					requireErrorT(t, err, models.CodeAmountNotRead)
					return
				}
				require.NoError(t, err)
				if want.Sign() == 0 {
					require.Empty(t, impact.Entries)
					return
				}
				require.Len(t, impact.Entries, 2)
				side := models.Debit
				if want.Sign() < 0 {
					side = models.Credit
				}
				require.Equal(t, side, impact.Entries[0].Side)
				require.Equal(t, new(big.Int).Abs(want).Int64(), impact.Entries[0].Amount)
			})
		})
	}
}

// Entries of any size balance when added up without bounds, or the document fails.
func TestSumsNeverWrap(t *testing.T) {
	t.Parallel()
	rules := compile(t, `
ruleset: sums
rules:
  - id: r
    when: true
    lines:
      - {id: a, side: debit, account: "1", each: doc.lines, amount: line.net, currency: line.code}
      - {id: b, side: credit, each: doc.lines, amount: line.cost, currency: line.category, split: [{account: "2", share: 2}, {account: "3", share: 1}]}
    rounding: {account: "4", max_minor: 1000000}
    exchange: {account: "5"}
`[1:])
	chart := posting.NewAccounts(rules.Accounts()...)
	rapid.Check(t, func(t *rapid.T) {
		doc := &models.Document{Currency: "EUR", IssueDate: day}
		currency := rapid.SampledFrom([]string{"EUR", "USD", "JPY"})
		for range rapid.IntRange(0, 8).Draw(t, "lines") {
			net := extremes().Draw(t, "net")
			doc.Content.Lines = append(doc.Content.Lines, models.Line{
				Net: net, Cost: rapid.OneOf(rapid.Just(net), extremes()).Draw(t, "cost"),
				Code: currency.Draw(t, "debit currency"), Category: currency.Draw(t, "credit currency"),
			})
		}
		impact, err := rules.Evaluate(doc, chart)
		if err != nil {
			var e *posting.Error
			require.ErrorAs(t, err, &e)
			return
		}
		sums := map[string]*big.Int{}
		for _, e := range impact.Entries {
			require.Positive(t, e.Amount)
			if sums[e.Currency] == nil {
				sums[e.Currency] = new(big.Int)
			}
			amount := big.NewInt(e.Amount)
			if e.Side == models.Credit {
				amount.Neg(amount)
			}
			sums[e.Currency].Add(sums[e.Currency], amount)
		}
		for c, sum := range sums {
			require.Zero(t, sum.Sign(), "%s: %v", c, sum)
		}
	})
}

// A difference of -2⁶³ fits into 64 bits, but no entry on the other side could balance it.
func TestLeastDifferenceIsRefused(t *testing.T) {
	t.Parallel()
	rules := compile(t, conversion+withExchange)
	chart := posting.NewAccounts(rules.Accounts()...)
	doc := payout(math.MaxInt64, 1, "EUR")
	checkImpact(t, rules, chart, doc)
	_, err := rules.Evaluate(doc, chart)
	require.NoError(t, err)
	doc.Content.Prepaid = 1 // a second credit
	_, err = rules.Evaluate(doc, chart)
	require.Contains(t, requireError(t, err, models.CodeDocumentInvalid).Message, "64 bits")
}

// A rule and its negation refuse the same documents: sums that reach -2⁶³ on one side would reach
// 2⁶³ on the other.
func TestNegatedRuleRefusesTheSameSums(t *testing.T) {
	t.Parallel()
	rules := compile(t, `
ruleset: sums
rules:
  - id: sale
    when: doc.type == "invoice"
    lines:
      - {id: ar, side: debit, account: "1", amount: doc.payable}
      - {id: revenue, side: credit, account: "2", each: doc.lines, amount: line.net}
  - {id: credit, when: doc.type == "credit_note", like: sale, negate: true}
`[1:])
	chart := posting.NewAccounts(rules.Accounts()...)
	doc := &models.Document{Currency: "EUR", IssueDate: day, Content: models.Content{
		Payable: math.MaxInt64, Lines: []models.Line{{Net: -1}, {Net: math.MaxInt64}, {Net: 1}},
	}}
	for _, kind := range []models.DocumentType{models.DocumentInvoice, models.DocumentCreditNote} {
		doc.Type = kind
		_, err := rules.Evaluate(doc, chart)
		require.Contains(t, requireError(t, err, models.CodeDocumentInvalid).Message, "64 bits", kind)
	}
}
