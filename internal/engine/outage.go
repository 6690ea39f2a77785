package engine

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

const (
	// Statements of Daybook's own that met an outage are made again after firstPause, and each time after twice as long, up to
	// longestPause.
	firstPause   = 10 * time.Millisecond
	longestPause = 500 * time.Millisecond
	// outageLimit is how long an outage may last before what runs is given up.
	outageLimit = 5 * time.Minute
)

// rest waits for a pause, or until ctx ends.
func rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// awaitDatabase waits, when the database does not answer, until it does, and says whether it had to. It gives up when ctx ends,
// and after outageLimit.
func (e *Engine) awaitDatabase(ctx context.Context) (waited bool) {
	pause := firstPause
	for began := time.Now(); !e.store.Answers(ctx); pause = min(2*pause, longestPause) {
		waited = true
		if ctx.Err() != nil || time.Since(began) > outageLimit {
			break
		}
		rest(ctx, pause)
	}
	return waited
}

// persist calls f until it meets no outage. A schema that is missing or not whole is not waited for: the caller is to say so. It gives up when ctx ends or stop is closed, and after outageLimit.
func (e *Engine) persist(ctx context.Context, stop <-chan struct{}, doing string, f func() error) error {
	err := f()
	pause := firstPause
	for began := time.Now(); err != nil && store.IsOutage(err) && !store.IsSchemaAway(err) && ctx.Err() == nil && time.Since(began) < outageLimit; err = f() {
		if pause == firstPause {
			e.options.Log.Warn("the database failed a statement; it is tried again", "doing", doing, "error", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-stop:
			return err
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
	return err
}
