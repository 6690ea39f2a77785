package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/workflows"
)

// DrainTimeout is how long a stopping worker may take to finish what it has begun; the rest it gives back.
const DrainTimeout = 25 * time.Second

// Settings is what the environment says about the queue.
type Settings = activities.Settings

// Processor, Commit and Job are for applications that work the queue's jobs themselves, a chunk at a time.
type (
	Processor = engine.Processor
	Commit    = engine.Commit
	Job       = engine.Job
)

// JobProcessor and JobCommit are for applications that work the queue's jobs themselves, one at a time.
type (
	JobProcessor = engine.JobProcessor
	JobCommit    = engine.JobCommit
)

// Options say how a worker works. Client and Pool are required; the zero value of each other field is its default.
type Options struct {
	// Client is connected to Temporal; it stays the caller's to close.
	Client client.Client
	// Pool is connected to the database; it stays the caller's to close. Give it two connections for each activity that
	// runs at once, and let it connect directly or through a session-pooling proxy.
	Pool *pgxpool.Pool
	// Settings is what the queue works by; zero: the environment (SettingsFromEnv).
	Settings Settings
	// Sources are where the ledger reads documents, by name, besides daybook.documents. The worker works only organizations
	// whose source on record it reads, and whose hooks it has.
	Sources Sources
	// Hooks are told what Daybook's ledger posts, in the transaction that posts it, for instance to enqueue a webhook: each is
	// told of the organizations that have its name on record. A hook's error undoes the posting.
	Hooks Hooks
	// Processor replaces Daybook's ledger, chunk by chunk. At most one of Processor and JobProcessor may be set.
	Processor Processor
	// JobProcessor replaces Daybook's ledger, job by job.
	JobProcessor JobProcessor
	// ProcessorOptions are for Processor and JobProcessor.
	ProcessorOptions ProcessorOptions
	// MaxConcurrentActivities is how many activities run at once in this process, at least 2; default 3. A lane needs one
	// while it works; lanes beyond the activities of all workers wait for a free one.
	MaxConcurrentActivities int
	// MaxConcurrentWorkflowTasks is how many workflow tasks run at once in this process; default 5.
	MaxConcurrentWorkflowTasks int
	// TaskQueue is the Temporal task queue; default "accounting-queue". Workers with other sources, hooks or processors do best
	// with a task queue, and a workflow, of their own: on a shared one, a turn may be given to a worker that cannot work it.
	TaskQueue string
	// Name names this worker in leases and attempts; default host and process id.
	Name string
	// Log is where the worker logs; default slog.Default().
	Log *slog.Logger
}

// ProcessorOptions bound the work of an application's own processor.
type ProcessorOptions struct {
	// ChunkSize is how many jobs share a transaction; default 1, and always 1 for a JobProcessor.
	ChunkSize int
	// Parallel is how many chunks a lane works side by side; default 1. A lane leases only what it can start.
	Parallel int
	// Timeout is how long a chunk may take, both phases together; default 10 minutes. Times ChunkSize it may be 1 hour at most.
	Timeout time.Duration
	// Sources names those whose organizations the processor works; default daybook. An organization with hooks is left to
	// workers of Daybook's ledger.
	Sources []string
}

// SettingsFromEnv reads ACCOUNTING_QUEUE_BATCH_SIZE, ACCOUNTING_QUEUE_POLL_INTERVAL_SECONDS and
// ACCOUNTING_QUEUE_RETRY_BASE_SECONDS.
func SettingsFromEnv() (Settings, error) { return activities.SettingsFromEnv() }

// Worker works a queue for as long as it runs.
type Worker struct {
	pool   *pgxpool.Pool
	log    *slog.Logger
	engine *engine.Engine
	worker worker.Worker
	fatal  chan error
	// tend is called when the schema is there, before the first job, and every tendEvery after that; nil: nothing is to be done.
	tend func(ctx context.Context) error
}

// New checks the options and registers everything; nothing runs yet. Close the worker after Run.
func New(o Options) (*Worker, error) {
	if o.Client == nil || o.Pool == nil {
		return nil, errors.New("workers: Client and Pool are required")
	}
	if o.Settings == (Settings{}) {
		s, err := SettingsFromEnv()
		if err != nil {
			return nil, err
		}
		o.Settings = s
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if err := errors.Join(checkConcurrency(o.MaxConcurrentActivities, o.MaxConcurrentWorkflowTasks), checkSettings(o.Settings)); err != nil {
		return nil, err
	}
	processor, engineOptions, err := o.processor()
	if err != nil {
		return nil, err
	}
	kind, err := store.AccountingFor(o.abilities())
	if err != nil {
		return nil, fmt.Errorf("workers: %w", err)
	}
	s := store.NewQueue(o.Pool, kind)
	s.GuardSchema(verifySchema(o.Pool), o.Log)
	w := &Worker{pool: o.Pool, log: o.Log, engine: engine.New(s, processor, engineOptions), fatal: make(chan error, 1)}
	left := &leftovers{store: s, log: o.Log, can: o.abilities()}
	w.tend = func(ctx context.Context) error {
		if err := left.tell(ctx); err != nil && ctx.Err() == nil {
			o.Log.Debug("what is left to other workers could not be read", "error", err)
		}
		return nil
	}
	w.connect(o.Client, cmp.Or(o.TaskQueue, workflows.AccountingTaskQueue), o.MaxConcurrentActivities, o.MaxConcurrentWorkflowTasks, o.Name)
	w.worker.RegisterWorkflowWithOptions(workflows.Accounting, workflow.RegisterOptions{Name: workflows.AccountingWorkflow})
	w.worker.RegisterActivity(activities.NewAccounting(o.Client, w.engine, o.Settings, o.Name))
	return w, nil
}

// checkConcurrency refuses what the worker, or Temporal's SDK, cannot work with; 0 is the default.
func checkConcurrency(concurrentActivities, concurrentWorkflowTasks int) error {
	switch {
	case concurrentActivities < 0 || concurrentActivities == 1:
		return fmt.Errorf("workers: MaxConcurrentActivities is %d: it must be at least 2, because one activity waits for work while another works; 0 is the default", concurrentActivities)
	case concurrentWorkflowTasks < 0 || concurrentWorkflowTasks == 1:
		return fmt.Errorf("workers: MaxConcurrentWorkflowTasks is %d: it must be at least 2, because Temporal's SDK polls two queues; 0 is the default", concurrentWorkflowTasks)
	}
	return nil
}

// checkSettings refuses settings with which no lane would work. RetryBaseSeconds of 0 is its default.
func checkSettings(s Settings) error {
	switch {
	case s.BatchSize < 1 || s.BatchSize > activities.MaxBatchSize:
		return fmt.Errorf("workers: Settings.BatchSize is %d: want 1 to %d, or no Settings at all for those of the environment", s.BatchSize, activities.MaxBatchSize)
	case s.PollIntervalSeconds < 1 || s.PollIntervalSeconds > activities.MaxPollIntervalSeconds:
		return fmt.Errorf("workers: Settings.PollIntervalSeconds is %d: want 1 to %d", s.PollIntervalSeconds, activities.MaxPollIntervalSeconds)
	case s.RetryBaseSeconds < 0:
		return fmt.Errorf("workers: Settings.RetryBaseSeconds is %d: want at least 1; 0 is the default", s.RetryBaseSeconds)
	}
	return nil
}

// stickyTimeout is how long a step of the workflow waits for the worker that did the one before, which may be gone.
const stickyTimeout = time.Second

// connect makes the worker of Temporal's SDK.
func (w *Worker) connect(c client.Client, taskQueue string, concurrentActivities, concurrentWorkflowTasks int, name string) {
	w.worker = worker.New(c, taskQueue, worker.Options{
		MaxConcurrentActivityExecutionSize:     cmp.Or(concurrentActivities, 3),
		MaxConcurrentWorkflowTaskExecutionSize: cmp.Or(concurrentWorkflowTasks, 5),
		WorkerStopTimeout:                      DrainTimeout,
		StickyScheduleToStartTimeout:           stickyTimeout,
		Interceptors:                           []interceptor.WorkerInterceptor{workflows.SignalOrder()},
		Identity:                               name,
		OnFatalError: func(err error) {
			select {
			case w.fatal <- err:
			default:
			}
		},
	})
}

// processor picks who works the jobs, and the engine's options for it.
func (o Options) processor() (engine.Processor, engine.Options, error) {
	eo := engine.Options{RetryBase: o.Settings.RetryBase(), Log: o.Log}
	if o.Processor == nil && o.JobProcessor == nil {
		if po := o.ProcessorOptions; po.ChunkSize != 0 || po.Parallel != 0 || po.Timeout != 0 || len(po.Sources) > 0 {
			return nil, eo, errors.New("workers: ProcessorOptions are for a Processor or JobProcessor, and neither is set: set one, or leave the options out")
		}
		eo.Direct = true
		eo.Apart = o.apart()
		return ledger.New(o.Sources).WithHooks(o.Hooks), eo, o.checkNames()
	}
	if o.apart() {
		return nil, eo, errors.New("workers: Sources and Hooks are for Daybook's ledger, which Processor and JobProcessor replace: let them read what they work and do what follows; ProcessorOptions.Sources names the sources whose jobs they work")
	}
	if o.Processor != nil && o.JobProcessor != nil {
		return nil, eo, errors.New("workers: set Processor or JobProcessor, not both")
	}
	po := o.ProcessorOptions
	if po.Timeout < 0 || po.Timeout > time.Hour || po.ChunkSize < 0 || po.Parallel < 0 {
		return nil, eo, fmt.Errorf("workers: ProcessorOptions are out of range: timeout %s (at most 1h), chunk size %d, parallel %d",
			po.Timeout, po.ChunkSize, po.Parallel)
	}
	eo.Slow = true
	eo.ChunkSize = max(1, po.ChunkSize)
	eo.Parallel = max(1, po.Parallel)
	eo.ChunkTimeout = cmp.Or(po.Timeout, 10*time.Minute)
	if o.JobProcessor != nil {
		eo.ChunkSize = 1
	}
	// A chunk whose jobs all run out of time is halved down to single jobs: that must end before the activity's own limit.
	if eo.ChunkTimeout*time.Duration(eo.ChunkSize) > time.Hour {
		return nil, eo, fmt.Errorf("workers: ProcessorOptions: timeout %s times chunk size %d is more than 1h: lower one of them", eo.ChunkTimeout, eo.ChunkSize)
	}
	if o.JobProcessor != nil {
		return engine.PerJob(o.JobProcessor), eo, nil
	}
	return o.Processor, eo, nil
}

// Run checks the schema, then works until ctx ends, and drains: nothing new is leased, running chunks finish, the rest is
// given back. It returns nil after a drain.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.awaitSchema(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // told to stop before there was anything to drain
		}
		return err
	}
	if w.tend != nil {
		if err := w.tend(ctx); err != nil {
			return err
		}
	}
	if err := w.worker.Start(); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	defer w.worker.Stop()
	if w.tend != nil {
		tending, stop := context.WithCancel(ctx)
		var background sync.WaitGroup
		background.Go(func() { w.keepTending(tending) })
		defer background.Wait()
		defer stop()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-w.fatal:
		return fmt.Errorf("the worker ended: %w", err)
	}
}

// tendEvery is the pause between two calls of tend.
const tendEvery = time.Minute

func (w *Worker) keepTending(ctx context.Context) {
	ticker := time.NewTicker(tendEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := w.tend(ctx); err != nil && ctx.Err() == nil {
			w.log.Warn("the queue could not be tended; trying again", "error", err, "in", tendEvery.String())
		}
	}
}

// awaitSchema refuses a schema that this program was not made for, and waits while the database is away.
func (w *Worker) awaitSchema(ctx context.Context) error {
	for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
		err := migrations.Verify(ctx, w.pool)
		if !store.IsOutage(err) && !errors.Is(err, migrations.ErrIncomplete) || ctx.Err() != nil {
			return err
		}
		w.log.Warn("the database cannot be used yet; trying again", "error", err, "in", pause.String())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// verifySchema says whether the schema is the one that this program was made for, and whole.
func verifySchema(pool *pgxpool.Pool) func(context.Context) error {
	return func(ctx context.Context) error { return migrations.Verify(ctx, pool) }
}

// Close ends what the worker keeps open. Call it after Run has returned.
func (w *Worker) Close() { w.engine.Close() }
