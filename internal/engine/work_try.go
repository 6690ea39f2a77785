package engine

import (
	"context"
	"errors"
	"sync/atomic"
)

// tryContext is the context of one try of a call. It knows whether a request to cancel the job has
// ended it. A cause (context.WithCancelCause) would say the same, and needs a second context for
// each job: an eighth of what a job that does nothing allocates.
type tryContext struct {
	context.Context
	cancel context.CancelFunc
	state  atomic.Int32
}

// What a tryContext is in. A request ends it while a handler runs, and not otherwise.
const (
	tryIdle = iota
	tryHandling
	tryAsked
)

// tryKey is under what a context has its tryContext.
type tryKey struct{}

// Value implements context.Context.
func (t *tryContext) Value(key any) any {
	if key == (tryKey{}) {
		return t
	}
	return t.Context.Value(key)
}

// handle says that the handler of one job begins, or what it has given to InTx.
func (t *tryContext) handle() { t.state.Store(tryHandling) }

// handled says that it has returned, after which a request to cancel the job is a matter of the
// completion, and reports whether one has come before.
func (t *tryContext) handled() (asked bool) { return !t.state.CompareAndSwap(tryHandling, tryIdle) }

// ask says that the job is to be cancelled, and reports whether the context is to end for it.
func (t *tryContext) ask() bool { return t.state.CompareAndSwap(tryHandling, tryAsked) }

// CancelRequested reports whether ctx, a handler's, has ended because a request cancelled the job.
func CancelRequested(ctx context.Context) bool {
	t, ok := ctx.Value(tryKey{}).(*tryContext)
	return ok && t.state.Load() == tryAsked && ctx.Err() != nil
}

// errCancelRequested says that a request to cancel the job has ended what was given to InTx.
var errCancelRequested = errors.New("a request has cancelled the job")
