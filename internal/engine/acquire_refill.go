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
	// passOn is how long a refill may be under way before other turns are told of what comes
	// meanwhile.
	passOn = 10 * time.Millisecond
	// maxGrowth and maxRefill bound what a refill may ask for: so many times the batch, so many
	// jobs.
	maxGrowth = 10
	maxRefill = 1000
	// readOn is the pause between two scans of a turn that reads all before it ends.
	readOn = 10 * time.Millisecond
	// longestWait is the longest pause between two scans: requests wake a turn for jobs that are due
	// within a minute, and not for those that are due later.
	longestWait = 50 * time.Second
)

// acquirer gets a turn more jobs, by one refill at a time.
type acquirer struct {
	part
	underWay bool
	// picks says how the present refill gets jobs, or the last one did. at is when it began.
	picks picks
	at    time.Time
	// called: the refill under way may have read the queue before a wake-up came. declines: the
	// others are to be told of that if it lasts. freed: jobs were completed since it began, which
	// it may have counted towards a cap.
	called, declines, freed bool

	// batch is what the next one asks for. full: the last one found all that it asked for.
	batch int
	full  bool
	// nothingDue: the last one found nothing; another one is due at again, or when a wake-up comes.
	nothingDue bool
	again      time.Time
	outlook

	// next says which of the next jobs are picked: not before pickAgainAfter, and not when
	// mustLease says that the due jobs cannot be picked.
	next           picks
	mustLease      bool
	pickAgainAfter time.Time

	// waiter tells of work that has come, roomy of room that there is again for jobs that were
	// passed over.
	waiter *store.Subscription
	roomy  <-chan struct{}
	// takesNoMore: the turn takes no more work, and waits for none.
	takesNoMore bool
}

// picks says which jobs a turn picks: those of a bulk type, or single jobs of short types. The zero
// value picks none.
type picks struct {
	short bool
	bulk  bool
	// jobType is the bulk type.
	jobType string
}

func newAcquirer(p part, waiter *store.Subscription) acquirer {
	// A turn that waits for its first job leases first: then the poll that drew its fence stands for
	// a scan.
	a := acquirer{part: p, batch: p.request.Batch, waiter: waiter, mustLease: p.request.Wait > 0}
	if h, ok := p.engine.handlers.Handling(""); ok && h.Picked == PickedAtOnce {
		a.next.bulk = true
	}
	return a
}

// outlook is what a refill has seen besides the jobs that it brought.
type outlook struct {
	// unread: it could not afford to read everything, so that jobs may be due all the same.
	// heldBack: it left due jobs alone for a while, of organizations that this process holds back.
	unread, heldBack bool
	// capped: organizations with a cap may have work. roomless: it passed over jobs for which there
	// was no room.
	capped, roomless bool
}

type refilled struct {
	outlook
	// jobs are leased, if there is no error; worked counts those that were picked.
	jobs   []store.Job
	worked int
	// open is the pick that worked single jobs: running are its calls that go on, ended its jobs
	// that it could not complete.
	open    *openPick
	running []*call
	ended   []ended
	// asked is how many were asked for.
	asked int
	// again is when another refill is worth while, if this one brought nothing; 0: when a wake-up
	// comes.
	again time.Duration
	err   error

	// call is the one that worked what was picked; nil: a lease.
	call *call
	// mustLease: what is due cannot be picked. leaseFor is for how long no more is picked.
	mustLease bool
	leaseFor  time.Duration
}

func (refilled) event() {}

// moment is when something last happened in one of the goroutines that share it.
type moment struct {
	mu sync.Mutex
	at time.Time
}

// begin notes that it happens now, unless it has happened within the interval; then it returns how
// long to wait.
func (m *moment) begin(now time.Time, interval time.Duration) (wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if next := m.at.Add(interval); now.Before(next) {
		return next.Sub(now)
	}
	m.at = now
	return 0
}

// refill leases or picks more jobs, if there is room and there may be some. active counts the jobs
// that are being worked.
func (a *acquirer) refill(work context.Context, room, active int) {
	if a.underWay || room <= 0 {
		return
	}
	now := time.Now()
	if a.nothingDue && now.Before(a.again) {
		a.wakeAt(a.again)
		return
	}
	expected := room
	if a.roomless {
		expected = min(room, a.engine.room.regained())
	}
	if small := a.at.Add(smallLease); 4*expected < active && now.Before(small) {
		a.wakeAt(small)
		return
	}
	if !a.full { // one that is not to wait is not noted, or the others would wait for as long as it goes on
		if wait := a.engine.lastRefill.begin(now, a.engine.options.PickInterval); wait > 0 {
			a.wakeAt(now.Add(wait))
			return
		}
	}
	if a.nothingDue {
		a.engine.observer.woken(events.Scan)
	}
	if !a.at.IsZero() { // the turn's first scan follows a poll, which has looked
		a.engine.waits.look()
	}
	a.underWay, a.freed, a.at = true, false, now
	if a.picks = a.next; a.mustLease || now.Before(a.pickAgainAfter) || a.request.Crashed {
		a.picks = picks{}
	}
	go a.getJobs(work, a.picks, min(room, a.batch), a.waiter)
}

func (a *acquirer) leasing() bool { return a.underWay && a.picks == picks{} }

func (t *turn) getJobs(work context.Context, how picks, n int, waiter *store.Subscription) {
	var l refilled
	switch {
	case how.bulk:
		l = t.pickBulk(work, how.jobType, n)
	case how.short:
		l = t.pickShort(work, n, waiter)
	default:
		l = t.lease(work, n)
	}
	t.tell(l)
	if l.open != nil {
		close(l.open.over)
	}
}

func (a *acquirer) take(l refilled) {
	a.underWay = false
	found := len(l.jobs) + l.worked
	if a.mustLease = l.mustLease; l.leaseFor > 0 {
		a.pickAgainAfter = time.Now().Add(l.leaseFor)
	}
	if (l.mustLease || l.leaseFor > 0) && found == 0 {
		a.waiter.Scanned(true)
		return // it is leased at once
	}
	a.nothingDue, a.called = found == 0 && !a.called && (!l.capped || !a.freed), false
	a.outlook, a.again = l.outlook, time.Now().Add(longestWait)
	if l.again > 0 && l.again < longestWait {
		a.again = time.Now().Add(l.again)
	}
	if len(l.jobs) > 0 {
		a.next = picksLike(a.engine, l.jobs)
	}
	a.tally.note(func(r *Report) {
		r.Leased += found
		r.More = found >= l.asked
	})
	a.full = found >= l.asked
	if found > 0 {
		a.waiter.Found()
	}
	// What falls due soon is known to this turn alone: if it ends, another one is to look.
	a.waiter.Scanned(!a.nothingDue || l.again > 0 && l.again < longestWait)
	if a.full && l.open == nil {
		a.waiter.Pass() // an open pick has told the others when it had locked its jobs
	}
	a.batch = a.nextBatch(found, l.asked)
}

// nextBatch says how much the next refill asks for, after one that brought found jobs of those that
// it asked for: twice as much while the queue is long, for fewer and larger transactions; the batch
// that was asked for as soon as it is not.
func (a *acquirer) nextBatch(found, asked int) int {
	if found < asked {
		return a.request.Batch
	}
	return min(2*a.batch, maxGrowth*a.request.Batch, max(maxRefill, a.request.Batch))
}

// allRead reports that nothing is due, after everything was read.
func (a *acquirer) allRead() bool {
	switch {
	case !a.nothingDue, a.heldBack:
		return false
	case !a.unread:
		return true
	}
	a.engine.kind.ReadOn()
	if soon := time.Now().Add(readOn); soon.Before(a.again) {
		a.again = soon
	}
	a.wakeAt(a.again)
	return false
}

// takeNoMore ends the turn's wake-ups. Work that it was told of and does not take is left to the
// other waiters.
func (a *acquirer) takeNoMore() {
	if !a.takesNoMore {
		a.takesNoMore = true
		a.waiter.Close()
	}
}

// scanAgain asks for another refill, also while one is under way: that one may have read the queue
// before.
func (a *acquirer) scanAgain() { a.nothingDue, a.called = false, a.underWay }

// wake takes in that work has come. It is passed on when this turn cannot take it soon.
func (a *acquirer) wake(takesSome bool) {
	a.scanAgain()
	if a.declines = a.underWay && takesSome; !takesSome {
		a.waiter.Decline()
	}
}

// passOn tells others of work that has come since the refill under way began, when that takes long.
func (a *acquirer) passOn() {
	switch {
	case !a.declines:
	case !a.underWay:
		a.declines = false
	case time.Since(a.at) < passOn:
		a.wakeAt(a.at.Add(passOn))
	default:
		a.declines = false
		a.waiter.Decline()
	}
}
