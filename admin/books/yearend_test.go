package books_test

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// retained is the account of equity that years are closed to.
const retained = "2900"

// retains adds that account to the chart.
func (b *bundle) retains() {
	b.t.Helper()
	chart := []models.Account{{Code: retained, Name: "Retained earnings", Type: models.AccountEquity}}
	require.NoError(b.t, second(books.PutAccounts(b.t.Context(), b.Pool, org, chart, books.AccountsOptions{})))
}

// sheetBy is the balance sheet at the end of 2025 by a dimension, a text a column: its totals, and
// what is in the account of equity and the results.
func (b *bundle) sheetBy(key string) (totals, results []string) {
	b.t.Helper()
	sheet, err := books.BalanceSheet(b.t.Context(), b.Pool, org, books.StatementOptions{To: models.NewDate(2025, 12, 31), By: key})
	require.NoError(b.t, err)
	assertBalanced(b.t, sheet)
	for i, c := range sheet.Columns {
		var total, result []string
		for _, l := range sheet.Lines {
			switch {
			case l.Kind == models.LineTotal:
				total = append(total, fmt.Sprint(l.Name, " ", l.Amounts[i]))
			case (l.Kind == models.LineResult || l.Account == retained) && l.Amounts[i].Sign() != 0:
				result = append(result, fmt.Sprint(l.Name, " ", l.Amounts[i]))
			}
		}
		totals = append(totals, c.Value+": "+strings.Join(total, ", "))
		results = append(results, c.Value+": "+strings.Join(result, ", "))
	}
	return totals, results
}

// A year-end close moves the result of each value of each dimension: a balance sheet by dimension has
// the same totals before and after it, and after its undo.
func TestCloseYearByDimensions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.retains()
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Month(2025, 11), books.Month(2025, 12)))
	sell := func(id string, month int, net int64, dimensions models.Dimensions) {
		d := fixture.Invoice(org, id, net)
		d.IssueDate = models.NewDate(2025, time.Month(month), 30)
		d.Content.Dimensions = dimensions
		fixture.Ready(t, b.Pool, d)
		b.work()
	}
	sell("plain", 11, 700, nil)
	sell("east", 11, 1000, models.Dimensions{"region": "east"})
	sell("east-7", 12, 200, models.Dimensions{"region": "east", "project": "7"})
	sell("west-7", 12, 40, models.Dimensions{"region": "west", "project": "7"})
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, books.Month(2025, 11), books.CloseOptions{})))
	keys := []string{"region", "project"}
	want := map[string][]string{}
	open := map[string][]string{}
	for _, k := range keys {
		want[k], open[k] = b.sheetBy(k)
	}
	assert.Equal(t, []string{"east: Result of the year 1200", "west: Result of the year 40", ": Result of the year 700", ": Result of the year 1940"}, open["region"])
	assertSheets := func(state string, moved bool) {
		t.Helper()
		for _, k := range keys {
			totals, results := b.sheetBy(k)
			assert.Equal(t, want[k], totals, state)
			after := slices.Clone(open[k])
			for i := range after {
				if moved {
					after[i] = strings.ReplaceAll(after[i], "Result of the year", "Retained earnings")
				}
			}
			assert.Equal(t, after, results, state)
		}
	}
	closeYear := func(o books.CloseYearOptions) models.YearEnd {
		t.Helper()
		done, err := books.CloseYear(ctx, b.Pool, org, 2025, o)
		require.NoError(t, err)
		b.work()
		return done
	}
	to := books.CloseYearOptions{To: retained}
	done := closeYear(to)
	assert.Equal(t, models.YearEndWritten, done.Result)
	assert.Equal(t, []models.YearResult{{Currency: "EUR", Amount: big.NewInt(1940)}}, done.Moved)
	assertSheets("closed", true)
	assert.Equal(t, models.YearEndUnchanged, closeYear(to).Result)
	assert.Equal(t, models.YearEndDeleted, closeYear(books.CloseYearOptions{Undo: true}).Result)
	assertSheets("undone", false)
	assert.Equal(t, models.YearEndWritten, closeYear(to).Result)
	assertSheets("closed anew", true)

	// What comes to nothing as a whole is moved where its parts do not.
	sell("shift", 12, 500, models.Dimensions{"region": "east"})
	back := fixture.Invoice(org, "shifted", 500)
	back.Type, back.IssueDate, back.Content.Dimensions = models.DocumentCreditNote, models.NewDate(2025, 12, 30), models.Dimensions{"region": "west"}
	fixture.Ready(t, b.Pool, back)
	b.work()
	assert.Equal(t, models.YearEndWritten, closeYear(to).Result)
	_, results := b.sheetBy("region")
	assert.Equal(t, []string{"east: Retained earnings 1700", "west: Retained earnings -460", ": Retained earnings 700", ": Retained earnings 1940"}, results)
}

// A year-end close stands on the year's last day, or nowhere: neither it nor its reversal moves to a
// later one, whatever the policy.
func TestAYearEndCloseStandsOnItsDay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	december := books.Month(2025, 12)
	b.retains()
	require.NoError(t, addPeriods(ctx, b.Pool, org, december))
	require.NoError(t, second(books.SetClosedPeriodPolicy(ctx, b.Pool, org, models.PolicyFirstOpenDay)))
	b.posted("sale", models.NewDate(2025, 12, 30))
	done, err := books.CloseYear(ctx, b.Pool, org, 2025, books.CloseYearOptions{To: retained})
	require.NoError(t, err)
	days := func() (found []string) {
		rows, err := b.Pool.Query(ctx, `SELECT kind || ' ' || posting_date FROM daybook.impacts WHERE document_id = $1 ORDER BY seq`, done.DocumentID)
		require.NoError(t, err)
		found, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return found
	}
	fails := func() {
		t.Helper()
		b.work()
		job := fixture.Job(t, b.Pool, org, done.DocumentID)
		require.NotNil(t, job.LastErrorCode)
		assert.Equal(t, models.CodePeriodClosed, *job.LastErrorCode)
		assert.Equal(t, models.JobFailed, job.State)
	}
	// December is closed before a worker comes to it.
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, december, books.CloseOptions{Force: true})))
	fails()
	assert.Empty(t, days())
	require.NoError(t, second(books.OpenPeriod(ctx, b.Pool, org, december, books.OpenOptions{})))
	b.work()
	want := []string{"post 2025-12-31"}
	assert.Equal(t, want, days())

	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, december, books.CloseOptions{})))
	_, err = books.DeleteJournal(ctx, b.Pool, org, done.DocumentID)
	require.ErrorIs(t, err, books.ErrPeriodClosed)
	require.ErrorContains(t, err, "2025-12-31")
	_, err = b.Pool.Exec(ctx, `SELECT daybook.mark_document_deleted($1, $2)`, org, done.DocumentID)
	require.NoError(t, err)
	fails()
	assert.Equal(t, want, days())
	require.NoError(t, second(books.OpenPeriod(ctx, b.Pool, org, december, books.OpenOptions{})))
	b.work()
	assert.Equal(t, append(want, "reverse 2025-12-31"), days())

	require.NoError(t, second(books.CloseYear(ctx, b.Pool, org, 2025, books.CloseYearOptions{To: retained})))
	b.work()
	require.NoError(t, second(books.DeleteJournal(ctx, b.Pool, org, done.DocumentID)), "its day is open")
	b.work()
	assert.Equal(t, append(want, "reverse 2025-12-31", "post 2025-12-31", "reverse 2025-12-31"), days())
}

// What was posted in a currency while it was taken is moved on a day on which it is not taken any more,
// and so is what was reversed later. SLL takes documents until 2024-11-30.
func TestAYearWithAWithdrawnCurrencyIsClosed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.retains()
	year := models.Period{StartsOn: models.NewDate(2024, 1, 1), EndsOn: models.NewDate(2024, 12, 31)}
	require.NoError(t, second(books.AddPeriods(ctx, b.Pool, org, []models.Period{year}, books.AddPeriodsOptions{})))
	for _, currency := range []string{"SLL", "EUR"} {
		d := in(currency, fixture.Invoice(org, currency, 1000))
		d.IssueDate = models.NewDate(2024, time.June, 30)
		fixture.Ready(t, b.Pool, d)
	}
	b.work()
	closeYear := func(year int, want map[string]int64) {
		t.Helper()
		done, err := books.CloseYear(ctx, b.Pool, org, year, books.CloseYearOptions{To: retained})
		require.NoError(t, err)
		b.work()
		job := fixture.Job(t, b.Pool, org, done.DocumentID)
		require.Equal(t, models.JobCompleted, job.State, "%s", store.Value(job.LastError))
		for currency, balance := range want {
			assert.Equal(t, balance, fixture.Balance(t, b.Pool, org, retained, currency), "%d %s", year, currency)
		}
	}
	closeYear(2024, map[string]int64{"SLL": -1000, "EUR": -1000})

	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, year, books.CloseOptions{})))
	require.NoError(t, second(b.Pool.Exec(ctx, `SELECT daybook.mark_document_deleted($1, 'SLL')`, org)))
	b.work()
	require.Len(t, fixture.Impacts(t, b.Pool, org, "SLL"), 2, "it is reversed in 2025")
	closeYear(2025, map[string]int64{"SLL": 0, "EUR": -1000})
}
