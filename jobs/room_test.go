package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// lanes works with so many lanes of one engine, in short turns that wait, as the
// workflow does, until the test ends.
func (b *bundle) lanes(n int, e *engine.Engine, name string) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for lane := range n {
		wg.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				turn := store.Turn{ID: fmt.Sprintf("%s/%d/%d", name, lane, k), Worker: name, WorkflowRunID: name}
				_, _ = e.Process(ctx, engine.TurnRequest{
					Turn: turn, Batch: 50, Wait: time.Second, Length: 1500 * time.Millisecond, Linger: true,
				})
			}
		})
	}
	b.t.Cleanup(func() { cancel(); wg.Wait() })
}

// worker returns an engine as of another process.
func (b *bundle) worker(registry *jobs.Registry) *engine.Engine {
	e := engine.NewJobs(store.NewQueue(b.Pool, store.Jobs), registry,
		engine.Options{Log: slog.New(slog.DiscardHandler), Grace: 100 * time.Millisecond})
	b.t.Cleanup(e.Close)
	return e
}

// enqueueFor enqueues n greetings of an organization at a priority.
func (b *bundle) enqueueFor(organization string, priority, n int) {
	b.exec(`SELECT daybook.enqueue_job($1, 'greet', jsonb_build_object('name', $1 || ' ' || $2::int || ' ' || i), priority => $2::int) FROM generate_series(1, $3::int) i`,
		organization, priority, n)
}

// slowly registers a handler of greetings that takes its time, and counts who began.
func (b *bundle) slowly(policy jobs.Policy, takes time.Duration) (at *crowd,
	began func(organization string, priority int) int,
) {
	at = &crowd{}
	var mu sync.Mutex
	counts := map[string]int{}
	jobs.Register(b.registry, policy, func(ctx context.Context, job *jobs.Job[greet]) error {
		var organization string
		var priority, n int
		if _, err := fmt.Sscan(job.Payload.Name, &organization, &priority, &n); err != nil {
			return jobs.Final(err)
		}
		at.enter()
		defer at.leave()
		mu.Lock()
		counts[fmt.Sprint(organization, priority)]++
		mu.Unlock()
		select {
		case <-time.After(takes):
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	return at, func(organization string, priority int) int {
		mu.Lock()
		defer mu.Unlock()
		return counts[fmt.Sprint(organization, priority)]
	}
}

// TestParallelHoldsOverAllTurns: in one process no more are worked than Parallel, by turns, by
// fetches that begin what comes, and by detached jobs; and as many are worked as that.
func TestParallelHoldsOverAllTurns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at, _ := b.slowly(jobs.Policy{Parallel: 6}, 1200*time.Millisecond)
	b.lanes(3, b.engine, "run")
	b.enqueueFor("a", 2, 40)
	b.until(40, completed)
	assert.EqualValues(t, 6, at.most.Load())
	assert.Equal(t, 40, b.count(`SELECT count(*) FROM daybook.attempts`), "each once")
}

// TestOrganizationsShareSlowHandlers: what is picked in turn begins in turn, also when attempts
// take long.
func TestOrganizationsShareSlowHandlers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, began := b.slowly(jobs.Policy{Parallel: 5}, 200*time.Millisecond)
	b.enqueueFor("big", 2, 1000)
	b.enqueueFor("small", 2, 40)
	b.lanes(3, b.engine, "run")
	require.Eventually(t, func() bool { return began("small", 2) == 40 }, long, 5*time.Millisecond)
	assert.InDelta(t, 40, began("big", 2), 20)
}

// TestPrioritiesOfSlowHandlers: four of five that begin are of the high priority.
func TestPrioritiesOfSlowHandlers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, began := b.slowly(jobs.Policy{Parallel: 5}, 200*time.Millisecond)
	b.enqueueFor("a", 3, 1000)
	b.enqueueFor("a", 1, 80)
	b.lanes(3, b.engine, "run")
	require.Eventually(t, func() bool { return began("a", 1) == 80 }, long, 5*time.Millisecond)
	assert.InDelta(t, 20, began("a", 3), 12)
}

// TestQuickJobBehindASlowType: a type without room holds up no other type of its organization and
// priority.
func TestQuickJobBehindASlowType(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var begun atomic.Int32
	jobs.Register(b.registry, jobs.Policy{Parallel: 4, Timeout: time.Hour},
		func(ctx context.Context, _ *jobs.Job[greet]) error {
			begun.Add(1)
			<-ctx.Done()
			return ctx.Err()
		})
	quick := make(chan struct{}, 10)
	jobs.Register(b.registry, jobs.Policy{},
		func(context.Context, *jobs.Job[ping]) error { quick <- struct{}{}; return nil })
	b.enqueueFor(org, 2, 10000)
	b.enqueue(ping{}, queue.JobOptions{})
	b.lanes(3, b.engine, "run")
	receive(t, quick)
	// And when the slow type has been without room for long.
	require.Eventually(t, func() bool { return begun.Load() == 4 }, long, 5*time.Millisecond)
	for range 3 {
		b.enqueue(ping{}, queue.JobOptions{})
		at := time.Now()
		receive(t, quick)
		assert.Less(t, time.Since(at), 30*time.Second, "not when the turn looks by itself, 50 seconds after its last scan")
	}
	assert.EqualValues(t, 4, begun.Load(), "none of the slow ones has ended")
	assert.Equal(t, 4, b.count(`SELECT count(*) FROM daybook.jobs WHERE type = 'greet' AND state = 'leased'`),
		"no other is leased")
}

// TestParallelEverywhere: several processes keep a limit together, and use it.
func TestParallelEverywhere(t *testing.T) {
	t.Parallel()
	for name, organizations := range map[string]int{"one organization": 1, "many organizations": 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			at, _ := b.slowly(jobs.Policy{Parallel: 6, ParallelEverywhere: 4}, 100*time.Millisecond)
			quick := make(chan struct{}, 1)
			jobs.Register(b.registry, jobs.Policy{},
				func(context.Context, *jobs.Job[ping]) error { quick <- struct{}{}; return nil })
			for i := range organizations {
				b.enqueueFor(fmt.Sprint("o", i), 2, 60/organizations)
			}
			b.lanes(2, b.engine, "one")
			b.lanes(2, b.worker(b.registry), "two")
			// The limit of one type holds up no other.
			b.enqueue(ping{}, queue.JobOptions{})
			receive(t, quick)
			b.until(61, completed)
			assert.LessOrEqual(t, at.most.Load(), int32(4))
			assert.Greater(t, at.most.Load(), int32(2), "it is used")
			assert.Equal(t, 61, b.count(`SELECT count(*) FROM daybook.attempts`), "each once")
		})
	}
}
