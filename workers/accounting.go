package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers/internal/tracing"
	"github.com/daybook-dev/daybook/workflows"
)

// AccountingOptions say how a worker works. Client and Pool are required; the zero value of each
// other field is its default.
type AccountingOptions struct {
	// Client is connected to Temporal; it stays the caller's to close.
	Client client.Client
	// Pool is connected to the database; it stays the caller's to close. Give it two connections for
	// each activity that runs at once. Behind a pooler in transaction mode it needs DirectPool, and
	// DefaultQueryExecMode as in docs/scaling.md.
	Pool *pgxpool.Pool
	// DirectPool is connected to the same database past a pooler that gives sessions to other clients
	// after each transaction, where Pool leads through one: the worker listens, and holds the lock by
	// which others know that it lives, on connections that are made as this pool makes them. nil:
	// Pool. It stays the caller's to close.
	DirectPool *pgxpool.Pool
	// Settings are the settings of the queue.
	Settings Settings
	// Sources are where the ledger reads documents, by name, besides daybook.documents. The worker
	// works only organizations whose source on record it reads, and whose hooks it has. Run checks
	// each (accounting.Checker), and has it read a document that is on record in a transaction that
	// is undone: an error of its program ends Run before anything is worked.
	Sources accounting.Sources
	// Hooks are called with what Daybook's ledger posts, in the transaction that posts it, for
	// instance to enqueue a webhook. Each is called for the organizations that have its name on
	// record. A hook's error undoes the posting.
	Hooks accounting.Hooks
	// Processor replaces Daybook's ledger, chunk by chunk. At most one of Processor and JobProcessor
	// may be set.
	Processor accounting.Processor
	// JobProcessor replaces Daybook's ledger, job by job.
	JobProcessor accounting.JobProcessor
	// ProcessorOptions are for Processor and JobProcessor.
	ProcessorOptions ProcessorOptions
	// MaxConcurrentActivities is how many activities run at once in this process, at least 2; default
	// 3. A lane needs one while it works; lanes beyond the activities of all workers wait for a free
	// one.
	MaxConcurrentActivities int
	// MaxConcurrentWorkflowTasks is how many workflow tasks run at once in this process; default 5.
	MaxConcurrentWorkflowTasks int
	// PickInterval is the pause between the beginnings of two picks of the process, unless a lane's
	// last one found as many jobs as it asked for; 0 to a second. What comes meanwhile is picked
	// together: a longer interval costs less processor time a job, and a job begins up to so much
	// later. While work comes faster than that the database does not notify the worker. Default 5 ms;
	// a job that comes after a silence is picked at once. docs/performance.md has the curve.
	PickInterval time.Duration
	// TaskQueue is the Temporal task queue; default "accounting-queue". Workers with other sources,
	// hooks or processors work best with a task queue and a workflow of their own: on a shared one,
	// Temporal may give a turn to a worker that cannot work it.
	TaskQueue string
	// Fleet is the fleet that the worker belongs to: its turns come by a task queue and a workflow of
	// the fleet's own, such as "accounting-queue-shop". Which documents it works is said by their
	// sources and hooks, as without a fleet.
	Fleet string
	// Name names this worker in leases and attempts; default host and process id.
	Name string
	// Owner is the team or contact responsible for accounting jobs; lists, logs and metrics show it.
	Owner string
	// Metrics are told of what the worker does; nil: nothing is measured.
	Metrics *Metrics
	// NotifyEvents has other processes told of each end of an attempt, by notifications of PostgreSQL
	// (queue.ListenEvents): at most twenty statements a second, after the commits. Off, it costs
	// nothing.
	NotifyEvents bool
	// Log is where the worker logs; default slog.Default().
	Log *slog.Logger
}

// ProcessorOptions limit the work of an application's own processor.
type ProcessorOptions struct {
	// ChunkSize is how many jobs share a transaction; default 1, and always 1 for a JobProcessor.
	ChunkSize int
	// Parallel is how many chunks a lane works side by side; default 1. A lane leases only what it
	// can start.
	Parallel int
	// Timeout is how long a chunk may take, both phases together; default 10 minutes. Timeout ×
	// ChunkSize may be 1 hour at most.
	Timeout time.Duration
	// Sources names the sources whose organizations the processor works; default daybook.
	// Organizations with hooks are left to workers of Daybook's ledger.
	Sources []string
}

// NewAccounting makes a worker of the accounting queue. It checks the options and registers the
// workflow and the activities; nothing runs before Run. Close the worker after Run. An error names
// the option that cannot work, and what to do.
func NewAccounting(o AccountingOptions) (*Worker, error) {
	if o.Client == nil || o.Pool == nil {
		return nil, errors.New("workers: Client and Pool are required")
	}
	settings, err := orEnvironment(o.Settings, activities.AccountingSettingsFromEnv)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	shared := checkShared(o.MaxConcurrentActivities, o.MaxConcurrentWorkflowTasks, o.PickInterval, o.Fleet, o.Name)
	if err := errors.Join(shared, checkText("Owner", o.Owner)); err != nil {
		return nil, err
	}
	processor, engineOptions, err := o.processor()
	if err != nil {
		return nil, err
	}
	engineOptions.RetryBase = settings.RetryBase()
	hub := &hub{}
	if engineOptions.Events, err = observers(o.Log, hub, o.Metrics.sink()); err != nil {
		return nil, err
	}
	kind, err := store.AccountingFor(o.abilities())
	if err != nil {
		return nil, fmt.Errorf("workers: %w", err)
	}
	s := store.NewQueue(o.Pool, kind)
	s.ListenBy(o.DirectPool)
	verify := verifySchema(o.Pool, o.DirectPool)
	s.GuardSchema(verify, o.Log)
	w := &Worker{
		pool: o.Pool, log: o.Log, hub: hub.notifying(o.NotifyEvents, o.Pool, o.Log),
		engine: engine.New(s, processor, engineOptions), verify: verify, fatal: make(chan error, 1),
	}
	left := &leftovers{store: s, log: o.Log, can: o.abilities()}
	w.check, w.warm = o.checkSources, s.Warm
	w.tend = func(ctx context.Context) error {
		noteTypes(ctx, s, o.Name, accountingType(o.Owner), o.Log)
		if err := left.tell(ctx); err != nil && ctx.Err() == nil {
			o.Log.Debug("what is left to other workers could not be read", "error", err)
		}
		return nil
	}
	w.connect(o.Client, cmp.Or(o.TaskQueue, models.TaskQueueOf(workflows.AccountingTaskQueue, o.Fleet)),
		o.MaxConcurrentActivities, o.MaxConcurrentWorkflowTasks, o.Name, o.Metrics, func(sdk worker.Worker) {
			sdk.RegisterWorkflowWithOptions(workflows.Accounting,
				workflow.RegisterOptions{Name: workflows.AccountingWorkflow})
			sdk.RegisterActivity(w.activities(o.Client, settings, o.Name))
		})
	return w, nil
}

// processor picks who works the jobs, and the engine's options for it.
func (o AccountingOptions) processor() (engine.Processor, engine.Options, error) {
	eo := engine.Options{
		Worker: processName(o.Name), PickInterval: o.PickInterval, Owner: o.Owner,
		Tracer: tracing.Engine(), Log: o.Log,
	}
	if o.Processor == nil && o.JobProcessor == nil {
		if po := o.ProcessorOptions; po.ChunkSize != 0 || po.Parallel != 0 || po.Timeout != 0 || len(po.Sources) > 0 {
			return nil, eo, errors.New("workers: ProcessorOptions are for a Processor or JobProcessor, and neither is set: " +
				"set one, or leave the options out")
		}
		eo.Direct = true
		return ledger.New(o.Sources).WithHooks(o.Hooks).WithTiming(o.Metrics.ruleEvaluated()), eo, o.checkNames()
	}
	if len(o.Sources)+len(o.Hooks) > 0 {
		return nil, eo, errors.New("workers: Sources and Hooks are for Daybook's ledger, which Processor and " +
			"JobProcessor replace: let them read what they work and do what follows; ProcessorOptions.Sources names the " +
			"sources whose jobs they work")
	}
	if o.Processor != nil && o.JobProcessor != nil {
		return nil, eo, errors.New("workers: set Processor or JobProcessor, not both")
	}
	po := o.ProcessorOptions
	if po.Timeout < 0 || po.Timeout > time.Hour || po.ChunkSize < 0 || po.Parallel < 0 {
		return nil, eo, fmt.Errorf("workers: ProcessorOptions are out of range: timeout %s (at most 1h), chunk size %d, "+
			"parallel %d",
			po.Timeout, po.ChunkSize, po.Parallel)
	}
	eo.Slow = true
	eo.ChunkSize = max(1, po.ChunkSize)
	eo.Parallel = max(1, po.Parallel)
	eo.ChunkTimeout = cmp.Or(po.Timeout, 10*time.Minute)
	if o.JobProcessor != nil {
		eo.ChunkSize = 1
	}
	// A chunk whose jobs all run out of time is halved down to single jobs: that must end before the
	// activity's own limit.
	if eo.ChunkTimeout*time.Duration(eo.ChunkSize) > time.Hour {
		return nil, eo, fmt.Errorf("workers: ProcessorOptions: timeout %s times chunk size %d is more than 1h: lower one "+
			"of them", eo.ChunkTimeout, eo.ChunkSize)
	}
	if o.JobProcessor != nil {
		return engine.PerJob(o.JobProcessor), eo, nil
	}
	return o.Processor, eo, nil
}
