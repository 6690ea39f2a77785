package jobs_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// interrupting is a bundle whose worker renews its leases all the time, and works one job whose
// handler, when it is called first, waits until it is told to go on.
type interrupting struct {
	*bundle
	id string
	// began and heard have the context of each call, when it begins and when it has ended or was told
	// to go on.
	began, heard chan context.Context
	goOn         chan struct{}
	failures     chan jobs.Failure
	over         <-chan error
}

// renewing is an engine with the bundle's handlers that renews its leases all the time.
func (b *bundle) renewing() *engine.Engine {
	e := engine.NewJobs(b.store, b.registry, engine.Options{RenewEvery: 20 * time.Millisecond})
	b.t.Cleanup(e.Close)
	return e
}

// workRenewing is work beside the test, by such an engine.
func (b *bundle) workRenewing() (over <-chan error) {
	e, turn, ended := b.renewing(), b.turn(), make(chan error, 1)
	go func() {
		_, err := e.Process(context.Background(), engine.TurnRequest{Turn: turn, Batch: 50, Length: time.Minute})
		ended <- err
	}()
	return ended
}

// interrupt begins the job. then is the rest of each call.
func interrupt(t *testing.T, then func(ctx context.Context, job *jobs.Job[greet]) error) *interrupting {
	t.Helper()
	i := &interrupting{
		bundle: setup(t), began: make(chan context.Context, 10), heard: make(chan context.Context, 10),
		goOn:     make(chan struct{}),
		failures: make(chan jobs.Failure, 10),
	}
	i.exec(`CREATE TABLE greeted (name text)`)
	i.registry.OnError(func(_ context.Context, _ *jobs.Info, f jobs.Failure) jobs.Verdict {
		i.failures <- f
		return jobs.Leave
	})
	jobs.Register(i.registry, jobs.Policy{Timeout: time.Minute}, func(ctx context.Context, job *jobs.Job[greet]) error {
		i.began <- ctx
		select {
		case <-ctx.Done():
		case <-i.goOn:
		}
		i.heard <- ctx
		writeDown(job)
		return then(ctx, job)
	})
	i.id = i.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	i.over = i.workRenewing()
	<-i.began
	require.Eventually(t, func() bool { return i.row(i.id).State == models.JobLeased }, pgtest.Patience,
		5*time.Millisecond)
	return i
}

func (i *interrupting) cancel() {
	i.t.Helper()
	r, err := queue.CancelJob(i.t.Context(), i.Pool, i.id)
	require.NoError(i.t, err)
	assert.Equal(i.t, queue.Cancelling, r.Result)
}

// assertCancelled waits for the end of the turn. The job is cancelled, nothing of it is committed,
// and the error handler was not told.
func (i *interrupting) assertCancelled() {
	i.t.Helper()
	require.NoError(i.t, <-i.over)
	assert.Equal(i.t, models.JobCancelled, i.row(i.id).State)
	assert.Zero(i.t, i.count(`SELECT count(*) FROM greeted`))
	assert.Equal(i.t, 1, i.count(`SELECT count(*) FROM daybook.attempt_log WHERE outcome = 'cancelled'`))
	assert.Empty(i.t, i.failures)
}

// TestCancelEndsTheHandlersContext: whatever the handler returns, the job is cancelled.
func TestCancelEndsTheHandlersContext(t *testing.T) {
	t.Parallel()
	for name, returns := range map[string]func(context.Context) error{
		"its context's error": context.Context.Err,
		"nil":                 func(context.Context) error { return nil },
		"an error of its own": func(context.Context) error { return jobs.Final(errors.New("the upstream has hung up")) },
		"a snooze":            func(context.Context) error { return jobs.Snooze(time.Hour) },
		"a panic":             func(context.Context) error { panic("interrupted") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := interrupt(t, func(ctx context.Context, _ *jobs.Job[greet]) error { return returns(ctx) })
			i.cancel()
			ctx := <-i.heard
			require.ErrorIs(t, ctx.Err(), context.Canceled)
			assert.True(t, jobs.CancelRequested(ctx))
			i.assertCancelled()
		})
	}
}

// TestCancelOfADetachedJob: a job that goes on after its turn is interrupted as well.
func TestCancelOfADetachedJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	heard := make(chan context.Context, 1)
	jobs.Register(b.registry, jobs.Policy{Timeout: time.Minute}, func(ctx context.Context, _ *jobs.Job[greet]) error {
		<-ctx.Done()
		heard <- ctx
		return ctx.Err()
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.detach(b.renewing(), nil, 1)
	_, err := queue.CancelJob(t.Context(), b.Pool, id)
	require.NoError(t, err)
	assert.True(t, jobs.CancelRequested(<-heard))
	require.Eventually(t, func() bool { return b.row(id).State == models.JobCancelled }, pgtest.Patience,
		5*time.Millisecond)
}

// TestCancelThatIsTakenBack: a request that comes before the interrupted handler has returned has
// the job worked again at once, and the attempt does not count.
func TestCancelThatIsTakenBack(t *testing.T) {
	t.Parallel()
	returns := make(chan struct{})
	i := interrupt(t, func(ctx context.Context, _ *jobs.Job[greet]) error {
		if ctx.Err() != nil {
			<-returns
		}
		return ctx.Err()
	})
	i.cancel()
	<-i.heard
	r, err := queue.RetryJob(t.Context(), i.Pool, i.id, queue.RetryOptions{})
	require.NoError(t, err)
	assert.Equal(t, queue.Coalesced, r.Result)
	close(returns)
	again := <-i.began
	require.NoError(t, again.Err())
	close(i.goOn)
	require.NoError(t, <-i.over)
	got := i.row(i.id)
	assert.Equal(t, models.JobCompleted, got.State)
	assert.Equal(t, 1, i.count(`SELECT run_count FROM daybook.jobs`), "the interrupted attempt is not counted")
	assert.Equal(t, 1, i.count(`SELECT count(*) FROM greeted`))
	assert.Equal(t, 1, i.count(`SELECT count(*) FROM daybook.attempt_log WHERE outcome = 'rescheduled' AND error_code = 'JOB_CANCELLED' AND error LIKE 'a request cancelled%'`))
	assert.Empty(t, i.failures)
}

// TestRequestBeforeACancelThatIsTakenBack: a unique job is asked for anew during its attempt, and
// that attempt is cancelled and the cancel taken back before the handler notices. The request stands:
// the job is worked again, for the attempt may have read what was true before it.
func TestRequestBeforeACancelThatIsTakenBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	began, goOn := make(chan struct{}), make(chan struct{})
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error {
		if calls.Add(1) == 1 {
			close(began)
			<-goOn
		}
		return nil
	})
	id := b.enqueue(greet{Name: "refresh"}, queue.JobOptions{Unique: true})
	turn := b.linger(b.engine)
	receive(t, began)
	b.coalesced(greet{Name: "refresh"})
	for range 2 { // the second one changes nothing
		b.exec(`SELECT daybook.cancel_job($1)`, id)
	}
	b.exec(`SELECT daybook.retry_job($1, 'now')`, id)
	close(goOn)
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'completed'`, id)
	turn.end()
	assert.EqualValues(t, 2, calls.Load(), "the request is worked after the attempt that it met")
}

// TestCancelDuringInTx: a statement of the completing transaction is interrupted. The job is
// cancelled, or, when a later request has taken that back, worked again, and the attempt does not
// count.
func TestCancelDuringInTx(t *testing.T) {
	t.Parallel()
	for name, takeBack := range map[string]bool{"cancelled": false, "taken back": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			heard, goOn := make(chan error, 1), make(chan struct{})
			i := interrupt(t, func(_ context.Context, job *jobs.Job[greet]) error {
				if calls.Add(1) > 1 {
					return nil
				}
				job.InTx(func(ctx context.Context, tx pgx.Tx) error {
					_, err := tx.Exec(ctx, `SELECT pg_sleep(60)`)
					assert.True(t, jobs.CancelRequested(ctx))
					heard <- err
					<-goOn
					return err
				})
				return nil
			})
			i.goOn <- struct{}{}
			require.Eventually(t, func() bool {
				return i.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query = 'SELECT pg_sleep(60)' AND state = 'active'`) == 1
			}, pgtest.Patience, 5*time.Millisecond)
			i.cancel()
			err := <-heard
			require.ErrorIs(t, err, context.Canceled)
			if !takeBack {
				close(goOn)
				i.assertCancelled()
				return
			}
			_, err = queue.RetryJob(t.Context(), i.Pool, i.id, queue.RetryOptions{})
			require.NoError(t, err)
			close(goOn)
			<-i.began
			close(i.goOn)
			require.NoError(t, <-i.over)
			assert.Equal(t, models.JobCompleted, i.row(i.id).State)
			assert.Equal(t, 1, i.count(`SELECT run_count FROM daybook.jobs`))
			assert.Equal(t, 1, i.count(`SELECT count(*) FROM greeted`))
		})
	}
}

// TestCancelOfAJobInABulk: what a bulk handler has in its transaction is not interrupted, because
// the others of the call would begin again for that.
func TestCancelOfAJobInABulk(t *testing.T) {
	t.Parallel()
	b := setup(t)
	began, goOn := make(chan context.Context), make(chan struct{})
	jobs.RegisterBulk(b.registry, jobs.Policy{Timeout: time.Minute},
		func(ctx context.Context, _ pgx.Tx, all []*jobs.Job[greet]) ([]error, error) {
			began <- ctx
			<-goOn
			return make([]error, len(all)), ctx.Err()
		})
	id := b.enqueue(greet{}, queue.JobOptions{})
	over := b.workRenewing()
	ctx := <-began
	cancelled := make(chan error, 1)
	go func() {
		_, err := queue.CancelJob(context.Background(), b.Pool, id)
		cancelled <- err
	}()
	require.Eventually(t, func() bool { return b.count(waiting) == 1 }, pgtest.Patience, 5*time.Millisecond,
		"the request waits for the transaction, which has the row")
	require.NoError(t, ctx.Err())
	close(goOn)
	require.NoError(t, <-over)
	require.ErrorIs(t, <-cancelled, queue.ErrJobCompleted)
	assert.Equal(t, models.JobCompleted, b.row(id).State)
}
