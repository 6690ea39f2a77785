package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/engine/carried"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// DrainTimeout is how long a stopping worker may take to finish what it has begun; then it gives
// the rest back.
const DrainTimeout = 25 * time.Second

// Settings are the settings of a queue. The zero value of each field is what the environment says,
// or else its default. They are for runs of the workflow whose input does not say otherwise
// (docs/operating.md).
type Settings struct {
	// BatchSize is how many jobs are leased at a time, 1 to 1000; default
	// ACCOUNTING_QUEUE_BATCH_SIZE, JOB_QUEUE_BATCH_SIZE or TASK_QUEUE_BATCH_SIZE, or else 50.
	BatchSize int
	// PollIntervalSeconds is how long to wait for work when none is due, 1 to 3600; default
	// ACCOUNTING_QUEUE_POLL_INTERVAL_SECONDS, JOB_QUEUE_POLL_INTERVAL_SECONDS or
	// TASK_QUEUE_POLL_INTERVAL_SECONDS, or else 10.
	PollIntervalSeconds int
	// RetryBaseSeconds is the first backoff of accounting jobs, each later one is three times as
	// long; default ACCOUNTING_QUEUE_RETRY_BASE_SECONDS, or else 300. Background jobs have that of
	// their type's policy, and tasks none.
	RetryBaseSeconds int
}

// Worker works a queue for as long as it runs. NewAccounting, NewJobs and NewTasks make one; the
// zero value works nothing.
type Worker struct {
	life   lifecycle
	pool   *pgxpool.Pool
	log    *slog.Logger
	engine *engine.Engine
	client client.Client
	// taskQueue is Temporal's name of the task queue.
	taskQueue string
	// make makes the SDK's worker.
	make  func() worker.Worker
	fatal chan error
	hub   *hub
	// verify says whether the schema is the one that this program was made for.
	verify func(ctx context.Context) error
	// check says, once the schema is complete, what is wrong with the program's own part; nil: it has
	// none.
	check func(ctx context.Context) error
	// tend is called once the schema is complete, before the first job, and every tendEvery after
	// that; nil: it is not called.
	tend func(ctx context.Context) error
	// warm opens sessions of the database for the first jobs; nil: the kind has none.
	warm func(ctx context.Context) error
	// stopped is called when Run ends, after the last call of tend; nil: it is not called.
	stopped func(ctx context.Context) error
	// schemaPool is connected as a role that may read which schema the database has; nil: pool.
	schemaPool *pgxpool.Pool
	introduces introduction
	// drainsSince is since when a run drains; zero: none does. interruptedBefore is how many handlers
	// were interrupted before it. Both are those of the run, and afterwards of Close, which waits for
	// it.
	drainsSince       time.Time
	interruptedBefore int
}

// activities are those of the worker's queue.
func (w *Worker) activities(c client.Client, settings activities.Settings, name string) *activities.Queue {
	q := activities.NewQueue(c, settings, processName(name))
	carried.Set(q, w.engine)
	return q
}

// checkConcurrency refuses what the worker, or Temporal's SDK, cannot work with; 0 is the default.
func checkConcurrency(concurrentActivities, concurrentWorkflowTasks int) error {
	switch {
	case concurrentActivities < 0 || concurrentActivities == 1:
		return fmt.Errorf("workers: MaxConcurrentActivities is %d: it must be at least 2, because one activity waits for "+
			"work while another works; 0 is the default", concurrentActivities)
	case concurrentWorkflowTasks < 0 || concurrentWorkflowTasks == 1:
		return fmt.Errorf("workers: MaxConcurrentWorkflowTasks is %d: it must be at least 2, because Temporal's SDK "+
			"polls two queues; 0 is the default", concurrentWorkflowTasks)
	}
	return nil
}

// maxPickInterval bounds PickInterval: beyond it a job would wait longer than many handlers take.
const maxPickInterval = time.Second

// checkPickInterval refuses an interval that is out of range; 0 is the default.
func checkPickInterval(d time.Duration) error {
	if d < 0 || d > maxPickInterval {
		return fmt.Errorf("workers: PickInterval is %s: want 0, which is the default, to %s", d, maxPickInterval)
	}
	return nil
}

// checkFleet refuses what cannot be the name of a fleet; empty is the fleet without a name.
func checkFleet(fleet string) error {
	if fleet == "" {
		return nil
	}
	if err := store.CheckFleet(fleet); err != nil {
		return fmt.Errorf("workers: Fleet is %w", err)
	}
	return nil
}

// checkText refuses a text of an option that PostgreSQL cannot hold.
func checkText(option, s string) error {
	if !store.ValidText(s) {
		return fmt.Errorf("workers: %s is %q: %w", option, s, queue.ErrInvalidText)
	}
	return nil
}

// checkShared refuses what the options that all workers have may not be.
func checkShared(concurrentActivities, concurrentWorkflowTasks int, pickInterval time.Duration, fleet,
	name string,
) error {
	return errors.Join(checkConcurrency(concurrentActivities, concurrentWorkflowTasks), checkPickInterval(pickInterval),
		checkFleet(fleet), checkText("Name", name))
}

// orEnvironment fills in what the environment says, and refuses settings with which no lane would
// work.
func orEnvironment(given Settings,
	fromEnv func(activities.Settings) (activities.Settings, error),
) (activities.Settings, error) {
	s, err := fromEnv(activities.Settings(given))
	if err != nil {
		return s, fmt.Errorf("workers: %w", err)
	}
	return s, checkSettings(s)
}

// checkSettings refuses settings with which no lane would work.
func checkSettings(s activities.Settings) error {
	switch {
	case s.BatchSize < 1 || s.BatchSize > models.MaxBatchSize:
		return fmt.Errorf("workers: Settings.BatchSize is %d: want 1 to %d, or 0 for that of the environment", s.BatchSize,
			models.MaxBatchSize)
	case s.PollIntervalSeconds < 1 || s.PollIntervalSeconds > models.MaxPollIntervalSeconds:
		return fmt.Errorf("workers: Settings.PollIntervalSeconds is %d: want 1 to %d, or 0 for that of the environment",
			s.PollIntervalSeconds, models.MaxPollIntervalSeconds)
	case s.RetryBaseSeconds < 0:
		return fmt.Errorf("workers: Settings.RetryBaseSeconds is %d: want at least 1, or 0 for that of the environment",
			s.RetryBaseSeconds)
	}
	return nil
}

// stickyTimeout is how long a workflow task waits for the worker that did the one before, which may
// have ended.
const stickyTimeout = time.Second

// Run checks the schema and works until ctx ends. Then it drains: it leases nothing more, finishes
// running chunks, and gives the rest back. It returns nil after a drain. It logs what it works when
// it starts, that it drains, and how that ended.
//
// While the database or Temporal is unavailable, also at the start, it logs and tries again, after
// a second first and every half a minute at most. For a program that may start before Temporal,
// make the client by client.NewLazyClient: client.Dial fails instead. A schema that this version
// was not made for, a namespace that does not exist and a client that is refused
// (ErrTemporalRefuses) end it at once, and so does a pool that leads through a pooler in transaction
// mode, without DirectPool (queue.ErrDirectAddressNeeded).
//
// It may be called again once it has returned. A call beside another one is ErrRunning, one after
// Close ErrClosed, and one of the zero value ErrNotMade.
func (w *Worker) Run(ctx context.Context) error {
	if w == nil || w.engine == nil {
		return ErrNotMade
	}
	ctx, end, err := w.life.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	defer w.signOff(ctx)
	if err := w.awaitDatabase(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // told to stop before there was anything to drain
		}
		return err
	}
	if w.warm != nil {
		if err := w.warm(ctx); err != nil {
			w.log.Debug("no sessions of the database were opened ahead of the first jobs", "error", err)
		}
	}
	sdk, err := w.start(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil // nothing was begun
		}
		return fmt.Errorf("start the worker: %w", err)
	}
	w.sayStarted(ctx)
	defer func() {
		sdk.Stop()
		w.sayDrained()
	}()
	if w.tend != nil {
		tending, stop := context.WithCancel(ctx)
		var background sync.WaitGroup
		background.Go(func() { w.keepTending(tending) })
		defer background.Wait()
		defer stop()
	}
	select {
	case <-ctx.Done():
		w.sayDrains(nil)
		return nil
	case err := <-w.fatal:
		w.sayDrains(err)
		return fmt.Errorf("the worker ended: %w", err)
	}
}

// signOffLimit is how long a worker that has stopped tries to say so.
const signOffLimit = 2 * time.Second

// signOff puts on record that the worker has stopped.
func (w *Worker) signOff(ctx context.Context) {
	if w.stopped == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), signOffLimit)
	defer cancel()
	if err := w.stopped(ctx); err != nil {
		w.log.Warn("the worker has stopped, which could not be put on record: it counts as one that runs for five minutes",
			"error", err)
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

// awaitDatabase refuses a schema that this program was not made for, and does for the first time
// what is done now and then, such as putting the worker on record. It waits while the database is
// unavailable to either.
func (w *Worker) awaitDatabase(ctx context.Context) error {
	for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
		err := w.verify(ctx)
		if err == nil && w.check != nil {
			err = w.check(ctx)
		}
		if err == nil && w.tend != nil {
			err = w.tendFirst(ctx)
		}
		if !store.IsTransient(err) && !errors.Is(err, migrations.ErrIncomplete) || ctx.Err() != nil {
			return err
		}
		w.log.Warn("the database cannot be used yet; trying again",
			append(w.locked(ctx, err), "error", err, "in", pause.String())...)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// slowStart is after which time a worker that waits for the database before its first job says so.
const slowStart = 5 * time.Second

// tendFirst tends the queue before the first job. It says what keeps it waiting; each statement
// gives up by itself.
func (w *Worker) tendFirst(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- w.tend(ctx) }()
	for pause := slowStart; ; pause *= 2 {
		select {
		case err := <-ended:
			return err
		case <-time.After(pause):
			w.log.Warn("the worker waits for the database before its first job", w.locked(ctx, context.DeadlineExceeded)...)
		}
	}
}

// locked is for the log: which tables are locked, and by whom, if err says that the database did
// not answer in time.
func (w *Worker) locked(ctx context.Context, err error) []any {
	if !errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	var says []string
	for _, f := range health.Locks(ctx, w.pool) {
		says = append(says, f.Says)
	}
	return []any{"locked", says}
}

// verifySchema says whether the schema is the one that this program was made for, and whole, and
// whether the sessions can be used; listening is DirectPool of the options.
func verifySchema(pool, listening *pgxpool.Pool) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := store.VerifyWorker(ctx, pool, listening); err != nil {
			return err
		}
		return migrations.Verify(ctx, pool)
	}
}

// Close closes the worker's connections, tells those that listen of the last events, and ends its
// subscriptions. A Run that has not returned ends as if its context had: Close waits until it has
// drained, for DrainTimeout at most, and is therefore not for handlers. A second call does nothing.
func (w *Worker) Close() {
	if w == nil || w.engine == nil || !w.life.close() {
		return
	}
	w.engine.Close()
	w.sayStopped()
	w.hub.close()
}
