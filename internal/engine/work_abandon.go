package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

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

func inLog(jobs []store.Job) []any {
	return []any{
		"jobs", len(jobs), "ids", someOf(jobs, func(j store.Job) string { return j.ID }),
		"organizations", someOf(jobs, func(j store.Job) string { return j.OrgID }),
	}
}

// abandoned marks the calls that are given up, and returns them.
func (w *worker) abandoned(work context.Context, now time.Time) []*call {
	if work.Err() != nil && w.stoppedAt.IsZero() {
		w.stoppedAt = now
	}
	stopped := !w.stoppedAt.IsZero() && now.Sub(w.stoppedAt) > stopGrace
	gone := w.calls.abandon(now, stopped)
	for _, c := range gone {
		w.engine.options.Log.Error("a handler goes on although its context has ended; it is not waited for",
			append([]any{"type", c.jobType}, inLog(c.inHand)...)...)
	}
	return gone
}

// abandon gives up, once a second, calls that go on although their time has long been up: nothing
// can stop them, and the turn does not wait for them. Their jobs in hand end as TIMEOUT. When the
// turn was told to stop, nothing is said of the attempts, and everything is given back.
func (r *runner) abandon(work context.Context) {
	now := time.Now()
	if now.Sub(r.worker.checked) <= time.Second {
		return
	}
	r.worker.checked = now
	for _, c := range r.worker.abandoned(work, now) {
		if c.picked && !c.single {
			// It is not waited for, and from now on the turn leases.
			r.acquirer.underWay, r.acquirer.pickAgainAfter = false, *r.ends.Load()
			continue
		}
		r.worker.leave(c)
		if !c.late(now) {
			continue
		}
		err := fmt.Errorf("the handler did not return when its context ended: %w", errTimeout)
		for _, j := range c.inHand {
			e := ended{job: j, attempt: r.engine.failed(j, err)}
			e.attempt.took = now.Sub(c.began)
			go r.engine.review(work, j, e.attempt) // it may take its time, and this loop has none
			r.finisher.add([]ended{e})
		}
		r.holder.giveBackAfter(c.later, time.Second)
	}
}
