package engine

import (
	"context"
	"sync"
	"time"
)

const (
	// apartLength is how long a fetch goes on with what it has leased, when the turn's next
	// activity may be another worker's.
	apartLength = 4 * time.Second
	// handOnAfter is how long a fetch waits, while jobs are due that only other workers may work,
	// before it ends so that another worker can fetch them. In vain it ends again after
	// handOnAgain, handOnTries times: Temporal gives the next fetch to the worker whose poll is the
	// oldest, and this one has several. After that the time doubles from handOnAfter, up to
	// handOnSlowest.
	handOnAfter   = time.Second
	handOnAgain   = 200 * time.Millisecond
	handOnTries   = 4
	handOnSlowest = 4 * time.Second
	// handedOnFor is after what time a worker that fetches again takes it that another one has
	// worked what it handed on: a turn is as long.
	handedOnFor = 4 * time.Second
)

// work works a turn that a fetch has leased, and goes on for a while.
func (f *fetch) work(ctx context.Context, got Fetched) (Fetched, error) {
	r := f.request
	report, err := f.Process(ctx, TurnRequest{
		Turn: r.Turn, Batch: r.Batch, Length: apartLength, Crashed: r.Crashed, Stop: r.Stop,
	})
	if err != nil {
		return got, err
	}
	got.Leased, got.Full, got.Worked = report.Leased, report.More, &report
	got.LeftBehind = append(got.LeftBehind, report.LeftBehind...)
	return got, nil
}

// handingOn is the pause after which a waiting fetch, or a turn that lingers, ends because there
// are jobs for other workers. Only one of a task queue's workers waits for work, and it must not be
// one that cannot work the due jobs.
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

// done notes whether a fetch or turn ended for other workers. If that happens again and again,
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

// handOn reports whether a fetch or turn that waits is to end, because jobs are due that this
// worker may not work.
func (h *handingOn) handOn(ctx context.Context, k Kind) bool {
	left, err := k.HasLeft(ctx)
	h.done(left && err == nil)
	return left && err == nil
}

// recall is called when a fetch is about to wait. If nothing is left for others, or the
// last fetch was long ago, others have worked what this worker handed on, and it hands on as soon
// the next time.
func (h *handingOn) recall(ctx context.Context, k Kind) {
	if !h.inVain() {
		return
	}
	if left, err := k.HasLeft(ctx); err == nil && !left {
		h.done(false)
	}
}

// handOnLimit is how long a turn that rests looks for jobs of other workers.
const handOnLimit = time.Second

// handsOn reports whether a turn that rests is to end as a waiting fetch does. It looks once, until
// there is work again.
func (r *runner) handsOn(work context.Context) bool {
	switch {
	case !r.resting || !r.request.Linger:
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
		return r.engine.handingOn.handOn(ctx, r.engine.kind)
	}
	return false
}
