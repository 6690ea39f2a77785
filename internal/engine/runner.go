package engine

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
)

const (
	// laneJobs is how many jobs a turn has begun or leased at a time, at most.
	laneJobs = 500
	// lastGrace is how long a handler whose context has ended may take to return, before its turn goes on without it;
	// stopGrace is the same after the turn was told to stop and the grace period is over.
	lastGrace = 5 * time.Second
	stopGrace = 2 * time.Second
)

// runner works the jobs of one turn as they come. One goroutine decides, in loop and drain: it begins what there is room for, has
// completed what has ended, and has more fetched. Calls of handlers, one completion and one refill run beside it, and tell it by a channel
// when they are done.
type runner struct {
	// These are fixed, and safe for concurrent use.
	engine     *Engine
	request    TurnRequest
	holder     *holder
	calls      *calls
	tally      *tally
	cancelWork context.CancelFunc
	// over gets calls as they return. One that was abandoned may return when the turn has closed, and over is read no more.
	over      chan returned
	closed    chan struct{}
	completes chan completed
	refills   chan refilled
	// closes gets whether the transaction of the open pick has failed, when it has ended.
	closes chan bool
	// hand and quiet are spawn's; quiet is closed when nothing more is begun.
	hand  chan func()
	quiet chan struct{}
	// hurry gets an open pick that is to end now: all of its jobs have ended, or one needs its lease.
	hurry chan *openPick
	// unattended: no activity waits for the turn.
	unattended bool
	// began is when the turn began, ends when its time is up.
	began, ends time.Time

	// All that follows is the loop's own: no other goroutine touches it.

	// queue holds what is leased and not begun; skipped what another transaction held locked when it was to be worked, until skippedUntil.
	queue, skipped []store.Job
	skippedUntil   time.Time
	skipPause      time.Duration
	// active counts the jobs that are being worked, but for those of abandoned calls; running the calls of each bulk type.
	active  int
	running map[string]int
	// begun are the jobs that calls were given and have not returned.
	begun map[string]bool
	// careful: jobs are being worked, or wait to be worked alone, that may have killed their worker. ending: nothing more is begun.
	careful, ending bool
	// checked is when calls that do not return were last looked for, stoppedAt when that was first done after the turn was told to stop.
	checked, stoppedAt time.Time

	// ended are to be completed; held could not be, because other transactions hold their rows, until heldUntil. inCompletion are those
	// that the completion under way has.
	ended, held, inCompletion []ended
	endedSince, heldUntil     time.Time
	completing                bool

	refill refillState
	// open is the pick whose transaction is open; it is the refill under way.
	open *openPick

	// own and completions are what the database does to the turn's own statements: completions, and all others.
	own, completions trouble
	// back are to be given back.
	back []givenBack
	// doubt is when a lease last ended without saying what it leased, reconcileAt when to look for that.
	doubt, reconcileAt time.Time

	// alarm is when loop goes round again at the latest.
	alarm time.Time
	// waiter tells of work that has come, roomy of room that there is again for jobs that were passed over.
	waiter *store.Subscription
	roomy  <-chan struct{}
	// resting: the turn has nothing to do, and waits for work.
	resting bool
	// others is when a turn that rests looks for jobs that only other workers may work; looked: it has done that.
	others time.Time
	looked bool
	// gone: the turn takes no more work, and waits for none.
	gone bool
	// before is the report when noticeCompleted last read it.
	before Report
}

func (e *Engine) newRunner(q TurnRequest, cancelWork context.CancelFunc) *runner {
	cs, t := &calls{all: map[*call]bool{}}, &tally{listener: q.Progress}
	return &runner{
		engine: e, request: q, calls: cs, tally: t, holder: newHolder(e, q.Turn, cs, t), cancelWork: cancelWork,
		over: make(chan returned, max(laneJobs, e.capacity)), closed: make(chan struct{}), hand: make(chan func()), quiet: make(chan struct{}), completes: make(chan completed, 1),
		// One refill is under way, and perhaps a call that was abandoned.
		refills: make(chan refilled, 2), closes: make(chan bool, 1), hurry: make(chan *openPick),
		began: time.Now(), ends: time.Now().Add(q.Length), running: map[string]int{}, begun: map[string]bool{}, refill: e.newRefill(q),
		own: trouble{doing: "lease and give back"}, completions: trouble{doing: "complete"},
	}
}

// tend watches over the turn until end is called: it renews its leases, and ends its work when the grace period is over after ctx or Stop
// have ended it.
func (r *runner) tend(ctx, work context.Context) (end func()) {
	var background sync.WaitGroup
	over := make(chan struct{})
	renewing, endRenewal := context.WithCancel(work)
	background.Go(func() { r.watchStop(ctx, over) })
	background.Go(func() { r.holder.renew(renewing, r.engine.options.RenewEvery) })
	return func() {
		close(over)
		endRenewal()
		background.Wait()
	}
}

// watchStop gives running calls a grace period after the turn was told to stop.
func (r *runner) watchStop(ctx context.Context, over <-chan struct{}) {
	select {
	case <-over:
		return
	case <-r.request.Stop:
	case <-ctx.Done():
	}
	select {
	case <-over:
	case <-time.After(r.engine.options.Grace):
		if handlers, jobs := r.calls.running(); handlers > 0 {
			r.engine.interrupted.Add(int64(handlers))
			r.engine.options.Log.Warn("the worker was told to stop, and its grace period is over: handlers that still run are interrupted, and their jobs are given back",
				"turn", r.holder.turn().ID, "jobs", len(jobs), "ids", someOf(jobs, func(j store.Job) string { return j.ID }), "organizations", someOf(jobs, func(j store.Job) string { return j.OrgID }))
		}
		r.cancelWork()
	}
}

// run works until the turn is over. detached says that jobs are being worked that go on without it.
func (r *runner) run(ctx, work context.Context) (detached bool, err error) {
	if err := r.holder.reclaimFirst(ctx, work, r.request.Stop, r.request.Crashed); err != nil {
		return false, err
	}
	roomy, leave := r.engine.room.subscribe()
	defer leave()
	r.roomy, r.waiter = roomy, r.engine.waker.Subscribe(true)
	defer r.waitNoMore()
	defer r.rest(false)
	if detached, err = r.loop(ctx, work); detached {
		return true, nil
	}
	return false, r.drain(work, err)
}

// loop begins, completes and refills until the turn is over. A turn that Temporal has given to another worker begins nothing more, and gives back what has not
// begun; what runs goes on. detached is as run's.
func (r *runner) loop(ctx, work context.Context) (detached bool, err error) {
	for alive := true; !r.stopping(ctx); {
		if alive = alive && (r.request.Alive == nil || r.request.Alive()); !alive {
			r.beginNoMore()
		}
		now := time.Now()
		timeUp := !alive || !now.Before(r.ends)
		r.alarm = now.Add(time.Second)
		if timeUp {
			r.waitNoMore()
		} else {
			r.wakeAt(r.ends)
		}
		if detached, err = r.step(work, !alive || r.noMore()); detached || err != nil {
			return detached, err
		}
		r.noticeCompleted()
		r.startCompleting(work)
		if !timeUp && r.own.well(now) {
			r.startRefill(work)
		}
		r.passOn()
		r.tendPick(work)
		r.rest(!r.busy() && r.refill.dry && len(r.queue)+len(r.skipped) == 0)
		if !r.busy() && (timeUp || !r.request.Linger && len(r.queue)+len(r.skipped) == 0 && r.dried()) {
			return false, nil
		}
		if r.handsOn(work) {
			return false, nil
		}
		if err := r.wait(work, ctx.Done(), r.request.Stop); err != nil {
			return false, err
		}
	}
	return false, nil
}

// stopping reports whether the turn was told to stop or is cancelled.
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

// noMore reports whether the turn's time is up, or it was told to begin nothing more. A turn without a length works what it has.
func (r *runner) noMore() bool {
	if r.request.Length > 0 {
		return !time.Now().Before(r.ends)
	}
	select {
	case <-r.request.Enough:
		return true
	default:
		return false
	}
}

// step makes the turn's own statements, unless one has just failed, and begins jobs. ending: nothing more is begun. detached is as run's.
func (r *runner) step(work context.Context, ending bool) (detached bool, err error) {
	r.queue = append(r.queue, r.holder.takeArrived()...)
	if !r.own.well(time.Now()) {
		r.wakeAt(r.own.until)
		return false, nil
	}
	if ending {
		// What is not begun does not wait for what runs.
		r.later(r.takeQueue(), 0)
		r.later(r.skipped, 0)
		r.skipped = nil
	}
	for _, do := range []func(context.Context) error{r.verify, r.giveAllBack, r.reconcile, r.retrySkipped} {
		if err == nil {
			err = do(work)
		}
	}
	if err == nil && ending {
		detached, err = r.detach(work)
	}
	if err == nil && !detached {
		err = r.begin(work)
	}
	return detached, r.endure(work, &r.own, err)
}

// noticeCompleted has this turn and the waiters scan again when jobs were put off, because no notification comes when these fall due. It has
// this turn scan as well when jobs have ended while organizations have caps: others of those organizations may be leased now.
func (r *runner) noticeCompleted() {
	now, before := r.tally.soFar(), r.before
	r.before = now
	switch {
	case r.tally.takeRequeued() > 0,
		now.Retried+now.Rescheduled+now.Released != before.Retried+before.Rescheduled+before.Released:
		r.engine.waker.Remind()
		r.scanAgain()
	case now.Completed+now.Failed+now.Cancelled == before.Completed+before.Failed+before.Cancelled:
	case r.refill.capped:
		r.scanAgain()
	default:
		r.refill.freed = true
	}
}

// waitNoMore ends the turn's wake-ups. Work that it was told of and does not take is left to the other waiters.
func (r *runner) waitNoMore() {
	if !r.gone {
		r.gone = true
		r.waiter.Close()
	}
}

// putBack gives back the jobs that are not begun while a turn drains, so that they do not wait for those that run. If that fails, they are
// given back later, or at the turn's end. It waits for a lease under way, which would lease again what is given back.
func (r *runner) putBack(work context.Context) {
	if r.refill.underWay && r.refill.leases {
		return
	}
	if work.Err() != nil {
		return
	}
	if !r.own.well(time.Now()) {
		r.wakeAt(r.own.until)
		return
	}
	r.later(append(r.takeQueue(), r.holder.takeArrived()...), 0)
	r.later(r.skipped, 0)
	r.skipped = nil
	err := r.giveAllBack(work)
	if err == nil {
		err = r.reconcile(work)
	}
	_ = r.endure(work, &r.own, err)
}

// drain waits for what runs, and completes it. After an error what runs is stopped, and nothing is completed: another turn reclaims it.
func (r *runner) drain(work context.Context, err error) error {
	r.beginNoMore()
	for {
		r.alarm = time.Now().Add(time.Second)
		if err != nil {
			r.cancelWork()
			r.finishPick(work, true)
			r.ended, r.held = nil, nil
		} else {
			r.putBack(work)
			r.startCompleting(work)
			r.tendPick(work)
		}
		if !r.busy() {
			return err
		}
		err = cmp.Or(err, r.wait(work, nil, nil))
	}
}

// busy reports whether something is going on that the turn waits for.
func (r *runner) busy() bool {
	return r.active > 0 || r.refill.underWay || r.completing || len(r.ended)+len(r.held) > 0
}

// wakeAt has loop go round again at a time, if not before.
func (r *runner) wakeAt(at time.Time) {
	if at.Before(r.alarm) {
		r.alarm = at
	}
}

// wait waits until something has happened, and takes note of it.
func (r *runner) wait(work context.Context, cancelled, stop <-chan struct{}) error {
	select {
	case some := <-r.over:
		r.note(some)
		// Many end together: they are taken together.
		for range len(r.over) {
			r.note(<-r.over)
		}
	case l := <-r.refills:
		return r.noteRefill(work, l)
	case c := <-r.completes:
		return r.noteCompleted(work, c)
	case failed := <-r.closes:
		r.noteClosed(failed)
	case o := <-r.hurry:
		if r.open == o {
			r.finishPick(work, false)
		}
	case <-r.holder.arrived:
	case <-r.waiter.C:
		r.engine.observer.woken(events.Notification)
		r.called()
	case <-r.roomy:
		r.engine.observer.woken(events.Scan)
		r.scanAgain()
	case <-time.After(time.Until(r.alarm)):
	case <-cancelled:
	case <-stop:
	}
	if time.Since(r.checked) > time.Second {
		r.checked = time.Now()
		r.abandon(work)
	}
	return nil
}

// close ends the turn. Calls that were abandoned keep their room until they return. What a lease may have left that ended without saying
// what it leased is given back later.
func (r *runner) close() {
	r.spawnNoMore()
	close(r.closed)
	r.engine.room.leave(append(r.takeQueue(), r.holder.takeArrived()...))
	r.engine.room.wait(r, nil)
	if !r.doubt.IsZero() || r.holder.unsure.Load() {
		r.engine.reclaimLater(r.holder.turn())
	}
}
