package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// TurnRequest asks for one bounded pass over the queue.
type TurnRequest struct {
	Turn store.Turn
	// Batch is how many jobs each refill leases at most.
	Batch int
	// Wait is how long the turn waits for its first job. 0: it ends when nothing is due that could be
	// worked now: not what another transaction has locked, nor that for which there is no room.
	Wait time.Duration
	// Length is how long the turn goes on refilling once it has found a job; running calls are
	// finished after it.
	Length time.Duration
	// Linger lets a turn that has found jobs wait for more until its time is up, and hand those that
	// last over to a turn that goes on without an activity. Otherwise it ends when all is read and
	// nothing is due, and when all that it has begun has ended.
	Linger bool
	// LeftBehind names earlier turns that could not complete or give back all their jobs, because
	// another transaction held the rows locked: the turn reclaims what they hold.
	LeftBehind []string
	// Fresh says that nothing can have been leased for this turn yet; otherwise it first reclaims what
	// was. Crashed says that an earlier activity of this turn did not end by itself.
	Fresh, Crashed bool
	// Stop tells the turn to finish its running calls, give the rest back and report.
	Stop <-chan struct{}
	// Gently says that the end of the context of Process has the turn wait no more, begin nothing
	// more and give back what it has not begun; what runs ends in its own time. Otherwise it means
	// what Stop does. enough is closed then.
	Gently bool
	enough <-chan struct{}
	// Alive says whether the turn may go on leasing: its last acknowledged heartbeat is young
	// enough. Nil: always.
	Alive func() bool
	// Found is called once, when the turn has found its first jobs; full: as many as it asked for.
	// It does not block. Nil: not called.
	Found func(full bool)
	// Progress is called with the counts so far when they change. Nil: not called.
	Progress func(Report)
	// Trouble is called with the error of a statement that the database failed and that is tried
	// again, and with nil when it answers again. Nil: not called.
	Trouble func(error)
}

// Process works a turn: it reclaims what may be its own already, waits for work, works it, and
// refills until the turn's time is up. An error means that the database is unavailable: no job is
// charged, and the same turn may be processed again.
func (e *Engine) Process(ctx context.Context, q TurnRequest) (Report, error) {
	e.StartReclaiming()
	began := time.Now()
	e.observer.lanes(1, 0)
	defer e.observer.lanes(-1, 0)
	// What is committed before this is seen by the poll; what comes later, and the poll may not see,
	// is announced.
	waiter := e.waker.Subscribe()
	caller := ctx
	if q.Gently {
		q.enough, ctx = ctx.Done(), context.WithoutCancel(ctx)
	}
	err := e.persist(caller, q.Stop, "begin a turn", func() error {
		polled, err := e.kind.Poll(ctx, e.room)
		tell(q.Trouble, err)
		q.Turn.Fence = polled.Fence
		e.waits.notePoll(polled)
		return err
	})
	if err != nil {
		waiter.Close()
		return Report{}, err
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := e.newRunner(q, waiter, cancel)
	end := r.tend(ctx, work)
	detached, err := r.run(ctx, work)
	end()
	if detached {
		report, err := r.goOn(ctx, work)
		return e.report(ctx, r, report, began, err)
	}
	defer cancel()
	if err == nil && r.leases.some.Load() {
		err = r.leases.giveBackAll(ctx, q.Stop, r.leases.heldBy())
	}
	r.close()
	return e.report(ctx, r, r.tally.soFar(), began, err)
}

// report completes the report of a turn that has ended with err: what jobs of earlier turns came to
// that went on by themselves, what was reclaimed of other workers, and which of the turns that were
// left behind still hold something.
func (e *Engine) report(ctx context.Context, r *runner, report Report, began time.Time, err error) (Report, error) {
	if report.Leased > 0 || err != nil {
		e.observer.turn(r.request, r.request.Turn, report, began, err)
	}
	if err != nil {
		return report, err // it is not read: what is to be reported is left to the next turn
	}
	left, err := e.Holding(context.WithoutCancel(ctx), r.request.LeftBehind)
	if err != nil {
		left = r.request.LeftBehind // the next turn asks
	}
	report.LeftBehind = append(report.LeftBehind, left...)
	report.add(e.late.split())
	return report, nil
}

const (
	// laneJobs is how many jobs a turn has begun or leased at a time, at most.
	laneJobs = 500
	// lastGrace is how long a handler whose context has ended may take to return, before its turn
	// goes on without it; stopGrace is the same after the turn was told to stop and the grace
	// period is over.
	lastGrace = 5 * time.Second
	stopGrace = 2 * time.Second
)

// turn is what the loop of a runner shares with all that runs beside it. It is fixed, or safe for
// concurrent use.
type turn struct {
	engine     *Engine
	request    TurnRequest
	leases     *leases
	calls      *calls
	tally      *tally
	sharing    *sharing
	cancelWork context.CancelFunc
	// events tell the loop what has ended beside it. Nothing is read when the turn has closed.
	events chan event
	closed chan struct{}
	// quiet: what runs beside the loop begins nothing more. failed: the turn ends with an error.
	quiet, failed atomic.Bool
	// began is when the turn began, ends when its time is up. A turn that waits has it from its first
	// job on.
	began time.Time
	ends  atomic.Pointer[time.Time]
}

func (e *Engine) newTurn(q TurnRequest, cancelWork context.CancelFunc) *turn {
	cs, counts, now := &calls{all: map[*call]bool{}}, &tally{listener: q.Progress}, time.Now()
	t := &turn{
		engine: e, request: q, cancelWork: cancelWork,
		leases: newLeases(e, q.Turn, cs, counts), calls: cs, tally: counts,
		// Calls, and besides them a refill and a completion.
		events: make(chan event, max(laneJobs, e.capacity)+2), closed: make(chan struct{}),
		began: now,
	}
	t.sharing = &sharing{turn: t, waiting: map[shareKey][]*sharer{}, active: map[shareKey]bool{}}
	t.leases.some.Store(!q.Fresh)
	t.endIn(q.Length)
	if q.Wait > 0 {
		t.endIn(never)
	}
	return t
}

// never is longer than any turn waits.
const never = 365 * 24 * time.Hour

func (t *turn) endIn(d time.Duration) {
	ends := time.Now().Add(d)
	t.ends.Store(&ends)
}

// tell tells the loop of what has ended, unless the turn is over.
func (t *turn) tell(e event) {
	select {
	case t.events <- e:
	case <-t.closed:
	}
}

// tend watches over the turn until end is called: it renews its leases, and ends its work when the
// grace period is over after ctx or Stop have ended it.
func (t *turn) tend(ctx, work context.Context) (end func()) {
	var background sync.WaitGroup
	over := make(chan struct{})
	renewing, endRenewal := context.WithCancel(work)
	background.Go(func() { t.watchStop(ctx, over) })
	background.Go(func() { t.leases.renew(renewing, t.engine.options.RenewEvery) })
	return func() {
		close(over)
		endRenewal()
		background.Wait()
	}
}

// watchStop gives running calls a grace period after the turn was told to stop.
func (t *turn) watchStop(ctx context.Context, over <-chan struct{}) {
	select {
	case <-over:
		return
	case <-t.request.Stop:
	case <-ctx.Done():
	}
	select {
	case <-over:
	case <-time.After(t.engine.options.Grace):
		if handlers, jobs := t.calls.running(); handlers > 0 {
			t.engine.interrupted.Add(int64(handlers))
			t.engine.options.Log.Warn("the worker was told to stop, and its grace period is over: "+
				"handlers that still run are interrupted, and their jobs are given back",
				append([]any{"turn", t.leases.heldBy().ID}, inLog(jobs)...)...)
		}
		t.cancelWork()
	}
}

// beginsNoMore is noMore for other goroutines than the loop's: a turn that ends begins nothing more
// as well.
func (t *turn) beginsNoMore() bool { return t.quiet.Load() || t.noMore() }

// noMore reports whether the turn's time is up, or it was told to begin nothing more. A turn
// without a length works what it has.
func (t *turn) noMore() bool {
	select {
	case <-t.request.enough:
		return true
	default:
		return t.request.Length > 0 && !time.Now().Before(*t.ends.Load())
	}
}
