package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

const (
	// pickTries is how often jobs are picked that other transactions turn out to have. Then they are left alone
	// for lockedRest.
	pickTries  = 3
	lockedRest = 250 * time.Millisecond
	// pickPause is for how long jobs are leased after some that were to be picked could not be.
	pickPause = time.Second
	// pickLimit is how long a bulk may take that is picked: its rows stay locked, and the turn leases nothing meanwhile.
	pickLimit = time.Second
	// rescueWait is how long jobs are waited for whose transaction was lost: a session that is cut off keeps its rows
	// locked until it has idled for ten seconds.
	rescueWait = 15 * time.Second
)

// pick is jobs that are worked without a lease: one transaction locks them, keeps them locked while they are worked,
// and completes them. So a lease is the record of a long attempt, and not a toll on each job.
//
// A worker that dies leaves no trace of a pick: the jobs are pending as before. So nothing is picked in a turn whose
// activity before did not end by itself: a job that killed its worker is leased there, and found when it is reclaimed.
type pick struct {
	*runner
	// call works all jobs, which are of one bulk type, by handling; nil: open works them.
	call     *call
	handling Handling
	open     *openPick

	// jobs are those that the transaction has locked, suspects those of them that it leases instead.
	jobs, suspects []store.Job
	// What the transaction completes, by which turn, and what that led to. later are the jobs that the handler has
	// put off. began is when it began.
	turn        store.Turn
	completions []store.Completion
	completed   store.Completed
	later       []store.Job
	began       time.Time

	// result is what the loop is told.
	result refilled
}

// pickable says, of jobs that were leased, whether the next jobs like them may be picked: all are of one bulk type, or
// all of short types.
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

// pickBulk works the next jobs of a bulk type.
func (r *runner) pickBulk(work context.Context, jobType string, n int) refilled {
	h, _ := r.engine.handlers.Handling(jobType)
	c := &call{jobType: jobType, picked: true}
	ctx, cancel := r.calls.try(work, c, h.Timeout)
	defer cancel()
	r.calls.begin(c)
	defer r.calls.end(c)
	l := r.pickWith(ctx, work, c, h, min(n, max(1, h.Parallel)))
	l.call = c
	if h.Picked == PickedWhenAlone && time.Since(c.began) > pickLimit {
		l.leaseFor = time.Until(r.ends)
	}
	return l
}

// pickWith works the next jobs of a call's bulk type.
func (r *runner) pickWith(ctx, work context.Context, c *call, h Handling, n int) refilled {
	return r.pickSome(ctx, work, n, h.LockWait, func(t string) bool { return t == c.jobType }, func() *pick {
		return &pick{runner: r, call: c, handling: h, began: time.Now()}
	})
}

// pickShort works the next jobs of short types.
func (r *runner) pickShort(work context.Context, n int) refilled {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), completeLimit)
	defer cancel()
	return r.pickSome(ctx, work, n, 0, r.engine.pace.short, func() *pick { return &pick{runner: r, open: newOpenPick()} })
}

// pickSome picks until it has found something, or there is nothing.
func (r *runner) pickSome(ctx, work context.Context, n int, wait time.Duration, may func(string) bool, begin func() *pick) refilled {
	for tries := 0; tries < pickTries && ctx.Err() == nil; {
		chosen, err := r.engine.kind.PickTypes(ctx, n, may, r.engine.room)
		if err != nil {
			return r.leasedInstead(n, err)
		}
		p := begin()
		p.result = refilled{asked: n, leaseNext: chosen.Capped || chosen.Others, capped: chosen.Capped}
		if chosen.Empty() {
			p.result.again, p.result.unread = chosen.Wait(), chosen.Unread
			return p.result
		}
		if found := p.run(ctx, work, chosen, wait); found || p.result.leaseNext || r.beginsNoMore() {
			return p.result
		}
		// What was chosen had been worked meanwhile, or is locked: that says nothing of what else is due.
		if !chosen.Empty() {
			tries++
		}
	}
	return refilled{asked: n, again: lockedRest}
}

// run locks, works and completes the chosen jobs. It reports false when there were none.
func (p *pick) run(ctx, work context.Context, chosen *store.Pick, wait time.Duration) (found bool) {
	err := p.engine.kind.InTxWaiting(ctx, wait, func(tx pgx.Tx) (err error) {
		defer recovered(&err)
		if p.jobs, err = chosen.Lock(ctx, tx); err != nil || len(p.jobs) == 0 {
			return err
		}
		for i := range p.jobs {
			p.jobs[i].Room = p.open != nil
			// An application's handler of bulks has the transaction, and may change the rows of its jobs.
			p.jobs[i].Place.Valid = p.jobs[i].Place.Valid && (p.open != nil || p.handling.Picked == PickedAtOnce)
		}
		if p.suspects, err = p.leaseSuspects(ctx, tx, p.jobs); len(p.suspects) > 0 {
			return err
		}
		p.turn = p.holder.turn()
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
	l := &p.result
	switch {
	case len(p.suspects) > 0:
		p.engine.room.leave(without(p.jobs, p.suspects))
		p.tellSuspects(p.suspects, err)
		l.jobs, l.err = p.suspects, err
	case p.open != nil && worked:
		p.ended(work, err)
	case store.IsTableLock(err) && !isOwn(err):
		p.engine.sayLocked(err)
		*l = refilled{asked: l.asked, again: lockedPause}
	case err != nil:
		*l = p.leasedInstead(l.asked, err)
	case worked:
		p.committed(p.turn, p.completions, p.completed, time.Since(p.began))
		l.worked = len(p.completions)
	default:
		return false
	}
	return true
}

// workBulk has the handler work the jobs in the transaction, and completes them.
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
	p.completed, err = p.completeWorked(work, tx, p.turn, p.completions, store.Access{Picked: true, Commit: true})
	return err
}

// leasedInstead has the next jobs leased, because a pick failed.
func (r *runner) leasedInstead(n int, err error) refilled {
	r.engine.options.Log.Debug("jobs are leased instead of being picked", "error", err)
	return refilled{asked: n, leaseFor: pickPause}
}

// openPick is the calls of a pick that works single jobs. What ends within openFor is completed in the transaction;
// what lasts longer is leased in it.
type openPick struct {
	// hurry has a token when the transaction is to end now: all jobs have ended, or one needs its lease.
	hurry chan struct{}
	// over is closed when the transaction has ended and the loop was told. After that, leased holds the ids of the
	// jobs that the turn has leased.
	over   chan struct{}
	leased map[string]bool

	// mu guards what has ended. ending: the transaction ends; what ends later is late, and told to the loop by itself.
	mu     sync.Mutex
	calls  []*call
	done   []ended
	ending bool
	// running are the jobs that had not ended by then, or ended without an outcome.
	running []store.Job
}

func newOpenPick() *openPick {
	return &openPick{hurry: make(chan struct{}, 1), over: make(chan struct{})}
}

var errAborted = errors.New("the turn ends with an error")

// workOpen begins the jobs, each beside the others, waits for them, completes what has ended, and leases the rest. A turn
// that begins nothing more leaves them alone.
func (p *pick) workOpen(ctx, work context.Context, tx pgx.Tx) (err error) {
	if p.beginsNoMore() {
		p.engine.room.leave(p.jobs)
		return nil
	}
	p.found(len(p.jobs), p.result.asked)
	o := p.open
	o.begin(p.jobs)
	for _, c := range o.calls {
		go p.workAndTell(work, c)
	}
	select {
	case <-o.hurry:
	case <-time.After(openFor):
	}
	done := o.end()
	if p.failed.Load() {
		return errAborted
	}
	if len(done) > 0 {
		p.completions = make([]store.Completion, len(done))
		for i, e := range done {
			p.completions[i] = e.attempt.completion(e.job)
		}
		how := store.Access{Picked: true, Commit: len(o.running) == 0}
		p.completed, err = p.engine.kind.Complete(ctx, tx, p.turn, p.completions, how)
	}
	if err == nil && len(o.running) > 0 {
		err = p.leasePicked(ctx, tx, o.running)
	}
	return err
}

// ended takes in that the transaction has ended, with err. What is leased by now goes on as leased jobs do.
func (p *pick) ended(work context.Context, err error) {
	o, l := p.open, &p.result
	switch {
	case err == nil:
		p.committed(p.turn, p.completions, p.completed, 0)
		p.engine.observer.leased(p.turn, o.running)
		o.leased = setOf(idsOf(o.running))
	case !errors.Is(err, errAborted):
		o.leased = p.rescue(work, p.jobs, err)
		l.ended = o.done
	}
	l.worked, l.open = len(p.jobs), o
	for _, c := range o.calls {
		if !c.over {
			l.running = append(l.running, c)
			p.calls.leased(c, o.leased[c.inHand[0].ID])
		}
	}
}

// begin makes the calls of the jobs.
func (o *openPick) begin(jobs []store.Job) {
	calls := make([]call, len(jobs))
	o.calls, o.done = make([]*call, len(jobs)), make([]ended, 0, len(jobs))
	for i, j := range jobs {
		calls[i] = call{jobType: j.Type, single: true, open: 1, inHand: jobs[i : i+1 : i+1], from: o, picked: true}
		o.calls[i] = &calls[i]
	}
}

// end says which jobs have ended, and notes which are running. From now on calls that end are late.
func (o *openPick) end() []ended {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ending = true
	o.done = slices.DeleteFunc(o.done, func(e ended) bool {
		if e.closed { // it is given back at the end of the turn, as every leased job is
			o.running = append(o.running, e.job)
		}
		return e.closed
	})
	for _, c := range o.calls {
		if !c.over {
			o.running = append(o.running, c.inHand[0])
		}
	}
	return o.done
}

// endNow has the transaction end.
func (o *openPick) endNow() {
	select {
	case o.hurry <- struct{}{}:
	default:
	}
}

// take takes in how a call ended. It reports false when the transaction completes it. Of a late one it says when that
// has ended whether there is something to complete.
func (o *openPick) take(c *call, e *ended) (late bool) {
	o.mu.Lock()
	if late = o.ending; !late {
		c.over = true
		if o.done = append(o.done, *e); len(o.done) == len(o.calls) {
			o.endNow()
		}
	}
	o.mu.Unlock()
	if late {
		<-o.over
		e.closed = e.closed || !o.leased[e.job.ID]
	}
	return late
}

// awaitLease waits until the job of a call is leased, and has that done at once. It returns store.ErrLeaseLost when it
// is not the turn's.
func (c *call) awaitLease(ctx context.Context) error {
	o := c.from
	if o == nil {
		return nil
	}
	o.endNow()
	select {
	case <-o.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !o.leased[c.inHand[0].ID] {
		return store.ErrLeaseLost
	}
	return nil
}

// rescue leases, at once, the jobs of a pick whose transaction was lost, if they are as they were: what has ended is
// completed under these leases, and what runs goes on. It returns what the turn holds.
func (r *runner) rescue(work context.Context, jobs []store.Job, cause error) map[string]bool {
	e := r.engine
	var held []string
	err := e.persist(work, nil, "lease what was picked", func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(work), completeLimit)
		defer cancel()
		err := e.kind.InTxWaiting(ctx, rescueWait, func(tx pgx.Tx) error {
			_, err := e.kind.LeasePicked(ctx, tx, r.holder.turn(), jobs, false)
			return err
		})
		if err == nil {
			held, err = r.holder.held(ctx)
		}
		return err
	})
	if err != nil {
		// Also what was leased before the connection was lost goes on. What is committed only after this is given back.
		var heldErr error
		held, heldErr = r.holder.held(context.WithoutCancel(work))
		err = errors.Join(err, heldErr)
		r.holder.unsure.Store(true)
	}
	mine := keep(jobs, held)
	e.observer.leased(r.holder.turn(), mine)
	e.options.Log.Warn("the transaction that had picked jobs failed; those that are as they were are leased, the others were completed by it or are worked again",
		"jobs", len(jobs), "leased", len(mine), "cause", cause, "error", err)
	return setOf(idsOf(mine))
}
