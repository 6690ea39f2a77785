package engine

import (
	"context"
	"sync"
	"time"
)

const (
	// apartLength is how long a fetch goes on with what it has leased, when the turn's next activity may be another worker's.
	apartLength = 4 * time.Second
	// handOnAfter is how long a fetch waits, while jobs are due that only other workers may work, before it ends so that another worker
	// can fetch them. The time doubles each time in vain, up to handOnSlowest.
	handOnAfter   = time.Second
	handOnSlowest = 30 * time.Second
)

// workFetched works a turn that a fetch has leased, and goes on for a while.
func (e *Engine) workFetched(ctx context.Context, f Fetched, r FetchRequest) (Fetched, error) {
	report, err := e.Process(ctx, TurnRequest{Turn: r.Turn, Batch: r.Batch, Length: apartLength, Crashed: r.Crashed, Stop: r.Stop})
	if err != nil {
		return f, err
	}
	f.Leased, f.Full, f.Worked = report.Leased, report.More, &report
	f.LeftBehind = append(f.LeftBehind, report.LeftBehind...)
	return f, nil
}

// handingOn is the pause after which a waiting fetch ends because there are jobs for other workers. Only one of a task queue's
// workers waits for work, and it must not be one that cannot work the due jobs.
type handingOn struct {
	mu    sync.Mutex
	pause time.Duration
}

// after is the present pause.
func (h *handingOn) after() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(h.pause, handOnAfter)
}

// done notes whether a fetch ended for other workers. If that happens again and again, there are none, and the pause grows.
func (h *handingOn) done(handedOn bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !handedOn {
		h.pause = 0
		return
	}
	h.pause = min(2*max(h.pause, handOnAfter), handOnSlowest)
}

// handOn reports whether a fetch that waits is to end, because jobs are due that this worker may not work.
func (e *Engine) handOn(ctx context.Context) bool {
	left, err := e.kind.HasLeft(ctx)
	e.handingOn.done(left && err == nil)
	return left && err == nil
}
