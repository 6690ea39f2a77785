package engine

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

const (
	// pickTries is how often jobs are picked that other transactions turn out to have, before they are left alone for lockedRest.
	pickTries  = 3
	lockedRest = 250 * time.Millisecond
	// pickPause is for how long jobs are leased after some that were to be picked could not be.
	pickPause = time.Second
	// pickLimit is how long a bulk may take that is picked: its rows stay locked, and the turn leases nothing meanwhile.
	pickLimit = time.Second
)

// pickable says, of jobs that were leased, whether the next jobs like them may be picked: all are of one bulk type, or all of short types.
func (r *runner) pickable(jobs []store.Job) (picks, string) {
	if !slices.ContainsFunc(jobs, func(j store.Job) bool { return !r.engine.pace.short(j.Type) }) {
		return picksShort, ""
	}
	jobType := jobs[0].Type
	h, ok := r.engine.handlers.Handling(jobType)
	if !ok || !h.Bulk || h.Picked == PickedNever || slices.ContainsFunc(jobs, func(j store.Job) bool { return j.Type != jobType }) {
		return picksNone, ""
	}
	return picksBulk, jobType
}

// startPick works the next jobs of a bulk type without leasing them first.
func (r *runner) startPick(work context.Context, jobType string, n int) {
	h, _ := r.engine.handlers.Handling(jobType)
	c := &call{jobType: jobType, picked: true, deadline: time.Now().Add(h.Timeout)}
	ctx, cancel := r.calls.try(work, c, h.Timeout)
	r.calls.begin(c)
	r.spawn(func() {
		// This is the result if the handler ends its goroutine (runtime.Goexit).
		l := refilled{leaseFor: pickPause}
		defer func() {
			cancel()
			r.calls.end(c)
			l.call = c
			r.refills <- l
		}()
		l = r.pick(ctx, work, c, h, min(n, max(1, h.Parallel)))
		if h.Picked == PickedWhenAlone && time.Since(c.began) > pickLimit {
			l.leaseFor = time.Until(r.ends)
		}
	})
}

// pick locks, works and completes the next jobs of a bulk type in one transaction. If some of them may have ended their worker it leases
// these instead.
//
// A worker that dies leaves no trace of it: the jobs are pending as before. So it is not done in a turn whose activity before
// did not end by itself: if a job killed its worker, then it is leased there, and found when it is reclaimed.
func (r *runner) pick(ctx, work context.Context, c *call, h Handling, n int) refilled {
	for range pickTries {
		if l, again := r.pickOnce(ctx, work, c, h, n); !again || ctx.Err() != nil {
			return l
		}
	}
	return refilled{asked: n, again: lockedRest}
}

// pickOnce is one try of pick. again: what was chosen had been worked meanwhile, which says nothing of what else is due.
func (r *runner) pickOnce(ctx, work context.Context, c *call, h Handling, n int) (l refilled, again bool) {
	l = refilled{asked: n}
	jobType := c.jobType
	pick, err := r.engine.kind.PickTypes(ctx, n, func(t string) bool { return t == jobType }, r.engine.room)
	if err != nil {
		return r.leasedInstead(jobType, n, err), false
	}
	if pick.Empty() {
		l.again, l.unread, l.leaseNext = pick.Wait(), pick.Unread, pick.Capped || pick.Others
		return l, false
	}
	committed, began := false, time.Now()
	var completed store.Completed
	var completions []store.Completion
	var later, suspects []store.Job
	defer func() {
		if !committed {
			pick.Undo()
		}
		pick.LeaveAlone(len(later) > 0)
	}()
	err = r.engine.kind.InTxWaiting(ctx, h.LockWait, func(tx pgx.Tx) (err error) {
		defer recovered(&err)
		jobs, err := pick.Lock(ctx, tx)
		if err != nil || len(jobs) == 0 {
			return err
		}
		defer r.engine.handles()()
		if suspects, err = r.leaseSuspects(ctx, tx, jobs); len(suspects) > 0 {
			return err
		}
		for i := range jobs {
			// An application's handler has the transaction, and may change the rows of its jobs.
			jobs[i].Place.Valid = jobs[i].Place.Valid && h.Picked == PickedAtOnce
		}
		commit, err := r.prepare(ctx, jobs)
		if err != nil {
			return err
		}
		if completions, later, err = r.effects(ctx, tx, commit, jobs, true); err != nil {
			return err
		}
		if l.worked = len(completions); l.worked == 0 {
			return nil
		}
		if !r.calls.spare(c) {
			return errAbandoned
		}
		completed, err = r.completeWorked(work, tx, r.holder.turn(), completions, store.Access{Picked: true, Commit: true})
		return err
	})
	switch {
	case store.IsTableLock(err) && !isOwn(err):
		r.engine.sayLocked(err)
		return refilled{asked: n, again: lockedPause}, false
	case len(suspects) > 0:
		r.tellSuspects(suspects, err)
		l.jobs, l.err, l.leaseNext = suspects, err, pick.Capped || pick.Others
		return l, false
	case err != nil:
		return r.leasedInstead(jobType, n, err), false
	}
	committed = true
	r.committed(r.holder.turn(), completions, completed, time.Since(began))
	l.leaseNext = pick.Capped || pick.Others
	return l, l.worked == 0 && !l.leaseNext
}

// leasedInstead has the next jobs leased, because a pick failed.
func (r *runner) leasedInstead(jobType string, n int, err error) refilled {
	r.engine.options.Log.Debug("jobs are leased instead of being picked", "type", jobType, "error", err)
	return refilled{asked: n, leaseFor: pickPause}
}
