package jobs_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

const (
	traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	traceID     = "4bf92f3577b34da6a3ce929d0e0e4736"
)

// told keeps the traces that events name.
type told struct{ traces chan string }

func (s told) Observe(batch []events.Event) {
	for i := range batch {
		if batch[i].Name == events.Completed {
			s.traces <- batch[i].Type + " " + batch[i].Trace
		}
	}
}

// TestHandlersHaveTheirJobsTrace: a handler, and what it does in the completing transaction, pass
// the trace on to what they enqueue.
func TestHandlersHaveTheirJobsTrace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sink := told{make(chan string, 10)}
	jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[greet]) error {
		if job.Payload.Name == "child" {
			return nil
		}
		_, err := queue.EnqueueJob(ctx, b.Pool, org, greet{Name: "child"}, queue.JobOptions{})
		job.SetResult(queue.TraceParent(ctx))
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := queue.EnqueueJob(ctx, tx, org, greet{Name: "child"}, queue.JobOptions{})
			return err
		})
		return err
	})
	b.engine = engine.NewJobs(b.store, b.registry, engine.Options{Events: sink})
	t.Cleanup(b.engine.Close)
	ctx := queue.WithTraceParent(t.Context(), traceparent)
	traced, err := queue.EnqueueJob(ctx, b.Pool, org, greet{Name: "traced"}, queue.JobOptions{})
	require.NoError(t, err)
	b.work()
	b.work()
	assert.Equal(t, `"`+traceparent+`"`, b.row(traced.ID).Result)
	var n int
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT count(*) FROM daybook.jobs WHERE state = 'completed' AND traceparent = $1`, traceparent).Scan(&n))
	assert.Equal(t, 3, n, "the job and its two children")
	for range 3 {
		assert.Equal(t, "greet "+traceID, <-sink.traces)
	}

	plain := b.enqueue(greet{Name: "plain"}, queue.JobOptions{})
	b.work()
	assert.Equal(t, `""`, b.row(plain).Result)
	assert.Equal(t, "greet ", <-sink.traces)
}
