package store

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store/hosts"
)

// TaskAttempts is how often a worker may end while it works on a task: then the task is completed,
// with what happened in queues.error. A processor that is to say so to a supervisor does it in the
// last attempt (Job.Attempt), before it does anything else.
const TaskAttempts = 10

// taskQueue says how workers are woken for tasks, and which table stands for their schema.
var taskQueue = &Kind{
	Name: "tasks", table: "queues.open_task", channel: "daybook_tasks", key: 3,
	require: "queues.require_table", fence: `SELECT queues.next_fence()`,
}

// TaskQueue is the queue of tasks as a worker sees it: by functions of schema queues alone, which
// its role may call. A Job of it has ID (the task's number), Type, Payload, EnqueuedAt, Attempt,
// StartedAt and Reclaims. engine.Tasks makes the port of it.
type TaskQueue struct {
	base
	// types are those that the worker has processors for, in the order of their names.
	types []string
	// turn counts the calls that lease: each begins with another type.
	turn atomic.Uint64
}

// NewTaskQueue returns the queue of tasks on pool, which stays the caller's to close, for a worker
// that has processors for the types. Its role is the schema's owner, worker_service_user, or one
// that has the same rights. It cannot verify the schema: what GuardSchema is given uses another
// connection.
func NewTaskQueue(pool *pgxpool.Pool, types ...string) *TaskQueue {
	return &TaskQueue{base: base{pool: pool, kind: taskQueue, hosts: hosts.NewWatch(pool)}, types: types}
}

// Name is the kind's.
func (*TaskQueue) Name() string { return taskQueue.Name }

// taskLimits gives a batch without a transaction around it its time limits. The functions say how
// their statements are planned.
const taskLimits = `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', '0', true), ` +
	noTransactionTimeout

// askTasks calls a function of schema queues, in one round trip and one transaction.
func askTasks[T any](ctx context.Context, q *TaskQueue, scan pgx.RowToFunc[T], stmt string, args ...any) ([]T, error) {
	return askTasksOn(ctx, q.pool, statementLimit, scan, stmt, args...)
}

// askTasksOn is askTasks on a connection or a pool, with the time that the statement gets.
func askTasksOn[T any](ctx context.Context, q batcher, limit time.Duration, scan pgx.RowToFunc[T], stmt string,
	args ...any,
) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	for try := 0; ; try++ {
		batch := &pgx.Batch{}
		batch.Queue(readCommitted)
		batch.Queue(taskLimits, strconv.FormatInt(limit.Milliseconds(), 10))
		batch.Queue(stmt, args...)
		rows, err := lastRows(ctx, q, batch, scan)
		if try > 0 || FaultOf(err) != Stale {
			return rows, err
		}
	}
}

// taskNumber is the number of a task. An id that is no number gets -1, which is no task's.
func taskNumber(id string) int64 {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func taskNumbers(ids []string) []int64 {
	numbers := make([]int64, len(ids))
	for i, id := range ids {
		numbers[i] = taskNumber(id)
	}
	return numbers
}
