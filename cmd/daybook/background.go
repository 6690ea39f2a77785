package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/internal/httpapi"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/workers"
)

// builtinJobs registers the built-in job types that the environment configures. Close what it returns.
func (a *app) builtinJobs(pool *pgxpool.Pool) (*jobs.Registry, *handlers.Builtin, error) {
	registry := jobs.NewRegistry()
	builtin, err := handlers.Register(registry, handlers.Config{Pool: pool})
	if err != nil {
		return nil, nil, usagef("%v", err)
	}
	a.log.Debug("job types", "worked", builtin.Types, "not configured", builtin.Missing)
	return registry, builtin, nil
}

// dueJobs lets the HTTP API work due jobs.
type dueJobs struct{ inner *workers.DueJobs }

// RunDue implements httpapi.Runner.
func (d dueJobs) RunDue(ctx context.Context, limit int) (httpapi.Report, error) {
	r, err := d.inner.Run(ctx, limit)
	return httpapi.Report{
		Processed: r.Completed + r.Retried + r.Rescheduled + r.Failed + r.Cancelled,
		Completed: r.Completed, Retried: r.Retried, Rescheduled: r.Rescheduled, Failed: r.Failed, Cancelled: r.Cancelled,
	}, err
}

// workBoth runs a worker of each queue until ctx ends, or one of them does.
func (a *app) workBoth(ctx context.Context, pool *pgxpool.Pool, options workers.Options) (err error) {
	registry, builtin, err := a.builtinJobs(pool)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, builtin.Close()) }()
	accounting, err := workers.New(options)
	if err != nil {
		return fmt.Errorf("set the worker up: %w", err)
	}
	defer accounting.Close()
	background, err := workers.NewJobs(workers.JobOptions{
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
