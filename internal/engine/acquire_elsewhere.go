package engine

import (
	"context"
	"sync"
	"time"
)

const (
	// handOnAfter is how long a turn waits, while jobs are due that only other workers may work,
	// before it ends so that another worker can have the next turn. In vain it ends again after
	// handOnAgain, handOnTries times: Temporal gives the next turn to the worker whose poll is the
	// oldest, and this one has several. After that the time doubles from handOnAfter, up to
	// handOnSlowest.
	handOnAfter   = time.Second
	handOnAgain   = 200 * time.Millisecond
	handOnTries   = 4
	handOnSlowest = 4 * time.Second
	// handedOnFor is after what time a worker that waits again takes it that another one has
	// worked what it handed on: a turn is as long.
	handedOnFor = 4 * time.Second
)

// handingOn is the pause after which a turn that waits ends because there are jobs for other
// workers. Only one of a task queue's workers waits for work, and it must not be one that cannot
// work the due jobs.
type handingOn struct {
	mu sync.Mutex
	// vain is how often something ended so, and jobs for others were left all the same.
	vain int
	// at is when something last ended so.
	at time.Time
}

// after is the present pause.
func (h *handingOn) after() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.vain == 0:
		return handOnAfter
	case h.vain <= handOnTries:
		return handOnAgain
	default:
		return min(handOnAfter<<min(h.vain-handOnTries-1, 10), handOnSlowest)
	}
}

// inVain reports whether the last end for other workers may have been in vain: it is not so long
// ago that one of them must have worked.
func (h *handingOn) inVain() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.at) >= handedOnFor {
		h.vain = 0
	}
	return h.vain > 0
}

// done notes whether a turn ended for other workers. If that happens again and again,
// there are none, and the pause grows. Lanes that end together count as one.
func (h *handingOn) done(handedOn bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch now := time.Now(); {
	case !handedOn:
		h.vain = 0
	case now.Sub(h.at) >= handOnAgain/2:
		h.vain, h.at = h.vain+1, now
	}
}

// handOnLimit is how long a turn that rests looks for jobs of other workers.
const handOnLimit = time.Second

// recallHandOn is called when a turn begins that may wait. If nothing is left for others, or the
// last turn was long ago, others have worked what this worker handed on, and it hands on as soon
// the next time.
func (r *runner) recallHandOn(work context.Context) {
	h := &r.engine.handingOn
	if r.request.Wait == 0 || !h.inVain() {
		return
	}
	ctx, cancel := context.WithTimeout(work, handOnLimit)
	defer cancel()
	if left, err := r.engine.kind.HasLeft(ctx); err == nil && !left {
		h.done(false)
	}
}

// handsOn reports whether a turn that waits is to end for other workers. It looks once, until there
// is work again; idle: there is none.
func (r *runner) handsOn(work context.Context, idle bool) bool {
	switch {
	case r.acquirer.underWay && r.acquirer.nothingDue && !r.looked: // another scan does not begin the pause anew
	case !idle || !r.waits():
		r.others, r.looked = time.Time{}, false
	case r.looked:
	case r.others.IsZero():
		r.others = time.Now().Add(r.engine.handingOn.after())
		r.wakeAt(r.others)
	case time.Now().Before(r.others):
		r.wakeAt(r.others)
	default:
		r.looked = true
		ctx, cancel := context.WithTimeout(work, handOnLimit)
		defer cancel()
		left, err := r.engine.kind.HasLeft(ctx)
		r.engine.handingOn.done(left && err == nil)
		return left && err == nil
	}
	return false
}
