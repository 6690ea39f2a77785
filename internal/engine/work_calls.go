package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// call is one call of a handler. What is not said to be fixed is guarded by calls.
type call struct {
	// These are fixed: the type, whether it works one job by itself outside of transactions, how
	// many jobs it has, and the open pick that they are from.
	jobType string
	single  bool
	open    int
	from    *openPick
	// over: it has ended before its open pick was told to end, which guards it.
	over bool

	// picked: what it works is not leased.
	picked bool
	began  time.Time
	// inHand are the jobs that it works now, later those that come after them.
	inHand, later []store.Job
	// try is its last try; nil: it has had none.
	try      *tryContext
	deadline time.Time
	// abandoned: it did not return when its context had ended, and is not waited for.
	abandoned bool
	// ready: its handler has returned, and its job waits to share a transaction, or does.
	ready bool
}

// calls are the calls that a turn has under way. It is safe for concurrent use.
type calls struct {
	mu  sync.Mutex
	all map[*call]bool
}

// each calls f with each call.
func (cs *calls) each(f func(c *call)) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c := range cs.all {
		f(c)
	}
}

func (cs *calls) begin(c *call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.began = time.Now()
	cs.all[c] = true
}

func (cs *calls) end(c *call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.all, c)
}

// hand says which jobs a call works now, and which come later. It reports false when the call was
// abandoned meanwhile: then nothing of it changes any more.
func (cs *calls) hand(c *call, now, later []store.Job) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if !c.abandoned {
		c.inHand, c.later = now, later
	}
	return !c.abandoned
}

// try is a context for one try of a call.
func (cs *calls) try(work context.Context, c *call, timeout time.Duration) (*tryContext, context.CancelFunc) {
	deadline := time.Now().Add(timeout)
	ctx, cancel := context.WithDeadlineCause(work, deadline, errTimeout)
	try := &tryContext{Context: ctx, cancel: cancel}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if !c.abandoned {
		c.try, c.deadline = try, deadline
	}
	return try, cancel
}

// spare gives a call the time of an outage before it is abandoned. It reports false when it was
// abandoned before.
func (cs *calls) spare(c *call) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if !c.abandoned {
		c.deadline = time.Now().Add(store.OutageLimit)
	}
	return !c.abandoned
}

// ready says that the handler of a call has returned, whose job is to share a transaction.
func (cs *calls) ready(c *call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.ready = true
}

// abandon marks the calls that go on although their context ended long ago, or, if they were
// stopped, all, and returns them. A call whose job is picked is waited for until it is known who
// has the job.
func (cs *calls) abandon(now time.Time, stopped bool) (gone []*call) {
	cs.each(func(c *call) {
		if !c.abandoned && (!c.picked || !c.single) && (stopped || c.late(now)) {
			c.abandoned = true
			gone = append(gone, c)
		}
	})
	return gone
}

// interrupt ends the context of the call's last try, if it has had one.
func (c *call) interrupt() {
	if c.try != nil {
		c.try.cancel()
	}
}

// late: the call's time has long been up.
func (c *call) late(now time.Time) bool { return now.Sub(c.deadline) > lastGrace }

// overdue returns the jobs in hand whose deadline has passed: they are not renewed any more.
func (cs *calls) overdue() []string {
	now, ids := time.Now(), []string{}
	cs.each(func(c *call) {
		if now.After(c.deadline) {
			ids = append(ids, idsOf(c.inHand)...)
		}
	})
	return ids
}

// inHand returns the leased jobs that each call works now.
func (cs *calls) inHand() map[*call][]store.Job {
	now := map[*call][]store.Job{}
	cs.each(func(c *call) {
		if !c.picked {
			now[c] = c.inHand
		}
	})
	return now
}

// cancelLost ends the calls that work jobs which are not held any more. before is what was in hand
// before the leases were read. It reports whether there were any.
func (cs *calls) cancelLost(before map[*call][]store.Job, held []string) (lost bool) {
	still := setOf(held)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c, jobs := range before {
		if cs.all[c] && len(jobs) > 0 && len(c.inHand) == len(jobs) && c.inHand[0].ID == jobs[0].ID &&
			slices.ContainsFunc(jobs, func(j store.Job) bool { return !still[j.ID] }) {
			c.interrupt()
			lost = true
		}
	}
	return lost
}

// cancelAsked ends the contexts of the handlers that have jobs which are to be cancelled. before is
// what was in hand before these were read.
func (cs *calls) cancelAsked(before map[*call][]store.Job, asked []string) {
	if len(asked) == 0 {
		return
	}
	ids := setOf(asked)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c, jobs := range before {
		if c.try != nil && !c.abandoned && ids[jobs[0].ID] && c.try.ask() {
			c.try.cancel()
		}
	}
}

// leased says that the job of a call which was picked is leased, or, if it is not, ends the call:
// the job may be another turn's.
func (cs *calls) leased(c *call, leased bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.picked = false; !leased {
		c.interrupt()
	}
}

// longRunning returns the ids of the jobs that have been worked, each by itself, for so long.
func (cs *calls) longRunning(long time.Duration) (ids []string) {
	cs.each(func(c *call) {
		if c.single && !c.abandoned && time.Since(c.began) >= long {
			ids = append(ids, idsOf(c.inHand)...)
		}
	})
	return ids
}

// running are how many calls have jobs in hand, and these jobs.
func (cs *calls) running() (handlers int, jobs []store.Job) {
	cs.each(func(c *call) {
		if !c.abandoned && len(c.inHand) > 0 {
			handlers++
			jobs = append(jobs, c.inHand...)
		}
	})
	return handlers, jobs
}

func idsOf(jobs []store.Job) []string {
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	return ids
}

// keep returns the jobs with one of the ids.
func keep(jobs []store.Job, ids []string) []store.Job {
	wanted := setOf(ids)
	kept := jobs[:0:0]
	for _, j := range jobs {
		if wanted[j.ID] {
			kept = append(kept, j)
		}
	}
	return kept
}

// without returns the jobs that are not among the others, which are some of them.
func without(jobs, others []store.Job) []store.Job {
	if len(others) == len(jobs) {
		return nil
	}
	there := setOf(idsOf(others))
	var left []store.Job
	for _, j := range jobs {
		if !there[j.ID] {
			left = append(left, j)
		}
	}
	return left
}

func setOf(ids []string) map[string]bool {
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}
