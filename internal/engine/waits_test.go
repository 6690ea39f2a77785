package engine_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// wrapping is a tracer that knows of kinds and handlers what their interfaces have, and nothing
// else.
type wrapping struct{}

func (wrapping) Handlers(_ string, h engine.Handlers) engine.Handlers {
	return struct{ engine.Handlers }{h}
}

func (wrapping) Kind(k engine.Kind) engine.Kind { return struct{ engine.Kind }{k} }

// TestWorkersReleaseWaitingJobs: more jobs wait for one than the transaction that ends it releases.
// A worker that makes spans releases the others, as every worker does, and so does a worker of a
// fleet, which may have no other workers beside it.
func TestWorkersReleaseWaitingJobs(t *testing.T) {
	t.Parallel()
	const waiting = 150
	for name, c := range map[string]struct {
		fleet, queue string
		options      engine.Options
	}{
		"traced":     {options: engine.Options{Tracer: wrapping{}}},
		"of a fleet": {fleet: "shop", queue: "orders"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if c.queue != "" {
				_, err := queue.SetQueue(t.Context(), b.Pool, queue.NamedQueue{Name: c.queue, Fleet: c.fleet})
				require.NoError(t, err)
			}
			s := store.NewQueue(b.Pool, store.JobsOf(c.fleet))
			require.NoError(t, s.Join(t.Context()))
			r := jobs.NewRegistry()
			jobs.Register(r, jobs.Policy{}, func(context.Context, *jobs.Job[named]) error { return nil })
			c.options.Log = slog.New(slog.DiscardHandler)
			e := engine.NewJobs(s, r, c.options)
			t.Cleanup(e.Close)
			first, err := queue.EnqueueJob(t.Context(), b.Pool, org, named{Name: "first"}, queue.JobOptions{Queue: c.queue})
			require.NoError(t, err)
			for range waiting {
				_, err = queue.EnqueueJob(t.Context(), b.Pool, org, named{Name: "after"},
					queue.JobOptions{Queue: c.queue, After: []string{first.ID}})
				require.NoError(t, err)
			}
			stop := make(chan struct{})
			var turning sync.WaitGroup
			turning.Go(func() { turnUntil(e, 1, stop) })
			defer turning.Wait()
			defer close(stop)

			assert.Eventually(t, func() bool { return b.in("daybook.jobs", `state = 'completed'`) == 1+waiting },
				pgtest.Patience, 10*time.Millisecond)
		})
	}
}
