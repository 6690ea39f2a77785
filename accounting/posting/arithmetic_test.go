package posting_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

func threeLines() *models.Document {
	doc := &models.Document{Currency: "EUR", IssueDate: day}
	for range 3 {
		doc.Content.Lines = append(doc.Content.Lines,
			models.Line{Code: "A", Net: 1005, Rate: models.MustRate("19"), Category: "VAT"})
	}
	doc.Content.Lines = append(doc.Content.Lines, models.Line{Code: "B", Net: 50, Rate: models.MustRate("7")},
		models.Line{Net: -1, Rate: models.MustRate("9.975")})
	doc.Content.Taxes = []models.Tax{{Category: "VAT", Amount: 573}, {Category: "IRPF", Amount: -30}}
	return doc
}

func TestPercentAndSum(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]int64{
		`percent(1005, rate("19"), half_up)`:                                               191, // 190.95
		`percent(doc.lines[0].net, doc.lines[0].rate, half_up)`:                            191,
		`percent(sum(doc.lines.map(l, l.rate == rate("19"), l.net)), rate("19"), half_up)`: 573, // 572.85
		`percent(1005, rate("19"), down)`:                                                  190,
		`percent(50, rate("7"), half_up)`:                                                  4, // 3.5
		`percent(50, rate("7"), half_even)`:                                                4,
		`percent(50, rate("5"), half_up)`:                                                  3, // 2.5
		`percent(50, rate("5"), half_even)`:                                                2,
		`percent(-50, rate("5"), half_up)`:                                                 -3,
		`percent(-50, rate("5"), half_even)`:                                               -2,
		`percent(-1005, rate("19"), down)`:                                                 -190,
		`percent(50, rate("-5"), half_up)`:                                                 -3,
		`percent(10000, rate("9.975"), half_up)`:                                           998, // 997.5
		`percent(10000, rate("9.975"), half_even)`:                                         998,
		`percent(10000, rate("8.875"), down)`:                                              887,
		`percent(9223372036854775807, rate(100), half_up)`:                                 math.MaxInt64,
		`sum([]) + doc.lines[0].net`:                                                       1005,
		`sum(doc.lines.map(l, l.net))`:                                                     3064,
		`sum(doc.lines.filter(l, l.code == "A").map(l, l.net))`:                            3015,
		`sum(doc.lines.map(l, l.category == "VAT", percent(l.net, l.rate, half_up)))`:      573,
		`sum(doc.taxes.filter(t, t.category == "VAT").map(t, t.amount))`:                   573,
		`sum(doc.taxes.map(t, t.amount)) + sum(doc.lines.map(l, l.code == "none", l.net))`: 543,
	} {
		got, err := amountOf(t, expression, threeLines())
		require.NoError(t, err, expression)
		assert.Equal(t, want, got, expression)
	}
	for expression, message := range map[string]string{
		`percent(9223372036854775807, rate("100.000001"), down)`: "integer overflow",
		`percent(-9223372036854775807, rate(900000000), down)`:   "integer overflow",
		`sum([9223372036854775807, doc.lines[0].net])`:           "integer overflow",
		`sum(doc.lines.map(l, l.net * 9000000000000000))`:        "integer overflow",
	} {
		_, err := amountOf(t, expression, threeLines())
		assert.Contains(t, requireError(t, err, models.CodeDocumentInvalid).Message, message, expression)
	}
}

func TestArithmeticIsChecked(t *testing.T) {
	t.Parallel()
	const want = `want percent(amount, rate, mode), as in percent(line.net, rate("19"), half_up): the mode is half_up, half_even or down, without quotes`
	for expression, message := range map[string]string{
		`percent(doc.total, rate("19"))`:            want,
		`percent(doc.total, 19, half_up)`:           want,
		`percent(doc.total, rate("19"), "half_up")`: want,
		`percent(rate("19"), doc.total, half_up)`:   want,
		`percent(doc.total, rate("19"), half_down)`: "undeclared reference to 'half_down' (did you mean 'half_even'?); " +
			"the variables here are: doc; the rounding modes are half_up, half_even or down",
		`percent(doc.total, rate("nineteen"), down)`: "want a percentage in decimal digits",
		`sum(doc.lines)`:                "want the sum of a list of amounts, as in sum(doc.lines.map(l, l.net))",
		`sum(doc.lines.map(l, l.rate))`: "want the sum of a list of amounts",
		`sum(doc.total)`:                "want the sum of a list of amounts",
		`doc.total * 0.19`:              "floating point",
	} {
		_, err := posting.Compile(fmt.Appendf(nil,
			"ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, account: '1', amount: %q}]}]", expression))
		require.ErrorContains(t, err, message, expression)
	}
	_, err := posting.Compile([]byte("ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, account: " +
		"'1', each: doc.lines, as: down, amount: 1}]}]"))
	require.ErrorContains(t, err, `"down" has a meaning of its own in expressions`)
}

// A sum within a list macro costs a step an element, so that the cost limit holds.
func TestSumIsPartOfTheCost(t *testing.T) {
	t.Parallel()
	doc := invoice()
	for range 6000 {
		doc.Content.Lines = append(doc.Content.Lines, models.Line{Net: 1})
	}
	ones := "1"
	for range 1000 {
		ones += ",1"
	}
	_, err := amountOf(t, `doc.lines.all(l, sum([`+ones+`]) > 0) ? 1 : 2`, doc)
	assert.Contains(t, requireError(t, err, models.CodeDocumentInvalid).Message,
		"more than 6000000 steps for this document")
}

// nearest rounds a fraction as the mode says, in numbers of any size.
func nearest(exact *big.Rat, mode string) *big.Int {
	abs := new(big.Rat).Abs(exact)
	whole := new(big.Int).Quo(abs.Num(), abs.Denom())
	half := new(big.Rat).Sub(abs, new(big.Rat).SetInt(whole)).Cmp(big.NewRat(1, 2))
	if mode != "down" && (half > 0 || half == 0 && (mode == "half_up" || whole.Bit(0) == 1)) {
		whole.Add(whole, big.NewInt(1))
	}
	if exact.Sign() < 0 {
		whole.Neg(whole)
	}
	return whole
}

// percent is the exact product rounded by its mode, a negative amount gives the negative result, or
// the document fails.
func TestPercentIsExact(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"half_up", "half_even", "down"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			rules := compile(t, fmt.Sprintf(`
ruleset: percent
rules:
  - id: r
    when: true
    lines:
      - {id: a, side: debit, account: "1", each: doc.lines, amount: 'percent(line.net, line.rate, %[1]s)'}
      - {id: b, side: credit, account: "1", each: doc.lines, amount: 'percent(line.net, line.rate, %[1]s)'}
`, mode))
			rapid.Check(t, func(t *rapid.T) {
				amount := rapid.OneOf(extremes(), rapid.Int64Range(-2000, 2000)).Draw(t, "amount")
				text := big.NewRat(rapid.OneOf(rapid.Int64Range(-200_000_000, 200_000_000),
					rapid.Map(rapid.Int64Range(-40, 40), func(n int64) int64 { return n * 2_500_000 })).
					Draw(t, "millionths"), 1_000_000)
				rate := models.MustRate(text.FloatString(6))
				exact := new(big.Rat).Mul(text, new(big.Rat).SetFrac64(1, 100))
				want := nearest(exact.Mul(exact, new(big.Rat).SetInt64(amount)), mode)
				doc := &models.Document{
					Currency: "EUR", IssueDate: day,
					Content: models.Content{Lines: []models.Line{{Net: amount, Rate: rate}}},
				}
				impact, err := rules.Evaluate(doc, posting.NewAccounts("1"))
				if !want.IsInt64() || want.Int64() == math.MinInt64 {
					requireErrorT(t, err, models.CodeDocumentInvalid)
					return
				}
				if want.Sign() == 0 && amount != 0 {
					requireErrorT(t, err, models.CodeAmountNotRead) // nothing would be posted
					return
				}
				require.NoError(t, err)
				if want.Sign() == 0 {
					require.Empty(t, impact.Entries)
					return
				}
				require.Equal(t, new(big.Int).Abs(want).Int64(), impact.Entries[0].Amount)
				require.Equal(t, want.Sign() > 0, impact.Entries[0].Side == models.Debit)
			})
		})
	}
}

const discount = `
ruleset: discount
rules:
  - id: discount
    when: doc.type == "cash_discount"
    lines:
      - id: revenue
        side: debit
        amount: doc.amount
        split:
          - {account: "4400", share: 'sum(doc.lines.map(l, l.rate == rate("19"), l.net))'}
          - {account: "4300", share: 'sum(doc.lines.map(l, l.rate == rate("7"), l.net))'}
          - {account: "4100", share: 'sum(doc.lines.map(l, !(l.rate in [rate("19"), rate("7")]), l.net))'}
      - {id: receivable, side: credit, account: "1200", amount: doc.amount}
`

func TestSplitByComputedShares(t *testing.T) {
	t.Parallel()
	rules := compile(t, discount)
	chart := posting.NewAccounts(rules.Accounts()...)
	doc := &models.Document{
		Type: "cash_discount", Currency: "EUR", IssueDate: day,
		Content: models.Content{Amount: 100, Lines: []models.Line{
			{Net: 2000, Rate: models.MustRate("19")}, {Net: 1000, Rate: models.MustRate("7")},
		}},
	}
	impact, err := rules.Evaluate(doc, chart)
	require.NoError(t, err)
	assert.Equal(t, "revenue 0 4400 debit 67 EUR\nrevenue 0 4300 debit 33 EUR\nreceivable 0 1200 credit 100 EUR\n",
		entries(impact))

	for lines, message := range map[int64]string{
		-5000: "some of the shares are positive and some negative",
		-2000: "",
	} {
		doc.Content.Lines[0].Net = lines
		doc.Content.Lines[1].Net = 1000
		if lines == -2000 { // all negative: the same proportions
			doc.Content.Lines[1].Net = -1000
		}
		again, err := rules.Evaluate(doc, chart)
		if message == "" {
			require.NoError(t, err)
			assert.Equal(t, impact.Entries, again.Entries)
			continue
		}
		assert.Contains(t, requireError(t, err, models.CodeDocumentInvalid).Message, message)
	}
	doc.Content.Lines = nil
	_, err = rules.Evaluate(doc, chart)
	assert.Contains(t, requireError(t, err, models.CodeDocumentInvalid).Message, "all shares are zero")
	doc.Content.Lines = []models.Line{
		{Net: math.MaxInt64, Rate: models.MustRate("19")},
		{Net: 1, Rate: models.MustRate("7")},
	}
	_, err = rules.Evaluate(doc, chart)
	assert.Contains(t, requireError(t, err, models.CodeDocumentInvalid).Message, "integer overflow")
}

func TestComputedSharesLoseNothing(t *testing.T) {
	t.Parallel()
	rules := compile(t, discount)
	chart := posting.NewAccounts(rules.Accounts()...)
	rapid.Check(t, func(t *rapid.T) {
		doc := &models.Document{Type: "cash_discount", Currency: "EUR", IssueDate: day}
		doc.Content.Amount = amounts().Filter(func(n int64) bool { return n != math.MinInt64 && n != 0 }).Draw(t, "amount")
		for range rapid.IntRange(1, 6).Draw(t, "lines") {
			doc.Content.Lines = append(doc.Content.Lines, models.Line{
				Net:  rapid.Int64Range(1, 1e15).Draw(t, "net"),
				Rate: rapid.SampledFrom([]models.Rate{{}, models.MustRate("7"), models.MustRate("19")}).Draw(t, "rate"),
			})
		}
		impact, err := rules.Evaluate(doc, chart)
		require.NoError(t, err)
		checkImpact(t, rules, chart, doc)
		var sum int64
		for _, e := range impact.Entries {
			if e.RuleLineID == "revenue" {
				sum += e.Amount
			}
		}
		require.Equal(t, new(big.Int).Abs(big.NewInt(doc.Content.Amount)).Int64(), sum)
	})
}

// The rule that docs/rules.md has for reverse charge posts the longest document that an import
// takes.
func TestSumsOverTheLongestDocument(t *testing.T) {
	t.Parallel()
	doc := &models.Document{Type: "bill", Currency: "EUR", IssueDate: day}
	for range 100_000 {
		doc.Content.Lines = append(doc.Content.Lines,
			models.Line{Kind: "item", Net: 5, Rate: models.MustRate("19"), Category: "VAT"})
	}
	const sum = `percent(sum(doc.lines.map(l, l.category == "VAT" && l.rate == rate(19), l.net)), rate(19), half_up)`
	got, err := amountOf(t, sum+" + "+sum, doc)
	require.NoError(t, err)
	assert.EqualValues(t, 2*95_000, got)
}
