package engine

import (
	"context"
	"sync"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
)

const (
	// smallLease is the pause before a refill that is small beside what the turn works already.
	smallLease = 20 * time.Millisecond
	// passOn is how long a refill may be under way before other turns are told of what comes meanwhile.
	passOn = 10 * time.Millisecond
	// maxGrowth and maxRefill bound what a refill may ask for: so many times the batch, so many jobs.
	maxGrowth = 10
	maxRefill = 1000
)

// refillState is what the loop knows of how it gets more jobs. One refill is under way at a time.
type refillState struct {
	underWay bool
	// leases: the refill under way leases.
	leases bool
	// at is when the last one began, batch what the next one asks for.
	at    time.Time
	batch int
	// full: the last refill found all that it asked for.
	full bool
	// dry: the last refill found nothing; another one is due at again, or, if that is zero, when a wake-up comes.
	dry   bool
	again time.Time
	// unread: it could not afford to read everything, so that jobs may be due all the same.
	unread bool
	// called: the refill under way may have read the queue before a wake-up came. declines: the others are to be told of that if it lasts.
	called, declines bool
	// capped: organizations with a cap may have work. tight: the last refill passed over jobs for which there was no room. freed: jobs were completed
	// while the refill is under way, which may have counted them towards a cap.
	capped, tight, freed bool

	// picks says which of the next jobs are picked, without being leased, pickType of which bulk type; not before leaseUntil, and not if the
	// next refill is to lease.
	picks      picks
	pickType   string
	leaseUntil time.Time
	leaseNext  bool
}

// picks says which jobs a turn picks.
type picks int

const (
	picksNone picks = iota
	// picksBulk: those of one bulk type, which are worked in the transaction that picked them.
	picksBulk
	// picksShort: single jobs of short types, which are worked beside it.
	picksShort
)

func (e *Engine) newRefill(q TurnRequest) refillState {
	f := refillState{batch: q.Batch}
	if h, ok := e.handlers.Handling(""); ok && h.Picked == PickedAtOnce {
		f.picks = picksBulk
	}
	return f
}

// refilled is the result of a refill.
type refilled struct {
	// jobs are leased, if there is no error; worked counts those that were picked and are completed; open has those that are picked and are to be begun.
	jobs   []store.Job
	worked int
	open   *openPick
	// asked is how many were asked for.
	asked int
	// again is when another refill is worth while, if this one brought nothing; 0: when a wake-up comes.
	again time.Duration
	// unread: jobs may be due of which the scan does not know, although this one brought nothing.
	unread bool
	// capped: organizations with a cap may have work. passed: jobs are due for which there was no room.
	capped, passed bool
	err            error

	// call is the one that worked what was picked; nil: a lease.
	call *call
	// leaseNext: what is due cannot be picked. leaseFor is for how long no more is picked.
	leaseNext bool
	leaseFor  time.Duration
}

// moment is when something last happened in one of the goroutines that share it.
type moment struct {
	mu sync.Mutex
	at time.Time
}

// begin notes that it happens now, unless it has happened within the interval; then it returns how long to wait. What must happen does not
// wait, and is not noted: the others would otherwise wait for as long as one of them goes on with it.
func (m *moment) begin(now time.Time, interval time.Duration, must bool) (wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if must {
		return 0
	}
	if next := m.at.Add(interval); now.Before(next) {
		return next.Sub(now)
	}
	m.at = now
	return 0
}

// readOn is the pause between two scans of a turn that reads all before it ends.
const readOn = 10 * time.Millisecond

// dried reports that nothing is due, as far as the turn has to know that: one that does not linger reads everything first.
func (r *runner) dried() bool {
	f := &r.refill
	if !f.dry || !f.unread || r.request.Linger {
		return f.dry
	}
	r.engine.kind.ReadOn()
	if soon := time.Now().Add(readOn); f.again.IsZero() || soon.Before(f.again) {
		f.again = soon
	}
	r.wakeAt(f.again)
	return false
}

// scanAgain asks for another refill, also while one is under way: that one may have read the queue before.
func (r *runner) scanAgain() { r.refill.dry, r.refill.called = false, r.refill.underWay }

// called takes in that work has come. It is passed on when this turn cannot take it soon.
func (r *runner) called() {
	r.scanAgain()
	r.refill.declines = r.refill.underWay
	if r.capacityLeft() <= 0 || r.careful {
		r.refill.declines = false
		r.waiter.Decline()
	}
	r.passOn()
}

// passOn tells others of work that has come since the refill under way began, when that takes long.
func (r *runner) passOn() {
	f := &r.refill
	switch {
	case !f.declines:
	case !f.underWay:
		f.declines = false
	case time.Since(f.at) < passOn:
		r.wakeAt(f.at.Add(passOn))
	default:
		f.declines = false
		r.waiter.Decline()
	}
}

// capacityLeft is how many more jobs the turn may have.
func (r *runner) capacityLeft() int {
	return r.engine.capacity - r.active - len(r.queue) - len(r.skipped)
}

// startRefill leases or picks more jobs, if there is room and there may be some.
func (r *runner) startRefill(work context.Context) {
	f := &r.refill
	// What is leased beside a job that kills its worker may be charged with it.
	if f.underWay || r.careful {
		return
	}
	now := time.Now()
	if f.dry && now.Before(f.again) {
		r.wakeAt(f.again)
	}
	if f.dry && (f.again.IsZero() || now.Before(f.again)) {
		return
	}
	room := r.capacityLeft()
	if room <= 0 {
		return
	}
	expected := room
	if f.tight {
		expected = min(room, r.engine.room.regained())
	}
	if small := f.at.Add(smallLease); 4*expected < r.active && now.Before(small) {
		r.wakeAt(small)
		return
	}
	if wait := r.engine.lastRefill.begin(now, r.engine.options.PickInterval, f.full); wait > 0 {
		r.wakeAt(now.Add(wait))
		return
	}
	if f.dry {
		r.engine.observer.woken(events.Scan)
	}
	r.engine.lookAtWaits()
	n := min(room, f.batch)
	f.underWay, f.freed, f.at = true, false, now
	pick := f.picks
	if f.leaseNext || now.Before(f.leaseUntil) || r.request.Crashed {
		pick = picksNone
	}
	f.leases = pick == picksNone
	switch pick {
	case picksBulk:
		r.startPick(work, f.pickType, n)
	case picksShort:
		r.spawn(func() { r.openPick(work, n) })
	case picksNone:
		r.spawn(func() { r.refills <- r.lease(work, n) })
	}
}

// lease leases up to n jobs, for which it reserves room.
func (r *runner) lease(work context.Context, n int) refilled {
	leased, err := r.engine.leaseRoomy(work, r.holder.turn(), n)
	return refilled{jobs: leased.Jobs, asked: n, again: leased.Wait(), unread: leased.Unread, capped: leased.Capped, passed: leased.Passed, err: err}
}

// noteRefill applies the result of a refill.
func (r *runner) noteRefill(work context.Context, l refilled) error {
	f := &r.refill
	if l.call != nil && l.call.abandoned {
		// Another refill may be under way. What this one has leased is the turn's all the same.
		if l.err == nil {
			r.queue = append(r.queue, l.jobs...)
		} else {
			r.doubt, r.reconcileAt = time.Now(), time.Time{}
		}
		return nil
	}
	if l.open != nil && !l.open.taken.CompareAndSwap(false, true) {
		l = refilled{asked: l.asked, again: lockedRest} // it was undone, because it has waited for long
	}
	f.underWay = l.open != nil
	if l.err != nil {
		r.engine.room.leave(l.jobs)
		f.dry = false
		r.doubt, r.reconcileAt = time.Now(), time.Time{}
		return r.endure(work, &r.own, l.err)
	}
	r.recovered(&r.own)
	found := len(l.jobs) + l.worked
	if l.open != nil {
		found += r.beginPick(work, l.open)
	}
	if f.leaseNext = l.leaseNext; l.leaseFor > 0 {
		f.leaseUntil = time.Now().Add(l.leaseFor)
	}
	if (l.leaseNext || l.leaseFor > 0) && found == 0 {
		return nil // it is leased at once
	}
	f.dry, f.called, f.again = found == 0 && !f.called && (!l.capped || !f.freed), false, time.Time{}
	f.capped, f.tight, f.unread = l.capped, l.passed, l.unread
	if l.again > 0 {
		f.again = time.Now().Add(l.again)
	}
	if len(l.jobs) > 0 {
		f.picks, f.pickType = r.pickable(l.jobs)
	}
	r.tally.note(func(r *Report) {
		r.Leased += found
		r.More = found >= l.asked
	})
	if found > 0 {
		r.waiter.Found()
	}
	if f.full = found >= l.asked; f.full {
		r.waiter.Pass()
	}
	r.queue = append(r.queue, l.jobs...)
	f.batch = r.nextBatch(found, l.asked)
	return nil
}

// nextBatch says how much the next refill asks for, after one that brought found jobs of those that it asked for: twice as much while the
// queue is long, for fewer and larger transactions; the batch that was asked for as soon as it is not.
func (r *runner) nextBatch(found, asked int) int {
	if found < asked {
		return r.request.Batch
	}
	return min(2*r.refill.batch, maxGrowth*r.request.Batch, max(maxRefill, r.request.Batch))
}

// leaseRoomy leases jobs that can be begun at once, and notes that room for them is reserved. The caller may be told to stop meanwhile: the
// statement is not cut off, so that what it leases is known.
func (e *Engine) leaseRoomy(ctx context.Context, turn store.Turn, n int) (store.Leased, error) {
	turn.Begins = e.begins
	leased, err := e.leaseWhole(ctx, turn, n, e.room)
	for i := range leased.Jobs {
		h, _ := e.handlers.Handling(leased.Jobs[i].Type)
		leased.Jobs[i].Room = !h.Bulk
	}
	leased.Jobs = e.marked(leased.Jobs)
	return leased, err
}

// leaseWhole leases jobs. The caller may be told to stop meanwhile: the statement is not cut off, so that what it leases is known.
func (e *Engine) leaseWhole(ctx context.Context, turn store.Turn, limit int, room store.Room) (store.Leased, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*store.LeaseLimit)
	defer cancel()
	leased, err := e.kind.LeaseFor(ctx, turn, limit, room)
	e.observer.leased(turn, leased.Jobs)
	return leased, err
}

// marked notes of jobs that were just leased whether they are charged from the beginning.
func (e *Engine) marked(jobs []store.Job) []store.Job {
	for i := range jobs {
		jobs[i].Waiting = !e.begins
	}
	return jobs
}
