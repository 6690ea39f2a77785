package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

const (
	// chunkTries is how often a transaction is tried that met a conflict with another one, or lost
	// its connection.
	chunkTries = 3
	// bulkPatience is for how many timeouts of its type a failing bulk is worked: then its
	// remaining jobs are given back.
	bulkPatience = 10
)

// bulk is a call that works jobs of one type in the transaction that completes them.
type bulk struct {
	*turn
	call     *call
	handling Handling
}

// run works jobs of a bulk type in one transaction. When that fails they are halved until the one
// to blame stands alone, and the others go on. It says so when they are over.
func (b bulk) run(work context.Context, jobs []store.Job) {
	c, h := b.call, b.handling
	out := &returned{call: c, jobs: make([]ended, len(jobs))}
	place := make(map[string]int, len(jobs))
	for i, j := range jobs {
		out.jobs[i], place[j.ID] = ended{job: j, closed: true}, i
	}
	defer func() { b.tell(out) }()
	b.calls.begin(c)
	defer b.calls.end(c)
	defer b.engine.handles()()
	began := time.Now()
	for parts := [][]store.Job{jobs}; len(parts) > 0 && work.Err() == nil; {
		some, rest := parts[0], slices.Concat(parts[1:]...)
		parts = parts[1:]
		if !b.calls.hand(c, some, rest) {
			return
		}
		if time.Since(began) > bulkPatience*h.Timeout {
			// The jobs take long: the remaining ones are given back, uncounted.
			out.back = append(out.back, givenBack{slices.Concat(some, rest), time.Second})
			return
		}
		done, err := b.try(work, some)
		out.skipped, out.later = append(out.skipped, done.skipped...), append(out.later, done.later...)
		switch {
		case err == nil || work.Err() != nil:
		case store.IsTableLock(err) && !isOwn(err):
			b.engine.sayLocked(err)
			out.back = append(out.back, givenBack{slices.Concat(some, rest), lockedPause})
			return
		case len(some) == 1 || store.IsEnded(err):
			// A handler that ends the transaction may have committed what it wrote: it is not
			// called again for a part of the jobs.
			for _, j := range some {
				one := ended{job: j, attempt: b.notCompleted(work, j, err)}
				one.attempt.took = time.Since(began)
				one.attempt = b.engine.review(work, j, one.attempt)
				out.jobs[place[j.ID]] = one
			}
		default:
			parts = slices.Insert(parts, 0, some[:len(some)/2], some[len(some)/2:])
		}
	}
}

type bulked struct {
	// skipped are rows that another transaction holds locked, or that are no longer the turn's;
	// later those that the handler put off.
	skipped, later []store.Job
	// worked: the handler has returned without an error.
	worked bool
}

// try works leased jobs in the transaction that completes them. What the database does to that
// transaction is tried again.
func (b bulk) try(work context.Context, jobs []store.Job) (bulked, error) {
	c, h := b.call, b.handling
	gone := 0
	began := time.Now()
	for try := 1; ; try++ {
		ctx, cancel := b.calls.try(work, c, h.Timeout)
		done, err := b.commit(ctx, work, jobs)
		over := ctx.Err()
		cancel()
		if done.worked && errors.Is(over, context.DeadlineExceeded) {
			over = nil // what has failed is not the handler
		}
		switch {
		case err == nil:
			return done, nil
		case work.Err() != nil:
			return bulked{}, err
		case errors.Is(over, context.DeadlineExceeded):
			// Where statements wait for a lock as long as the time lasts, the jobs' table may have
			// been locked.
			gone++
			if h.LockWait > 0 || gone > maxUncounted || !isTransient(err) || !b.unavailable(work, c, err, began) {
				return bulked{}, late(h.Timeout, err)
			}
			try = 0
		case over != nil:
			// A renewal found that the turn has lost some: another turn works those.
			if held, err := b.leases.held(work); err == nil {
				jobs = keep(jobs, held)
			}
			if len(jobs) == 0 || try >= chunkTries || !b.calls.hand(c, jobs, c.later) {
				return bulked{}, nil
			}
		case !isTransient(err):
			return bulked{}, err
		case gone < maxUncounted && b.unavailable(work, c, err, began):
			try = 0 // that was no try, unless the database is gone each time
			gone++
		case store.IsExhausted(err):
			return bulked{}, err
		case try >= chunkTries:
			return bulked{}, &notCompletedError{tries: try, cause: err}
		}
	}
}

func (b bulk) commit(ctx, work context.Context, jobs []store.Job) (done bulked, err error) {
	by, began := b.leases.heldBy(), time.Now()
	commit, err := b.prepare(ctx, jobs)
	if err != nil {
		return done, err
	}
	byID := make(map[string]store.Job, len(jobs))
	for _, j := range jobs {
		byID[j.ID] = j
	}
	var completions []store.Completion
	var completed store.Completed
	err = b.engine.kind.InTxWaiting(ctx, b.handling.LockWait, func(tx pgx.Tx) (err error) {
		defer recovered(&err)
		locked, err := b.engine.kind.LockChunk(ctx, tx, by, idsOf(jobs))
		locked = slices.DeleteFunc(locked, func(l store.Job) bool { return !sameAttempt(l, byID[l.ID]) })
		done.skipped = without(jobs, locked)
		if err != nil || len(locked) == 0 {
			return err
		}
		for i := range locked {
			locked[i] = withContent(locked[i], byID[locked[i].ID])
		}
		completions, done.later, err = b.effects(ctx, tx, commit, locked, false)
		if err == nil && len(completions) > 0 {
			if done.worked = b.calls.spare(b.call); !done.worked {
				return errAbandoned
			}
			completed, err = b.completeWorked(work, tx, by, completions, store.Access{Commit: true})
		}
		return err
	})
	if err == nil {
		b.committed(by, completions, completed, time.Since(began))
	}
	return done, err
}

// errAbandoned: a handler has returned after its call was abandoned, and nothing of it is
// committed.
var errAbandoned = fmt.Errorf("the handler has returned too late: %w", context.DeadlineExceeded)

// sameAttempt reports whether a row that the turn has leased is leased for the attempt at the job
// that the turn knows. A locked task does not say when it began: its number is never used again.
func sameAttempt(locked, known store.Job) bool {
	began := locked.StartedAt.IsZero() || locked.StartedAt.Equal(known.StartedAt)
	return began && locked.Attempt == known.Attempt && locked.Generation == known.Generation
}

// withContent is a locked job, as it is now, with what does not change while it is leased.
func withContent(locked, leased store.Job) store.Job {
	locked.Type, locked.Payload, locked.MaxAttempts = leased.Type, leased.Payload, leased.MaxAttempts
	locked.Key, locked.EnqueuedAt, locked.Priority = leased.Key, leased.EnqueuedAt, leased.Priority
	locked.Waiting, locked.ReadyHere, locked.TraceParent = leased.Waiting, leased.ReadyHere, leased.TraceParent
	return locked
}

func (t *turn) prepare(ctx context.Context, jobs []store.Job) (commit BulkCommit, err error) {
	err = inOwnGoroutine(func() (err error) {
		commit, err = t.engine.handlers.Prepare(ctx, t.request.Turn.WorkflowRunID, jobs)
		return err
	})
	return commit, err
}

// effects calls a bulk handler's second phase for the locked jobs that are not to be cancelled. It
// returns how each is completed, and which are put off. picked says that they are not leased.
func (t *turn) effects(
	ctx context.Context, tx pgx.Tx, commit BulkCommit, jobs []store.Job, picked bool,
) (completions []store.Completion, later []store.Job, err error) {
	completions = make([]store.Completion, 0, len(jobs))
	going := slices.DeleteFunc(slices.Clone(jobs), func(j store.Job) bool {
		if j.CancelRequested {
			completions = append(completions, store.Completion{Job: j, Outcome: models.OutcomeCancelled})
		}
		return j.CancelRequested
	})
	if len(going) == 0 {
		return completions, nil, nil
	}
	var attempts []Attempt
	err = inOwnGoroutine(func() (err error) {
		attempts, err = commit(ctx, tx, going)
		return err
	})
	if err == nil {
		err = untouched(ctx, tx, attempts)
	}
	if err != nil {
		return nil, nil, err
	}
	for i, a := range attempts {
		switch {
		case a.Later:
			later = append(later, going[i])
		case !picked || !a.LeftAlone:
			a = t.engine.review(ctx, going[i], a)
			completions = append(completions, a.completion(going[i]))
		}
	}
	if len(later) == len(jobs) {
		return nil, nil, &ownError{errors.New("the handler put off every job of a call")}
	}
	return completions, later, nil
}
