package start

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/tasks"
	"github.com/daybook-dev/daybook/workers"
)

// tasksConns is how many connections the worker of tasks has, if DAYBOOK_TASKS_DATABASE_URL gives
// it some of its own: 8 for functions that tasks name, the others for leases and completions.
const tasksConns = 20

// tasksWorker is the worker of the queue of tasks, with the built-in types that the environment
// configures.
func tasksWorker(a *cli.App, options workers.AccountingOptions) (w *workers.Worker, release func() error, err error) {
	pool, closePool, err := tasksPool(a, options.Pool)
	if err != nil {
		return nil, nil, err
	}
	registry := tasks.NewRegistry()
	builtin, err := handlers.RegisterTasks(registry, handlers.Config{})
	if err != nil {
		closePool()
		return nil, nil, cli.Usagef("%v", err)
	}
	release = func() error {
		defer closePool()
		return builtin.Close()
	}
	if len(builtin.Missing) > 0 {
		a.Log.Info("some types of tasks have no processor here: their tasks wait for a worker that has one", "types",
			builtin.Missing)
	}
	w, err = workers.NewTasks(workers.TasksOptions{
		Client: options.Client, Pool: pool, DirectPool: options.DirectPool, SchemaPool: options.Pool,
		Registry: registry, Name: options.Name,
		Log: options.Log, Metrics: options.Metrics,
		MaxConcurrentActivities:    options.MaxConcurrentActivities,
		MaxConcurrentWorkflowTasks: options.MaxConcurrentWorkflowTasks, PickInterval: options.PickInterval,
		NotifyEvents: options.NotifyEvents, Fleet: a.Environment.Fleet,
	})
	return w, release, err
}

// tasksVerifyLimit bounds the question whether the address of tasks is right. The worker itself
// waits for a database that does not answer.
const tasksVerifyLimit = 5 * time.Second

// tasksPool returns the pool of the worker of tasks: one of its own, if the environment names it,
// or else the worker's. A wrong user, password or database is told at once.
func tasksPool(a *cli.App, worker *pgxpool.Pool) (pool *pgxpool.Pool, release func(), err error) {
	if a.Environment.TasksDatabaseURL == "" {
		return worker, func() {}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), tasksVerifyLimit)
	defer cancel()
	pool, err = cli.PoolOf(ctx, a.Environment.TasksDatabaseURL, tasksConns)
	if errors.Is(err, cli.ErrBadDatabaseURL) {
		return nil, nil, cli.Usagef("DAYBOOK_TASKS_DATABASE_URL is not an address of a database: it is like " +
			"postgres://worker_service_user:password@host:5432/database")
	}
	if err != nil {
		return nil, nil, err
	}
	if err := store.VerifyTasks(ctx, pool); store.RefusesConnection(err) || store.IsForbidden(err) {
		cli.ClosePool(pool)
		return nil, nil, fmt.Errorf("DAYBOOK_TASKS_DATABASE_URL: %w", err)
	}
	return pool, func() { cli.ClosePool(pool) }, nil
}
