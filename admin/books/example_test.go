package books_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

const chart = `code,name,type,currencies
1200,Receivables,asset,EUR
4400,Sales 19 %,income,
3806,VAT 19 %,liability,
`

const rules = `ruleset: shop
rules:
  - id: sale
    when: doc.type == "invoice" && doc.direction == "out"
    lines:
      - {id: customer, side: debit, account: "1200", amount: doc.payable}
      - {id: revenue, side: credit, account: "4400", each: doc.lines, amount: line.net}
      - {id: tax, side: credit, account: "3806", each: doc.taxes, amount: tax.amount}
`

// opened is a database whose organization acme has a chart and rules.
func opened() *pgtest.Example {
	e := pgtest.NewExample()
	accounts, err := books.ParseAccounts([]byte(chart))
	if err == nil {
		_, err = books.PutAccounts(e.Context(), e.Pool, "acme", accounts, books.AccountsOptions{Create: true})
	}
	if err == nil {
		_, err = books.ApplyRules(e.Context(), e.Pool, "acme", []byte(rules), books.ApplyOptions{})
	}
	if err != nil {
		panic(err)
	}
	return e
}

// A program applies its rules at each start: the same rules change nothing.
func ExampleApplyRules() {
	e := opened()
	defer e.Close()

	c, err := books.ApplyRules(e.Context(), e.Pool, "acme", []byte(rules), books.ApplyOptions{})
	fmt.Println(c.Version, c.Changed, c.Returned, c.MissingAccounts, err)
	_, err = books.ApplyRules(e.Context(), e.Pool, "amce", []byte(rules), books.ApplyOptions{})
	fmt.Println(errors.Is(err, books.ErrOrganizationNotFound))
	// Output:
	// 1 false 0 [] <nil>
	// true
}

// A version is stored first, looked at, and activated unless another one was activated meanwhile.
func ExampleActivateRules() {
	e := opened()
	defer e.Close()
	ctx := e.Context()

	next, err := books.ApplyRules(ctx, e.Pool, "acme", []byte(rules+"# reviewed\n"), books.ApplyOptions{StoreOnly: true})
	fmt.Println(next.Version, err)
	seen := int64(1)
	c, err := books.ActivateRules(ctx, e.Pool, "acme", next.Version, books.ActivateOptions{Expected: &seen})
	fmt.Println(c.Version, c.Changed, err)
	_, err = books.ActivateRules(ctx, e.Pool, "acme", 1, books.ActivateOptions{Expected: &seen})
	fmt.Println(errors.Is(err, books.ErrRulesChanged))
	// Output:
	// 2 <nil>
	// 2 true <nil>
	// true
}

func ExamplePreviewRules() {
	e := opened()
	defer e.Close()

	other, err := posting.Compile([]byte(rules))
	if err != nil {
		panic(err)
	}
	p, err := books.PreviewRules(e.Context(), e.Pool, "acme", other, books.PreviewOptions{})
	fmt.Println(*p.Active, len(p.Failed), len(p.Recent), p.MissingAccounts, err)
	// Output: 1 0 0 [] <nil>
}

func ExampleMissingAccounts() {
	e := opened()
	defer e.Close()

	other, err := posting.Compile([]byte(`ruleset: other
rules:
  - id: sale
    when: doc.type == "invoice"
    lines:
      - {id: customer, side: debit, account: "1200", amount: doc.payable}
      - {id: revenue, side: credit, account: "9999", amount: doc.payable}
`))
	if err != nil {
		panic(err)
	}
	fmt.Println(books.MissingAccounts(e.Context(), e.Pool, "acme", other))
	// Output: [9999] <nil>
}

func ExampleRuleSets() {
	e := opened()
	defer e.Close()

	sets, err := books.RuleSets(e.Context(), e.Pool, "acme")
	fmt.Println(len(sets), sets[0].Version, sets[0].Name, sets[0].Active, err)
	// Output: 1 1 shop true <nil>
}

// Version 0 is the one that is active.
func ExampleRuleSet() {
	e := opened()
	defer e.Close()

	set, err := books.RuleSet(e.Context(), e.Pool, "acme", 0)
	fmt.Println(set.Version, set.Source == rules, err)
	_, err = books.RuleSet(e.Context(), e.Pool, "acme", 7)
	fmt.Println(errors.Is(err, books.ErrNoRuleSet))
	// Output:
	// 1 true <nil>
	// true
}

// An account is added, or changed; the others stay.
func ExamplePutAccounts() {
	e := opened()
	defer e.Close()

	bank := models.Account{Code: "1800", Name: "Bank", Type: models.AccountAsset, Currencies: models.Currencies{"EUR"}}
	c, err := books.PutAccounts(e.Context(), e.Pool, "acme", []models.Account{bank}, books.AccountsOptions{})
	fmt.Println(c.Changed, err)
	// Output: true <nil>
}

func ExampleParseAccounts() {
	accounts, err := books.ParseAccounts([]byte("code,name,type\n1800,Bank,asset\n"))
	fmt.Println(accounts[0].Code, accounts[0].Type, err)
	_, err = books.ParseAccounts([]byte("code,name,type\n1800,Bank,thing\n"))
	fmt.Println(err)
	// Output:
	// 1800 asset <nil>
	// line 2: the type is "thing": want asset, liability, equity, income or expense
}

func ExampleAccounts() {
	e := opened()
	defer e.Close()

	accounts, err := books.Accounts(e.Context(), e.Pool, "acme")
	for _, a := range accounts {
		fmt.Println(a.Code, a.Type, a.Currencies)
	}
	fmt.Println(err)
	// Output:
	// 1200 asset [EUR]
	// 3806 liability []
	// 4400 income []
	// <nil>
}

// A year is twelve periods.
func ExampleAddPeriods() {
	e := opened()
	defer e.Close()

	for range 2 {
		added, err := books.AddPeriods(e.Context(), e.Pool, "acme", books.Year(2026), books.AddPeriodsOptions{})
		fmt.Println(len(added), err)
	}
	// Output:
	// 12 <nil>
	// 0 <nil>
}

func ExampleYear() {
	year := books.Year(2026)
	fmt.Println(len(year), year[1].StartsOn, year[1].EndsOn)
	// Output: 12 2026-02-01 2026-02-28
}

func ExampleMonth() {
	m := books.Month(2028, time.February)
	fmt.Println(m.StartsOn, m.EndsOn)
	// Output: 2028-02-01 2028-02-29
}

func ExampleClosePeriod() {
	e := opened()
	defer e.Close()
	ctx := e.Context()
	if _, err := books.AddPeriods(ctx, e.Pool, "acme", books.Year(2026), books.AddPeriodsOptions{}); err != nil {
		panic(err)
	}

	p, err := books.ClosePeriod(ctx, e.Pool, "acme", books.Month(2026, time.March), books.CloseOptions{})
	fmt.Println(p.StartsOn, p.State, err)
	_, err = books.ClosePeriod(ctx, e.Pool, "acme", books.Month(2027, time.March), books.CloseOptions{})
	fmt.Println(errors.Is(err, books.ErrPeriodNotFound))
	// Output:
	// 2026-03-01 closed <nil>
	// true
}

// What had failed because the period was closed is tried again.
func ExampleOpenPeriod() {
	e := opened()
	defer e.Close()
	ctx := e.Context()
	if _, err := books.AddPeriods(ctx, e.Pool, "acme", books.Year(2026), books.AddPeriodsOptions{}); err != nil {
		panic(err)
	}

	p, err := books.OpenPeriod(ctx, e.Pool, "acme", books.Month(2026, time.March), books.OpenOptions{})
	fmt.Println(p.State, p.Returned, err)
	// Output: open 0 <nil>
}

func ExamplePeriods() {
	e := opened()
	defer e.Close()
	ctx := e.Context()
	if _, err := books.AddPeriods(ctx, e.Pool, "acme", []models.Period{books.Month(2026, time.March)}, books.AddPeriodsOptions{}); err != nil {
		panic(err)
	}

	periods, err := books.Periods(ctx, e.Pool, "acme")
	fmt.Println(len(periods), periods[0].StartsOn, periods[0].EndsOn, periods[0].State, err)
	// Output: 1 2026-03-01 2026-03-31 open <nil>
}

// Documents with a date in a closed period are posted on the first open day after it.
func ExampleSetClosedPeriodPolicy() {
	e := opened()
	defer e.Close()

	_, err := books.SetClosedPeriodPolicy(e.Context(), e.Pool, "acme", models.PolicyFirstOpenDay)
	fmt.Println(err)
	fmt.Println(books.ClosedPeriodPolicy(e.Context(), e.Pool, "acme"))
	// Output:
	// <nil>
	// first_open_day <nil>
}

func ExampleClosedPeriodPolicy() {
	e := opened()
	defer e.Close()

	fmt.Println(books.ClosedPeriodPolicy(e.Context(), e.Pool, "acme"))
	// Output: fail <nil>
}

// begun is an import that is on record, as the command line puts it there.
func begun(e *pgtest.Example) int64 {
	id, err := ledgerdb.BeginImport(e.Context(), e.Pool, models.Import{OrgID: "acme", Format: "csv", Files: "sales.csv", Actor: "ada"})
	if err != nil {
		panic(err)
	}
	return id
}

func ExampleImports() {
	e := opened()
	defer e.Close()
	begun(e)

	list, err := books.Imports(e.Context(), e.Pool, books.ImportsOptions{OrgID: "acme"})
	fmt.Println(len(list), list[0].Format, list[0].Files, err)
	// Output: 1 csv sales.csv <nil>
}

// An undo says what it did, and what it kept and why.
func ExampleUndoImport() {
	e := opened()
	defer e.Close()
	id := begun(e)

	done, err := books.UndoImport(e.Context(), e.Pool, id, books.UndoOptions{})
	fmt.Println(done.Removed, done.Reversed, done.Restored, len(done.Kept), err)
	// Output: 0 0 0 0 <nil>
}

// An organization gets its chart and its rules in the transaction that signs it up.
func ExampleIn() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx := e.Context()
	accounts, err := books.ParseAccounts([]byte(chart))
	if err != nil {
		panic(err)
	}

	tx, err := e.Pool.Begin(ctx)
	if err != nil {
		panic(err)
	}
	if _, err = books.PutAccounts(ctx, books.In(tx), "acme", accounts, books.AccountsOptions{Create: true}); err != nil {
		panic(err)
	}
	c, err := books.ApplyRules(ctx, books.In(tx), "acme", []byte(rules), books.ApplyOptions{Create: true})
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Version, c.Changed, c.MissingAccounts)
	fmt.Println(tx.Commit(ctx))
	// Output:
	// 1 true []
	// <nil>
}

// A journal is posted by a worker as it is, and reversed when it is deleted.
func ExamplePutJournal() {
	e := opened()
	defer e.Close()
	ctx := e.Context()

	j := books.Journal{
		ID: "write-off-7", Date: models.NewDate(2026, time.March, 31), Reason: "Written off", By: "Clerk", Currency: "EUR",
		Entries: []models.JournalEntry{{Account: "4400", Amount: 500}, {Account: "1200", Amount: -500}},
	}
	c, err := books.PutJournal(ctx, e.Pool, "acme", j)
	fmt.Println(c.DocumentID, c.Changed, c.PostingDate, err)
	c, err = books.PutJournal(ctx, e.Pool, "acme", j)
	fmt.Println(c.DocumentID, c.Changed, err)
	// Output:
	// journal:write-off-7 true 2026-03-31 <nil>
	// journal:write-off-7 false <nil>
}

// What could not be posted is refused, with the code that its job would fail with.
func ExampleCheckJournal() {
	e := opened()
	defer e.Close()

	_, err := books.CheckJournal(e.Context(), e.Pool, "acme", books.Journal{
		Date: models.NewDate(2026, time.March, 31), Reason: "Written off", By: "Clerk", Currency: "EUR",
		Entries: []models.JournalEntry{{Account: "4400", Amount: 500}, {Account: "1200", Amount: -499}},
	})
	refused, _ := errors.AsType[*models.JobError](err)
	fmt.Println(errors.Is(err, books.ErrJournal), refused.Code)
	// Output: true UNBALANCED
}

func ExampleDeleteJournal() {
	e := opened()
	defer e.Close()

	_, err := books.DeleteJournal(e.Context(), e.Pool, "acme", "journal:unknown")
	fmt.Println(errors.Is(err, books.ErrJournalNotFound))
	// Output: true
}

func ExampleJournals() {
	e := opened()
	defer e.Close()

	list, err := books.Journals(e.Context(), e.Pool, "acme", books.JournalsOptions{})
	fmt.Println(len(list), err)
	// Output: 0 <nil>
}
