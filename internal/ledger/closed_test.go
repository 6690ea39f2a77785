package ledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/days"
	"github.com/daybook-dev/daybook/models"
)

func month(m time.Month) models.Period { return days.OfMonth(2026, m) }

func (b *bundle) open(startsOn models.Date) {
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		_, err := ledgerdb.OpenPeriod(ctx, tx, org, startsOn)
		require.NoError(b.t, err)
	})
}

// dated has an invoice of a day posted, and returns the code of its job; empty: it is posted.
func (b *bundle) dated(id string, day models.Date) models.ErrorCode {
	b.t.Helper()
	d := fixture.Invoice(org, id, 1000)
	d.IssueDate = day
	fixture.Ready(b.t, b.Pool, d)
	b.work()
	if job := fixture.Job(b.t, b.Pool, org, id); job.LastErrorCode != nil {
		return *job.LastErrorCode
	}
	return ""
}

// Once a period is closed, nothing is posted before it, in a gap between closed periods, or up to
// the first open one, unless an open period has the day.
func TestClosingClosesWhatIsBefore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const closed, open = models.CodePeriodClosed, models.ErrorCode("")
	before := map[models.Date]models.ErrorCode{
		models.NewDate(2025, 12, 31): closed, models.NewDate(1900, 1, 1): closed,
		models.NewDate(2026, 1, 31): open, models.NewDate(2026, 2, 1): closed, // January is open, February in no period
		march(14): closed, models.NewDate(2026, 4, 30): closed, models.NewDate(2026, 5, 1): closed, // April is in no period
		// nor is June, and July is the first open one
		models.NewDate(2026, 6, 30): closed, models.NewDate(2026, 7, 1): open,
		models.NewDate(2026, 8, 1): open, models.NewDate(2999, 12, 31): open,
	}
	b.addPeriods(month(1), month(3), month(5), month(7))
	assert.Equal(t, open, b.dated("early", models.NewDate(2025, 6, 1)), "nothing is closed yet")
	b.close(march(1))
	b.close(month(5).StartsOn)
	for day, want := range before {
		assert.Equal(t, want, b.dated(day.String(), day), day)
	}
	assert.Contains(t, *fixture.Job(t, b.Pool, org, "2025-12-31").LastError, "lies in no period")

	// The database refuses by itself what another program inserts.
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
VALUES (1000000, $1, 'other', 1, 1, 'post', '2025-12-31', '2025-12-31', 0, 'job', 1)`, org)
	require.Equal(t, "DB005", store.SQLState(err), "%v", err)

	// An open period for the day opens it, and so does opening what is behind it.
	b.addPeriods(month(2))
	assert.Equal(t, open, b.dated("2026-02-01", models.NewDate(2026, 2, 1)))
	b.open(march(1))
	b.open(month(5).StartsOn)
	assert.Equal(t, open, b.dated("2025-12-31", models.NewDate(2025, 12, 31)))
}

func TestWhatIsBeforeIsPostedOnTheFirstOpenDay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addPeriods(month(3), month(5))
	assert.Empty(t, b.dated("early", models.NewDate(2025, 6, 1)))
	b.close(march(1))
	b.policy(models.PolicyFirstOpenDay)
	for _, day := range []models.Date{
		models.NewDate(1900, 1, 1), models.NewDate(2026, 2, 28), march(31),
		models.NewDate(2026, 4, 15),
	} {
		assert.Empty(t, b.dated(day.String(), day))
		assert.Equal(t, []string{"2026-05-01"}, b.days(day.String()),
			"the first open day is the first of the first open period")
	}
	// A reversal of what was posted before goes there as well.
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		_, err := store.MarkDocumentDeleted(ctx, tx, org, "early")
		require.NoError(t, err)
	})
	b.work()
	assert.Equal(t, []string{"2025-06-01", "2026-05-01"}, b.days("early"))
	// Nothing is left where everything is closed.
	b.addPeriods(models.Period{StartsOn: models.NewDate(2026, 6, 1), EndsOn: models.NewDate(2999, 12, 31)})
	b.close(models.NewDate(2026, 6, 1))
	b.close(month(5).StartsOn)
	assert.Equal(t, models.CodePeriodClosed, b.dated("late", march(1)))
	assert.Contains(t, *fixture.Job(t, b.Pool, org, "late").LastError, "no day from 2026-03-01 on is open")
	assert.Equal(t, models.CodePeriodClosed, b.dated("2026-02-28", march(2)), "nor for a reversal")
}

// Another program that closes a period by SQL waits for postings, and workers see it.
func TestAPeriodIsClosedBySQL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addPeriods(month(3))
	assert.Empty(t, b.dated("one", march(1)))
	posting, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = ledgerdb.UseConfigurations(t.Context(), posting, []string{org})
	require.NoError(t, err)
	closed := make(chan error, 1)
	go func() {
		_, err := b.Pool.Exec(t.Context(), `UPDATE daybook.periods SET state = 'closed', closed_at = clock_timestamp()`)
		closed <- err
	}()
	require.Eventually(t, func() bool {
		return fixture.Count(t, b.Pool,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`) == 1
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, posting.Commit(t.Context()))
	require.NoError(t, <-closed)
	assert.Equal(t, models.CodePeriodClosed, b.dated("two", march(2)))
}

// What a closed month had is reversed in a later one. When the month is open again, a correction does
// not go back to it: the document would be in it twice, and the later month would have less than
// nothing.
func TestACorrectionStaysBehindAMovedReversal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		_, err := ledgerdb.SetClosedPeriodPolicy(ctx, tx, org, models.PolicyFirstOpenDay)
		require.NoError(t, err)
	})
	b.addPeriods(month(3), month(4), month(5))
	write := func(amount int64) {
		d := fixture.Invoice(org, "corrected", amount)
		d.IssueDate = march(10)
		fixture.Ready(t, b.Pool, d)
		b.work()
	}
	sum := func(m time.Month) (n int64) {
		require.NoError(t, b.Pool.QueryRow(t.Context(), `
SELECT coalesce(sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END), 0)::bigint
  FROM daybook.entries e JOIN daybook.impacts i ON i.id = e.impact_id
 WHERE i.document_id = 'corrected' AND e.account_code = '1200' AND i.posting_date BETWEEN $1 AND $2`,
			month(m).StartsOn.Time(), month(m).EndsOn.Time()).Scan(&n))
		return n
	}
	write(1000)
	had := sum(time.March)
	b.close(march(1))
	write(2000)
	assert.Equal(t, [2]int64{had, had}, [2]int64{sum(time.March), sum(time.April)})
	b.open(march(1))
	write(3000)
	assert.Equal(t, [2]int64{had, 2 * had}, [2]int64{sum(time.March), sum(time.April)}, "not once more in March")

	// The later month is closed, too: it goes on behind that.
	b.close(month(4).StartsOn)
	b.open(march(1))
	write(5000)
	assert.Equal(t, [3]int64{had, 2 * had, 2 * had}, [3]int64{sum(time.March), sum(time.April), sum(time.May)})
}
