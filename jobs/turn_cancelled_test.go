package jobs_test

import (
	"context"
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

// slowCommits has each transaction that leases a job take its time to commit, whatever its session
// is told meanwhile, as with a synchronous replica that is slow: until a while after hurry is
// called.
func (b *bundle) slowCommits() (hurry func()) {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.URL)
	require.NoError(b.t, err)
	_, err = conn.Exec(b.t.Context(), `SELECT pg_advisory_lock(1)`)
	require.NoError(b.t, err)
	hurry = sync.OnceFunc(func() {
		assert.NoError(b.t, conn.Close(context.Background()))
	})
	b.t.Cleanup(hurry)
	b.exec(`
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE ends timestamptz;
BEGIN
    LOOP
        BEGIN
            PERFORM pg_sleep(0.05);
            IF ends IS NULL AND pg_try_advisory_xact_lock_shared(1) THEN
                ends := clock_timestamp() + interval '300 milliseconds';
            END IF;
        EXCEPTION WHEN query_canceled THEN NULL;
        END;
        EXIT WHEN clock_timestamp() >= ends;
    END LOOP;
    RETURN NULL;
END $$`)
	b.exec(`CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON daybook.jobs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.state = 'leased' AND OLD.state = 'pending') EXECUTE FUNCTION slow()`)
	return hurry
}

// TestCancelledTurnLeavesNothing cancels a turn while its first lease commits: what that leased is
// given back, and is worked by the next turn.
func TestCancelledTurnLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]bool{"that has waited": true, "that finds work": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var calls atomic.Int32
			jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1}, func(context.Context, *jobs.Job[greet]) error {
				calls.Add(1)
				return nil
			})
			hurry := b.slowCommits()
			if !wait {
				b.enqueue(greet{}, queue.JobOptions{})
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan engine.Report, 1)
			go func() {
				r, err := b.engine.Process(ctx, engine.TurnRequest{Turn: b.turn(), Batch: 50, Wait: time.Minute, Gently: true})
				assert.NoError(t, err)
				done <- r
			}()
			if wait {
				b.untilQuiet()
				b.enqueue(greet{}, queue.JobOptions{})
			}
			b.until(1, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`)
			cancel()
			hurry()
			assert.Zero(t, receive(t, done).Completed)
			assert.Zero(t, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'leased'`))
			assert.Zero(t, calls.Load())
			assert.Equal(t, 1, b.work().Completed)
			assert.EqualValues(t, 1, calls.Load())
			b.assertOnce(1)
		})
	}
}

// TestCutTurnIsReclaimed cuts the line of a turn while its first lease commits: what it leased is
// unknown then. It goes on when the line is there again, and what it had leased is worked,
// uncharged.
func TestCutTurnIsReclaimed(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]bool{"that has waited": true, "that finds work": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1},
				func(context.Context, *jobs.Job[greet]) error { return nil })
			hurry := b.slowCommits()
			line, e := b.onLine()
			if !wait {
				b.enqueue(greet{}, queue.JobOptions{})
			}
			turn := b.turn()
			done := make(chan bool, 1)
			go func() {
				for found := false; !found && t.Context().Err() == nil; {
					r, err := e.Process(t.Context(), engine.TurnRequest{Turn: turn, Batch: 50, Wait: time.Minute})
					found = assert.NoError(t, err) && r.Leased > 0
				}
				done <- true
			}()
			if wait {
				require.Eventually(t, func() bool {
					return line.Pool.Stat().AcquireCount() > 2 &&
						line.Pool.Stat().AcquiredConns() == 0
				}, long, 50*time.Millisecond)
				b.enqueue(greet{}, queue.JobOptions{})
			}
			b.until(1, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`)
			line.Cut()
			hurry()
			b.until(0, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`)
			line.Mend()
			receive(t, done)
			b.until(1, completed)
			b.assertOnce(1)
		})
	}
}
