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
	// Length is how long the turn goes on refilling; running calls are finished after it.
	Length time.Duration
	// Linger lets the turn wait for new work until Length is up when the queue runs empty.
	// Otherwise the turn ends when all is read, and nothing is due that could be worked now: not
	// what another transaction has locked, nor that for which there is no room.
	Linger bool
	// Crashed says that an earlier activity of this turn did not end by itself.
	Crashed bool
	// Stop tells the turn to finish its running calls, give the rest back and report.
	Stop <-chan struct{}
	// Enough tells a turn to begin nothing more and to give back what it has not begun; what runs
	// ends in its own time. Nil: never.
	Enough <-chan struct{}
	// Alive says whether the turn may go on leasing: its last acknowledged heartbeat is young
	// enough. Nil: always.
	Alive func() bool
	// Progress is called with the counts so far when they change. Nil: not called.
	Progress func(Report)
	// Trouble is that of FetchRequest.
	Trouble func(error)
}

// Process works a turn: it reclaims what the turn's earlier activities leased, works it, and
// refills until the turn's time is up. An error means that the database is unavailable: no job is
// charged, and the same turn may be processed again.
func (e *Engine) Process(ctx context.Context, q TurnRequest) (Report, error) {
	e.StartReclaiming()
	began := time.Now()
	e.observer.lanes(1, 0)
	defer e.observer.lanes(-1, 0)
	err := e.persist(ctx, q.Stop, "begin a turn", func() (err error) {
		q.Turn.Fence, err = e.kind.NextFence(ctx)
		tell(q.Trouble, err)
		return err
	})
	if err != nil {
		return Report{}, err
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := e.newRunner(q, cancel)
	end := r.tend(ctx, work)
	detached, err := r.run(ctx, work)
	end()
	if detached {
		report, err := r.goOn(ctx, work)
		e.observer.turn(q, q.Turn, report, began, err)
		return report, err
	}
	defer cancel()
	if err == nil {
		err = r.leases.giveBackAll(ctx, q.Stop, r.leases.heldBy())
	}
	r.close()
	report := r.tally.soFar()
	e.observer.turn(q, q.Turn, report, began, err)
	return e.detached.addTo(report), err
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
	cancelWork context.CancelFunc
	// events tell the loop what has ended beside it. Nothing is read when the turn has closed.
	events chan event
	closed chan struct{}
	// quiet is closed when nothing more is begun.
	quiet chan struct{}
	// failed: the turn ends with an error.
	failed atomic.Bool
	// began is when the turn began, ends when its time is up.
	began, ends time.Time
}

func (e *Engine) newTurn(q TurnRequest, cancelWork context.CancelFunc) *turn {
	cs, counts, now := &calls{all: map[*call]bool{}}, &tally{listener: q.Progress}, time.Now()
	return &turn{
		engine: e, request: q, cancelWork: cancelWork,
		leases: newLeases(e, q.Turn, cs, counts), calls: cs, tally: counts,
		// Calls, and besides them a refill and a completion.
		events: make(chan event, max(laneJobs, e.capacity)+2), closed: make(chan struct{}), quiet: make(chan struct{}),
		began: now, ends: now.Add(q.Length),
	}
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
			t.engine.counts.interrupted.Add(int64(handlers))
			t.engine.options.Log.Warn("the worker was told to stop, and its grace period is over: "+
				"handlers that still run are interrupted, and their jobs are given back",
				append([]any{"turn", t.leases.heldBy().ID}, inLog(jobs)...)...)
		}
		t.cancelWork()
	}
}

// quieten tells what runs beside the loop to begin nothing more. The loop alone calls it.
func (t *turn) quieten() {
	select {
	case <-t.quiet:
	default:
		close(t.quiet)
	}
}

// beginsNoMore is noMore for other goroutines than the loop's: a turn that ends begins nothing more
// as well.
func (t *turn) beginsNoMore() bool {
	select {
	case <-t.quiet:
		return true
	default:
		return t.noMore()
	}
}

// noMore reports whether the turn's time is up, or it was told to begin nothing more. A turn
// without a length works what it has.
func (t *turn) noMore() bool {
	if t.request.Length > 0 {
		return !time.Now().Before(t.ends)
	}
	select {
	case <-t.request.Enough:
		return true
	default:
		return false
	}
}
