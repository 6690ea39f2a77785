package workers

import (
	"cmp"
	"context"
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
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/tasks"
	"github.com/daybook-dev/daybook/workers/internal/tracing"
	"github.com/daybook-dev/daybook/workflows"
)

// TasksOptions say how a worker of tasks works. Client, Pool and Registry are required; the zero
// value of each other field is its default, as in AccountingOptions.
type TasksOptions struct {
	// Client is connected to Temporal; it stays the caller's to close.
	Client client.Client
	// Pool is connected to the database, best as worker_service_user: all that the worker needs are
	// functions that this role is granted (docs/tasks.md). It stays the caller's to close. A function
	// of the database takes one connection while it runs.
	Pool *pgxpool.Pool
	// DirectPool is that of AccountingOptions.
	DirectPool *pgxpool.Pool
	// SchemaPool is connected as a role that may read which schema the database has, so that the
	// worker never works another one; nil: Pool. When that may not, as worker_service_user, the
	// worker only looks whether the functions of tasks are there.
	SchemaPool *pgxpool.Pool
	// Registry holds the processors. Register all of them before NewTasks.
	Registry *tasks.Registry
	// Settings are the settings of the queue.
	Settings Settings
	// MaxConcurrentActivities and MaxConcurrentWorkflowTasks are those of AccountingOptions.
	MaxConcurrentActivities    int
	MaxConcurrentWorkflowTasks int
	// PickInterval is that of AccountingOptions.
	PickInterval time.Duration
	// TaskQueue is the Temporal task queue; default "task-queue".
	TaskQueue string
	// Fleet is that of AccountingOptions: tasks go by the types that a worker has processors for.
	Fleet string
	// Name names this worker in leases; default host and process id.
	Name string
	// Metrics are told of what the worker does; nil: nothing is measured.
	Metrics *Metrics
	// NotifyEvents is that of AccountingOptions.
	NotifyEvents bool
	// Log is where the worker logs; default slog.Default().
	Log *slog.Logger
}

// NewTasks makes a worker of the queue of tasks. It checks the options and registers the workflow
// and the activities; nothing runs before Run. Close the worker after Run. An error names the
// option that cannot work, and what to do.
//
// The worker leases only tasks of types that it has a processor for. Tasks of other types wait, and
// show in queues.stuck_tasks.
func NewTasks(o TasksOptions) (*Worker, error) {
	if o.Client == nil || o.Pool == nil || o.Registry == nil {
		return nil, errors.New("workers: Client, Pool and Registry are required")
	}
	if err := checkShared(o.MaxConcurrentActivities, o.MaxConcurrentWorkflowTasks, o.PickInterval, o.Fleet,
		o.Name); err != nil {
		return nil, err
	}
	settings, err := orEnvironment(o.Settings, activities.TasksSettingsFromEnv)
	if err != nil {
		return nil, err
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	hub := &hub{}
	sink, err := observers(o.Log, hub, o.Metrics.sink())
	if err != nil {
		return nil, err
	}
	o.Registry.Started()
	queue := store.NewTaskQueue(o.Pool, o.Registry.Names()...)
	queue.ListenBy(o.DirectPool)
	queue.GuardSchema(o.verify, o.Log)
	w := &Worker{
		pool: o.Pool, log: o.Log, hub: hub.notifying(o.NotifyEvents, o.Pool, o.Log), verify: o.verify,
		schemaPool: o.SchemaPool, fatal: make(chan error, 1),
	}
	w.engine = engine.NewTasks(queue, o.Registry,
		engine.Options{PickInterval: o.PickInterval, Events: sink, Tracer: tracing.Engine(), Log: o.Log})
	w.tend = func(ctx context.Context) error {
		noteTypes(ctx, queue, o.Name, typesOfTasks(o.Registry), o.Log)
		return nil
	}
	w.connect(o.Client, cmp.Or(o.TaskQueue, models.TaskQueueOf(workflows.TasksTaskQueue, o.Fleet)),
		o.MaxConcurrentActivities, o.MaxConcurrentWorkflowTasks, o.Name, o.Metrics, func(sdk worker.Worker) {
			sdk.RegisterWorkflowWithOptions(workflows.Tasks, workflow.RegisterOptions{Name: workflows.TasksWorkflow})
			sdk.RegisterActivity(w.activities(o.Client, settings, o.Name))
		})
	return w, nil
}

// verify says whether the schema is the one that this program was made for, as far as the worker
// may see, and whether the worker's role may call what it needs, and whether the sessions can be
// used.
func (o TasksOptions) verify(ctx context.Context) error {
	if err := store.VerifyWorker(ctx, o.Pool, o.DirectPool); err != nil {
		return err
	}
	pool := cmp.Or(o.SchemaPool, o.Pool)
	err := migrations.Verify(ctx, pool)
	if err != nil && (pool != o.Pool || !store.IsForbidden(err)) {
		return err
	}
	return store.VerifyTasks(ctx, o.Pool)
}
