package workers

import (
	"context"
	"sync"

	"github.com/daybook-dev/daybook/failure"
)

// Errors of a worker that is used wrongly; compare with errors.Is.
var (
	// ErrClosed: Run was called after Close.
	ErrClosed = failure.New(failure.Misuse, "workers: it is closed and works nothing more: make another one")
	// ErrRunning: Run was called while another Run of the same worker had not returned.
	ErrRunning = failure.New(failure.Misuse,
		"workers: the worker runs already: call Run once at a time, or make a second worker")
	// ErrNotMade: Run was called on a zero value.
	ErrNotMade = failure.New(failure.Misuse,
		"workers: it is a zero value: make it by its function, such as NewAccounting, NewJobs, NewTasks or NewDueJobs")
)

// lifecycle holds a worker to one run at a time, and to none after Close.
type lifecycle struct {
	mu     sync.Mutex
	closed bool
	// cancel ends the run, and done is closed when it has ended; nil: there is none.
	cancel context.CancelFunc
	done   chan struct{}
}

// begin returns the context of a run, which close ends as well, and what is to be called at the
// run's end.
func (l *lifecycle) begin(ctx context.Context) (running context.Context, end func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, nil, ErrClosed
	case l.done != nil:
		return nil, nil, ErrRunning
	}
	running, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	l.cancel, l.done = cancel, done
	return running, func() {
		cancel()
		l.mu.Lock()
		l.cancel, l.done = nil, nil
		l.mu.Unlock()
		close(done)
	}, nil
}

// close ends a run, waits for it, and refuses further ones. It reports whether it is the first
// call.
func (l *lifecycle) close() (first bool) {
	l.mu.Lock()
	first, l.closed = !l.closed, true
	cancel, done := l.cancel, l.done
	l.mu.Unlock()
	if done != nil {
		cancel()
		<-done
	}
	return first
}
