package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// FetchRequest asks for the first jobs of a turn.
type FetchRequest struct {
	Turn store.Turn
	// Batch is how many jobs to lease at most.
	Batch int
	// Wait is how long to wait for work when none is due; 0 does not wait.
	Wait time.Duration
	// LeftBehind names earlier turns of the lane that could not complete or give back all their
	// jobs, because another transaction held the rows locked.
	LeftBehind []string
	// Again says that this turn may have been fetched before: what it holds already is reclaimed
	// first.
	Again bool
	// Crashed says that the fetch before did not end by itself: what it was working is charged.
	Crashed bool
	// Stop ends the wait.
	Stop <-chan struct{}
	// Trouble is called with the error of a statement that the database failed and that is tried
	// again, and with nil when it answers again. Nil: not called.
	Trouble func(error)
}

// Fetched is what a fetch found.
type Fetched struct {
	// Leased counts the jobs that the turn holds now, or that are being worked already.
	Leased int
	// Full says that as many were due as were asked for: there may be more.
	Full bool
	// Lost counts the jobs that were being worked when their worker ended, and that this process
	// has reclaimed since the fetch before; Failed counts those of them that had no attempt left.
	Lost, Failed int
	// LeftBehind names the turns that still hold leases.
	LeftBehind []string
	// Worked counts the jobs that were worked at once, without a lease, when the wait ended with
	// work; nil: none. Leased includes them.
	Worked *Report
}

// Fetch leases the first jobs of a turn. It is idempotent: called Again for the same turn it first
// reclaims what the turn holds already.
//
// Cancelled, it gives back what it leased and has fetched nothing. An outage is waited for.
func (e *Engine) Fetch(ctx context.Context, r FetchRequest) (Fetched, error) {
	e.StartReclaiming()
	e.observer.lanes(0, 1)
	defer e.observer.lanes(0, -1)
	f := &fetch{Engine: e, request: r, turn: r.Turn, ends: time.Now().Add(r.Wait)}
	if e.options.Apart && r.Again {
		// What the fetch worked before is charged, as what a turn worked is. So it is reclaimed by
		// a turn: a fetch charges nothing.
		worked, err := f.work(ctx, Fetched{LeftBehind: r.LeftBehind})
		switch {
		case ctx.Err() != nil:
			return f.undo(ctx, err)
		case err != nil || worked.Leased > 0:
			return worked, err
		}
	}
	var got Fetched
	err := e.persist(ctx, r.Stop, "fetch", func() (err error) {
		got, err = f.try(ctx)
		return err
	})
	if err == nil && ctx.Err() == nil && e.options.Apart && got.Leased > 0 && got.Worked == nil {
		got, err = f.work(ctx, got)
	}
	if ctx.Err() != nil {
		return f.undo(ctx, err)
	}
	return got, err
}

// fetch is one call of Fetch.
type fetch struct {
	*Engine
	request FetchRequest
	// turn is the request's, with a fence. ends is when the fetch waits no more.
	turn store.Turn
	ends time.Time
	// before: an earlier try may have leased for the turn. waiter is the try's subscription; nil: it
	// does not wait.
	before bool
	waiter *store.Subscription
}

// try is one try of a fetch, which may meet an outage.
func (f *fetch) try(ctx context.Context) (got Fetched, err error) {
	if f.waiter = nil; time.Until(f.ends) > 0 {
		// What is committed before this is seen by the poll; what comes later, and the poll may not
		// see, is announced.
		f.waiter = f.waker.Subscribe(false)
		defer f.waiter.Close()
	}
	polled, err := f.kind.Poll(ctx, f.room)
	if err != nil || !f.before { // a database that can be read may still refuse to lease
		tell(f.request.Trouble, err)
	}
	if err != nil {
		return got, err
	}
	f.turn.Fence = polled.Fence
	f.waits.notePoll(polled)
	got, err = f.get(ctx)
	tell(f.request.Trouble, err)
	if err != nil {
		// The next try reclaims what this one may have leased for the turn, if that is committed by
		// then.
		f.before = true
		if ctx.Err() == nil {
			f.reclaimLater(f.turn)
			f.reclaimLater(fetchedTurn(f.turn))
		}
	}
	return got, err
}

// undo gives back what a cancelled fetch leased; err is the error of the fetch, nil when it only
// waited. With an error it is not sure what was leased: a transaction that was cut off may yet be
// committed. Then it names the turn as left behind, so that the jobs are given back later.
func (f *fetch) undo(ctx context.Context, err error) (Fetched, error) {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	turns := []store.Turn{f.turn}
	if err != nil {
		turns = append(turns, fetchedTurn(f.turn)) // without an error what that leased is being worked
	}
	for _, t := range turns {
		if _, releaseErr := f.kind.GiveBack(own, t, nil, 0); releaseErr != nil || err != nil {
			f.reclaimLater(t)
			err = cmp.Or(releaseErr, err)
		}
	}
	left, leftErr := f.kind.TurnsWithLeases(own, append([]string{f.turn.ID}, f.request.LeftBehind...))
	if leftErr != nil {
		left = append([]string{f.turn.ID}, f.request.LeftBehind...)
	} else if err != nil && !slices.Contains(left, f.turn.ID) {
		left = append(left, f.turn.ID)
	}
	return Fetched{LeftBehind: left}, nil
}

// get reclaims what the turn may hold, and what was left behind, and gets more.
func (f *fetch) get(ctx context.Context) (out Fetched, err error) {
	limit := f.request.Batch
	if !f.begins {
		limit = min(limit, f.capacity)
	}
	before := f.request.LeftBehind
	if f.request.Again || f.before {
		before = append([]string{f.turn.ID}, before...)
	}
	if len(before) > 0 {
		// A cancellation must not interrupt this: then it would be unknown what was reclaimed.
		own, err := f.kind.ReclaimTurns(context.WithoutCancel(ctx), f.turn, before, false)
		if err != nil {
			return out, err
		}
		out.Leased = len(own.Jobs)
	}
	if out.LeftBehind, err = f.Holding(ctx, f.request.LeftBehind); err != nil {
		return out, err
	}
	if out.Leased < limit {
		g, err := f.leaseOrWait(ctx, limit-out.Leased, out.Leased > 0, out.LeftBehind)
		if err != nil {
			return out, err
		}
		out.Leased += g.jobs
		out.Worked = g.worked
		left := len(out.LeftBehind)
		if out.LeftBehind, err = f.Holding(ctx, out.LeftBehind); err != nil {
			return out, err
		}
		if out.Leased == 0 && len(out.LeftBehind) < left {
			// What was given back after the lease has looked is due now. Without another look the fetch
			// would report that nothing is held and nothing is due, and a run that exits when the queue is
			// empty would leave it.
			g, err := f.leaseNow(ctx, limit, false)
			if err != nil {
				return out, err
			}
			out.Leased = g.jobs
		}
	}
	out.Full = out.Leased >= limit
	reclaimed := f.reclaims.take()
	out.Lost, out.Failed = reclaimed.Lost, reclaimed.Failed
	return out, nil
}
