package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// taskStates are tasks as the tests of all kinds read queues: a task that failed is completed, with
// an error. Its leases on record do not tell the attempts of a completed task: one that was given
// back uncounted has one more.
const taskStates = `(
SELECT CASE WHEN o.task_id IS NOT NULL AND o.leased_until IS NULL THEN 'pending' WHEN o.task_id IS NOT NULL THEN 'leased'
            WHEN EXISTS (SELECT FROM queues.error e WHERE e.task_id = t.task_id) THEN 'failed' ELSE 'completed' END AS state,
       coalesce(o.leases, c.leases) AS run_count
  FROM queues.task t LEFT JOIN queues.open_task o USING (task_id) LEFT JOIN public.closed_tasks c USING (task_id)) tasks`

// noteClosedTasks keeps the attempts of completed tasks for taskStates: their rows of
// queues.open_task go.
const noteClosedTasks = `
CREATE TABLE IF NOT EXISTS public.closed_tasks AS SELECT o.task_id, o.leases FROM queues.open_task o WHERE false;
CREATE OR REPLACE FUNCTION public.note_closed_task() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO public.closed_tasks VALUES (OLD.task_id, OLD.leases);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER note_closed_task AFTER DELETE ON queues.open_task FOR EACH ROW EXECUTE FUNCTION public.note_closed_task()`

// taskLog are their attempts: each is an error or ends with the task's completion.
const taskLog = `(
SELECT 'error' AS outcome, row_number() OVER (PARTITION BY e.task_id ORDER BY e.error_id) AS attempt FROM queues.error e
UNION ALL
SELECT 'completed', 1 FROM queues.task_completed c WHERE NOT EXISTS (SELECT FROM queues.error e WHERE e.task_id = c.task_id)) log`

// startTasks returns an engine of tasks of the type named, on sessions of the worker's role.
func startTasks(b *bundle, pool *pgxpool.Pool, w work, o engine.Options) *engine.Engine {
	b.t.Helper()
	return startTasksOf(b, pool, namedTasks{w}, o, "named")
}

// startTasksOf returns an engine of tasks of the types, on sessions of the worker's role.
func startTasksOf(b *bundle, pool *pgxpool.Pool, h engine.Handlers, o engine.Options, types ...string) *engine.Engine {
	b.t.Helper()
	login := b.As(b.t, "worker_service_user").Config().ConnConfig
	config := pool.Config()
	config.ConnConfig.User, config.ConnConfig.Password = login.User, login.Password
	own, err := pgxpool.NewWithConfig(b.t.Context(), config)
	require.NoError(b.t, err)
	b.t.Cleanup(own.Close)
	return engine.NewOn(engine.Tasks(store.NewTaskQueue(own, types...)), h, o)
}

func enqueueNamedTasks(b *bundle, n int) {
	b.exec(noteClosedTasks)
	_, err := b.Pool.Exec(b.t.Context(), `
SELECT count(queues.enqueue('named', jsonb_build_object('name', 'doc-' || i), clock_timestamp() - interval '1 minute' + i * interval '1 us')::text) FROM generate_series(1, $1::int) AS i`, n)
	require.NoError(b.t, err)
}

// namedTasks works tasks of the type named, which fail for good when they fail.
type namedTasks struct{ work work }

func (namedTasks) Handling(jobType string) (engine.Handling, bool) {
	return engine.Handling{Parallel: 50, Timeout: time.Minute, Charged: true}, jobType == "named"
}

func (h namedTasks) Work(ctx context.Context, j store.Job, _ *engine.Running) engine.Attempt {
	var n named
	err := json.Unmarshal(j.Payload, &n)
	if err == nil {
		err = h.work(ctx, []string{n.Name})
	}
	if err != nil {
		return h.Failed(j, err)
	}
	return engine.Attempt{Outcome: models.OutcomeCompleted}
}

func (namedTasks) Prepare(context.Context, string, []store.Job) (engine.BulkCommit, error) {
	return func(context.Context, pgx.Tx, []store.Job) ([]engine.Attempt, error) {
		return nil, fmt.Errorf("tasks are worked one by one")
	}, nil
}

func (namedTasks) Failed(_ store.Job, err error) engine.Attempt {
	return engine.Attempt{Outcome: models.OutcomeFailed, Code: models.CodeProcessorError, Message: err.Error()}
}
