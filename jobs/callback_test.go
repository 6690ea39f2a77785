package jobs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// approval asks for a callback and completes with what came.
func (b *bundle) approval(within time.Duration, sent func(ctx context.Context, token string) error) {
	jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[greet]) error {
		c, err := job.Callback(ctx, "approved")
		switch {
		case err != nil:
			return err
		case c == nil:
			if c, err = job.NewCallback(ctx, "approved", within); err != nil {
				return err
			}
			if err := sent(ctx, c.Token); err != nil {
				return err
			}
			return jobs.AwaitCallback(c)
		case c.Expired:
			job.SetResult("expired")
			return nil
		case c.Data == nil:
			return jobs.AwaitCallback(c)
		}
		job.SetResult(c.Data)
		return nil
	})
}

// A job waits for its callback, without an attempt, and is worked with what came. The same answer
// may come again.
func TestAJobWaitsForACallback(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var token string
	b.approval(time.Hour, func(_ context.Context, sent string) error {
		token = sent
		return nil
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.work()
	r := b.row(id)
	assert.Equal(t, models.JobPending, r.State)
	assert.Zero(t, r.RunCount)
	assert.EqualValues(t, models.CodeAwaitingCallback, r.Code)
	assert.InDelta(t, time.Hour, r.Wait, float64(time.Minute))
	_, err := queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{})
	require.NoError(t, err)
	b.work()
	assert.InDelta(t, time.Hour, b.row(id).Wait, float64(time.Minute), "tried again by hand, it waits on")

	_, err = queue.CompleteCallback(t.Context(), b.Pool, "guessed", map[string]bool{})
	require.ErrorIs(t, err, queue.ErrCallbackNotFound)
	_, err = queue.CompleteCallback(t.Context(), b.Pool, token, []int{1})
	require.ErrorIs(t, err, queue.ErrPayloadInvalid)
	for _, want := range []queue.Result{queue.Received, queue.Unchanged} {
		done, err := queue.CompleteCallback(t.Context(), b.Pool, token, map[string]bool{"yes": true})
		require.NoError(t, err)
		assert.Equal(t, queue.Response{JobID: id, Result: want}, done)
	}
	done, err := queue.CompleteCallback(t.Context(), b.Pool, token, []byte(`{"yes": true}`))
	require.NoError(t, err)
	assert.Equal(t, queue.Unchanged, done.Result, "the body of a request is JSON already")
	for _, wrong := range [][]byte{nil, []byte(`yes`)} {
		_, err = queue.CompleteCallback(t.Context(), b.Pool, token, wrong)
		require.ErrorIs(t, err, queue.ErrPayloadInvalid)
	}
	_, err = queue.CompleteCallback(t.Context(), b.Pool, token, map[string]bool{"yes": false})
	require.ErrorIs(t, err, queue.ErrCallbackUsed)
	b.check()
	b.work()
	assert.Equal(t, models.JobCompleted, b.row(id).State)
	assert.JSONEq(t, `{"yes": true}`, b.row(id).Result)
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.job_callbacks WHERE encode(token_hash, 'escape') = $1`, token))
}

// An attempt that fails before it waits for its callback may not have told the other side of it:
// the next one asks for another, and both tokens are valid.
func TestAnAttemptThatFailsAfterAskingForACallback(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var tokens []string
	b.approval(time.Hour, func(_ context.Context, token string) error {
		if tokens = append(tokens, token); len(tokens) == 1 {
			return errors.New("the other side does not answer")
		}
		return nil
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.work()
	assert.EqualValues(t, models.CodeHandlerError, b.row(id).Code)
	b.due()
	b.work()
	require.Len(t, tokens, 2)
	assert.EqualValues(t, models.CodeAwaitingCallback, b.row(id).Code)
	_, err := queue.CompleteCallback(t.Context(), b.Pool, tokens[0], map[string]int{"n": 1})
	require.NoError(t, err)
	b.check()
	b.work()
	assert.JSONEq(t, `{"n": 1}`, b.row(id).Result)
}

// A callback that comes before the attempt has ended is not lost: in the transaction that picked
// the job, and under a lease.
func TestACallbackThatComesAtOnce(t *testing.T) {
	t.Parallel()
	for name, lasts := range map[string]time.Duration{"picked": 0, "leased": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.approval(time.Hour, func(ctx context.Context, token string) error {
				_, err := queue.CompleteCallback(ctx, b.Pool, token, map[string]int{"n": 1})
				time.Sleep(lasts)
				return err
			})
			id := b.enqueue(greet{}, queue.JobOptions{})
			turn := b.linger(b.engine)
			b.until(1, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed' AND id = $1`, id)
			turn.end()
			assert.JSONEq(t, `{"n": 1}`, b.row(id).Result)
		})
	}
}

// Without an answer the job is worked at the deadline, by the workers of its fleet; an answer that
// comes then is refused.
func TestACallbackThatDoesNotCome(t *testing.T) {
	t.Parallel()
	for _, fleet := range []string{"", "emails"} {
		t.Run("fleet "+fleet, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var token string
			b.approval(time.Hour, func(_ context.Context, sent string) error {
				token = sent
				return nil
			})
			o := queue.JobOptions{}
			if fleet != "" {
				o.Queue = "letters"
				_, err := queue.SetQueue(t.Context(), b.Pool, queue.NamedQueue{Name: o.Queue, Fleet: fleet})
				require.NoError(t, err)
			}
			id := b.enqueue(greet{}, o)
			drained := queuetest.DrainJobs(t, b.Pool, b.registry, queuetest.JobsOptions{Advance: 2 * time.Hour, Fleet: fleet})
			drained.RequireCompleted(t)
			assert.Equal(t, `"expired"`, b.row(id).Result)
			_, err := queue.CompleteCallback(t.Context(), b.Pool, token, map[string]int{})
			assert.ErrorIs(t, err, queue.ErrCallbackExpired)
		})
	}
}

// A bulk handler has no callbacks: no other transaction could see what it puts on record.
func TestABulkHandlerHasNoCallbacks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.RegisterBulk(b.registry, jobs.Policy{MaxAttempts: 1},
		func(ctx context.Context, _ pgx.Tx, all []*jobs.Job[greet]) ([]error, error) {
			_, err := all[0].NewCallback(ctx, "approved", time.Hour)
			assert.ErrorIs(t, err, jobs.ErrNoCallbacks)
			return nil, nil
		})
	b.enqueue(greet{}, queue.JobOptions{})
	assert.Equal(t, 1, b.work().Completed)
}

// Draining works sequences, and what waits for other jobs, to their end.
func TestDrainingWorksWaitingJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var worked []string
	jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
		worked = append(worked, job.Payload.Name)
		return nil
	})
	first := b.enqueue(greet{Name: "1"}, queue.JobOptions{Sequence: "s"})
	b.enqueue(greet{Name: "2"}, queue.JobOptions{Sequence: "s"})
	third := b.enqueue(greet{Name: "3"}, queue.JobOptions{Sequence: "s"})
	b.enqueue(greet{Name: "4"}, queue.JobOptions{After: []string{first, third}, RunAt: time.Now().Add(time.Hour)})
	queuetest.DrainJobs(t, b.Pool, b.registry, queuetest.JobsOptions{}).RequireCompleted(t)
	assert.Equal(t, []string{"1", "2", "3"}, worked)
	queuetest.DrainJobs(t, b.Pool, b.registry, queuetest.JobsOptions{Advance: 2 * time.Hour}).RequireCompleted(t)
	assert.Equal(t, []string{"1", "2", "3", "4"}, worked)
}

// A job that was enqueued with a callback begins when that comes, or at its deadline, and asks for
// none; the token is returned once.
func TestAJobIsEnqueuedWithACallback(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.approval(time.Hour, func(context.Context, string) error { return errors.New("it asked for another one") })
	enqueue := func(name, key string) queue.EnqueuedJobWithCallback {
		e, err := queue.EnqueueJobWithCallback(t.Context(), b.Pool, org, greet{Name: name},
			queue.CallbackOptions{Name: "approved", Within: time.Hour},
			queue.JobOptions{IdempotencyKey: key})
		require.NoError(t, err)
		return e
	}
	answered, expires, tried := enqueue("answered", "k"), enqueue("expires", ""), enqueue("tried", "")
	assert.Len(t, answered.Token, 43)
	assert.NotEqual(t, answered.Token, expires.Token)
	assert.Equal(t, queue.EnqueuedJobWithCallback{EnqueuedJob: queue.EnqueuedJob{
		ID: answered.ID, Duplicate: true,
		Result: queue.Unchanged,
	}}, enqueue("answered", "k"))
	b.work()
	for _, e := range []queue.EnqueuedJobWithCallback{answered, expires, tried} {
		r := b.row(e.ID)
		assert.Equal(t, models.JobPending, r.State)
		assert.EqualValues(t, models.CodeAwaitingCallback, r.Code)
		assert.InDelta(t, time.Hour, r.Wait, float64(time.Minute))
		assert.Zero(t, r.Attempts)
	}

	_, err := queue.CompleteCallback(t.Context(), b.Pool, answered.Token, map[string]int{"by": 7})
	require.NoError(t, err)
	b.check()
	b.exec(`UPDATE daybook.jobs SET ready_at = clock_timestamp() WHERE id = $1`, expires.ID)
	b.exec(`UPDATE daybook.job_callbacks SET deadline = clock_timestamp() WHERE job_id = $1`, expires.ID)
	_, err = queue.RetryJob(t.Context(), b.Pool, tried.ID, queue.RetryOptions{})
	require.NoError(t, err)
	b.work()
	assert.JSONEq(t, `{"by": 7}`, b.row(answered.ID).Result)
	assert.Equal(t, `"expired"`, b.row(expires.ID).Result)
	r := b.row(tried.ID)
	assert.EqualValues(t, models.CodeAwaitingCallback, r.Code, r.Error)
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.jobs WHERE first_ready_at > clock_timestamp() AND state = 'completed' AND id = $1`, answered.ID))

	for _, c := range []struct {
		callback queue.CallbackOptions
		options  queue.JobOptions
	}{
		{callback: queue.CallbackOptions{Within: time.Hour}},
		{callback: queue.CallbackOptions{Name: "n"}},
		{queue.CallbackOptions{Name: "n", Within: time.Hour}, queue.JobOptions{RunAt: time.Now()}},
		{queue.CallbackOptions{Name: "n", Within: time.Hour}, queue.JobOptions{Unique: true}},
		{queue.CallbackOptions{Name: "n", Within: time.Hour}, queue.JobOptions{Sequence: "s"}},
		{queue.CallbackOptions{Name: "n", Within: time.Hour}, queue.JobOptions{After: []string{tried.ID}}},
	} {
		_, err := queue.EnqueueJobWithCallback(t.Context(), b.Pool, org, greet{}, c.callback, c.options)
		assert.ErrorIs(t, err, queue.ErrInvalidCallback)
	}
	for _, arguments := range []string{`NULL, '1 h'`, `'n', NULL`, `'n', '-1 h'`, `'n', '11 years'`} {
		_, err := b.Pool.Exec(t.Context(), `SELECT daybook.enqueue_job_with_callback('o', 'mail', '{}', `+arguments+`)`)
		assert.ErrorContains(t, err, "DB010", arguments)
	}
}

// A job that was enqueued with a callback has the options that do not say when it is due: its place in
// the line of a limit, and the version that may work it.
func TestAJobWithACallbackKeepsItsOptions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.inBank(jobs.Limit{By: "payload.name", Parallel: 1})
	e, err := queue.EnqueueJobWithCallback(t.Context(), b.Pool, org, greet{Name: "n"},
		queue.CallbackOptions{Name: "approved", Within: time.Hour},
		queue.JobOptions{
			Queue: "bank", LimitKey: "own", MinVersion: 3, Priority: queue.High, MaxAttempts: 7,
			Links: []queue.Link{{Kind: "order", ID: "17"}},
		})
	require.NoError(t, err)
	var scope, key string
	var version, priority, attempts, links int
	require.NoError(t, b.Pool.QueryRow(t.Context(), `
SELECT coalesce(limit_scope, ''), coalesce(limit_key, ''), coalesce(min_version, 0), priority, max_attempts,
       (SELECT count(*) FROM daybook.job_links l WHERE l.job_id = j.id)
  FROM daybook.jobs j WHERE id = $1`, e.ID).Scan(&scope, &key, &version, &priority, &attempts, &links))
	assert.Equal(t, []any{"queue/bank", "own", 3, 1, 7, 1}, []any{scope, key, version, priority, attempts, links})
}
