package jobs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestStepWhoseCommitIsUnknown cuts the line to the database while the COMMIT of a step is under
// way, and while a plain step is kept: each is there once, and the attempt goes on.
func TestStepWhoseCommitIsUnknown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// The COMMIT, and the insertion of a plain step, take a while: so the answer is lost, and what was
	// asked is done.
	b.exec(`
CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON daybook.job_steps DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dawdle()`)
	line, e := b.onLine()
	cut := func() {
		time.AfterFunc(200*time.Millisecond, line.Cut)
		time.AfterFunc(400*time.Millisecond, line.Mend)
	}
	var calls atomic.Int32
	b.stepping(func(ctx context.Context, job *jobs.Job[greet]) error {
		n, err := jobs.StepInTx(ctx, job, "book", func(ctx context.Context, tx pgx.Tx) (int32, error) {
			if _, err := tx.Exec(ctx, byHand, "book"); err != nil {
				return 0, err
			}
			n := calls.Add(1)
			if n == 1 {
				cut()
			}
			return n, nil
		})
		if err != nil {
			return err
		}
		_, err = jobs.Step(ctx, job, "send", func(context.Context) (int32, error) {
			cut()
			return n, nil
		})
		return err
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	_, err := e.Process(t.Context(), engine.TurnRequest{Turn: b.turn(), Batch: 50, Length: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, models.JobCompleted, b.row(id).State, b.row(id).Error)
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted`), "calls: %d", calls.Load())
	assert.Equal(t, 2, b.count(stepsKept))
}

// TestStepsUnderKilledWorkers kills one worker after the other between and within the steps of many
// jobs. Each effect of a step in a transaction is there once, in each round of a loop as well, and
// no job is lost; what the dead still do changes nothing.
func TestStepsUnderKilledWorkers(t *testing.T) {
	t.Parallel()
	const n, deaths, rounds = 60, 8, 4
	b := setup(t)
	l := b.lives()
	var left atomic.Int32
	left.Store(deaths)
	// perhaps ends the worker, or goes on when it is dead already.
	perhaps := func() {
		if rand.IntN(60) == 0 && left.Add(-1) >= 0 {
			l.killed(func() {})
		}
	}
	b.exec(`CREATE TABLE greeted (name text)`)
	write := func(ctx context.Context, tx pgx.Tx, what string) error {
		perhaps()
		_, err := tx.Exec(ctx, byHand, what)
		perhaps()
		return err
	}
	handle := func(ctx context.Context, job *jobs.Job[greet]) error {
		for _, step := range []string{"book", "charge"} {
			if _, err := jobs.StepInTx(ctx, job, step, func(ctx context.Context, tx pgx.Tx) (bool, error) {
				return true, write(ctx, tx, step+job.ID)
			}); err != nil {
				return err
			}
			perhaps()
		}
		_, err := jobs.LoopInTx(ctx, job, "rows", func(ctx context.Context, tx pgx.Tx, done int) (int, bool, error) {
			return done + 1, done+1 < rounds, write(ctx, tx, fmt.Sprint(done, job.ID))
		})
		return err
	}
	jobs.Register(b.registry, jobs.Policy{Timeout: time.Hour, MaxAttempts: 100, Base: time.Millisecond, Cap: time.Millisecond}, handle)
	b.enqueueMany(n, "person ")
	died := 0
	for l.next() {
		died++
	}
	b.untilWorked(n)
	l.revive()
	t.Log("workers killed:", died)
	assert.Positive(t, died)
	assert.Equal(t, n*(2+rounds), b.count(`SELECT count(*) FROM greeted`))
	assert.Equal(t, n*(2+rounds), b.count(`SELECT count(DISTINCT name) FROM greeted`))
	assert.Equal(t, 3*n, b.count(stepsKept+` WHERE done`))
}

// untilWorked works what earlier turns have left, until n jobs are completed.
func (b *bundle) untilWorked(n int) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		b.due()
		b.work()
		return b.count(completed) == n
	}, long, 100*time.Millisecond)
}
