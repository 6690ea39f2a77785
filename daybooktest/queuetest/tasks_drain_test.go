package queuetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/tasks"
)

// calls returns a registry whose calls succeed, but for the number 2, and what was called.
func calls() (*tasks.Registry, *[]int) {
	var called []int
	registry := tasks.NewRegistry()
	tasks.Register(registry, "call", tasks.Policy{Parallel: 1},
		func(_ context.Context, t *tasks.Task[call]) (any, error) {
			called = append(called, t.Payload.Number)
			if t.Payload.Number == 2 {
				return nil, errors.New("engaged")
			}
			return nil, nil
		})
	return registry, &called
}

func TestDrainTasks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(), `
CREATE SCHEMA shop;
CREATE FUNCTION shop.remind(_payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN PERFORM queues.enqueue('call', '{"number": 1}'); RETURN '{"status": "succeeded"}'; END $$;
REVOKE ALL ON FUNCTION shop.remind FROM PUBLIC;
SELECT queues.enqueue('letter', '{}'), queues.complete_task(1), queues.enqueue('letter', '{}');
SELECT queues.enqueue('db_function', '{"db_function": "shop.remind"}')`)
	require.NoError(t, err)
	registry, called := calls()
	drained := queuetest.DrainTasks(t, b.Pool, registry, queuetest.TasksOptions{})
	drained.RequireSucceeded(t)
	assert.Equal(t, queuetest.Counts{Completed: 2}, drained.Counts, "what the function enqueued as well")
	assert.Equal(t, []int{1}, *called)
	require.Len(t, drained.Tasks, 2)
	assert.Equal(t, "db_function", drained.Tasks[0].Type)
	assert.Equal(t, models.TaskCompleted, drained.Tasks[1].State)
	queuetest.RequireTaskEnqueued(t, b.Pool,
		func(k queuetest.Task[queue.RawTask]) bool { return k.State == models.TaskReady })

	b.enqueueTask(b.Pool, call{2})
	failed := queuetest.DrainTasks(t, b.Pool, registry, queuetest.TasksOptions{})
	assert.Equal(t, queuetest.Counts{Failed: 1}, failed.Counts)
	require.Len(t, failed.Tasks, 1, "those of this call alone")
	assert.Contains(t, failure(t, func(tb *failing) { failed.RequireSucceeded(tb) }),
		"1 of 1 tasks did not succeed:\n  call  completed  HANDLER_ERROR: engaged")

	_, err = b.Pool.Exec(t.Context(), `SELECT queues.enqueue('db_function', '{"db_function": "shop.remind"}')`)
	require.NoError(t, err)
	refused := queuetest.DrainTasks(t, b.Pool, registry,
		queuetest.TasksOptions{WorkerPool: b.As(t, "worker_service_user")})
	assert.Contains(t, failure(t, func(tb *failing) { refused.RequireSucceeded(tb) }), "42501",
		"the function is not granted")
}

// TestDrainTasksAdvance works what is due later, and nothing that is paused.
func TestDrainTasksAdvance(t *testing.T) {
	t.Parallel()
	b := setup(t)
	registry, called := calls()
	_, err := b.Pool.Exec(t.Context(), `
SELECT queues.enqueue('call', '{"number": 4}', now() + interval '3 hours'), queues.enqueue('call', '{"number": 3}', now() + interval '1 hour');
SELECT queues.enqueue('db_function', '{}'), queues.limit_tasks('db_function', true)`)
	require.NoError(t, err)
	assert.Empty(t, queuetest.DrainTasks(t, b.Pool, registry, queuetest.TasksOptions{}).Tasks)
	queuetest.DrainTasks(t, b.Pool, registry, queuetest.TasksOptions{Advance: 2 * time.Hour}).RequireSucceeded(t)
	assert.Equal(t, []int{3}, *called)
	queuetest.DrainTasks(t, b.Pool, registry, queuetest.TasksOptions{Advance: time.Hour}).RequireSucceeded(t)
	assert.Equal(t, []int{3, 4}, *called)
}
