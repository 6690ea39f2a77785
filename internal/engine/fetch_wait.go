package engine

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
)

const (
	// leftBehindPause is how long rows that another transaction holds locked are left alone by a
	// fetch that waits.
	leftBehindPause = time.Second
	// longestWait is the longest pause between two scans of a fetch that waits: requests wake it for
	// jobs that are due within a minute, and not for those that are due later.
	longestWait = 50 * time.Second
	// bridgeFor is how long a bridge takes more jobs.
	bridgeFor = time.Second
)

// got is what a fetch has got: jobs counts those that are leased or begun, worked says what became
// of those that have ended already. Without jobs again says when to look again; 0: when a wake-up
// comes.
type got struct {
	jobs   int
	worked *Report
	again  time.Duration
}

// leaseOrWait leases what is due; when nothing is, and nothing was found before, it waits for work,
// or for rows that were left behind, by the turns left, to be unlocked.
func (f *fetch) leaseOrWait(ctx context.Context, limit int, found bool, left []string) (got, error) {
	if found || f.waiter == nil {
		return f.leaseNow(ctx, limit, found)
	}
	f.handingOn.recall(ctx, f.kind)
	roomy, leave := f.room.subscribe()
	defer leave()
	w := waitingFetch{
		fetch: f, left: left, roomy: roomy, deadline: time.After(time.Until(f.ends)),
		others: time.After(f.handingOn.after()),
	}
	if len(left) > 0 {
		w.unlocked = time.Tick(leftBehindPause)
	}
	for waited := false; ; waited = true {
		g, err := f.beginOrLease(ctx, limit, waited)
		if err != nil {
			return g, err
		}
		tell(f.request.Trouble, nil)
		if f.waiter.Scanned(g.jobs > 0); g.jobs > 0 {
			return g, nil
		}
		if g, over, err := w.wait(ctx, g.again); over || err != nil {
			return g, err
		}
	}
}

// waitingFetch is a fetch that waits for work.
type waitingFetch struct {
	*fetch
	// left are the turns that hold what was left behind.
	left     []string
	roomy    <-chan struct{}
	deadline <-chan time.Time
	// others tells when to look whether jobs are due that only other workers may work, which is done
	// once after each wake-up, and when a job falls due; nil: it was done.
	others <-chan time.Time
	// unlocked tells when to look whether rows that were left behind are unlocked; nil: there are
	// none.
	unlocked <-chan time.Time
}

// wait waits until the fetch is to look for work, or is over: told to stop, in vain, or with what
// was left behind.
func (w *waitingFetch) wait(ctx context.Context, again time.Duration) (g got, over bool, err error) {
	cause := events.Scan
	if again == 0 || again > longestWait {
		again, cause = longestWait, events.Poll
	}
	scan := time.After(again)
	for {
		select {
		case <-ctx.Done():
			return got{}, true, nil
		case <-w.request.Stop:
			return got{}, true, nil
		case <-w.deadline:
			w.observer.woken(events.Poll)
			return got{}, true, nil
		case <-w.others:
			if w.others = nil; w.handingOn.handOn(ctx, w.kind) {
				return got{}, true, nil
			}
		case <-w.unlocked:
			taken, err := w.kind.ReclaimTurns(context.WithoutCancel(ctx), w.turn, w.left, false)
			return got{jobs: len(taken.Jobs)}, len(taken.Jobs) > 0, err
		case <-w.roomy:
			w.observer.woken(events.Scan)
			return got{}, false, nil
		case <-w.waiter.C:
			w.waits.look()
			w.wake(events.Notification)
			return got{}, false, nil
		case <-scan:
			w.wake(cause)
			return got{}, false, nil
		}
	}
}

// wake says why the fetch looks for work. Others may have some, too.
func (w *waitingFetch) wake(cause events.Cause) {
	w.observer.woken(cause)
	if w.others == nil {
		w.others = time.After(w.handingOn.after())
	}
}

// beginOrLease gets jobs for a fetch that waits: it begins what may be begun at once, so that it
// need not wait for the turn's next activity, and leases the rest for the turn. A turn that may
// have been fetched before begins nothing here. waited: the fetch has looked before.
func (f *fetch) beginOrLease(ctx context.Context, limit int, waited bool) (got, error) {
	again := f.request.Again
	if h, ok := f.handlers.Handling(""); waited && !again && ok && h.Picked == PickedAtOnce {
		t := f.newTurn(TurnRequest{Turn: f.turn, Batch: limit}, nil)
		l := t.pickWith(ctx, ctx, &call{picked: true}, h, min(limit, h.Parallel))
		if l.worked > 0 {
			report := t.tally.soFar()
			report.Leased = l.worked
			f.observer.turn(t.request, f.turn, report, t.began, nil)
			return got{jobs: l.worked, worked: &report}, nil
		}
		// One scan at a time: a second one would only be a recent scan, and ask for a third.
		if len(l.jobs) > 0 || l.err != nil || !l.mustLease && l.leaseFor == 0 {
			return got{jobs: len(l.jobs), again: l.again}, l.err
		}
	}
	var leased store.Leased
	var err error
	if f.begins && !again {
		leased, err = f.bridge(ctx, limit)
	} else {
		leased, err = f.leaseWhole(ctx, f.turn, limit, f.room.unbounded())
	}
	return got{jobs: len(leased.Jobs), again: leased.Wait()}, err
}

// fetchedTurn is the detached turn by which a fetch holds what it begins at once.
func fetchedTurn(turn store.Turn) store.Turn {
	turn.ID += "/fetched"
	return turn.Detach()
}

// bridge leases jobs for a fetch that has waited, and begins them at once, in the background,
// because the turn's next activity begins only after a hop through Temporal. For a second it leases
// and begins further jobs.
func (f *fetch) bridge(ctx context.Context, limit int) (store.Leased, error) {
	e, turn := f.Engine, fetchedTurn(f.turn)
	leased, err := e.leaseRoomy(ctx, turn, limit)
	if err == nil {
		err = ctx.Err() // cancelled meanwhile: they are not begun
	}
	if err != nil || len(leased.Jobs) == 0 {
		e.room.leave(leased.Jobs)
		return leased, err
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := e.newRunner(TurnRequest{Turn: turn, Batch: limit, Length: bridgeFor, Linger: true, Stop: f.request.Stop}, cancel)
	r.holder.queue, r.unattended = leased.Jobs, true
	r.tally.note(func(r *Report) { r.Leased = len(leased.Jobs) })
	end := r.tend(e.life, work)
	e.detached.running.Go(func() {
		_, err := r.run(e.life, work)
		r.endDetached(work, err, end)
	})
	return leased, nil
}

// leaseNow leases what is due. Only a full scan can tell that nothing is due: unless something was
// found before, leaseNow waits a moment for its end.
func (f *fetch) leaseNow(ctx context.Context, limit int, found bool) (got, error) {
	for room := f.room.unbounded(); ; {
		leased, err := f.leaseWhole(ctx, f.turn, limit, room)
		if err != nil || found || len(leased.Jobs) > 0 || leased.Again == 0 || leased.Locked {
			return got{jobs: len(leased.Jobs)}, err
		}
		select {
		case <-time.After(leased.Again):
		case <-f.request.Stop:
			return got{}, nil
		case <-ctx.Done():
			return got{}, nil
		}
	}
}
