package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// While the database is unavailable, handlers run on, jobs that have ended are kept until they can
// be completed, and the runner repeats its own statements after a short pause. It gives up after
// store.OutageLimit, or when it was told to stop and the grace period is over.

const (
	// A statement of Daybook's own that met an outage is repeated after firstPause, and then after
	// twice as long each time, up to longestPause.
	firstPause   = 10 * time.Millisecond
	longestPause = 500 * time.Millisecond
	// maxUncounted is how often in a row an attempt may be put off uncounted because of the
	// database; the next time it is counted.
	maxUncounted = 10
	// uncountedDelay is the delay before an attempt that was not counted is repeated.
	uncountedDelay = time.Second
)

func rest(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// persist calls f until it meets no outage. It returns at once when the schema is missing or not
// whole: its caller reports that. It gives up when ctx ends or stop is closed, and after
// store.OutageLimit.
func (e *Engine) persist(ctx context.Context, stop <-chan struct{}, doing string, f func() error) error {
	err := f()
	pause, began := firstPause, time.Now()
	passes := func() bool { return store.IsTransient(err) && !store.IsSchemaMismatch(err) }
	for ; err != nil && passes() && ctx.Err() == nil && time.Since(began) < store.OutageLimit; err = f() {
		if pause == firstPause {
			e.options.Log.Warn("the database failed a statement; it is tried again",
				"doing", doing, "error", store.Advised(err))
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

// tell says how a statement that is tried again in an outage has ended, if that is asked for.
func tell(trouble func(error), err error) {
	if trouble != nil && (err == nil || store.IsTransient(err)) {
		trouble(err)
	}
}

// awaitDatabase waits, when the database does not answer, until it does, and says whether it had
// to. It gives up when ctx ends, and after store.OutageLimit.
func (e *Engine) awaitDatabase(ctx context.Context) (waited bool) {
	pause := firstPause
	for began := time.Now(); !e.kind.Answers(ctx); pause = min(2*pause, longestPause) {
		waited = true
		if ctx.Err() != nil || time.Since(began) > store.OutageLimit {
			break
		}
		rest(ctx, pause)
	}
	return waited
}

// unavailable reports whether the database was unavailable to a call that failed with err, and
// waits until it answers again. A try that failed so does not count. The call is not abandoned
// meanwhile.
func (t *turn) unavailable(work context.Context, c *call, err error, began time.Time) bool {
	t.calls.spare(c)
	if store.IsSchemaMismatch(err) || store.IsExhausted(err) {
		rest(work, longestPause)
		return time.Since(began) < store.OutageLimit
	}
	return t.engine.awaitDatabase(work)
}

// trouble is how often the database has failed statements of one sort.
type trouble struct {
	doing string
	// since is when they began to fail; zero: they do not. until is when the next may be made,
	// pause the pause before it.
	since, until time.Time
	pause        time.Duration
	// verified: since the last failure it is known which jobs are still the turn's.
	verified bool
}

// troubleOver is how long after its last failure a trouble counts as over, if no statement has
// succeeded before.
const troubleOver = time.Minute

func (t *trouble) healthy(now time.Time) bool { return !now.Before(t.until) }

// retryLater takes in how a statement ended. It returns the error only if the turn is to end with
// it.
func (r *runner) retryLater(work context.Context, t *trouble, err error) error {
	if err == nil {
		return nil
	}
	tell(r.request.Trouble, err)
	now := time.Now()
	log := r.engine.options.Log.With("turn", r.leases.heldBy().ID, "doing", t.doing)
	t.verified = false
	if t.since.IsZero() || now.Sub(t.until) > troubleOver {
		t.since, t.pause = now, firstPause
		if work.Err() == nil {
			log.Warn("the database failed a statement; jobs that run go on, and it is tried again",
				"error", store.Advised(err))
		}
	} else {
		t.pause = min(2*t.pause, longestPause)
	}
	if work.Err() != nil || now.Sub(t.since) > store.OutageLimit {
		return err
	}
	t.until = now.Add(t.pause)
	r.wakeAt(t.until)
	return nil
}

// recovered takes in that a statement of the sort has succeeded.
func (t *turn) recovered(of *trouble) {
	if of.since.IsZero() {
		return
	}
	tell(t.request.Trouble, nil)
	t.engine.options.Log.Info("the database answers again", "turn", t.leases.heldBy().ID, "doing", of.doing,
		"after", time.Since(of.since).Round(time.Millisecond))
	*of = trouble{doing: of.doing}
}

// late says so of an attempt that failed with err.
func late(timeout time.Duration, err error) error {
	return fmt.Errorf("%w (%s): %w", errTimeout, timeout, err)
}

// isOwn reports whether err is the handler's own, even when it looks like an error of the database.
func isOwn(err error) bool {
	var own *ownError
	return errors.Is(err, errTimeout) || errors.As(err, &own)
}

// isConflict reports whether a transaction lost against another one and may simply be tried again.
func isConflict(err error) bool {
	return store.IsConflict(err) || errors.Is(err, store.ErrLeaseLost)
}

// isTransient reports whether a transaction that failed with err is worth another try, or would be
// when the database is back.
func isTransient(err error) bool { return !isOwn(err) && (isConflict(err) || store.IsTransient(err)) }

const (
	// lockedPause is how long jobs are left alone whose tables another transaction holds locked.
	// They are given back, uncounted: no job is to blame for a LOCK TABLE or an ALTER TABLE. They
	// come back until the lock is gone; each time they hold a connection for no longer than their
	// Handling's LockWait.
	lockedPause = 2 * time.Second
	// sayLockedEvery is the pause between two log lines about that.
	sayLockedEvery = time.Minute
)

func (e *Engine) sayLocked(cause error) {
	if e.saidLocked.begin(time.Now(), sayLockedEvery) > 0 {
		return
	}
	e.options.Log.Warn("another transaction holds a table locked; its jobs wait, uncounted (pg_locks names the session)",
		"error", cause)
}
