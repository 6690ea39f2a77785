package engine

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// complete completes what has ended in one transaction, and returns what another transaction holds
// locked and is still the turn's. With an error it returns what may not be completed.
func (c completing) complete(work context.Context, all []ended) ([]ended, error) {
	done, err := c.try(work, all)
	switch {
	case err != nil && isConflict(err):
		return c.leftOver(work, all, nil)
	case err != nil && store.IsUnstorable(err):
		// One of them has something that cannot be stored: each for itself.
		return c.each(work, all)
	case err != nil:
		return all, err
	}
	return c.leftOver(work, all, done)
}

// leftOver returns those that are not done and still the turn's. With an error it returns all that
// are not done.
func (c completing) leftOver(work context.Context, all []ended, done map[string]bool) ([]ended, error) {
	if len(done) == len(all) {
		return nil, nil
	}
	ids, err := c.engine.kind.Held(context.WithoutCancel(work), c.leases.heldBy())
	held := setOf(ids)
	var kept []ended
	for _, e := range all {
		if !done[e.job.ID] && (err != nil || held[e.job.ID] && time.Since(e.since) < completeLimit) {
			kept = append(kept, e)
		}
	}
	return kept, err
}

// each completes each job for itself, without its result if that cannot be stored; if anything else
// that its handler said cannot be stored, it fails with that.
func (c completing) each(work context.Context, all []ended) ([]ended, error) {
	done := make(map[string]bool, len(all))
	for i, e := range all {
		one, err := c.try(work, []ended{e})
		if err != nil && store.IsUnstorable(err) && e.attempt.Result != nil {
			_ = e.attempt.Leave(nil, &UnstoredError{err.Error()})
			one, err = c.try(work, []ended{e})
		}
		if err != nil && store.IsUnstorable(err) {
			c.engine.options.Log.Error("what a handler said could not be stored",
				"job", e.job.ID, "type", e.job.Type, "error", err)
			took := e.attempt.took
			e.attempt = c.engine.failed(e.job, ErrUnstorable)
			e.attempt.took = took
			e.attempt = c.engine.review(work, e.job, e.attempt)
			one, err = c.try(work, []ended{e})
		}
		if err != nil && !isConflict(err) {
			return all[i:], err
		}
		maps.Copy(done, one)
	}
	return c.leftOver(work, all, done)
}

// try completes those whose rows it can lock, and says which.
func (c completing) try(work context.Context, all []ended) (done map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), completeLimit)
	defer cancel()
	done, err = c.allOrNone(ctx, all)
	if errors.Is(err, store.ErrLeaseLost) || errors.Is(err, store.ErrRowHeld) {
		done, err = c.unlocked(ctx, all)
	}
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		if done[e.job.ID] {
			c.engine.room.completed(e.job.Queue)
		}
	}
	return done, nil
}

// allOrNone completes all, or, if it cannot do that, none.
func (c completing) allOrNone(ctx context.Context, all []ended) (done map[string]bool, err error) {
	completions := make([]store.Completion, len(all))
	done = make(map[string]bool, len(all))
	for i, e := range all {
		completions[i] = e.attempt.completion(e.job)
		done[e.job.ID] = true
	}
	by := c.leases.heldBy()
	var completed store.Completed
	err = c.engine.kind.InTx(ctx, func(tx pgx.Tx) (err error) {
		how := store.Access{Wait: completePatience, Commit: true}
		completed, err = c.engine.kind.Complete(ctx, tx, by, completions, how)
		return err
	})
	if err == nil {
		c.committed(by, completions, completed, 0)
	}
	return done, err
}

// unlocked completes those that are still the turn's and that no other transaction holds locked;
// what is to be cancelled is cancelled. Of a job that the turn has leased anew since, for another
// attempt, nothing is completed.
func (c completing) unlocked(ctx context.Context, all []ended) (done map[string]bool, err error) {
	kind := c.engine.kind
	byID := make(map[string]ended, len(all))
	ids := make([]string, len(all))
	for i, e := range all {
		byID[e.job.ID], ids[i] = e, e.job.ID
	}
	done = make(map[string]bool, len(all))
	by := c.leases.heldBy()
	var completions []store.Completion
	var completed store.Completed
	err = c.engine.kind.InTx(ctx, func(tx pgx.Tx) error {
		locked, err := kind.LockChunk(ctx, tx, by, ids)
		if err != nil || len(locked) == 0 {
			return err
		}
		for _, l := range locked {
			done[l.ID] = true
			e := byID[l.ID]
			switch {
			case !sameAttempt(l, e.job):
			case l.CancelRequested:
				cancelled := store.Completion{Job: e.job, Outcome: models.OutcomeCancelled, Took: e.attempt.took}
				completions = append(completions, cancelled)
			case e.onlyCancelled:
				return errStillHeld
			default:
				completions = append(completions, e.attempt.completion(e.job))
			}
		}
		if len(completions) > 0 {
			completed, err = kind.Complete(ctx, tx, by, completions, store.Access{})
		}
		return err
	})
	if err == nil {
		c.committed(by, completions, completed, 0)
	}
	return done, err
}

// close completes a job that could not be completed because it is to be cancelled, or is no longer
// the turn's. It returns errStillHeld when it is the turn's, and is not to be cancelled.
func (c completing) close(ctx context.Context, j store.Job) error {
	pause := firstSkip
	for began := time.Now(); ; pause = min(2*pause, skippedPause) {
		done, err := c.unlocked(ctx, []ended{{job: j, onlyCancelled: true}})
		if err != nil || done[j.ID] {
			return err
		}
		left, err := c.leftOver(ctx, []ended{{job: j, since: began}}, nil)
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Since(began) > lockPatience || ctx.Err() != nil {
			return store.ErrRowHeld
		}
		time.Sleep(pause)
	}
}

// completeWorked completes what a handler has worked in the transaction. The handler has returned:
// what takes time now is the database, also when the handler's time is over.
func (t *turn) completeWorked(
	work context.Context, tx pgx.Tx, by store.Turn, completions []store.Completion, a store.Access,
) (store.Completed, error) {
	ctx, cancel := context.WithTimeout(work, completeLimit)
	defer cancel()
	return t.engine.kind.Complete(ctx, tx, by, completions, a)
}

// committed takes in how attempts have ended, by a transaction that is committed. took is how long
// the call took for attempts that do not say so themselves.
func (t *turn) committed(by store.Turn, all []store.Completion, led store.Completed, took time.Duration) {
	t.sayUnstored(all)
	t.tally.count(led)
	t.engine.observer.completed(by, all, led, took)
}

// sayUnstored logs which jobs were completed without their results.
func (t *turn) sayUnstored(completions []store.Completion) {
	for i := range completions {
		if c := &completions[i]; c.Code == models.CodeResultNotStored && c.Outcome == models.OutcomeCompleted {
			t.engine.options.Log.Warn(c.Message, "job", c.Job.ID, "org", c.Job.OrgID, "type", c.Job.Type)
		}
	}
}
