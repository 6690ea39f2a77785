package engine

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// waitChecker is a kind whose jobs may wait for each other.
type waitChecker interface {
	// CheckWaits decides a part of what is on record about jobs that wait. It waits for no row lock.
	CheckWaits(ctx context.Context) (store.CheckedWaits, error)
}

const (
	// checkWaitsEvery is the longest pause between two calls of CheckWaits, for when an announcement was missed. Work that is announced ends
	// it, so an idle process asks hardly anything.
	checkWaitsEvery = 10 * time.Second
	// checkWaitsAgain is the pause after which a locked row is tried again, and the shortest one between two calls.
	checkWaitsAgain = 50 * time.Millisecond
)

// waits releases jobs that wait for nothing any more, for as long as the engine lives.
type waits struct {
	// look has a token when something may have been put on record.
	look chan struct{}
	done chan struct{}
}

// startWaits begins to release jobs; a kind whose jobs wait for nothing has none.
func (e *Engine) startWaits() {
	k, ok := e.kind.(waitChecker)
	if !ok || e.kind.Name() != store.Jobs.Name {
		return
	}
	e.waits.done = make(chan struct{})
	go func() {
		defer close(e.waits.done)
		e.checkWaits(k)
	}()
}

// lookAtWaits says that something may have been put on record about jobs that wait.
func (e *Engine) lookAtWaits() {
	select {
	case e.waits.look <- struct{}{}:
	default:
	}
}

func (e *Engine) checkWaits(k waitChecker) {
	failing := false
	for e.life.Err() == nil {
		checked, err := k.CheckWaits(e.life)
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
		case <-e.waits.look:
		case <-time.After(checkWaitsEvery):
		}
	}
}
