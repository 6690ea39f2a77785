package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
)

// runner works the jobs of one turn as they come. Its loop is one goroutine, which decides, and
// alone sees all four parts:
//
//   - the acquirer gets more jobs, leased or picked (acquire_*.go);
//   - the holder has the jobs that are leased and not worked (hold_*.go);
//   - the worker has those that are being worked (work_*.go);
//   - the finisher has those that have ended and are not completed (finish_*.go).
//
// Each part is the loop's own: no other goroutine touches it. Calls of handlers, one completion and
// one refill run beside the loop, with the turn that they share, and tell it by an event when they
// have ended.
type runner struct {
	*turn
	*alarm
	acquirer acquirer
	holder   holder
	worker   worker
	finisher finisher

	// found: the turn has found a job. Until then it waits.
	found bool
	// resting: the turn has nothing to do, and waits for work.
	resting bool
	// others is when a turn that rests looks for jobs that only other workers may work; looked: it
	// has done that.
	others time.Time
	looked bool
	// before is the report when noticeCompleted last read it.
	before Report
}

// alarm is when the loop goes round again at the latest.
type alarm struct{ at time.Time }

// wakeAt has the loop go round again at a time, if not before.
func (a *alarm) wakeAt(at time.Time) {
	if at.Before(a.at) {
		a.at = at
	}
}

type part struct {
	*turn
	*alarm
}

// signal puts a token into a channel that has room for one, if it has none.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// event is what has ended beside the loop: a *returned, a refilled or a completed.
type event interface{ event() }

func (e *Engine) newRunner(q TurnRequest, waiter *store.Subscription, cancelWork context.CancelFunc) *runner {
	p := part{e.newTurn(q, cancelWork), &alarm{}}
	return &runner{
		turn: p.turn, alarm: p.alarm,
		acquirer: newAcquirer(p, waiter), finisher: newFinisher(p),
		holder: holder{part: p, db: trouble{doing: "lease and give back"}},
		worker: worker{part: p, running: map[string]int{}, begun: map[string]bool{}},
	}
}

// run works until the turn is over. detached says that jobs are being worked that go on without it.
func (r *runner) run(ctx, work context.Context) (detached bool, err error) {
	roomy, noRoom := r.engine.room.subscribe()
	defer noRoom()
	r.acquirer.roomy = roomy
	defer r.acquirer.takeNoMore()
	if err := r.leases.reclaimFirst(ctx, work, r.request); err != nil {
		return false, err
	}
	defer r.rest(false)
	r.recallHandOn(work)
	if detached, err = r.loop(ctx, work); detached {
		return true, nil
	}
	return false, r.drain(work, err)
}

// loop begins, completes and refills until the turn is over. A turn that Temporal has given to
// another worker begins nothing more, and gives back what has not begun; what runs goes on.
// detached is as run's.
func (r *runner) loop(ctx, work context.Context) (detached bool, err error) {
	enough := r.request.enough
	for alive := true; !r.stopping(ctx); {
		if alive = alive && (r.request.Alive == nil || r.request.Alive()); !alive {
			r.beginNoMore()
		}
		r.noticeFound()
		now := time.Now()
		ends := *r.ends.Load()
		r.at = now.Add(time.Second)
		timeUp := !alive || r.noMore() || !now.Before(ends) || r.waitsInVain(now)
		if timeUp {
			r.acquirer.takeNoMore()
			enough = nil
		} else {
			r.wakeAt(ends)
		}
		if detached, err = r.step(work, !alive || r.noMore()); detached || err != nil {
			return detached, err
		}
		r.noticeCompleted()
		r.finisher.start(work, r.worker.active > 0)
		if !timeUp && r.holder.db.healthy(now) {
			r.refill(work)
		}
		r.acquirer.passOn()
		idle := !r.busy() && r.acquirer.nothingDue && r.holder.empty()
		r.rest(idle || r.request.Wait > 0 && !r.found && r.worker.active == 0)
		if !r.busy() && (timeUp || !r.waits() && r.holder.empty() && r.acquirer.allRead()) {
			return false, nil
		}
		if r.handsOn(work, idle) {
			return false, nil
		}
		if err := r.wait(work, ctx.Done(), r.request.Stop, enough); err != nil {
			return false, err
		}
	}
	return false, nil
}

// noticeFound takes in that the turn has found its first jobs: from now on it has its length.
func (r *runner) noticeFound() {
	if r.found || r.tally.soFar().Leased == 0 {
		return
	}
	r.found = true
	if r.request.Wait > 0 {
		r.endIn(r.request.Length)
	}
	if r.request.Found != nil {
		r.request.Found(r.acquirer.full)
	}
}

// waitsInVain reports whether the turn has waited long enough for its first job. It has looked for
// one before, however slow the machine is, and waits for a refill that is under way.
func (r *runner) waitsInVain(now time.Time) bool {
	if r.found || r.request.Wait == 0 || r.acquirer.at.IsZero() || r.acquirer.underWay {
		return false
	}
	until := r.began.Add(r.request.Wait)
	if now.Before(until) {
		r.wakeAt(until)
		return false
	}
	r.engine.observer.woken(events.Poll)
	return true
}

// waits reports whether the turn waits for work when nothing is due, until its time is up.
func (r *runner) waits() bool { return r.request.Linger && r.found || r.request.Wait > 0 && !r.found }

func (r *runner) stopping(ctx context.Context) bool {
	select {
	case <-ctx.Done():
	case <-r.request.Stop:
	default:
		return false
	}
	r.tally.note(func(r *Report) { r.Stopped = true })
	return true
}

// step makes the turn's own statements, unless one has just failed, and begins jobs. ending:
// nothing more is begun. detached is as run's.
func (r *runner) step(work context.Context, ending bool) (detached bool, err error) {
	r.holder.takeArrived()
	if !r.holder.db.healthy(time.Now()) {
		r.wakeAt(r.holder.db.until)
		return false, nil
	}
	if ending {
		r.holder.giveBackQueue() // what is not begun does not wait for what runs
	}
	if err = r.giveBack(work); err == nil && ending {
		detached, err = r.detach(work)
	}
	if err == nil && !detached {
		err = r.begin(work)
	}
	return detached, r.retryLater(work, &r.holder.db, err)
}

// giveBack gives back what is to be given back, and what the turn holds without knowing it.
func (r *runner) giveBack(work context.Context) error {
	if err := r.holder.giveAllBack(work); err != nil {
		return err
	}
	if r.acquirer.underWay {
		return r.holder.reconcile(work, nil)
	}
	return r.holder.reconcile(work, func() map[string]bool { return r.finisher.known(r.worker.begun) })
}

func (r *runner) begin(work context.Context) error {
	left, err := r.worker.begin(work, r.holder.takeQueue(), r.acquirer.underWay || r.finisher.busy())
	r.holder.queue = append(r.holder.queue, left.waiting...)
	r.holder.skip(left.locked)
	r.holder.giveBackAfter(left.unknown, 0)
	if err != nil {
		return err
	}
	return r.holder.giveAllBack(work)
}

// refill gets more jobs. What is leased beside a job that kills its worker may be charged with it.
func (r *runner) refill(work context.Context) {
	if !r.worker.careful {
		r.acquirer.refill(work, r.capacityLeft(), r.worker.active)
	}
}

func (r *runner) beginNoMore() {
	r.acquirer.takeNoMore()
	r.quiet.Store(true)
}

func (r *runner) capacityLeft() int {
	return r.engine.capacity - r.worker.active - len(r.holder.queue) - len(r.holder.locked)
}

// busy reports whether something is going on that the turn waits for.
func (r *runner) busy() bool { return r.worker.active > 0 || r.acquirer.underWay || r.finisher.busy() }

// noticeCompleted has this turn and the waiters scan again when jobs were put off, because no
// notification comes when these fall due. It has this turn scan as well when jobs have ended while
// organizations have caps: others of those organizations may be leased now.
func (r *runner) noticeCompleted() {
	now, before := r.tally.soFar(), r.before
	r.before = now
	switch {
	case r.tally.takeRequeued() > 0,
		now.Retried+now.Rescheduled+now.Released != before.Retried+before.Rescheduled+before.Released:
		r.engine.waker.Remind()
		r.acquirer.scanAgain()
	case now.Completed+now.Failed+now.Cancelled == before.Completed+before.Failed+before.Cancelled:
	case r.acquirer.capped:
		r.acquirer.scanAgain()
	default:
		r.acquirer.freed = true
	}
}

// drain waits for what runs, and completes it. After an error what runs is stopped, and nothing is
// completed: another turn reclaims it.
func (r *runner) drain(work context.Context, err error) error {
	r.beginNoMore()
	for {
		r.at = time.Now().Add(time.Second)
		if err != nil {
			r.failed.Store(true)
			r.cancelWork()
			r.finisher.drop()
		} else {
			r.putBack(work)
			r.finisher.start(work, r.worker.active > 0)
		}
		r.noticeCompleted()
		if !r.busy() {
			return err
		}
		err = cmp.Or(err, r.wait(work, nil, nil, nil))
	}
}

// putBack gives back the jobs that are not begun while a turn drains, so that they do not wait for
// those that run. If that fails, they are given back later, or at the turn's end. It waits for a
// lease under way, which would lease again what is given back.
func (r *runner) putBack(work context.Context) {
	if r.acquirer.leasing() || work.Err() != nil {
		return
	}
	if !r.holder.db.healthy(time.Now()) {
		r.wakeAt(r.holder.db.until)
		return
	}
	r.holder.takeArrived()
	r.holder.giveBackQueue()
	_ = r.retryLater(work, &r.holder.db, r.giveBack(work))
}

func (r *runner) wait(work context.Context, cancelled, stop, enough <-chan struct{}) error {
	var err error
	select {
	case e := <-r.events:
		err = r.take(work, e)
		// Many end together: they are taken together.
		for n := len(r.events); n > 0 && err == nil; n-- {
			err = r.take(work, <-r.events)
		}
	case <-r.leases.arrived:
	case <-r.acquirer.waiter.C:
		r.engine.observer.woken(events.Notification)
		r.acquirer.wake(r.capacityLeft() > 0 && !r.worker.careful)
	case <-r.acquirer.roomy:
		r.engine.observer.woken(events.Scan)
		r.acquirer.scanAgain()
	case <-time.After(time.Until(r.at)):
	case <-cancelled:
	case <-stop:
	case <-enough:
	}
	r.abandon(work)
	return err
}

// take takes in what has ended beside the loop. It returns an error only if the turn is to end with
// it.
func (r *runner) take(work context.Context, e event) error {
	switch e := e.(type) {
	case *returned:
		r.takeReturned(e)
	case refilled:
		return r.takeRefilled(work, e)
	case completed:
		if err := r.finisher.take(e); err != nil {
			return r.retryLater(work, &r.finisher.db, err)
		}
		r.recovered(&r.finisher.db)
	}
	return nil
}

func (r *runner) takeReturned(c *returned) {
	for _, e := range c.jobs {
		delete(r.worker.begun, e.job.ID)
	}
	if r.acquirer.roomless {
		r.acquirer.scanAgain()
	}
	if c.call.abandoned {
		return
	}
	r.worker.leave(c.call)
	r.finisher.add(c.jobs)
	r.holder.queue = append(r.holder.queue, c.later...)
	r.holder.skip(c.skipped)
	for _, b := range c.back {
		r.holder.giveBackAfter(b.jobs, b.delay)
	}
}

func (r *runner) takeRefilled(work context.Context, l refilled) error {
	if l.call != nil && l.call.abandoned {
		// Another refill may be under way. What this one has leased is the turn's all the same.
		if l.err == nil {
			r.holder.queue = append(r.holder.queue, l.jobs...)
		} else {
			r.holder.loseTrack(0)
		}
		return nil
	}
	if l.err != nil {
		r.engine.room.leave(l.jobs)
		r.acquirer.underWay, r.acquirer.nothingDue = false, false
		r.holder.loseTrack(0)
		return r.retryLater(work, &r.holder.db, l.err)
	}
	r.recovered(&r.holder.db)
	if l.open != nil {
		r.worker.goOn(l.open, l.running)
		r.finisher.add(l.ended)
	}
	r.acquirer.take(l)
	r.holder.queue = append(r.holder.queue, l.jobs...)
	return nil
}

// close ends the turn. Calls that were abandoned keep their room until they return. What a lease
// may have left that ended without saying what it leased is given back later.
func (r *runner) close() {
	r.quiet.Store(true)
	close(r.closed)
	r.holder.takeArrived()
	r.engine.room.leave(r.holder.takeQueue())
	r.engine.room.wait(r.turn, nil)
	if !r.holder.leaseUnknownSince.IsZero() || r.leases.unsure.Load() {
		r.engine.reclaimLater(r.leases.heldBy())
	}
}
