package books_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/export"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// retail is a quarter of a shop in the form of "Online Retail": sales, a return of the month before, and a bad debt.
var retail = map[string]string{
	"2010-12": `536365,85123A,T-LIGHT HOLDER,6,2010-12-01 08:26:00,2.55,17850,United Kingdom
536365,POST,POSTAGE,1,2010-12-01 08:26:00,18.00,17850,United Kingdom
536370,22728,ALARM CLOCK,24,2010-12-05 08:45:00,3.75,12583,France
536381,22139,TEAPOT,-1,2010-12-09 09:41:00,1.45,15311,United Kingdom
`,
	"2011-01": `C539576,85123A,T-LIGHT HOLDER,-6,2011-01-05 12:36:00,2.55,17850,United Kingdom
C539576,POST,POSTAGE,-1,2011-01-05 12:36:00,18.00,17850,United Kingdom
540001,gift_0001_20,VOUCHER,2,2011-01-31 10:00:00,16.67,,United Kingdom
A540002,B,Adjust bad debt,1,2011-01-31 11:00:00,-53.06,,United Kingdom
`,
	"2011-02": `C543210,22728,ALARM CLOCK,-4,2011-02-10 09:00:00,3.75,12583,France
543211,AMAZONFEE,AMAZON FEE,1,2011-02-28 15:00:00,13.54,,United Kingdom
`,
}

// TestBooksAreKeptMonthByMonth: each month in order is imported, posted, reconciled, checked and
// closed. Nothing required is left then, open items are the receivables, and the statements of each
// month are hledger's. `make oracle-months` does so with the whole data set.
func TestBooksAreKeptMonthByMonth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	const org = "shop"
	require.NoError(t, second(books.PutAccounts(ctx, b.Pool, org, sample.OnlineRetailChart(), books.AccountsOptions{Create: true})))
	require.NoError(t, second(books.ApplyRules(ctx, b.Pool, org, sample.OnlineRetailRules(), books.ApplyOptions{})))
	mapping, err := importer.ParseMapping(sample.OnlineRetailMapping())
	require.NoError(t, err)
	months := []models.Period{books.Month(2010, 12), books.Month(2011, 1), books.Month(2011, 2)}
	require.NoError(t, addPeriods(ctx, b.Pool, org, months...))

	var reconciled []string
	for _, month := range months {
		name := filepath.Join(t.TempDir(), "rows.csv")
		rows := "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n" + retail[month.StartsOn.String()[:7]]
		require.NoError(t, os.WriteFile(name, []byte(rows), 0o600))
		sources, err := importer.FindSources([]string{name}, ".csv")
		require.NoError(t, err)
		documents, err := importer.OpenCSV(ctx, mapping, org, sources.All)
		require.NoError(t, err)
		for d, err := range documents.Documents(ctx) {
			require.NoError(t, err)
			fixture.Ready(t, b.Pool, &d.Document)
		}
		_, list, err := books.ClosingList(ctx, b.Pool, org, month)
		require.NoError(t, err)
		require.Equal(t, models.ClosingWaiting, list[0].Code)
		b.work()
		matches, err := books.MatchOpenItems(ctx, b.Pool, org, books.MatchOptions{})
		require.NoError(t, err)
		for _, m := range matches {
			reconciled = append(reconciled, m.DocumentID+" "+m.OtherID)
		}
		c, err := books.ClosePeriod(ctx, b.Pool, org, month, books.CloseOptions{})
		require.NoError(t, err)
		for _, i := range c.Open {
			require.False(t, i.Required, "%s: %+v", month.StartsOn, i)
		}
	}
	assert.Equal(t, []string{"C539576 536365"}, reconciled)
	_, list, err := books.ClosingList(ctx, b.Pool, org, months[2])
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, models.ClosingUnreconciled, list[0].Code)
	assert.Contains(t, list[0].Examples, "C543210", "it returns a part, and names no invoice")
	assert.Empty(t, b.differences(nil))

	journal := b.hledgerJournal(org)
	for _, month := range months {
		sheet, err := books.BalanceSheet(ctx, b.Pool, org, books.StatementOptions{To: month.EndsOn})
		require.NoError(t, err)
		var open string
		require.NoError(t, b.Pool.QueryRow(ctx, `SELECT coalesce(sum(open_amount), 0)::text FROM daybook.open_items($1, $2)`, org, month.EndsOn.Time()).
			Scan(&open))
		for _, l := range sheet.Lines {
			if l.Account == "1200" {
				assert.Equal(t, l.Amounts[0].String(), open, month.StartsOn)
			}
		}
		program, err := exec.LookPath("hledger")
		if err != nil {
			continue
		}
		after := month.EndsOn.AddDays(1).String()
		assert.Equal(t, hledgerLines(t, program, "-f", journal, "balancesheet", "-e", after), accountLines(sheet), month.StartsOn)
		income, err := books.IncomeStatement(ctx, b.Pool, org, books.StatementOptions{From: month.StartsOn, To: month.EndsOn})
		require.NoError(t, err)
		assert.Equal(t, hledgerLines(t, program, "-f", journal, "incomestatement", "-b", month.StartsOn.String(), "-e", after), accountLines(income), month.StartsOn)
	}
}

// hledgerJournal exports an organization for hledger, and returns the file.
func (b *bundle) hledgerJournal(org string) string {
	b.t.Helper()
	journal := filepath.Join(b.t.TempDir(), "ledger.journal")
	file, err := os.Create(journal)
	require.NoError(b.t, err)
	require.NoError(b.t, ledgerdb.ReadExport(b.t.Context(), b.Pool, ledgerdb.ExportFilter{OrgID: org}, func(r *ledgerdb.ExportReader) error {
		_, err := export.Write(b.t.Context(), r, file, export.Options{Format: export.HLedger})
		return err
	}))
	require.NoError(b.t, file.Close())
	return journal
}
