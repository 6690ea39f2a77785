package books_test

import (
	"encoding/csv"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/export"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/models"
)

// TestStatementsAreHledgers: for each month, closed or open, the balance sheet and the income
// statement are those that hledger makes of the export.
func TestStatementsAreHledgers(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("hledger")
	if err != nil {
		t.Skip("hledger is not installed")
	}
	b := setup(t)
	ctx := t.Context()
	quarter := []models.Period{books.Month(2026, 1), books.Month(2026, 2), books.Month(2026, 3), books.Month(2026, 4)}
	require.NoError(t, addPeriods(ctx, b.Pool, org, quarter...))
	_, err = books.SetClosedPeriodPolicy(ctx, b.Pool, org, models.PolicyFirstOpenDay)
	require.NoError(t, err)
	sell := func(id string, month, day int, net int64) {
		d := fixture.Invoice(org, id, net)
		d.IssueDate = models.NewDate(2026, quarter[month-1].StartsOn.Time().Month(), day)
		d.Currency = map[bool]string{true: "EUR", false: "JPY"}[net%2 == 0]
		fixture.Ready(t, b.Pool, d)
	}
	for n := range 40 {
		sell("inv-"+strconv.Itoa(n), 1+n%4, 1+n%28, 1000+int64(n)*37)
	}
	b.work()
	for _, month := range quarter[:3] {
		require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, month, books.CloseOptions{})))
	}
	sell("inv-4", 1, 5, 77777) // of January, which is closed: reversed and posted in April
	b.work()
	require.Positive(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.closed_sums`))

	journal := filepath.Join(t.TempDir(), "ledger.journal")
	file, err := os.Create(journal)
	require.NoError(t, err)
	require.NoError(t, ledgerdb.ReadExport(ctx, b.Pool, ledgerdb.ExportFilter{OrgID: org}, func(r *ledgerdb.ExportReader) error {
		_, err := export.Write(ctx, r, file, export.Options{Format: export.HLedger})
		return err
	}))
	require.NoError(t, file.Close())
	for _, month := range quarter {
		after := month.EndsOn.AddDays(1).String()
		want := hledgerLines(t, program, "-f", journal, "balancesheet", "-e", after)
		sheet, err := books.BalanceSheet(ctx, b.Pool, org, books.StatementOptions{To: month.EndsOn})
		require.NoError(t, err)
		assert.Equal(t, want, accountLines(sheet), month.StartsOn)
		assertBalanced(t, sheet)

		want = hledgerLines(t, program, "-f", journal, "incomestatement", "-b", month.StartsOn.String(), "-e", after)
		income, err := books.IncomeStatement(ctx, b.Pool, org, books.StatementOptions{From: month.StartsOn, To: month.EndsOn})
		require.NoError(t, err)
		assert.Equal(t, want, accountLines(income), month.StartsOn)
		assert.NotEmpty(t, want)
	}
}

// hledgerLines are the amounts of a statement of hledger by account and currency, and of its net.
func hledgerLines(t *testing.T, program string, args ...string) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, append(args, "-O", "csv", "--layout", "bare")...).Output()
	require.NoError(t, err)
	reader := csv.NewReader(strings.NewReader(string(out)))
	rows, err := reader.ReadAll()
	require.NoError(t, err)
	lines := map[string]string{}
	for _, row := range rows[2:] {
		_, account, found := strings.Cut(row[0], ":")
		if found && row[1] != "" && row[2] != "0" {
			code, _, _ := strings.Cut(account, " ")
			lines[code+" "+row[1]] = row[2]
		}
	}
	return lines
}

// accountLines are the amounts of a statement in its first column as hledgerLines has them; what
// hledger calls net is the result, or what assets are more than liabilities.
func accountLines(s models.Statement) map[string]string {
	lines := map[string]string{}
	net := map[string]*big.Int{}
	for _, l := range s.Lines {
		amount := l.Amounts[0]
		if l.Kind == models.LineAccount && l.Type != models.AccountEquity {
			lines[l.Account+" "+l.Currency] = minor.Decimal(amount, l.Currency)
		}
		if net[l.Currency] == nil {
			net[l.Currency] = new(big.Int)
		}
		switch {
		case l.Kind != models.LineTotal || l.Type == "" || l.Type == models.AccountEquity:
		case l.Type == models.AccountAsset || l.Type == models.AccountIncome:
			net[l.Currency].Add(net[l.Currency], amount)
		default:
			net[l.Currency].Sub(net[l.Currency], amount)
		}
	}
	for currency, amount := range net {
		if amount.Sign() != 0 {
			lines[" "+currency] = minor.Decimal(amount, currency)
		}
	}
	return lines
}

// assertBalanced: assets are liabilities and equity, in each column.
func assertBalanced(t *testing.T, s models.Statement) {
	t.Helper()
	for column := range s.Columns {
		difference := map[string]*big.Int{}
		for _, l := range s.Lines {
			if difference[l.Currency] == nil {
				difference[l.Currency] = new(big.Int)
			}
			if l.Kind == models.LineTotal && l.Type == models.AccountAsset {
				difference[l.Currency].Add(difference[l.Currency], l.Amounts[column])
			}
			if l.Kind == models.LineTotal && l.Type == "" {
				difference[l.Currency].Sub(difference[l.Currency], l.Amounts[column])
			}
		}
		for currency, d := range difference {
			assert.Zero(t, d.Sign(), "assets differ from liabilities and equity in %s by %s", currency, d)
		}
	}
}
