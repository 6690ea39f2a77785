package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// What package queuetest reads and changes of tasks, in the tests of applications, as the schema's owner.

// LastTaskLease is the number of the last lease on record; 0: there is none.
func LastTaskLease(ctx context.Context, q Querier) (int64, error) {
	return value[int64](ctx, q, "read leases of tasks", `SELECT coalesce(max(task_lease_id), 0) FROM queues.task_lease`)
}

// LeasedTasksSince reads the tasks that were handed out after a lease, in the order in which they were enqueued.
func LeasedTasksSince(ctx context.Context, q Querier, lease int64) ([]EnqueuedTask, error) {
	const stmt = `SELECT DISTINCT task_id FROM queues.task_lease WHERE task_lease_id > $1 ORDER BY task_id`
	ids, err := Collect(ctx, q, pgx.RowTo[int64], stmt, lease)
	if err != nil {
		return nil, Wrap("read leases of tasks", err)
	}
	return enqueuedTasks(ctx, q, "", ids)
}

// Due counts the tasks of the queue's types that may be worked now, and says in how long the next one may be; nil: none waits for its time.
func (q *TaskQueue) Due(ctx context.Context) (n int, next *time.Duration, err error) {
	const stmt = `
SELECT count(*) FILTER (WHERE o.scheduled_at <= clock_timestamp()), min(o.scheduled_at) - clock_timestamp()
  FROM queues.open_task o
 WHERE o.leased_until IS NULL AND o.task_type = ANY ($1)
   AND NOT EXISTS (SELECT FROM queues.task_limit l WHERE l.task_type IN ('*', o.task_type) AND l.paused_at IS NOT NULL)`
	err = q.Pool().QueryRow(ctx, stmt, q.types).Scan(&n, &next)
	return n, next, Wrap("count what is due", err)
}

// PassTime moves the time of every waiting task back, as if that much time had passed. The facts keep the times for which tasks were asked.
func (q *TaskQueue) PassTime(ctx context.Context, d time.Duration) error {
	const stmt = `
UPDATE queues.open_task o
   SET scheduled_at = greatest(o.scheduled_at - make_interval(secs => $1), clock_timestamp()), arrived = pg_current_xact_id()
 WHERE o.leased_until IS NULL AND o.scheduled_at > clock_timestamp()`
	_, err := q.Pool().Exec(ctx, stmt, d.Seconds())
	return Wrap("let time pass", err)
}
