package engine

import (
	"context"
	"sync"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// A turn is over when its time is up, even if handlers of single jobs take longer: no activity waits for them. Their jobs are handed
// over to a detached turn, which belongs to no activity, and go on in this process.

const (
	// detachAfter is how long a job has been worked when its turn ends without it.
	detachAfter = time.Second
	// handOverPause is the pause before another try to hand jobs over, after a completion prevented it.
	handOverPause = 20 * time.Millisecond
	// bridgeFor is how long a bridge takes more jobs.
	bridgeFor = time.Second
)

// detachedTurns is what an engine knows of jobs that go on after their turns.
type detachedTurns struct {
	running sync.WaitGroup

	mu sync.Mutex
	// late are the results of such jobs that were not reported yet.
	late Report
}

// withLate adds to a turn's report the results of jobs that went on after earlier turns.
func (e *Engine) withLate(r Report) Report {
	d := &e.detached
	d.mu.Lock()
	defer d.mu.Unlock()
	r.add(d.late)
	d.late = Report{}
	return r
}

// detach hands the jobs that are being worked over, if the turn has nothing else to do than to wait for them.
func (r *runner) detach(work context.Context) (bool, error) {
	if r.unattended || !r.request.Linger || r.active == 0 || r.refill.underWay || r.completing || len(r.ended)+len(r.held) > 0 {
		return false, nil
	}
	ids := r.calls.longRunning(detachAfter)
	if len(ids) != r.active {
		return false, nil
	}
	handed, err := r.holder.handOver(work, ids)
	if !handed {
		r.wakeAt(time.Now().Add(handOverPause))
	}
	return handed, err
}

// goOn ends the turn for its activity, and waits for its jobs in the background.
func (r *runner) goOn(ctx, work context.Context) (Report, error) {
	before := r.holder.turn()
	before.ID, before.Detached = r.request.Turn.ID, false
	err := r.holder.finish(ctx, r.request.Stop, before)
	if !r.doubt.IsZero() {
		r.engine.reclaimLater(before)
	}
	// Jobs that have not begun are no longer the turn's: they take no room while the others go on.
	r.engine.room.leave(r.takeQueue())
	r.engine.room.wait(r, nil)
	report := r.tally.split()
	e := r.engine
	end := r.tend(e.life, work)
	e.detached.running.Go(func() { r.endDetached(work, r.drain(work, nil), end) })
	return e.withLate(report), err
}

// endDetached ends a turn that no activity waits for; err is its own.
func (r *runner) endDetached(work context.Context, err error, end func()) {
	defer r.cancelWork()
	d, log := &r.engine.detached, r.engine.options.Log
	if err != nil {
		log.Error("jobs that went on after their turn could not be completed; they are given back", "turn", r.holder.turn().ID, "error", err)
		r.engine.reclaimLater(r.holder.turn())
	} else if err := r.finishDetached(work); err != nil {
		log.Warn("what a turn still held was not given back yet", "turn", r.holder.turn().ID, "error", err)
	}
	end()
	r.close()
	late := r.tally.soFar()
	r.engine.observer.turn(r.request, r.holder.turn(), late, r.began, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late.add(late)
}

// finishDetached gives back all that the turn holds. No later activity gives back what another transaction has locked now, and a lease that comes second for a row locks it for
// a moment: so that is waited for, also when the process is stopped. What is locked for longer is given back later, if the process goes on.
func (r *runner) finishDetached(work context.Context) error {
	if err := r.holder.finish(work, r.request.Stop, r.holder.turn()); err != nil {
		r.engine.reclaimLater(r.holder.turn())
		return err
	}
	if len(r.tally.soFar().LeftBehind) == 0 {
		return nil
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(work), releaseLimit)
	defer cancel()
	n, err := r.engine.ReleaseTurn(own, r.holder.turn())
	r.tally.note(func(r *Report) { r.Released += n })
	return err
}

// fetchedTurn is the detached turn by which a fetch holds what it begins at once.
func fetchedTurn(turn store.Turn) store.Turn {
	turn.ID += "/fetched"
	return turn.Detach()
}

// bridge leases jobs for a fetch that has waited, and begins them at once, in the background, because the turn's next activity begins only
// after a hop through Temporal. For a second it leases and begins further jobs.
func (e *Engine) bridge(ctx context.Context, turn store.Turn, limit int, stop <-chan struct{}) (store.Leased, error) {
	turn = fetchedTurn(turn)
	leased, err := e.leaseRoomy(ctx, turn, limit)
	if err == nil {
		err = ctx.Err() // cancelled meanwhile: they are not begun
	}
	if err != nil || len(leased.Jobs) == 0 {
		e.room.leave(leased.Jobs)
		return leased, err
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := e.newRunner(TurnRequest{Turn: turn, Batch: limit, Length: bridgeFor, Linger: true, Stop: stop}, cancel)
	r.queue, r.unattended = leased.Jobs, true
	r.tally.note(func(r *Report) { r.Leased = len(leased.Jobs) })
	end := r.tend(e.life, work)
	e.detached.running.Go(func() {
		_, err := r.run(e.life, work)
		r.endDetached(work, err, end)
	})
	return leased, nil
}
