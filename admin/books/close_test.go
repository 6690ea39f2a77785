package books_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// A closing that would shut out documents whose jobs failed or wait names them, and needs force.
func TestClosingNamesWhatIsNotPosted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Month(2026, 2), books.Month(2026, 3)))
	write := func(id string, issued models.Date, change func(d *models.Document)) {
		d := fixture.Invoice(org, id, 1000)
		d.IssueDate = issued
		change(d)
		fixture.Ready(t, b.Pool, d)
	}
	plain := func(*models.Document) {}
	write("posted", models.NewDate(2026, 3, 3), plain)
	b.work()
	write("failed", models.NewDate(2026, 3, 4), func(d *models.Document) { d.Type = "order" })
	write("before", models.NewDate(2025, 12, 31), func(d *models.Document) { d.Type = "order" })
	b.work()
	write("open", models.NewDate(2026, 2, 28), plain) // February is open
	write("later", models.NewDate(2026, 4, 1), plain)
	write("waits", models.NewDate(2026, 3, 31), plain)
	write("value", models.NewDate(2026, 4, 2),
		func(d *models.Document) { d.ValueDate = new(models.NewDate(2026, 3, 30)) })
	write("posted", models.NewDate(2026, 4, 3), plain) // its present posting is of March
	// A document in a table of the application: nothing is known of it.
	_, err := store.EnqueueAccountingJob(ctx, b.Pool, org, "elsewhere", 1, nil, models.PriorityNormal)
	require.NoError(t, err)

	_, err = books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, time.March), books.CloseOptions{})
	require.ErrorIs(t, err, books.ErrUnposted)
	var refused *books.UnpostedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, [3]int64{2, 3, 1}, [3]int64{refused.Failed, refused.Waiting, refused.UnknownDates})
	assert.Contains(t, err.Error(), "closing the period from 2026-03-01 to 2026-03-31 would shut out 5 documents that "+
		"are not posted (2 failed, 3 wait): "+
		"before of 2025-12-31 (failed, NO_MATCHING_RULE), failed of 2026-03-04 (failed, NO_MATCHING_RULE), waits of "+
		"2026-03-31 (pending), value of 2026-04-02 (pending), "+
		"posted of 2026-04-03 (pending). Have them posted first, or force the closing (--force)")
	periods, err := books.Periods(ctx, b.Pool, org)
	require.NoError(t, err)
	assert.Equal(t, models.PeriodOpen, periods[1].State, "the refusal closed nothing")

	c, err := books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, time.March), books.CloseOptions{Force: true})
	require.NoError(t, err)
	assert.Equal(t, models.PeriodClosed, c.State)
	assert.EqualValues(t, 5, c.Unposted.Failed+c.Unposted.Waiting)
	c, err = books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, time.March), books.CloseOptions{})
	require.NoError(t, err, "a second call changes nothing")
	assert.Nil(t, c.Unposted)
	c, err = books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, time.February), books.CloseOptions{Force: true})
	require.NoError(t, err)
	assert.EqualValues(t, 1, c.Unposted.Waiting, "what March shut out is not named again")
}

// Many documents are counted, and some are named.
func TestManyUnpostedDocumentsAreCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, addPeriods(t.Context(), b.Pool, org, books.Month(2026, 3)))
	for n := range 2 * 15 {
		fixture.Ready(t, b.Pool, fixture.Invoice(org, fmt.Sprintf("inv-%02d", n), 1000))
	}
	_, err := books.ClosePeriod(t.Context(), b.Pool, org, books.Month(2026, 3), books.CloseOptions{})
	require.ErrorContains(t, err, "30 documents that are not posted (0 failed, 30 wait): inv-00 of 2026-03-14 (pending)")
	require.ErrorContains(t, err, "inv-19 of 2026-03-14 (pending), and 10 more")
}

// Only dates that books can have make a period, and the zero value of a date is none.
func TestPeriodsHaveDatesOfTheRange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.Dump(t)
	day := models.NewDate(2026, 3, 1)
	for message, p := range map[string]models.Period{
		"needs its first and its last day":          {EndsOn: day},
		"first and its last day":                    {StartsOn: day},
		"date 0001-01-01: want one from 1900-01-01": {StartsOn: models.NewDate(1, 1, 1), EndsOn: day},
		"date 3000-01-01: want one from 1900-01-01": {StartsOn: day, EndsOn: models.NewDate(3000, 1, 1)},
	} {
		err := addPeriods(t.Context(), b.Pool, org, p)
		require.ErrorIs(t, err, books.ErrInvalid, message)
		assert.ErrorContains(t, err, message)
	}
	require.ErrorIs(t, second(books.ClosePeriod(t.Context(), b.Pool, org, models.Period{}, books.CloseOptions{})),
		books.ErrInvalid)
	require.ErrorIs(t, second(books.OpenPeriod(t.Context(), b.Pool, org, models.Period{}, books.OpenOptions{})), books.ErrInvalid)
	assert.Equal(t, before, b.Dump(t))
	_, err := b.Pool.Exec(t.Context(),
		`INSERT INTO daybook.periods (org_id, starts_on, ends_on) VALUES ($1, '0001-01-01', '2026-03-01')`, org)
	assert.ErrorContains(t, err, "dates_are_bookable")
}

// A day that was closed because it was in no period comes back with a period that is added for it.
func TestAPeriodIsAddedForWhatFailed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, addPeriods(t.Context(), b.Pool, org, books.Month(2026, 4)))
	require.NoError(t, second(books.ClosePeriod(t.Context(), b.Pool, org, books.Month(2026, 4), books.CloseOptions{})))
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "march", 1000))
	assert.Equal(t, 1, b.work().Failed)
	require.NoError(t, addPeriods(t.Context(), b.Pool, org, books.Month(2026, 3)))
	assert.Equal(t, 1, b.work().Completed)
}

// datedRules post sales on the tenth of March, or five days after their issue.
const datedRules = `
ruleset: dated
rules:
  - id: sale
    when: doc.type == "invoice"
    date: 'doc.counterparty == "later" ? date("2026-03-10") : doc.issue_date + duration("120h")'
    lines:
      - {id: receivable, side: debit, account: "1200", amount: doc.payable}
      - {id: revenue, side: credit, account: "4400", amount: doc.payable}
`

// A closing sees the posting dates that rules compute, of jobs that wait or failed.
func TestClosingSeesDatesThatRulesCompute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	require.NoError(t, second(books.ApplyRules(ctx, b.Pool, org, []byte(datedRules), books.ApplyOptions{})))
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Month(2026, 2), books.Month(2026, 3), books.Month(2026, 4)))
	write := func(id string, issued models.Date, change func(d *models.Document)) {
		d := fixture.Invoice(org, id, 1000)
		d.IssueDate = issued
		change(d)
		fixture.Ready(t, b.Pool, d)
	}
	write("waits", models.NewDate(2026, 2, 27), func(*models.Document) {})
	write("far", models.NewDate(2026, 4, 20), func(d *models.Document) { d.Content.Counterparty = "later" })
	write("other", models.NewDate(2026, 4, 20), func(*models.Document) {})
	_, err := books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, time.March), books.CloseOptions{})
	require.ErrorIs(t, err, books.ErrUnposted)
	require.ErrorContains(t, err,
		"2 documents that are not posted (0 failed, 2 wait): waits of 2026-03-04 (pending), far of 2026-03-10 (pending)")
	b.work()
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, time.March), books.CloseOptions{})))
}

// A period that is added behind a gap closes the gap: not while documents of these days are
// unposted.
func TestAddingAPeriodNamesWhatItShutsOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Month(2026, 1)))
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, 1), books.CloseOptions{})))
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "march", 1000))
	before := b.Dump(t)
	err := addPeriods(ctx, b.Pool, org, books.Month(2026, 4))
	require.ErrorIs(t, err, books.ErrUnposted)
	require.ErrorContains(t, err, "adding the period from 2026-04-01 to 2026-04-30 would shut out 1 document that is "+
		"not posted (0 failed, 1 wait): march of 2026-03-14 (pending). "+
		"It closes the days in no period before it. Add a period for those days first")
	assert.Equal(t, before, b.Dump(t))
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Month(2026, 4), books.Month(2026, 2), books.Month(2026, 3)))
	assert.Equal(t, 1, b.work().Completed)
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Month(2026, 8)), "what is posted is not shut out")
}

// A change of a period that is so already says that it changed nothing.
func TestUnchangedPeriodsAreUnchanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march := books.Month(2026, 3)
	require.NoError(t, addPeriods(ctx, b.Pool, org, march))
	for _, changed := range []bool{true, false} {
		c, err := books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})
		require.NoError(t, err)
		assert.Equal(t, changed, c.Changed)
		assert.Equal(t, models.PeriodClosed, c.State)
	}
	for _, changed := range []bool{true, false} {
		c, err := books.OpenPeriod(ctx, b.Pool, org, march, books.OpenOptions{})
		require.NoError(t, err)
		assert.Equal(t, changed, c.Changed)
		assert.Equal(t, models.PeriodOpen, c.State)
	}
	for _, changed := range []bool{true, false} {
		c, err := books.SetClosedPeriodPolicy(ctx, b.Pool, org, models.PolicyFirstOpenDay)
		require.NoError(t, err)
		assert.Equal(t, changed, c.Changed)
	}
}

// A command that writes a document for an open day is waited for by a closing of that day, which then
// sees the document: it was told to be posted, and must not be shut out unseen.
func TestClosingWaitsForWhatIsBeingWritten(t *testing.T) {
	t.Parallel()
	on := models.NewDate(2026, 3, 31)
	for name, write := range map[string]func(t *testing.T, db books.DB){
		"a journal": func(t *testing.T, db books.DB) {
			require.NoError(t, second(books.PutJournal(t.Context(), db, org, books.Journal{
				Date: on, Currency: "EUR", Reason: "test", By: "test",
				Entries: []models.JournalEntry{{Account: "1370", Amount: 1}, {Account: "4400", Amount: -1}},
			})))
		},
		"exchange differences": func(t *testing.T, db books.DB) {
			done, err := books.BookExchangeDifferences(t.Context(), db, org,
				books.ExchangeBooking{Until: on, Adjustment: "1370", Gain: "4920", Loss: "6960"})
			require.NoError(t, err)
			require.NotEmpty(t, done.DocumentID)
		},
		"more than one": func(t *testing.T, db books.DB) { // with a closing that waits between them
			require.NoError(t, second(books.BookExchangeDifferences(t.Context(), db, org,
				books.ExchangeBooking{Until: on, Adjustment: "1370", Gain: "4920", Loss: "6960"})))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.withRates()
			ctx := t.Context()
			require.NoError(t, addPeriods(ctx, b.Pool, org, books.Month(2026, 3)))
			fixture.Ready(t, b.Pool, in("USD", sold(org, "a", "Ada", 1, 10000)), in("USD", pays(org, "p", "Ada", 6, 10000)))
			b.work()
			b.reconcile("a", "p")
			tx, err := b.Pool.Begin(ctx)
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
			write(t, books.In(tx))
			closed := make(chan error, 1)
			go func() {
				closed <- second(books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, 3), books.CloseOptions{}))
			}()
			b.awaitLocked(1)
			if name == "more than one" {
				require.NoError(t, second(books.CloseYear(ctx, books.In(tx), org, 2026, books.CloseYearOptions{Undo: true})))
			}
			require.NoError(t, tx.Commit(ctx))
			require.ErrorIs(t, <-closed, books.ErrUnposted)
			b.work()
			require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, 3), books.CloseOptions{})))
		})
	}
}

// awaitLocked waits until so many sessions wait for locks.
func (b *bundle) awaitLocked(n int) {
	b.t.Helper()
	const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	require.Eventually(b.t, func() bool { return fixture.Count(b.t, b.Pool, waiting) == n }, pgtest.Patience, 5*time.Millisecond)
}

// A program and plain SQL that change a period at once wait for each other in one order.
func TestClosingBesidePlainSQL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march := books.Month(2026, 3)
	require.NoError(t, addPeriods(ctx, b.Pool, org, march))
	for _, change := range []func() error{
		func() error { return second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})) },
		func() error { return second(books.OpenPeriod(ctx, b.Pool, org, march, books.OpenOptions{})) },
	} {
		posting, err := b.Pool.Begin(ctx)
		require.NoError(t, err)
		defer func() { _ = posting.Rollback(context.WithoutCancel(ctx)) }()
		require.NoError(t, ledgerdb.UseConfiguration(ctx, posting, org))
		done := make(chan error, 2)
		go func() { done <- change() }()
		b.awaitLocked(1)
		go func() {
			done <- second(b.Pool.Exec(ctx, `UPDATE daybook.periods SET updated_at = clock_timestamp() WHERE org_id = $1`, org))
		}()
		b.awaitLocked(2)
		require.NoError(t, posting.Commit(ctx))
		require.NoError(t, errors.Join(<-done, <-done))
	}
}

// Plain SQL that changes several periods in one statement takes their rows in any order, and the
// configuration after the first: a program waits for it, whichever period the program closes.
func TestClosingBesidePlainSQLOfSeveralPeriods(t *testing.T) {
	t.Parallel()
	february, march := books.Month(2026, 2), books.Month(2026, 3)
	for name, order := range map[string][]models.Period{"in order": {february, march}, "in another order": {march, february}} {
		for i, closing := range order {
			t.Run(fmt.Sprintf("%s, %d", name, i+1), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				ctx := t.Context()
				require.NoError(t, addPeriods(ctx, b.Pool, org, order...))
				posting, err := b.Pool.Begin(ctx)
				require.NoError(t, err)
				defer func() { _ = posting.Rollback(context.WithoutCancel(ctx)) }()
				require.NoError(t, ledgerdb.UseConfiguration(ctx, posting, org))
				done := make(chan error, 2)
				go func() {
					// Without indexes, it takes the rows in the order in which they were written.
					done <- second(b.Pool.Exec(ctx, `
SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off;
UPDATE daybook.periods SET state = 'closed', closed_at = clock_timestamp() WHERE org_id = '`+org+`'`))
				}()
				b.awaitLocked(1)
				go func() {
					done <- second(books.ClosePeriod(ctx, b.Pool, org, closing, books.CloseOptions{}))
				}()
				b.awaitLocked(2)
				require.NoError(t, posting.Commit(ctx))
				require.NoError(t, errors.Join(<-done, <-done))
			})
		}
	}
}

// What uses an organization's configuration, such as a journal that is written, waits for no change of
// another one, and keeps none waiting, though both share a lock of posting.
func TestOthersDoNotWaitForAClosing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var other string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `
SELECT 'other_' || n FROM generate_series(1, 100000) AS n WHERE hashtext('other_' || n) & 63 = hashtext($1) & 63 LIMIT 1`, org).Scan(&other))
	fixture.Organization(t, b.Pool, other)
	b.tx(func(ctx context.Context, closing pgx.Tx) {
		require.NoError(t, second(closing.Exec(ctx, `SELECT daybook.lock_configuration($1)`, org)))
		soon, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		require.NoError(t, second(books.PutJournal(soon, b.Pool, other, rent("", 100))))
	})
	b.tx(func(ctx context.Context, journal pgx.Tx) {
		require.NoError(t, ledgerdb.UseConfiguration(ctx, journal, other))
		closing := func(of string) error {
			return second(b.Pool.Exec(ctx, `SELECT set_config('lock_timeout', '1s', true), daybook.lock_configuration($1)`, of))
		}
		require.NoError(t, closing(org))
		require.ErrorContains(t, closing(other), "lock timeout", "its own")
	})
}
