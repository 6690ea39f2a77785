package books_test

import (
	"fmt"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/models"
)

// withSale is opened with a sale of March that is posted: 100.00 EUR and 19 % of tax.
func withSale() *pgtest.Example {
	e := opened()
	_, err := e.Pool.Exec(e.Context(), `
UPDATE daybook.accounts SET role = 'tax' WHERE code = '3806';
INSERT INTO daybook.accounts (org_id, code, name, type, role) VALUES ('acme', '1000', 'Bank', 'asset', 'cash'), ('acme', '2900', 'Capital', 'equity', '');
INSERT INTO daybook.documents (org_id, id, type, direction, issue_date, currency, content)
VALUES ('acme', 'sale', 'invoice', 'out', '2026-03-14', 'EUR', '{"country": "DE", "taxes": [{"category": "VAT", "rate": 19, "base": 10000, "amount": 1900}]}');
WITH i AS (
    INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
    VALUES (1, 'acme', 'sale', 1, 1, 'post', '2026-03-14', '2026-03-14', 3, 'j', 1))
INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency)
VALUES (1, 1, 'acme', '1000', 'debit', 11900, 'EUR'), (1, 2, 'acme', '4400', 'credit', 10000, 'EUR'), (1, 3, 'acme', '3806', 'credit', 1900, 'EUR')`)
	if err != nil {
		panic(err)
	}
	return e
}

// The totals of a balance sheet: assets equal liabilities and equity.
func ExampleBalanceSheet() {
	e := withSale()
	defer e.Close()

	s, err := books.BalanceSheet(e.Context(), e.Pool, "acme", books.StatementOptions{To: models.NewDate(2026, 3, 31)})
	for _, l := range s.Lines {
		fmt.Println(l.Kind, l.Name, l.Amounts[0], l.Currency)
	}
	fmt.Println(err)
	// Output:
	// account Bank 11900 EUR
	// total Total assets 11900 EUR
	// account VAT 19 % 1900 EUR
	// total Total liabilities 1900 EUR
	// result Result of the year 10000 EUR
	// total Total equity 10000 EUR
	// total Total liabilities and equity 11900 EUR
	// <nil>
}

// March beside March of the year before.
func ExampleIncomeStatement() {
	e := withSale()
	defer e.Close()

	march := books.Month(2026, 3)
	s, err := books.IncomeStatement(e.Context(), e.Pool, "acme", books.StatementOptions{
		From: march.StartsOn, To: march.EndsOn, Compare: books.CompareYear,
	})
	result := s.Lines[len(s.Lines)-1]
	fmt.Println(s.Columns[1].From, result.Name, result.Amounts, err)
	// Output: 2025-03-01 Result [10000 0] <nil>
}

func ExampleCashStatement() {
	e := withSale()
	defer e.Close()

	s, err := books.CashStatement(e.Context(), e.Pool, "acme", books.CashOptions{From: models.NewDate(2026, 3, 1)})
	bank := s.Lines[0]
	fmt.Println(bank.Name, bank.Opening, bank.In, bank.Out, bank.Closing, err)
	// Output: Bank 0 11900 0 11900 <nil>
}

func ExampleVATSummary() {
	e := withSale()
	defer e.Close()

	s, err := books.VATSummary(e.Context(), e.Pool, "acme", books.VATOptions{From: models.NewDate(2026, 3, 1), To: models.NewDate(2026, 3, 31)})
	for _, l := range s.Lines {
		fmt.Println(l.Kind, l.Country, l.Rate, l.Account, l.Tax)
	}
	fmt.Println(err)
	// Output:
	// stated DE 19  1900
	// stated_total    1900
	// posted   3806 1900
	// posted_total    1900
	// difference    0
	// <nil>
}

// A year is closed by a document that a worker posts.
func ExampleCloseYear() {
	e := withSale()
	defer e.Close()

	y, err := books.CloseYear(e.Context(), e.Pool, "acme", 2026, books.CloseYearOptions{To: "2900"})
	fmt.Println(y.DocumentID, y.Result, y.Moved[0].Amount, y.Moved[0].Currency, err)
	y, err = books.CloseYear(e.Context(), e.Pool, "acme", 2026, books.CloseYearOptions{Undo: true})
	fmt.Println(y.Result, err)
	// Output:
	// year-end:2026 written 10000 EUR <nil>
	// deleted <nil>
}
