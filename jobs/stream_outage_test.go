package jobs_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// onLine is an engine whose line to the database can be cut.
func (b *bundle) onLine() (*pgtest.Line, *engine.Engine) {
	b.t.Helper()
	line := b.Line(b.t)
	return line, b.engineOn(line.Pool)
}

// inVain is how often a worker meets an outage of these tests: more often than an attempt may fail
// for its own fault.
const inVain = 10

// assertOnce asserts that each of n jobs was completed by its first attempt, and that nothing else
// was logged.
func (b *bundle) assertOnce(n int) {
	b.t.Helper()
	assert.Equal(b.t, n, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'completed' AND run_count = 1`))
	assert.Equal(b.t, n, b.count(`SELECT count(*) FROM daybook.attempts`))
	assert.Equal(b.t, n, b.count(`SELECT count(*) FROM daybook.attempts WHERE outcome = 'completed' AND attempt = 1`))
}

// TestOutageWhileJobsEnd makes the database unavailable while one of several jobs ends, and then
// another: what ended is completed when the database is back, what runs goes on, and nothing is run
// again.
func TestOutageWhileJobsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ inTx, shared bool }{
		"completed together": {}, "in transactions of their own": {inTx: true}, "in shared ones": {inTx: true, shared: true},
	} {
		inTx := c.inTx
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 11
			b := setup(t)
			b.exec(`CREATE TABLE greeted (name text)`)
			var begun, ended, cut atomic.Int32
			early, lateOnes, ends := make(chan struct{}), make(chan struct{}), make(chan struct{}, n)
			jobs.Register(b.registry, jobs.Policy{Parallel: 2 * n, Timeout: 5 * time.Minute, MaxAttempts: 1, SharedTransaction: c.shared},
				func(ctx context.Context, job *jobs.Job[greet]) error {
					begun.Add(1)
					until := lateOnes
					if job.Payload.Name == "person 0" {
						until = early
					}
					select {
					case <-until:
					case <-ctx.Done():
						cut.Add(1)
						return ctx.Err()
					}
					if inTx {
						writeDown(job)
					}
					ended.Add(1)
					ends <- struct{}{}
					return nil
				})
			line, e := b.onLine()
			b.enqueueMany(n, "person ")
			turn := b.linger(e)
			require.Eventually(t, func() bool { return begun.Load() == n }, long, 10*time.Millisecond)

			line.Cut()
			close(early)
			receive(t, ends)
			line.AwaitTries(inVain)
			assert.Zero(t, cut.Load())
			line.Mend()
			b.until(1, completed)
			close(lateOnes)
			b.until(n, completed)
			assert.Zero(t, turn.end().Released)

			assert.EqualValues(t, n, begun.Load())
			assert.EqualValues(t, n, ended.Load())
			assert.Zero(t, cut.Load())
			b.assertOnce(n)
			if inTx {
				assert.Equal(t, n, b.count(`SELECT count(*) FROM greeted`))
			}
		})
	}
}

// TestOutageWhileADetachedJobEnds: the turn of the job is over, and the database is unavailable
// when its handler ends well.
func TestOutageWhileADetachedJobEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var begun atomic.Int32
	finish, finished := make(chan struct{}), make(chan struct{})
	jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1, Timeout: 5 * time.Minute},
		func(context.Context, *jobs.Job[greet]) error {
			begun.Add(1)
			<-finish
			close(finished)
			return nil
		})
	line, e := b.onLine()
	b.enqueue(greet{}, queue.JobOptions{})
	b.detach(e, nil, 1)
	line.Cut()
	close(finish)
	receive(t, finished)
	line.AwaitTries(inVain)
	line.Mend()
	b.until(1, completed)
	assert.EqualValues(t, 1, begun.Load())
	b.assertOnce(1)
}

// TestTerminatedBackends ends sessions of the engine all the time while jobs come, run and end: no
// job is run again or charged for it, and no turn ends with it.
func TestTerminatedBackends(t *testing.T) {
	t.Parallel()
	t.Run("own transactions", func(t *testing.T) { t.Parallel(); terminateBackends(t, false) })
	t.Run("shared transactions", func(t *testing.T) { t.Parallel(); terminateBackends(t, true) })
}

func terminateBackends(t *testing.T, shared bool) {
	t.Helper()
	// between is how many jobs are completed at least between the ends of two sessions.
	const n, between = 400, 10
	b := setup(t)
	b.exec(`CREATE TABLE greeted (name text)`)
	var handled sync.Map
	var twice, killed atomic.Int32
	jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1, Parallel: 20, SharedTransaction: shared},
		func(_ context.Context, job *jobs.Job[greet]) error {
			if _, again := handled.LoadOrStore(job.Payload.Name, true); again {
				twice.Add(1)
			}
			if len(job.Payload.Name)%2 == 0 {
				job.InTx(func(ctx context.Context, tx pgx.Tx) error {
					_, err := tx.Exec(ctx, `INSERT INTO greeted SELECT $1 FROM pg_sleep(0.005)`, job.Payload.Name)
					return err
				})
			}
			return nil
		})
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	config.ConnConfig.RuntimeParams["application_name"] = "engine"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	e := b.engineOn(pool)
	b.lane(e, time.Second)
	stop := make(chan struct{})
	var killer sync.WaitGroup
	end := sync.OnceFunc(func() {
		close(stop)
		killer.Wait()
	})
	t.Cleanup(end)
	killer.Go(func() {
		for next := between; ; {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			// A busy machine may need longer to connect than the pause lasts: then each session would be
			// ended before it has done anything.
			var completed int
			err := b.Pool.QueryRow(context.Background(), `
SELECT n FROM (SELECT count(*) AS n FROM daybook.jobs WHERE state = 'completed') c
  LEFT JOIN LATERAL (SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                      WHERE datname = current_database() AND application_name = 'engine' AND n >= $1 ORDER BY random() LIMIT 1) k ON true`, next).Scan(&completed)
			if assert.NoError(t, err) && completed >= next {
				next = completed + between
				killed.Add(1)
			}
		}
	})
	for i := range n {
		b.enqueue(greet{Name: fmt.Sprint(i)}, queue.JobOptions{})
	}
	b.until(n, `SELECT count(*) FROM daybook.jobs WHERE state IN ('completed', 'failed')`)
	end()
	assert.Positive(t, killed.Load())
	assert.Zero(t, twice.Load())
	b.assertOnce(n)
	assert.Equal(t, b.count(`SELECT count(*) FROM greeted`), b.count(`SELECT count(DISTINCT name) FROM greeted`))
	const others = `SELECT coalesce(string_agg(concat_ws(' ', outcome, error_code, error), '; '), '') FROM daybook.attempts WHERE outcome <> 'completed'`
	var said string
	require.NoError(t, b.Pool.QueryRow(t.Context(), others).Scan(&said))
	assert.Empty(t, said)
}
