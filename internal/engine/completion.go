package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
)

// completeTries is how often the completing transaction of one attempt may fail, once the handler's part of it has begun, while
// the database answers. Then it is the job's own doing, and the attempt is counted.
const completeTries = 5

// errMoving: the job's turn is being handed over, and that takes long. The transaction is undone, and gives its connection to the hand-over.
var errMoving = fmt.Errorf("the turn's jobs are being handed over: %w", context.DeadlineExceeded)

// completion runs what a handler wants in the transaction that completes its job. The handler has ended well, so the transaction is
// tried again for as long as the job is the turn's: a connection that was cut, an outage and a lost race count as no attempt.
type completion struct {
	*runner
	call    *call
	timeout time.Duration
	job     store.Job
	attempt Attempt
	// begun says that the last try came to the handler's part, handling that it ended in it.
	begun, handling bool
	// again: a try has failed. From then on transactions begin by themselves, so that it is known whether the handler's first statement ends the connection.
	again bool
}

// run completes the job. A job that was cancelled meanwhile ends as that, and nothing of the handler's is done; of
// one that was lost nothing is done either, and nothing is counted. work ends with the turn. Each try has the whole timeout for the handler's part.
func (c *completion) run(work context.Context) error {
	pause := firstSkip
	failed, gone := 0, 0
	cancel := func() {}
	defer func() { cancel() }()
	for began := time.Now(); ; pause = min(2*pause, longestPause) {
		cancel()
		var ctx *tryContext
		ctx, cancel = c.calls.try(work, c.call, c.timeout)
		err := c.try(work, ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errCancelRequested):
			// The job is cancelled, unless a later request has taken that back.
			if closed := c.closeUncompleted(work, c.job); !errors.Is(closed, errStillHeld) {
				return closed
			}
			return err
		case errors.Is(err, store.ErrLeaseLost):
			if err = c.closeUncompleted(work, c.job); !errors.Is(err, errStillHeld) {
				return err
			}
			if failed++; failed >= completeTries {
				return &notCompletedError{tries: failed, cause: err}
			}
		case isOwn(err), work.Err() != nil, errors.Is(ctx.Err(), context.Canceled):
			return err
		case errors.Is(err, store.ErrRowHeld):
			if waited := time.Since(began); waited > store.OutageLimit || waited > completeLimit && !store.IsTableLock(err) {
				return err
			}
		case !isConflict(err) && !store.IsTransient(err):
			return &notCompletedError{tries: failed + 1, cause: err}
		case c.unavailable(work, c.call, err, began):
			// That was no try, unless it is the job's own doing: then the database is gone each time.
			if c.begun && !store.IsExhausted(err) {
				gone++
			}
			if gone >= maxUncounted {
				return &notCompletedError{tries: gone, cause: err}
			}
		case store.IsExhausted(err), store.IsUnavailable(err), !c.handling && errors.Is(err, context.DeadlineExceeded):
			// The disk is full, or statements of Daybook's own were held up, by a lock, by a commit that waits for a standby, or by a pool without a connection.
			if time.Since(began) > store.OutageLimit {
				return err
			}
		case ctx.Err() != nil:
			return late(c.timeout, err)
		case c.begun:
			if failed++; failed >= completeTries && (!isConflict(err) || time.Since(began) > lockPatience) {
				return &notCompletedError{tries: failed, cause: err}
			}
		}
		rest(work, pause)
	}
}

// try returns ErrLeaseLost, and nothing is done, when the job is no longer the turn's or is to be cancelled, and ErrRowHeld when
// another transaction holds its row for long.
//
// The handler's part may take longer than the turn: meanwhile the job may be handed over to a detached turn. So who holds the job is read
// when that part has ended, and pinned until the commit; the sink is told when nothing is pinned any more. What ctx leaves of its time is for the handler's part:
// the completion has completeLimit.
func (c *completion) try(work context.Context, ctx *tryContext) error {
	var turn store.Turn
	var completions []store.Completion
	var completed store.Completed
	c.begun, c.handling = false, false
	err := c.engine.kind.InTx(ctx, func(tx pgx.Tx) (err error) {
		defer recovered(&err)
		if c.again {
			if err := store.BeginNow(ctx, tx); err != nil {
				return err
			}
		}
		c.handling = true
		ctx.handle()
		err = c.attempt.Leave(c.attempt.InTx(span.Inherit(ctx, c.job.TraceParent), tx))
		if ctx.handled() && err != nil {
			return errCancelRequested
		}
		begun, notBegun := store.HasBegun(tx)
		if c.begun = begun; notBegun != nil && ctx.Err() == nil && !endedItself(ctx, notBegun) {
			c.handling = false
			return notBegun
		}
		if err != nil {
			return Own(ctx, tx, err)
		}
		if err = untouched(ctx, tx, nil); err != nil {
			return err
		}
		c.handling = false
		c.calls.spare(c.call)
		held, free, ok := c.holder.pinWithin(pinLimit)
		if !ok {
			c.begun = false // that is not the handler's doing
			return store.Unavailable(work, errMoving)
		}
		defer free()
		c.attempt.took = time.Since(c.call.began)
		turn, completions = held, []store.Completion{c.attempt.completion(c.job)}
		completed, err = c.completeWorked(work, tx, turn, completions, store.Access{Wait: lockPatience, Commit: true})
		return err
	})
	c.again = c.again || err != nil
	switch {
	case err == nil:
		c.committed(turn, completions, completed, 0)
	case c.begun && !c.handling && store.IsLockTimeout(err):
		err = fmt.Errorf("%w: %w", store.ErrRowHeld, err)
	}
	return err
}

// errStillHeld says that a completion met a lost lease, and that the turn has the job all the same: two servers answer, one of which was a primary until a
// short time ago.
var errStillHeld = errors.New("the database says that the lease is lost, and that it is held: was it replaced by another server that still answers?")

// closeUncompleted completes a job that could not be completed because it is to be cancelled, or is no longer the turn's. It returns errStillHeld when it is the
// turn's, and is not to be cancelled.
func (r *runner) closeUncompleted(ctx context.Context, j store.Job) error {
	pause := firstSkip
	for began := time.Now(); ; pause = min(2*pause, skippedPause) {
		done, err := r.completeLocked(ctx, []ended{{job: j, onlyCancelled: true}})
		if err != nil || done[j.ID] {
			return err
		}
		left, err := r.leftOver(ctx, []ended{{job: j, since: began}}, nil)
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Since(began) > lockPatience || ctx.Err() != nil {
			return store.ErrRowHeld
		}
		time.Sleep(pause)
	}
}
