package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/tasks"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

const topicTasks = "Tasks"

func init() {
	register(scenario{
		order: 45, name: "tasks", topic: topicTasks, takes: "2 minutes",
		about: "20,000 tasks of the type `db_function` wait, each of which calls a function that writes a row; " +
			"an embedded worker works them with default settings, and with shared transactions.",
		run: runTasks,
	})
}

func runTasks(ctx context.Context, b *bench) ([]report.Row, error) {
	n, runs := b.sized(20_000, 500), b.repeated(3)
	drain := func(p tasks.Policy) measurement {
		return func(ctx context.Context) (rate float64, err error) {
			err = b.withTaskDatabase(ctx, func(d *database) error {
				rate, err = b.taskRate(ctx, d, p, n)
				return err
			})
			return rate, err
		}
	}
	rates, err := alternate(ctx, runs, drain(tasks.Policy{}), drain(tasks.Policy{SharedTransaction: true}))
	if err != nil {
		return nil, err
	}
	return []report.Row{{
		Name: "calls of a function of the database", Daybook: median(rates[0]), Unit: "tasks/s", Runs: runs,
		Note: fmt.Sprintf("%s tasks, each leased, called and completed; the call and the completion are one transaction.",
			report.Figure(float64(n))),
	}, {
		Name: "calls in shared transactions", Daybook: median(rates[1]), Unit: "tasks/s", Runs: runs,
		Note: "The same tasks, of which up to 32 share a transaction (tasks.Policy.SharedTransaction).",
	}}, nil
}

// createTaskFunction makes the function that the tasks call, and what it writes to. done counts its
// calls at the cost of one, also under an old snapshot.
const createTaskFunction = `
CREATE SCHEMA effects;
CREATE SEQUENCE effects.done;
CREATE TABLE effects.note (n bigint NOT NULL);
CREATE FUNCTION effects.note(_payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO effects.note VALUES ((_payload ->> 'n')::bigint);
    PERFORM nextval('effects.done');
    RETURN '{"status": "succeeded"}';
END
$$`

// withTaskDatabase runs f with a database that has the function.
func (b *bench) withTaskDatabase(ctx context.Context, f func(*database) error) error {
	return b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		if _, err := d.pool.Exec(ctx, createTaskFunction); err != nil {
			return fmt.Errorf("create the function of the tasks: %w", err)
		}
		return f(d)
	})
}

// fillTasks enqueues n tasks more.
func fillTasks(ctx context.Context, pool *pgxpool.Pool, n int) error {
	const stmt = `
SELECT count(*) FROM queues.enqueue_tasks(array_fill('db_function'::text, ARRAY[$1::int]),
    ARRAY(SELECT jsonb_build_object('task_type', 'db_function', 'db_function', 'effects.note', 'n', i) FROM generate_series(1, $1::int) AS i))`
	for n > 0 {
		some := min(n, fillBatch)
		if _, err := pool.Exec(ctx, stmt, some); err != nil {
			return fmt.Errorf("enqueue tasks: %w", err)
		}
		n -= some
	}
	return nil
}

// taskRate is tasks/s of n tasks more.
func (b *bench) taskRate(ctx context.Context, d *database, p tasks.Policy, n int) (rate float64, err error) {
	var before int
	if err := d.pool.QueryRow(ctx, `SELECT count(*) FROM effects.note`).Scan(&before); err != nil {
		return 0, err
	}
	if err := fillTasks(ctx, d.pool, n); err != nil {
		return 0, err
	}
	if err := d.quiesce(ctx); err != nil {
		return 0, err
	}
	err = b.withTasks(ctx, d, p, func(ctx context.Context, start func() error) error {
		began := time.Now()
		if err := start(); err != nil {
			return err
		}
		err := awaitTasks(ctx, d.pool, before+n)
		rate = perSecond(n, time.Since(began))
		return err
	})
	if err != nil {
		return 0, err
	}
	how := "a transaction a task"
	if p.SharedTransaction {
		how = "shared transactions"
	}
	b.say("  Daybook, %s: %s tasks/s", how, report.Figure(rate))
	return rate, verifyTasks(ctx, d.pool, before+n)
}

// withTasks runs f while an embedded worker works tasks. start starts the workflow, which runs
// until f returns.
func (b *bench) withTasks(ctx context.Context, d *database, p tasks.Policy,
	f func(ctx context.Context, start func() error) error,
) error {
	registry := tasks.NewRegistry()
	registry.SetDBFunctionPolicy(p)
	return b.withEmbedded(ctx, d, embedded{
		workflow: workflows.TasksWorkflow, taskQueue: workflows.TasksTaskQueue,
		make: func(pool *pgxpool.Pool, name string) (*workers.Worker, error) {
			return workers.NewTasks(workers.TasksOptions{
				Client: b.temporal, Pool: pool, Registry: registry, Name: name, Log: slog.New(slog.DiscardHandler),
				MaxConcurrentActivities: 6,
			})
		},
	}, f)
}

// awaitTasks returns when the function has been called n times and no task is open.
func awaitTasks(ctx context.Context, pool *pgxpool.Pool, n int) error {
	for {
		var done bool
		err := pool.QueryRow(ctx,
			`SELECT (SELECT is_called AND last_value >= $1 FROM effects.done) AND NOT EXISTS (SELECT FROM queues.open_task)`,
			n).Scan(&done)
		if err != nil || done {
			return err
		}
		pause(ctx, 10*time.Millisecond)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// verifyTasks checks that n calls have left a row each, that every task is completed and was
// leased, and that nothing went wrong.
func verifyTasks(ctx context.Context, pool *pgxpool.Pool, n int) error {
	var rows, open, unleased, failed int
	err := pool.QueryRow(ctx, `
SELECT (SELECT count(*) FROM effects.note), (SELECT count(*) FROM queues.open_task),
       (SELECT count(*) FROM queues.task_completed c WHERE NOT EXISTS (SELECT FROM queues.task_lease l WHERE l.task_id = c.task_id)),
       (SELECT count(*) FROM queues.error)`).Scan(&rows, &open, &unleased, &failed)
	if err == nil && (rows != n || open+unleased+failed > 0) {
		err = errors.New("tasks were not worked exactly once")
	}
	if err != nil {
		return fmt.Errorf("%w: %d rows of %d, %d open, %d without a lease, %d errors", err, rows, n, open, unleased, failed)
	}
	return nil
}
