package jobs_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// lane works turn after turn of the given length, as the workflow does, until the test ends.
func (b *bundle) lane(e *engine.Engine, length time.Duration) (stop func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	n := 0
	go func() {
		defer close(over)
		for ctx.Err() == nil {
			n++
			turn := b.turn()
			turn.ID = "lane/" + turn.ID
			_, err := e.Process(ctx, engine.TurnRequest{Turn: turn, Batch: 50, Length: length, Linger: true})
			if ctx.Err() == nil {
				assert.NoError(b.t, err)
			}
		}
	}()
	stop = func() {
		cancel()
		receive(b.t, over)
	}
	b.t.Cleanup(stop)
	return stop
}

// TestCompletionLongerThanATurn: the job is handed over while its completing transaction runs, and
// is completed all the same.
func TestCompletionLongerThanATurn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE greeted (name text)`)
	var handled, calls atomic.Int32
	jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
		handled.Add(1)
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			calls.Add(1)
			_, err := tx.Exec(ctx, `INSERT INTO greeted SELECT $1 FROM pg_sleep(2.5)`, job.Payload.Name)
			return err
		})
		return nil
	})
	id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	// Its time is up after the job has been worked for a second: then it is handed over.
	b.lane(b.engine, 1200*time.Millisecond)
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE detached`)
	b.until(1, completed)
	assert.Equal(t, "completed", b.outcomes(id))
	assert.EqualValues(t, 1, handled.Load())
	assert.EqualValues(t, 1, calls.Load())
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted`))
}

// TestCompletionThatCannotCommit: a transaction that fails each time in a way that looks like the
// database's doing is counted, and ends as a dead letter that names the cause.
func TestCompletionThatCannotCommit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(ctx context.Context, b *bundle, tx pgx.Tx) error
		says string
	}{
		"its session ends": {func(ctx context.Context, _ *bundle, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
			return err
		}, "57P01"},
		"it idles in its transaction": {func(ctx context.Context, b *bundle, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = '50ms'`); err != nil {
				return err
			}
			b.until(0, `SELECT count(*) FROM pg_stat_activity WHERE pid = $1`, int32(tx.Conn().PgConn().PID()))
			_, err := tx.Exec(ctx, `SELECT 1`)
			return err
		}, "idle-in-transaction"},
		"a conflict without end": {func(ctx context.Context, _ *bundle, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `DO $$ BEGIN RAISE EXCEPTION 'could not serialize' USING ERRCODE = '40001'; END $$`)
			return err
		}, "could not serialize"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var handled atomic.Int32
			jobs.Register(b.registry, jobs.Policy{MaxAttempts: 2, Base: time.Millisecond},
				func(_ context.Context, job *jobs.Job[greet]) error {
					handled.Add(1)
					job.InTx(func(ctx context.Context, tx pgx.Tx) error { return c.then(ctx, b, tx) })
					return nil
				})
			id := b.enqueue(greet{}, queue.JobOptions{})
			b.lane(b.engine, time.Second)
			b.until(1, `SELECT count(*) FROM daybook.jobs WHERE state = 'failed'`)
			j := b.row(id)
			assert.Equal(t, string(models.CodeDatabaseError), j.Code)
			assert.Contains(t, j.Error, c.says)
			assert.Equal(t, 2, j.RunCount)
			assert.Equal(t, "retried failed", b.outcomes(id))
			assert.EqualValues(t, 2, handled.Load())
		})
	}
}
