package books_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/models"
)

// Days are written in one form, whatever the database's DateStyle and TimeZone: in the ids of
// journals, in closings, in what the audit finds and in errors.
func TestDaysHaveOneForm(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRates()
	ctx := t.Context()
	fixture.Ready(t, b.Pool, in("USD", sold(org, "a", "Ada", 1, 10000)), in("USD", pays(org, "p", "Ada", 6, 10000)))
	b.work()
	b.reconcile("a", "p")
	_, err := b.Pool.Exec(ctx, `
ALTER DATABASE `+b.Name+` SET "DateStyle" = 'SQL, DMY'; ALTER DATABASE `+b.Name+` SET "TimeZone" = 'Pacific/Kiritimati'`)
	require.NoError(t, err)
	pool, err := pgxpool.New(ctx, b.URL)
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	done, err := books.BookExchangeDifferences(ctx, pool, org,
		books.ExchangeBooking{Until: models.NewDate(2026, 3, 31), Adjustment: "1370", Gain: "4920", Loss: "6960"})
	require.NoError(t, err)
	assert.Equal(t, "exchange:2026-03-31/1", done.DocumentID)
	b.work()
	require.NoError(t, addPeriods(ctx, pool, org, books.Year(2026)...))
	err = addPeriods(ctx, pool, org, models.Period{StartsOn: models.NewDate(2026, 3, 2), EndsOn: models.NewDate(2026, 3, 9)})
	require.ErrorContains(t, err, "the period from 2026-03-02 to 2026-03-09 overlaps")
	c, err := books.ClosePeriod(ctx, pool, org, books.Month(2026, 12), books.CloseOptions{Force: true})
	require.NoError(t, err)
	assert.Equal(t, "{[1900-01-01,2026-01-01),[2026-12-01,2027-01-01)}", c.Closing.Days)
	assert.Equal(t, c.Closing.Days, c.Closing.ClosedDays)
	_, err = books.CloseYear(ctx, pool, org, 2026, books.CloseYearOptions{To: "2900"})
	require.ErrorContains(t, err, "the 2026-12-31, on which")
	require.NoError(t, second(books.OpenPeriod(ctx, pool, org, books.Month(2026, 12), books.OpenOptions{})))
	list, err := books.Closings(ctx, pool, org, books.ClosingOptions{})
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, "{}", list[1].ClosedDays)

	_, err = pool.Exec(ctx, `
INSERT INTO daybook.closed_item_days (org_id, last_day, accounts) VALUES ($1, '2026-01-31', '{}')`, org)
	require.NoError(t, err)
	_, err = pool.Exec(ctx, `UPDATE daybook.documents SET updated_at = '3000-01-31 20:00:00+00' WHERE id = 'a'`)
	require.NoError(t, err)
	r, err := audit.Run(ctx, pool, audit.Options{})
	require.NoError(t, err)
	var found []string
	for _, check := range r.Checks {
		for _, f := range check.Findings {
			found = append(found, f.Detail)
		}
	}
	assert.Equal(t, []string{
		"the document was changed at 3000-01-31 20:00:00+00 without being marked ready, and version 1 was posted before",
		"it is kept what is open on 2026-01-31, and not all days until then are closed",
	}, found)
}
