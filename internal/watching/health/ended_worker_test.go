package health_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/workflows"
)

// endedWorker is a client whose first question Temporal gave to a worker that had just ended, as
// after a kill -9.
type endedWorker struct {
	client.Client
	asked atomic.Int32
}

func (c *endedWorker) QueryWorkflow(ctx context.Context, id, run, query string,
	args ...any,
) (converter.EncodedValue, error) {
	if c.asked.Add(1) == 1 {
		return nil, serviceerror.NewDeadlineExceeded("context deadline exceeded")
	}
	return c.Client.QueryWorkflow(ctx, id, run, query, args...)
}

func TestAnotherWorkerAnswersForOneThatHasEnded(t *testing.T) {
	t.Parallel()
	s := withTemporal(t)
	s.start()
	s.work()
	s.await(func(r health.Report) bool { return ofJobs(r, health.NoWorker).Code == "" })

	c := &endedWorker{Client: s.client}
	states, err := health.Workflows(t.Context(), c, []health.Workflow{{
		Kind: "jobs", ID: "job-queue-worker-production", Type: workflows.JobsWorkflow, TaskQueue: workflows.JobsTaskQueue,
	}}, time.Minute)
	require.NoError(t, err)
	require.Len(t, states, 1)
	assert.True(t, states[0].Answered, states[0].Silent)
	assert.EqualValues(t, 2, c.asked.Load())
}
