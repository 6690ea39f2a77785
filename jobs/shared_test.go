package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
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
	"github.com/daybook-dev/daybook/queue"
)

// sharer is what a function given to InTx knows in the tests of shared transactions.
type sharer struct {
	*jobs.Job[greet]
	tx pgx.Tx
	// try is how often the function has been called for its job.
	try int32
}

// special reports whether it is the function of the job that a test is about.
func (s sharer) special() bool { return s.Payload.Name == "special" }

// setupSharing is setup with an engine whose jobs share transactions however slow the machine is.
func setupSharing(t *testing.T) *bundle {
	t.Helper()
	b := setup(t)
	b.engine = engine.NewJobs(b.store, b.registry,
		engine.Options{Log: slog.New(slog.NewTextHandler(b.log, nil)), GatherShared: long, ShareFor: long})
	t.Cleanup(b.engine.Close)
	return b
}

// share registers a handler whose jobs share transactions: their handlers return when n have begun.
// In its transaction each calls then, and writes its name and the transaction's number down.
func (b *bundle) share(n int, policy jobs.Policy, then func(ctx context.Context, s sharer) error) {
	b.t.Helper()
	b.exec(`CREATE TABLE IF NOT EXISTS greeted (name text, tx bigint NOT NULL DEFAULT txid_current())`)
	policy.SharedTransaction, policy.Parallel = true, 2*n
	var begun atomic.Int32
	together := make(chan struct{})
	var tries sync.Map
	jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
		if begun.Add(1) == int32(n) {
			close(together)
		}
		<-together
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			try, _ := tries.LoadOrStore(job.ID, &atomic.Int32{})
			s := sharer{job, tx, try.(*atomic.Int32).Add(1)}
			if err := insertGreeted(ctx, tx, job); err != nil {
				return err
			}
			return then(ctx, s)
		})
		return nil
	})
}

// neighbours enqueues n-1 jobs and a special one among them, and returns its id.
func (b *bundle) neighbours(n int) (special string) {
	b.t.Helper()
	b.enqueueMany(n/2, "early ")
	special = b.enqueue(greet{Name: "special"}, queue.JobOptions{})
	b.enqueueMany(n-1-n/2, "late ")
	return special
}

// assertDoneAlone: the special one of ten jobs was done once, uncharged, and its neighbours were done
// without it.
func (b *bundle) assertDoneAlone(id string) {
	b.t.Helper()
	b.assertNeighbours(10)
	assert.Equal(b.t, "completed", b.outcomes(id))
	assert.Equal(b.t, 1, b.count(`SELECT count(*) FROM greeted WHERE name = 'special'`))
}

// assertNeighbours asserts that all jobs but the special one were completed by their first attempts,
// and have written down their names once.
func (b *bundle) assertNeighbours(n int) {
	b.t.Helper()
	assert.Equal(b.t, n-1, b.count(completed+` AND run_count = 1 AND payload ->> 'name' <> 'special'`))
	assert.Equal(b.t, n-1, b.count(`SELECT count(*) FROM daybook.attempts a JOIN daybook.jobs j ON j.id = a.job_id
 WHERE j.payload ->> 'name' <> 'special'`))
	assert.Equal(b.t, n-1, b.count(`SELECT count(*) FROM greeted WHERE name <> 'special'`))
	assert.Equal(b.t, n-1, b.count(`SELECT count(DISTINCT name) FROM greeted WHERE name <> 'special'`))
}

// transactions counts those in which names were written down.
func (b *bundle) transactions() int { return b.count(`SELECT count(DISTINCT tx) FROM greeted`) }

// unshared asserts whether the log says, once, that the type shares no transactions any more.
func (b *bundle) assertUnshared(does string) {
	b.t.Helper()
	assert.Equal(b.t, 1, strings.Count(b.log.String(), "event=transaction_unshared"))
	assert.Contains(b.t, b.log.String(), does)
	assert.NotEmpty(b.t, b.engine.Unshared()[greet{}.JobType()])
}

// TestSharedTransaction: what jobs of a type give to InTx is committed with their completions, in
// transactions that they share.
func TestSharedTransaction(t *testing.T) {
	t.Parallel()
	b := setupSharing(t)
	b.share(40, jobs.Policy{}, func(_ context.Context, s sharer) error {
		s.SetResult(map[string]string{"greeted": s.Payload.Name})
		return nil
	})
	id := b.neighbours(40)
	assert.Equal(t, 40, b.work().Completed)
	b.assertNeighbours(40)
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted WHERE name = 'special'`))
	assert.Less(t, b.transactions(), 20)
	assert.JSONEq(t, `{"greeted": "special"}`, b.row(id).Result)
	assert.LessOrEqual(t, b.count(`SELECT max(n) FROM (SELECT count(*) AS n FROM greeted GROUP BY tx) s`), 32)
}

// TestSharedFunctionThatFails: it fails its own attempt, as it would in a transaction of its own,
// and what it has written is undone.
func TestSharedFunctionThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fail  func(ctx context.Context, s sharer) error
		says  string
		code  models.ErrorCode
		state models.JobState
		calls int32
	}{
		"error": {
			func(context.Context, sharer) error { return errors.New("no luck") },
			"no luck", models.CodeHandlerError, models.JobPending, 1,
		},
		"final error": {
			func(context.Context, sharer) error {
				return jobs.Final(jobs.WithCode(models.CodeNotFound, errors.New("none")))
			},
			"none", models.CodeNotFound, models.JobFailed, 1,
		},
		"panic": {
			func(context.Context, sharer) error { panic("oh no") },
			"panic: oh no", models.CodeHandlerError, models.JobPending, 1,
		},
		"Goexit": {
			func(context.Context, sharer) error { runtime.Goexit(); return nil },
			"ended its goroutine", models.CodeHandlerError, models.JobPending, 1,
		},
		"statement": {
			func(ctx context.Context, s sharer) error { return sql(ctx, s.tx, `SELECT 1/0`) },
			"division by zero", models.CodeHandlerError, models.JobPending, 1,
		},
		"statement whose error it drops": {
			func(ctx context.Context, s sharer) error { _ = sql(ctx, s.tx, `SELECT 1/0`); return nil },
			"its error was not returned", models.CodeHandlerError, models.JobPending, 1,
		},
		"deferred constraint": {
			func(ctx context.Context, s sharer) error {
				return sql(ctx, s.tx, `INSERT INTO fond VALUES ('stranger')`)
			},
			"fond_name_fkey", models.CodeDatabaseError, models.JobPending, 2,
		},
		"Commit": {
			func(ctx context.Context, s sharer) error { return s.tx.Commit(ctx) },
			"return nil", models.CodeHandlerError, models.JobPending, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupSharing(t)
			b.exec(`CREATE TABLE people (name text PRIMARY KEY)`)
			b.exec(`CREATE TABLE fond (name text REFERENCES people DEFERRABLE INITIALLY DEFERRED)`)
			var calls atomic.Int32
			b.share(10, jobs.Policy{Base: time.Hour}, func(ctx context.Context, s sharer) error {
				if !s.special() {
					return nil
				}
				calls.Add(1)
				return c.fail(ctx, s)
			})
			id := b.neighbours(10)
			assert.Equal(t, 9, b.work().Completed)
			b.assertNeighbours(10)
			assert.Less(t, b.transactions(), 9)
			j := b.row(id)
			assert.Equal(t, c.state, j.State)
			assert.Equal(t, string(c.code), j.Code)
			assert.Contains(t, j.Error, c.says)
			assert.Equal(t, 1, j.RunCount)
			assert.Equal(t, c.calls, calls.Load())
			assert.Zero(t, b.count(`SELECT count(*) FROM greeted WHERE name = 'special'`))
		})
	}
}

// raise has PostgreSQL fail a statement with an SQLSTATE.
func raise(ctx context.Context, tx pgx.Tx, state string) error {
	return sql(ctx, tx, fmt.Sprintf(`DO $$ BEGIN RAISE EXCEPTION 'raised' USING ERRCODE = '%s'; END $$`, state))
}

// TestSharedFaultChargesNone: what the neighbours, the limits or PostgreSQL may have done to a
// function is no attempt: the function runs again alone, also if it hides the error.
func TestSharedFaultChargesNone(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"40P01", "40001", "55P03", "57014", "25P03", "42P07"} {
		for how, hide := range map[string]bool{"": false, ", hidden": true} {
			t.Run(state+how, func(t *testing.T) {
				t.Parallel()
				b := setupSharing(t)
				b.share(10, jobs.Policy{MaxAttempts: 1}, func(ctx context.Context, s sharer) error {
					if !s.special() || s.try > 1 {
						return nil
					}
					err := raise(ctx, s.tx, state)
					if hide {
						return errors.New("it cannot be greeted")
					}
					return err
				})
				id := b.neighbours(10)
				assert.Equal(t, 10, b.work().Completed)
				b.assertDoneAlone(id)
			})
		}
	}
}

// TestSharedFunctionThatIsBlocked: it gives up soon, its neighbours commit, and it waits alone.
func TestSharedFunctionThatIsBlocked(t *testing.T) {
	t.Parallel()
	b := setupSharing(t)
	b.exec(`CREATE TABLE counters (n integer)`)
	b.exec(`INSERT INTO counters VALUES (0)`)
	b.share(10, jobs.Policy{MaxAttempts: 1}, func(ctx context.Context, s sharer) error {
		if !s.special() {
			return nil
		}
		return sql(ctx, s.tx, `UPDATE counters SET n = n + 1`)
	})
	blocking, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = blocking.Exec(t.Context(), `UPDATE counters SET n = n + 1`)
	require.NoError(t, err)
	id := b.neighbours(10)
	turn := b.linger(b.engine)
	b.until(9, completed)
	assert.Equal(t, models.JobLeased, b.row(id).State)
	require.NoError(t, blocking.Commit(t.Context()))
	b.until(10, completed)
	turn.end()
	b.assertNeighbours(10)
	assert.Equal(t, "completed", b.outcomes(id))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM counters WHERE n = 2`))
}

// TestSharedFunctionThatTakesLong: it is undone, its neighbours commit, and it runs again alone,
// uncharged, once it has returned.
func TestSharedFunctionThatTakesLong(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(ctx context.Context, s sharer) error{
		"in a statement":      func(ctx context.Context, s sharer) error { return sql(ctx, s.tx, `SELECT pg_sleep(0.5)`) },
		"heeding its context": func(ctx context.Context, _ sharer) error { <-ctx.Done(); return ctx.Err() },
		"not heeding it":      func(context.Context, sharer) error { time.Sleep(500 * time.Millisecond); return nil },
		"with results left open": func(ctx context.Context, s sharer) error {
			_, err := s.tx.Query(ctx, `SELECT generate_series(1, 9)`) //nolint:sqlclosecheck // that is the mistake
			time.Sleep(500 * time.Millisecond)
			return err
		},
		"in statements": func(ctx context.Context, s sharer) error {
			for range 50 {
				if err := sql(ctx, s.tx, `SELECT pg_sleep(0.01)`); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupSharing(t)
			var now atomic.Int32
			b.share(10, jobs.Policy{MaxAttempts: 1}, func(ctx context.Context, s sharer) error {
				if !s.special() {
					return nil
				}
				assert.EqualValues(t, 1, now.Add(1), "it is called while it runs")
				defer now.Add(-1)
				if s.try > 1 {
					return nil
				}
				return take(ctx, s)
			})
			id := b.neighbours(10)
			assert.Equal(t, 10, b.work().Completed)
			b.assertDoneAlone(id)
		})
	}
}

// TestSharedTransactionIsLost: of a transaction whose session ends nothing is done, and all its jobs
// are completed one by one, uncharged.
func TestSharedTransactionIsLost(t *testing.T) {
	t.Parallel()
	b := setupSharing(t)
	b.share(10, jobs.Policy{MaxAttempts: 1}, func(ctx context.Context, s sharer) error {
		if !s.special() || s.try > 1 {
			return nil
		}
		var pid uint32
		if err := s.tx.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			return err
		}
		return b.terminate(ctx, pid)
	})
	id := b.neighbours(10)
	assert.Equal(t, 10, b.work().Completed)
	b.assertDoneAlone(id)
}

// TestSharedCommitThatFails: a constraint that is checked at the commit refuses what functions have
// written together. Each alone may write it.
func TestSharedCommitThatFails(t *testing.T) {
	t.Parallel()
	b := setupSharing(t)
	b.share(10, jobs.Policy{MaxAttempts: 1}, func(context.Context, sharer) error { return nil })
	b.exec(`CREATE FUNCTION alone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF current_setting('statement_timeout') = '0' AND (SELECT count(*) FROM greeted WHERE tx = txid_current()) > 1 THEN RAISE 'not together'; END IF;
  RETURN NULL;
END $$`)
	b.exec(`CREATE CONSTRAINT TRIGGER alone AFTER INSERT ON greeted DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION alone()`)
	b.neighbours(10)
	assert.Equal(t, 10, b.work().Completed)
	b.assertNeighbours(10)
	assert.Equal(t, 10, b.transactions())
}

// TestSharedSavepoints: those of functions count, and a transaction with many of them has few jobs.
func TestSharedSavepoints(t *testing.T) {
	t.Parallel()
	b := setupSharing(t)
	b.share(30, jobs.Policy{}, func(ctx context.Context, s sharer) error {
		for range 11 {
			if err := pgx.BeginFunc(ctx, s.tx, func(tx pgx.Tx) error { return sql(ctx, tx, `SELECT 1`) }); err != nil {
				return err
			}
		}
		return nil
	})
	b.neighbours(30)
	assert.Equal(t, 30, b.work().Completed)
	b.assertNeighbours(30)
	assert.LessOrEqual(t, b.count(`SELECT max(n) FROM (SELECT count(*) AS n FROM greeted GROUP BY tx) s`), 4)
}

// TestSharedTransactionOfLostJobs: what was cancelled, or is another turn's, before the transaction
// begins is not completed, and nothing of its function is committed.
func TestSharedTransactionOfLostJobs(t *testing.T) {
	t.Parallel()
	b := setupSharing(t)
	b.share(11, jobs.Policy{}, func(context.Context, sharer) error { return nil })
	id := b.neighbours(10)
	turn := b.linger(b.engine)
	b.until(10, `SELECT count(*) FROM daybook.jobs WHERE state = 'leased'`)
	_, err := queue.CancelJob(t.Context(), b.Pool, id)
	require.NoError(t, err)
	lost := b.count(`WITH lost AS (UPDATE daybook.jobs SET fence = fence + 1, turn_id = 'other/0/1' WHERE id = (SELECT min(id) FROM daybook.jobs) RETURNING 1) SELECT count(*) FROM lost`)
	require.Equal(t, 1, lost)
	b.enqueueMany(1, "last ")
	b.until(9, completed)
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE state = 'cancelled'`)
	turn.end()
	assert.Equal(t, 9, b.count(`SELECT count(*) FROM greeted`))
	assert.Zero(t, b.count(`SELECT count(*) FROM greeted WHERE name = 'special'`))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE turn_id = 'other/0/1'`))
}

// TestSharedTransactionIsSeen: functions see one time, one transaction, and the temporary tables of
// those before them, which docs/jobs.md says. One that makes a table anew runs alone.
func TestSharedTransactionIsSeen(t *testing.T) {
	t.Parallel()
	b := setupSharing(t)
	b.exec(`CREATE TABLE seen (at timestamptz DEFAULT now())`)
	b.share(10, jobs.Policy{MaxAttempts: 1}, func(ctx context.Context, s sharer) error {
		if s.special() {
			if err := sql(ctx, s.tx, `CREATE TEMPORARY TABLE mine ON COMMIT DROP AS SELECT 1`); err != nil {
				return err
			}
			return sql(ctx, s.tx, `CREATE TEMPORARY TABLE IF NOT EXISTS mine ON COMMIT DROP AS SELECT 1`)
		}
		return sql(ctx, s.tx, `INSERT INTO seen DEFAULT VALUES`)
	})
	b.neighbours(10)
	assert.Equal(t, 10, b.work().Completed)
	assert.Equal(t, 1, b.count(`SELECT count(DISTINCT at) FROM seen`))
}

// TestSharedFunctionMayEnqueue: what Daybook's own statements set does not take a type out.
func TestSharedFunctionMayEnqueue(t *testing.T) {
	t.Parallel()
	b := setupSharing(t)
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[ping]) error { return nil })
	b.share(10, jobs.Policy{MaxAttempts: 1}, func(ctx context.Context, s sharer) error {
		_, err := queue.EnqueueJob(ctx, s.tx, org, ping{}, queue.JobOptions{})
		return err
	})
	b.neighbours(10)
	b.work()
	assert.Equal(t, 10, b.count(completed+` AND type = 'greet' AND run_count = 1`))
	assert.Equal(t, 10, b.count(`SELECT count(*) FROM daybook.jobs WHERE type = 'ping'`))
	assert.Less(t, b.transactions(), 10)
	assert.NotContains(t, b.log.String(), "transaction_unshared")
}

// TestSharedTransactionOfADeadWorker: the worker dies while jobs share a transaction. Nothing of it
// is committed, and each job is done once by the next worker, also when the dead one comes back.
func TestSharedTransactionOfADeadWorker(t *testing.T) {
	t.Parallel()
	b := setupSharing(t)
	line := b.Line(t)
	dead := engine.NewJobs(store.NewQueue(line.Pool, store.Jobs), b.registry,
		engine.Options{Log: slog.New(slog.DiscardHandler), GatherShared: long, ShareFor: long})
	t.Cleanup(dead.Close)
	reached, revive := make(chan struct{}), make(chan struct{})
	var deaths atomic.Int32
	b.share(10, jobs.Policy{MaxAttempts: 3}, func(_ context.Context, s sharer) error {
		if s.special() && deaths.Add(1) == 1 {
			line.Cut()
			close(reached)
			<-revive
		}
		return nil
	})
	b.neighbours(10)
	request := engine.TurnRequest{Turn: b.turn(), Batch: 50, Length: time.Minute}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, err := dead.Process(context.Background(), request)
		assert.NoError(t, err)
	}()
	receive(t, reached)
	request.Crashed = true
	// The rows are locked until PostgreSQL notices that the connection is gone.
	require.Eventually(t, func() bool {
		_, err := b.engine.Process(t.Context(), request)
		return assert.NoError(t, err) && b.count(completed) == 10
	}, long, 10*time.Millisecond)
	line.Mend()
	close(revive)
	receive(t, over)
	assert.Equal(t, 10, b.count(completed))
	assert.Equal(t, 10, b.count(`SELECT count(*) FROM greeted`))
	assert.Equal(t, 10, b.count(`SELECT count(DISTINCT name) FROM greeted`))
}
