package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/internal/httpapi"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
)

// builtinJobs registers the built-in job types that the environment configures. Close what it returns.
func (a *app) builtinJobs(pool *pgxpool.Pool) (*jobs.Registry, *handlers.Builtin, error) {
	registry := jobs.NewRegistry()
	builtin, err := handlers.Register(registry, handlers.Config{Pool: pool})
	if err != nil {
		return nil, nil, usagef("%v", err)
	}
	a.log.Debug("job types", "worked", builtin.Types)
	return registry, builtin, nil
}

// builtinPayloads are the payloads of the built-in types.
var builtinPayloads = []queue.Payload{handlers.Webhook{}, handlers.Email{}, handlers.Report{}, handlers.Cleanup{}, handlers.DBFunction{}}

// checkBuiltin checks the payload of a built-in type, and warns of every other type: only its own worker knows it.
func (a *app) checkBuiltin(jobType string, raw json.RawMessage) error {
	if jobType == handlers.WebhookPolicy().Aliases[0] {
		jobType = handlers.Webhook{}.JobType()
	}
	for _, p := range builtinPayloads {
		if p.JobType() != jobType {
			continue
		}
		schema, err := payload.SchemaFor(reflect.TypeOf(p))
		if err != nil {
			return err
		}
		return schema.Validate(raw)
	}
	a.say("Note: %s is none of Daybook's own types. Its jobs wait for a worker of yours that has a handler for it; when no worker has had one for five minutes, those that are due are dead letters (HANDLER_MISSING), until one starts.", jobType)
	return nil
}

// dueJobs lets the HTTP API work due jobs.
type dueJobs struct{ inner *workers.DueJobs }

// RunDue implements httpapi.Runner.
func (d dueJobs) RunDue(ctx context.Context, limit int) (httpapi.Report, error) {
	r, err := d.inner.Run(ctx, limit)
	return httpapi.Report{
		Processed: r.Completed + r.Retried + r.Rescheduled + r.Failed + r.Cancelled,
		Completed: r.Completed, Retried: r.Retried, Rescheduled: r.Rescheduled, Failed: r.Failed, Cancelled: r.Cancelled, Running: r.Running,
	}, err
}

// workBoth runs a worker of each queue until ctx ends, or one of them does.
func (a *app) workBoth(ctx context.Context, pool *pgxpool.Pool, options workers.Options) (err error) {
	registry, builtin, err := a.builtinJobs(pool)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, builtin.Close()) }()
	if len(builtin.Missing) > 0 {
		a.log.Info("some built-in job types are not configured: their jobs wait for a worker that has them, and become dead letters (HANDLER_MISSING) after five minutes", "types", builtin.Missing)
	}
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
