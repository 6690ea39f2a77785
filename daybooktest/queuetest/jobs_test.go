package queuetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestDrainJobs works jobs, and what their handlers enqueue.
func TestDrainJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
		job.SetResult(map[string]string{"greeted": job.Payload.Name})
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := queue.EnqueueJob(ctx, tx, job.OrgID, part{Name: job.Payload.Name}, queue.JobOptions{})
			return err
		})
		return nil
	})
	jobs.Register(registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[part]) error {
		if job.Payload.Name == "Eve" {
			return jobs.WithCode(models.CodeNotFound, errors.New("there is no Eve"))
		}
		return nil
	})
	b.enqueue(b.Pool, greet{Name: "Ada"}, queue.JobOptions{})
	b.enqueue(b.Pool, greet{Name: "Eve"}, queue.JobOptions{})
	later := b.enqueue(b.Pool, greet{Name: "Bea"}, queue.JobOptions{RunAt: time.Now().Add(time.Hour)})

	drained := queuetest.DrainJobs(t, b.Pool, registry, queuetest.JobsOptions{})

	assert.Equal(t, queuetest.Counts{Completed: 3, Failed: 1}, drained.Counts)
	assert.Equal(t, map[models.JobState]int{models.JobCompleted: 3, models.JobFailed: 1}, drained.States())
	require.Len(t, drained.Jobs, 4)
	assert.Equal(t, "greet", drained.Jobs[0].Type)
	assert.JSONEq(t, `{"greeted": "Ada"}`, string(drained.Jobs[0].Result))
	assert.Equal(t, 1, drained.Jobs[0].Attempts)
	assert.Equal(t, 4, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE worker = 'queuetest'`))
	waiting := queuetest.RequireJobEnqueued(t, b.Pool, named("Bea"))
	assert.Equal(t, later, waiting.ID)
	assert.Equal(t, models.JobPending, waiting.State)

	message := failure(t, func(tb *failing) { drained.RequireCompleted(tb) })
	assert.Contains(t, message,
		"1 of 4 jobs are not completed:\n  part  org org_1  failed  NOT_FOUND (there is no Eve)  {\"name\": \"Eve\"}")

	again := queuetest.DrainJobs(t, b.Pool, registry, queuetest.JobsOptions{Advance: time.Hour})
	assert.Equal(t, queuetest.Counts{Completed: 2}, again.Counts)
	again.RequireCompleted(t)
}

// TestAdvance lets time pass: each retry comes after its own delay, and what waits longer comes
// nearer.
func TestAdvance(t *testing.T) {
	t.Parallel()
	b := setup(t)
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{MaxAttempts: 10, Base: time.Minute, Factor: 2},
		func(_ context.Context, job *jobs.Job[greet]) error {
			if job.Payload.Name == "Ada" {
				return nil
			}
			return errors.New("no luck")
		})
	b.enqueue(b.Pool, greet{Name: "Bea"}, queue.JobOptions{})
	b.enqueue(b.Pool, greet{Name: "Ada"}, queue.JobOptions{RunAt: time.Now().Add(time.Hour)})

	// Attempts at 0, 1, 3 and 7 minutes, give or take a tenth; the next one would be at 15.
	drained := queuetest.DrainJobs(t, b.Pool, registry, queuetest.JobsOptions{Advance: 10 * time.Minute})
	assert.Equal(t, queuetest.Counts{Retried: 4}, drained.Counts)
	assert.WithinDuration(t, time.Now().Add(5*time.Minute), drained.Jobs[0].ReadyAt, 2*time.Minute)
	assert.WithinDuration(t, time.Now().Add(50*time.Minute),
		queuetest.RequireJobEnqueued(t, b.Pool, named("Ada")).ReadyAt, 30*time.Second)

	drained = queuetest.DrainJobs(t, b.Pool, registry, queuetest.JobsOptions{})
	assert.Empty(t, drained.Jobs)
	drained = queuetest.DrainJobs(t, b.Pool, registry, queuetest.JobsOptions{Advance: 51 * time.Minute})
	assert.Equal(t, 1, drained.Completed)
}

// TestAdvanceEnds has a handler that is never done.
func TestAdvanceEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{},
		func(context.Context, *jobs.Job[greet]) error { return jobs.Snooze(10 * time.Minute) })
	b.enqueue(b.Pool, greet{}, queue.JobOptions{})
	drained := queuetest.DrainJobs(t, b.Pool, registry, queuetest.JobsOptions{Advance: 65 * time.Minute})
	assert.Equal(t, queuetest.Counts{Rescheduled: 7}, drained.Counts)
}

func TestDrainMissingHandler(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enqueue(b.Pool, greet{Name: "Ada"}, queue.JobOptions{})
	registry := jobs.NewRegistry()
	drained := queuetest.DrainJobs(t, b.Pool, registry, queuetest.JobsOptions{})
	require.Len(t, drained.Jobs, 1)
	assert.Equal(t, models.CodeHandlerMissing, drained.Jobs[0].ErrorCode)

	jobs.Register(registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error { return nil })
	queuetest.DrainJobs(t, b.Pool, registry, queuetest.JobsOptions{}).RequireCompleted(t)
}

// TestDrainTellsWhatIsHeld drains while a transaction of the test holds a job.
func TestDrainTellsWhatIsHeld(t *testing.T) {
	t.Parallel()
	b := setup(t)
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error { return nil })
	id := b.enqueue(b.Pool, greet{Name: "Ada"}, queue.JobOptions{})
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := tx.Exec(ctx, `SELECT 1 FROM daybook.jobs WHERE id = $1 FOR UPDATE`, id)
		require.NoError(t, err)
		message := failure(t, func(tb *failing) { queuetest.DrainJobs(tb, b.Pool, registry, queuetest.JobsOptions{}) })
		assert.Contains(t, message, "1 jobs are due and cannot be leased: end the transaction")
	})
	queuetest.DrainJobs(t, b.Pool, registry, queuetest.JobsOptions{}).RequireCompleted(t)
}

func TestDrainHasAnEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{MaxAttempts: 1000}, func(context.Context, *jobs.Job[greet]) error {
		return jobs.RetryAfter(0, errors.New("no luck"))
	})
	b.enqueue(b.Pool, greet{}, queue.JobOptions{})
	message := failure(t, func(tb *failing) {
		queuetest.DrainJobs(tb, b.Pool, registry, queuetest.JobsOptions{Timeout: 300 * time.Millisecond})
	})
	assert.Contains(t, message, "not drained within 300ms")
}
