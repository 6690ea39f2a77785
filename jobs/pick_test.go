package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
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

// leases counts how often rows of jobs were leased.
const leases = `SELECT coalesce(sum(n), 0)::bigint FROM leases`

// countLeases has the database count them.
func (b *bundle) countLeases() {
	b.exec(`
CREATE TABLE leases (n bigint);
CREATE FUNCTION count_leases() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO leases SELECT count(*) FROM after a JOIN before b USING (id) WHERE a.state = 'leased' AND b.state = 'pending' HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_leases AFTER UPDATE ON daybook.jobs REFERENCING NEW TABLE AS after OLD TABLE AS before
   FOR EACH STATEMENT EXECUTE FUNCTION count_leases()`)
}

// learn works jobs that do nothing until one is picked, and returns how many they were.
func (b *bundle) learn() int {
	b.t.Helper()
	n := 0
	require.Eventually(b.t, func() bool {
		before := b.count(leases)
		id := b.enqueue(greet{Name: fmt.Sprint("warm up ", n)}, queue.JobOptions{})
		b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'completed'`, id)
		n++
		return b.count(leases) == before
	}, long, time.Millisecond)
	return n
}

// shortly registers a handler that does nothing but for the jobs that the test names.
func (b *bundle) shortly(policy jobs.Policy, special func(ctx context.Context, job *jobs.Job[greet]) error) {
	b.countLeases()
	jobs.Register(b.registry, policy, func(ctx context.Context, job *jobs.Job[greet]) error {
		if strings.HasPrefix(job.Payload.Name, "special") {
			return special(ctx, job)
		}
		return nil
	})
}

// TestShortJobsAreNotLeased works many jobs that do nothing: their rows go from pending to
// completed.
func TestShortJobsAreNotLeased(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.shortly(jobs.Policy{Parallel: 300}, nil)
	turn := b.linger(b.engine)
	n := b.learn()
	before := b.count(leases)
	b.enqueueMany(2000, "short ")
	b.until(n+2000, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`)
	assert.Equal(t, n+2000, turn.end().Completed)
	b.assertOnce(n + 2000)
	// A machine that stalls makes attempts long, and then the next hundred are leased: not all of
	// them are.
	assert.Less(t, b.count(leases)-before, 2000)
}

// TestLongJobOfAShortTypeIsLeased blocks one of several jobs that were picked together: it is
// leased, and the others are completed.
func TestLongJobOfAShortTypeIsLeased(t *testing.T) {
	t.Parallel()
	b := setup(t)
	proceed := make(chan struct{})
	b.shortly(jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error {
		<-proceed
		return nil
	})
	turn := b.linger(b.engine)
	n := b.learn()
	id := b.enqueue(greet{Name: "special"}, queue.JobOptions{})
	b.enqueueMany(10, "short ")
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'leased' AND working AND run_count = 1`, id)
	b.until(n+10, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`)
	close(proceed)
	b.until(n+11, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`)
	turn.end()
	b.assertOnce(n + 11)
}

// TestPickedJobsBeginBesideEachOther has picked jobs, whose type is one of jobs that do nothing,
// wait until all of them have begun.
func TestPickedJobsBeginBesideEachOther(t *testing.T) {
	t.Parallel()
	const n = 25
	b := setup(t)
	var begun atomic.Int32
	all := make(chan struct{})
	b.shortly(jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error {
		if begun.Add(1) == n {
			close(all)
		}
		<-all
		return nil
	})
	turn := b.linger(b.engine)
	learned := b.learn()
	b.enqueueMany(n, "special ")
	b.until(learned+n, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`)
	turn.end()
	b.assertOnce(learned + n)
}

// TestPickedJobThatNeedsALease asks for a transaction, and stores progress, from within a job that
// was picked.
func TestPickedJobThatNeedsALease(t *testing.T) {
	t.Parallel()
	for name, special := range map[string]func(ctx context.Context, job *jobs.Job[greet]) error{
		"a transaction": func(_ context.Context, job *jobs.Job[greet]) error {
			job.InTx(func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `INSERT INTO greeted VALUES ($1)`, job.Payload.Name)
				return err
			})
			return nil
		},
		"progress": func(ctx context.Context, job *jobs.Job[greet]) error {
			return job.Progress(ctx, map[string]int{"half": 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(`CREATE TABLE greeted (name text)`)
			b.shortly(jobs.Policy{}, special)
			turn := b.linger(b.engine)
			n := b.learn()
			id := b.enqueue(greet{Name: "special"}, queue.JobOptions{})
			b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'completed'`, id)
			turn.end()
			b.assertOnce(n + 1)
			assert.Equal(t, 1, b.count(`SELECT (SELECT count(*) FROM greeted) + (SELECT count(*) FROM daybook.jobs WHERE progress IS NOT NULL)`))
		})
	}
}

// TestPickThatLosesItsConnection ends the session that has picked a job while its handler runs:
// what ended well is completed, and is not worked again.
func TestPickThatLosesItsConnection(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]bool{"it has ended": false, "it runs on": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var calls atomic.Int32
			b.shortly(jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
				calls.Add(1)
				_, err := b.Pool.Exec(context.Background(), `
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle in transaction'`)
				if long {
					b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'leased'`, job.ID)
				}
				return err
			})
			turn := b.linger(b.engine)
			n := b.learn()
			id := b.enqueue(greet{Name: "special"}, queue.JobOptions{})
			b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'completed'`, id)
			turn.end()
			b.assertOnce(n + 1)
			assert.EqualValues(t, 1, calls.Load())
		})
	}
}

// TestPickWhoseResultCannotBeStored: the result of one job of a pick cannot be stored. It is
// completed without it, with the others.
func TestPickWhoseResultCannotBeStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.shortly(jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
		job.SetResult(map[string]string{"text": "a\x00b"})
		return nil
	})
	turn := b.linger(b.engine)
	n := b.learn()
	b.enqueueMany(10, "short ")
	id := b.enqueue(greet{Name: "special"}, queue.JobOptions{})
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'completed' AND last_error_code = 'RESULT_NOT_STORED'`, id)
	b.until(n+11, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed' AND run_count = 1`)
	turn.end()
	assert.Equal(t, n+11, b.count(`SELECT count(*) FROM daybook.attempts`), "each once")
}

// TestStopWhileJobsArePicked stops a turn whose picked job does not end by itself: it is given
// back, uncounted.
func TestStopWhileJobsArePicked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := engine.NewJobs(b.store, b.registry, engine.Options{Log: slog.New(slog.DiscardHandler), Grace: time.Millisecond})
	t.Cleanup(e.Close)
	reached := make(chan struct{}, 1)
	b.shortly(jobs.Policy{}, func(ctx context.Context, _ *jobs.Job[greet]) error {
		reached <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	turn := b.linger(e)
	b.learn()
	id := b.enqueue(greet{Name: "special"}, queue.JobOptions{})
	receive(t, reached)
	turn.end()
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'pending' AND run_count = 0`,
		id))
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.attempts WHERE job_id = $1`, id))
}

// TestCancelWhilePicked cancels a job that was picked: the request waits for its row, and takes
// effect.
func TestCancelWhilePicked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.shortly(jobs.Policy{}, func(ctx context.Context, job *jobs.Job[greet]) error {
		_, err := queue.CancelJob(ctx, b.Pool, job.ID)
		return err
	})
	turn := b.linger(b.engine)
	b.learn()
	id := b.enqueue(greet{Name: "special"}, queue.JobOptions{})
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'cancelled'`, id)
	turn.end()
}

// TestPickedJobThatEndsItsGoroutine has a handler call runtime.Goexit: the attempt fails, and the
// job is tried again.
func TestPickedJobThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	b.shortly(jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error {
		if calls.Add(1) == 1 {
			runtime.Goexit()
		}
		return nil
	})
	turn := b.linger(b.engine)
	n := b.learn()
	id := b.enqueue(greet{Name: "special"}, queue.JobOptions{})
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'pending' AND run_count = 1 AND last_error_code = 'HANDLER_ERROR'`, id)
	b.due()
	b.until(n+1, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`)
	turn.end()
}
