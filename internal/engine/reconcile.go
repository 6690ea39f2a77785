package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// reconcileEvery is the pause between two searches for what a lease may have left, until its statement has surely ended.
const reconcileEvery = time.Second

// verify asks, after the database was unavailable, which jobs the turn still holds: the others are not begun. That does not end the outage:
// a database that answers may still refuse to write.
func (r *runner) verify(work context.Context) error {
	if r.own.since.IsZero() || r.own.verified {
		return nil
	}
	held, err := r.holder.held(work)
	if err != nil {
		return err
	}
	r.queue = append(r.queue, r.holder.takeArrived()...)
	still := setOf(held)
	r.engine.room.leave(slices.DeleteFunc(slices.Clone(r.queue), func(j store.Job) bool { return still[j.ID] }))
	r.queue = keep(r.queue, held)
	r.own.verified = true
	return nil
}

// reconcile gives back jobs that the turn holds without knowing it, after a lease that ended with an error: its statement may have
// been committed, or may yet be. So it does what another transaction had locked when it was to be given back.
func (r *runner) reconcile(work context.Context) error {
	now := time.Now()
	if r.holder.unsure.Swap(false) {
		r.doubt, r.reconcileAt = now, time.Time{}
	}
	if r.doubt.IsZero() || r.refill.underWay {
		return nil
	}
	if now.Before(r.reconcileAt) {
		r.wakeAt(r.reconcileAt)
		return nil
	}
	ids, err := r.holder.held(work)
	if err != nil {
		return err
	}
	r.queue = append(r.queue, r.holder.takeArrived()...)
	known := r.known()
	var orphans []store.Job
	for _, id := range ids {
		if !known[id] {
			orphans = append(orphans, store.Job{ID: id})
		}
	}
	if _, err := r.holder.giveBack(work, orphans, 0); err != nil {
		return err
	}
	r.reconcileAt = now.Add(reconcileEvery)
	if len(orphans) == 0 && now.Sub(r.doubt) > store.LeaseLimit {
		r.doubt = time.Time{}
	}
	return nil
}

// known are the jobs of which the loop knows that the turn holds them.
func (r *runner) known() map[string]bool {
	known := maps.Clone(r.begun)
	for _, some := range [][]ended{r.ended, r.held, r.inCompletion} {
		for _, e := range some {
			known[e.job.ID] = true
		}
	}
	for _, some := range [][]store.Job{r.queue, r.skipped} {
		for _, j := range some {
			known[j.ID] = true
		}
	}
	return known
}

// reclaimLater gives back what a turn that has ended may still lease: the statement of a lease that broke off may yet be committed, and another transaction may have
// rows locked for long.
func (e *Engine) reclaimLater(turn store.Turn) {
	if e.life.Err() != nil {
		return
	}
	e.detached.running.Go(func() {
		until := time.Now().Add(store.LeaseLimit + reconcileEvery)
		for holds := true; (holds || time.Now().Before(until)) && e.life.Err() == nil; {
			rest(e.life, reconcileEvery)
			holds = e.reclaimNow(turn)
		}
	})
}

// reclaimNow gives back what a turn that has ended leases, and reports whether it is known to hold something still.
func (e *Engine) reclaimNow(turn store.Turn) (holds bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.life), releaseLimit)
	defer cancel()
	n, err := e.kind.GiveBack(ctx, turn, nil, 0)
	if n > 0 || err != nil {
		e.waker.Remind()
	}
	switch {
	case err != nil: // in an outage that is so again and again, for each turn
		e.options.Log.Debug("what an ended turn may have left cannot be given back; trying again", "turn", turn.ID, "error", err)
	case n > 0:
		e.options.Log.Info("gave back what an ended turn had left", "turn", turn.ID, "jobs", n)
	}
	held, err := e.kind.Held(ctx, turn)
	return err == nil && len(held) > 0
}
