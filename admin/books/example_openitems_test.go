package books_test

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

const chartOfItems = `code,name,type,role
1000,Bank,asset,cash
1200,Receivables,asset,receivable
1299,Receivables by other rates,asset,
4400,Sales,income,
4840,Exchange gains,income,
6880,Exchange losses,expense,
`

// owed is a database whose organization acme is owed 119 USD since 2 March, of which 100 were paid
// on 20 March.
func owed() *pgtest.Example {
	e := pgtest.NewExample()
	ctx := e.Context()
	accounts, err := books.ParseAccounts([]byte(chartOfItems))
	if err == nil {
		_, err = books.PutAccounts(ctx, e.Pool, "acme", accounts, books.AccountsOptions{Create: true})
	}
	put := func(id string, day int, amount int64, other string) {
		if err != nil {
			return
		}
		err = store.Begin(ctx, e.Pool, func(tx pgx.Tx) error {
			_, err := ledgerdb.PutDocument(ctx, tx, &models.Document{
				OrgID: "acme", ID: id, Type: models.DocumentJournal, Direction: models.DirectionOut, Currency: "USD",
				IssueDate: models.NewDate(2026, time.March, day),
				Content: models.Content{Number: id, Counterparty: "Sample Customer", Journal: &models.Journal{
					Reason: "an example", By: "an accountant",
					Entries: []models.JournalEntry{{Account: "1200", Amount: amount}, {Account: other, Amount: -amount}},
				}},
			})
			if err == nil {
				_, err = store.MarkDocumentReady(ctx, tx, "acme", id, models.PriorityNormal)
			}
			return err
		})
	}
	put("invoice-1", 2, 11900, "4400")
	put("payment-1", 20, -10000, "1000")
	worker := engine.New(store.New(e.Pool), ledger.New(nil), engine.Options{Log: slog.New(slog.DiscardHandler)})
	defer worker.Close()
	if err == nil {
		_, err = worker.Process(ctx, engine.TurnRequest{Turn: store.Turn{ID: "run/0/1", Worker: "example"}, Batch: 10, Length: time.Minute})
	}
	if err != nil {
		panic(err)
	}
	return e
}

// together puts the two documents together.
func together(e *pgtest.Example) models.ItemGroup {
	g, err := books.Reconcile(e.Context(), e.Pool, "acme", []string{"invoice-1", "payment-1"}, "by phone")
	if err != nil {
		panic(err)
	}
	return g
}

// priced has rates of the days, too.
func priced(e *pgtest.Example) {
	_, err := books.SetOwnCurrency(e.Context(), e.Pool, "acme", "EUR")
	if err == nil {
		_, err = books.PutRates(e.Context(), e.Pool, "acme", []models.CurrencyRate{
			{Currency: "USD", ValidOn: models.NewDate(2026, time.March, 1), Rate: "0.90", Source: "ECB"},
			{Currency: "USD", ValidOn: models.NewDate(2026, time.March, 20), Rate: "0.92", Source: "ECB"},
		}, books.PutRatesOptions{})
	}
	if err != nil {
		panic(err)
	}
}

func ExampleOpenItems() {
	e := owed()
	defer e.Close()

	items, err := books.OpenItems(e.Context(), e.Pool, "acme", books.OpenItemsOptions{On: models.NewDate(2026, time.March, 10)})
	for _, i := range items {
		fmt.Println(i.DocumentID, i.Counterparty, i.Open, i.Currency)
	}
	fmt.Println(err)
	// Output:
	// invoice-1 Sample Customer 11900 USD
	// <nil>
}

func ExampleReconcile() {
	e := owed()
	defer e.Close()

	g, err := books.Reconcile(e.Context(), e.Pool, "acme", []string{"invoice-1", "payment-1"}, "by phone")
	fmt.Println(len(g.Documents), g.Closed, g.Open[0].Open, err)
	// Output: 2 false 1900 <nil>
}

func ExampleOpenItemsOf() {
	e := owed()
	defer e.Close()
	together(e)

	d, err := books.OpenItemsOf(e.Context(), e.Pool, "acme", "invoice-1")
	fmt.Println(d.Items[0].Amount, d.Items[0].Open, len(d.Group.Documents), err)
	// Output: 11900 1900 2 <nil>
}

func ExampleGroup() {
	e := owed()
	defer e.Close()

	g, err := books.Group(e.Context(), e.Pool, "acme", together(e).ID)
	for _, d := range g.Documents {
		fmt.Println(d.DocumentID, d.MatchedBy, d.Reason)
	}
	fmt.Println(err)
	// Output:
	// invoice-1 hand by phone
	// payment-1 hand by phone
	// <nil>
}

func ExampleUnreconcile() {
	e := owed()
	defer e.Close()
	together(e)

	fmt.Println(books.Unreconcile(e.Context(), e.Pool, "acme", []string{"payment-1"}))
	// Output: [invoice-1 payment-1] <nil>
}

func ExampleDissolveGroup() {
	e := owed()
	defer e.Close()

	fmt.Println(books.DissolveGroup(e.Context(), e.Pool, "acme", together(e).ID))
	// Output: [invoice-1 payment-1] <nil>
}

// The payment is not of the whole amount, and names no number.
func ExampleMatchOpenItems() {
	e := owed()
	defer e.Close()

	matches, err := books.MatchOpenItems(e.Context(), e.Pool, "acme", books.MatchOptions{DryRun: true})
	fmt.Println(len(matches), err)
	// Output: 0 <nil>
}

func ExampleAgeing() {
	e := owed()
	defer e.Close()

	rows, err := books.Ageing(e.Context(), e.Pool, "acme", books.AgeingOptions{On: models.NewDate(2026, time.March, 31)})
	fmt.Println(rows[0].Counterparty, rows[0].Open, rows[0].Due30, err)
	// Output: Sample Customer 1900 1900 <nil>
}

func ExampleCounterpartyStatement() {
	e := owed()
	defer e.Close()

	lines, err := books.CounterpartyStatement(e.Context(), e.Pool, "acme", books.CounterpartyOptions{Counterparty: "Sample Customer"})
	for _, l := range lines {
		fmt.Println(l.PostingDate, l.DocumentID, l.Amount, l.Balance)
	}
	fmt.Println(err)
	// Output:
	// 2026-03-02 invoice-1 11900 11900
	// 2026-03-20 payment-1 -10000 1900
	// <nil>
}

func ExampleSetOwnCurrency() {
	e := owed()
	defer e.Close()

	c, err := books.SetOwnCurrency(e.Context(), e.Pool, "acme", "EUR")
	fmt.Println(c.Changed, err)
	// Output: true <nil>
}

func ExampleOwnCurrency() {
	e := owed()
	defer e.Close()
	priced(e)

	fmt.Println(books.OwnCurrency(e.Context(), e.Pool, "acme"))
	// Output: EUR <nil>
}

func ExampleParseRates() {
	rates, err := books.ParseRates([]byte("currency,valid_on,rate,source\nUSD,2026-03-31,0.9248,ECB\n"))
	fmt.Println(rates[0].Currency, rates[0].Rate, err)
	// Output: USD 0.9248 <nil>
}

func ExamplePutRates() {
	e := owed()
	defer e.Close()
	priced(e)

	fmt.Println(books.PutRates(e.Context(), e.Pool, "acme", []models.CurrencyRate{{Currency: "USD", ValidOn: models.NewDate(2026, time.March, 31), Rate: "0.93"}}, books.PutRatesOptions{}))
	// Output: 1 <nil>
}

func ExampleRates() {
	e := owed()
	defer e.Close()
	priced(e)

	rates, err := books.Rates(e.Context(), e.Pool, "acme", books.RatesOptions{Limit: 1})
	fmt.Println(rates[0].ValidOn, rates[0].Rate, err)
	// Output: 2026-03-20 0.92 <nil>
}

func ExampleExchangeDifferences() {
	e := owed()
	defer e.Close()
	priced(e)
	together(e)

	x, err := books.ExchangeDifferences(e.Context(), e.Pool, "acme", books.ExchangeOptions{Until: models.NewDate(2026, time.March, 31)})
	fmt.Println(x.Realised, x.Currency, err)
	// Output: 200 EUR <nil>
}

// Booked again, it writes nothing.
func ExampleBookExchangeDifferences() {
	e := owed()
	defer e.Close()
	priced(e)
	together(e)

	o := books.ExchangeBooking{Until: models.NewDate(2026, time.March, 31), Adjustment: "1299", Gain: "4840", Loss: "6880"}
	for range 2 {
		b, err := books.BookExchangeDifferences(e.Context(), e.Pool, "acme", o)
		fmt.Println(b.ToBook, b.DocumentID, err)
	}
	// Output:
	// 200 exchange:2026-03-31/1 <nil>
	// 0  <nil>
}
