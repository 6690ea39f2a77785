package engine

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// reconcileEvery is the pause between two searches for what a lease may have left, until its statement has surely ended.
const reconcileEvery = time.Second

// loseTrack says that the turn may hold jobs without knowing it. They are looked for after a pause.
func (h *holder) loseTrack(pause time.Duration) {
	h.leaseUnknownSince = time.Now()
	h.lookAt = h.leaseUnknownSince.Add(pause)
}

// reconcile gives back jobs that the turn holds without knowing it, after a lease that ended with an error: its statement may
// have been committed, or may yet be. So it does what another transaction had locked when it was to be given back. known are
// those that are being worked, or have ended.
func (h *holder) reconcile(work context.Context, known func() map[string]bool) error {
	if h.leases.unsure.Swap(false) {
		h.loseTrack(0)
	}
	if h.leaseUnknownSince.IsZero() {
		return nil
	}
	now := time.Now()
	if now.Before(h.lookAt) {
		h.wakeAt(h.lookAt)
		return nil
	}
	ids, err := h.leases.held(work)
	if err != nil {
		return err
	}
	h.takeArrived()
	mine := known()
	for _, some := range [][]store.Job{h.queue, h.locked} {
		for _, j := range some {
			mine[j.ID] = true
		}
	}
	var orphans []store.Job
	for _, id := range ids {
		if !mine[id] {
			orphans = append(orphans, store.Job{ID: id})
		}
	}
	if _, err := h.leases.giveBack(work, orphans, 0); err != nil {
		return err
	}
	h.lookAt = now.Add(reconcileEvery)
	if len(orphans) == 0 && now.Sub(h.leaseUnknownSince) > store.LeaseLimit {
		h.leaseUnknownSince = time.Time{}
	}
	return nil
}
