package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// What package queuetest reads and changes, in the tests of applications.

// EnqueuedRow is a background job as a test sees it.
type EnqueuedRow struct {
	ID, OrgID, Type string
	Payload         string
	Key             string
	Priority        int
	State           string
	ReadyAt         time.Time
	RunCount        int
	MaxAttempts     int
	Code, Error     string
	// Result is "" when there is none.
	Result string
	Links  []EnqueuedLink
	Unique bool
}

// EnqueuedLink is one link of an EnqueuedRow.
type EnqueuedLink struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// EnqueuedRows reads background jobs in the order in which they were enqueued: those of a type ("":
// of any), and those that a turn attempted, or that have no handler ("": all).
func EnqueuedRows(ctx context.Context, q Querier, jobType, turn string) ([]EnqueuedRow, error) {
	const stmt = `
SELECT j.id, j.org_id, j.type, j.payload::text, coalesce(j.idempotency_key, ''), j.priority::integer, j.state::text, j.ready_at, j.run_count,
       coalesce(j.max_attempts, 0), coalesce(j.last_error_code, ''), coalesce(j.last_error, ''), coalesce(j.result::text, ''),
       coalesce((SELECT jsonb_agg(jsonb_build_object('kind', l.kind, 'id', l.id) ORDER BY l.kind, l.id)
                   FROM daybook.job_links l WHERE l.job_id = j.id)::text, '[]'),
       j.unique_hash = j.input_hash IS TRUE
  FROM daybook.jobs j
 WHERE ($1::text = '' OR j.type = $1::text)
   AND ($2::text = '' OR j.completed_turn_id = $2::text OR EXISTS (SELECT FROM daybook.attempt_log a WHERE a.job_id = j.id AND a.turn_id = $2::text)
        OR j.state = 'failed' AND j.last_error_code = 'HANDLER_MISSING')
 ORDER BY j.created_at, j.id`
	all, err := Collect(ctx, q, func(row pgx.CollectableRow) (EnqueuedRow, error) {
		var r EnqueuedRow
		var links string
		if err := row.Scan(&r.ID, &r.OrgID, &r.Type, &r.Payload, &r.Key, &r.Priority, &r.State, &r.ReadyAt, &r.RunCount,
			&r.MaxAttempts, &r.Code, &r.Error, &r.Result, &links, &r.Unique); err != nil {
			return r, err
		}
		return r, json.Unmarshal([]byte(links), &r.Links)
	}, stmt, jobType, turn)
	return all, Wrap("read jobs", err)
}

// AttemptedDocuments reads the accounting jobs that a turn attempted, by organization and document.
func AttemptedDocuments(ctx context.Context, q Querier, turn string) ([]models.AccountingJob, error) {
	const stmt = `
SELECT j.id, j.org_id, j.document_id, j.version_hint, j.state::text AS state, j.run_count, j.ready_at, j.last_error_code, j.last_error
  FROM daybook.accounting_work_queue j
 WHERE j.completed_turn_id = $1 OR EXISTS (SELECT FROM daybook.attempt_log a WHERE a.job_id = j.id AND a.turn_id = $1)
 ORDER BY j.org_id, j.document_id`
	all, err := Collect(ctx, q, pgx.RowToStructByNameLax[models.AccountingJob], stmt, turn)
	return all, Wrap("read jobs", err)
}

// Due counts the jobs that may be worked now, and says in how long the next one may be; nil: none
// waits for its time.
func (s *Store) Due(ctx context.Context) (n int, next *time.Duration, err error) {
	const stmt = `
SELECT count(*) FILTER (WHERE q.ready_at <= clock_timestamp()), min(q.ready_at) - clock_timestamp()
  FROM daybook.jobs q
  LEFT JOIN daybook.organizations o ON o.id = q.org_id
  /* jobs */LEFT JOIN daybook.queues u ON u.name = q.queue/* accounting: */
 WHERE q.state = 'pending' AND q.ready_at < '9999-12-31 00:00:00+00' AND o.paused_at IS NULL/* jobs */ AND q.fleet = @fleet AND u.paused_at IS NULL/* accounting: */
   /* accounting: AND coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY (@sources)
                  AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ @hooks */`
	err = s.pool.QueryRow(ctx, s.kind.sql(stmt), s.kind.able(Args{})).Scan(&n, &next)
	return n, next, Wrap("count what is due", err)
}

// PassTime moves the time of every waiting job back, as if that much time had passed: that at which
// it is due, or is to be due when it need not wait for others any more.
func (s *Store) PassTime(ctx context.Context, d time.Duration) error {
	const stmt = `
/* jobs */WITH callbacks AS (
    UPDATE daybook.job_callbacks SET deadline = deadline - make_interval(secs => $1) WHERE called_at IS NULL
)/* accounting: */
UPDATE daybook.jobs q
   SET ready_at = CASE WHEN q.ready_at < '9999-12-31 00:00:00+00' THEN greatest(q.ready_at - make_interval(secs => $1), clock_timestamp()) ELSE q.ready_at END,
       first_ready_at = CASE WHEN q.ready_at < '9999-12-31 00:00:00+00' THEN q.first_ready_at ELSE q.first_ready_at - make_interval(secs => $1) END
 WHERE q.state = 'pending' AND q.ready_at > clock_timestamp()`
	_, err := s.pool.Exec(ctx, s.kind.sql(stmt), d.Seconds())
	return Wrap("let time pass", err)
}

// EnqueuedTask is a task as a test sees it.
type EnqueuedTask struct {
	ID                      int64
	Type, Payload           string
	EnqueuedAt, ScheduledAt time.Time
	State                   models.TaskState
	// Leases is how often it was handed out.
	Leases int
	// Errors are those that were noted, in their order.
	Errors []string
}

// EnqueuedTasks reads tasks in the order in which they were enqueued: those of a type, or of any
// when it is empty.
func EnqueuedTasks(ctx context.Context, q Querier, taskType string) ([]EnqueuedTask, error) {
	return enqueuedTasks(ctx, q, taskType, nil)
}

// enqueuedTasks reads the tasks of a type (empty: of any) that have one of the ids (nil: all).
func enqueuedTasks(ctx context.Context, q Querier, taskType string, ids []int64) ([]EnqueuedTask, error) {
	const stmt = `
SELECT t.task_id, t.task_type, t.payload::text, t.enqueued_at, t.scheduled_at,
       CASE WHEN c.task_id IS NOT NULL THEN 'completed' WHEN o.task_id IS NULL THEN 'unreachable' WHEN o.leased_until > clock_timestamp() THEN 'leased'
            WHEN o.scheduled_at > clock_timestamp() THEN 'waiting' ELSE 'ready' END,
       (SELECT count(*) FROM queues.task_lease l WHERE l.task_id = t.task_id AND l.renews IS NULL)::integer,
       coalesce((SELECT jsonb_agg(e.error_message ORDER BY e.error_id) FROM queues.error e WHERE e.task_id = t.task_id)::text, '[]')
  FROM queues.task t
  LEFT JOIN queues.open_task o ON o.task_id = t.task_id
  LEFT JOIN queues.task_completed c ON c.task_id = t.task_id
 WHERE ($1::text = '' OR t.task_type = $1::text) AND ($2::bigint[] IS NULL OR t.task_id = ANY ($2))
 ORDER BY t.task_id`
	all, err := Collect(ctx, q, func(row pgx.CollectableRow) (EnqueuedTask, error) {
		var t EnqueuedTask
		var errs string
		if err := row.Scan(&t.ID, &t.Type, &t.Payload, &t.EnqueuedAt, &t.ScheduledAt, &t.State, &t.Leases,
			&errs); err != nil {
			return t, err
		}
		return t, json.Unmarshal([]byte(errs), &t.Errors)
	}, stmt, taskType, ids)
	return all, Wrap("read tasks", err)
}

// What package queuetest reads and changes of tasks, in the tests of applications, as the schema's
// owner.

// LastTaskLease is the number of the last lease on record; 0: there is none.
func LastTaskLease(ctx context.Context, q Querier) (int64, error) {
	return value[int64](ctx, q, "read leases of tasks", `SELECT coalesce(max(task_lease_id), 0) FROM queues.task_lease`)
}

// LeasedTasksSince reads the tasks that were handed out after a lease, in the order in which they
// were enqueued.
func LeasedTasksSince(ctx context.Context, q Querier, lease int64) ([]EnqueuedTask, error) {
	const stmt = `SELECT DISTINCT task_id FROM queues.task_lease WHERE task_lease_id > $1 ORDER BY task_id`
	ids, err := Collect(ctx, q, pgx.RowTo[int64], stmt, lease)
	if err != nil {
		return nil, Wrap("read leases of tasks", err)
	}
	return enqueuedTasks(ctx, q, "", ids)
}

// Due counts the tasks of the queue's types that may be worked now, and says in how long the next
// one may be; nil: none waits for its time.
func (q *TaskQueue) Due(ctx context.Context) (n int, next *time.Duration, err error) {
	const stmt = `
SELECT count(*) FILTER (WHERE o.scheduled_at <= clock_timestamp()), min(o.scheduled_at) - clock_timestamp()
  FROM queues.open_task o
 WHERE o.leased_until IS NULL AND o.task_type = ANY ($1)
   AND NOT EXISTS (SELECT FROM queues.task_limit l WHERE l.task_type IN ('*', o.task_type) AND l.paused_at IS NOT NULL)`
	err = q.Pool().QueryRow(ctx, stmt, q.types).Scan(&n, &next)
	return n, next, Wrap("count what is due", err)
}

// PassTime moves the time of every waiting task back, as if that much time had passed. The facts
// keep the times for which tasks were asked.
func (q *TaskQueue) PassTime(ctx context.Context, d time.Duration) error {
	const stmt = `
UPDATE queues.open_task o
   SET scheduled_at = greatest(o.scheduled_at - make_interval(secs => $1), clock_timestamp()), arrived = pg_current_xact_id()
 WHERE o.leased_until IS NULL AND o.scheduled_at > clock_timestamp()`
	_, err := q.Pool().Exec(ctx, stmt, d.Seconds())
	return Wrap("let time pass", err)
}
