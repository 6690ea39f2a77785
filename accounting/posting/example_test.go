package posting_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

// sales posts invoices: what the customer owes, against the revenue of each line and each tax.
const sales = `
ruleset: sales
accounts: {receivable: "1200", revenue: "4400", output-tax: "3806"}
rules:
  - id: invoice
    when: doc.type == "invoice" && doc.direction == "out"
    lines:
      - {id: customer, side: debit, account: receivable, amount: doc.payable}
      - {id: revenue, side: credit, account: revenue, each: doc.lines, amount: line.net}
      - {id: tax, side: credit, account: output-tax, each: doc.taxes, amount: tax.amount}
`

// A rule set is compiled once and is then safe for concurrent use.
func ExampleCompile() {
	rules, err := posting.Compile([]byte(sales))
	if err != nil {
		panic(err)
	}
	fmt.Println(rules.Name(), rules.Accounts())
	// Output: sales [1200 3806 4400]
}

// All problems of a source are reported together, each with its place.
func ExampleCompile_problems() {
	_, err := posting.Compile([]byte(`
ruleset: sales
accounts: {receivable: "1200"}
rules:
  - id: invoice
    when: doc.typ == "invoice"
    lines:
      - {id: customer, side: debit, account: receivable, amount: doc.payable}
`))
	if wrong, ok := errors.AsType[*posting.CompileError](err); ok {
		for _, p := range wrong.Problems {
			fmt.Println(p.Line, p.Rule, p.Message != "")
		}
	}
	// Output: 6 invoice true
}

// Check says before a document is stored whether its money would be posted.
func ExampleCheck() {
	rules, err := posting.Compile([]byte(sales))
	if err != nil {
		panic(err)
	}
	err = posting.Check(&models.Document{
		Type: models.DocumentInvoice, Direction: models.DirectionOut, Currency: "EUR",
		IssueDate: models.NewDate(2025, time.March, 31),
		Content:   models.Content{Total: 11900},
	}, rules)
	if failed, ok := errors.AsType[*posting.Error](err); ok {
		fmt.Println(failed.Code)
	}
	// Output: AMOUNT_NOT_READ
}

// Evaluate says how a document is booked. It reads nothing but its arguments: the same document and
// rules give the same entries.
func ExampleRuleSet_Evaluate() {
	rules, err := posting.Compile([]byte(sales))
	if err != nil {
		panic(err)
	}
	impact, err := rules.Evaluate(&models.Document{
		OrgID: "acme", ID: "inv-1", Type: models.DocumentInvoice, Direction: models.DirectionOut, Currency: "EUR",
		IssueDate: models.NewDate(2026, 3, 14),
		Content: models.Content{
			Lines:   []models.Line{{Kind: "item", Net: 10000, Rate: models.MustRate("19")}},
			Taxes:   []models.Tax{{Category: "VAT", Rate: models.MustRate("19"), Base: 10000, Amount: 1900}},
			Total:   11900,
			Payable: 11900,
		},
	}, posting.NewAccounts("1200", "3806", "4400"))
	if err != nil {
		panic(err)
	}
	fmt.Println(impact.RuleID, impact.PostingDate)
	for _, e := range impact.Entries {
		fmt.Println(e.Account, e.Side, models.FormatMinor(e.Amount, e.Currency))
	}
	// Output:
	// invoice 2026-03-14
	// 1200 debit 119.00 EUR
	// 4400 credit 100.00 EUR
	// 3806 credit 19.00 EUR
}

// Why a document cannot be booked is an *Error with a stable code.
func ExampleRuleSet_Evaluate_unbalanced() {
	rules, err := posting.Compile([]byte(sales))
	if err != nil {
		panic(err)
	}
	_, err = rules.Evaluate(&models.Document{
		Type: models.DocumentInvoice, Direction: models.DirectionOut, Currency: "EUR",
		IssueDate: models.NewDate(2026, 3, 14),
		Content:   models.Content{Lines: []models.Line{{Kind: "item", Net: 10000}}, Payable: 11900},
	}, posting.NewAccounts("1200", "3806", "4400"))
	if wrong, ok := errors.AsType[*posting.Error](err); ok {
		fmt.Println(wrong.Code, wrong.Rule)
	}
	// Output: UNBALANCED invoice
}

// A chart says which accounts there are, and which currencies each takes.
func ExampleNewAccounts() {
	chart := posting.NewAccounts("1200", "4400")
	fmt.Println(chart.HasAccount("1200"), chart.HasAccount("9999"), chart.Allows("1200", "USD"))
	// Output: true false true
}

// The chart of an organization is read from its accounts.
func ExampleChartOf() {
	chart := posting.ChartOf([]models.Account{
		{OrgID: "acme", Code: "1200"},
		{OrgID: "acme", Code: "1210", Currencies: models.Currencies{"USD"}},
	})
	fmt.Println(chart.Allows("1200", "EUR"), chart.Allows("1210", "EUR"), chart.Allows("1210", "USD"))
	// Output: true false true
}

// Test cases of a rule set are files; `daybook rules test` runs them, and so may a program.
func ExampleRunCases() {
	rules, err := posting.Compile([]byte(sales))
	if err != nil {
		panic(err)
	}
	file, err := posting.ParseCases([]byte(`
accounts: {"1200": [], "3806": [], "4400": []}
cases:
  - title: An invoice without tax
    document: {type: invoice, direction: out, currency: EUR, issue_date: 2026-03-14, content: {lines: [{kind: item, net: 500}], payable: 500}}
    expect:
      entries:
        - {account: "1200", debit: 500}
        - {account: "4400", credit: 500}
  - title: A payment
    document: {type: payment, direction: in, currency: EUR, issue_date: 2026-03-14, content: {amount: 500}}
    expect: {error: NO_MATCHING_RULE}
`))
	if err != nil {
		panic(err)
	}
	for _, r := range posting.RunCases(rules, file.Accounts, file.Cases) {
		fmt.Println(r.Title, r.Passed)
	}
	// Output:
	// An invoice without tax true
	// A payment true
}

// A file of cases that cannot be read says where.
func ExampleParseCases() {
	_, err := posting.ParseCases([]byte("cases: []\n"))
	fmt.Println(err != nil)
	// Output: true
}
