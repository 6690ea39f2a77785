package engine

import (
	"context"
	"errors"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

const (
	// checkWaitsEvery is for how long nothing is asked about jobs that wait, for when an
	// announcement was missed. Work that is announced ends it, so an idle process asks hardly
	// anything. A poll asks as well: with the default interval nothing else asks between two of
	// them.
	checkWaitsEvery = 11 * time.Second
	// checkWaitsAgain is the pause after which a locked row is tried again, and the shortest one
	// between two calls.
	checkWaitsAgain = 50 * time.Millisecond
)

// waits says when it is worth while to look for jobs that wait for nothing any more.
type waits struct {
	// looks has a token when something may have been put on record about jobs that wait, looked when
	// a poll has seen that there is nothing.
	looks, looked chan struct{}
}

// look says that something may have been put on record about jobs that wait.
func (w *waits) look() {
	select {
	case w.looks <- struct{}{}:
	default:
	}
}

// notePoll takes in whether a poll has seen something on record about jobs that wait.
func (w *waits) notePoll(p store.Polled) {
	switch {
	case p.Waits:
		w.look()
	case p.Looked:
		select {
		case w.looked <- struct{}{}:
		default:
		}
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
		e.waits.await(e.life)
	}
}

// await waits until it is worth while to look for something to decide.
func (w *waits) await(life context.Context) {
	for {
		select {
		case <-w.looked: // the pause begins anew
			continue
		case <-life.Done():
		case <-w.looks:
		case <-time.After(checkWaitsEvery):
		}
		return
	}
}
