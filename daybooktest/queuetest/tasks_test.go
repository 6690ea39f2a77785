package queuetest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

type call struct {
	Number int `json:"number"`
}

func (call) TaskType() string { return "call" }

func (b *bundle) enqueueTask(q queue.Querier, p queue.TaskPayload) int64 {
	b.t.Helper()
	task, err := queue.EnqueueTask(b.t.Context(), q, p, queue.TaskOptions{})
	require.NoError(b.t, err)
	return task.ID
}

func TestRequireTaskEnqueued(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.enqueueTask(b.Pool, call{1})
	second := b.enqueueTask(b.Pool, call{2})
	_, err := b.Pool.Exec(t.Context(),
		`SELECT queues.fail_task(task_id, 'busy'), queues.complete_task(task_id) FROM queues.dequeue_next_available_task()`)
	require.NoError(t, err)

	task := queuetest.RequireTaskEnqueued(t, b.Pool, func(k queuetest.Task[call]) bool { return k.Payload.Number == 1 })
	assert.Equal(t, queuetest.Task[call]{
		ID: first, Type: "call", Payload: call{1}, EnqueuedAt: task.EnqueuedAt, ScheduledAt: task.EnqueuedAt,
		State: models.TaskCompleted, Leases: 1, Errors: []string{"busy"},
	}, task)
	all := queuetest.EnqueuedTasks[call](t, b.Pool)
	require.Len(t, all, 2)
	assert.Equal(t, second, all[1].ID)
	assert.Equal(t, models.TaskReady, all[1].State)

	message := failure(t, func(tb *failing) { queuetest.RequireTaskEnqueued[call](tb, b.Pool) })
	assert.Equal(t, "queuetest: want one task of type call, found 2; the tasks that are there:\n  1  call  completed  "+
		"busy  {\"number\": 1}\n  2  call  ready  {\"number\": 2}", message)
	message = failure(t, func(tb *failing) {
		queuetest.RequireTaskNotEnqueued(tb, b.Pool, func(k queuetest.Task[call]) bool { return k.Payload.Number == 2 })
	})
	assert.Contains(t, message, "want no task of type call that matches, found 1")
}

func TestTasksInATransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Tx(t, b.Pool, func(_ context.Context, tx pgx.Tx) {
		b.enqueueTask(tx, call{1})
		queuetest.RequireTaskEnqueued[call](t, tx)
		queuetest.RequireTaskNotEnqueued[call](t, b.Pool)
	})
}
