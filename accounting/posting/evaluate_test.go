package posting_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

var day = models.NewDate(2025, time.March, 31)

// matrix compiles the rule set that most tests use, and a chart that has all its accounts.
func matrix(tb testing.TB) (*posting.RuleSet, posting.Accounts) {
	tb.Helper()
	source, err := os.ReadFile("testdata/matrix.yaml")
	require.NoError(tb, err)
	rules, err := posting.Compile(source)
	require.NoError(tb, err)
	return rules, posting.NewAccounts(rules.Accounts()...)
}

// invoice is 100.00 + 50.00 at 19 % and 10.00 at 7 %, of which 20.00 were paid in advance.
func invoice() *models.Document {
	return &models.Document{
		OrgID: "acme", ID: "inv-1", Type: models.DocumentInvoice, Direction: models.DirectionOut, Currency: "EUR",
		IssueDate: day,
		Content: models.Content{
			Lines: []models.Line{
				{Kind: "item", Net: 10000, Rate: models.MustRate("19")},
				{Kind: "shipping", Net: 5000, Rate: models.MustRate("19")},
				{Kind: "item", Net: 1000, Rate: models.MustRate("7")},
			},
			Taxes: []models.Tax{
				{Category: "VAT", Rate: models.MustRate("19"), Amount: 2850},
				{Category: "VAT", Rate: models.MustRate("7"), Amount: 70},
			},
			Total:   18920,
			Prepaid: 2000,
			Payable: 16920,
		},
	}
}

// entries prints an impact's entries one a line: rule line, element, account, side, amount,
// currency.
func entries(impact *posting.Impact) string {
	var b strings.Builder
	for _, e := range impact.Entries {
		fmt.Fprintf(&b, "%s %d %s %s %d %s", e.RuleLineID, e.DocumentLine, e.Account, e.Side, e.Amount, e.Currency)
		if len(e.Dimensions) > 0 {
			fmt.Fprintf(&b, " [%s]", e.Dimensions)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestEvaluateSale(t *testing.T) {
	t.Parallel()
	rules, chart := matrix(t)
	impact, err := rules.Evaluate(invoice(), chart)
	require.NoError(t, err)
	assert.Equal(t, "sale", impact.RuleID)
	assert.Equal(t, day, impact.DocumentDate)
	assert.Equal(t, day, impact.PostingDate)
	assert.Equal(t, `ar 0 1200 debit 16920 EUR
prep 0 3250 debit 2000 EUR
rev 1 4400 credit 10000 EUR
rev 2 4910 credit 5000 EUR
rev 3 4300 credit 1000 EUR
vat 1 3806 credit 2850 EUR
vat 2 3801 credit 70 EUR
`, entries(impact))
}

func TestEvaluateCreditNoteMirrorsSale(t *testing.T) {
	t.Parallel()
	rules, chart := matrix(t)
	doc := invoice()
	sale, err := rules.Evaluate(doc, chart)
	require.NoError(t, err)
	doc.Type = models.DocumentCreditNote
	note, err := rules.Evaluate(doc, chart)
	require.NoError(t, err)
	assert.Equal(t, "credit-note", note.RuleID)
	for i := range note.Entries {
		note.Entries[i].Side = note.Entries[i].Side.Opposite()
	}
	assert.Equal(t, sale.Entries, note.Entries)
}

func TestEvaluateRounding(t *testing.T) {
	t.Parallel()
	rules, chart := matrix(t)
	for difference, want := range map[int64]string{
		1: "rounding 0 6969 credit 1 EUR\n", 2: "rounding 0 6969 credit 2 EUR\n", -2: "rounding 0 6969 debit 2 EUR\n",
	} {
		doc := invoice()
		doc.Content.Payable += difference
		impact, err := rules.Evaluate(doc, chart)
		require.NoError(t, err)
		assert.True(t, strings.HasSuffix(entries(impact), want), "difference %d: %s", difference, entries(impact))
	}
	for _, difference := range []int64{3, -3} {
		doc := invoice()
		doc.Content.Payable += difference
		_, err := rules.Evaluate(doc, chart)
		e := requireError(t, err, models.CodeUnbalanced)
		assert.Equal(t, fmt.Sprintf("debits minus credits is %d minor units of EUR (%s) and the rounding limit is 2 "+
			"(0.02 EUR); correct the document or the rule",
			difference, models.FormatMinor(difference, "EUR")), e.Message)
		assert.Equal(t, "sale", e.Rule)
	}
}

func TestEvaluatePayoutInAnotherCurrency(t *testing.T) {
	t.Parallel()
	rules, chart := matrix(t)
	value := models.NewDate(2025, time.April, 2)
	doc := &models.Document{
		Type: models.DocumentPayout, Currency: "USD", IssueDate: day, ValueDate: &value,
		Content: models.Content{Amount: 10000, Fee: 100, Settled: &models.Money{Amount: 9210, Currency: "EUR"}},
	}
	impact, err := rules.Evaluate(doc, chart)
	// The fee is debited and the clearing account credited with amount and fee, so each currency
	// balances.
	require.NoError(t, err)
	assert.Equal(t, value, impact.PostingDate)
	assert.Equal(t, `bank 0 1000 debit 9210 EUR
fee 0 6855 debit 100 USD
psp 0 1360 credit 10100 USD
fx1 0 6960 debit 10000 USD
fx2 0 6960 credit 9210 EUR
`, entries(impact))

	doc.Content.Settled, doc.ValueDate = nil, nil // nothing was converted: the amount itself arrived, on the issue date
	impact, err = rules.Evaluate(doc, chart)
	require.NoError(t, err)
	assert.Equal(t, day, impact.PostingDate)
	assert.Equal(t, "bank 0 1000 debit 10000 USD\nfee 0 6855 debit 100 USD\npsp 0 1360 credit 10100 USD\n",
		entries(impact))
}

func TestEvaluateNegativeAmountChangesSide(t *testing.T) {
	t.Parallel()
	rules, chart := matrix(t)
	doc := invoice()
	doc.Content.Lines = append(doc.Content.Lines, models.Line{Kind: "discount", Net: -1000, Rate: models.MustRate("19")})
	doc.Content.Payable -= 1000
	doc.Content.Total -= 1000
	impact, err := rules.Evaluate(doc, chart)
	require.NoError(t, err)
	assert.Contains(t, entries(impact), "rev 4 4400 debit 1000 EUR\n")
}

func TestEvaluateZeroPostsNothing(t *testing.T) {
	t.Parallel()
	rules, chart := matrix(t)
	doc := invoice()
	// A rate that no map row knows does not matter where there is nothing to post.
	doc.Content = models.Content{
		Lines: []models.Line{{Rate: models.MustRate("16")}},
		Taxes: []models.Tax{{Rate: models.MustRate("16")}},
	}
	impact, err := rules.Evaluate(doc, chart)
	require.NoError(t, err)
	assert.Empty(t, impact.Entries)
	assert.Equal(t, "sale", impact.RuleID)
}

func TestEvaluateErrors(t *testing.T) {
	t.Parallel()
	rules, chart := matrix(t)
	tests := []struct {
		name    string
		change  func(*models.Document)
		chart   posting.Chart
		code    models.ErrorCode
		rule    string
		line    string
		message string
	}{
		{
			"no rule", func(d *models.Document) { d.Type = "order" }, chart, models.CodeNoMatchingRule, "", "",
			`type="order"`,
		},
		{
			"no map row", func(d *models.Document) { d.Content.Taxes[0].Rate = models.MustRate("16") }, chart,
			models.CodeNoMatchingRule, "sale", "vat",
			`map "vat_out" has no row for tax 1 of the document that matches rate_bp=1600`,
		},
		{
			"no account", func(*models.Document) {}, posting.NewAccounts("1200"), models.CodeUnknownAccount, "sale", "prep",
			`no account "3250"`,
		},
		{"no chart", func(*models.Document) {}, nil, models.CodeUnknownAccount, "sale", "ar", `no account "1200"`},
		{
			"no date", func(d *models.Document) { d.IssueDate = models.Date{} }, chart, models.CodeDocumentInvalid, "sale", "",
			"issue_date",
		},
		{
			"a date before all", func(d *models.Document) { d.IssueDate = models.NewDate(1, 1, 1) }, chart,
			models.CodeDocumentInvalid, "sale", "", "issue_date: date 0001-01-01: want one from 1900-01-01",
		},
		{
			"a value date after all", func(d *models.Document) { d.ValueDate = new(models.NewDate(3000, 1, 1)) }, chart,
			models.CodeDocumentInvalid, "sale", "", "value_date: date 3000-01-01",
		},
		{
			"no currency", func(d *models.Document) { d.Currency = "" }, chart, models.CodeDocumentInvalid, "sale", "ar",
			"ISO 4217",
		},
		{
			"no such currency", func(d *models.Document) { d.Currency = "EUX" }, chart, models.CodeDocumentInvalid, "sale",
			"ar", `"EUX" is no ISO 4217 code`,
		},
		{
			"withdrawn currency", func(d *models.Document) { d.Currency = "HRK" }, chart, models.CodeDocumentInvalid, "sale",
			"ar", "HRK was withdrawn from ISO 4217 in 2023-01",
		},
		{
			"gold", func(d *models.Document) { d.Currency = "XAU" }, chart, models.CodeDocumentInvalid, "sale", "ar",
			"XAU stands for gold and has no minor unit",
		},
		{
			"refused currency", func(*models.Document) {}, euroless(chart), models.CodeUnknownAccount, "sale", "prep",
			`the account "3250" does not take EUR`,
		},
		{"least int64", func(d *models.Document) {
			d.Content = models.Content{Payable: math.MinInt64}
		}, chart, models.CodeDocumentInvalid, "sale", "ar", "cannot be turned"},
		{
			"sum overflow", func(d *models.Document) { d.Content.Payable = math.MaxInt64 }, chart, models.CodeDocumentInvalid,
			"sale", "prep", "64 bits",
		},
		{"amount overflow", func(d *models.Document) {
			d.Type, d.Direction = models.DocumentPayment, models.DirectionIn
			d.Content = models.Content{Amount: math.MaxInt64, Fee: -1}
		}, chart, models.CodeDocumentInvalid, "payment", "psp", "overflow"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			doc := invoice()
			test.change(doc)
			impact, err := rules.Evaluate(doc, test.chart)
			assert.Nil(t, impact)
			e := requireError(t, err, test.code)
			assert.Equal(t, test.rule, e.Rule)
			assert.Equal(t, test.line, e.Line)
			assert.Contains(t, e.Message, test.message)
			if test.rule != "" {
				assert.NotZero(t, e.Place)
			}
		})
	}
	_, err := rules.Evaluate(nil, chart)
	_ = requireError(t, err, models.CodeDocumentInvalid)
}

func TestChartOf(t *testing.T) {
	t.Parallel()
	chart := posting.ChartOf([]models.Account{
		{Code: "1000", Currencies: models.Currencies{"EUR", "USD"}},
		{Code: "1200"},
	})
	assert.True(t, chart.HasAccount("1000"))
	assert.False(t, chart.HasAccount("1001"))
	assert.True(t, chart.Allows("1000", "USD"))
	assert.False(t, chart.Allows("1000", "CHF"))
	assert.True(t, chart.Allows("1200", "CHF"), "none listed: all")
	assert.True(t, posting.NewAccounts("1").Allows("1", "CHF"))
}

func TestEvaluateAmbiguous(t *testing.T) {
	t.Parallel()
	rules := compile(t, `
ruleset: two
rules:
  - {id: first, when: 'doc.payable > 0', lines: [{id: a, side: debit, account: "1", amount: doc.payable}]}
  - {id: second, when: 'doc.payable > 10', lines: [{id: a, side: debit, account: "1", amount: doc.payable}]}
`)
	_, err := rules.Evaluate(invoice(), posting.NewAccounts("1"))
	e := requireError(t, err, models.CodeAmbiguousRule)
	assert.Equal(t, "first", e.Rule)
	assert.Contains(t, e.Message, `"second" at 5:5`)
	assert.EqualError(t, err,
		`rule "first" at 4:5: the rule "second" at 5:5 matches the document as well; narrow the condition of one of them`)
}

// euroless is the chart with an account that takes no euros.
func euroless(chart posting.Accounts) posting.Accounts {
	chart = maps.Clone(chart)
	chart["3250"] = []string{"CHF", "USD"}
	return chart
}

func requireError(tb testing.TB, err error, code models.ErrorCode) *posting.Error {
	tb.Helper()
	var e *posting.Error
	require.ErrorAs(tb, err, &e)
	require.Equal(tb, code, e.Code, "%v", err)
	return e
}

func compile(tb testing.TB, source string) *posting.RuleSet {
	tb.Helper()
	rules, err := posting.Compile([]byte(source))
	require.NoError(tb, err)
	return rules
}

// A document of the time in which its currency was in use is posted, however much later.
func TestWithdrawnCurrencyIsPostedByDate(t *testing.T) {
	t.Parallel()
	rules, chart := matrix(t)
	doc := invoice()
	doc.Currency, doc.IssueDate = "HRK", models.NewDate(2022, time.December, 31)
	impact, err := rules.Evaluate(doc, chart)
	require.NoError(t, err)
	require.Equal(t, "HRK", impact.Entries[0].Currency)
	doc.Content.Payable += 1000
	_, err = rules.Evaluate(doc, chart)
	assert.Contains(t, requireError(t, err, models.CodeUnbalanced).Message, "(10.00 HRK)")
}

// What a map looked for is shown as the document states it, never as Go does.
func TestMapRowThatIsMissingShowsTheDocument(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string]string{
		`doc.attributes["text"] == "x"`:          `matches attributes={"text":"CARD"}; add one`,
		`doc.lines.exists(l, l.kind == "x")`:     `matches lines=[{"kind":"item","net":100}`,
		`doc.taxes.exists(l, l.amount > 1)`:      `matches taxes=nothing; add one`,
		`doc.settled.currency == "USD"`:          `matches settled={"amount":0,"currency":"EUR"}; add one`,
		`doc.lines.exists(l, l.net > 100000)`:    `…; add one`,
		`doc.issue_date > date("2026-03-01")`:    `matches issue_date=2026-02-01; add one`,
		`doc.counterparty == "a" && doc.fee > 1`: `matches counterparty="", fee=0; add one`,
	} {
		set, err := posting.Compile([]byte("ruleset: r\nmaps: {m: [{when: '" + condition + "', account: \"1\"}]}\n" +
			"rules: [{id: a, when: 'true', lines: [{id: l, side: debit, map: m, amount: doc.payable}]}]\n"))
		require.NoError(t, err, condition)
		d := models.Document{
			OrgID: "o", ID: "d", Type: "invoice", Direction: "out", Currency: "EUR",
			IssueDate: models.NewDate(2026, 2, 1),
		}
		d.Content.Payable, d.Content.Attributes = 100, map[string]string{"text": "CARD"}
		for range 20 {
			d.Content.Lines = append(d.Content.Lines, models.Line{Kind: "item", Net: 100})
		}
		_, err = set.Evaluate(&d, posting.NewAccounts("1"))
		require.Error(t, err, condition)
		assert.Contains(t, err.Error(), want)
	}
}
