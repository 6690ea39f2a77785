package engine

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// renew keeps the turn's leases young, cancels what is no longer its own, and sweeps in what a sleeping predecessor leased. When that fails
// it is tried again at once: after an outage a holder has to be faster than those who reclaim.
func (t *turn) renew(ctx context.Context, every time.Duration) {
	log := t.engine.options.Log
	timer := time.NewTimer(every)
	defer timer.Stop()
	failing, missed := false, time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		again, err := t.renewOnce(ctx, every)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			log.Warn("leases were not renewed; trying again until the database answers", "turn", t.identity().ID, "error", store.Explain(err))
		case err == nil && failing:
			log.Info("leases are renewed again", "turn", t.identity().ID)
		}
		pause := every
		if failing = err != nil; failing {
			pause = min(every, renewRetry)
		}
		if !again {
			missed = 0
		} else if missed = min(every, max(2*missed, renewRetry)); !failing {
			pause = missed
		}
		timer.Reset(pause)
	}
}

const (
	// renewLimit bounds one try at renewing, renewRetry is the pause before the next. After one that missed rows which were locked it grows.
	renewLimit = 3 * time.Second
	renewRetry = 200 * time.Millisecond
)

// renewOnce reports whether it is to be repeated soon, because it has missed rows that another transaction held locked.
func (t *turn) renewOnce(ctx context.Context, every time.Duration) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, renewLimit)
	defer cancel()
	t.handover.RLock()
	defer t.handover.RUnlock()
	before := t.inHand()
	renewed, err := t.engine.store.Renew(ctx, t.identity(), t.overdue(), every/2)
	if err != nil {
		return false, err
	}
	if t.cancelLost(before, renewed.Held) && !t.lost.Swap(true) {
		t.engine.reclaims.lost.Add(1)
	}
	if err = t.takeOver(ctx, false); err != nil {
		t.unsure.Store(true)
	}
	return renewed.Missed, err
}
