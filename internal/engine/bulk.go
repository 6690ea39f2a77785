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
	// chunkTries is how often a transaction is tried that met a conflict with another one, or lost its connection.
	chunkTries = 3
	// bulkPatience is for how many timeouts of its type a failing bulk is worked: then its remaining jobs are given back.
	bulkPatience = 10
)

// startBulk works jobs of a bulk type, as many together as its handler takes.
func (r *runner) startBulk(work context.Context, jobType string, jobs []store.Job) {
	h, _ := r.engine.handlers.Handling(jobType)
	for some := range slices.Chunk(jobs, max(1, h.Parallel)) {
		c := &call{jobType: jobType, open: len(some), deadline: time.Now().Add(h.Timeout)}
		for _, j := range some {
			r.begun[j.ID] = true
		}
		r.active += c.open
		r.running[jobType]++
		go r.workBulk(work, h, c, some)
	}
}

// workBulk works jobs of a bulk type in one transaction. When that fails they are halved until the one to blame stands alone, and the
// others go on. It says so when they are over.
func (r *runner) workBulk(work context.Context, h Handling, c *call, jobs []store.Job) {
	out := returned{call: c, jobs: make([]ended, len(jobs))}
	place := make(map[string]int, len(jobs))
	for i, j := range jobs {
		out.jobs[i], place[j.ID] = ended{job: j, closed: true}, i
	}
	defer func() { r.tellOver(out) }()
	r.calls.begin(c)
	defer r.calls.end(c)
	defer r.engine.handles()()
	began := time.Now()
	for parts := [][]store.Job{jobs}; len(parts) > 0 && work.Err() == nil; {
		some, rest := parts[0], slices.Concat(parts[1:]...)
		parts = parts[1:]
		if !r.calls.hand(c, some, rest) {
			return
		}
		if time.Since(began) > bulkPatience*h.Timeout {
			// The jobs take long: the remaining ones are given back, uncounted.
			out.back = append(out.back, givenBack{slices.Concat(some, rest), time.Second})
			return
		}
		done, err := r.tryBulk(work, h, c, some)
		out.skipped, out.later = append(out.skipped, done.skipped...), append(out.later, done.later...)
		switch {
		case err == nil || work.Err() != nil:
		case store.IsTableLock(err) && !isOwn(err):
			r.engine.sayLocked(err)
			out.back = append(out.back, givenBack{slices.Concat(some, rest), lockedPause})
			return
		case len(some) == 1 || store.IsEnded(err):
			// A handler that ends the transaction may have committed what it wrote: it is not called again for a part of the jobs.
			for _, j := range some {
				one := ended{job: j, attempt: r.notCompleted(work, j, err)}
				one.attempt.took = time.Since(began)
				one.attempt = r.engine.review(work, j, one.attempt)
				out.jobs[place[j.ID]] = one
			}
		default:
			parts = slices.Insert(parts, 0, some[:len(some)/2], some[len(some)/2:])
		}
	}
}

// bulked is the result of a transaction of a bulk.
type bulked struct {
	// skipped are rows that another transaction holds locked, or that are no longer the turn's; later those that the handler put off.
	skipped, later []store.Job
	// worked: the handler has returned without an error.
	worked bool
}

// tryBulk works leased jobs in the transaction that completes them. What the database does to that transaction is tried again.
func (r *runner) tryBulk(work context.Context, h Handling, c *call, jobs []store.Job) (bulked, error) {
	gone := 0
	began := time.Now()
	for try := 1; ; try++ {
		ctx, cancel := r.calls.try(work, c, h.Timeout)
		done, err := r.commitBulk(ctx, work, c, h, jobs)
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
			// Where statements wait for a lock as long as the time lasts, the jobs' table may have been locked.
			if gone++; h.LockWait > 0 || gone > maxUncounted || !isTransient(err) || !r.unavailable(work, c, err, began) {
				return bulked{}, late(h.Timeout, err)
			}
			try = 0
		case over != nil:
			// A renewal found that the turn has lost some: another turn works those.
			if held, err := r.holder.held(work); err == nil {
				jobs = keep(jobs, held)
			}
			if len(jobs) == 0 || try >= chunkTries || !r.calls.hand(c, jobs, c.later) {
				return bulked{}, nil
			}
		case !isTransient(err):
			return bulked{}, err
		case gone < maxUncounted && r.unavailable(work, c, err, began):
			try = 0 // that was no try, unless the database is gone each time
			gone++
		case store.IsExhausted(err):
			return bulked{}, err
		case try >= chunkTries:
			return bulked{}, &notCompletedError{tries: try, cause: err}
		}
	}
}

// commitBulk prepares jobs, and works and completes them in one transaction.
func (r *runner) commitBulk(ctx, work context.Context, c *call, h Handling, jobs []store.Job) (done bulked, err error) {
	turn, began := r.holder.turn(), time.Now()
	commit, err := r.prepare(ctx, jobs)
	if err != nil {
		return done, err
	}
	byID := make(map[string]store.Job, len(jobs))
	for _, j := range jobs {
		byID[j.ID] = j
	}
	var completions []store.Completion
	var completed store.Completed
	err = r.engine.kind.InTxWaiting(ctx, h.LockWait, func(tx pgx.Tx) (err error) {
		defer recovered(&err)
		locked, err := r.engine.kind.LockChunk(ctx, tx, turn, idsOf(jobs))
		locked = slices.DeleteFunc(locked, func(l store.Job) bool { return !sameAttempt(l, byID[l.ID]) })
		done.skipped = without(jobs, locked)
		if err != nil || len(locked) == 0 {
			return err
		}
		for i := range locked {
			locked[i] = withContent(locked[i], byID[locked[i].ID])
		}
		completions, done.later, err = r.effects(ctx, tx, commit, locked, false)
		if err == nil && len(completions) > 0 {
			if done.worked = r.calls.spare(c); !done.worked {
				return errAbandoned
			}
			completed, err = r.completeWorked(work, tx, turn, completions, store.Access{Commit: true})
		}
		return err
	})
	if err == nil {
		r.committed(turn, completions, completed, time.Since(began))
	}
	return done, err
}

// errAbandoned: a handler has returned after its call was abandoned, and nothing of it is committed.
var errAbandoned = fmt.Errorf("the handler has returned too late: %w", context.DeadlineExceeded)

// sameAttempt reports whether a row that the turn has leased is leased for the attempt at the job that the turn knows.
func sameAttempt(locked, known store.Job) bool {
	return locked.Attempt == known.Attempt && locked.Generation == known.Generation
}

// withContent is a locked job, as it is now, with what does not change while it is leased.
func withContent(locked, leased store.Job) store.Job {
	locked.Type, locked.Payload, locked.MaxAttempts = leased.Type, leased.Payload, leased.MaxAttempts
	locked.Key, locked.EnqueuedAt, locked.Waiting, locked.ReadyHere, locked.TraceParent = leased.Key, leased.EnqueuedAt, leased.Waiting, leased.ReadyHere, leased.TraceParent
	locked.Priority = leased.Priority
	return locked
}

// prepare calls a bulk handler's first phase.
func (r *runner) prepare(ctx context.Context, jobs []store.Job) (commit BulkCommit, err error) {
	err = inOwnGoroutine(func() (err error) {
		commit, err = r.engine.handlers.Prepare(ctx, r.request.Turn.WorkflowRunID, jobs)
		return err
	})
	return commit, err
}

func cancelRequested(j store.Job) bool { return j.CancelRequested }

// effects calls a bulk handler's second phase for the locked jobs that are not to be cancelled. It returns how each is completed, and
// which are put off. picked says that they are not leased.
func (r *runner) effects(ctx context.Context, tx pgx.Tx, commit BulkCommit, jobs []store.Job, picked bool) (completions []store.Completion, later []store.Job, err error) {
	completions = make([]store.Completion, 0, len(jobs))
	going := jobs
	if slices.ContainsFunc(jobs, cancelRequested) {
		going = nil
		for _, j := range jobs {
			if cancelRequested(j) {
				completions = append(completions, store.Completion{Job: j, Outcome: models.OutcomeCancelled})
			} else {
				going = append(going, j)
			}
		}
	}
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
			a = r.engine.review(ctx, going[i], a)
			completions = append(completions, a.completion(going[i]))
		}
	}
	if len(later) == len(jobs) {
		return nil, nil, &ownError{errors.New("the handler put off every job of a call")}
	}
	return completions, later, nil
}
