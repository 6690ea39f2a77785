package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// Info is one attempt at a job of any type, as middleware and the error handler see it.
type Info struct {
	ID, OrgID string
	// Type is the type under which the job was enqueued: an alias, or the payload's own. Owner is its
	// Policy's.
	Type, Owner string
	// Attempt is the number of this attempt, from 1; MaxAttempts the number of the last one.
	Attempt, MaxAttempts int
	Priority             models.Priority
	IdempotencyKey       string
	// Payload is as it was enqueued. Do not change it.
	Payload    json.RawMessage
	EnqueuedAt time.Time

	reads reads
}

// Links are those that the job was enqueued with, read from the database.
func (i *Info) Links(ctx context.Context) ([]queue.Link, error) { return i.reads.links(ctx, i.ID) }

// EarlierAttempts are the attempts before this one that are on record, the latest first, 100 at
// most, read from the database.
func (i *Info) EarlierAttempts(ctx context.Context) ([]EarlierAttempt, error) {
	return i.reads.attempts(ctx, i.ID)
}

// Middleware is called in the place of a handler of single jobs. It calls next, once, to go on:
// next calls the middleware after it, and at last the handler, with the context that it is given,
// which should be made of ctx. What the middleware returns counts as the handler's result: an error
// of next may be replaced or dropped, and a middleware that does not call next ends the attempt
// without the handler.
//
// It runs outside of transactions. What the handler passes to Job.InTx runs when all middleware has
// returned, if that result is nil. A payload that does not match its schema is an error of next. A
// panic of a middleware is one of the handler.
type Middleware func(ctx context.Context, job *Info, next func(ctx context.Context) error) error

// BulkMiddleware is Middleware for the calls of bulk handlers: tx is the transaction that completes
// the jobs. What next returns is what a BulkFunc does, with one error, or nil, for each of the
// jobs.
type BulkMiddleware func(ctx context.Context, tx pgx.Tx, jobs []*Info,
	next func(ctx context.Context) ([]error, error)) ([]error, error)

// Use adds middleware around the handlers of every type, also of those that are registered later.
// The first one that was added is the outermost. It panics when a worker uses the registry already,
// or one of them is nil.
func (r *Registry) Use(middleware ...Middleware) {
	r.mayChange("Use")
	for _, m := range middleware {
		if m == nil {
			panic("jobs: a middleware is nil: give the function that is to be called")
		}
	}
	r.middleware = append(r.middleware, middleware...)
}

// UseBulk is Use for bulk handlers.
func (r *Registry) UseBulk(middleware ...BulkMiddleware) {
	r.mayChange("UseBulk")
	for _, m := range middleware {
		if m == nil {
			panic("jobs: a middleware is nil: give the function that is to be called")
		}
	}
	r.bulkMiddleware = append(r.bulkMiddleware, middleware...)
}

// mayChange panics when a worker uses the registry already.
func (r *Registry) mayChange(what string) {
	if r.started.Load() {
		panic(fmt.Sprintf("jobs: %s is called after the worker has started, which would not see it: call it before Run",
			what))
	}
}

// errNextTwice: a middleware called next again.
var errNextTwice = errors.New("a middleware called next a second time: the handler is called once an attempt")

// through calls middleware from the outermost inwards, and then last.
func through[R any](ctx context.Context, n int,
	call func(i int, ctx context.Context, next func(context.Context) (R, error)) (R, error),
	last func(ctx context.Context) (R, error),
) (R, error) {
	var step func(i int, ctx context.Context) (R, error)
	step = func(i int, ctx context.Context) (R, error) {
		if i == n {
			return last(ctx)
		}
		called := false
		return call(i, ctx, func(ctx context.Context) (R, error) {
			if called {
				var none R
				return none, errNextTwice
			}
			called = true
			return step(i+1, ctx)
		})
	}
	return step(0, ctx)
}

// single calls the handler of one job, within the middleware.
func (r *Registry) single(ctx context.Context, info func() *Info, handle func(ctx context.Context) error) error {
	if len(r.middleware) == 0 {
		return handle(ctx)
	}
	job := info()
	_, err := through(ctx, len(r.middleware),
		func(i int, ctx context.Context, next func(context.Context) (struct{}, error)) (struct{}, error) {
			return struct{}{}, r.middleware[i](ctx, job, func(ctx context.Context) error {
				_, err := next(ctx)
				return err
			})
		}, func(ctx context.Context) (struct{}, error) { return struct{}{}, handle(ctx) })
	return err
}

// bulk calls a bulk handler, within the middleware.
func (r *Registry) bulk(ctx context.Context, tx pgx.Tx, infos func() []*Info,
	handle func(ctx context.Context) ([]error, error),
) ([]error, error) {
	if len(r.bulkMiddleware) == 0 {
		return handle(ctx)
	}
	jobs := infos()
	errs, err := through(ctx, len(r.bulkMiddleware),
		func(i int, ctx context.Context, next func(context.Context) ([]error, error)) ([]error, error) {
			return r.bulkMiddleware[i](ctx, tx, jobs, next)
		}, handle)
	if err == nil && errs == nil {
		errs = make([]error, len(jobs))
	}
	if err == nil && len(errs) != len(jobs) {
		return nil, fmt.Errorf("a middleware returned %d results for %d jobs: return one for each, or nil", len(errs),
			len(jobs))
	}
	return errs, err
}
