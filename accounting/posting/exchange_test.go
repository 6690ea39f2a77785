package posting_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

// conversion posts what was paid and, in its own currency, what arrived; a second amount in the
// document's currency stands on both sides and may be off.
const conversion = `
ruleset: conversion
rules:
  - id: paid
    when: true
    lines:
      - {id: bank, side: debit, account: "1000", amount: doc.settled.amount, currency: doc.settled.currency}
      - {id: transit, side: credit, account: "1360", amount: doc.amount}
      - {id: fee, side: debit, account: "6855", amount: doc.fee}
      - {id: paid-fee, side: credit, account: "1360", amount: doc.prepaid}
`

const (
	withRounding = "    rounding: {account: '6969', max_minor: 2}\n"
	withExchange = "    exchange: {account: '6960'}\n"
)

func payout(amount, arrived int64, currency string) *models.Document {
	return &models.Document{
		Type: models.DocumentPayout, Currency: "USD", IssueDate: day,
		Content: models.Content{Amount: amount, Settled: &models.Money{Amount: arrived, Currency: currency}},
	}
}

func TestExchange(t *testing.T) {
	t.Parallel()
	const posted = "bank 0 1000 debit 9210 EUR\ntransit 0 1360 credit 10000 USD\n"
	tests := []struct {
		name  string
		rules string
		doc   *models.Document
		want  string // entries, or the error's code
	}{
		{
			"takes each currency's difference", withExchange, payout(10000, 9210, "EUR"),
			posted + "exchange 0 6960 credit 9210 EUR\nexchange 0 6960 debit 10000 USD\n",
		},
		{"only if the rule says so", "", payout(10000, 9210, "EUR"), "UNBALANCED"},
		{"not for rounding's sake", withRounding, payout(10000, 9210, "EUR"), "UNBALANCED"},
		{
			"before rounding", withRounding + withExchange, payout(2, 1, "EUR"),
			"bank 0 1000 debit 1 EUR\ntransit 0 1360 credit 2 USD\nexchange 0 6960 credit 1 EUR\nexchange 0 6960 debit 2 USD\n",
		},
		{"takes no difference of one currency", withExchange, payout(10000, 10001, "USD"), "UNBALANCED"},
		{
			"leaves rounding to one currency", withRounding + withExchange, payout(10000, 10001, "USD"),
			"bank 0 1000 debit 10001 USD\ntransit 0 1360 credit 10000 USD\nrounding 0 6969 credit 1 USD\n",
		},
		{"leaves the limit to one currency", withRounding + withExchange, payout(10000, 10003, "USD"), "UNBALANCED"},
		{"takes no value from nowhere", withExchange, payout(-10000, 9210, "EUR"), "AMOUNT_SIGN"},
		{
			"nothing to take", withExchange, payout(10000, 10000, "USD"),
			"bank 0 1000 debit 10000 USD\ntransit 0 1360 credit 10000 USD\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rules := compile(t, conversion+test.rules)
			impact, err := rules.Evaluate(test.doc, posting.NewAccounts(rules.Accounts()...))
			if code := models.ErrorCode(test.want); code == models.CodeUnbalanced || code == models.CodeAmountSign {
				_ = requireError(t, err, code)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, entries(impact))
		})
	}
}

// One currency converts nothing: with two of them and one in balance, the other is rounded or
// refused as if it were alone.
func TestExchangeDoesNotHideADifferenceInOneCurrency(t *testing.T) {
	t.Parallel()
	rules := compile(t, `
ruleset: two
rules:
  - id: two
    when: true
    lines:
      - {id: a, side: debit, account: "1", amount: doc.total, currency: '"EUR"'}
      - {id: b, side: credit, account: "1", amount: doc.total, currency: '"EUR"'}
      - {id: c, side: debit, account: "1", amount: doc.amount}
      - {id: d, side: credit, account: "1", amount: doc.payable}
`+withRounding+withExchange)
	chart := posting.NewAccounts(rules.Accounts()...)
	doc := payout(100, 0, "USD")
	doc.Content.Total = 500
	for payable, want := range map[int64]string{99: "credit", 101: "debit"} {
		doc.Content.Payable = payable
		impact, err := rules.Evaluate(doc, chart)
		require.NoError(t, err)
		assert.Contains(t, entries(impact), "rounding 0 6969 "+want+" 1 USD\n")
	}
	doc.Content.Payable = 50
	_, err := rules.Evaluate(doc, chart)
	assert.Contains(t, requireError(t, err, models.CodeUnbalanced).Message, "50 minor units of USD (0.50 USD)")
}

func TestUnbalancedNamesTheExchange(t *testing.T) {
	t.Parallel()
	rules := compile(t, conversion)
	_, err := rules.Evaluate(payout(10000, 9210, "JPY"), posting.NewAccounts(rules.Accounts()...))
	e := requireError(t, err, models.CodeUnbalanced)
	assert.Equal(t, "debits minus credits is 9210 minor units of JPY (9210 JPY) and the rule has no rounding limit; "+
		"correct the document or the rule: one that converts names an account under exchange", e.Message)
}

// Each currency's difference is rounded, unless its account cannot take it.
func TestRoundingInTwoCurrencies(t *testing.T) {
	t.Parallel()
	rules := compile(t, conversion+withRounding)
	doc := payout(-1, 1, "EUR")
	doc.Type = "conversion" // a type that has no convention of signs
	impact, err := rules.Evaluate(doc, posting.NewAccounts(rules.Accounts()...))
	require.NoError(t, err)
	assert.Contains(t, entries(impact), "rounding 0 6969 credit 1 EUR\nrounding 0 6969 credit 1 USD\n")
	_, err = rules.Evaluate(doc, posting.NewAccounts("1000", "1360"))
	_ = requireError(t, err, models.CodeUnknownAccount)
}

func TestLikeTakesTheDate(t *testing.T) {
	t.Parallel()
	rules := compile(t, `
ruleset: like
rules:
  - {id: a, when: false, date: doc.value_date, lines: [{id: x, side: debit, account: "1", amount: 1}, {id: y, side: credit, account: "1", amount: 1}]}
  - {id: like, when: doc.amount == 1, like: a}
  - {id: own, when: doc.amount == 2, date: doc.issue_date, like: a}
`)
	value := models.NewDate(2031, 1, 2)
	for amount, want := range map[int64]models.Date{1: value, 2: day} {
		doc := payout(amount, 0, "USD")
		doc.ValueDate = &value
		impact, err := rules.Evaluate(doc, posting.NewAccounts("1"))
		require.NoError(t, err)
		assert.Equal(t, want, impact.PostingDate)
	}
}

func TestLikeTakesTheExchange(t *testing.T) {
	t.Parallel()
	rules := compile(t, `
ruleset: like
rules:
  - id: payout
    when: doc.amount > 0
    lines:
      - {id: bank, side: debit, account: "1000", amount: doc.settled.amount, currency: doc.settled.currency}
      - {id: transit, side: credit, account: "1360", amount: doc.amount}
      - {id: fee, side: debit, account: "1000", amount: doc.fee, if: "false"}
    exchange: {account: "6960"}
  - {id: other, when: doc.amount < 0 && doc.fee == 0, like: payout, negate: true}
  - {id: own, when: doc.amount < 0 && doc.fee != 0, like: payout, exchange: {account: "6961"}}
`)
	assert.Equal(t, []string{"1000", "1360", "6960", "6961"}, rules.Accounts())
	doc := payout(-10000, -9210, "EUR")
	doc.Type = "conversion" // a type that has no convention of signs
	impact, err := rules.Evaluate(doc, posting.NewAccounts(rules.Accounts()...))
	require.NoError(t, err)
	assert.Equal(t, "bank 0 1000 debit 9210 EUR\ntransit 0 1360 credit 10000 USD\nexchange 0 6960 credit 9210 EUR\nexchange 0 6960 debit 10000 USD\n", entries(impact))
	doc.Content.Fee = 1
	impact, err = rules.Evaluate(doc, posting.NewAccounts(rules.Accounts()...))
	require.NoError(t, err)
	assert.Contains(t, entries(impact), "exchange 0 6961 debit 9210 EUR\n")
}

// With rounding and exchange together, entries of at most one of the two are made, and the balance
// holds all the same.
func TestRoundingAndExchangeNeverMeet(t *testing.T) {
	t.Parallel()
	rules := compile(t, conversion+withRounding+withExchange)
	chart := posting.NewAccounts(rules.Accounts()...)
	rapid.Check(t, func(t *rapid.T) {
		doc := payout(amounts().Draw(t, "amount"), amounts().Draw(t, "arrived"),
			rapid.SampledFrom([]string{"EUR", "USD"}).Draw(t, "currency"))
		doc.Content.Fee = amounts().Draw(t, "fee")
		doc.Content.Prepaid = doc.Content.Fee
		if rapid.Bool().Draw(t, "near") {
			doc.Content.Settled.Amount = doc.Content.Amount/2 + doc.Content.Amount/2 + rapid.Int64Range(-3, 3).Draw(t, "off")
		}
		checkImpact(t, rules, chart, doc)
		impact, err := rules.Evaluate(doc, chart)
		if err != nil {
			return
		}
		currencies, kinds := map[string]bool{}, map[string]bool{}
		for _, e := range impact.Entries {
			currencies[e.Currency] = true
			if e.RuleLineID == posting.RoundingLineID || e.RuleLineID == posting.ExchangeLineID {
				kinds[e.RuleLineID] = true
			}
			if e.RuleLineID == posting.RoundingLineID {
				require.LessOrEqual(t, e.Amount, int64(2))
			}
		}
		require.LessOrEqual(t, len(kinds), 1)
		if kinds[posting.ExchangeLineID] {
			require.Len(t, currencies, 2)
		}
	})
}
