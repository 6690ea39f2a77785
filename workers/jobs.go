package workers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers/internal/tracing"
	"github.com/daybook-dev/daybook/workflows"
)

// JobsOptions say how a worker of background jobs works. Client, Pool and Registry are required;
// the zero value of each other field is its default, as in AccountingOptions.
type JobsOptions struct {
	// Client is connected to Temporal; it stays the caller's to close.
	Client client.Client
	// Pool is connected to the database; it stays the caller's to close. A handler that asks for the
	// transaction that completes its job takes one connection while it has it.
	Pool *pgxpool.Pool
	// DirectPool is that of AccountingOptions.
	DirectPool *pgxpool.Pool
	// Registry holds the handlers.
	Registry *jobs.Registry
	// Settings are the settings of the queue.
	Settings Settings
	// MaxConcurrentActivities and MaxConcurrentWorkflowTasks are those of AccountingOptions.
	MaxConcurrentActivities    int
	MaxConcurrentWorkflowTasks int
	// PickInterval is that of AccountingOptions.
	PickInterval time.Duration
	// Fleet is the fleet that the worker belongs to: it works the named queues of that fleet and
	// nothing else, on a task queue and a workflow of the fleet's own. Empty: the fleet without a
	// name, which works jobs that are in no named queue, and queues that name no fleet.
	Fleet string
	// TaskQueue is the Temporal task queue; default "job-queue", or that of the fleet, such as
	// "job-queue-shop".
	TaskQueue string
	// Name names this worker in leases and attempts; default host and process id.
	Name string
	// Metrics are told of what the worker does; nil: nothing is measured.
	Metrics *Metrics
	// NotifyEvents is that of AccountingOptions.
	NotifyEvents bool
	// Log is where the worker logs; default slog.Default().
	Log *slog.Logger
}

// NewJobs makes a worker of the queue of background jobs. It checks the options and registers the
// workflows and the activities; nothing runs before Run. Close the worker after Run. An error names
// the option that cannot work, and what to do. Handlers may be registered until Run, which returns
// jobs.ErrNoHandlers when there is none.
//
// The worker leases only jobs of types that it has a handler for. A job for whose type no worker
// has a handler becomes a dead letter (HANDLER_MISSING) after five minutes, without a counted
// attempt. When a worker with the handler starts, and every minute after that, such dead letters
// become pending again.
func NewJobs(o JobsOptions) (*Worker, error) {
	if o.Client == nil || o.Pool == nil || o.Registry == nil {
		return nil, errors.New("workers: Client, Pool and Registry are required")
	}
	if err := checkShared(o.MaxConcurrentActivities, o.MaxConcurrentWorkflowTasks, o.PickInterval, o.Fleet,
		o.Name); err != nil {
		return nil, err
	}
	settings, err := orEnvironment(o.Settings, activities.JobsSettingsFromEnv)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	hub := &hub{}
	sink, err := observers(o.Log, hub, o.Metrics.sink())
	if err != nil {
		return nil, err
	}
	s := store.NewQueue(o.Pool, store.JobsOf(o.Fleet))
	s.ListenBy(o.DirectPool)
	verify := verifySchema(o.Pool, o.DirectPool)
	s.GuardSchema(verify, o.Log)
	w := &Worker{
		pool: o.Pool, log: o.Log, hub: hub.notifying(o.NotifyEvents, o.Pool, o.Log), verify: verify,
		fatal: make(chan error, 1),
	}
	w.engine = engine.NewJobs(s, o.Registry,
		engine.Options{
			Worker: processName(o.Name), PickInterval: o.PickInterval, Events: sink,
			Tracer: tracing.Engine(), Log: o.Log,
		})
	id, noted := rand.Text(), false
	w.tend = func(ctx context.Context) error {
		if err := o.Registry.Started(); err != nil {
			return err
		}
		if err := s.Join(ctx); err != nil {
			return err
		}
		noteTypes(ctx, s, o.Name, typesOf(o.Registry), o.Log)
		if !noted {
			if err := s.NoteKeyLimits(ctx, limitsOf(o.Registry)); err != nil {
				return err
			}
		}
		me := store.JobWorker{
			ID: id, Name: processName(o.Name), Types: o.Registry.Names(), Versions: o.Registry.Versions(),
			Unshared: w.engine.Unshared(),
		}
		noted = true
		return tendTypes(ctx, s, me, o.Log)
	}
	w.warm = s.Warm
	w.stopped = func(ctx context.Context) error {
		if !noted {
			return nil
		}
		return s.NoteJobWorkerStopped(ctx, id)
	}
	w.connect(o.Client, cmp.Or(o.TaskQueue, models.TaskQueueOf(workflows.JobsTaskQueue, o.Fleet)),
		o.MaxConcurrentActivities, o.MaxConcurrentWorkflowTasks, o.Name, o.Metrics, func(sdk worker.Worker) {
			sdk.RegisterWorkflowWithOptions(workflows.Jobs, workflow.RegisterOptions{Name: workflows.JobsWorkflow})
			sdk.RegisterActivity(w.activities(o.Client, settings, o.Name))
			sdk.RegisterWorkflowWithOptions(workflows.ScheduledJob,
				workflow.RegisterOptions{Name: workflows.ScheduledJobWorkflow})
			sdk.RegisterActivity(activities.NewSchedules(o.Pool))
		})
	return w, nil
}

// tendTypes puts on record which types a worker has handlers for, has the jobs of its fleet's
// queues gathered, makes the dead letters due again that had no handler, and makes dead letters of
// jobs whose type no worker has a handler for.
func tendTypes(ctx context.Context, s *store.Store, me store.JobWorker, log *slog.Logger) error {
	n, err := s.Tend(ctx, me)
	if n > 0 {
		log.Info("dead letters are back, because there is a handler for their type now", "jobs", n)
	}
	if err != nil {
		return err
	}
	failed, err := s.FailMissing(ctx, me.ID, store.HandlerMissingAfter)
	for jobType, n := range failed {
		log.Error("no worker has a handler for a type of job: its jobs are dead letters until one has",
			"type", jobType, "jobs", n, "code", models.CodeHandlerMissing)
	}
	return err
}
