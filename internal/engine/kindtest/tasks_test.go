package kindtest

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

func TestTasks(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, db *pgtest.DB) queue { return tasks{t, db} })
}

// tasks is the queue of tasks, of which only facts are kept beside the open ones. Its processes
// have the rights of the worker's role.
type tasks struct {
	t  *testing.T
	db *pgtest.DB
}

// lacks implements queue. It is the one place that says which contracts of the port do not apply to
// tasks.
func (tasks) lacks() map[notion]string {
	return map[notion]string{
		organizations: "tasks are of a type alone; what is per organization elsewhere is per type",
		priorities:    "tasks are worked in the order (scheduled_at, task_id)",
		requests:      "each request is a task of its own, and nothing cancels it",
		picks:         "the lease of a task is on record before it is worked",
		attemptLog:    "the facts are the log: queues.task_lease, queues.error and queues.task_completed",
		watching: "a lease ends when its five minutes are over, by any client's next dequeue; it is renewed when " +
			"half of them are",
	}
}

func (q tasks) open() engine.Kind {
	return engine.Tasks(store.NewTaskQueue(q.db.As(q.t, "worker_service_user"), "test"))
}

func (q tasks) openOn(t *testing.T, conns int32) (engine.Kind, *pgxpool.Pool) {
	pool := sized(t, q.db.As(t, "worker_service_user"), conns)
	return engine.Tasks(store.NewTaskQueue(pool, "test")), pool
}

func (q tasks) exec(ctx context.Context, stmt string, args ...any) error {
	_, err := q.db.Pool.Exec(ctx, stmt, args...)
	return err
}

func (tasks) enqueue(ctx context.Context, db store.Querier, _, key string, _ models.Priority,
	in time.Duration,
) (id string, err error) {
	// The function does not say which task it made: it is the one with the key.
	err = db.QueryRow(ctx, `
WITH asked AS MATERIALIZED (SELECT queues.enqueue('test', jsonb_build_object('key', $1::text), clock_timestamp() + make_interval(secs => $2))::text)
SELECT currval('queues.task_task_id_seq')::text FROM asked`, key, in.Seconds()).Scan(&id)
	return id, err
}

// cancel implements queue: nothing cancels a task.
func (tasks) cancel(context.Context, store.Querier, string) error {
	return fmt.Errorf("tasks are not cancelled")
}

// filledID is made of the organization's letters, so that organizations have different numbers of
// the same length.
func (tasks) filledID(org string, priority, n int) string {
	sum := 0
	for _, c := range org {
		sum = (sum*31 + int(c)) % 900
	}
	return strconv.Itoa(((sum+100)*10+priority)*1_000_000 + n)
}

func (q tasks) fill(ctx context.Context, org string, priority, n int) error {
	return pgx.BeginFunc(ctx, q.db.Pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
WITH added AS (
    INSERT INTO queues.task (task_id, task_type, payload, scheduled_at) OVERRIDING SYSTEM VALUE
    SELECT $1::bigint + i, 'test', '{}', clock_timestamp() - interval '10 s' + i * interval '1 us' FROM generate_series(0, $2::int - 1) AS i
    RETURNING task_id, task_type, scheduled_at
)
INSERT INTO queues.open_task (task_id, task_type, scheduled_at) SELECT task_id, task_type, scheduled_at FROM added`,
			q.filledID(org, priority, 1), n)
		return err
	})
}

func (q tasks) due(ctx context.Context, id string, in time.Duration) error {
	return q.exec(ctx, `
UPDATE queues.open_task SET scheduled_at = clock_timestamp() + make_interval(secs => $2), arrived = pg_current_xact_id()
 WHERE task_id = $1 AND leased_until IS NULL`, id, in.Seconds())
}

func (q tasks) last(ctx context.Context, id string) error {
	return q.exec(ctx, `UPDATE queues.open_task SET leases = $2 WHERE task_id = $1`, id, store.TaskAttempts-1)
}

func (q tasks) expire(ctx context.Context, turn string) error {
	return q.exec(ctx, `
UPDATE queues.open_task o SET leased_until = c - interval '1 hour', last_call = c - interval '1 hour', arrived = pg_current_xact_id() FROM clock_timestamp() AS c WHERE o.turn_id = $1`, turn)
}

func (q tasks) ahead(ctx context.Context) error {
	return q.exec(ctx, `
UPDATE queues.open_task SET scheduled_at = scheduled_at + interval '1 day', leased_until = leased_until + interval '1 day', arrived = pg_current_xact_id()
 WHERE leased_until IS NOT NULL`)
}

func (tasks) lock(ctx context.Context, tx pgx.Tx, ids ...string) error {
	_, err := tx.Exec(ctx, `SELECT FROM queues.open_task WHERE task_id::text = ANY ($1) FOR UPDATE`, ids)
	return err
}

// taskState is how a task stands, in the words of the other kinds.
const taskState = `
SELECT t.task_id,
       CASE WHEN o.task_id IS NOT NULL AND o.leased_until IS NULL THEN 'pending' WHEN o.task_id IS NOT NULL THEN 'leased'
            WHEN EXISTS (SELECT FROM queues.error e WHERE e.task_id = t.task_id) THEN 'failed' ELSE 'completed' END AS state,
       coalesce(o.leases, (SELECT count(*) FROM queues.task_lease l WHERE l.task_id = t.task_id AND l.renews IS NULL)) AS attempts,
       extract(epoch FROM coalesce(o.scheduled_at, t.scheduled_at) - clock_timestamp())::float8 AS due,
       coalesce(300 - extract(epoch FROM o.leased_until - clock_timestamp()), 0)::float8 AS age, coalesce(o.turn_id, '') AS turn, coalesce(o.fence, 0) AS fence,
       coalesce(o.working, false) AS working,
       coalesce((SELECT e.error_message FROM queues.error e WHERE e.task_id = t.task_id ORDER BY e.error_id DESC LIMIT 1), '') AS error
  FROM queues.task t LEFT JOIN queues.open_task o USING (task_id)`

func (q tasks) job(ctx context.Context, id string) (job, error) {
	rows, err := q.db.Pool.Query(ctx, `SELECT state, attempts, due, age, turn, fence, working, '', error, false FROM (`+
		taskState+`) s WHERE task_id = $1`, id)
	if err != nil {
		return job{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[job])
}

func (q tasks) count(ctx context.Context, state models.JobState) (n int, err error) {
	err = q.db.Pool.QueryRow(ctx, `SELECT count(*) FROM (`+taskState+`) s WHERE state = $1`, string(state)).Scan(&n)
	return n, err
}

// attempts implements queue: there is no log.
func (tasks) attempts(context.Context, string) ([]attempt, error) { return nil, nil }
