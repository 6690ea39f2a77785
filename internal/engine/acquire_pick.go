package engine

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

const (
	// pickTries is how often jobs are picked that other transactions turn out to have. Then they
	// are left alone for lockedRest.
	pickTries  = 3
	lockedRest = 250 * time.Millisecond
	// pickPause is for how long jobs are leased after some that were to be picked could not be.
	pickPause = time.Second
	// pickLimit is how long a bulk may take that is picked: its rows stay locked, and the turn
	// leases nothing meanwhile.
	pickLimit = time.Second
)

// pick is jobs that are worked without a lease: one transaction locks them, keeps them locked while
// they are worked, and completes them. So a lease is the record of a long attempt, and not a toll
// on each job.
//
// A worker that dies leaves no trace of a pick: the jobs are pending as before. So nothing is
// picked in a turn whose activity before did not end by itself: a job that killed its worker is
// leased there, and found when it is reclaimed.
type pick struct {
	*turn
	// call works all jobs, which are of one bulk type, by handling; nil: open works them.
	call     *call
	handling Handling
	open     *openPick
	waiter   *store.Subscription

	// jobs are those that the transaction has locked, suspects those of them that it leases
	// instead.
	jobs, suspects []store.Job
	// What the transaction completes, by which turn, and what that led to. later are the jobs that
	// the handler has put off. began is when it began.
	by          store.Turn
	completions []store.Completion
	completed   store.Completed
	later       []store.Job
	began       time.Time

	// result is what the loop is told.
	result refilled
}

// picksLike says, of jobs that were leased, whether the next jobs like them may be picked: all are
// of one bulk type, or all of short types.
func picksLike(e *Engine, jobs []store.Job) picks {
	if !slices.ContainsFunc(jobs, func(j store.Job) bool { return !e.pace.short(j.Type) }) {
		return picks{short: true}
	}
	jobType := jobs[0].Type
	others := slices.ContainsFunc(jobs, func(j store.Job) bool { return j.Type != jobType })
	if h, ok := e.handlers.Handling(jobType); !ok || !h.Bulk || h.Picked == PickedNever || others {
		return picks{}
	}
	return picks{bulk: true, jobType: jobType}
}

func (t *turn) pickBulk(work context.Context, jobType string, n int) refilled {
	h, _ := t.engine.handlers.Handling(jobType)
	c := &call{jobType: jobType, picked: true}
	ctx, cancel := t.calls.try(work, c, h.Timeout)
	defer cancel()
	t.calls.begin(c)
	defer t.calls.end(c)
	may := func(other string) bool { return other == jobType }
	l := t.pickSome(ctx, work, min(n, max(1, h.Parallel)), may, func() *pick {
		return &pick{turn: t, call: c, handling: h, began: time.Now()}
	})
	l.call = c
	if h.Picked == PickedWhenAlone && time.Since(c.began) > pickLimit {
		l.leaseFor = time.Until(*t.ends.Load())
	}
	return l
}

func (t *turn) pickShort(work context.Context, n int, waiter *store.Subscription) refilled {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), completeLimit)
	defer cancel()
	return t.pickSome(ctx, work, n, t.engine.pace.short, func() *pick {
		return &pick{turn: t, open: &openPick{hurry: make(chan struct{}, 1), over: make(chan struct{})}, waiter: waiter}
	})
}

// pickSome picks until it has found something, or there is nothing.
func (t *turn) pickSome(ctx, work context.Context, n int, may func(string) bool, begin func() *pick) refilled {
	for tries := 0; tries < pickTries && ctx.Err() == nil; {
		chosen, err := t.engine.kind.PickTypes(ctx, n, may, t.engine.room)
		if err != nil {
			return t.leasedInstead(n, err)
		}
		p := begin()
		p.result = refilled{asked: n, mustLease: chosen.Capped || chosen.Others}
		if p.result.capped = chosen.Capped; chosen.Empty() {
			p.result.again, p.result.unread = chosen.Wait(), chosen.Unread
			p.result.heldBack = chosen.Again > 0 && !chosen.Unread
			return p.result
		}
		if found := p.run(ctx, work, chosen); found || p.result.mustLease || t.beginsNoMore() {
			return p.result
		}
		// What was chosen had been worked meanwhile, or is locked: that says nothing of what else
		// is due.
		if !chosen.Empty() {
			tries++
		}
	}
	return refilled{asked: n, again: lockedRest}
}

// run locks, works and completes the chosen jobs. It reports false when there were none.
func (p *pick) run(ctx, work context.Context, chosen *store.Pick) (found bool) {
	err := p.engine.kind.InTxWaiting(ctx, p.handling.LockWait, func(tx pgx.Tx) (err error) {
		defer recovered(&err)
		if p.jobs, err = chosen.Lock(ctx, tx); err != nil || len(p.jobs) == 0 {
			return err
		}
		for i := range p.jobs {
			p.jobs[i].Room = p.open != nil
			// An application's handler of bulks has the transaction, and may change the rows of its
			// jobs.
			p.jobs[i].Place.Valid = p.jobs[i].Place.Valid && (p.open != nil || p.handling.Picked == PickedAtOnce)
		}
		if p.suspects, err = p.leaseSuspects(ctx, tx, p.jobs); len(p.suspects) > 0 {
			return err
		}
		p.by = p.leases.heldBy()
		if p.open != nil {
			return p.workOpen(ctx, work, tx)
		}
		return p.workBulk(ctx, work, tx)
	})
	worked := len(p.completions) > 0 || p.open != nil && len(p.open.calls) > 0
	if err != nil || len(p.suspects) > 0 || p.open != nil && len(p.jobs) > 0 && !worked {
		chosen.Undo()
	}
	if p.call != nil {
		chosen.LeaveAlone(len(p.later) > 0)
	}
	p.take(work, worked, err)
	return err != nil || worked || len(p.suspects) > 0
}

// take says in the result what the transaction led to, which has ended with err. worked: jobs were
// worked in it.
func (p *pick) take(work context.Context, worked bool, err error) {
	l := &p.result
	switch {
	case len(p.suspects) > 0:
		p.engine.room.leave(without(p.jobs, p.suspects))
		if l.jobs, l.err = p.suspects, err; err == nil {
			p.engine.observer.leased(p.leases.heldBy(), p.suspects)
		}
	case p.open != nil && worked:
		p.ended(work, err)
	case store.IsTableLock(err) && !isOwn(err):
		p.engine.sayLocked(err)
		*l = refilled{asked: l.asked, again: lockedPause}
	case err != nil:
		*l = p.leasedInstead(l.asked, err)
	case worked:
		p.committed(p.by, p.completions, p.completed, time.Since(p.began))
		l.worked = len(p.completions)
	}
}

func (p *pick) workBulk(ctx, work context.Context, tx pgx.Tx) error {
	defer p.engine.handles()()
	commit, err := p.prepare(ctx, p.jobs)
	if err != nil {
		return err
	}
	if p.completions, p.later, err = p.effects(ctx, tx, commit, p.jobs, true); err != nil || len(p.completions) == 0 {
		return err
	}
	if !p.calls.spare(p.call) {
		return errAbandoned
	}
	p.completed, err = p.completeWorked(work, tx, p.by, p.completions, store.Access{Picked: true, Commit: true})
	return err
}

// leasedInstead has the next jobs leased, because a pick failed.
func (t *turn) leasedInstead(n int, err error) refilled {
	t.engine.options.Log.Debug("jobs are leased instead of being picked", "error", err)
	return refilled{asked: n, leaseFor: pickPause}
}

// leaseSuspects leases those of picked jobs that may have ended their worker, because they were
// reclaimed since their last completion, or a transaction that had picked them was lost: in the
// transaction that has picked them now. It returns them, also with an error. They are charged from
// when they begin.
//
// Their neighbours stay unsuspicious: once this is committed, no transaction that was lost is on
// record in the neighbours' rows.
func (t *turn) leaseSuspects(ctx context.Context, tx pgx.Tx, picked []store.Job) (suspects []store.Job, err error) {
	for _, j := range picked {
		if j.Reclaims > 0 || j.Dropped {
			j.Waiting = true
			suspects = append(suspects, j)
		}
	}
	if len(suspects) == 0 {
		return nil, nil
	}
	return suspects, t.leasePicked(ctx, tx, suspects)
}

func (t *turn) leasePicked(ctx context.Context, tx pgx.Tx, picked []store.Job) error {
	leased, err := t.engine.kind.LeasePicked(ctx, tx, t.leases.heldBy(), picked, true)
	t.leases.note(len(leased), err)
	if err == nil && len(leased) < len(picked) {
		err = store.ErrLeaseLost
	}
	return err
}
