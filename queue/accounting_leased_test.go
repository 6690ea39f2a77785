package queue_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// What the completion makes of what was asked for while the job was leased. Each attempt would have
// completed the job.
func TestCompletionServesWhatWasAskedMeanwhile(t *testing.T) {
	t.Parallel()
	dbs := shared(t)
	for _, c := range []struct {
		name     string
		asks     []request
		state    models.JobState
		version  int64
		attempts int
		due      due
	}{
		{"nothing", nil, models.JobCompleted, 5, 2, dueKept},
		{"newer version: again", []request{enqueue(6)}, models.JobPending, 6, 0, dueNow},
		{"newer version later: again then", []request{enqueueAt(6, later)}, models.JobPending, 6, 0, dueLater},
		{"same version: done", []request{enqueue(5)}, models.JobCompleted, 5, 2, dueKept},
		{"older version: done", []request{enqueue(4)}, models.JobCompleted, 5, 2, dueKept},
		{"mark pending: again", []request{markPending(0)}, models.JobPending, 5, 0, dueNow},
		{"mark pending later: again then", []request{markPending(later)}, models.JobPending, 5, 0, dueLater},
		{"cancel", []request{cancel}, models.JobCancelled, 5, 2, dueAny},
		{"cancel twice", []request{cancel, cancel}, models.JobCancelled, 5, 2, dueAny},
		{"newer version, then cancel", []request{enqueue(6), cancel}, models.JobCancelled, 6, 2, dueAny},
		{"cancel, then same version: again", []request{cancel, enqueue(5)}, models.JobPending, 5, 0, dueNow},
		{"cancel, then newer version: again", []request{cancel, enqueue(6)}, models.JobPending, 6, 0, dueNow},
		{"cancel, then older version: cancelled", []request{cancel, enqueue(4)}, models.JobCancelled, 5, 2, dueAny},
		{"cancel, then mark pending: again", []request{cancel, markPending(0)}, models.JobPending, 5, 0, dueNow},
		{
			"two newer versions: due at the earlier time",
			[]request{enqueueAt(6, later), enqueueAt(7, time.Hour)},
			models.JobPending, 7, 0, dueLater,
		},
		{
			"a cancelled request does not pull the next one forward",
			[]request{enqueue(6), cancel, enqueueAt(7, later)},
			models.JobPending, 7, 0, dueLater,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := dbs.setup(t)
			turn := b.bring(models.JobLeased)
			before := b.job()
			asked := b.clock()
			for _, ask := range c.asks {
				_, err := ask(t.Context(), b.Pool)
				require.NoError(t, err)
			}
			ended := b.clock()
			b.endAttempt(turn, before.ID, models.OutcomeCompleted, "", 0)

			after := b.job()
			if after.State == models.JobPending {
				assert.False(t, after.ReadyAt.Before(ended), "ready_at")
				assert.False(t, after.FirstReadyAt.Before(ended), "first_ready_at")
				assert.WithinDuration(t, after.ReadyAt, after.FirstReadyAt, time.Second, "it is the time of the request")
			}
			assert.Equal(t, c.state, after.State)
			assert.Equal(t, c.version, after.VersionHint)
			assert.Equal(t, c.attempts, after.RunCount, "run_count")
			assert.False(t, after.CancelRequested, "cancel_requested")
			assert.Nil(t, after.LastError, "last_error")
			assert.Equal(t, c.state != models.JobPending, after.FinishedAt != nil, "finished_at")
			assertDue(t, c.due, before, after, asked, b.clock())
		})
	}
}

// Whatever the attempt led to, a newer request starts anew: at once, and with all its attempts.
func TestNewerRequestSurvivesEachOutcome(t *testing.T) {
	t.Parallel()
	dbs := shared(t)
	for _, c := range []struct {
		outcome models.Outcome
		code    models.ErrorCode
	}{
		{models.OutcomeCompleted, ""},
		{models.OutcomeRetried, models.CodeDatabaseError},
		{models.OutcomeRescheduled, models.CodeDocumentNotReady},
		{models.OutcomeFailed, models.CodeUnbalanced},
		{models.OutcomeCancelled, models.CodeDocumentDeleted},
	} {
		t.Run(string(c.outcome), func(t *testing.T) {
			t.Parallel()
			b := dbs.setup(t)
			turn := b.bring(models.JobLeased)
			b.enqueue(6)
			b.endAttempt(turn, b.job().ID, c.outcome, c.code, time.Hour)

			after := b.job()
			assert.Equal(t, models.JobPending, after.State)
			assert.EqualValues(t, 6, after.VersionHint)
			assert.Zero(t, after.RunCount, "run_count")
			assert.Zero(t, after.NotReadyCount, "not_ready_count")
			assert.False(t, after.ReadyAt.After(b.clock()), "due at once")
		})
	}
}

// A worker that stops or loses its turn completes nothing; what was asked for must not be lost by
// that as well.
func TestRequestsSurviveReleaseAndReclaim(t *testing.T) {
	t.Parallel()
	dbs := shared(t)
	release := func(b *bundle, turn store.Turn) {
		n, err := b.store.GiveBack(b.t.Context(), turn, nil, 0)
		require.NoError(b.t, err)
		require.Equal(b.t, 1, n)
	}
	reclaim := func(crashed bool) func(*bundle, store.Turn) {
		return func(b *bundle, turn store.Turn) {
			taken, err := b.store.ReclaimTurns(b.t.Context(), b.newTurn(), []string{turn.ID}, crashed)
			require.NoError(b.t, err)
			require.Empty(b.t, taken.Jobs, "the request is served when it says, not by the turn that reclaims it")
		}
	}
	for _, c := range []struct {
		name     string
		ask      request
		end      func(*bundle, store.Turn)
		state    models.JobState
		attempts int
	}{
		{"released, newer version", enqueue(6), release, models.JobPending, 0},
		{"released, cancel", cancel, release, models.JobCancelled, -1},
		{"reclaimed, newer version", enqueue(6), reclaim(false), models.JobPending, 0},
		{"reclaimed after a crash, newer version", enqueue(6), reclaim(true), models.JobPending, 0},
		{"reclaimed, mark pending later", markPending(later), reclaim(false), models.JobPending, 0},
		{"reclaimed, cancel", cancel, reclaim(false), models.JobCancelled, -1},
		{"reclaimed after a crash, cancel", cancel, reclaim(true), models.JobCancelled, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := dbs.setup(t)
			turn := b.bring(models.JobLeased)
			_, err := c.ask(t.Context(), b.Pool)
			require.NoError(t, err)

			c.end(b, turn)

			after := b.job()
			assert.Equal(t, c.state, after.State)
			if c.attempts >= 0 {
				assert.Equal(t, c.attempts, after.RunCount, "run_count counts the newer version's attempts")
			}
		})
	}
}

func TestCancelledAttemptIsLoggedAndCommitsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	turn := b.bring(models.JobLeased)
	require.Equal(t, queue.Cancelling, b.cancel().Result)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	locked, err := store.Accounting.LockChunk(t.Context(), tx, turn, []string{b.job().ID})
	require.NoError(t, err)
	require.Len(t, locked, 1)
	assert.True(t, locked[0].CancelRequested, "the worker is told")
	require.NoError(t, tx.Rollback(t.Context()))

	b.endAttempt(turn, locked[0].ID, models.OutcomeCompleted, "", 0)

	var outcome models.Outcome
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT outcome FROM daybook.attempts ORDER BY id DESC LIMIT 1`).Scan(&outcome))
	assert.Equal(t, models.OutcomeCancelled, outcome)
}

// While a chunk's transaction holds the row, a request waits for it instead of getting lost in it.
func TestRequestDuringTheCompletingTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	turn := b.bring(models.JobLeased)
	id := b.job().ID
	asked := make(chan queue.Response, 1)
	failed := make(chan error, 1)
	err := pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		locked, err := store.Accounting.LockChunk(t.Context(), tx, turn, []string{id})
		require.NoError(t, err)
		go func() {
			r, err := enqueue(6)(t.Context(), b.Pool)
			asked <- r
			failed <- err
		}()
		require.Eventually(t, func() bool {
			var waiting int
			err := b.Pool.QueryRow(t.Context(),
				`SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'`, b.Name).Scan(&waiting)
			return err == nil && waiting == 1
		}, pgtest.Patience, 5*time.Millisecond, "the request waits for the row")
		_, err = store.Accounting.Complete(t.Context(), tx, turn,
			[]store.Completion{{Job: locked[0], Outcome: models.OutcomeCompleted}}, store.Access{})
		return err
	})
	require.NoError(t, err)

	assert.Equal(t, queue.Requeued, (<-asked).Result)
	require.NoError(t, <-failed)
	assert.Equal(t, models.JobPending, b.job().State)
}
