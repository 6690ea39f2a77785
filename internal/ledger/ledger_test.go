package ledger_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const org = "org_1"

// bundle is a database with one organization, and an engine that posts.
type bundle struct {
	*pgtest.DB
	t      *testing.T
	engine *engine.Engine
	turns  int
}

func setup(t *testing.T) *bundle {
	t.Helper()
	db := pgtest.New(t)
	fixture.Organization(t, db.Pool, org)
	e := engine.New(store.New(db.Pool), ledger.New(nil), engine.Options{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(e.Close)
	return &bundle{DB: db, t: t, engine: e}
}

// work processes everything that is due.
func (b *bundle) work() engine.Report {
	b.t.Helper()
	b.turns++
	turn := store.Turn{ID: fmt.Sprintf("run/0/%d", b.turns), Worker: "test", WorkflowRunID: "run"}
	r, err := b.engine.Process(b.t.Context(), engine.TurnRequest{Turn: turn, Batch: 50, Length: time.Minute})
	require.NoError(b.t, err)
	return r
}

func (b *bundle) tx(f func(context.Context, pgx.Tx)) {
	b.t.Helper()
	fixture.Tx(b.t, b.Pool, f)
}

func (b *bundle) impacts(document string) []models.Impact {
	b.t.Helper()
	return fixture.Impacts(b.t, b.Pool, org, document)
}

func (b *bundle) confirmations() int {
	b.t.Helper()
	return fixture.Count(b.t, b.Pool, `SELECT count(*) FROM daybook.confirmations`)
}

// days returns the posting dates of a document's impacts.
func (b *bundle) days(document string) []string {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(),
		`SELECT posting_date::text FROM daybook.impacts WHERE document_id = $1 ORDER BY seq`, document)
	require.NoError(b.t, err)
	days, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	return days
}

func march(day int) models.Date { return models.NewDate(2026, 3, day) }

func (b *bundle) addPeriods(periods ...models.Period) {
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		_, err := ledgerdb.AddPeriods(ctx, tx, org, periods)
		require.NoError(b.t, err)
	})
}

func (b *bundle) close(startsOn models.Date) {
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		require.NoError(b.t, ledgerdb.ClosePeriod(ctx, tx, org, startsOn))
	})
}

func (b *bundle) policy(p models.ClosedPeriodPolicy) (returned int) {
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		a, err := ledgerdb.SetClosedPeriodPolicy(ctx, tx, org, p)
		require.NoError(b.t, err)
		returned = a.Returned
	})
	return returned
}

func TestSameContentUnderANewVersionIsConfirmed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	b.work()
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	assert.Equal(t, 1, b.work().Completed)
	assert.Len(t, b.impacts("doc"), 1)
	assert.Equal(t, 1, b.confirmations())

	// Asked again for the confirmed version, nothing is left to do.
	_, err := store.MarkAccountingJobPending(t.Context(), b.Pool, org, "doc", nil, 0)
	require.NoError(t, err)
	assert.Equal(t, 1, b.work().Completed)
	assert.Equal(t, 1, b.confirmations())

	// A version that comes to something else reverses and posts anew.
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 2000))
	b.work()
	assert.Len(t, b.impacts("doc"), 3)
	assert.EqualValues(t, 2380, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
}

func TestRepostIsANewEpoch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	b.work()
	_, err := store.RepostAccountingJob(t.Context(), b.Pool, org, "doc")
	require.NoError(t, err)
	assert.Equal(t, 1, b.work().Completed)
	assert.Len(t, b.impacts("doc"), 3)
	assert.EqualValues(t, 1190, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts WHERE seq = 3 AND epoch = 1`))

	_, err = store.RepostAccountingJob(t.Context(), b.Pool, org, "nowhere")
	require.ErrorIs(t, err, store.ErrJobNotFound)
}

// TestRulesGoBackAndForth activates a second rule set and then the first again.
func TestRulesGoBackAndForth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	b.work()
	again := func() {
		_, err := store.MarkAccountingJobPending(t.Context(), b.Pool, org, "doc", nil, 0)
		require.NoError(t, err)
		require.Equal(t, 1, b.work().Completed)
	}
	renamed := []byte(string(sample.Rules()))
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		_, err := ledgerdb.ApplyRuleSet(ctx, tx, org, "sample", string(renamed)+"\n# the same, but for this line\n")
		require.NoError(t, err)
	})
	again()
	assert.Len(t, b.impacts("doc"), 1, "it comes to the same")
	assert.Equal(t, 1, b.confirmations())
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		_, err := ledgerdb.ActivateRuleSet(ctx, tx, org, 1)
		require.NoError(t, err)
	})
	again()
	assert.Len(t, b.impacts("doc"), 1)
}

func TestClosedPeriodFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addPeriods(models.Period{StartsOn: march(1), EndsOn: march(31)})
	b.close(march(1))
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	assert.Equal(t, 1, b.work().Failed)
	job := fixture.Job(t, b.Pool, org, "doc")
	assert.Equal(t, models.CodePeriodClosed, *job.LastErrorCode)
	assert.Contains(t, *job.LastError, "2026-03-14")

	var returned ledgerdb.Activated
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		var err error
		returned, err = ledgerdb.OpenPeriod(ctx, tx, org, march(1))
		require.NoError(t, err)
	})
	assert.Equal(t, 1, returned.Returned)
	assert.Equal(t, 1, b.work().Completed)
	assert.Equal(t, []string{"2026-03-14"}, b.days("doc"))
}

func TestFirstOpenDay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addPeriods(models.Period{StartsOn: march(1), EndsOn: march(31)},
		models.Period{StartsOn: models.NewDate(2026, 4, 1), EndsOn: models.NewDate(2026, 4, 30)})
	b.close(march(1))
	b.close(models.NewDate(2026, 4, 1))
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	assert.Equal(t, 1, b.work().Failed)
	assert.Equal(t, 1, b.policy(models.PolicyFirstOpenDay))
	assert.Equal(t, 1, b.work().Completed)
	assert.Equal(t, []string{"2026-05-01"}, b.days("doc"), "the first day after both")
}

// TestReversalIntoAClosedPeriod takes back what was posted before its period was closed.
func TestReversalIntoAClosedPeriod(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addPeriods(models.Period{StartsOn: march(1), EndsOn: march(31)})
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	b.work()
	b.close(march(1))
	b.policy(models.PolicyFirstOpenDay)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 2000))
	assert.Equal(t, 1, b.work().Completed)
	assert.Equal(t, []string{"2026-03-14", "2026-04-01", "2026-04-01"}, b.days("doc"))
	// The same content under a new version is still the same, though its date would be another one
	// now.
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 2000))
	assert.Equal(t, 1, b.work().Completed)
	assert.Len(t, b.impacts("doc"), 3)
}

func TestPeriods(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addPeriods(models.Period{StartsOn: march(1), EndsOn: march(31)})
	err := pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		_, err := ledgerdb.AddPeriods(t.Context(), tx, org,
			[]models.Period{{StartsOn: march(31), EndsOn: models.NewDate(2026, 4, 30)}})
		return err
	})
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "overlaps")
	err = pgx.BeginFunc(t.Context(), b.Pool,
		func(tx pgx.Tx) error { return ledgerdb.ClosePeriod(t.Context(), tx, org, march(2)) })
	require.ErrorIs(t, err, ledgerdb.ErrPeriodNotFound)
	err = pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		_, err := ledgerdb.AddPeriods(t.Context(), tx, org, []models.Period{{StartsOn: march(10), EndsOn: march(9)}})
		return err
	})
	require.ErrorIs(t, err, store.ErrInvalid)
	err = pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		_, err := ledgerdb.AddPeriods(t.Context(), tx, org, []models.Period{{StartsOn: march(1), EndsOn: march(9)}})
		return err
	})
	require.ErrorIs(t, err, store.ErrInvalid)
	// Closing twice is closing once.
	b.close(march(1))
	first, err := ledgerdb.Periods(t.Context(), b.Pool, org)
	require.NoError(t, err)
	b.close(march(1))
	second, err := ledgerdb.Periods(t.Context(), b.Pool, org)
	require.NoError(t, err)
	assert.Equal(t, first[0].ClosedAt, second[0].ClosedAt)
}

// TestClosingWaitsForPosting begins to close a period while a chunk posts into it, and lets another
// chunk come meanwhile.
func TestClosingWaitsForPosting(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addPeriods(models.Period{StartsOn: march(1), EndsOn: march(31)})
	ctx := t.Context()
	posting, err := b.Pool.Begin(ctx)
	require.NoError(t, err)
	used, err := ledgerdb.UseConfigurations(ctx, posting, []string{org})
	require.NoError(t, err)
	require.True(t, used[org])
	closed := make(chan error, 1)
	go func() {
		closed <- pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error { return ledgerdb.ClosePeriod(ctx, tx, org, march(1)) })
	}()
	require.Eventually(t, func() bool {
		return fixture.Count(t, b.Pool,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`) == 1
	}, pgtest.Patience, 5*time.Millisecond)

	// What comes now may overtake it once, by the organization's own lock, which then waits for that.
	second, err := b.Pool.Begin(ctx)
	require.NoError(t, err)
	used, err = ledgerdb.UseConfigurations(ctx, second, []string{org})
	require.NoError(t, err)
	require.True(t, used[org])
	require.NoError(t, posting.Commit(ctx))
	own := `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = daybook.lock_class('configurations')::oid AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	require.Eventually(t, func() bool { return fixture.Count(t, b.Pool, own) == 1 }, pgtest.Patience, 5*time.Millisecond)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	assert.Equal(t, 1, b.work().Rescheduled)
	assert.Equal(t, models.CodeConfigurationLocked, *fixture.Job(t, b.Pool, org, "doc").LastErrorCode)
	require.NoError(t, second.Commit(ctx))
	require.NoError(t, <-closed)
	_, err = b.Pool.Exec(ctx, `UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp()`)
	require.NoError(t, err)
	// The organization is left alone for a moment after its configuration was found locked.
	require.Eventually(t, func() bool { return b.work().Failed == 1 }, time.Minute, 20*time.Millisecond)
}

// TestPeriodsOfOneOrganization: periods and the policy of one organization are not those of
// another, whose periods have the same days.
func TestPeriodsOfOneOrganization(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const other = "org_2"
	one := models.Period{StartsOn: march(1), EndsOn: march(31)}
	for _, of := range []string{other, org} {
		b.tx(func(ctx context.Context, tx pgx.Tx) {
			added, err := ledgerdb.AddPeriods(ctx, tx, of, []models.Period{one})
			require.NoError(t, err)
			assert.Len(t, added, 1)
		})
	}
	b.close(march(1))
	b.policy(models.PolicyFirstOpenDay)
	stands := func(of string, want models.PeriodState, wantPolicy models.ClosedPeriodPolicy) {
		periods, err := ledgerdb.Periods(t.Context(), b.Pool, of)
		require.NoError(t, err)
		require.Len(t, periods, 1)
		assert.Equal(t, want, periods[0].State, of)
		policy, err := ledgerdb.ClosedPeriodPolicy(t.Context(), b.Pool, of)
		require.NoError(t, err)
		assert.Equal(t, wantPolicy, policy, of)
	}
	stands(org, models.PeriodClosed, models.PolicyFirstOpenDay)
	stands(other, models.PeriodOpen, models.PolicyFail)
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		require.NoError(t, ledgerdb.ClosePeriod(ctx, tx, other, march(1)))
		_, err := ledgerdb.OpenPeriod(ctx, tx, org, march(1))
		require.NoError(t, err)
	})
	stands(org, models.PeriodOpen, models.PolicyFirstOpenDay)
	stands(other, models.PeriodClosed, models.PolicyFail)
}
