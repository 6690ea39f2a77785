package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// TestShopBesideAnotherWorker: on one database and one Temporal server, a worker without a fleet
// that has a handler for webhooks leaves those of the shop alone, and the shop leaves its webhook
// alone.
func TestShopBesideAnotherWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	server := temporaltest.Shared(t)
	temporal := server.Client(t, server.Namespace(t))
	var others atomic.Int32
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(context.Context, *jobs.Job[handlers.Webhook]) error {
		others.Add(1)
		return nil
	})
	other, err := workers.NewJobs(workers.JobsOptions{
		Client: temporal, Pool: b.pool, Registry: registry,
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(other.Close)
	_, err = temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: models.WorkflowIDOf(workflows.JobsTaskQueue), TaskQueue: workflows.JobsTaskQueue,
	}, workflows.JobsWorkflow, workflows.Input{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- other.Run(ctx) }()
	go func() { ended <- b.run(ctx, temporal) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
		assert.NoError(t, <-ended)
	})

	require.NoError(t, b.place(t.Context(), anOrder("order-1")))
	told, err := b.shop.told("theirs", "order-2")
	require.NoError(t, err)
	_, err = queue.EnqueueJob(t.Context(), b.pool, org, told, queue.JobOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`) == 4 }, time.Minute, 20*time.Millisecond)
	assert.Equal(t, []string{"order-1 order.booked", "order-1 order.placed"}, b.events(),
		"by the shop, with its settings")
	assert.EqualValues(t, 1, others.Load(), "the one that is in no queue")
}
