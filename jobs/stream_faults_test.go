package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/models/locks"
	"github.com/daybook-dev/daybook/queue"
)

// completed counts the completed jobs.
const completed = `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`

// crowd watches how many are at something at once.
type crowd struct{ now, most atomic.Int32 }

func (c *crowd) enter() {
	for n := c.now.Add(1); ; {
		most := c.most.Load()
		if n <= most || c.most.CompareAndSwap(most, n) {
			return
		}
	}
}

func (c *crowd) leave() { c.now.Add(-1) }

// terminate ends a session, and waits until it has ended.
func (b *bundle) terminate(ctx context.Context, pid uint32) error {
	_, err := b.Pool.Exec(ctx, `SELECT pg_terminate_backend($1, 60000)`, int32(pid))
	return err
}

// TestCapInOneTurn: room for a capped organization's jobs comes when others of theirs end, without
// a notification.
func TestCapInOneTurn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO daybook.organizations (id, max_in_flight) VALUES ($1, 2)`, org)
	var at crowd
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error {
		at.enter()
		defer at.leave()
		time.Sleep(5 * time.Millisecond)
		return nil
	})
	b.enqueueMany(40, "person ")
	turn := b.linger(b.engine)
	b.until(40, completed)
	assert.Equal(t, 40, turn.end().Completed)
	assert.LessOrEqual(t, at.most.Load(), int32(2))
	assert.Equal(t, 40, b.count(`SELECT count(*) FROM daybook.attempts WHERE outcome = 'completed' AND attempt = 1`))
}

// TestCapOfSlowJobs holds a capped organization's jobs while the turn looks for others of theirs in
// vain.
func TestCapOfSlowJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO daybook.organizations (id, max_in_flight) VALUES ($1, 2)`, org)
	reached, proceed := make(chan struct{}, 6), make(chan struct{})
	release := sync.OnceFunc(func() { close(proceed) })
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error {
		reached <- struct{}{}
		<-proceed
		return nil
	})
	b.enqueueMany(6, "person ")
	turn := b.linger(b.engine)
	t.Cleanup(release)
	receive(t, reached)
	receive(t, reached)
	b.untilAsked(20)
	assert.Empty(t, reached)
	release()
	b.until(6, completed)
	assert.Equal(t, 6, turn.end().Completed)
}

// TestBulkTimeout: a statement of a bulk handler that takes too long is the job's attempt, although
// it costs the connection.
func TestBulkTimeout(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.RegisterBulk(b.registry, jobs.Policy{Timeout: 300 * time.Millisecond, Base: time.Millisecond, MaxAttempts: 2},
		func(ctx context.Context, tx pgx.Tx, _ []*jobs.Job[greet]) ([]error, error) {
			_, err := tx.Exec(ctx, `SELECT pg_sleep(5)`)
			return nil, err
		})
	id := b.enqueue(greet{}, queue.JobOptions{})
	turn := b.linger(b.engine)
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE state = 'failed'`)
	r := turn.end()
	assert.Equal(t, 1, r.Retried)
	assert.Equal(t, 1, r.Failed)
	j := b.row(id)
	assert.Equal(t, string(models.CodeTimeout), j.Code)
	assert.Equal(t, 2, j.RunCount)
	assert.Equal(t, "retried failed", b.outcomes(id))
	assert.Equal(t, 2, b.count(`SELECT count(*) FROM daybook.attempts WHERE error_code = 'TIMEOUT'`))
}

// TestBulkThatEndsWellAfterItsTime: jobs whose handler has returned nil are completed, leased or
// not, also when their time was over meanwhile.
func TestBulkThatEndsWellAfterItsTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	direct := b.greetAll(jobs.Policy{Timeout: short}, func(ctx context.Context, _ call) error {
		<-ctx.Done()
		return nil
	})
	b.enqueueMany(100, "person ")
	turn := b.linger(b.engine)
	b.until(100, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`)
	turn.end()
	assert.Positive(t, direct.Load())
	assert.Equal(t, 100, b.count(`SELECT count(*) FROM greeted`))
	assert.Equal(t, 100, b.count(`SELECT count(*) FROM daybook.attempts WHERE outcome = 'completed' AND attempt = 1`))
	assert.Equal(t, 100, b.count(`SELECT count(*) FROM daybook.attempts`))
}

// TestOwnNetworkError: what a handler returns from its transaction is its own, although the
// database's failures look like it.
func TestOwnNetworkError(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for name, c := range map[string]struct {
		err  error
		code models.ErrorCode
	}{
		"a net.Error":         {dial, models.CodeHandlerError},
		"a wrapped net.Error": {fmt.Errorf("ask the mail server: %w", dial), models.CodeHandlerError},
		"io.EOF":              {io.EOF, models.CodeHandlerError},
		"a closed connection": {fmt.Errorf("read: %w", net.ErrClosed), models.CodeHandlerError},
		"with a code":         {jobs.WithCode(models.CodeNetworkError, dial), models.CodeNetworkError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var calls atomic.Int32
			jobs.Register(b.registry, jobs.Policy{Base: 10 * time.Minute},
				func(_ context.Context, job *jobs.Job[greet]) error {
					writeDown(job)
					job.InTx(func(context.Context, pgx.Tx) error {
						calls.Add(1)
						return c.err
					})
					return nil
				})
			b.exec(`CREATE TABLE greeted (name text)`)
			id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
			assert.Equal(t, 1, b.work().Retried)
			b.assertOwn(id, c.code)
			assert.EqualValues(t, 1, calls.Load())
		})
		t.Run(name+", of a bulk", func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.greetAll(jobs.Policy{Base: 10 * time.Minute}, func(_ context.Context, call call) error {
				if call.greets("Ada") {
					return c.err
				}
				return nil
			})
			b.enqueueMany(2, "person ")
			id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
			r := b.work()
			assert.Equal(t, 1, r.Retried)
			assert.Equal(t, 2, r.Completed)
			b.assertOwn(id, c.code)
		})
	}
}

// assertOwn asserts that a job's attempt has counted, and is to be followed by another one by the
// policy: after ten minutes.
func (b *bundle) assertOwn(id string, code models.ErrorCode) {
	b.t.Helper()
	j := b.row(id)
	assert.Equal(b.t, models.JobPending, j.State)
	assert.Equal(b.t, string(code), j.Code)
	assert.Equal(b.t, 1, j.RunCount)
	assert.Equal(b.t, "retried", b.outcomes(id))
	assert.InDelta(b.t, 10*time.Minute, j.Wait, float64(2*time.Minute))
	assert.Zero(b.t, b.count(`SELECT count(*) FROM greeted WHERE name = 'Ada'`))
}

// TestCutConnection: a connection that is cut under a handler's transaction is not an attempt.
func TestCutConnection(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"noticed by the handler": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT 1`)
			return err
		},
		"noticed by the completion": func(context.Context, pgx.Tx) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(`CREATE TABLE greeted (name text)`)
			var handled, calls atomic.Int32
			jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
				handled.Add(1)
				writeDown(job)
				job.InTx(func(ctx context.Context, tx pgx.Tx) error {
					if calls.Add(1) > 1 {
						return nil
					}
					if err := b.terminate(ctx, tx.Conn().PgConn().PID()); err != nil {
						return jobs.Final(err)
					}
					return then(ctx, tx)
				})
				return nil
			})
			id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
			assert.Equal(t, 1, b.work().Completed)
			assert.Equal(t, "completed", b.outcomes(id))
			assert.Equal(t, 1, b.row(id).RunCount)
			assert.EqualValues(t, 1, handled.Load())
			assert.EqualValues(t, 2, calls.Load())
			assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted`))
		})
		t.Run(name+", of a bulk", func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var calls atomic.Int32
			b.greetAll(jobs.Policy{}, func(ctx context.Context, c call) error {
				if calls.Add(1) > 1 {
					return nil
				}
				if err := b.terminate(ctx, c.tx.Conn().PgConn().PID()); err != nil {
					return jobs.Final(err)
				}
				return then(ctx, c.tx)
			})
			b.enqueueMany(3, "person ")
			turn := b.linger(b.engine)
			b.until(3, completed)
			turn.end()
			assert.Equal(t, 3, b.count(`SELECT count(*) FROM daybook.jobs WHERE run_count = 1`))
			assert.Zero(t, b.count(`SELECT count(*) FROM daybook.attempts WHERE outcome NOT IN ('completed', 'rescheduled')`))
			assert.Equal(t, 3, b.count(`SELECT count(*) FROM greeted`))
		})
	}
}

// TestSettingsOfTransactions: a handler's statements are planned as in any other session of the
// database. How long they may wait for locks is the policy's to say, not the database's.
func TestSettingsOfTransactions(t *testing.T) {
	t.Parallel()
	read := func(ctx context.Context, tx pgx.Tx) (s [4]string, err error) {
		const stmt = `SELECT current_setting('idle_in_transaction_session_timeout'), current_setting('lock_timeout'),
       current_setting('enable_seqscan'), current_setting('plan_cache_mode')`
		err = tx.QueryRow(ctx, stmt).Scan(&s[0], &s[1], &s[2], &s[3])
		return s, err
	}
	for name, bulk := range map[string]bool{"InTx": false, "of a bulk": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(`DO $$ BEGIN
  EXECUTE format('ALTER DATABASE %I SET lock_timeout = %L', current_database(), '77s');
  EXECUTE format('ALTER DATABASE %I SET plan_cache_mode = %L', current_database(), 'force_custom_plan');
END $$`)
			b.Pool.Reset()
			got := make(chan [4]string, 2)
			if bulk {
				b.greetAll(jobs.Policy{}, func(ctx context.Context, c call) error {
					s, err := read(ctx, c.tx)
					got <- s
					return err
				})
			} else {
				jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
					job.InTx(func(ctx context.Context, tx pgx.Tx) error {
						s, err := read(ctx, tx)
						got <- s
						return err
					})
					return nil
				})
			}
			for range 2 {
				b.enqueue(greet{}, queue.JobOptions{})
				require.Equal(t, 1, b.work().Completed)
				assert.Equal(t, [4]string{"10s", "0", "on", "force_custom_plan"}, receive(t, got))
			}
		})
	}
}

// TestInTxOfALostLeaseRunsOnce: who has lost a lease does not try again.
func TestInTxOfALostLeaseRunsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE greeted (name text)`)
	var calls, runs atomic.Int32
	reached, proceed := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(proceed) })
	jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
		name := "heir"
		if calls.Add(1) == 1 {
			name = "zombie"
			close(reached)
			<-proceed
		}
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			if name == "zombie" {
				runs.Add(1)
			}
			_, err := tx.Exec(ctx, `INSERT INTO greeted VALUES ($1)`, name)
			return err
		})
		return nil
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	request := engine.TurnRequest{Turn: b.turn(), Batch: 50, Length: time.Minute}
	done := make(chan engine.Report, 1)
	go func() {
		r, err := b.engine.Process(context.Background(), request)
		assert.NoError(t, err)
		done <- r
	}()
	t.Cleanup(release)
	receive(t, reached)
	heir := request
	heir.Crashed = true
	r, err := b.engine.Process(t.Context(), heir)
	require.NoError(t, err)
	assert.Equal(t, 1, r.Completed)
	release()
	zombie := receive(t, done)
	assert.Zero(t, zombie.Completed+zombie.Retried+zombie.Rescheduled+zombie.Failed+zombie.Cancelled+zombie.Released)
	assert.EqualValues(t, 1, runs.Load())
	assert.EqualValues(t, 2, calls.Load())
	assert.Equal(t, "lost completed", b.outcomes(id))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted WHERE name = 'heir'`))
	assert.Zero(t, b.count(`SELECT count(*) FROM greeted WHERE name = 'zombie'`))
}

// TestPlaceUnderACapIsTaken: a turn that waits takes a place under its organization's cap soon after
// it is free, although no worker says so. It would look by itself 50 seconds after its last scan.
func TestPlaceUnderACapIsTaken(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]func(b *bundle) (free func()){
		"of a job that its turn has left behind": func(b *bundle) func() {
			b.exec(`INSERT INTO daybook.organizations (id, max_in_flight) VALUES ($1, 1)`, org)
			begun, end := b.untilTold(2) // the type has room still, or its end would be told of
			free := sync.OnceFunc(func() { close(end) })
			b.t.Cleanup(free)
			b.enqueue(greet{}, queue.JobOptions{})
			other := b.lingerFor(b.engine, time.Second)
			receive(b.t, begun)
			receive(b.t, other.done)
			return free
		},
		"when another worker leases of it": func(b *bundle) func() {
			b.exec(`INSERT INTO daybook.organizations (id, max_in_flight) VALUES ($1, 5)`, org)
			return b.holdBy(`SELECT pg_advisory_xact_lock($1, hashtext($2))`, locks.OrganizationLeases, org)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			worked := make(chan struct{}, 1)
			jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[ping]) error {
				worked <- struct{}{}
				return nil
			})
			free := full(b)
			b.linger(b.engine)
			began := time.Now()
			b.enqueue(ping{}, queue.JobOptions{})
			b.untilAsked(20) // several times, in vain
			require.Empty(t, worked)
			free()
			receive(t, worked)
			assert.Less(t, time.Since(began), 30*time.Second)
		})
	}
}

// TestTurnThatDoesNotLingerWorksAll: it waits for the room that its own jobs leave, and ends when
// the queue is empty.
func TestTurnThatDoesNotLingerWorksAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var at crowd
	jobs.Register(b.registry, jobs.Policy{Parallel: 2}, func(context.Context, *jobs.Job[greet]) error {
		at.enter()
		defer at.leave()
		time.Sleep(2 * time.Millisecond)
		return nil
	})
	b.enqueueMany(100, "person ")
	r := b.work()
	assert.Equal(t, 100, r.Completed)
	assert.Zero(t, r.Released)
	assert.LessOrEqual(t, at.most.Load(), int32(2))
}

// TestNoCallIsLost enqueues jobs in pairs, the second while the turn takes note of the first.
func TestNoCallIsLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begun := make(chan struct{}, 300)
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error {
		begun <- struct{}{}
		return nil
	})
	turn := b.linger(b.engine)
	began := time.Now()
	done := make(chan bool, 1)
	go func() {
		for pair := range 150 {
			for range 2 {
				if _, err := queue.EnqueueJob(t.Context(), b.Pool, org, greet{}, queue.JobOptions{}); !assert.NoError(t, err) {
					done <- false
					return
				}
				<-time.After(rand.N(3 * time.Millisecond))
			}
			for range 2 {
				select {
				case <-begun:
				case <-time.After(long - time.Since(began)):
					assert.Fail(t, "not all are begun", "pair %d", pair)
					done <- false
					return
				}
			}
		}
		done <- true
	}()
	select {
	case all := <-done:
		require.True(t, all)
	case <-time.After(2 * long):
		require.FailNow(t, "waited in vain")
	}
	b.until(300, completed)
	assert.Less(t, time.Since(began), long)
	assert.Equal(t, 300, turn.end().Completed)
}

// untilQuiet waits until no session has asked the database for a second: who waits for work then
// has seen that there is none.
func (b *bundle) untilQuiet() {
	b.t.Helper()
	var last int64
	quiet := 0
	require.Eventually(b.t, func() bool {
		now := b.Pool.Stat()
		if quiet++; now.AcquireCount() != last || now.AcquiredConns() > 0 {
			quiet = 0
		}
		last = now.AcquireCount()
		return quiet == 20
	}, long, 50*time.Millisecond)
}

// untilAsked waits until the database was asked n times more: a turn that waits has looked.
func (b *bundle) untilAsked(n int64) {
	b.t.Helper()
	enough := b.Pool.Stat().AcquireCount() + n
	require.Eventually(b.t, func() bool { return b.Pool.Stat().AcquireCount() >= enough }, long, 10*time.Millisecond)
}

// holdWakers has a waiter of another process hold the lock that has enqueuers notify, until the test
// ends. It takes none of the pool's connections, which untilQuiet wants back.
func (b *bundle) holdWakers() {
	b.t.Helper()
	conn, err := pgx.ConnectConfig(b.t.Context(), b.Pool.Config().ConnConfig)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	const jobQueue = 2
	_, err = conn.Exec(b.t.Context(), `SELECT pg_advisory_lock($1, $2)`, locks.Wakers, jobQueue)
	require.NoError(b.t, err)
}

// TestRetriesWakeATurn: a turn that waits, in the same process or another one, learns of retries
// that another turn writes, whatever that one does meanwhile. It would see them by itself 50 seconds
// after its last scan.
func TestRetriesWakeATurn(t *testing.T) {
	t.Parallel()
	hasEnded := func(b *bundle, other *lingering) {
		b.until(10, `SELECT count(*) FROM daybook.attempts WHERE outcome = 'retried'`)
		other.end()
	}
	leftBehind := func(_ *bundle, other *lingering) { receive(other.t, other.done) }
	for name, c := range map[string]struct {
		// length is the other turn's; before and after are what happens to it before and after the jobs
		// are released that it works. elsewhere: another process waits.
		length        time.Duration
		before, after func(b *bundle, other *lingering)
		elsewhere     bool
	}{
		"the other turn goes on":   {length: time.Hour},
		"the other turn has ended": {length: time.Hour, after: hasEnded},
		"the other turn was told to end": {length: time.Hour, before: func(b *bundle, other *lingering) {
			other.stop()
			b.untilQuiet()
		}},
		"the other turn has left its jobs behind":  {length: time.Second, before: leftBehind},
		"the other process has ended its turn":     {length: time.Hour, after: hasEnded, elsewhere: true},
		"the other process goes on without a turn": {length: time.Second, before: leftBehind, elsewhere: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			reached, proceed := make(chan struct{}, 10), make(chan struct{})
			release := sync.OnceFunc(func() { close(proceed) })
			jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
				if job.Attempt == 1 {
					reached <- struct{}{}
					<-proceed
					return jobs.RetryAfter(300*time.Millisecond, errors.New("not yet"))
				}
				return nil
			})
			waits := b.engine
			if c.elsewhere {
				waits = b.worker(b.registry)
				b.holdWakers() // no process gives the lock up, which tells the others as well
			}
			b.enqueueMany(10, "person ")
			other := b.lingerFor(b.engine, c.length)
			t.Cleanup(release)
			for range 10 {
				receive(t, reached)
			}
			fence := b.count(`SELECT last_value FROM daybook.fence_seq`)
			stop := make(chan struct{})
			var waiter sync.WaitGroup
			t.Cleanup(waiter.Wait)
			t.Cleanup(sync.OnceFunc(func() { close(stop) }))
			waiter.Go(func() {
				// Like a lane: a turn that found what the ending one was giving back ends with nothing.
				for n := 0; ; n++ {
					turn := store.Turn{ID: fmt.Sprintf("run/1/%d", n), Worker: "test", WorkflowRunID: "run"}
					_, err := waits.Process(context.Background(),
						engine.TurnRequest{Turn: turn, Batch: 50, Wait: time.Hour, Stop: stop})
					select {
					case <-stop:
						return
					default:
					}
					if !assert.NoError(t, err) {
						return
					}
				}
			})
			b.until(fence+1, `SELECT last_value FROM daybook.fence_seq`)
			b.untilQuiet()
			if c.before != nil {
				c.before(b, other)
			}
			began := time.Now()
			release()
			if c.after != nil {
				c.after(b, other)
			}
			b.until(10, completed)
			assert.Less(t, time.Since(began), 30*time.Second)
			assert.Equal(t, 10, b.count(`SELECT count(*) FROM daybook.jobs WHERE run_count = 2`))
		})
	}
}
