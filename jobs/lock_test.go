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

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// TestTimeInALockIsNotTheHandlers locks the table of jobs for longer than the attempts may take,
// while handlers of each sort are about to use it: no attempt is charged, and a handler that has
// returned nil is not called again.
func TestTimeInALockIsNotTheHandlers(t *testing.T) {
	t.Parallel()
	policy := jobs.Policy{MaxAttempts: 1, Timeout: 2 * time.Second}
	for name, register := range map[string]func(b *bundle, calls *atomic.Int32, meet func()){
		"its transaction enqueues": func(b *bundle, calls *atomic.Int32, meet func()) {
			jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
				meet()
				job.InTx(func(ctx context.Context, tx pgx.Tx) error {
					_, err := queue.EnqueueJob(ctx, tx, org, ping{}, queue.JobOptions{})
					return err
				})
				calls.Add(1)
				return nil
			})
		},
		"it stores progress": func(b *bundle, calls *atomic.Int32, meet func()) {
			jobs.Register(b.registry, policy, func(ctx context.Context, job *jobs.Job[greet]) error {
				meet()
				if err := job.Progress(ctx, 1); err != nil {
					return err
				}
				calls.Add(1)
				return nil
			})
		},
		"it asks for a callback": func(b *bundle, calls *atomic.Int32, meet func()) {
			jobs.Register(b.registry, policy, func(ctx context.Context, job *jobs.Job[greet]) error {
				meet()
				if _, err := job.NewCallback(ctx, "approved", time.Hour); err != nil {
					return err
				}
				calls.Add(1)
				return nil
			})
		},
		"it reads": func(b *bundle, calls *atomic.Int32, meet func()) {
			jobs.Register(b.registry, policy, func(ctx context.Context, job *jobs.Job[greet]) error {
				meet()
				if _, err := job.EarlierAttempts(ctx); err != nil {
					return err
				}
				calls.Add(1)
				return nil
			})
		},
		"it works a bulk again, in halves": func(b *bundle, calls *atomic.Int32, meet func()) {
			var halves atomic.Bool
			jobs.RegisterBulk(b.registry, policy, func(_ context.Context, _ pgx.Tx, all []*jobs.Job[greet]) ([]error, error) {
				if meet(); halves.CompareAndSwap(false, true) {
					return nil, errors.New("not all at once")
				}
				calls.Add(1)
				return make([]error, len(all)), nil
			})
			b.enqueue(greet{}, queue.JobOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[ping]) error { return nil })
			var calls atomic.Int32
			asked := make(chan struct{}, 9)
			register(b, &calls, func() {
				asked <- struct{}{}
				// The lock waits, at most, for the transaction that this handler is called in.
				b.until(1, `SELECT ((SELECT count(*) FROM pg_locks WHERE relation = 'daybook.jobs'::regclass AND mode = 'AccessExclusiveLock' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) + (SELECT count(*) FROM greeted) > 0)::int`)
			})
			b.exec(`CREATE TABLE greeted (name text)`)
			b.enqueue(greet{}, queue.JobOptions{})
			jobsBefore := b.count(`SELECT count(*) FROM daybook.jobs`)
			conn, err := pgx.Connect(t.Context(), b.URL)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) })
			turn := b.linger(b.engine)
			receive(t, asked)
			tx, err := conn.Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), `LOCK TABLE daybook.jobs IN ACCESS EXCLUSIVE MODE`)
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), `INSERT INTO greeted VALUES ('the lock has been met')`)
			require.NoError(t, err)
			since := time.Now()
			require.Eventually(t, func() bool { return time.Since(since) > 9*time.Second }, long, 50*time.Millisecond)
			require.NoError(t, tx.Commit(t.Context()))
			b.until(jobsBefore, `SELECT count(*) FROM daybook.jobs WHERE type = 'greet' AND state IN ('completed', 'failed')`)
			turn.end()
			assert.Equal(t, jobsBefore,
				b.count(`SELECT count(*) FROM daybook.jobs WHERE type = 'greet' AND state = 'completed' AND run_count = 1`))
			assert.EqualValues(t, jobsBefore, calls.Load())
		})
	}
}
