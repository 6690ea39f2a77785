package workers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/workflows"
)

// JobOptions say how a worker of background jobs works. Client, Pool and Registry are required; the zero value of each other
// field is its default, as in Options.
type JobOptions struct {
	// Client is connected to Temporal; it stays the caller's to close.
	Client client.Client
	// Pool is connected to the database; it stays the caller's to close. A handler that asks for the transaction that
	// completes its job takes one connection while it has it.
	Pool *pgxpool.Pool
	// Registry holds the handlers.
	Registry *jobs.Registry
	// Settings is what the queue works by; zero: the environment (JobSettingsFromEnv).
	Settings Settings
	// MaxConcurrentActivities and MaxConcurrentWorkflowTasks are those of Options.
	MaxConcurrentActivities    int
	MaxConcurrentWorkflowTasks int
	// TaskQueue is the Temporal task queue; default "job-queue".
	TaskQueue string
	// Name names this worker in leases and attempts; default host and process id.
	Name string
	// Log is where the worker logs; default slog.Default().
	Log *slog.Logger
}

// JobSettingsFromEnv reads JOB_QUEUE_BATCH_SIZE and JOB_QUEUE_POLL_INTERVAL_SECONDS.
func JobSettingsFromEnv() (Settings, error) { return activities.JobSettingsFromEnv() }

// NewJobs checks the options and registers everything; nothing runs yet. Close the worker after Run.
//
// When it starts, dead letters come back that failed because no worker had a handler for their type, if this one has.
func NewJobs(o JobOptions) (*Worker, error) {
	if o.Client == nil || o.Pool == nil || o.Registry == nil {
		return nil, errors.New("workers: Client, Pool and Registry are required")
	}
	if o.MaxConcurrentActivities == 1 {
		return nil, errors.New("workers: MaxConcurrentActivities must be at least 2: one activity waits for work while another works")
	}
	if o.Settings == (Settings{}) {
		s, err := JobSettingsFromEnv()
		if err != nil {
			return nil, err
		}
		o.Settings = s
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := store.NewQueue(o.Pool, store.Jobs)
	s.GuardSchema(verifySchema(o.Pool), o.Log)
	w := &Worker{pool: o.Pool, log: o.Log, engine: engine.NewJobs(s, o.Registry, engine.Options{Log: o.Log}), fatal: make(chan error, 1)}
	// A worker that does not know a type yet, or no longer, makes dead letters at any time.
	w.tend = func(ctx context.Context) error {
		if err := o.Registry.Started(); err != nil {
			return err
		}
		n, err := s.ReturnMissing(ctx, o.Registry.Names())
		if n > 0 {
			o.Log.Info("dead letters are back, because there is a handler for their type now", "jobs", n)
		}
		return err
	}
	w.connect(o.Client, cmp.Or(o.TaskQueue, workflows.JobsTaskQueue), o.MaxConcurrentActivities, o.MaxConcurrentWorkflowTasks, o.Name)
	w.worker.RegisterWorkflowWithOptions(workflows.Jobs, workflow.RegisterOptions{Name: workflows.JobsWorkflow})
	w.worker.RegisterActivity(activities.NewAccounting(o.Client, w.engine, o.Settings, o.Name))
	w.worker.RegisterWorkflowWithOptions(workflows.ScheduledJob, workflow.RegisterOptions{Name: workflows.ScheduledJobWorkflow})
	w.worker.RegisterActivity(activities.NewSchedules(o.Pool))
	return w, nil
}
