package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// returned is a call that has returned, and what is left to do of its jobs.
type returned struct {
	call *call
	jobs []ended
	// skipped are rows that other transactions hold locked, later those that the handler has put off, back what is to be given back.
	skipped, later []store.Job
	back           []givenBack
}

// tellOver tells the loop of a call that has returned, unless the turn is over.
func (r *runner) tellOver(c returned) {
	select {
	case r.over <- c:
	case <-r.closed:
	}
}

// note takes in a call that has returned.
func (r *runner) note(c returned) {
	now := time.Now()
	for _, e := range c.jobs {
		delete(r.begun, e.job.ID)
	}
	if r.refill.tight {
		r.scanAgain()
	}
	if c.call.abandoned {
		return
	}
	r.leave(c.call)
	for _, e := range c.jobs {
		if !e.closed {
			e.since = now
			r.toComplete(e)
		}
	}
	r.queue = append(r.queue, c.later...)
	r.skip(c.skipped)
	for _, b := range c.back {
		r.later(b.jobs, b.delay)
	}
}

// leave takes a call from what is being worked.
func (r *runner) leave(c *call) {
	r.active -= c.open
	if !c.single {
		r.running[c.jobType]--
	}
}

func (r *runner) toComplete(e ended) {
	if len(r.ended) == 0 {
		r.endedSince = e.since
	}
	r.ended = append(r.ended, e)
}

// Rows that another transaction holds locked are left alone for firstSkip, and each time twice as long, up to skippedPause: another
// worker's lease that came too late holds them for a moment, an application's transaction for as long as it likes.
const (
	firstSkip    = 5 * time.Millisecond
	skippedPause = 200 * time.Millisecond
)

// skip leaves leased jobs alone for a moment, because other transactions hold their rows.
func (r *runner) skip(jobs []store.Job) {
	if len(jobs) == 0 {
		return
	}
	r.skipPause = min(max(2*r.skipPause, firstSkip), skippedPause)
	r.skipped, r.skippedUntil = append(r.skipped, jobs...), time.Now().Add(r.skipPause)
}

// retrySkipped takes those of them that are still the turn's into the queue again; the others were reclaimed.
func (r *runner) retrySkipped(work context.Context) error {
	switch {
	case len(r.skipped) == 0:
		if r.active == 0 {
			r.skipPause = 0
		}
		return nil
	case time.Now().Before(r.skippedUntil):
		r.wakeAt(r.skippedUntil)
		return nil
	}
	held, err := r.holder.held(work)
	if err != nil {
		return err
	}
	r.queue, r.skipped = append(r.queue, keep(r.skipped, held)...), nil
	return nil
}

// namedInLog is how many jobs, and how many of their organizations, a log line names.
const namedInLog = 5

// someOf returns a field of jobs without repetitions, of the first ones.
func someOf(jobs []store.Job, field func(store.Job) string) []string {
	var some []string
	for _, j := range jobs {
		if v := field(j); v != "" && !slices.Contains(some, v) {
			some = append(some, v)
		}
		if len(some) == namedInLog {
			break
		}
	}
	return some
}

// abandon gives up calls that go on although their time has long been up: nothing can stop them, and the turn does not wait
// for them. Their jobs in hand end as TIMEOUT. When the turn was told to stop, nothing is said of the attempts, and
// everything is given back.
func (r *runner) abandon(work context.Context) {
	now := time.Now()
	if work.Err() != nil && r.stoppedAt.IsZero() {
		r.stoppedAt = now
	}
	stopped := !r.stoppedAt.IsZero() && now.Sub(r.stoppedAt) > stopGrace
	for _, c := range r.calls.abandon(now, stopped) {
		r.engine.options.Log.Error("a handler goes on although its context has ended; it is not waited for",
			"type", c.jobType, "jobs", len(c.inHand), "ids", someOf(c.inHand, func(j store.Job) string { return j.ID }), "organizations", someOf(c.inHand, func(j store.Job) string { return j.OrgID }))
		if c.picked && !c.single {
			r.refill.underWay = false
			r.refill.leaseUntil = r.ends
			continue
		}
		r.leave(c)
		if c.late(now) {
			err := fmt.Errorf("the handler did not return when its context ended: %w", errTimeout)
			for _, j := range c.inHand {
				e := ended{job: j, attempt: r.engine.failed(j, err), since: now}
				e.attempt.took = now.Sub(c.began)
				go r.engine.review(work, j, e.attempt) // it may take its time, and this loop has none
				r.toComplete(e)
			}
			r.later(c.later, time.Second)
		}
	}
}
