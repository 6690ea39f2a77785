package engine

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

const (
	// renewLimit bounds one try at renewing, renewRetry is the pause before the next. After one
	// that missed rows which were locked it grows.
	renewLimit = 3 * time.Second
	renewRetry = 200 * time.Millisecond
	// youngShare: what is younger than such a part of the pause is left out. Leases grow older than
	// the pause by so much, which must stay well below the age at which a dead worker's end.
	youngShare = 6
)

// renew renews the turn's leases until ctx ends, cancels the calls of jobs that the turn has lost
// or that are to be cancelled, and reclaims what a suspended earlier activity leased after this one
// had begun. When that fails it is tried again at once: after an outage a holder has to renew
// before others reclaim.
func (l *leases) renew(ctx context.Context, every time.Duration) {
	log := l.engine.options.Log
	timer := time.NewTimer(every)
	defer timer.Stop()
	failing, missed := false, time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		again, err := l.renewOnce(ctx, every)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			log.Warn("leases were not renewed; trying again until the database answers",
				"turn", l.heldBy().ID, "error", store.Explain(err))
		case err == nil && failing:
			log.Info("leases are renewed again", "turn", l.heldBy().ID)
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

// renewOnce reports whether it is to be repeated soon, because it has missed rows that another
// transaction held locked. It asks nothing before the turn may have leased something.
func (l *leases) renewOnce(ctx context.Context, every time.Duration) (again bool, err error) {
	if !l.some.Load() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, renewLimit)
	defer cancel()
	turn, free := l.pin()
	defer free()
	before := l.calls.inHand()
	renewed, err := l.engine.kind.Renew(ctx, turn, l.calls.overdue(), every/youngShare)
	if err != nil {
		return false, err
	}
	l.calls.cancelAsked(before, renewed.Asked)
	if l.calls.cancelLost(before, renewed.Held) && !l.lost.Swap(true) {
		l.engine.lost.Add(1)
	}
	if renewed.Crowded {
		return renewed.Missed, nil // a reclaim would wait for a connection
	}
	if err = l.reclaim(ctx, []string{turn.ID}, false); err != nil {
		l.unsure.Store(true)
	}
	return renewed.Missed, err
}
