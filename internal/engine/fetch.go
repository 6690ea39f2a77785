package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
)

// FetchRequest asks for the first jobs of a turn.
type FetchRequest struct {
	Turn store.Turn
	// Batch is how many jobs to lease at most.
	Batch int
	// Wait is how long to wait for work when none is due; 0 does not wait.
	Wait time.Duration
	// LeftBehind names earlier turns of the lane that could not complete or give back all their jobs, because another transaction
	// held the rows locked.
	LeftBehind []string
	// Again says that this turn may have been fetched before: what it holds already is reclaimed first.
	Again bool
	// Crashed says that the fetch before did not end by itself: what it was working is charged.
	Crashed bool
	// Stop ends the wait.
	Stop <-chan struct{}
	// Trouble is called with the error of a statement that the database failed and that is tried again, and with nil when it answers again. Nil: not called.
	Trouble func(error)

	// before: an earlier try of this fetch may have leased for the turn. waiter is the try's subscription; nil: it does not wait.
	before bool
	waiter *store.Subscription
}

// Fetched is what a fetch found.
type Fetched struct {
	// Leased counts the jobs that the turn holds now, or that are being worked already.
	Leased int
	// Full says that as many were due as were asked for: there may be more.
	Full bool
	// Lost counts the jobs that were being worked when their worker ended, and that this process has reclaimed since the fetch before; Failed
	// counts those of them that had no attempt left.
	Lost, Failed int
	// LeftBehind names the turns that still hold leases.
	LeftBehind []string
	// Worked counts the jobs that were worked at once, without a lease, when the wait ended with work; nil: none. Leased includes them.
	Worked *Report
}

// Fetch leases the first jobs of a turn. It is idempotent: called Again for the same turn it first reclaims what the
// turn holds already.
//
// Cancelled, it gives back what it leased and has fetched nothing. An outage is waited for.
func (e *Engine) Fetch(ctx context.Context, r FetchRequest) (Fetched, error) {
	e.StartReclaiming()
	e.observer.lanes(0, 1)
	defer e.observer.lanes(0, -1)
	if e.options.Apart && r.Again {
		// What the fetch worked before is charged, as what a turn worked is. So it is reclaimed by a turn: a fetch charges nothing.
		f, err := e.workFetched(ctx, Fetched{LeftBehind: r.LeftBehind}, r)
		switch {
		case ctx.Err() != nil:
			return e.unfetch(ctx, r.Turn, r, err)
		case err != nil || f.Leased > 0:
			return f, err
		}
	}
	turn := r.Turn
	var f Fetched
	ends := time.Now().Add(r.Wait)
	err := e.persist(ctx, r.Stop, "fetch", func() (err error) {
		if r.Wait, r.waiter = max(time.Until(ends), 0), nil; r.Wait > 0 {
			// What is committed before this is seen by the poll; what comes later, and the poll may not see, is announced.
			r.waiter = e.waker.Subscribe(false)
			defer r.waiter.Close()
		}
		polled, err := e.kind.Poll(ctx, e.room)
		if err != nil || !r.before { // a database that can be read may still refuse to lease
			tell(r.Trouble, err)
		}
		if err != nil {
			return err
		}
		turn.Fence = polled.Fence
		e.notePoll(polled)
		if f, err = e.fetch(ctx, turn, r); err != nil {
			// The next try reclaims what this one may have leased for the turn, if that is committed by then.
			r.before = true
			tell(r.Trouble, err)
			if ctx.Err() == nil {
				e.reclaimLater(turn)
				e.reclaimLater(fetchedTurn(turn))
			}
			return err
		}
		tell(r.Trouble, nil)
		return nil
	})
	if err == nil && ctx.Err() == nil && e.options.Apart && f.Leased > 0 && f.Worked == nil {
		f, err = e.workFetched(ctx, f, r)
	}
	if ctx.Err() != nil {
		return e.unfetch(ctx, turn, r, err)
	}
	return f, err
}

// unfetch gives back what a cancelled fetch leased; err is the error of the fetch, nil when it only waited. With an error it is not sure what was leased: a transaction that
// was cut off may yet be committed. Then it names the turn as left behind, so that the jobs are given back later.
func (e *Engine) unfetch(ctx context.Context, turn store.Turn, r FetchRequest, err error) (Fetched, error) {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	turns := []store.Turn{turn}
	if err != nil {
		turns = append(turns, fetchedTurn(turn)) // without an error what that leased is being worked
	}
	for _, t := range turns {
		if _, releaseErr := e.kind.GiveBack(own, t, nil, 0); releaseErr != nil || err != nil {
			e.reclaimLater(t)
			err = cmp.Or(releaseErr, err)
		}
	}
	left, leftErr := e.kind.TurnsWithLeases(own, append([]string{turn.ID}, r.LeftBehind...))
	if leftErr != nil {
		left = append([]string{turn.ID}, r.LeftBehind...)
	} else if err != nil && !slices.Contains(left, turn.ID) {
		left = append(left, turn.ID)
	}
	return Fetched{LeftBehind: left}, nil
}

func (e *Engine) fetch(ctx context.Context, turn store.Turn, r FetchRequest) (Fetched, error) {
	var f Fetched
	limit := r.Batch
	if !e.begins {
		limit = min(limit, e.capacity)
	}
	before := r.LeftBehind
	if r.Again || r.before {
		before = append([]string{turn.ID}, before...)
	}
	if len(before) > 0 {
		// A cancellation must not interrupt this: then it would be unknown what was reclaimed.
		own, err := e.kind.ReclaimTurns(context.WithoutCancel(ctx), turn, before, false)
		if err != nil {
			return f, err
		}
		f.Leased = len(own.Jobs)
	}
	var err error
	if len(r.LeftBehind) > 0 {
		if f.LeftBehind, err = e.kind.TurnsWithLeases(ctx, r.LeftBehind); err != nil {
			return f, err
		}
	}
	if f.Leased < limit {
		r.LeftBehind = f.LeftBehind
		n, worked, err := e.leaseOrWait(ctx, turn, limit-f.Leased, f.Leased > 0, r)
		if err != nil {
			return f, err
		}
		f.Leased += n
		f.Worked = worked
		if len(f.LeftBehind) > 0 {
			if f.LeftBehind, err = e.kind.TurnsWithLeases(ctx, f.LeftBehind); err != nil {
				return f, err
			}
		}
	}
	f.Full = f.Leased >= limit
	reclaimed := e.takeReclaimed()
	f.Lost, f.Failed = reclaimed.Lost, reclaimed.Failed
	return f, nil
}

// leftBehindPause is how long rows that another transaction holds locked are left alone by a fetch that waits.
const leftBehindPause = time.Second

// longestWait is the longest pause between two scans of a fetch that waits: requests wake it for jobs that are due within a minute, and not
// for those that are due later.
const longestWait = 50 * time.Second

// leaseOrWait leases what is due; when nothing is, and nothing was found before, it waits for work, or for rows that were
// left behind to be unlocked. What comes while it waits is worked at once where that is possible, so that it need not wait for the turn's
// next activity.
func (e *Engine) leaseOrWait(ctx context.Context, turn store.Turn, limit int, found bool, r FetchRequest) (int, *Report, error) {
	if found || r.waiter == nil {
		n, err := e.leaseNow(ctx, turn, limit, found, r.Stop)
		return n, nil, err
	}
	deadline := time.After(r.Wait)
	var again <-chan time.Time
	if len(r.LeftBehind) > 0 {
		again = time.Tick(leftBehindPause)
	}
	// Jobs that this worker may not work may be due for another one: after each wake-up, and when a job falls due, the fetch checks that once.
	e.recallHandingOn(ctx)
	others := time.After(e.handingOn.after())
	roomy, leave := e.room.subscribe()
	defer leave()
	for waited := false; ; waited = true {
		n, worked, wait, err := e.beginOrLease(ctx, turn, limit, waited, r)
		if err == nil {
			tell(r.Trouble, nil)
			r.waiter.Scanned(n > 0)
		}
		if err != nil || n > 0 {
			return n, worked, err
		}
		cause := events.Scan
		if wait == 0 || wait > longestWait {
			wait, cause = longestWait, events.Poll
		}
		scan := time.After(wait)
		for waiting := true; waiting; {
			waiting = false
			select {
			case <-scan:
				e.observer.woken(cause)
				if others == nil {
					others = time.After(e.handingOn.after())
				}
			case <-ctx.Done():
				return 0, nil, nil
			case <-r.Stop:
				return 0, nil, nil
			case <-deadline:
				e.observer.woken(events.Poll)
				return 0, nil, nil
			case <-r.waiter.C:
				e.observer.woken(events.Notification)
				e.lookAtWaits()
				if others == nil {
					others = time.After(e.handingOn.after())
				}
			case <-others:
				if others = nil; e.handOn(ctx) {
					return 0, nil, nil
				}
				waiting = true // that others have no work says nothing new of this worker's
			case <-roomy:
				e.observer.woken(events.Scan)
			case <-again:
				taken, err := e.kind.ReclaimTurns(context.WithoutCancel(ctx), turn, r.LeftBehind, false)
				if err != nil || len(taken.Jobs) > 0 {
					return len(taken.Jobs), nil, err
				}
			}
		}
	}
}

// beginOrLease gets jobs for a fetch that waits: it begins what may be begun at once, and leases the rest for the turn. Without any it
// says when to look again; 0: when a wake-up comes. A turn that may have been fetched before begins nothing here.
func (e *Engine) beginOrLease(ctx context.Context, turn store.Turn, limit int, waited bool, r FetchRequest) (n int, worked *Report, again time.Duration, err error) {
	if h, ok := e.handlers.Handling(""); waited && !r.Again && ok && h.Picked == PickedAtOnce {
		t := e.newRunner(TurnRequest{Turn: turn, Batch: limit}, nil)
		l := t.pick(ctx, ctx, &call{picked: true}, h, min(limit, h.Parallel))
		if l.worked > 0 {
			report := t.tally.soFar()
			report.Leased = l.worked
			e.observer.turn(t.request, turn, report, t.began, nil)
			return l.worked, &report, 0, nil
		}
		if len(l.jobs) > 0 || l.err != nil {
			return len(l.jobs), nil, 0, l.err
		}
		// One scan at a time: a second one would only be a recent scan, and ask for a third.
		if !l.leaseNext && l.leaseFor == 0 {
			return 0, nil, l.again, nil
		}
	}
	if e.begins && !r.Again {
		leased, err := e.bridge(ctx, turn, limit, r.Stop)
		return len(leased.Jobs), nil, leased.Wait(), err
	}
	leased, err := e.leaseWhole(ctx, turn, limit, e.unbounded())
	return len(leased.Jobs), nil, leased.Wait(), err
}

// leaseNow leases what is due. Only a full scan can tell that nothing is due: unless something was found before, leaseNow waits a moment
// for its end.
func (e *Engine) leaseNow(ctx context.Context, turn store.Turn, limit int, found bool, stop <-chan struct{}) (int, error) {
	for room := e.unbounded(); ; {
		leased, err := e.leaseWhole(ctx, turn, limit, room)
		if err != nil || found || len(leased.Jobs) > 0 || leased.Again == 0 || leased.Locked {
			return len(leased.Jobs), err
		}
		select {
		case <-time.After(leased.Again):
		case <-stop:
			return 0, nil
		case <-ctx.Done():
			return 0, nil
		}
	}
}

// releasePatience is how long ReleaseTurn waits for rows that another transaction holds locked.
const releasePatience = 10 * time.Second

// Holding returns those of the named turns that still hold leases.
func (e *Engine) Holding(ctx context.Context, turns []string) ([]string, error) {
	if len(turns) == 0 {
		return nil, nil
	}
	return e.kind.TurnsWithLeases(ctx, turns)
}

// ErrStillLocked: another transaction holds rows locked that were to be given back; try again.
var ErrStillLocked = errors.New("another transaction holds rows locked that are to be given back")

// ReleaseTurn gives back everything that a turn holds, uncounted, whatever its fence. It waits a while for rows that another transaction
// holds locked, and then returns ErrStillLocked.
func (e *Engine) ReleaseTurn(ctx context.Context, turn store.Turn) (int, error) {
	var err error
	if turn.Fence, err = e.kind.NextFence(ctx); err != nil {
		return 0, err
	}
	total := 0
	for deadline := time.Now().Add(releasePatience); ; {
		n, err := e.kind.GiveBack(ctx, turn, nil, 0)
		if err != nil {
			return total, err
		}
		if n > 0 {
			e.waker.Remind()
		}
		total += n
		left, err := e.kind.TurnsWithLeases(ctx, []string{turn.ID})
		if err != nil || len(left) == 0 {
			return total, err
		}
		if time.Now().After(deadline) {
			return total, fmt.Errorf("turn %s: %w", turn.ID, ErrStillLocked)
		}
		if rest(ctx, skippedPause); ctx.Err() != nil {
			return total, ctx.Err()
		}
	}
}
