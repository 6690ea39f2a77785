package engine

import (
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

func newHolder(p part) holder { return holder{part: p, db: trouble{doing: "lease and give back"}} }

// empty reports whether no job waits to begin.
func (h *holder) empty() bool { return len(h.queue)+len(h.locked) == 0 }

// takeArrived takes in what was reclaimed.
func (h *holder) takeArrived() { h.queue = append(h.queue, h.leases.takeArrived()...) }

// takeQueue removes the jobs from the queue, and returns them.
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
