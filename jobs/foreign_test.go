package jobs_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// soon is more than a worker waits before it hands on, and less than poll, for which a turn waits.
const (
	soon = time.Minute
	poll = 2 * time.Minute
)

// waiting waits for work at an engine, and returns how many jobs it got, and how long that took.
func (b *bundle) waiting(e *engine.Engine, wait time.Duration) (int, time.Duration) {
	b.t.Helper()
	began := time.Now()
	r, err := e.Process(b.t.Context(), engine.TurnRequest{Turn: b.turn(), Batch: 50, Wait: wait})
	require.NoError(b.t, err)
	return r.Leased, time.Since(began)
}

// greeter has the bundle's own worker be one that greets, and nothing else.
func greeter(b *bundle) {
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error { return nil })
	b.noted("greeter", 0, greet{}.JobType())
}

// TestWaitingTurnLeavesJobsOfOtherTypes: workers with handlers of different types share a task
// queue. A turn that waits at one of them ends after a moment when only jobs of others are due, so
// that one that has their handler has the next turn (docs/embedding.md, "Which worker works what").
func TestWaitingTurnLeavesJobsOfOtherTypes(t *testing.T) {
	t.Parallel()
	for name, beside := range map[string]func(b *bundle){
		"nothing else is due": func(*bundle) {},
		"an organization has work, and its cap is reached": func(b *bundle) {
			b.exec(`INSERT INTO daybook.organizations (id, max_in_flight) VALUES ('capped', 1)`)
			b.enqueueFor("capped", 2, 2)
			n, err := b.worker(b.registry).Lease(b.t.Context(), b.turn(), 1, nil)
			require.NoError(b.t, err)
			require.Equal(b.t, 1, n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			greeter(b)
			b.noted("another worker", 0, ping{}.JobType())
			beside(b)
			b.enqueue(ping{}, queue.JobOptions{})
			got, took := b.waiting(b.engine, poll)
			assert.Zero(t, got)
			assert.Less(t, took, soon,
				"the turn waited for its whole poll interval, while a job was due that another worker has the handler of")
		})
	}
}

// TestWorkersOfDifferentTypesTakeTurns: two workers share a task queue, and each waits in turn.
// However often the one that waits hands on to the other, which then works, it does so as soon the
// next time.
func TestWorkersOfDifferentTypesTakeTurns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	greeter(b)
	pinged := make(chan struct{}, 10)
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(context.Context, *jobs.Job[ping]) error {
		pinged <- struct{}{}
		return nil
	})
	b.noted("pinger", 0, ping{}.JobType())
	for range 4 {
		pinger := engine.NewJobs(store.NewQueue(b.Pool, store.Jobs), registry,
			engine.Options{Log: slog.New(slog.DiscardHandler)})
		b.enqueue(ping{}, queue.JobOptions{})
		got, took := b.waiting(b.engine, poll)
		assert.Zero(t, got)
		assert.Less(t, took, soon)
		got, took = b.waiting(pinger, poll)
		assert.Equal(t, 1, got)
		assert.Less(t, took, soon)
		<-pinged
		pinger.Close() // it would go on for a second beside its fetch, and work the next one
		assert.Zero(t, b.count(`SELECT count(*) FROM daybook.jobs WHERE state <> 'completed'`))
	}
}

// TestWaitingFetchHandsOnToANewWorker: no worker had a handler when the fetch began to wait.
func TestWaitingFetchHandsOnToANewWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	greeter(b)
	b.enqueue(ping{}, queue.JobOptions{})
	got, took := b.waiting(b.engine, 2*time.Second)
	assert.Zero(t, got)
	assert.GreaterOrEqual(t, took, 2*time.Second, "there is no worker to hand on to")
	over := make(chan time.Duration)
	go func() {
		_, took := b.waiting(b.engine, poll)
		over <- took
	}()
	require.NoError(t, b.store.NoteJobWorker(t.Context(),
		store.JobWorker{ID: "pinger", Name: "pinger", Types: []string{ping{}.JobType()}}))
	assert.Less(t, <-over, soon)
}

// TestWaitingFetchHandsOnWhatFallsDue: a job that falls due later is handed on as one that comes.
func TestWaitingFetchHandsOnWhatFallsDue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	greeter(b)
	b.noted("pinger", 0, ping{}.JobType())
	b.enqueue(ping{}, queue.JobOptions{RunAt: time.Now().Add(3 * time.Second)})
	got, took := b.waiting(b.engine, poll)
	assert.Zero(t, got)
	assert.Less(t, took, 3*time.Second+soon)
}

// TestTurnThatLingersLeavesJobsOfOtherTypes: while a turn lingers no fetch may be waiting, so it
// ends as one does.
func TestTurnThatLingersLeavesJobsOfOtherTypes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	greeter(b)
	b.noted("pinger", 0, ping{}.JobType())
	b.enqueue(greet{}, queue.JobOptions{})
	b.enqueue(ping{}, queue.JobOptions{})
	began := time.Now()
	r, err := b.engine.Process(t.Context(), engine.TurnRequest{Turn: b.turn(), Batch: 50, Length: poll, Linger: true})
	require.NoError(t, err)
	assert.Equal(t, 1, r.Completed)
	assert.Less(t, time.Since(began), soon)
}

// TestJobsThatNoWorkerMayWorkAreNotHandedOn: the other worker could not work them either.
func TestJobsThatNoWorkerMayWorkAreNotHandedOn(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]func(b *bundle){
		"its organization is paused": func(b *bundle) {
			b.exec(`INSERT INTO daybook.organizations (id, paused_at) VALUES ($1, clock_timestamp()) ON CONFLICT (id) DO UPDATE SET paused_at = clock_timestamp()`, org)
		},
		"it is worked": func(b *bundle) {
			b.exec(`UPDATE daybook.jobs SET state = 'cancelled', finished_at = clock_timestamp()`)
		},
		"the other has gone": func(b *bundle) { b.noted("pinger", time.Hour, ping{}.JobType()) },
		"the other has stopped": func(b *bundle) {
			require.NoError(b.t,
				b.store.NoteJobWorkerStopped(b.t.Context(), "pinger"))
		},
		"it has another fleet": func(b *bundle) { b.exec(`UPDATE daybook.job_workers SET fleet = 1`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			greeter(b)
			b.noted("pinger", 0, ping{}.JobType())
			b.enqueue(ping{}, queue.JobOptions{})
			left := func() bool {
				left, err := b.store.HasLeft(t.Context())
				require.NoError(t, err)
				return left
			}
			_, _ = b.waiting(b.engine, time.Millisecond)
			require.True(t, left())
			held(b)
			assert.False(t, left())
		})
	}
}
