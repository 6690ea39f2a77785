package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

const (
	// org is the shop's organization in Daybook.
	org = "shop"
	// fleet is the fleet of the shop's workers, and jobQueue the named queue of its jobs: no other
	// worker works them, whatever types it has handlers for.
	fleet    = "shop"
	jobQueue = "shop"
)

// config is what the shop is told by.
type config struct {
	// pool is the database with both Daybook's tables and the shop's; it stays the caller's to close.
	pool *pgxpool.Pool
	// webhookURL is who is told of orders.
	webhookURL string
	// environment configures Daybook's own job types; nil: the variables of the process. Addresses
	// that are not public may be told only if DAYBOOK_WEBHOOK_ALLOW_NETWORKS says so.
	environment map[string]string
	log         *slog.Logger
}

// shop takes orders and works what follows from them.
type shop struct {
	config
	db       *gorm.DB
	registry *jobs.Registry
	builtin  *handlers.Builtin
}

//go:embed schema.sql
var schema string

// open makes the shop's tables and registers its handlers. Close it.
func open(ctx context.Context, c config) (*shop, error) {
	if _, err := c.pool.Exec(ctx, schema); err != nil {
		return nil, fmt.Errorf("make the shop's tables: %w", err)
	}
	if _, err := queue.SetQueue(ctx, c.pool, queue.NamedQueue{Name: jobQueue, Fleet: fleet, Owner: "shop"}); err != nil {
		return nil, fmt.Errorf("make the shop's queue: %w", err)
	}
	// On record, so that no worker without the hook posts the shop's invoices: `daybook worker`, for
	// one.
	if _, err := queue.SetHooks(ctx, c.pool, org, []string{bookedHook}); err != nil {
		return nil, fmt.Errorf("name the shop's hook: %w", err)
	}
	// GORM on the pool that Daybook uses as well.
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: stdlib.OpenDBFromPool(c.pool)}),
		&gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, err
	}
	s := &shop{config: c, db: db, registry: jobs.NewRegistry()}
	jobs.Register(s.registry, jobs.Policy{Owner: "shop", MaxAttempts: 5}, s.writeReceipt)
	// Daybook's own job types; the shop uses one of them, the webhook.
	s.builtin, err = handlers.Register(s.registry,
		handlers.Config{Pool: c.pool, Owner: "shop", Environment: c.environment})
	if err != nil {
		return nil, errors.Join(err, s.closeDB())
	}
	return s, nil
}

// close gives back what open took.
func (s *shop) close() error { return errors.Join(s.builtin.Close(), s.closeDB()) }

func (s *shop) closeDB() error {
	db, err := s.db.DB()
	if err != nil {
		return err
	}
	return db.Close()
}

// run embeds both workers, one of bookings and one of background jobs, until ctx ends.
func (s *shop) run(ctx context.Context, temporal client.Client) error {
	accounting, err := workers.NewAccounting(workers.AccountingOptions{
		Client: temporal, Pool: s.pool, Hooks: s.hooks(),
		Fleet: fleet, Log: s.log,
	})
	if err != nil {
		return err
	}
	defer accounting.Close()
	background, err := workers.NewJobs(workers.JobsOptions{
		Client: temporal, Pool: s.pool, Registry: s.registry,
		Fleet: fleet, Log: s.log,
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
	group.Go(func() error { return accounting.Run(ctx) })
	group.Go(func() error { return background.Run(ctx) })
	return group.Wait()
}

// startWorkflows starts the two workflows that run for ever, unless they run already.
func startWorkflows(ctx context.Context, temporal client.Client) error {
	for kind, workflow := range map[string]string{
		workflows.AccountingTaskQueue: workflows.AccountingWorkflow,
		workflows.JobsTaskQueue:       workflows.JobsWorkflow,
	} {
		taskQueue := models.TaskQueueOf(kind, fleet)
		about := workflows.Describe(workflow) // for the Temporal UI
		_, err := temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: models.WorkflowIDOf(taskQueue), TaskQueue: taskQueue, StaticSummary: about.Summary,
			StaticDetails:            about.Details,
			WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		}, workflow, workflows.Input{})
		if err != nil {
			return fmt.Errorf("start %s: %w", workflow, err)
		}
	}
	return nil
}
