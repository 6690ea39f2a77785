package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
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

// long bounds what a test waits for: far more than it takes.
const long = pgtest.Patience

// short is a timeout that a handler which does little keeps even on a busy machine.
const short = 2 * time.Second

// ping is a second type of job.
type ping struct{}

func (ping) JobType() string { return "ping" }

// lingering is a turn that waits for more work until it is stopped.
type lingering struct {
	t    *testing.T
	stop func()
	done chan engine.Report
}

// linger begins a turn in the background.
func (b *bundle) linger(e *engine.Engine) *lingering { return b.lingerFor(e, time.Hour) }

// lingerFor begins a turn in the background, which takes more work for so long.
func (b *bundle) lingerFor(e *engine.Engine, length time.Duration) *lingering {
	stop := make(chan struct{})
	l := &lingering{t: b.t, stop: sync.OnceFunc(func() { close(stop) }), done: make(chan engine.Report, 1)}
	turn := b.turn()
	over := make(chan struct{})
	go func() {
		defer close(over)
		r, err := e.Process(context.Background(),
			engine.TurnRequest{Turn: turn, Batch: 50, Wait: time.Hour, Length: length, Linger: true, Stop: stop})
		assert.NoError(b.t, err)
		l.done <- r
	}()
	b.t.Cleanup(func() {
		l.stop()
		select {
		case <-over:
		case <-time.After(long):
			b.t.Error("the turn goes on although it was stopped")
		}
	})
	return l
}

// end stops the turn and returns what it did.
func (l *lingering) end() engine.Report {
	l.t.Helper()
	l.stop()
	return receive(l.t, l.done)
}

func receive[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(long):
		require.FailNow(t, "waited in vain")
	}
	return v
}

// until waits until a query counts to n.
func (b *bundle) until(n int, query string, args ...any) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.count(query, args...) == n }, long, 10*time.Millisecond, "%s", query)
}

// outcomes are how the attempts at a job ended, in their order.
func (b *bundle) outcomes(id string) string {
	b.t.Helper()
	var s string
	const stmt = `SELECT coalesce(string_agg(outcome::text, ' ' ORDER BY id), '') FROM daybook.attempts WHERE job_id = $1`
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), stmt, id).Scan(&s))
	return s
}

// hold locks a job's row, once it is unlocked, until release is called.
func (b *bundle) hold(id string) (release func()) {
	b.t.Helper()
	return b.holdBy(`SELECT FROM daybook.jobs WHERE id = $1 FOR UPDATE`, id)
}

// holdBy keeps the transaction of a statement that locks something open until release is called.
func (b *bundle) holdBy(stmt string, args ...any) (release func()) {
	b.t.Helper()
	tx, err := b.Pool.Begin(b.t.Context())
	require.NoError(b.t, err)
	release = sync.OnceFunc(func() { _ = tx.Rollback(context.Background()) })
	b.t.Cleanup(release)
	_, err = tx.Exec(b.t.Context(), stmt, args...)
	require.NoError(b.t, err)
	return release
}

// enqueueMany enqueues n jobs, which greet prefix 0, prefix 1 and so on.
func (b *bundle) enqueueMany(n int, prefix string) {
	b.t.Helper()
	many := make([]queue.NewJob, n)
	for i := range many {
		many[i] = queue.NewJob{OrgID: org, Payload: greet{Name: fmt.Sprint(prefix, i)}}
	}
	_, err := queue.EnqueueJobs(b.t.Context(), b.Pool, many)
	require.NoError(b.t, err)
}

// writeDown has a greeting written down in the transaction that completes it.
func writeDown(job *jobs.Job[greet]) {
	job.InTx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO greeted VALUES ($1)`, job.Payload.Name)
		return err
	})
}

// deaf is a handler of greetings whose first call heeds no context: it blocks until it is released.
type deaf struct {
	calls            atomic.Int32
	reached, proceed chan struct{}
	release          func()
}

func (b *bundle) deaf(policy jobs.Policy) *deaf {
	d := &deaf{reached: make(chan struct{}), proceed: make(chan struct{})}
	d.release = sync.OnceFunc(func() { close(d.proceed) })
	b.t.Cleanup(d.release)
	b.exec(`CREATE TABLE greeted (name text)`)
	jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
		if d.calls.Add(1) == 1 {
			close(d.reached)
			<-d.proceed
		}
		writeDown(job)
		return nil
	})
	return d
}

func TestTurnEndsWithoutAHandlerThatIgnoresItsDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := b.deaf(jobs.Policy{Timeout: short, Base: time.Hour, Parallel: 2})
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[ping]) error { return nil })
	id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	done := make(chan engine.Report, 1)
	began := time.Now()
	turn := b.turn()
	go func() {
		r, err := b.engine.Process(context.Background(), engine.TurnRequest{Turn: turn, Batch: 50, Length: time.Minute})
		assert.NoError(t, err)
		done <- r
	}()
	receive(t, d.reached)
	for range 20 {
		b.enqueue(ping{}, queue.JobOptions{})
	}
	b.enqueue(greet{Name: "Grace"}, queue.JobOptions{})

	r := receive(t, done)

	assert.Less(t, time.Since(began), long/2)
	assert.Equal(t, 21, r.Completed, "the others are worked")
	assert.Equal(t, 1, r.Retried)
	j := b.row(id)
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, string(models.CodeTimeout), j.Code)
	assert.Equal(t, 1, j.RunCount)
	assert.InDelta(t, time.Hour, j.Wait, float64(10*time.Minute), "by its policy")
	assert.Contains(t, b.log.String(), "ids=["+id+"] organizations=["+org+"]")
	assert.Equal(t, 21, b.count(`SELECT count(*) FROM daybook.attempts a
 WHERE outcome = 'completed' AND ended_at < (SELECT ended_at FROM daybook.attempts WHERE job_id = $1)`, id),
		"meanwhile")

	d.release()
	b.due()
	assert.Equal(t, 1, b.work().Completed)
	assert.Equal(t, "retried completed", b.outcomes(id))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted WHERE name = 'Ada'`), "only what the second attempt did")
}

// TestHandlerThatIgnoresItsDeadlineKeepsItsPlace lets it return while its turn goes on: then the
// next of its type is begun.
func TestHandlerThatIgnoresItsDeadlineKeepsItsPlace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := b.deaf(jobs.Policy{Timeout: short, Base: time.Hour, Parallel: 1})
	ada := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	turn := b.linger(b.engine)
	receive(t, d.reached)
	grace := b.enqueue(greet{Name: "Grace"}, queue.JobOptions{})
	b.until(1, `SELECT count(*) FROM daybook.attempts WHERE job_id = $1 AND error_code = 'TIMEOUT'`, ada)
	b.untilQuiet()
	assert.Equal(t, models.JobPending, b.row(grace).State)
	assert.EqualValues(t, 1, d.calls.Load(), "its place is taken")

	d.release()

	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'completed'`, grace)
	r := turn.end()
	assert.Equal(t, 1, r.Completed)
	assert.Equal(t, 1, r.Retried)
	assert.Equal(t, "retried", b.outcomes(ada), "it is not completed again")
	assert.Equal(t, 1, b.row(ada).RunCount)
	assert.Zero(t, b.count(`SELECT count(*) FROM greeted WHERE name = 'Ada'`))
	assert.Equal(t, "completed", b.outcomes(grace))
}

// TestRetryWhileTheFirstAttemptGoesOn has one turn work a job again whose first handler has not
// returned.
func TestRetryWhileTheFirstAttemptGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	proceed := make(chan struct{})
	release := sync.OnceFunc(func() { close(proceed) })
	jobs.Register(b.registry, jobs.Policy{Timeout: 50 * time.Millisecond, Base: time.Millisecond, Parallel: 2},
		func(_ context.Context, job *jobs.Job[greet]) error {
			if job.Attempt == 1 {
				<-proceed
			}
			return nil
		})
	id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	turn := b.linger(b.engine)
	t.Cleanup(release)
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`)
	assert.Equal(t, 1, turn.end().Completed, "the turn waits for no attempt")
	release()
	assert.Equal(t, "retried completed", b.outcomes(id))
	assert.Equal(t, 2, b.row(id).RunCount)
}

// TestStopWithoutAHandlerThatIgnoresIt gives the job back uncounted: the handler had its time
// still.
func TestStopWithoutAHandlerThatIgnoresIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := engine.NewJobs(b.store, b.registry,
		engine.Options{Log: slog.New(slog.DiscardHandler), Grace: 20 * time.Millisecond})
	t.Cleanup(e.Close)
	d := b.deaf(jobs.Policy{})
	id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	turn := b.linger(e)
	receive(t, d.reached)
	told := time.Now()

	r := turn.end()

	assert.Less(t, time.Since(told), long/2)
	assert.Equal(t, 1, r.Released)
	assert.True(t, r.Stopped)
	j := b.row(id)
	assert.Equal(t, models.JobPending, j.State)
	assert.Zero(t, j.RunCount)
	assert.Zero(t, j.Attempts)

	d.release()
	assert.Equal(t, 1, b.work().Completed)
	assert.Equal(t, "completed", b.outcomes(id))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted`), "only what the second attempt did")
}

// TestNoRoom has short jobs wait behind many long ones of a type that has little room.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var now atomic.Int32
	var tooMany atomic.Bool
	jobs.Register(b.registry, jobs.Policy{Parallel: 2}, func(context.Context, *jobs.Job[ping]) error {
		if now.Add(1) > 2 {
			tooMany.Store(true)
		}
		time.Sleep(200 * time.Millisecond)
		now.Add(-1)
		return nil
	})
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error { return nil })
	for range 60 {
		b.enqueue(ping{}, queue.JobOptions{})
	}
	b.enqueueMany(60, "person ")
	turn := b.linger(b.engine)
	tooEarly := 0
	require.Eventually(t, func() bool {
		tooEarly += b.count(`SELECT count(*) FROM daybook.jobs j WHERE state = 'pending' AND last_attempted_at IS NOT NULL`)
		tooEarly += b.count(`SELECT count(*) FROM daybook.jobs j WHERE state = 'leased' AND NOT working`)
		return b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`) == 120
	}, 2*long, 20*time.Millisecond)
	turn.end()
	assert.Zero(t, tooEarly, "nothing is leased that there is no room for")
	assert.False(t, tooMany.Load())
	assert.Less(t, b.count(`SELECT count(*) FROM daybook.jobs
 WHERE type = 'ping' AND finished_at < (SELECT max(finished_at) FROM daybook.jobs WHERE type = 'greet')`), 30,
		"long jobs that are done before the last short one")
	assert.Equal(t, 120, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'completed' AND run_count = 1`))
	assert.Equal(t, 120, b.count(`SELECT count(DISTINCT job_id) FROM daybook.attempts WHERE outcome = 'completed'`))
	assert.Equal(t, 120, b.count(`SELECT count(*) FROM daybook.attempts`), "each once")
}

// TestCancelBeforeInTx cancels a job while its handler runs, which then wants to write.
func TestCancelBeforeInTx(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := b.deaf(jobs.Policy{})
	id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	turn := b.linger(b.engine)
	receive(t, d.reached)
	_, err := queue.CancelJob(t.Context(), b.Pool, id)
	require.NoError(t, err)
	d.release()
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE state = 'cancelled'`)
	assert.Equal(t, 1, turn.end().Cancelled)
	assert.Equal(t, "cancelled", b.outcomes(id))
	assert.Zero(t, b.count(`SELECT count(*) FROM greeted`))
}

// waiting counts the sessions that wait for another session's lock.
const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`

// TestInTxWaitsForItsRow lets another transaction hold the job's row for less than the engine's
// patience.
func TestInTxWaitsForItsRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := b.deaf(jobs.Policy{})
	id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	turn := b.linger(b.engine)
	receive(t, d.reached)
	release := b.hold(id)
	d.release()
	b.until(1, waiting)
	release()
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`)
	assert.Equal(t, 1, turn.end().Completed)
	assert.Equal(t, "completed", b.outcomes(id))
	assert.EqualValues(t, 1, d.calls.Load())
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted`))
}

// TestInTxGivesUpAndTriesAgain holds the job's row until the transaction was given up. The handler
// has ended well: it is not called again for that.
func TestInTxGivesUpAndTriesAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE greeted (name text)`)
	var calls atomic.Int32
	reached, proceed, writes := make(chan struct{}, 9), make(chan struct{}), make(chan string, 99)
	jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
		calls.Add(1)
		reached <- struct{}{}
		<-proceed
		writeDown(job)
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			var xid string
			err := tx.QueryRow(ctx, `SELECT pg_current_xact_id()::text`).Scan(&xid)
			writes <- xid
			return err
		})
		return nil
	})
	id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	turn := b.linger(b.engine)
	receive(t, reached)
	release := b.hold(id)
	close(proceed)
	b.until(1, `SELECT count(*) WHERE pg_xact_status($1::text::xid8) = 'aborted'`, receive(t, writes))
	release()
	b.until(1, completed)
	assert.Equal(t, 1, turn.end().Completed)
	assert.Equal(t, "completed", b.outcomes(id))
	assert.Equal(t, 1, b.row(id).RunCount)
	assert.EqualValues(t, 1, calls.Load())
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted`))
}

// TestOneHeldRowHoldsUpNoOther completes jobs, of which another transaction holds one locked, and
// others that end meanwhile.
func TestOneHeldRowHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reached, proceed := make(chan struct{}, 20), make(chan struct{})
	jobs.Register(b.registry, jobs.Policy{Parallel: 20}, func(context.Context, *jobs.Job[greet]) error {
		reached <- struct{}{}
		<-proceed
		return nil
	})
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[ping]) error { return nil })
	b.enqueueMany(19, "person ")
	held := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	turn := b.linger(b.engine)
	open := sync.OnceFunc(func() { close(proceed) })
	t.Cleanup(open)
	for range 20 {
		receive(t, reached)
	}
	release := b.hold(held)
	open()
	b.until(19, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`)
	for range 20 {
		b.enqueue(ping{}, queue.JobOptions{})
	}
	b.until(39, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`)
	assert.Equal(t, models.JobLeased, b.row(held).State)
	release()
	b.until(40, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed' AND run_count = 1`)
	assert.Equal(t, 40, turn.end().Completed)
	assert.Equal(t, 40, b.count(`SELECT count(DISTINCT job_id) FROM daybook.attempts`))
	assert.Equal(t, 40, b.count(`SELECT count(*) FROM daybook.attempts`), "each once")
}
