package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/models"
)

// tasksQueue is what operations ask of tasks. They have no organization: of one organization there
// are none, and what is a pause or a cap of an organization elsewhere is one of a type here
// (LimitTasks).
type tasksQueue struct{}

// status implements operations. A task that is completed counts as failed when an error was noted
// of it.
func (tasksQueue) status(ctx context.Context, tx pgx.Tx, org string, s *QueueStatus) error {
	if org != "" {
		return nil
	}
	const counts = `
SELECT o.pending, o.due, o.leased, o.stale, c.n - f.n, f.n
  FROM (SELECT count(*) FILTER (WHERE leased_until IS NULL) AS pending,
               count(*) FILTER (WHERE leased_until IS NULL AND scheduled_at <= transaction_timestamp()) AS due,
               count(*) FILTER (WHERE leased_until IS NOT NULL) AS leased,
               count(*) FILTER (WHERE leased_until <= transaction_timestamp()) AS stale
          FROM queues.open_task) o,
       (SELECT count(*) AS n FROM queues.task_completed) c,
       (SELECT count(*) AS n FROM (SELECT DISTINCT e.task_id FROM queues.error e) e JOIN queues.task_completed c USING (task_id)) f`
	const due = `
SELECT o.task_id::text, '', t.scheduled_at, o.scheduled_at, extract(epoch FROM transaction_timestamp() - o.scheduled_at)::float8, NULL::text, o.task_type
  FROM queues.open_task o JOIN queues.task t USING (task_id)
 WHERE $1 = '' AND o.leased_until IS NULL AND o.scheduled_at <= transaction_timestamp()
 ORDER BY o.scheduled_at, o.task_id
 LIMIT 1`
	const pending = `
SELECT o.task_id::text, '', t.scheduled_at, o.scheduled_at, extract(epoch FROM transaction_timestamp() - t.scheduled_at)::float8, NULL::text, o.task_type
  FROM queues.open_task o JOIN queues.task t USING (task_id)
 WHERE $1 = '' AND o.leased_until IS NULL
 ORDER BY o.scheduled_at, o.task_id
 LIMIT 1`
	var waiting, leased, completed, failed int64
	if err := tx.QueryRow(ctx, counts).Scan(&waiting, &s.Due, &leased, &s.StaleLeases, &completed, &failed); err != nil {
		return err
	}
	s.Counts[models.JobPending], s.Counts[models.JobLeased] = waiting, leased
	s.Counts[models.JobCompleted], s.Counts[models.JobFailed] = completed, failed
	var err error
	if s.OldestDue, err = readWaiting(ctx, tx, due, org); err == nil {
		s.OldestPending, err = readWaiting(ctx, tx, pending, org)
	}
	return err
}

// open implements operations: all tasks are counted under the empty id, which is no organization's.
func (tasksQueue) open(ctx context.Context, tx pgx.Tx, _ organizationSpan) (map[string]OpenJobs, error) {
	const stmt = `
SELECT count(*) FILTER (WHERE leased_until IS NULL), count(*) FILTER (WHERE leased_until IS NOT NULL),
       (SELECT count(DISTINCT e.task_id) FROM queues.error e)
  FROM queues.open_task`
	var n OpenJobs
	err := tx.QueryRow(ctx, stmt).Scan(&n.Pending, &n.Leased, &n.Failed)
	return map[string]OpenJobs{"": n}, Wrap("count open tasks", err)
}

// leases implements operations. Clients other than Daybook's workers have no turn: what they hold
// is one group.
func (tasksQueue) leases(ctx context.Context, q batcher) ([]LeaseGroup, error) {
	const stmt = `
SELECT 'tasks', coalesce(o.worker, ''), coalesce(o.turn_id, ''), o.detached, count(*), count(*) FILTER (WHERE o.working),
       count(*) FILTER (WHERE o.leased_until < statement_timestamp()), min(o.leased_until - interval '5 minutes')
  FROM queues.open_task o
 WHERE o.leased_until IS NOT NULL
 GROUP BY o.worker, o.turn_id, o.detached
 ORDER BY min(o.leased_until), o.turn_id`
	groups, err := byKey(ctx, q, pgx.RowToStructByPos[LeaseGroup], stmt)
	return groups, Wrap("read leases of tasks", err)
}

// reclaimExpired implements operations.
func (tasksQueue) reclaimExpired(ctx context.Context, pool *pgxpool.Pool) (Reclaimed, error) {
	return NewTaskQueue(pool).ReclaimExpired(ctx)
}

// old implements operations.
func (tasksQueue) old() []OldRows { return []OldRows{{Name: taskQueue.Name, Days: 90, Archived: true}} }

// RemovedTask is a completed task with all its facts, as JSON.
type RemovedTask struct {
	ID    int64
	Facts json.RawMessage
}

// RemoveTasks removes up to limit tasks that were completed before a time, the oldest first, with
// all their facts, and returns them in the order of their ids. None: there is nothing left to
// remove, or another transaction is removing it. The caller writes them to an archive before it
// commits.
func RemoveTasks(ctx context.Context, tx pgx.Tx, before time.Time, limit int) ([]RemovedTask, error) {
	const stmt = `SELECT task_id, facts FROM queues.remove_completed_tasks($1, $2) ORDER BY task_id`
	all, err := Collect(ctx, tx, pgx.RowToStructByPos[RemovedTask], stmt, before, limit)
	return all, Wrap("remove completed tasks", err)
}
