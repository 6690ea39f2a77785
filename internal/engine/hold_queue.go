package engine

import (
	"context"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// holder has the jobs that a turn has leased and that are not worked.
type holder struct {
	part
	// queue are to begin.
	queue []store.Job
	// locked are those that another transaction held locked when they were to be worked. They are
	// left alone until lockedUntil.
	locked      []store.Job
	lockedUntil time.Time
	lockedPause time.Duration
	// back are to be given back.
	back []givenBack
	// leaseUnknownSince is when a lease last ended without saying what it leased, lookAt when to
	// look for that.
	leaseUnknownSince, lookAt time.Time
	// db is what the database does to the turn's own statements, but for completions.
	db trouble
}

func (h *holder) empty() bool { return len(h.queue)+len(h.locked) == 0 }

func (h *holder) takeArrived() { h.queue = append(h.queue, h.leases.takeArrived()...) }

func (h *holder) takeQueue() []store.Job {
	queue := h.queue
	h.queue = nil
	return queue
}

// Rows that another transaction holds locked are left alone for firstSkip, and each time twice as
// long, up to skippedPause: another worker's lease that came too late holds them for a moment, an
// application's transaction for as long as it likes.
const (
	firstSkip    = 5 * time.Millisecond
	skippedPause = 200 * time.Millisecond
)

// skip leaves jobs alone for a moment, because other transactions hold their rows.
func (h *holder) skip(jobs []store.Job) {
	switch {
	case len(jobs) == 0:
		return
	case len(h.locked) == 0 && time.Since(h.lockedUntil) > skippedPause:
		h.lockedPause = 0 // those before were worked
	}
	h.lockedPause = min(max(2*h.lockedPause, firstSkip), skippedPause)
	h.locked, h.lockedUntil = append(h.locked, jobs...), time.Now().Add(h.lockedPause)
}

// reconcileEvery is the pause between two searches for what a lease may have left, until its
// statement has surely ended.
const reconcileEvery = time.Second

// loseTrack says that the turn may hold jobs without knowing it. They are looked for after a pause.
func (h *holder) loseTrack(pause time.Duration) {
	h.leaseUnknownSince = time.Now()
	h.lookAt = h.leaseUnknownSince.Add(pause)
}

// reconcile asks which jobs the turn holds, when there is a reason to:
//
//   - The database was unavailable. That does not end the outage: a database that answers may still
//     refuse to write.
//   - Jobs are to be tried again that another transaction had locked.
//   - The turn may hold jobs without knowing it: the statement of a lease that ended with an error
//     may have been committed, or may yet be; and what was to be given back may have been locked.
//     Those are given back. known are the jobs that are being worked, or have ended; nil: it is not
//     known yet.
//
// What the turn no longer holds is not begun.
func (h *holder) reconcile(work context.Context, known func() map[string]bool) error {
	if h.leases.unsure.Swap(false) {
		h.loseTrack(0)
	}
	now := time.Now()
	again := len(h.locked) > 0 && h.isDue(now, h.lockedUntil)
	search := !h.leaseUnknownSince.IsZero() && known != nil && h.isDue(now, h.lookAt)
	if !again && !search && (h.db.since.IsZero() || h.db.verified) {
		return nil
	}
	ids, err := h.leases.held(work)
	if err != nil {
		return err
	}
	h.takeArrived()
	held := keep(h.queue, ids)
	h.engine.room.leave(without(h.queue, held))
	h.queue, h.db.verified = held, true
	if again {
		h.queue, h.locked = append(h.queue, keep(h.locked, ids)...), nil
	}
	if !search {
		return nil
	}
	mine := known()
	for _, j := range slices.Concat(h.queue, h.locked) {
		mine[j.ID] = true
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

// isDue reports whether a time has come. If not, the loop goes round again then.
func (h *holder) isDue(now, at time.Time) bool {
	if now.Before(at) {
		h.wakeAt(at)
		return false
	}
	return true
}
