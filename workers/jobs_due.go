package workers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers/internal/tracing"
)

// DueJobs works due jobs once, without Temporal, for programs that cron starts. It may run beside
// workers: the same leases hold.
type DueJobs struct {
	pool     *pgxpool.Pool
	registry *jobs.Registry
	store    *store.Store
	engine   *engine.Engine
	log      *slog.Logger
	hub      *hub
	worker   string
	// id is by which its handlers are on record.
	id string

	// mu guards closed. stop is closed by Close; running counts the runs that have begun before it,
	// and those whose jobs go on.
	mu      sync.Mutex
	closed  bool
	stop    chan struct{}
	running sync.WaitGroup
}

// DueReport counts what became of the jobs of one run.
type DueReport struct {
	Completed, Retried, Rescheduled, Failed, Cancelled int
	// Running counts the jobs that have begun and go on in this process.
	Running int
}

// DueJobsOptions say what due jobs are worked with. Pool and Registry are required; the zero value
// of each other field is its default.
type DueJobsOptions struct {
	// Pool is connected to the database; it stays the caller's to close.
	Pool *pgxpool.Pool
	// Registry holds the handlers.
	Registry *jobs.Registry
	// Fleet is the fleet whose jobs are worked; empty: the one without a name.
	Fleet string
	// Metrics are told of what becomes of the jobs; nil: nothing is measured.
	Metrics *Metrics
	// NotifyEvents has other processes told of what the runs do (queue.ListenEvents), until Close.
	NotifyEvents bool
	// Log is where is logged what becomes of the jobs; default slog.Default().
	Log *slog.Logger
}

// NewDueJobs makes a DueJobs. It checks the options; nothing runs before Run. Call Close when it is
// no longer needed. An error names the option that cannot work, and what to do.
func NewDueJobs(o DueJobsOptions) (*DueJobs, error) {
	pool, registry, log := o.Pool, o.Registry, cmp.Or(o.Log, slog.Default())
	if pool == nil || registry == nil {
		return nil, errors.New("workers: Pool and Registry are required")
	}
	if err := checkFleet(o.Fleet); err != nil {
		return nil, err
	}
	hub := &hub{}
	sink, err := observers(log, hub, o.Metrics.sink())
	if err != nil {
		return nil, err
	}
	s := store.NewQueue(pool, store.JobsOf(o.Fleet))
	d := &DueJobs{
		pool: pool, registry: registry, store: s,
		engine: engine.NewJobs(s, registry, engine.Options{Events: sink, Tracer: tracing.Engine(), Log: log}), log: log,
		hub: hub, worker: store.ProcessName() + "/due",
		id: rand.Text(), stop: make(chan struct{}),
	}
	d.hub.notifying(o.NotifyEvents, pool, log)
	// What an earlier process held that was killed is due again soon, whenever this one is asked
	// first.
	d.engine.StartReclaiming()
	return d, nil
}

// handBack is how long Run waits, when its context has ended, until the jobs that have not begun
// are given back.
const handBack = 3 * time.Second

// Run works at most limit due jobs, once each, of the types that it has a handler for. Like a
// worker it puts these types on record, and makes dead letters pending again that had no handler.
// When ctx ends, it begins no further job, gives back those that it has not begun, and returns.
// Running jobs go on until they end, at the latest after their type's timeout, or until Close.
func (d *DueJobs) Run(ctx context.Context, limit int) (DueReport, error) {
	if d == nil || d.engine == nil {
		return DueReport{}, ErrNotMade
	}
	if !d.begin() {
		return DueReport{}, ErrClosed
	}
	defer d.running.Done()
	if err := d.registry.Started(); err != nil {
		return DueReport{}, err
	}
	if err := store.VerifySession(ctx, d.pool); err != nil {
		return DueReport{}, err
	}
	if err := d.store.Join(ctx); err != nil {
		return DueReport{}, err
	}
	// No other turn, in any process at any time, may have this name: a fence is such a name.
	fence, err := d.store.NextFence(ctx)
	if err != nil {
		return DueReport{}, err
	}
	noteTypes(ctx, d.store, d.worker, typesOf(d.registry), d.log)
	if err := d.store.NoteKeyLimits(ctx, limitsOf(d.registry)); err != nil {
		return DueReport{}, err
	}
	me := store.JobWorker{ID: d.id, Name: d.worker, Types: d.registry.Names(), Versions: d.registry.Versions()}
	if err := d.store.NoteJobWorker(ctx, me); err != nil {
		return DueReport{}, err
	}
	if n, err := d.store.ReturnMissing(ctx, me.Types); err != nil {
		return DueReport{}, err
	} else if n > 0 {
		d.log.Info("dead letters are back, because there is a handler for their type now", "jobs", n)
	}
	turn := store.Turn{ID: "/due/" + strconv.FormatInt(fence, 10), Worker: d.worker}
	if _, err := d.engine.Lease(ctx, turn, limit, d.stop); err != nil {
		return DueReport{}, err
	}
	run := &dueRun{done: make(chan struct{})}
	d.running.Go(func() {
		defer close(run.done)
		d.process(ctx, turn, limit, run)
	})
	select {
	case <-run.done:
		return run.counted(), run.err
	case <-ctx.Done():
	}
	select {
	case <-run.done:
		return run.counted(), run.err
	case <-time.After(handBack):
		return run.counted(), nil
	}
}

// begin reports whether a run may begin, which Close waits for then.
func (d *DueJobs) begin() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.running.Add(1)
	return true
}

// process works what a run has leased, and no more: its turn has no length.
func (d *DueJobs) process(ctx context.Context, turn store.Turn, limit int, run *dueRun) {
	r, err := d.engine.Process(ctx,
		engine.TurnRequest{Turn: turn, Batch: limit, Gently: true, Stop: d.stop, Progress: run.note})
	run.note(r)
	if err != nil || len(r.LeftBehind) > 0 {
		// There is no later activity that would reclaim it, or give back what another transaction had
		// locked: another lease locks, for a moment, a row that it came second for.
		err = errors.Join(err, d.release(ctx, turn))
	}
	if err != nil {
		d.log.Error("jobs of a run could not be completed; they are due again", "turn", turn.ID, "error", err)
	}
	run.err = err
}

// dueRun is one run, also after its caller has been answered.
type dueRun struct {
	done chan struct{}
	// err is read when done is closed.
	err error

	mu     sync.Mutex
	report engine.Report
}

func (r *dueRun) note(report engine.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report = report
}

func (r *dueRun) counted() DueReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.report
	ended := c.Completed + c.Retried + c.Rescheduled + c.Failed + c.Cancelled
	running := 0
	select {
	case <-r.done:
	default:
		running = max(0, c.Leased-ended-c.Released)
	}
	return DueReport{
		Completed: c.Completed, Retried: c.Retried, Rescheduled: c.Rescheduled, Failed: c.Failed, Cancelled: c.Cancelled,
		Running: running,
	}
}

// release gives back what a run that failed holds.
func (d *DueJobs) release(ctx context.Context, turn store.Turn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	_, err := d.engine.ReleaseTurn(ctx, turn)
	return err
}

// Close gives running jobs twenty seconds to end, gives the rest back, and closes its connections.
// The pool stays the caller's.
func (d *DueJobs) Close() {
	if d == nil || d.engine == nil {
		return
	}
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		close(d.stop)
	}
	d.mu.Unlock()
	d.running.Wait()
	d.engine.Close()
	d.hub.close()
}

// Subscribe is Worker.Subscribe for what these runs do; Close ends the subscription.
func (d *DueJobs) Subscribe(f queue.EventFilter) (got <-chan queue.Event, cancel func()) {
	if d == nil {
		return (*hub)(nil).subscribe(f)
	}
	return d.hub.subscribe(f)
}
