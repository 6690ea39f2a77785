package posting_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

func quebec() *models.Document {
	doc := invoice()
	doc.Content.Lines = []models.Line{
		{Net: 100, Rate: models.MustRate("9.975")},
		{Net: 20, Rate: models.MustRate("8.875")},
		{Net: 3},
	}
	doc.Content.Taxes = []models.Tax{{Rate: models.MustRate("9.975"), Base: 40}, {Rate: models.MustRate("19")}}
	return doc
}

func TestRatesCompareExactly(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]int64{
		`doc.lines.filter(l, l.rate == rate("9.975"))[0].net`:                                        100,
		`doc.lines.filter(l, l.rate == rate("8.8750"))[0].net`:                                       20,
		`doc.lines.filter(l, l.rate in [rate("8.875"), rate("7")])[0].net`:                           20,
		`doc.lines.filter(l, l.rate == rate(0))[0].net`:                                              3,
		`doc.lines.filter(l, !has(l.rate))[0].net`:                                                   3,
		`doc.taxes.filter(t, t.rate > rate("9.974999") && t.rate < rate(10))[0].base`:                40,
		`doc.taxes.exists(t, t.rate >= rate(19)) && !doc.taxes.exists(t, t.rate > rate(19)) ? 1 : 2`: 1,
		`doc.lines[0].rate == doc.taxes[0].rate && doc.lines[0].rate != doc.lines[1].rate ? 1 : 2`:   1,
		`doc.taxes[1].rate_bp`: 1900,
	} {
		got, err := amountOf(t, expression, quebec())
		require.NoError(t, err, expression)
		assert.Equal(t, want, got, expression)
	}
	_, err := amountOf(t, `doc.lines[0].rate_bp == 998 ? 1 : 2`, quebec())
	e := requireError(t, err, models.CodeDocumentInvalid)
	assert.Contains(t, e.Message,
		`the rate 9.975 % has no whole number of basis points: compare rate with rate("9.975") instead of rate_bp`)
}

func TestRatesAreChecked(t *testing.T) {
	t.Parallel()
	for expression, message := range map[string]string{
		`doc.lines[0].rate == 19 ? 1 : 2`:            `a rate is compared with rate("9.975")`,
		`doc.lines[0].rate == "9.975" ? 1 : 2`:       `a rate is compared with rate("9.975")`,
		`doc.lines[0].rate < 19 ? 1 : 2`:             `a rate is compared with rate("9.975")`,
		`doc.lines[0].rate in ["19"] ? 1 : 2`:        `a rate is compared with rate("9.975")`,
		`doc.lines[0].rate`:                          "the expression gives a rate; want an integer (minor units)",
		`doc.lines[0].rate == rate("19%") ? 1 : 2`:   `rate "19%": want a percentage in decimal digits`,
		`doc.lines[0].rate == rate("9,975") ? 1 : 2`: `rate "9,975": want a percentage in decimal digits`,
		`doc.lines[0].rate == rate(9.975) ? 1 : 2`:   `rate("9.975")`,
	} {
		_, err := posting.Compile(fmt.Appendf(nil,
			"ruleset: x\nrules: [{id: r, when: true, lines: [{id: a, side: debit, account: '1', amount: %q}]}]", expression))
		require.ErrorContains(t, err, message, expression)
	}
}

func TestMapNamesTheRateThatNoRowHas(t *testing.T) {
	t.Parallel()
	rules := compile(t, `
ruleset: rates
maps: {revenue: [{when: 'line.rate == rate("19")', account: "4400"}]}
rules: [{id: r, when: true, lines: [{id: a, side: debit, map: revenue, each: doc.lines, amount: line.net}]}]
`)
	_, err := rules.Evaluate(quebec(), posting.NewAccounts("4400"))
	assert.Contains(t, requireError(t, err, models.CodeNoMatchingRule).Message, "rate=9.975")
}

func TestCasesStateRates(t *testing.T) {
	t.Parallel()
	file := parseCases(t, `
cases:
  - title: Rates
    document:
      currency: CAD
      issue_date: 2025-03-31
      content: {lines: [{net: 100, rate: 9.975}, {net: 20, rate: "8.875"}, {net: 3, rate: 19}, {net: 4, rate_bp: 700}]}
    expect: {entries: []}
`)
	var got []string
	for _, l := range file.Cases[0].Document.Content.Lines {
		got = append(got, l.Rate.String())
	}
	assert.Equal(t, []string{"9.975", "8.875", "19", "7"}, got)
	_, err := posting.ParseCases([]byte(`cases: [{title: x, document: {content: {lines: [{net: 1.5, rate: 1e1}]}}, expect: {entries: []}}]`))
	require.ErrorContains(t, err, "1.5 is not a whole number")
	require.ErrorContains(t, err, "1e1 is not a whole number")
	_, err = posting.ParseCases([]byte(`cases: [{title: x, document: {content: {lines: [{rate: 1, rate_bp: 100}]}}, expect: {entries: []}}]`))
	require.ErrorContains(t, err, "states both rate and rate_bp")
}
