package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// cutter dials connections of which one can be cut when the answer of a COMMIT comes: the
// transaction took place, and its worker does not know.
type cutter struct {
	armed atomic.Bool
	// then is called before the worker learns that its connection is gone.
	then func()
}

type cutConn struct {
	net.Conn
	by *cutter
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && bytes.Contains(p[:n], []byte("COMMIT\x00")) && c.by.armed.CompareAndSwap(true, false) {
		_ = c.Conn.Close()
		if c.by.then != nil {
			c.by.then()
		}
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func (c *cutter) dialer(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &cutConn{conn, c}, nil
	}
}

// cutting is an engine whose connections the cutter has dialled.
func (b *bundle) cutting() (*cutter, *engine.Engine) {
	b.t.Helper()
	c := &cutter{}
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(b.t, err)
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = c.dialer(dial)
	pool, err := pgxpool.NewWithConfig(b.t.Context(), config)
	require.NoError(b.t, err)
	b.t.Cleanup(pool.Close)
	return c, b.engineOn(pool)
}

// leasedAgain waits until the second attempt has begun. Other work has the turn look at the queue.
func (b *bundle) leasedAgain(begun <-chan struct{}) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		b.enqueue(ping{}, queue.JobOptions{})
		select {
		case <-begun:
			return true
		default:
			return false
		}
	}, long, 20*time.Millisecond, "the job is leased again")
}

// coalesced asks anew for a unique job that is being worked.
func (b *bundle) coalesced(p queue.Payload) {
	b.t.Helper()
	asked, err := queue.EnqueueJob(b.t.Context(), b.Pool, org, p, queue.JobOptions{Unique: true})
	require.NoError(b.t, err)
	require.Equal(b.t, queue.Coalesced, asked.Result)
}

// TestCommitOfACompletionIsUnknownAndItsJobIsLeasedAgain: a unique job was asked for anew during
// its attempt, whose transaction (InTx) commits, and the connection is cut before the worker knows.
// The job is pending, and the same turn, under the same fence, leases it again, with attempt 1
// again. The next try of the first completion does not take that lease for its own.
func TestCommitOfACompletionIsUnknownAndItsJobIsLeasedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE effects (n bigint GENERATED ALWAYS AS IDENTITY, call int)`)
	cut, e := b.cutting()
	var calls, runs atomic.Int32
	reached, proceed, again := make(chan struct{}), make(chan struct{}), make(chan struct{})
	second, secondGo := make(chan struct{}), make(chan struct{})
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[ping]) error { return nil })
	jobs.Register(b.registry, jobs.Policy{Parallel: 5}, func(_ context.Context, job *jobs.Job[greet]) error {
		call := calls.Add(1)
		switch call {
		case 1:
			close(reached)
			<-proceed
		case 2:
			close(second)
			<-secondGo
		}
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			if call == 1 {
				switch runs.Add(1) {
				case 1:
					cut.armed.Store(true)
				case 2:
					// It takes a while.
					close(again)
					select {
					case <-second:
					case <-time.After(20 * time.Second):
					}
				}
			}
			_, err := tx.Exec(ctx, `INSERT INTO effects (call) VALUES ($1)`, call)
			return err
		})
		return nil
	})
	id := b.enqueue(greet{Name: "refresh"}, queue.JobOptions{Unique: true})
	turn := b.linger(e)
	receive(t, reached)
	b.coalesced(greet{Name: "refresh"})
	close(proceed)
	receive(t, again)
	b.until(1, `SELECT count(*) FROM effects`)
	b.leasedAgain(second)
	b.until(0, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction' AND pid <> pg_backend_pid()`)
	require.Eventually(t, func() bool { return runs.Load() == 2 }, long, time.Millisecond)
	close(secondGo)
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'completed'`, id)
	turn.end()
	var effects []int32
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT array_agg(call ORDER BY n) FROM effects`).Scan(&effects))
	assert.Equal(t, []int32{1, 2}, effects, "each attempt's effect once")
}

// TestLeaseThatWasReclaimedIsNotThatOfTheNextAttempt: the lease of an attempt is not renewed for
// long, another process reclaims it, and the same turn leases the job again. The job was asked for
// anew meanwhile, so that its attempts are counted from 1 again. What the first attempt does is not
// committed: its lease is lost.
func TestLeaseThatWasReclaimedIsNotThatOfTheNextAttempt(t *testing.T) {
	t.Parallel()
	for name, inTx := range map[string]bool{"InTx": true, "completed together": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(`CREATE TABLE source (v int); CREATE TABLE effects (n bigint GENERATED ALWAYS AS IDENTITY, v int)`)
			b.exec(`INSERT INTO source VALUES (1)`)
			jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[ping]) error { return nil })
			var calls atomic.Int32
			begun, goOn := [2]chan struct{}{make(chan struct{}), make(chan struct{})},
				[2]chan struct{}{make(chan struct{}), make(chan struct{})}
			jobs.Register(b.registry, jobs.Policy{Parallel: 5, Base: time.Millisecond},
				func(ctx context.Context, job *jobs.Job[greet]) error {
					var v int
					if err := b.Pool.QueryRow(ctx, `SELECT v FROM source`).Scan(&v); err != nil {
						return err
					}
					call := calls.Add(1)
					if call <= 2 {
						close(begun[call-1])
						<-goOn[call-1]
					}
					if call == 2 && !inTx {
						return errors.New("the provider is down") // the request is still to be done
					}
					write := func(ctx context.Context, tx pgx.Tx) error {
						_, err := tx.Exec(ctx, `INSERT INTO effects (v) VALUES ($1)`, v)
						return err
					}
					if inTx {
						job.InTx(write)
						return nil
					}
					return pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error { return write(ctx, tx) })
				})
			id := b.enqueue(greet{Name: "refresh"}, queue.JobOptions{Unique: true})
			turn := b.linger(b.engine)
			receive(t, begun[0])
			b.exec(`UPDATE source SET v = 2`)
			b.coalesced(greet{Name: "refresh"})
			b.exec(`UPDATE daybook.jobs SET last_attempted_at = now() - interval '11 seconds' WHERE id = $1`, id)
			got, err := store.NewQueue(b.Pool, store.Jobs).ReclaimExpired(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, got.Jobs)
			b.leasedAgain(begun[1])
			close(goOn[0])
			// The first attempt has had its time to complete the job, or not to.
			assert.Never(t, func() bool { return b.row(id).State == models.JobCompleted }, 2*time.Second, 20*time.Millisecond,
				"an attempt whose lease was reclaimed completes the job")
			close(goOn[1])
			b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'completed'`, id)
			turn.end()
			assert.Equal(t, 2, b.count(`SELECT v FROM effects ORDER BY n DESC LIMIT 1`), "what was asked for is done")
		})
	}
}

// TestCommitOfARetryIsUnknownAndItsJobIsLeasedAgain is the same for an attempt that failed and is
// repeated at once. The completion of the first attempt took place, and is tried again when the
// turn holds the job for its second one. It does not hold up what else ends in the turn. An attempt
// that snoozes is not counted: the second one has the same number.
func TestCommitOfARetryIsUnknownAndItsJobIsLeasedAgain(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]error{
		"retried": jobs.RetryAfter(0, errors.New("not yet")), "snoozed": jobs.Snooze(0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leasedAgainAfterALostCommit(t, first)
		})
	}
}

func leasedAgainAfterALostCommit(t *testing.T, first error) {
	t.Helper()
	b := setup(t)
	cut, e := b.cutting()
	// The database fails completions for a while, and leases not as long: after an outage the one or
	// the other is tried first.
	b.exec(`CREATE TABLE failing (x int)`)
	b.exec(`CREATE FUNCTION fail_completions() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF current_query() LIKE '%completed_turn_id%' AND EXISTS (SELECT FROM failing) THEN RAISE EXCEPTION 'failing' USING ERRCODE = '53200'; END IF; RETURN NULL; END $$`)
	b.exec(`CREATE TRIGGER fail_completions BEFORE UPDATE ON daybook.jobs FOR EACH STATEMENT EXECUTE FUNCTION fail_completions()`)
	gone := make(chan struct{})
	cut.then = func() {
		b.exec(`INSERT INTO failing VALUES (1)`)
		close(gone)
	}
	var calls atomic.Int32
	release, second := make(chan struct{}), make(chan struct{})
	jobs.Register(b.registry, jobs.Policy{Parallel: 50}, func(context.Context, *jobs.Job[ping]) error {
		time.Sleep(10 * time.Millisecond)
		return nil
	})
	jobs.Register(b.registry, jobs.Policy{Parallel: 5}, func(context.Context, *jobs.Job[greet]) error {
		switch calls.Add(1) {
		case 1:
			cut.armed.Store(true)
			return first
		case 2:
			close(second)
			<-release
		}
		return nil
	})
	id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	turn := b.linger(e)
	goOn := sync.OnceFunc(func() { close(release) })
	t.Cleanup(goOn)
	receive(t, gone)
	b.enqueue(ping{}, queue.JobOptions{})
	receive(t, second)
	b.exec(`DELETE FROM failing`)
	for range 400 {
		b.enqueue(ping{}, queue.JobOptions{})
		time.Sleep(5 * time.Millisecond)
	}
	assert.Eventually(t, func() bool {
		return b.count(`SELECT count(*) FROM daybook.jobs WHERE type = 'ping' AND state = 'completed'`) == 401
	}, pgtest.Patience, 20*time.Millisecond, "while the second attempt runs, other jobs of its turn are completed")
	assert.Equal(t, models.JobLeased, b.row(id).State)
	goOn()
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'completed'`, id)
	turn.end()
	assert.EqualValues(t, 2, calls.Load(), "the second attempt keeps its lease")
}

// TestReclaimedJobThatIsReset is the same for any job: a person has it tried as if it had never
// been tried, after its lease was reclaimed. The same turn leases it, as attempt 1 again. The first
// attempt neither commits its effect, nor says anything of the job any more.
func TestReclaimedJobThatIsReset(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE effects (n bigint GENERATED ALWAYS AS IDENTITY, call int)`)
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[ping]) error { return nil })
	var calls atomic.Int32
	begun, goOn := [2]chan struct{}{make(chan struct{}), make(chan struct{})},
		[2]chan struct{}{make(chan struct{}), make(chan struct{})}
	said := make(chan error, 1)
	jobs.Register(b.registry, jobs.Policy{Parallel: 5}, func(_ context.Context, job *jobs.Job[greet]) error {
		call := calls.Add(1)
		if call <= 2 {
			close(begun[call-1])
			<-goOn[call-1]
		}
		if call == 1 {
			said <- job.Progress(context.Background(), map[string]int{"call": 1})
		}
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO effects (call) VALUES ($1)`, call)
			return err
		})
		return nil
	})
	id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	turn := b.linger(b.engine)
	receive(t, begun[0])
	b.exec(`UPDATE daybook.jobs SET last_attempted_at = now() - interval '11 seconds' WHERE id = $1`, id)
	// No worker takes it meanwhile.
	require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(),
			`INSERT INTO daybook.organizations (id, paused_at) VALUES ($1, now()) ON CONFLICT (id) DO UPDATE SET paused_at = now()`, org)
		return err
	}))
	got, err := store.NewQueue(b.Pool, store.Jobs).ReclaimExpired(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, got.Lost)
	b.exec(`SELECT daybook.retry_job($1, 'reset')`, id)
	b.exec(`UPDATE daybook.organizations SET paused_at = NULL`)
	b.leasedAgain(begun[1])
	close(goOn[0])
	assert.ErrorIs(t, receive(t, said), store.ErrLeaseLost, "progress of an attempt whose lease was reclaimed")
	// The first attempt has had its time to commit, or not to.
	assert.Never(t, func() bool { return b.count(`SELECT count(*) FROM effects`) > 0 }, time.Second, 20*time.Millisecond)
	close(goOn[1])
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'completed'`, id)
	turn.end()
	var effects []int32
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT array_agg(call ORDER BY n) FROM effects`).Scan(&effects))
	assert.Equal(t, []int32{2}, effects)
}
