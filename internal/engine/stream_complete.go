package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

const (
	// completeTries is how often the completing transaction of one attempt may fail, once the handler's part of it has begun, while
	// the database answers. Then it is the job's own doing, and the attempt is counted.
	completeTries = 5
	// maxUncounted is how often in a row an attempt may be put off uncounted because of the database; the next time it is counted.
	maxUncounted = 10
	// uncountedDelay is until an attempt that was not counted is made again.
	uncountedDelay = time.Second
)

// completion runs what a handler wants in the transaction that completes its job. The handler has ended well, so the transaction is
// tried again for as long as the job is the turn's: a connection that was cut, an outage and a lost race count as no attempt.
type completion struct {
	*stream
	call    *call
	timeout time.Duration
	job     store.Job
	attempt Attempt
	// begun says that the last try came to the handler's part.
	begun bool
}

// run returns what the job was settled as. A job that was cancelled meanwhile ends as that, and nothing of the handler's is done; of
// one that was lost nothing is done either, and nothing is settled. ctx is the handler's, work ends with the turn.
func (c *completion) run(ctx, work context.Context) (store.Settled, error) {
	pause := firstSkip
	failed, gone := 0, 0
	cancel := func() {}
	defer func() { cancel() }()
	for began := time.Now(); ; pause = min(2*pause, longestPause) {
		settled, err := c.try(ctx)
		switch {
		case err == nil:
			return settled, nil
		case errors.Is(err, store.ErrLeaseLost):
			return c.closeUncompleted(ctx, c.job)
		case ownTrouble(err), work.Err() != nil, errors.Is(ctx.Err(), context.Canceled):
			return nil, err
		case errors.Is(err, store.ErrRowHeld):
			if time.Since(began) > settleLimit {
				return nil, err
			}
		case !isConflict(err) && !store.IsOutage(err):
			return nil, &notCompletedError{tries: failed + 1, cause: err}
		case c.away(work, c.call), store.IsSchemaAway(err) && time.Since(began) < outageLimit:
			// That was no try, unless it is the job's own doing: then the database is gone each time.
			if c.begun {
				gone++
			}
			if gone >= maxUncounted {
				return nil, &notCompletedError{tries: gone, cause: err}
			}
		case ctx.Err() != nil:
			return nil, late(c.timeout, err)
		case c.begun:
			if failed++; failed >= completeTries && (!isConflict(err) || time.Since(began) > lockPatience) {
				return nil, &notCompletedError{tries: failed, cause: err}
			}
		}
		rest(work, pause)
		cancel()
		ctx, cancel = c.anew(work, c.call, c.timeout) //nolint:fatcontext // it is made of work each time
	}
}

// away says whether the database was away, and waits until it is back. The call is not given up meanwhile.
func (t *turn) away(work context.Context, c *call) bool {
	t.mu.Lock()
	c.deadline = time.Now().Add(outageLimit)
	t.mu.Unlock()
	return t.engine.awaitDatabase(work)
}

// anew is a context for one more try of a call, which may take as long as the first.
func (t *turn) anew(work context.Context, c *call, timeout time.Duration) (context.Context, context.CancelFunc) {
	deadline := time.Now().Add(timeout)
	ctx, cancel := context.WithDeadline(work, deadline)
	t.mu.Lock()
	defer t.mu.Unlock()
	c.cancel, c.deadline = cancel, deadline
	return ctx, cancel
}

// late says that an attempt took longer than it may.
func late(timeout time.Duration, err error) error {
	return fmt.Errorf("%w (%s): %w: %w", errTimeout, timeout, context.DeadlineExceeded, err)
}

// try returns ErrLeaseLost, and nothing is done, when the job is no longer the turn's or is to be cancelled, and ErrRowHeld when
// another transaction holds its row for long.
//
// The handler's part may take longer than the turn: meanwhile the job may be handed over to another identity. The settlement reads
// the identity when it begins, and no hand-over comes between that and the commit.
func (c *completion) try(ctx context.Context) (settled store.Settled, err error) {
	locked, inTx := false, true
	c.begun = false
	defer func() {
		if locked {
			c.handover.RUnlock()
		}
	}()
	err = c.engine.store.InTx(ctx, func(tx pgx.Tx) (err error) {
		defer recovered(&err)
		c.begun = true
		if c.attempt.Result, err = c.attempt.InTx(ctx, tx); err != nil {
			return ownError(tx, err)
		}
		inTx = false
		c.handover.RLock()
		locked = true
		settlements := []store.Settlement{c.attempt.settlement(c.job)}
		settled, err = c.engine.store.SettleUnlocked(ctx, tx, c.identity(), settlements, lockPatience)
		return err
	})
	if !inTx && store.IsLockTimeout(err) {
		err = fmt.Errorf("%w: %w", store.ErrRowHeld, err)
	}
	return settled, err
}

// ownError marks what a handler returned from within a transaction as its own, unless the transaction itself has failed in a way
// that is not the handler's doing.
func ownError(tx pgx.Tx, err error) error {
	if tx.Conn().IsClosed() || isConflict(err) {
		return err
	}
	return &processorError{err}
}

// notCompletedError says that the transaction that completes a job cannot be committed, for a reason that comes back each time.
type notCompletedError struct {
	tries int
	cause error
}

func (e *notCompletedError) Error() string {
	return fmt.Sprintf("the transaction that completes the job failed %d times, the last time with: %v", e.tries, e.cause)
}

func (e *notCompletedError) Unwrap() error { return e.cause }

// ErrorCode is the code of an attempt that ended so.
func (*notCompletedError) ErrorCode() models.ErrorCode { return models.CodeDatabaseError }

// notCompleted is the attempt of a job whose transaction failed with err. What is not the job's doing is not counted.
func (s *stream) notCompleted(work context.Context, j store.Job, err error) Attempt {
	var always *notCompletedError
	counted := s.engine.handlers.Failed(j, err)
	if ownTrouble(err) || errors.As(err, &always) || !errors.Is(err, store.ErrRowHeld) && !isConflict(err) && !store.IsOutage(err) {
		return counted
	}
	return s.uncounted(work, j, Attempt{Outcome: models.OutcomeRescheduled, Code: models.CodeDatabaseError, Message: err.Error(), Delay: uncountedDelay}, counted)
}

// uncounted returns the attempt that is put off because of the database, but the counted one when that has happened too often in a
// row: what looks like an outage each time may be the job's own doing, and must end.
func (s *stream) uncounted(work context.Context, j store.Job, putOff, counted Attempt) Attempt {
	n, err := s.engine.store.PutOff(context.WithoutCancel(work), j.ID, j.Attempt)
	if err != nil || n < maxUncounted {
		return putOff
	}
	counted.Code = models.CodeDatabaseError
	counted.Message = fmt.Sprintf("the attempt was put off %d times because of the database, the last time with: %s", n, putOff.Message)
	return counted
}

// closeUncompleted settles a job that could not be completed because it is to be cancelled. Without an error and without a
// settlement it is no longer the turn's.
func (s *stream) closeUncompleted(ctx context.Context, j store.Job) (store.Settled, error) {
	pause := firstSkip
	for began := time.Now(); ; pause = min(2*pause, skippedPause) {
		settled, done, err := s.settleLocked(ctx, []ended{{job: j, attempt: Attempt{Outcome: models.OutcomeCancelled}}})
		if err != nil || done[j.ID] {
			return settled, err
		}
		left, err := s.leftOver(ctx, []ended{{job: j, since: began}}, nil)
		if err != nil || len(left) == 0 {
			return nil, err
		}
		if time.Since(began) > lockPatience || ctx.Err() != nil {
			return nil, store.ErrRowHeld
		}
		time.Sleep(pause)
	}
}
