package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// call is one call of a bulk handler.
type call struct {
	tx   pgx.Tx
	jobs []*jobs.Job[greet]
	// direct: the jobs are not leased.
	direct bool
}

func (c call) greets(name string) bool {
	for _, j := range c.jobs {
		if j.Payload.Name == name {
			return true
		}
	}
	return false
}

// greetAll registers a bulk handler that writes down whom it greeted, and then does what the test
// says. It counts the calls without a lease.
func (b *bundle) greetAll(policy jobs.Policy, then func(ctx context.Context, c call) error) (direct *atomic.Int32) {
	b.exec(`CREATE TABLE IF NOT EXISTS greeted (name text)`)
	direct = &atomic.Int32{}
	jobs.RegisterBulk(b.registry, policy, func(ctx context.Context, tx pgx.Tx, all []*jobs.Job[greet]) ([]error, error) {
		c := call{tx: tx, jobs: all}
		if err := tx.QueryRow(ctx, `SELECT state = 'pending' FROM daybook.jobs WHERE id = $1`,
			all[0].ID).Scan(&c.direct); err != nil {
			return nil, err
		}
		if c.direct {
			direct.Add(1)
		}
		names := make([]string, len(all))
		for i, j := range all {
			names[i] = j.Payload.Name
		}
		if _, err := tx.Exec(ctx, `INSERT INTO greeted SELECT unnest($1::text[])`, names); err != nil {
			return nil, err
		}
		return nil, then(ctx, c)
	})
	return direct
}

func nothingMore(context.Context, call) error { return nil }

// TestBulkWithoutALease works many jobs by three turns at once, of one worker and of three.
func TestBulkWithoutALease(t *testing.T) {
	t.Parallel()
	for name, workers := range map[string]int{"one worker": 1, "three workers": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			direct := b.greetAll(jobs.Policy{}, nothingMore)
			jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[ping]) error { return nil })
			b.enqueueMany(1500, "early ")
			other := b.enqueue(ping{}, queue.JobOptions{})
			b.enqueueMany(1500, "late ")
			engines := []*engine.Engine{b.engine}
			for range workers - 1 {
				engines = append(engines, b.engineOn(b.Pool))
			}
			var turns []*lingering
			for i := range 3 {
				turns = append(turns, b.linger(engines[i%workers]))
			}
			b.until(3001, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`)
			completed := 0
			for _, turn := range turns {
				completed += turn.end().Completed
			}
			assert.Equal(t, 3001, completed)
			assert.Positive(t, direct.Load())
			assert.Equal(t, 3000, b.count(`SELECT count(*) FROM greeted`))
			assert.Equal(t, 3000, b.count(`SELECT count(DISTINCT name) FROM greeted`))
			assert.Equal(t, 3001, b.count(`SELECT count(*) FROM daybook.attempts WHERE outcome = 'completed' AND attempt = 1`))
			assert.Equal(t, 3001, b.count(`SELECT count(*) FROM daybook.attempts`))
			assert.Equal(t, "completed", b.outcomes(other))
		})
	}
}

// TestBulkChangesTheRowsOfItsJobs: a handler changes the rows of its jobs in the transaction that
// has picked them, and they are completed there.
func TestBulkChangesTheRowsOfItsJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 600
	var called atomic.Int32
	direct := b.greetAll(jobs.Policy{}, func(ctx context.Context, c call) error {
		called.Add(int32(len(c.jobs)))
		for _, j := range c.jobs {
			if _, err := c.tx.Exec(ctx, `UPDATE daybook.jobs SET priority = 3 WHERE id = $1`, j.ID); err != nil {
				return err
			}
		}
		return nil
	})
	b.enqueueMany(n, "person ")
	turn := b.linger(b.engine)
	b.until(n, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed' AND priority = 3`)
	turn.end()
	assert.Positive(t, direct.Load())
	assert.EqualValues(t, n, called.Load(), "no call was made again under a lease")
}

// TestBulkWithoutALeaseLetsOthersPass never runs out of jobs of the bulk type before the one of
// another type is done.
func TestBulkWithoutALeaseLetsOthersPass(t *testing.T) {
	t.Parallel()
	b := setup(t)
	passed := make(chan struct{})
	var count atomic.Int32
	direct := b.greetAll(jobs.Policy{}, func(ctx context.Context, c call) error {
		select {
		case <-passed:
			return nil
		default:
		}
		more := make([]queue.NewJob, len(c.jobs))
		for i := range more {
			more[i] = queue.NewJob{OrgID: org, Payload: greet{Name: fmt.Sprint("another ", count.Add(1))}}
		}
		_, err := queue.EnqueueJobs(ctx, c.tx, more)
		return err
	})
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[ping]) error {
		close(passed)
		return nil
	})
	b.enqueueMany(1000, "person ")
	other := b.enqueue(ping{}, queue.JobOptions{})
	turn := b.linger(b.engine)
	receive(t, passed)
	b.until(0, `SELECT count(*) FROM daybook.jobs WHERE state <> 'completed'`)
	turn.end()
	assert.Positive(t, direct.Load())
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.attempts WHERE job_id = $1 AND started_at > (
  SELECT enqueued + interval '15 s' FROM (SELECT created_at AS enqueued FROM daybook.jobs WHERE id = $1) j)`, other),
		"it does not wait long")
	assert.Equal(t, b.count(`SELECT count(*) FROM daybook.jobs WHERE type = 'greet'`),
		b.count(`SELECT count(*) FROM greeted`))
}

// TestFailureInABulkWithoutALease has one job spoil the transaction of a refill.
func TestFailureInABulkWithoutALease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE greeted (name text PRIMARY KEY)`)
	b.exec(`INSERT INTO greeted VALUES ('spoiler')`)
	b.greetAll(jobs.Policy{MaxAttempts: 1}, nothingMore)
	b.enqueueMany(100, "early ")
	spoiler := b.enqueue(greet{Name: "spoiler"}, queue.JobOptions{})
	b.enqueueMany(100, "late ")
	turn := b.linger(b.engine)
	b.until(201, `SELECT count(*) FROM daybook.jobs WHERE state IN ('completed', 'failed')`)
	r := turn.end()
	assert.Equal(t, 200, r.Completed)
	assert.Equal(t, 1, r.Failed)
	assert.Equal(t, "failed", b.outcomes(spoiler))
	assert.Contains(t, b.row(spoiler).Error, "greeted_pkey")
	assert.Equal(t, 201, b.count(`SELECT count(*) FROM greeted`))
	assert.Equal(t, 201, b.count(`SELECT count(*) FROM daybook.attempts`), "each once")
}

// TestPanicInABulkWithoutALease is an attempt of each of its jobs.
func TestPanicInABulkWithoutALease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var panicked atomic.Int32
	b.greetAll(jobs.Policy{}, func(_ context.Context, c call) error {
		if c.jobs[0].Payload.Name[:5] == "first" {
			return nil
		}
		if c.direct {
			panicked.Add(1)
		}
		panic("oh no")
	})
	b.enqueueMany(50, "first ")
	b.enqueueMany(20, "second ")
	turn := b.linger(b.engine)
	b.until(70, `SELECT count(*) FROM daybook.attempts`)
	r := turn.end()
	assert.Equal(t, 50, r.Completed)
	assert.Equal(t, 20, r.Retried)
	assert.Positive(t, panicked.Load(), "without a lease")
	assert.Equal(t, 20, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND run_count = 1 AND last_error_code = 'HANDLER_ERROR'
   AND last_error LIKE '%panic: oh no%stream_bulk_test.go%'`))
	assert.Equal(t, 20, b.count(`SELECT count(DISTINCT job_id) FROM daybook.attempts WHERE outcome = 'retried' AND error LIKE '%stream_bulk_test.go%'`))
	assert.Equal(t, 50, b.count(`SELECT count(*) FROM greeted`), "nothing of what panicked is committed")
}

// TestTurnGoesOnWithoutABulkThatIgnoresItsDeadline blocks a call without a lease: others are
// worked, and the turn can be stopped.
func TestTurnGoesOnWithoutABulkThatIgnoresItsDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	reached, proceed := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(proceed) })
	b.greetAll(jobs.Policy{Timeout: short}, func(_ context.Context, c call) error {
		if c.direct && calls.Add(1) == 1 {
			close(reached)
			<-proceed
		}
		return nil
	})
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[ping]) error { return nil })
	b.enqueueMany(200, "person ")
	turn := b.linger(b.engine)
	t.Cleanup(release)
	receive(t, reached)
	b.enqueue(ping{}, queue.JobOptions{})
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE type = 'ping' AND state = 'completed'`)
	turn.end()
	release()
	b.finish(201)
	assert.Equal(t, 200, b.count(`SELECT count(*) FROM greeted`))
}

// finish works until so many jobs are completed, whatever they wait for.
func (b *bundle) finish(n int) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		b.due()
		b.work()
		return b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`) == n
	}, long, 10*time.Millisecond)
}

// TestBulkThatEndsItsGoroutine has a handler call runtime.Goexit, as t.FailNow does: its jobs are
// given back.
func TestBulkThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	for name, direct := range map[string]bool{"leased": false, "without a lease": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var calls atomic.Int32
			exited := make(chan struct{})
			b.greetAll(jobs.Policy{}, func(_ context.Context, c call) error {
				if c.direct == direct && calls.Add(1) == 1 {
					close(exited)
					runtime.Goexit()
				}
				return nil
			})
			b.enqueueMany(200, "person ")
			turn := b.linger(b.engine)
			receive(t, exited)
			turn.end()
			b.finish(200)
			assert.Equal(t, 200, b.count(`SELECT count(*) FROM greeted`))
			assert.Equal(t, 200, b.count(`SELECT count(DISTINCT name) FROM greeted`))
		})
	}
}

// TestCancelBeforeABulkWithoutALease cancels pending jobs while the turn works those before them.
func TestCancelBeforeABulkWithoutALease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var last []string
	cancelled := make(chan struct{})
	direct := b.greetAll(jobs.Policy{}, func(ctx context.Context, c call) error {
		if c.direct {
			<-cancelled
			return nil
		}
		if !c.greets("early 0") {
			return nil
		}
		defer close(cancelled)
		for _, id := range last {
			if _, err := queue.CancelJob(ctx, b.Pool, id); err != nil {
				return err
			}
		}
		return nil
	})
	b.enqueueMany(50, "early ")
	b.enqueueMany(250, "late ")
	rows, err := b.Pool.Query(t.Context(), `SELECT id FROM daybook.jobs ORDER BY ready_at DESC, id DESC LIMIT 10`)
	require.NoError(t, err)
	last, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	turn := b.linger(b.engine)
	b.until(300, `SELECT count(*) FROM daybook.jobs WHERE state IN ('completed', 'cancelled')`)
	assert.Equal(t, 290, turn.end().Completed)
	assert.Positive(t, direct.Load())
	assert.Equal(t, 290, b.count(`SELECT count(*) FROM greeted`))
	assert.Equal(t, 10, b.count(`SELECT count(*) FROM daybook.jobs WHERE id = ANY ($1) AND state = 'cancelled' AND run_count = 0`, last))
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.attempts WHERE job_id = ANY ($1)`, last))
}

// TestBulkWithAHeldRow lets another transaction lock a row between the first call, which fails, and
// the job's own.
func TestBulkWithAHeldRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	reached, proceed := make(chan struct{}), make(chan struct{})
	b.greetAll(jobs.Policy{}, func(context.Context, call) error {
		if calls.Add(1) > 1 {
			return nil
		}
		close(reached)
		<-proceed
		return errors.New("no luck together")
	})
	b.enqueueMany(19, "person ")
	held := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	turn := b.linger(b.engine)
	open := sync.OnceFunc(func() { close(proceed) })
	t.Cleanup(open)
	receive(t, reached)
	got := make(chan func(), 1)
	go func() { got <- b.hold(held) }()
	b.until(1, waiting)
	open()
	release := receive(t, got)
	b.until(19, `SELECT least(count(*), 19) FROM daybook.jobs WHERE state = 'completed'`)
	release()
	// It is done at once, or was given back: for a second, or, if it was locked even then, until the
	// turn's end.
	turn.end()
	b.due()
	b.work()
	assert.Equal(t, 20, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'completed' AND run_count = 1`))
	assert.Equal(t, 20, b.count(`SELECT count(*) FROM daybook.attempts WHERE outcome = 'completed'`))
	assert.Equal(t, 20, b.count(`SELECT count(*) FROM daybook.attempts`), "each once")
	assert.Equal(t, 20, b.count(`SELECT count(*) FROM greeted`))
}
