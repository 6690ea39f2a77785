package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

const (
	// rescueWait is how long jobs are waited for whose transaction was lost: a session that is cut off keeps its rows locked until it has
	// idled for ten seconds.
	rescueWait = 15 * time.Second
	// beginWithin is how long picked jobs wait to be begun. The loop may be waiting for a connection, and the pick has one.
	beginWithin = 500 * time.Millisecond
)

// openPick is single jobs that a transaction has locked, and keeps locked while their handlers run. What ends within openFor is completed in
// that transaction, and what lasts longer is leased in it. So a lease is the record of a long attempt, and not a toll on each job.
type openPick struct {
	// These are fixed; calls are those of the jobs, in their order, made when they begin.
	jobs   []store.Job
	calls  []*call
	finish chan finish
	// over is closed when the transaction has ended. Then leased are the jobs that are leased by the turn.
	over   chan struct{}
	leased map[string]bool
	// taken: the loop has the pick, or it was undone, because the loop was late.
	taken atomic.Bool

	// mu guards how many jobs have begun and what has ended. finishing: the transaction was told to end; what ends later is late, and told to
	// the loop by itself.
	mu        sync.Mutex
	begun     int
	ended     []ended
	finishing bool

	// The rest is the loop's: when the transaction is to end, how many goroutines work the jobs, when there are to be more, what the transaction is to complete,
	// and what ended late.
	until, more      time.Time
	crew             int
	completing, late []ended
}

// finish says how an open pick ends: which jobs are completed, and which are leased.
type finish struct {
	ended  []ended
	leased []store.Job
	// abort: nothing is committed.
	abort bool
}

var errAborted = errors.New("the turn ends with an error")

// openPick picks jobs of short types in a transaction, has the loop begin them, and ends it as the loop says.
func (r *runner) openPick(work context.Context, n int) {
	told := false
	tell := func(l refilled) {
		if l.asked = n; !told {
			told = true
			r.refills <- l
		}
	}
	e := r.engine
	pick, err := e.kind.PickTypes(work, n, e.pace.short, e.room)
	if err != nil {
		tell(refilled{leaseFor: pickPause})
		return
	}
	counted := pick.Capped || pick.Others
	if pick.Empty() {
		tell(refilled{again: pick.Wait(), unread: pick.Unread, leaseNext: counted, capped: pick.Capped})
		return
	}
	o := &openPick{finish: make(chan finish, 1), over: make(chan struct{}), leased: map[string]bool{}}
	t, err := r.inPick(work, pick, o, func() { tell(refilled{open: o, leaseNext: counted, capped: pick.Capped}) })
	if err != nil || len(t.suspects) > 0 || told && len(t.finish.ended)+len(t.finish.leased) == 0 {
		pick.Undo()
	}
	switch {
	case len(t.suspects) > 0:
		r.engine.room.leave(without(o.jobs, t.suspects))
		r.tellSuspects(t.suspects, err)
		tell(refilled{jobs: t.suspects, err: err, leaseNext: counted, capped: pick.Capped})
		return
	case t.undone:
		r.engine.room.leave(o.jobs)
		return
	case !told && err != nil:
		e.options.Log.Debug("jobs are leased instead of being picked", "error", err)
		tell(refilled{leaseFor: pickPause})
		return
	case !told && pick.Empty():
		r.openPick(work, n) // what has just fallen due was not all, or none: a scan says what there is
		return
	case !told:
		tell(refilled{again: lockedRest}) // other transactions have them
		return
	case err == nil:
		r.committed(t.turn, t.completions, t.completed, 0)
		e.observer.leased(t.turn, t.finish.leased)
		for _, j := range t.finish.leased {
			o.leased[j.ID] = true
		}
	case !t.finish.abort:
		o.leased = r.rescue(work, o.jobs, err)
	}
	close(o.over)
	r.closes <- err != nil
}

// pickEnd is what the transaction of an open pick led to.
type pickEnd struct {
	finish finish
	// undone: the loop was late to take it.
	undone      bool
	turn        store.Turn
	completions []store.Completion
	completed   store.Completed
	// suspects were leased instead.
	suspects []store.Job
}

// inPick locks the jobs of an open pick in a transaction, has the loop begin them, and ends it as the loop says.
func (r *runner) inPick(work context.Context, pick *store.Pick, o *openPick, begin func()) (end pickEnd, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), completeLimit)
	defer cancel()
	err = r.engine.kind.InTx(ctx, func(tx pgx.Tx) (err error) {
		if o.jobs, err = pick.Lock(ctx, tx); err != nil || len(o.jobs) == 0 {
			return err
		}
		for i := range o.jobs {
			o.jobs[i].Room = true
		}
		if end.suspects, err = r.leaseSuspects(ctx, tx, o.jobs); len(end.suspects) > 0 {
			return err
		}
		begin()
		if end.finish, end.undone = o.told(); end.undone {
			return nil
		}
		err = r.endPick(ctx, tx, &end)
		return err
	})
	return end, err
}

// told waits until the loop says how the pick ends. It reports that the pick is undone when the loop does not take it soon.
func (o *openPick) told() (f finish, undone bool) {
	select {
	case f = <-o.finish:
		return f, false
	case <-time.After(beginWithin):
	}
	if o.taken.CompareAndSwap(false, true) {
		return finish{}, true
	}
	return <-o.finish, false
}

// endPick completes and leases what an open pick has. One that has nothing is committed all the same: the rows are left alone, and not dropped.
func (r *runner) endPick(ctx context.Context, tx pgx.Tx, end *pickEnd) (err error) {
	f := end.finish
	if f.abort {
		return errAborted
	}
	end.turn = r.holder.turn()
	if len(f.ended) > 0 {
		end.completions = make([]store.Completion, len(f.ended))
		for i, e := range f.ended {
			end.completions[i] = e.attempt.completion(e.job)
		}
		how := store.Access{Picked: true, Commit: len(f.leased) == 0}
		end.completed, err = r.engine.kind.Complete(ctx, tx, end.turn, end.completions, how)
	}
	if err == nil && len(f.leased) > 0 {
		err = r.leasePicked(ctx, tx, f.leased)
	}
	return err
}

// rescue leases, at once, the jobs of an open pick whose transaction was lost, if they are as they were: what has ended is completed under
// these leases, and what runs goes on. It returns what the turn holds.
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

// beginPick starts the handlers of what was picked, and returns how many they are. A turn that begins nothing more leaves it alone.
func (r *runner) beginPick(work context.Context, o *openPick) int {
	r.open = o
	if r.ending || r.noMore() {
		r.engine.room.leave(o.jobs)
		r.finishPick(work, false)
		return 0
	}
	n := len(o.jobs)
	calls := make([]call, n)
	o.calls, o.ended = make([]*call, n), make([]ended, 0, n)
	for i, j := range o.jobs {
		calls[i] = call{jobType: j.Type, single: true, open: 1, inHand: o.jobs[i : i+1 : i+1], from: o, picked: true}
		o.calls[i] = &calls[i]
	}
	r.active += n
	o.until = time.Now().Add(openFor)
	r.enlarge(work, o, r.engine.pace.crew(o.jobs))
	return n
}

// lost reports whether the transaction has ended and left a job that has not begun to others.
func (o *openPick) lost(id string) bool {
	select {
	case <-o.over:
		return !o.leased[id]
	default:
		return false
	}
}

// notePicked takes in that a handler has returned after the transaction of its picked job was told to end. It reports false when the job
// has been leased meanwhile, and is to be completed as such.
func (r *runner) notePicked(c *call, jobs []ended) bool {
	o := c.from
	if r.open != o {
		return !o.leased[jobs[0].job.ID]
	}
	o.late = append(o.late, jobs...)
	return true
}

// endAbandoned ends the attempt at a job whose call was abandoned. One whose pick is being ended, or rescued, is completed when it is leased.
func (r *runner) endAbandoned(c *call, e ended) {
	if c.from != nil && c.from == r.open {
		c.from.late = append(c.from.late, e)
	} else {
		r.toComplete(e)
	}
}

// tendPick ends the open pick when its time has come. Until then it has more goroutines work it when handlers take longer than was expected.
func (r *runner) tendPick(work context.Context) {
	o, now := r.open, time.Now()
	switch {
	case o == nil || o.finishing:
		return
	case !now.Before(o.until):
		r.finishPick(work, false)
		return
	case !now.Before(o.more):
		o.mu.Lock()
		left := len(o.calls) - o.begun
		o.mu.Unlock()
		if o.more = o.until; left > 0 {
			r.enlarge(work, o, min(o.crew, left))
		}
	}
	r.wakeAt(o.until)
	r.wakeAt(o.more)
}

// finishPick ends the open pick: what has ended is completed, what runs, or is about to begin, is leased. So is what ended without an outcome:
// it is given back at the end of the turn, as every leased job is. From now on no job waits for another one to begin.
//
// That comes before each statement of the loop's own: the statement may wait for a connection that a handler has, and the handler for its
// lease, which the loop would have to ask for.
func (r *runner) finishPick(work context.Context, abort bool) {
	o := r.open
	if o == nil || o.finishing {
		return
	}
	f := finish{abort: abort}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finishing = true
	r.active -= len(o.ended)
	if r.refill.tight && len(o.ended) > 0 {
		r.scanAgain()
	}
	// Nothing more is added to what has ended.
	f.ended = slices.DeleteFunc(o.ended, func(e ended) bool {
		if e.closed {
			f.leased = append(f.leased, e.job)
		}
		return e.closed
	})
	o.ended, o.completing = nil, f.ended
	for _, c := range o.calls {
		if !c.over {
			f.leased = append(f.leased, c.inHand[0])
			r.begun[c.inHand[0].ID] = true
		}
	}
	r.enlarge(work, o, len(o.calls)-o.begun)
	o.finish <- f
}

// noteClosed applies the result of the open pick, which has ended. failed: the transaction was not committed, or it is not known whether it was. What of it
// is leased is to be completed as that.
func (r *runner) noteClosed(failed bool) {
	o := r.open
	r.open, r.refill.underWay = nil, false
	done := o.late
	if failed {
		done = append(done, o.completing...)
		r.scanAgain()
	}
	now := time.Now()
	for _, e := range done {
		if !e.closed && o.leased[e.job.ID] {
			e.since = now
			r.toComplete(e)
		}
	}
	for _, running := range o.calls {
		if !running.over {
			r.calls.leased(running, o.leased[running.inHand[0].ID])
		}
	}
}

// awaitLease waits until the job of a call is leased, and has that done at once. It returns store.ErrLeaseLost when it is not the turn's.
func (r *runner) awaitLease(ctx context.Context, c *call) error {
	o := c.from
	if o == nil {
		return nil
	}
	select {
	case r.hurry <- o:
	case <-o.over:
	case <-ctx.Done():
		return ctx.Err()
	}
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
