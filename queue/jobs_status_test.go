package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func (b *bundle) jobStatus(id string) queue.JobStatus {
	b.t.Helper()
	s, err := queue.ReadJobStatus(b.t.Context(), b.Pool, id)
	require.NoError(b.t, err)
	return s
}

func TestJobStatusOfEachState(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, test := range []struct {
		state    models.JobState
		ended    bool
		attempts int
		code     models.ErrorCode
		progress string
	}{
		{models.JobPending, false, 2, models.CodeTimeout, ""},
		{models.JobLeased, false, 3, models.CodeTimeout, ""},
		{models.JobCompleted, true, 2, "", ""},
		{models.JobFailed, true, 2, models.CodeTimeout, "1"},
		{models.JobCancelled, true, 2, "", ""},
	} {
		t.Run(string(test.state), func(t *testing.T) {
			t.Parallel()
			id := b.newJob(welcome{}, queue.JobOptions{}).ID
			b.end(id, test.state)
			s := b.jobStatus(id)
			assert.Equal(t, id, s.JobID)
			assert.Equal(t, org, s.OrgID)
			assert.Equal(t, "welcome", s.Type)
			assert.Equal(t, test.state, s.State)
			assert.Equal(t, test.ended, s.Ended())
			assert.Equal(t, test.state == models.JobCompleted, s.Completed())
			assert.Equal(t, test.attempts, s.Attempts)
			assert.Equal(t, test.code, s.ErrorCode)
			assert.Equal(t, test.code != "", s.Error != "")
			assert.Equal(t, test.ended, s.FinishedAt != nil)
			assert.Equal(t, test.state == models.JobPending, s.NextTry != nil)
			assert.Equal(t, test.progress, string(s.Progress))
			assert.Nil(t, s.Result)
		})
	}
}

// What a worker does to a job is what its status says, attempt by attempt.
func TestJobStatusFollowsTheWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var during queue.JobStatus
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{MaxAttempts: 2, Base: time.Hour},
		func(ctx context.Context, job *jobs.Job[welcome]) error {
			switch job.Payload.UserID {
			case "done":
				if err := job.Progress(ctx, 7); err != nil {
					return err
				}
				var err error
				if during, err = queue.ReadJobStatus(ctx, b.Pool, job.ID); err != nil {
					return err
				}
				job.SetResult(map[string]int{"sent": 1})
				return nil
			case "moot":
				return jobs.Cancel("nothing to do")
			}
			return errors.New("no luck")
		})
	done := b.newJob(welcome{UserID: "done"}, queue.JobOptions{}).ID
	moot := b.newJob(welcome{UserID: "moot"}, queue.JobOptions{}).ID
	bad := b.newJob(welcome{UserID: "bad"}, queue.JobOptions{}).ID
	queuetest.DrainJobs(t, b.Pool, registry, queuetest.JobsOptions{})

	assert.False(t, during.Ended(), "while the handler runs")
	assert.JSONEq(t, "7", string(during.Progress))
	assert.Nil(t, during.FinishedAt)
	s := b.jobStatus(done)
	assert.True(t, s.Completed())
	assert.JSONEq(t, `{"sent": 1}`, string(s.Result))
	assert.Equal(t, 1, s.Attempts)
	assert.Empty(t, s.ErrorCode)
	s = b.jobStatus(moot)
	assert.Equal(t, models.JobCancelled, s.State)
	assert.Equal(t, "nothing to do", s.Error)
	s = b.jobStatus(bad)
	assert.Equal(t, models.JobPending, s.State)
	assert.Equal(t, models.CodeHandlerError, s.ErrorCode)
	require.NotNil(t, s.NextTry)
	assert.True(t, s.NextTry.After(b.clock()), "after the policy's delay")

	queuetest.DrainJobs(t, b.Pool, registry, queuetest.JobsOptions{Advance: 2 * time.Hour})
	s = b.jobStatus(bad)
	assert.Equal(t, models.JobFailed, s.State)
	assert.Equal(t, 2, s.Attempts)
	assert.Equal(t, "no luck", s.Error)
}

func TestJobStatusIsWhatTheHandleSees(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := queue.ReadJobStatus(t.Context(), b.Pool, "")
	require.ErrorIs(t, err, queue.ErrJobNotFound)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	job, err := queue.EnqueueJob(t.Context(), tx, org, welcome{}, queue.JobOptions{})
	require.NoError(t, err)
	s, err := queue.ReadJobStatus(t.Context(), tx, job.ID)
	require.NoError(t, err)
	assert.Equal(t, models.JobPending, s.State)
	_, err = queue.ReadJobStatus(t.Context(), b.Pool, job.ID)
	require.ErrorIs(t, err, queue.ErrJobNotFound, "not committed")
	require.ErrorContains(t, err, job.ID)
	require.NoError(t, tx.Commit(t.Context()))

	b.exec(`UPDATE daybook.jobs SET state = 'completed', result = '{"a": 1}', finished_at = clock_timestamp() WHERE id = $1`, job.ID)
	db := stdlib.OpenDBFromPool(b.Pool)
	defer func() { assert.NoError(t, db.Close()) }()
	other, err := queue.ReadJobStatus(t.Context(), queue.SQL(db), job.ID)
	require.NoError(t, err)
	assert.JSONEq(t, `{"a": 1}`, string(other.Result))
	assert.Equal(t, b.jobStatus(job.ID).Result, other.Result)
	assert.Nil(t, other.Progress)
}

func TestWaitJobReturnsWhenItHasEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.newJob(welcome{}, queue.JobOptions{}).ID
	q := looking{b.Pool, make(chan struct{})}
	type outcome struct {
		status queue.JobStatus
		err    error
	}
	done := make(chan outcome, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		s, err := queue.WaitJob(ctx, q, id, queue.WaitJobOptions{FirstPoll: time.Millisecond, MaxPoll: time.Millisecond})
		done <- outcome{s, err}
	}()
	<-q.looks
	b.end(id, models.JobLeased)
	<-q.looks // being worked: not what is waited for
	<-q.looks
	b.exec(`
UPDATE daybook.jobs SET state = 'pending', working = false, turn_id = NULL, fence = NULL, leased_generation = NULL, worker = NULL,
       attempt_started_at = NULL WHERE id = $1`, id)
	<-q.looks // to be tried again: the same
	<-q.looks
	b.end(id, models.JobFailed)
	for {
		select {
		case <-q.looks:
			continue
		case o := <-done:
			require.NoError(t, o.err)
			assert.Equal(t, models.JobFailed, o.status.State)
			assert.Equal(t, models.CodeTimeout, o.status.ErrorCode)
			return
		}
	}
}

func TestWaitJobForWhatHasEndedReturnsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := queue.WaitJob(t.Context(), b.Pool, "none", queue.WaitJobOptions{})
	require.ErrorIs(t, err, queue.ErrJobNotFound)
	for _, state := range []models.JobState{models.JobCompleted, models.JobFailed, models.JobCancelled} {
		id := b.newJob(welcome{}, queue.JobOptions{}).ID
		b.end(id, state)
		s, err := queue.WaitJob(t.Context(), b.Pool, id, queue.WaitJobOptions{FirstPoll: time.Hour, MaxPoll: time.Hour})
		require.NoError(t, err)
		assert.Equal(t, state, s.State)
	}
}

func TestWaitJobEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.newJob(welcome{}, queue.JobOptions{}).ID
	q := looking{b.Pool, make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-q.looks
		<-q.looks // the first status has been read
		cancel()
	}()
	s, err := queue.WaitJob(ctx, q, id, queue.WaitJobOptions{FirstPoll: time.Millisecond})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "wait for job "+id)
	assert.Equal(t, models.JobPending, s.State, "the last status that was read")

	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = queue.WaitJob(ctx, b.Pool, id, queue.WaitJobOptions{FirstPoll: time.Hour, MaxPoll: time.Hour})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestWaitJobRefusesTransactions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.newJob(welcome{}, queue.JobOptions{}).ID
	b.end(id, models.JobCancelled)
	wait := func(q queue.Querier) error {
		_, err := queue.WaitJob(t.Context(), q, id, queue.WaitJobOptions{})
		return err
	}
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	require.ErrorIs(t, wait(tx), queue.ErrInTransaction)
	require.ErrorIs(t, wait(tx.Conn()), queue.ErrInTransaction)
	_, err = queue.RetryJob(t.Context(), tx, id, queue.RetryOptions{})
	require.NoError(t, err)
	hidden := struct{ queue.Querier }{tx}
	require.ErrorIs(t, wait(hidden), queue.ErrInTransaction, "it has written something")

	db := stdlib.OpenDBFromPool(b.Pool)
	defer func() { assert.NoError(t, db.Close()) }()
	require.NoError(t, wait(queue.SQL(db)))
	require.ErrorIs(t, wait(queue.GORM(nil)), queue.ErrNoTransaction)
	var none pgx.Tx
	require.ErrorIs(t, wait(none), queue.ErrNoQuerier)
}
