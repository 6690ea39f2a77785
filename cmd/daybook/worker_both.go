package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/workers"
)

// workBoth runs a worker of each queue until ctx ends, or one of them does.
func (a *app) workBoth(ctx context.Context, pool *pgxpool.Pool, options workers.AccountingOptions) (err error) {
	registry, builtin, err := a.builtinJobs(pool)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, builtin.Close()) }()
	if len(builtin.Missing) > 0 {
		a.log.Info("some built-in job types are not configured: their jobs wait for a worker that has them, and become dead letters (HANDLER_MISSING) after five minutes", "types", builtin.Missing)
	}
	accounting, err := workers.NewAccounting(options)
	if err != nil {
		return fmt.Errorf("set the worker up: %w", err)
	}
	defer accounting.Close()
	background, err := workers.NewJobs(workers.JobsOptions{
		Client: options.Client, Pool: pool, Registry: registry, Name: options.Name, Log: options.Log,
		MaxConcurrentActivities: options.MaxConcurrentActivities, MaxConcurrentWorkflowTasks: options.MaxConcurrentWorkflowTasks,
	})
	if err != nil {
		return fmt.Errorf("set the worker of background jobs up: %w", err)
	}
	defer background.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	for _, w := range []*workers.Worker{accounting, background} {
		go func() {
			defer cancel()
			ended <- w.Run(ctx)
		}()
	}
	return errors.Join(<-ended, <-ended)
}
