package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

const (
	// gatherFor is how long the first of the jobs that have ended waits for others, to be completed together; gatherEnough are
	// not made to wait.
	gatherFor    = 2 * time.Millisecond
	gatherEnough = 100
	// completeLimit bounds the completion of jobs, so that a connection that went silent does not hold up the turn.
	completeLimit = 30 * time.Second
	// completePatience is how long a completion waits for a row that another transaction holds locked; lockPatience is the same for a
	// completion that commits a handler's own effects.
	completePatience = 100 * time.Millisecond
	lockPatience     = 3 * time.Second
	// heldPause is the pause before jobs are completed whose rows another transaction held.
	heldPause = 50 * time.Millisecond
)

// ended is a job whose attempt is over.
type ended struct {
	job     store.Job
	attempt Attempt
	// closed: there is nothing to complete any more.
	closed bool
	// since is when it was first to be completed.
	since time.Time
	// onlyCancelled: it is completed only if it is to be cancelled.
	onlyCancelled bool
}

// completed is the result of a completion.
type completed struct {
	// held could not be completed, because another transaction holds their rows, or because of err.
	held []ended
	err  error
}

// startCompleting completes what has ended, and what could not be completed before, in one transaction. While that goes on, more
// gathers for the next one.
func (r *runner) startCompleting(work context.Context) {
	if r.completing {
		return
	}
	now := time.Now()
	if !r.completions.well(now) {
		r.wakeAt(r.completions.until)
		return
	}
	retry := len(r.held) > 0 && !now.Before(r.heldUntil)
	switch ready := r.endedSince.Add(gatherFor); {
	case len(r.ended) == 0 && !retry:
		if len(r.held) > 0 {
			r.wakeAt(r.heldUntil)
		}
		return
	case !retry && r.active > 0 && len(r.ended) < gatherEnough && now.Before(ready):
		r.wakeAt(ready)
		return
	}
	all := r.ended
	if retry {
		all, r.held = append(r.held, all...), nil
	}
	r.ended = nil
	r.completing, r.inCompletion = true, all
	go func() {
		held, err := r.complete(work, all)
		r.completes <- completed{held: held, err: err}
	}()
}

// noteCompleted applies the result of a completion. Jobs that have ended are kept through an outage: their handlers are not called again.
func (r *runner) noteCompleted(work context.Context, c completed) error {
	r.completing, r.inCompletion = false, nil
	if len(c.held) > 0 {
		r.held, r.heldUntil = append(r.held, c.held...), time.Now().Add(heldPause)
	}
	if c.err == nil {
		r.recovered(&r.completions)
		return nil
	}
	for i := range r.held {
		r.held[i].since = time.Now()
	}
	r.heldUntil = time.Time{}
	return r.endure(work, &r.completions, c.err)
}

// complete completes what has ended in one transaction, and returns what another transaction holds locked and is still the turn's. With an
// error it returns what may not be completed.
func (r *runner) complete(work context.Context, all []ended) ([]ended, error) {
	done, err := r.tryComplete(work, all)
	switch {
	case err != nil && isConflict(err):
		return r.leftOver(work, all, nil)
	case err != nil && store.IsUnstorable(err):
		// One of them has something that cannot be stored: each for itself.
		return r.completeEach(work, all)
	case err != nil:
		return all, err
	}
	return r.leftOver(work, all, done)
}

// leftOver returns those that are not done and still the turn's. With an error it returns all that are not done.
func (r *runner) leftOver(work context.Context, all []ended, done map[string]bool) ([]ended, error) {
	if len(done) == len(all) {
		return nil, nil
	}
	ids, err := r.engine.kind.Held(context.WithoutCancel(work), r.holder.turn())
	held := setOf(ids)
	var kept []ended
	for _, e := range all {
		if !done[e.job.ID] && (err != nil || held[e.job.ID] && time.Since(e.since) < completeLimit) {
			kept = append(kept, e)
		}
	}
	return kept, err
}

// completeEach completes each job for itself, without its result if that cannot be stored; if anything else that its handler said
// cannot be stored, it fails with that.
func (r *runner) completeEach(work context.Context, all []ended) ([]ended, error) {
	done := make(map[string]bool, len(all))
	for i, e := range all {
		one, err := r.tryComplete(work, []ended{e})
		if err != nil && store.IsUnstorable(err) && e.attempt.Result != nil {
			_ = e.attempt.Leave(nil, &UnstoredError{err.Error()})
			one, err = r.tryComplete(work, []ended{e})
		}
		if err != nil && store.IsUnstorable(err) {
			r.engine.options.Log.Error("what a handler said could not be stored", "job", e.job.ID, "type", e.job.Type, "error", err)
			took := e.attempt.took
			e.attempt = r.engine.failed(e.job, ErrUnstorable)
			e.attempt.took = took
			e.attempt = r.engine.review(work, e.job, e.attempt)
			one, err = r.tryComplete(work, []ended{e})
		}
		if err != nil && !isConflict(err) {
			return all[i:], err
		}
		maps.Copy(done, one)
	}
	return r.leftOver(work, all, done)
}

// tryComplete completes those whose rows it can lock, and says which.
func (r *runner) tryComplete(work context.Context, all []ended) (done map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), completeLimit)
	defer cancel()
	done, err = r.completeAll(ctx, all)
	if errors.Is(err, store.ErrLeaseLost) || errors.Is(err, store.ErrRowHeld) {
		done, err = r.completeLocked(ctx, all)
	}
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		if done[e.job.ID] {
			r.engine.room.completed(e.job.Queue)
		}
	}
	return done, nil
}

// completeWorked completes what a handler has worked in the transaction. The handler has returned: what takes time now is the database, also when the handler's time is over.
func (r *runner) completeWorked(work context.Context, tx pgx.Tx, turn store.Turn, completions []store.Completion, a store.Access) (store.Completed, error) {
	ctx, cancel := context.WithTimeout(work, completeLimit)
	defer cancel()
	return r.engine.kind.Complete(ctx, tx, turn, completions, a)
}

// committed takes in how attempts have ended, by a transaction that is committed. took is how long the call took for attempts that do not say so themselves.
func (r *runner) committed(turn store.Turn, completions []store.Completion, completed store.Completed, took time.Duration) {
	r.sayUnstored(completions)
	r.tally.count(completed)
	r.engine.observer.completed(turn, completions, completed, took)
}

// completeAll completes all, or, if it cannot do that, none.
func (r *runner) completeAll(ctx context.Context, all []ended) (done map[string]bool, err error) {
	slices.SortFunc(all, func(a, b ended) int {
		return cmp.Or(cmp.Compare(a.job.OrgID, b.job.OrgID), cmp.Compare(a.job.ID, b.job.ID))
	})
	completions := make([]store.Completion, len(all))
	done = make(map[string]bool, len(all))
	for i, e := range all {
		completions[i] = e.attempt.completion(e.job)
		done[e.job.ID] = true
	}
	turn := r.holder.turn()
	var completed store.Completed
	err = r.engine.kind.InTx(ctx, func(tx pgx.Tx) (err error) {
		completed, err = r.engine.kind.Complete(ctx, tx, turn, completions, store.Access{Wait: completePatience, Commit: true})
		return err
	})
	if err == nil {
		r.committed(turn, completions, completed, 0)
	}
	return done, err
}

// completeLocked completes those that are still the turn's and that no other transaction holds locked; what is to be cancelled is cancelled. Of a job
// that the turn has leased anew since, for another attempt, nothing is completed.
func (r *runner) completeLocked(ctx context.Context, all []ended) (done map[string]bool, err error) {
	kind := r.engine.kind
	byID := make(map[string]ended, len(all))
	ids := make([]string, len(all))
	for i, e := range all {
		byID[e.job.ID], ids[i] = e, e.job.ID
	}
	done = make(map[string]bool, len(all))
	turn := r.holder.turn()
	var completions []store.Completion
	var completed store.Completed
	err = r.engine.kind.InTx(ctx, func(tx pgx.Tx) error {
		locked, err := kind.LockChunk(ctx, tx, turn, ids)
		if err != nil || len(locked) == 0 {
			return err
		}
		for _, l := range locked {
			done[l.ID] = true
			e := byID[l.ID]
			switch {
			case !sameAttempt(l, e.job):
			case l.CancelRequested:
				completions = append(completions, store.Completion{Job: e.job, Outcome: models.OutcomeCancelled, Took: e.attempt.took})
			case e.onlyCancelled:
				return errStillHeld
			default:
				completions = append(completions, e.attempt.completion(e.job))
			}
		}
		if len(completions) > 0 {
			completed, err = kind.Complete(ctx, tx, turn, completions, store.Access{})
		}
		return err
	})
	if err == nil {
		r.committed(turn, completions, completed, 0)
	}
	return done, err
}
