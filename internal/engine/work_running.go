package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Running is what a handler may ask for the job that it works: what is kept under the job's lease.
// A picked job gets its lease first. It is safe for concurrent use.
type Running struct {
	single
	job store.Job
	// leased: something was asked for that needs a lease.
	leased atomic.Bool
}

// Progress stores what a running job says of itself.
func (r *Running) Progress(ctx context.Context, progress []byte) error {
	return store.Await(ctx, store.OutageLimit, func(ctx context.Context) error {
		return r.underLease(ctx, func(turn store.Turn) error {
			return r.engine.kind.SetProgress(ctx, turn, r.job, progress)
		})
	})
}

// underLease calls f with the turn that has the job leased, and keeps that from changing meanwhile.
func (r *Running) underLease(ctx context.Context, f func(turn store.Turn) error) error {
	r.leased.Store(true)
	if err := r.call.awaitLease(ctx); err != nil {
		return err
	}
	turn, free := r.leases.pin()
	defer free()
	return f(turn)
}

// KeepStep keeps the result of a step. What the step did is done: so it is tried again in an
// outage, and once more when ctx has ended meanwhile.
func (r *Running) KeepStep(ctx context.Context, step store.Step) error {
	return untilKept(ctx, func() error {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), completeLimit)
		defer cancel()
		return r.underLease(short, func(turn store.Turn) error {
			return r.engine.kind.KeepStep(short, turn, r.job, step)
		})
	})
}

// untilKept calls f until it meets no outage, and loses no race against another transaction more
// often than a completion may.
func untilKept(ctx context.Context, f func() error) error {
	conflicts, began := 0, time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := f()
		if isConflict(err) {
			conflicts++
		}
		switch {
		case err == nil, isOwn(err), errors.Is(err, store.ErrLeaseLost), conflicts >= completeTries:
			return err
		case !store.IsTransient(err) && !errors.Is(err, store.ErrRowHeld), ctx.Err() != nil,
			time.Since(began) > store.OutageLimit:
			return store.Unavailable(ctx, err)
		}
		rest(ctx, pause)
	}
}

// StepInTx runs f in a transaction and keeps the step that it returns with what it has written: both
// commit, or none. It returns the result that was kept. A try that lost a race, or whose connection
// was cut before it is known that it committed, is made again, and f is called again for it.
func (r *Running) StepInTx(ctx context.Context, f func(ctx context.Context, tx pgx.Tx) (store.Step, error),
) (json.RawMessage, error) {
	r.leased.Store(true)
	if err := store.Await(ctx, store.OutageLimit, r.call.awaitLease); err != nil {
		return nil, err
	}
	var kept json.RawMessage
	var sent *store.Step // a COMMIT was sent with it, and the answer was lost
	err := untilKept(ctx, func() error {
		if sent != nil {
			found, err := r.engine.kind.StepKept(ctx, r.job, *sent)
			if kept = found; err != nil || found != nil {
				return err
			}
		}
		step, committing, err := r.tryStep(ctx, f)
		kept = step.Result
		if errors.Is(err, store.ErrLeaseLost) && sent != nil {
			// The COMMIT before was still under way.
			if found, _ := r.engine.kind.StepKept(ctx, r.job, *sent); found != nil {
				kept, err = found, nil
			}
		}
		if committing && err != nil {
			sent = &step
		}
		return err
	})
	if own, ok := errors.AsType[*ownError](err); ok {
		err = own.err
	}
	return kept, err
}

// tryStep is one try of StepInTx. committing says that it came to the COMMIT. Who holds the job is
// pinned until that is over.
func (r *Running) tryStep(ctx context.Context, f func(ctx context.Context, tx pgx.Tx) (store.Step, error),
) (step store.Step, committing bool, err error) {
	err = r.engine.kind.InTx(ctx, func(tx pgx.Tx) (err error) {
		if step, err = f(ctx, tx); err != nil {
			return Own(ctx, tx, err)
		}
		if err = untouched(ctx, tx, nil); err != nil {
			return err
		}
		turn, free, ok := r.leases.pinWithin(pinLimit)
		if !ok {
			return store.Unavailable(ctx, errMoving)
		}
		defer free()
		committing = true
		return r.engine.kind.CommitStep(ctx, tx, turn, r.job, step, lockPatience)
	})
	return step, committing, err
}
