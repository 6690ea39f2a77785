package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// What each way to try again does to each state.
func TestRetryJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		mode  queue.RetryMode
		delay time.Duration
		// in is when it is due.
		in time.Duration
		// attempts stay counted.
		attempts int
	}{
		{queue.RetryNow, 0, 0, 2},
		{queue.RetryNow, hour, hour, 2},
		{queue.RetryLater, 0, queue.DefaultRetryLater, 2},
		{queue.RetryLater, hour, hour, 2},
		{queue.RetryReset, 0, 0, 0},
		{queue.RetryReset, hour, hour, 0},
	} {
		for state, want := range map[models.JobState]queue.Result{
			models.JobPending: queue.Rescheduled, models.JobFailed: queue.Requeued, models.JobCancelled: queue.Requeued,
		} {
			id := b.newJob(welcome{}, queue.JobOptions{}).ID
			b.end(id, state)
			before := b.queued(id)
			from := b.clock()
			r, err := queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{Mode: c.mode, Delay: c.delay})
			to := b.clock()
			require.NoError(t, err)
			assert.Equal(t, queue.Response{JobID: id, Result: want}, r)
			j := b.queued(id)
			assert.Equal(t, models.JobPending, j.State)
			assert.False(t, j.ReadyAt.Before(from.Add(c.in)) || j.ReadyAt.After(to.Add(c.in)), "%s %s in %s", state, c.mode,
				c.in)
			assert.Equal(t, j.ReadyAt, j.FirstReadyAt)
			assert.Equal(t, c.attempts, j.RunCount, "%s %s", state, c.mode)
			assert.Equal(t, c.mode != queue.RetryReset && before.LastError != nil, j.LastError != nil, "%s %s", state, c.mode)
			assert.Equal(t, c.mode != queue.RetryReset && before.Progress != nil, j.Progress != nil, "%s %s", state, c.mode)
			assert.Greater(t, j.Generation, before.Generation)
			assert.Nil(t, j.FinishedAt)
		}
	}
}

// A running job is left alone, but a cancellation is taken back as if it had never been asked for.
func TestRetryOfARunningJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.newJob(welcome{}, queue.JobOptions{}).ID
	b.end(id, models.JobLeased)
	for range 2 {
		r, err := queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{Mode: queue.RetryReset})
		require.NoError(t, err)
		assert.Equal(t, queue.Unchanged, r.Result)
		assert.Equal(t, "the job runs already", r.Reason)
		for range 2 {
			r, err = queue.CancelJob(t.Context(), b.Pool, id)
			require.NoError(t, err)
			assert.Equal(t, queue.Cancelling, r.Result)
			j := b.queued(id)
			assert.True(t, j.CancelRequested)
			assert.NotEqual(t, *j.LeasedGeneration, j.Generation, "a completion sees that something was asked for")
		}
		r, err = queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{})
		require.NoError(t, err)
		assert.Equal(t, queue.Coalesced, r.Result)
		j := b.queued(id)
		assert.False(t, j.CancelRequested)
		assert.Equal(t, *j.LeasedGeneration, j.Generation, "a completion ends it")
	}
}

// A unique job whose work another one does already stays where it is.
func TestRetryOfAUniqueJobBesideAnother(t *testing.T) {
	t.Parallel()
	b := setup(t)
	unique := queue.JobOptions{Unique: true}
	id := b.newJob(welcome{}, unique).ID
	b.end(id, models.JobFailed)
	other := b.newJob(welcome{}, unique)
	require.False(t, other.Duplicate)
	r, err := queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{})
	require.NoError(t, err)
	assert.Equal(t, queue.Unchanged, r.Result)
	assert.Contains(t, r.Reason, other.ID+" is open", "the job that it stands beside")
	assert.Equal(t, models.JobFailed, b.queued(id).State)
	b.end(other.ID, models.JobCompleted)
	r, err = queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{})
	require.NoError(t, err)
	assert.Equal(t, queue.Requeued, r.Result)
}

func TestCancelJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for state, want := range map[models.JobState]queue.Result{
		models.JobPending: queue.Cancelled, models.JobFailed: queue.Cancelled, models.JobCancelled: queue.Unchanged,
	} {
		id := b.newJob(welcome{}, queue.JobOptions{}).ID
		b.end(id, state)
		r, err := queue.CancelJob(t.Context(), b.Pool, id)
		require.NoError(t, err)
		assert.Equal(t, want, r.Result)
		assert.Equal(t, want == queue.Unchanged, r.Reason != "")
		j := b.queued(id)
		assert.Equal(t, models.JobCancelled, j.State)
		assert.NotNil(t, j.FinishedAt)
	}
}

func TestChangesThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.newJob(welcome{}, queue.JobOptions{}).ID
	b.end(id, models.JobCompleted)
	_, err := queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{Mode: queue.RetryReset})
	require.ErrorIs(t, err, queue.ErrJobCompleted)
	require.ErrorContains(t, err, "enqueue a new one")
	_, err = queue.CancelJob(t.Context(), b.Pool, id)
	require.ErrorIs(t, err, queue.ErrJobCompleted)
	_, err = queue.RetryJob(t.Context(), b.Pool, "unknown", queue.RetryOptions{})
	require.ErrorIs(t, err, queue.ErrJobNotFound)
	_, err = queue.CancelJob(t.Context(), b.Pool, "unknown")
	require.ErrorIs(t, err, queue.ErrJobNotFound)
	_, err = queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{Mode: "soon"})
	require.ErrorIs(t, err, queue.ErrInvalidRetryMode)
	_, err = queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{Delay: -1})
	require.ErrorIs(t, err, queue.ErrNegativeDelay)
	for _, arguments := range []string{
		`$1, 'soon'`, `$1, NULL`, `$1, 'now', -1`, `$1, 'later', 'NaN'`,
		`$1, 'later', 3.3e9`,
	} {
		_, err = b.Pool.Exec(t.Context(), `SELECT daybook.retry_job(`+arguments+`)`, id)
		assertState(t, "DB010", err, arguments)
	}
}
