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

// A worker that Temporal no longer hears goes on with what its turn has handed on. The next attempt
// of the activity, on another worker, works under the same turn id: what it gives back is its own.
func TestNextAttemptLeavesAloneWhatIsBegun(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(b *bundle, e *engine.Engine, r engine.TurnRequest){
		"a turn that is cancelled": func(b *bundle, e *engine.Engine, r engine.TurnRequest) {
			ctx, cancel := context.WithCancel(b.t.Context())
			done := make(chan engine.Report, 1)
			go func() {
				r, err := e.Process(ctx, r)
				assert.NoError(b.t, err)
				done <- r
			}()
			b.untilQuiet()
			cancel()
			assert.Zero(b.t, receive(b.t, done).Leased)
		},
		"a turn that does not wait": func(b *bundle, e *engine.Engine, r engine.TurnRequest) {
			r.Wait, r.Crashed = 0, true
			report, err := e.Process(b.t.Context(), r)
			assert.NoError(b.t, err)
			assert.Zero(b.t, report.Leased)
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
			first := engine.TurnRequest{
				Turn: b.turn(), Batch: 50, Wait: time.Minute, Length: 10 * time.Millisecond, Linger: true, Fresh: true,
			}
			done := make(chan engine.Report, 1)
			go func() {
				r, err := b.engine.Process(context.WithoutCancel(t.Context()), first)
				assert.NoError(t, err)
				done <- r
			}()
			b.untilQuiet()
			id := b.enqueue(greet{}, queue.JobOptions{})
			receive(t, began)
			assert.Equal(t, 1, receive(t, done).Leased)
			again := first
			again.Fresh = false
			next(b, b.worker(b.registry), again)
			assert.Equal(t, models.JobLeased, b.row(id).State, "the first worker has it")
			close(finish)
			b.until(1, completed)
			b.assertOnce(1)
			assert.EqualValues(t, 1, calls.Load())
		})
	}
}
