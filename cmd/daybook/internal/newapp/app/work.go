package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// work works both queues until ctx ends: it posts orders and runs the handlers of jobs.
func work(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	options, err := envconfig.LoadDefaultClientOptions() // TEMPORAL_ADDRESS and the like
	if err != nil {
		return err
	}
	options.Logger = sdklog.NewStructuredLogger(log)
	temporal, err := client.DialContext(ctx, options)
	if err != nil {
		return err
	}
	defer temporal.Close()
	orders, err := sources()
	if err != nil {
		return err
	}
	posting, err := workers.NewAccounting(workers.AccountingOptions{
		Client: temporal, Pool: pool, Sources: orders, Log: log,
	})
	if err != nil {
		return err
	}
	defer posting.Close()
	background, err := workers.NewJobs(workers.JobsOptions{
		Client: temporal, Pool: pool, Registry: registry(pool), Log: log,
	})
	if err != nil {
		return err
	}
	defer background.Close()
	if err := startWorkflows(ctx, temporal); err != nil {
		return err
	}
	// If one of them ends, so does the other.
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return posting.Run(ctx) })
	group.Go(func() error { return background.Run(ctx) })
	return group.Wait()
}

// startWorkflows starts the two workflows that run for ever, unless they run already.
func startWorkflows(ctx context.Context, temporal client.Client) error {
	for taskQueue, workflow := range map[string]string{
		workflows.AccountingTaskQueue: workflows.AccountingWorkflow,
		workflows.JobsTaskQueue:       workflows.JobsWorkflow,
	} {
		_, err := temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: models.WorkflowIDOf(taskQueue), TaskQueue: taskQueue,
			WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		}, workflow, workflows.Input{})
		if err != nil {
			return fmt.Errorf("start %s: %w", workflow, err)
		}
	}
	return nil
}
