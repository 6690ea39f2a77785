package engine

import (
	"context"
	"time"
)

// A turn is over when its time is up, even if handlers of single jobs take longer: no activity
// waits for them. Their jobs are handed over to a detached turn, which belongs to no activity, and
// go on in this process.

const (
	// detachAfter is how long a job has been worked when its turn ends without it.
	detachAfter = time.Second
	// handOverPause is the pause before another try to hand jobs over, after a completion prevented
	// it.
	handOverPause = 20 * time.Millisecond
)

// detach hands the jobs that are being worked over, if the turn has nothing else to do than to wait
// for them.
func (r *runner) detach(work context.Context) (bool, error) {
	if !r.request.Linger || r.worker.active == 0 || r.acquirer.underWay || r.finisher.busy() {
		return false, nil
	}
	ids := r.calls.longRunning(detachAfter)
	if len(ids) != r.worker.active {
		return false, nil
	}
	handed, err := r.leases.handOver(work, ids)
	if !handed {
		r.wakeAt(time.Now().Add(handOverPause))
	}
	return handed, err
}

// handOver makes all of the leases, which calls have in hand, those of the detached turn. It
// reports false when that has to be tried again later: the identity is pinned, a row is locked for
// a moment, or a job is no longer the turn's.
func (l *leases) handOver(work context.Context, ids []string) (bool, error) {
	if !l.moving.TryLock() {
		return false, nil // what runs beside a completion, or a renewal, is not to wait for it
	}
	defer l.moving.Unlock()
	inHand := l.calls.inHand()
	before := l.heldBy()
	after := before.Detach()
	var handed bool
	// After a broken connection it is unknown which turn holds the jobs: nothing else is done
	// before that is known. Renewals wait meanwhile, so a try is as long as theirs.
	err := l.engine.persist(work, nil, "hand jobs over", func() (err error) {
		try, cancel := context.WithTimeout(work, renewLimit)
		defer cancel()
		handed, err = l.engine.kind.HandOver(try, before, after, ids)
		return err
	})
	if err != nil {
		return false, err
	}
	if !handed {
		held, err := l.engine.kind.Held(work, before)
		if err == nil {
			l.calls.cancelLost(inHand, held)
		}
		return false, err
	}
	l.identity.Store(&after)
	return true, nil
}

// goOn ends the turn for its activity, and waits for its jobs in the background.
func (r *runner) goOn(ctx, work context.Context) (Report, error) {
	before := r.leases.heldBy()
	before.ID, before.Detached = r.request.Turn.ID, false
	err := r.leases.giveBackAll(ctx, r.request.Stop, before)
	if !r.holder.leaseUnknownSince.IsZero() {
		r.engine.reclaimLater(before)
	}
	// Jobs that have not begun are no longer the turn's: they take no room while the others go on.
	r.engine.room.leave(r.holder.takeQueue())
	r.engine.room.wait(r.turn, nil)
	r.noticeCompleted()
	report := r.tally.split()
	r.before = Report{}
	end := r.tend(r.engine.life, work)
	r.engine.background.Go(func() { r.endDetached(work, r.drain(work, nil), end) })
	return report, err
}

// endDetached ends a turn that no activity waits for; err is its own.
func (r *runner) endDetached(work context.Context, err error, end func()) {
	defer r.cancelWork()
	log := r.engine.options.Log
	if err != nil {
		log.Error("jobs that went on after their turn could not be completed; they are given back",
			"turn", r.leases.heldBy().ID, "error", err)
		r.engine.reclaimLater(r.leases.heldBy())
	} else if err := r.finishDetached(work); err != nil {
		log.Warn("what a turn still held was not given back yet", "turn", r.leases.heldBy().ID, "error", err)
	}
	end()
	r.close()
	late := r.tally.soFar()
	r.engine.observer.turn(r.request, r.leases.heldBy(), late, r.began, err)
	r.engine.late.note(func(r *Report) { r.add(late) })
}

// finishDetached gives back all that the turn holds. No later activity gives back what another
// transaction has locked now, and a lease that comes second for a row locks it for a moment: so
// that is waited for, also when the process is stopped. What is locked for longer is given back
// later, if the process goes on.
func (r *runner) finishDetached(work context.Context) error {
	if err := r.leases.giveBackAll(work, r.request.Stop, r.leases.heldBy()); err != nil {
		r.engine.reclaimLater(r.leases.heldBy())
		return err
	}
	if len(r.tally.soFar().LeftBehind) == 0 {
		return nil
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(work), releaseLimit)
	defer cancel()
	n, err := r.engine.ReleaseTurn(own, r.leases.heldBy())
	r.tally.note(func(r *Report) { r.Released += n })
	return err
}
