package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Handlers are an application's. Whatever they do, they fail their own attempts: they may panic,
// end their goroutine, return errors whose methods panic, and end or spoil the transaction that
// they are lent.

// untouched says why a transaction that handlers were lent cannot be committed: what one of them
// said of its job, if a statement has failed.
func untouched(ctx context.Context, tx pgx.Tx, attempts []Attempt) error {
	ended := slices.IndexFunc(attempts, func(a Attempt) bool { return endedItself(ctx, a.Cause) })
	if ended >= 0 && tx.Conn().IsClosed() {
		return &ownError{attempts[ended].Cause}
	}
	err := store.Returned(tx)
	if err == nil {
		return nil
	}
	failed := slices.IndexFunc(attempts, func(a Attempt) bool { return a.Cause != nil })
	if failed >= 0 && !store.IsEnded(err) {
		err = attempts[failed].Cause
	}
	return Own(ctx, tx, err)
}

// errEndedGoroutine is the error of a handler that ends its goroutine.
var errEndedGoroutine = errors.New(
	"the handler ended its goroutine (runtime.Goexit, or t.FailNow of a test) instead of returning")

// inOwnGoroutine calls a handler in a goroutine of its own: one that ends its goroutine fails as
// one that panics does.
func inOwnGoroutine(f func() error) error { return <-startOwnGoroutine(f) }

// startOwnGoroutine is inOwnGoroutine that does not wait.
func startOwnGoroutine(f func() error) <-chan error {
	over := make(chan error, 1)
	go func() {
		var err error = &ownError{errEndedGoroutine}
		defer func() { over <- err }()
		defer recovered(&err)
		err = f()
	}()
	return over
}

// recovered turns a panic into an error that carries the stack. It is the handler's own.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = &ownError{fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
	}
}

// failed has the handlers say how an attempt ends that failed with err, whatever err's own methods
// do.
func (e *Engine) failed(j store.Job, err error) (a Attempt) {
	defer func() {
		if p := recover(); p != nil {
			a = e.handlers.Failed(j, fmt.Errorf("the error that the handler returned panicked when it was asked "+
				"for its text or its code (is it a nil pointer?): %v", p))
		}
	}()
	return e.handlers.Failed(j, err)
}

// review has the handlers say how an attempt ends that failed, where they are a Reviewer.
func (e *Engine) review(ctx context.Context, j store.Job, a Attempt) Attempt {
	if e.reviewer == nil || a.Outcome != models.OutcomeRetried && a.Outcome != models.OutcomeFailed {
		return a
	}
	return e.reviewed(ctx, j, a)
}

// reviewed calls the Reviewer. The other attempts, which are most, do not pay for what it keeps of
// their job.
func (e *Engine) reviewed(ctx context.Context, j store.Job, a Attempt) Attempt {
	reviewed := a
	err := inOwnGoroutine(func() error {
		reviewed = e.reviewer.Review(ctx, j, a)
		return nil
	})
	if err != nil {
		e.options.Log.Error("the error handler has failed: the attempt ends as if there were none",
			"job", j.ID, "org", j.OrgID, "type", j.Type, "error", err)
		return a
	}
	reviewed.took = a.took
	return reviewed
}
