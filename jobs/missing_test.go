package jobs_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

const missingAge = time.Minute

// noted puts a worker on record that has lived for longer than missingAge, and was heard of so long
// ago.
func (b *bundle) noted(id string, heard time.Duration, types ...string) {
	require.NoError(b.t, b.store.NoteJobWorker(b.t.Context(), store.JobWorker{ID: id, Name: id, Types: types}))
	b.exec(`UPDATE daybook.job_workers SET first_seen = clock_timestamp() - interval '1 hour', last_seen = clock_timestamp() - make_interval(secs => $2) WHERE id = $1`,
		id, heard.Seconds())
}

// old makes every pending job due for an hour.
func (b *bundle) old() {
	b.exec(`UPDATE daybook.jobs SET ready_at = clock_timestamp() - interval '1 hour' WHERE state = 'pending'`)
}

// TestUnknownTypesAreLeftAlone: a worker leases nothing that it has no handler for, also not in the
// turn of another one.
func TestUnknownTypesAreLeftAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error { return nil })
	unknown := b.enqueue(ping{}, queue.JobOptions{})
	b.enqueue(greet{}, queue.JobOptions{})
	assert.Equal(t, 1, b.work().Completed)
	j := b.row(unknown)
	assert.Equal(t, models.JobPending, j.State)
	assert.Zero(t, j.Attempts)
	// A fetch of a worker that knows the type leased it, and the turn came here.
	turn := b.turn()
	require.Eventually(t, func() bool {
		leased, err := b.store.LeaseFor(t.Context(), turn, 10, pgtest.Unbounded())
		return assert.NoError(t, err) && len(leased.Jobs) == 1
	}, long, 5*time.Millisecond, "a scan may put off what it cannot afford to read")
	r, err := b.engine.Process(t.Context(), engine.TurnRequest{Turn: turn, Batch: 10})
	require.NoError(t, err)
	assert.Equal(t, 1, r.Released)
	j = b.row(unknown)
	assert.Equal(t, models.JobPending, j.State)
	assert.Zero(t, j.RunCount, "uncounted")
}

// TestMissingHandlerIsNoticed: what no worker that lives has known for a while is a dead letter,
// uncounted, and comes back with its attempts when a worker has a handler.
func TestMissingHandlerIsNoticed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		others func(b *bundle)
		failed map[string]int
	}{
		"no other worker":   {func(*bundle) {}, map[string]int{"greet": 2}},
		"one that knows it": {func(b *bundle) { b.noted("other", 0, "greet") }, map[string]int{}},
		"one that knew it, and has stopped just now": {func(b *bundle) {
			b.noted("other", 0, "greet")
			require.NoError(b.t, b.store.NoteJobWorkerStopped(b.t.Context(), "other"))
		}, map[string]int{}},
		"one that knew it, and died": {
			func(b *bundle) { b.noted("other", time.Hour, "greet") },
			map[string]int{"greet": 2},
		},
		"this one has just started": {func(b *bundle) {
			b.exec(`UPDATE daybook.job_workers SET first_seen = clock_timestamp()`)
		}, map[string]int{}},
		"they are due for a moment only": {func(b *bundle) { b.due() }, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.enqueue(greet{}, queue.JobOptions{})
			b.enqueue(greet{Name: "second"}, queue.JobOptions{})
			b.exec(`UPDATE daybook.jobs SET run_count = 1`)
			b.old()
			b.noted("me", 0, "ping")
			c.others(b)
			b.work()
			failed, err := b.store.FailMissing(t.Context(), "me", missingAge)
			require.NoError(t, err)
			assert.Equal(t, c.failed, failed)
			j := b.row(id)
			assert.Equal(t, 1, j.RunCount, "what was counted stays")
			if len(c.failed) == 0 {
				assert.Equal(t, models.JobPending, j.State)
				return
			}
			assert.Equal(t, models.JobFailed, j.State)
			assert.Equal(t, string(models.CodeHandlerMissing), j.Code)
			assert.Zero(t, j.Attempts)

			jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error { return nil })
			n, err := b.store.ReturnMissing(t.Context(), b.registry.Names())
			require.NoError(t, err)
			assert.Equal(t, 2, n)
			assert.Equal(t, 1, b.row(id).RunCount)
			assert.Equal(t, 2, b.work().Completed)
		})
	}
}

// TestTwoFleetsUseUpAttempts: a fleet without the handler gives a job no new attempts.
func TestTwoFleetsUseUpAttempts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	jobs.Register(b.registry, jobs.Policy{MaxAttempts: 2, Base: time.Millisecond},
		func(context.Context, *jobs.Job[greet]) error {
			calls.Add(1)
			return errors.New("always")
		})
	s := store.NewQueue(b.Pool, store.Jobs)
	other := b.worker(jobs.NewRegistry())
	id := b.enqueue(greet{}, queue.JobOptions{})
	one := func(e *engine.Engine) {
		turn := b.turn()
		_, err := e.Lease(t.Context(), turn, 1, nil)
		require.NoError(t, err)
		_, err = e.Process(t.Context(), engine.TurnRequest{Turn: turn, Batch: 1})
		require.NoError(t, err)
	}
	b.noted("other", 0)
	for range 4 {
		b.old()
		one(other)
		_, err := s.FailMissing(t.Context(), "other", missingAge)
		require.NoError(t, err)
		_, err = b.store.ReturnMissing(t.Context(), b.registry.Names())
		require.NoError(t, err)
		b.due()
		one(b.engine)
	}
	assert.EqualValues(t, 2, calls.Load())
	j := b.row(id)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, string(models.CodeHandlerError), j.Code)
	assert.Equal(t, 2, j.RunCount)
}
