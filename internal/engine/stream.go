package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

const (
	// laneJobs is how many jobs a turn has begun or leased at a time, at most.
	laneJobs = 500
	// gatherFor is how long the first of the jobs that have ended waits for others, to be settled together; gatherEnough are
	// not made to wait.
	gatherFor    = 2 * time.Millisecond
	gatherEnough = 100
	// smallLease is the pause before a lease that is small beside what the turn works already.
	smallLease = 20 * time.Millisecond
	// directPause is for how long jobs are leased after some that were to be worked without it could not be.
	directPause = time.Second
	// lastGoodbye is how long a handler whose context has ended may take to return, before its turn goes on without it;
	// stopGoodbye is the same after the turn was told to stop and the grace is over.
	lastGoodbye = 5 * time.Second
	stopGoodbye = 2 * time.Second
)

// stream works a turn's jobs as they come. One goroutine decides, in loop and drain: it begins what there is room for, has
// settled what has ended, and has leased what there will be room for. Handlers, one settlement and one lease run beside it
// and tell it when they are done.
type stream struct {
	*turn
	waker <-chan struct{}
	// roomy receives when there is room again for jobs that were passed over.
	roomy <-chan struct{}
	// active counts the jobs that are being worked, but for those of abandoned calls.
	active int
	// checked is when calls that do not return were last looked for, goodbye when that was first done after the turn was told
	// to stop.
	checked, goodbye time.Time

	// over gets calls as they return. It has room for all of them, so that one that returns when the turn is over blocks nobody.
	over chan returned
	// hand passes a job to a goroutine that has ended another one.
	hand chan store.Job

	// unattended: no activity waits for the stream.
	unattended bool
	// careful: jobs are being worked that may have killed their worker.
	careful bool

	// ended are to be settled; held could not be, because somebody holds their rows, until heldUntil.
	ended, held []ended
	endedSince  time.Time
	heldUntil   time.Time
	settling    bool
	settles     chan settledJobs

	leasing  bool
	leases   chan leasedJobs
	leasedAt time.Time
	// dry: the last lease found nothing; another one is due at again, or, if that is zero, when somebody says so.
	dry   bool
	again time.Time
	// called: a lease that is under way may have read the queue before somebody called.
	called bool
	// before is what the turn had done when it last looked. capped: organizations with a cap may have work.
	before Report
	capped bool
	// tight: the last lease passed over jobs for which there was no room.
	tight bool
	// direct is the bulk type whose jobs are worked without being leased; until notDirect none is.
	direct    string
	notDirect time.Time

	// own and settlements are what the database does to the stream's own statements: settlements, and all others.
	own, settlements trouble
	// begun are the jobs that calls were given and have not returned, inSettlement those that the settlement under way has.
	begun        map[string]bool
	inSettlement []ended
	// back are to be given back.
	back []givenBack
	// doubt is when a lease last ended without saying what it leased, reconcileAt when to look for that.
	doubt, reconcileAt time.Time

	// alarm is when loop is to look around, whatever happens.
	alarm time.Time
}

// leasedJobs is what came of a lease.
type leasedJobs struct {
	jobs []store.Job
	// asked is how many were asked for.
	asked int
	// worked counts those that were worked at once, without a lease.
	worked int
	// notDirectly: they could not be worked without a lease.
	notDirectly bool
	// slow: they are not to be worked so again in this turn.
	slow   bool
	capped bool
	// passed: jobs are due for which there was no room.
	passed bool
	again  time.Duration
	err    error
	// call is the one that worked them; nil: they are leased.
	call *call
}

func newStream(t *turn) *stream {
	return &stream{
		turn: t, over: make(chan returned, 2*laneJobs), hand: make(chan store.Job),
		// One lease is under way, and perhaps a call that was abandoned.
		settles: make(chan settledJobs, 1), leases: make(chan leasedJobs, 2),
		own: trouble{doing: "lease and give back"}, settlements: trouble{doing: "settle"}, begun: map[string]bool{},
	}
}

// processJobs is Process for background jobs.
func (e *Engine) processJobs(ctx, work context.Context, t *turn, end func()) (Report, error) {
	s := newStream(t)
	left, err := s.run(ctx, work)
	end()
	if left {
		return s.goOn(ctx, work)
	}
	defer t.cancelWork()
	if err == nil {
		err = t.finish(ctx, t.identity())
	}
	s.reclaimDoubtful(t.identity())
	s.close()
	return e.withLate(t.soFar()), err
}

// run works until the turn is over. left says that jobs are being worked that are to outlive it.
func (s *stream) run(ctx, work context.Context) (left bool, err error) {
	if err := s.takeOverFirst(ctx, work); err != nil {
		return false, err
	}
	roomy, leave := s.engine.room.subscribe()
	defer leave()
	s.roomy = roomy
	wake, unsubscribe := s.engine.waker.Subscribe(true)
	defer unsubscribe()
	s.waker = wake
	if left, err = s.loop(ctx, work); left {
		return left, nil
	}
	return false, s.drain(work, err)
}

// loop begins, settles and leases until the turn is over. left is as run's.
func (s *stream) loop(ctx, work context.Context) (left bool, err error) {
	for {
		if s.stopping(ctx) {
			return false, nil
		}
		if !s.alive() {
			return s.giveUp(ctx, work)
		}
		now := time.Now()
		timeUp := !now.Before(s.ends)
		s.alarm = now.Add(time.Second)
		if !timeUp {
			s.wakeAt(s.ends)
		}
		if left, err = s.step(work, timeUp && (s.request.Length > 0 || s.enough())); left || err != nil {
			return left, err
		}
		s.noticeSettled()
		s.startSettling(work)
		if !timeUp && s.own.well(now) {
			s.startLeasing(work)
		}
		if !s.busy() && (timeUp || s.dry && !s.request.Linger && s.queued() == 0) {
			return false, nil
		}
		if err := s.wait(work, ctx.Done(), s.request.Stop); err != nil {
			return false, err
		}
	}
}

// enough reports whether the turn was told to begin nothing more.
func (s *stream) enough() bool {
	select {
	case <-s.request.Enough:
		return true
	default:
		return false
	}
}

// giveUp ends a turn that Temporal has given to another worker: nothing more is begun, what has not begun is given back, and what runs goes
// on. left is as run's.
func (s *stream) giveUp(ctx, work context.Context) (left bool, err error) {
	for !s.stopping(ctx) {
		s.alarm = time.Now().Add(time.Second)
		if left, err = s.step(work, true); left || err != nil || !s.busy() {
			return left, err
		}
		s.noticeSettled()
		s.startSettling(work)
		if err := s.wait(work, ctx.Done(), s.request.Stop); err != nil {
			return false, err
		}
	}
	return false, nil
}

// step does what loop does itself, unless the database has just failed the like. ending: nothing more is begun. left is as run's.
func (s *stream) step(work context.Context, ending bool) (left bool, err error) {
	if !s.own.well(time.Now()) {
		s.wakeAt(s.own.until)
		return false, nil
	}
	if ending {
		// What is not begun does not wait for what runs.
		s.later(s.takeQueue(), 0)
	}
	err = s.verify(work)
	if err == nil {
		err = s.giveAllBack(work)
	}
	if err == nil {
		err = s.reconcile(work)
	}
	if err == nil && ending {
		left, err = s.outlive(work)
	}
	if err == nil && !left {
		err = s.begin(work)
	}
	return left, s.endure(work, &s.own, err)
}

// noticeSettled has the queue looked at again, here and by those that wait, when jobs were put off: nobody calls when they are
// due. When jobs of capped organizations have ended there may be room for others of theirs.
func (s *stream) noticeSettled() {
	now, before := s.soFar(), s.before
	s.before = now
	s.mu.Lock()
	again := s.requeued > 0
	s.requeued = 0
	s.mu.Unlock()
	switch {
	case again:
		// A job was asked for anew while it was worked: it is due, here and everywhere.
		s.engine.waker.Remind()
		s.lookAgain()
	case now.Retried+now.Rescheduled+now.Released != before.Retried+before.Rescheduled+before.Released:
		s.engine.waker.Remind()
		s.lookAgain()
	case s.capped && now.Completed+now.Failed+now.Cancelled != before.Completed+before.Failed+before.Cancelled:
		s.lookAgain()
	}
}

// lookAgain has another lease made, also if one is under way: what that has read may be older.
func (s *stream) lookAgain() { s.dry, s.called = false, s.leasing }

// drain waits for what runs, and settles it. After an error what runs is stopped, and nothing is settled: another turn takes it over.
func (s *stream) drain(work context.Context, err error) error {
	for {
		s.alarm = time.Now().Add(time.Second)
		if err != nil {
			s.cancelWork()
			s.ended, s.held = nil, nil
		} else {
			s.startSettling(work)
		}
		if !s.busy() {
			return err
		}
		err = cmp.Or(err, s.wait(work, nil, nil))
	}
}

// busy reports whether something is going on that the turn waits for.
func (s *stream) busy() bool {
	return s.active > 0 || s.leasing || s.settling || len(s.ended)+len(s.held) > 0
}

// wakeAt makes loop look around at a time, if not before.
func (s *stream) wakeAt(at time.Time) {
	if at.Before(s.alarm) {
		s.alarm = at
	}
}

// wait waits until something has happened, and takes note of it.
func (s *stream) wait(work context.Context, cancelled, stop <-chan struct{}) error {
	timer := time.NewTimer(time.Until(s.alarm))
	defer timer.Stop()
	select {
	case some := <-s.over:
		s.note(some)
		// Many end together: they are taken together.
		for range len(s.over) {
			s.note(<-s.over)
		}
	case l := <-s.leases:
		return s.noteLease(work, l)
	case r := <-s.settles:
		return s.noteSettled(work, r)
	case <-s.waker:
		s.lookAgain()
	case <-s.roomy:
		s.lookAgain()
	case <-timer.C:
	case <-cancelled:
	case <-stop:
	}
	if time.Since(s.checked) > time.Second {
		s.checked = time.Now()
		s.abandon(work)
	}
	return nil
}

// queued counts the leased jobs that are not begun.
func (t *turn) queued() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.queue)
}

// takeQueue takes the leased jobs that are not begun.
func (t *turn) takeQueue() []store.Job {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.queue
	t.queue = nil
	return queue
}

// begin starts the queued jobs. Room is reserved for what was leased for this stream. What was taken over may have to wait for it,
// marked as not being worked, so that it is not charged when the worker dies. Jobs without a handler here are another worker's.
func (s *stream) begin(work context.Context) error {
	queue := s.takeQueue()
	s.engine.room.wait(s, nil)
	if len(queue) == 0 {
		s.careful = s.careful && s.active > 0
		return nil
	}
	var start, waiting, resumed, unknown []store.Job
	bulk, wait := map[string][]store.Job{}, map[string]int{}
	suspects := s.suspects(queue)
	for i, j := range queue {
		h, ok := s.engine.handlers.Handling(j.Type)
		switch {
		case !ok:
			unknown = append(unknown, j)
			continue
		case i >= suspects || !h.Bulk && !j.Room && !s.engine.room.take(j.Type):
			if !j.Room {
				wait[j.Type]++
			}
			waiting = append(waiting, j)
			continue
		case h.Bulk:
			bulk[j.Type] = append(bulk[j.Type], j)
		default:
			// Should it not be begun after all, the room stays its own.
			queue[i].Room, j.Room = true, true
			start = append(start, j)
		}
		if j.Waiting {
			resumed = append(resumed, j)
		}
	}
	s.engine.room.wait(s, wait)
	if err := s.markWaiting(work, waiting); err != nil {
		s.undo(queue)
		return err
	}
	begun, err := s.beginWaiting(work, resumed)
	if err != nil {
		s.undo(queue)
		return err
	}
	waiting = append(waiting, begun.held...)
	for _, j := range begun.of(start) {
		s.active++
		s.start(work, j)
	}
	for jobType, jobs := range bulk {
		s.startMany(work, jobType, begun.of(jobs))
	}
	s.mu.Lock()
	s.queue = append(s.queue, waiting...)
	s.mu.Unlock()
	s.later(unknown, 0)
	return s.giveAllBack(work)
}

// leaveRoom gives back the room of jobs that are not begun after all.
func (s *stream) leaveRoom(jobs []store.Job) {
	for _, j := range jobs {
		if j.Room {
			s.engine.room.Return(j.Type, 1)
		}
	}
}

// suspects puts those of the leased jobs first that ended with their worker before, and says how many of all may be begun now. A
// job that kills its worker must end alone, and the others are charged with it only if they are being worked: so bulks that
// were taken over once are worked in tenths, what was taken over again one by one, and nothing else meanwhile.
func (s *stream) suspects(queue []store.Job) int {
	suspicion := func(j store.Job) int {
		if h, ok := s.engine.handlers.Handling(j.Type); j.Takeovers == 1 && (!ok || !h.Bulk) {
			return 0
		}
		return min(j.Takeovers, 2)
	}
	slices.SortStableFunc(queue, func(a, b store.Job) int {
		return cmp.Or(cmp.Compare(suspicion(b), suspicion(a)), cmp.Compare(a.Type, b.Type)*min(1, suspicion(a)))
	})
	worst := suspicion(queue[0])
	switch {
	case worst == 0 && !s.careful:
		return len(queue)
	case s.active > 0:
		return 0
	}
	s.careful = worst > 0
	switch worst {
	case 0:
		return len(queue)
	case 1:
		n := 1
		for n < laneJobs/10 && n < len(queue) && suspicion(queue[n]) == 1 && queue[n].Type == queue[0].Type {
			n++
		}
		return n
	}
	return 1
}

// markWaiting says of jobs that they have begun to wait for room.
func (s *stream) markWaiting(work context.Context, waiting []store.Job) error {
	var fresh []string
	for i := range waiting {
		if !waiting[i].Waiting {
			waiting[i].Waiting = true
			fresh = append(fresh, waiting[i].ID)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return s.engine.store.MarkWaiting(work, s.identity(), fresh)
}

// giveBack releases jobs, uncounted; what somebody holds locked is given back at the turn's end.
func (t *turn) giveBack(work context.Context, jobs []store.Job, delay time.Duration) error {
	if len(jobs) == 0 {
		return nil
	}
	n, err := t.engine.store.Release(work, t.identity(), idsOf(jobs), delay)
	t.mu.Lock()
	t.report.Released += n
	t.mu.Unlock()
	t.tellProgress()
	return err
}
