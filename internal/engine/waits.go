package engine

import (
	"errors"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

const (
	// checkWaitsEvery is the longest pause between two calls of CheckWaits, for when an announcement was missed. Work that is announced ends
	// it, so an idle process asks hardly anything.
	checkWaitsEvery = 10 * time.Second
	// checkWaitsAgain is the pause after which a locked row is tried again, and the shortest one between two calls.
	checkWaitsAgain = 50 * time.Millisecond
)

// lookAtWaits says that something may have been put on record about jobs that wait.
func (e *Engine) lookAtWaits() {
	select {
	case e.looks <- struct{}{}:
	default:
	}
}

// checkWaits releases jobs that wait for nothing any more, for as long as the engine lives.
func (e *Engine) checkWaits() {
	failing := false
	for e.life.Err() == nil {
		checked, err := e.kind.CheckWaits(e.life)
		if errors.Is(err, errors.ErrUnsupported) {
			return // the kind's jobs wait for nothing
		}
		if err != nil && !failing && e.life.Err() == nil {
			e.options.Log.Debug("jobs that wait for others cannot be released", "error", store.Explain(err))
		}
		failing = err != nil
		if checked.Decided > 0 {
			e.waker.Remind()
			continue
		}
		rest(e.life, checkWaitsAgain)
		if checked.Again > 0 {
			continue
		}
		select {
		case <-e.life.Done():
		case <-e.looks:
		case <-time.After(checkWaitsEvery):
		}
	}
}
