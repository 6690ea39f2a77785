package jobs_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// A worker that Temporal no longer hears goes on with what its fetch has begun. The next attempt of
// the activity, on another worker, works under the same turn id: what it gives back is its own.
func TestNextAttemptLeavesAloneWhatIsBegun(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(b *bundle, e *engine.Engine, turn engine.FetchRequest){
		"a fetch that is cancelled": func(b *bundle, e *engine.Engine, r engine.FetchRequest) {
			ctx, cancel := context.WithCancel(b.t.Context())
			done := make(chan engine.Fetched, 1)
			go func() {
				f, err := e.Fetch(ctx, r)
				assert.NoError(b.t, err)
				done <- f
			}()
			b.untilQuiet()
			cancel()
			assert.Zero(b.t, receive(b.t, done).Leased)
		},
		"a fetch and a turn": func(b *bundle, e *engine.Engine, r engine.FetchRequest) {
			r.Wait = 0
			f, err := e.Fetch(b.t.Context(), r)
			assert.NoError(b.t, err)
			assert.Zero(b.t, f.Leased)
			_, err = e.Process(b.t.Context(), engine.TurnRequest{Turn: r.Turn, Batch: 50, Crashed: true})
			assert.NoError(b.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var calls atomic.Int32
			began, finish := make(chan bool, 9), make(chan bool)
			jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1}, func(context.Context, *jobs.Job[greet]) error {
				calls.Add(1)
				began <- true
				<-finish
				return nil
			})
			first := engine.FetchRequest{Turn: b.turn(), Batch: 50, Wait: time.Minute}
			done := make(chan engine.Fetched, 1)
			go func() {
				f, err := b.engine.Fetch(context.WithoutCancel(t.Context()), first)
				assert.NoError(t, err)
				done <- f
			}()
			b.untilQuiet()
			id := b.enqueue(greet{}, queue.JobOptions{})
			receive(t, began)
			assert.Equal(t, 1, receive(t, done).Leased)
			again := first
			again.Again = true
			next(b, b.worker(b.registry), again)
			assert.Equal(t, models.JobLeased, b.row(id).State, "the first worker has it")
			close(finish)
			b.until(1, completed)
			b.assertOnce(1)
			assert.EqualValues(t, 1, calls.Load())
		})
	}
}
