package books_test

import (
	"context"
	"fmt"
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

// What belongs to a closed month and was posted later is listed: on a later day by the policy, or in
// it when it was opened again; and nothing else is.
func TestAdjustmentsOfAClosedMonth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march := books.Month(2026, 3)
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Year(2026)...))
	require.NoError(t, second(books.SetClosedPeriodPolicy(ctx, b.Pool, org, models.PolicyFirstOpenDay)))
	b.posted("before", models.NewDate(2026, 3, 1))
	b.posted("deleted", models.NewDate(2026, 3, 2))
	b.posted("changed", models.NewDate(2026, 3, 3))
	list := func() []string {
		t.Helper()
		found, _, err := books.Adjustments(ctx, b.Pool, org, march, books.AdjustmentOptions{})
		require.NoError(t, err)
		shown := []string{}
		for _, a := range found {
			shown = append(shown, fmt.Sprintf("%s %s %s %s→%s %s %s", a.DocumentID, a.Kind, a.Reason, a.DocumentDate, a.PostingDate, a.Debits, a.Currency))
		}
		return shown
	}
	assert.Empty(t, list(), "it was never closed")
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})))

	b.posted("late", models.NewDate(2026, 3, 31))
	b.posted("april", models.NewDate(2026, 4, 1))
	b.posted("late-deleted", models.NewDate(2026, 3, 30))
	remove := func(document string) {
		b.tx(func(ctx context.Context, tx pgx.Tx) {
			require.NoError(t, second(store.MarkDocumentDeleted(ctx, tx, org, document)))
		})
		b.work()
	}
	remove("late-deleted")
	fixture.Ready(t, b.Pool, func() *models.Document {
		d := fixture.Invoice(org, "changed", 2000)
		d.IssueDate = models.NewDate(2026, 3, 3)
		return d
	}())
	b.work()
	remove("deleted")
	require.NoError(t, second(books.OpenPeriod(ctx, b.Pool, org, march, books.OpenOptions{})))
	b.posted("again", models.NewDate(2026, 3, 4))
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})))
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, 4), books.CloseOptions{})))
	b.posted("later", models.NewDate(2026, 3, 5))
	b.posted("april-late", models.NewDate(2026, 4, 5))
	remove("late")
	remove("april")
	assert.Equal(t, []string{
		"late post later_day 2026-03-31→2026-04-01 1190 EUR",
		"late-deleted post later_day 2026-03-30→2026-04-01 1190 EUR",
		"late-deleted reverse later_day 2026-03-30→2026-04-01 1190 EUR",
		"changed reverse later_day 2026-03-03→2026-04-01 1190 EUR",
		"changed post later_day 2026-03-03→2026-04-01 2380 EUR",
		"deleted reverse later_day 2026-03-02→2026-04-01 1190 EUR",
		"again post opened_again 2026-03-04→2026-03-04 1190 EUR",
		"later post later_day 2026-03-05→2026-05-01 1190 EUR",
		"late reverse later_day 2026-03-31→2026-05-01 1190 EUR",
	}, list())
	all, _, err := books.Adjustments(ctx, b.Pool, org, march, books.AdjustmentOptions{})
	require.NoError(t, err)
	rest, next, err := books.Adjustments(ctx, b.Pool, org, march, books.AdjustmentOptions{After: all[0].ImpactID, Limit: 2})
	require.NoError(t, err)
	assert.Equal(t, all[1:3], rest)
	assert.Equal(t, all[2].ImpactID, next)
	_, _, err = books.Adjustments(ctx, b.Pool, org, books.Month(2027, 3), books.AdjustmentOptions{})
	require.ErrorIs(t, err, books.ErrPeriodNotFound)
}

// correcting returns how the document "a" is written with an amount and a day of a month and worked,
// and what the list of a period shows, where closed days move what is posted to the first open one.
func (b *bundle) correcting() (write func(net int64, month time.Month), list func(models.Period) []string) {
	b.t.Helper()
	ctx := b.t.Context()
	require.NoError(b.t, addPeriods(ctx, b.Pool, org, books.Month(2026, 3), books.Month(2026, 4), books.Month(2026, 5)))
	require.NoError(b.t, second(books.SetClosedPeriodPolicy(ctx, b.Pool, org, models.PolicyFirstOpenDay)))
	write = func(net int64, month time.Month) {
		d := fixture.Invoice(org, "a", net)
		d.IssueDate = models.NewDate(2026, month, 10)
		fixture.Ready(b.t, b.Pool, d)
		b.work()
	}
	list = func(of models.Period) (shown []string) {
		b.t.Helper()
		found, _, err := books.Adjustments(ctx, b.Pool, org, of, books.AdjustmentOptions{})
		require.NoError(b.t, err)
		for _, a := range found {
			shown = append(shown, fmt.Sprintf("%s %s %s", a.Kind, a.PostingDate, a.Debits))
		}
		return shown
	}
	return write, list
}

// A correction that stays behind a reversal on a later day, as the month was opened again, belongs to
// the month's list with that reversal, and so does what takes it back later.
func TestAdjustmentsBehindAMovedReversal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march, april := books.Month(2026, 3), books.Month(2026, 4)
	write, list := b.correcting()
	write(1000, time.March)
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})))
	write(2000, time.March)
	require.NoError(t, second(books.OpenPeriod(ctx, b.Pool, org, march, books.OpenOptions{})))
	write(3000, time.March)
	want := []string{
		"reverse 2026-04-01 1190", "post 2026-04-01 2380", "reverse 2026-04-01 2380", "post 2026-04-01 3570",
	}
	assert.Equal(t, want, list(march))
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, april, books.CloseOptions{Force: true})))
	require.NoError(t, second(books.OpenPeriod(ctx, b.Pool, org, march, books.OpenOptions{})))
	write(4000, time.March)
	want = append(want, "reverse 2026-05-01 3570", "post 2026-05-01 4760")
	assert.Equal(t, want, list(march))
	assert.Equal(t, want[4:5], list(april), "what is posted belongs to March")
	// With a date of another month it belongs to that.
	write(5000, time.May)
	assert.Equal(t, append(want, "reverse 2026-05-01 4760"), list(march))
}

// So is what is posted behind the reversal of a document that came after the closing.
func TestAdjustmentsOfALateDocument(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march, april := books.Month(2026, 3), books.Month(2026, 4)
	write, list := b.correcting()
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})))
	write(1000, time.March)
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, april, books.CloseOptions{Force: true})))
	require.NoError(t, second(books.OpenPeriod(ctx, b.Pool, org, march, books.OpenOptions{})))
	write(2000, time.March)
	assert.Equal(t, []string{"post 2026-04-01 1190", "reverse 2026-05-01 1190", "post 2026-05-01 2380"}, list(march))
}

// The list says what is open, and what of it has to be done.
func TestClosingListSaysWhatIsOpen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march := books.Month(2026, 3)
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Month(2026, 2), march))
	require.NoError(t, second(b.Pool.Exec(ctx, `UPDATE daybook.accounts SET role = CASE code WHEN '1200' THEN 'suspense' ELSE 'rounding' END`)))
	b.posted("march", models.NewDate(2026, 3, 31))
	b.posted("april", models.NewDate(2026, 4, 1))
	fixture.Ready(t, b.Pool, fixture.Unbalanced(org, "broken"))
	b.work()
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "waits", 1000))
	require.NoError(t, second(store.EnqueueAccountingJob(ctx, b.Pool, org, "elsewhere", 1, nil, models.PriorityNormal)))

	open := func() []string {
		t.Helper()
		_, list, err := books.ClosingList(ctx, b.Pool, org, march)
		require.NoError(t, err)
		shown := []string{}
		for _, i := range list {
			shown = append(shown, fmt.Sprintf("%s %t %d %s %s %s %v", i.Code, i.Required, i.Count, i.Account, i.Amount, i.Currency, i.Examples))
			assert.NotEmpty(t, i.WhatToDo)
		}
		return shown
	}
	want := []string{
		"UNPOSTED_FAILED true 1  <nil>  [broken]", "UNPOSTED_WAITING true 1  <nil>  [waits]", "OPEN_BEFORE true 1  <nil>  [2026-02-01]",
		"UNDATED false 1  <nil>  [elsewhere]", "SUSPENSE false 1 1200 1190 EUR []", "ROUNDING false 1 3800 -190 EUR []",
		"ROUNDING false 1 4400 -1000 EUR []",
	}
	assert.Equal(t, want, open())
	c, err := books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{Force: true})
	require.NoError(t, err)
	assert.Len(t, c.Open, len(want))
	assert.Contains(t, string(c.Closing.List), `"code": "UNPOSTED_FAILED"`)
	assert.Equal(t, want, open(), "of a closed period, what is open now")
	_, _, err = books.Adjustments(ctx, b.Pool, org, models.Period{}, books.AdjustmentOptions{})
	require.ErrorIs(t, err, books.ErrInvalid)

	// By SQL, the database looks by itself.
	_, err = b.Pool.Exec(ctx, `UPDATE daybook.periods SET state = 'closed', closed_at = now() WHERE starts_on = '2026-02-01'`)
	require.NoError(t, err)
	last := b.closings()[1]
	assert.Equal(t, last.DBRole, last.ClosedBy)
	assert.JSONEq(t, `[{"code": "UNDATED", "count": 1, "examples": ["elsewhere"], "required": false,
		"what_to_do": "Have them posted if they belong to the period"}]`, string(last.List))
}

// The list has exchange differences to book, rates that are missing, and taxes that are not posted
// as documents state them.
func TestClosingListHasExchangeDifferencesAndTaxes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march := books.Month(2026, 3)
	require.NoError(t, addPeriods(ctx, b.Pool, org, march))
	require.NoError(t, second(b.Pool.Exec(ctx, `UPDATE daybook.accounts SET role = 'receivable' WHERE code = '1200'`)))
	require.NoError(t, second(b.Pool.Exec(ctx, `UPDATE daybook.accounts SET role = 'tax' WHERE code = '1600'`)))
	require.NoError(t, second(b.Pool.Exec(ctx, `UPDATE daybook.organizations SET currency = 'EUR'`)))
	require.NoError(t, second(b.Pool.Exec(ctx, `
INSERT INTO daybook.rates (org_id, currency, valid_on, rate, source, actor) VALUES ($1, 'USD', '2026-03-01', 0.9, 'test', 'test'), ($1, 'USD', '2026-03-10', 0.8, 'test', 'test')`, org)))
	for n, currency := range []string{"USD", "CHF"} {
		for m, kind := range []models.DocumentType{models.DocumentInvoice, models.DocumentCreditNote} {
			d := fixture.Invoice(org, fmt.Sprintf("%s-%s", kind, currency), 1000)
			d.Type, d.Currency, d.IssueDate = kind, currency, models.NewDate(2026, 3, 1+20*m+n)
			fixture.Ready(t, b.Pool, d)
		}
	}
	b.work()
	for _, currency := range []string{"USD", "CHF"} {
		require.NoError(t, second(books.Reconcile(ctx, b.Pool, org, []string{"invoice-" + currency, "credit_note-" + currency}, "")))
	}
	_, list, err := books.ClosingList(ctx, b.Pool, org, march)
	require.NoError(t, err)
	shown := []string{}
	for _, i := range list {
		shown = append(shown, fmt.Sprintf("%s %t %d %s %s %v", i.Code, i.Required, i.Count, i.Amount, i.Currency, i.Examples))
	}
	assert.Equal(t, []string{
		"EXCHANGE false 1 -119 EUR [credit_note-USD]", "RATES false 1 <nil>  [CHF]",
	}, shown)
}
