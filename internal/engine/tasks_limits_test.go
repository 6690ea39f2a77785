package engine_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
)

// soon is less than the 50 seconds after which a worker looks again that waits and is not told of
// anything.
const soon = 30 * time.Second

// anyTasks works tasks of every type.
type anyTasks struct{ namedTasks }

func (anyTasks) Handling(string) (engine.Handling, bool) {
	return engine.Handling{Parallel: 50, Timeout: time.Minute, Charged: true}, true
}

// TestPausedTypeThroughTheWorker: the worker leaves the older tasks of a paused type alone and
// works the others, and a worker that waits is told when the pause ends.
func TestPausedTypeThroughTheWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := startTasksOf(b, b.Pool, anyTasks{namedTasks{func(context.Context, []string) error { return nil }}},
		engine.Options{Log: slog.New(slog.DiscardHandler)}, "fax", "named")
	t.Cleanup(e.Close)
	enqueueNamedTasks(b, 3)
	b.exec(`SELECT queues.enqueue('fax', '{}')`)
	b.exec(`SELECT queues.limit_tasks('named', true)`)
	r, err := e.Process(t.Context(), request(1))
	require.NoError(t, err)
	assert.Equal(t, 1, r.Completed)
	assert.Zero(t, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM queues.task_lease JOIN queues.task USING (task_id) WHERE task_type = 'named'`))

	got := b.waiting(e)
	resumed := time.Now()
	b.exec(`SELECT queues.limit_tasks('named', false)`)
	assert.Positive(t, b.worked(got).Leased)
	assert.Less(t, time.Since(resumed), soon)
}

// TestCapFreedByAnotherClient: a worker that waits because another client has all that a cap allows
// finds the room that this client frees: between two turns, and in one that lingers.
func TestCapFreedByAnotherClient(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]func(b *bundle, e *engine.Engine) (worked func() int){
		"between turns": func(b *bundle, e *engine.Engine) func() int {
			got := b.waiting(e)
			return func() int { return b.worked(got).Leased }
		},
		"in a turn": func(b *bundle, e *engine.Engine) func() int {
			enough := make(chan struct{})
			q := request(1)
			q.Batch, q.Wait, q.Length, q.Linger, q.Stop = 10, time.Minute, time.Minute, true, enough
			done := b.processing(e, q)
			return func() int {
				require.Eventually(b.t, func() bool {
					return fixture.Count(b.t, b.Pool,
						`SELECT count(*) FROM queues.task_completed`) == 2
				}, time.Minute, 10*time.Millisecond)
				close(enough)
				return (<-done).Completed
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			e := startTasks(b, b.Pool, func(context.Context, []string) error { return nil },
				engine.Options{Log: slog.New(slog.DiscardHandler)})
			t.Cleanup(e.Close)
			enqueueNamedTasks(b, 2)
			b.exec(`SELECT queues.limit_tasks('named', NULL, 1)`)
			role := b.As(t, "worker_service_user")
			var id int64
			require.NoError(t, role.QueryRow(t.Context(),
				`SELECT task_id FROM queues.dequeue_next_available_task()`).Scan(&id))
			r, err := e.Process(t.Context(), request(2))
			require.NoError(t, err)
			assert.Zero(t, r.Completed, "the cap is used up")

			worked := waits(b, e)
			freed := time.Now()
			_, err = role.Exec(t.Context(), `SELECT queues.complete_task($1)`, id)
			require.NoError(t, err)
			assert.Equal(t, 1, worked())
			assert.Less(t, time.Since(freed), soon)
		})
	}
}

// TestCapOverTwoWorkers: two workers together never work more tasks at a time than the cap says,
// and all tasks are worked.
func TestCapOverTwoWorkers(t *testing.T) {
	t.Parallel()
	const n, most = 40, 3
	b := setup(t)
	enqueueNamedTasks(b, n)
	b.exec(`SELECT queues.limit_tasks('named', NULL, $1)`, most)
	var working, peak atomic.Int64
	var by [2]atomic.Int64
	stop := make(chan struct{})
	var done [2]<-chan engine.Report
	for i := range done {
		e := startTasks(b, b.Pool, func(context.Context, []string) error {
			now := working.Add(1)
			defer working.Add(-1)
			for seen := peak.Load(); now > seen && !peak.CompareAndSwap(seen, now); seen = peak.Load() {
			}
			by[i].Add(1)
			<-time.After(time.Millisecond)
			return nil
		}, engine.Options{Log: slog.New(slog.DiscardHandler)})
		t.Cleanup(e.Close)
		q := request(i + 1)
		q.Batch, q.Length, q.Linger, q.Stop = 10, time.Minute, true, stop
		done[i] = b.processing(e, q)
	}
	require.Eventually(t, func() bool { return fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.open_task`) == 0 },
		time.Minute, 10*time.Millisecond)
	close(stop)
	completed := 0
	for _, d := range done {
		completed += (<-d).Completed
	}
	assert.Equal(t, n, completed)
	assert.LessOrEqual(t, peak.Load(), int64(most))
	t.Logf("at most %d at a time; the workers worked %d and %d", peak.Load(), by[0].Load(), by[1].Load())
}
