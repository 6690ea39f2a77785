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
	// rescueWait is how long jobs are waited for whose transaction was lost: a session that is cut
	// off keeps its rows locked until it has idled for ten seconds.
	rescueWait = 15 * time.Second
	// firstBeside is how many jobs of a pick begin beside each other at first, besideFor after which
	// time there are twice as many.
	firstBeside = 8
	besideFor   = 500 * time.Microsecond
)

// openPick is the calls of a pick that works single jobs. What ends within openFor is completed in
// the transaction; what lasts longer is leased in it.
type openPick struct {
	// hurry has a token when the transaction is to end now: all jobs have ended, or one needs its
	// lease.
	hurry chan struct{}
	// free has a token for each call that has ended before.
	free chan struct{}
	// over is closed when the transaction has ended and the loop was told. After that, leased holds
	// the ids of the jobs that the turn has leased.
	over   chan struct{}
	leased map[string]bool

	// mu guards what has ended. ending: the transaction ends; what ends later is late, and told to
	// the loop by itself.
	mu     sync.Mutex
	calls  []*call
	done   []ended
	ending bool
	// running are the jobs that had not ended by then, or ended without an outcome.
	running []store.Job
}

var errAborted = errors.New("the turn ends with an error")

// workOpen begins the jobs, each beside the others, waits for them, completes what has ended, and
// leases the rest. A turn that begins nothing more leaves them alone.
func (p *pick) workOpen(ctx, work context.Context, tx pgx.Tx) (err error) {
	if p.beginsNoMore() {
		p.engine.room.leave(p.jobs)
		return nil
	}
	if p.waiter.Found(); len(p.jobs) >= p.result.asked {
		p.waiter.Pass()
	}
	o := p.open
	o.begin(p.jobs)
	p.workCalls(work)
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
		p.completed, err = p.engine.kind.Complete(ctx, tx, p.by, p.completions, how)
	}
	if err == nil && len(o.running) > 0 {
		err = p.leasePicked(ctx, tx, o.running)
	}
	return err
}

// workCalls works the jobs, each in a goroutine of its own, and waits until all have ended or the
// transaction is to end. They begin in their order, a few at a time: of jobs that do nothing, more
// would only wait for each other. As long as jobs have not begun, there are soon twice as many.
func (p *pick) workCalls(work context.Context) {
	o, beside, working, over := p.open, firstBeside, 0, false
	until, more := time.After(openFor), time.NewTicker(besideFor)
	defer more.Stop()
	for _, c := range o.calls {
		for working >= beside && !over {
			select {
			case <-o.free:
				working--
			case <-more.C:
				beside *= 2
			case <-o.hurry:
				over = true
			case <-until:
				over = true
			}
		}
		working++
		go single{p.turn, c}.run(work)
	}
	if over {
		return
	}
	select {
	case <-o.hurry:
	case <-until:
	}
}

// ended takes in that the transaction has ended, with err. What is leased by now goes on as leased
// jobs do.
func (p *pick) ended(work context.Context, err error) {
	o, l := p.open, &p.result
	switch {
	case err == nil:
		p.committed(p.by, p.completions, p.completed, 0)
		p.engine.observer.leased(p.by, o.running)
		o.leased = setOf(idsOf(o.running))
	case !errors.Is(err, errAborted):
		o.leased = p.rescue(work, p.jobs, err)
		l.ended = slices.DeleteFunc(o.done, func(e ended) bool { return !o.leased[e.job.ID] })
	}
	l.worked, l.open = len(p.jobs), o
	for _, c := range o.calls {
		if !c.over {
			l.running = append(l.running, c)
			p.calls.leased(c, o.leased[c.inHand[0].ID])
		}
	}
}

func (o *openPick) begin(jobs []store.Job) {
	calls := make([]call, len(jobs))
	o.calls, o.done, o.free = make([]*call, len(jobs)), make([]ended, 0, len(jobs)), make(chan struct{}, len(jobs))
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

func (o *openPick) endNow() { signal(o.hurry) }

// take takes in how a call ended. It reports false when the transaction completes it. Of a late one
// it says when that has ended whether there is something to complete.
func (o *openPick) take(c *call, e *ended) (late bool) {
	o.mu.Lock()
	if late = o.ending; !late {
		c.over = true
		o.free <- struct{}{}
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

// awaitLease waits until the job of a call is leased, and has that done at once. It returns
// store.ErrLeaseLost when it is not the turn's.
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

// rescue leases, at once, the jobs of a pick whose transaction was lost, if they are as they were:
// what has ended is completed under these leases, and what runs goes on. It returns what the turn
// holds.
func (t *turn) rescue(work context.Context, jobs []store.Job, cause error) map[string]bool {
	e := t.engine
	var held []string
	err := e.persist(work, nil, "lease what was picked", func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(work), completeLimit)
		defer cancel()
		err := e.kind.InTxWaiting(ctx, rescueWait, func(tx pgx.Tx) error {
			_, err := e.kind.LeasePicked(ctx, tx, t.leases.heldBy(), jobs, false)
			return err
		})
		if err == nil {
			held, err = t.leases.held(ctx)
		}
		return err
	})
	if err != nil {
		// Also what was leased before the connection was lost goes on. What is committed only after
		// this is given back.
		var heldErr error
		held, heldErr = t.leases.held(context.WithoutCancel(work))
		err = errors.Join(err, heldErr)
		t.leases.unsure.Store(true)
	}
	mine := keep(jobs, held)
	e.observer.leased(t.leases.heldBy(), mine)
	e.options.Log.Warn("the transaction that had picked jobs failed; those that are as they were are leased, "+
		"the others were completed by it or are worked again",
		"jobs", len(jobs), "leased", len(mine), "cause", cause, "error", err)
	return setOf(idsOf(mine))
}

const (
	// quick is how long an attempt takes at most that counts as a short one; openFor is for how
	// long a transaction that has picked jobs stays open for their handlers: what lasts longer is
	// leased.
	quick   = 5 * time.Millisecond
	openFor = 20 * time.Millisecond
	// learnAfter is after how many short attempts in a row a type is short; an attempt that lasts
	// longer than openFor costs a short type so many more.
	learnAfter = 10
	unlearn    = 100
)

// pace is what a process knows of how long attempts at single jobs of each type take. A type is
// short when its leased jobs end quickly, without asking for anything that needs a lease; jobs of
// short types are picked. It is safe for concurrent use.
type pace struct {
	mu    sync.Mutex
	types map[string]*typePace
}

type typePace struct {
	// inARow counts the latest short attempts; below 0: so many are missing.
	inARow int
	// leases: the type needs leases, because it asks for a transaction of its own or stores
	// progress.
	leases bool
}

func newPace() *pace { return &pace{types: map[string]*typePace{}} }

func (p *pace) short(jobType string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.types[jobType]
	return t != nil && t.inARow >= learnAfter && !t.leases
}

// note records how long the handler of an attempt took, and whether it asked for something that
// needs a lease.
func (p *pace) note(jobType string, took time.Duration, needsLease bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.types[jobType]
	if t == nil {
		t = &typePace{}
		p.types[jobType] = t
	}
	switch {
	case needsLease:
		t.leases = true
	case took > openFor:
		t.inARow = -unlearn
	case took < quick:
		t.inARow = min(t.inARow+1, learnAfter)
	case t.inARow < learnAfter:
		t.inARow = min(t.inARow, 0)
	}
}
