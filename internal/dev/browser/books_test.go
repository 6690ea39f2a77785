//go:build browser

package browser_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// sold is an invoice, and paid a payment, of a counterparty on a day of a month of 2026.
func sold(id, counterparty, currency string, month time.Month, day int, net int64) *models.Document {
	d := fixture.Invoice("acme", id, net)
	d.Currency, d.IssueDate = currency, models.NewDate(2026, month, day)
	d.Content.Counterparty, d.Content.DueDate = counterparty, d.IssueDate.AddDays(14)
	return d
}

func paid(id, counterparty, currency string, month time.Month, day int, amount int64) *models.Document {
	return &models.Document{
		OrgID: "acme", ID: id, Type: models.DocumentPayment, Direction: models.DirectionIn, Currency: currency,
		IssueDate: models.NewDate(2026, month, day), Content: models.Content{Number: id, Counterparty: counterparty, Amount: amount},
	}
}

// books gives the books of acme what accountants work with: open items and a group in another
// currency, rates, a journal, an import, a month that is closed with an adjustment, and one that is
// not.
func (b *tab) books() {
	b.t.Helper()
	ctx := b.t.Context()
	no := func(_ any, err error) { b.t.Helper(); require.NoError(b.t, err) }
	no(books.SetOwnCurrency(ctx, b.Pool, "acme", "EUR"))
	no(books.PutRates(ctx, b.Pool, "acme", []models.CurrencyRate{
		{Currency: "USD", ValidOn: models.NewDate(2026, 1, 31), Rate: "0.8412", Source: "ECB"},
		{Currency: "USD", ValidOn: models.NewDate(2026, 2, 28), Rate: "0.9248", Source: "ECB"},
	}, books.PutRatesOptions{}))
	no(books.AddPeriods(ctx, b.Pool, "acme", []models.Period{books.Month(2026, time.February), books.Month(2026, time.March)}, books.AddPeriodsOptions{}))
	no(books.SetClosedPeriodPolicy(ctx, b.Pool, "acme", models.PolicyFirstOpenDay))
	b.imported(sold("EXP-1", "Northwind Trading Company Ltd", "USD", time.February, 2, 1_250_000_00))
	fixture.Ready(b.t, b.Pool, sold("EXP-2", "Hansen & Sons", "EUR", time.February, 20, 48_10),
		paid("BANK-1", "Northwind Trading Company Ltd", "USD", time.March, 5, 900_000_00))
	no(books.PutJournal(ctx, b.Pool, "acme", books.Journal{
		Date: models.NewDate(2026, 2, 28), Currency: "EUR", Reason: "Rent of the office for February", By: "Clerk",
		Dimensions: models.Dimensions{"cost_centre": "office"}, Entries: []models.JournalEntry{
			{Account: "6300", Amount: 1_850_00, Note: "by contract"}, {Account: "1600", Amount: -1_850_00},
		},
	}))
	queuetest.DrainAccounting(b.t, b.Pool, queuetest.AccountingOptions{})
	no(books.ClosePeriod(ctx, b.Pool, "acme", books.Month(2026, time.February), books.CloseOptions{}))
	fixture.Ready(b.t, b.Pool, sold("EXP-3", "Hansen & Sons", "EUR", time.February, 27, 99_00))
	queuetest.DrainAccounting(b.t, b.Pool, queuetest.AccountingOptions{})
	no(books.Reconcile(ctx, b.Pool, "acme", []string{"EXP-1", "BANK-1"}, "by their letter"))
}

// imported writes a document as an import does.
func (b *tab) imported(d *models.Document) {
	b.t.Helper()
	id, err := ledgerdb.BeginImport(b.t.Context(), b.Pool,
		models.Import{OrgID: "acme", Format: "csv", Files: "exports-february.csv", Actor: "clerk"})
	require.NoError(b.t, err)
	d.ImportID = &id
	text, err := json.Marshal(d.Content)
	require.NoError(b.t, err)
	fixture.Tx(b.t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		puts, err := ledgerdb.PutImported(ctx, tx, []ledgerdb.NewDocument{{Document: d, Text: string(text)}})
		require.NoError(b.t, err)
		_, err = queue.EnqueueAccountingJob(ctx, tx,
			queue.AccountingJob{OrgID: d.OrgID, DocumentID: d.ID, Version: puts[0].Version})
		require.NoError(b.t, err)
	})
	require.NoError(b.t, ledgerdb.EndImport(b.t.Context(), b.Pool, models.Import{ID: id, Inserted: 1}))
}

// TestWriteAJournal types a journal of two lines: the form says that it does not balance, then what
// it would post, and posts it.
func TestWriteAJournal(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	fixture.Organization(t, b.Pool, "acme")
	b.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	b.visit("journal?org=acme")
	line := func(n int, account, side, amount string) {
		row := "tbody tr:nth-child(" + string(rune('0'+n)) + ") input"
		b.fill(row+"[name=account]", account)
		b.fill(row+"[name="+side+"]", amount)
	}
	b.fill("#f-date", "2026-03-31")
	b.fill("#f-reason", "Rent of the office")
	b.fill("#f-currency", "EUR")
	line(1, "6300", "debit", "1,850.00")
	line(2, "1600", "credit", "1,805.00")
	b.click("Check")
	b.see("It cannot be posted.")
	b.accessible("a journal that does not balance")
	line(2, "1600", "credit", "1.850,00")
	b.click("Check")
	b.see("What would be posted on 2026-03-31")
	b.see("Purchases and services")
	b.accessible("a journal that was checked")
	b.as(390, 844, "light")
	b.fits("a journal")
	b.wholeWords("a journal")
	b.accessible("a journal, phone")
	b.click("Post")
	b.see("The journal is written.")
	queuetest.DrainAccounting(t, b.Pool, queuetest.AccountingOptions{})
	assert.EqualValues(t, 1850_00, fixture.Balance(t, b.Pool, "acme", "6300", "EUR"))
}
