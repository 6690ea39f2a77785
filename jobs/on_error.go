package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Failure is why an attempt failed, and what becomes of the job unless the error handler says
// otherwise.
type Failure struct {
	// Err is the handler's error, or one of Daybook's: a timeout, a payload that does not match its
	// schema, a completing transaction that failed.
	Err  error
	Code models.ErrorCode
	// Panic is what the handler panicked with, and Stack where; nil: it did not.
	Panic any
	Stack string
	// Final: the job becomes a dead letter. Otherwise it is tried again.
	Final bool
}

// Verdict is what an error handler says of a job.
type Verdict int

const (
	// Leave leaves it to the error, its code and the policy.
	Leave Verdict = iota
	// DeadLetter makes the job a dead letter now, also if attempts are left.
	DeadLetter
)

// ErrorHandler is told of each attempt that failed, and says what becomes of the job.
type ErrorHandler func(ctx context.Context, job *Info, f Failure) Verdict

// OnError has f told of each attempt of a handler that failed, before that is on record: also of
// panics and timeouts, not of jobs that are put off or cancelled, nor of attempts that are not
// counted. ctx ends when the worker is stopped. f must be quick: the job waits for it. The
// transaction of a bulk handler may be tried again, and f is told again then. Of a handler that
// does not return when its context ends f is told, and its verdict has no effect. An attempt that
// ended with its worker is told to no error handler: see queue.EventReclaimed. If f panics, its
// verdict is Leave, and the job's error says so.
//
// There is one error handler; a second call replaces it. It panics when a worker uses the registry
// already.
func (r *Registry) OnError(f ErrorHandler) {
	r.mayChange("OnError")
	r.onError = f
}

// panicked is the error of a handler that panicked.
type panicked struct {
	value any
	stack string
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

// Review implements the engine's Reviewer.
func (r working) Review(ctx context.Context, job store.Job, a engine.Attempt) (reviewed engine.Attempt) {
	t := r.types[job.Type]
	if r.onError == nil || t == nil {
		return a
	}
	f := Failure{Err: a.Cause, Code: a.Code, Final: a.Outcome == models.OutcomeFailed}
	if f.Err == nil {
		f.Err = errors.New(a.Message)
	}
	if p, ok := errors.AsType[*panicked](f.Err); ok {
		f.Panic, f.Stack = p.value, p.stack
	}
	reviewed = a
	defer func() {
		if p := recover(); p != nil {
			reviewed.Message += fmt.Sprintf("\nThe error handler panicked as well: %v", p)
		}
	}()
	plain, err := t.open(ctx, job)
	if err != nil {
		plain = job // that is why it failed
	}
	if r.onError(ctx, t.info(plain, r.reads(t, job)), f) == DeadLetter {
		reviewed.Outcome, reviewed.Delay = models.OutcomeFailed, 0
	}
	return reviewed
}
