package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

const (
	// gatherFor is how long the first of the jobs that have ended waits for others, to be completed
	// together; gatherEnough are not made to wait.
	gatherFor    = 2 * time.Millisecond
	gatherEnough = 100
	// completeLimit bounds the completion of jobs, so that a connection that went silent does not
	// hold up the turn.
	completeLimit = 30 * time.Second
	// completePatience is how long a completion waits for a row that another transaction holds
	// locked; lockPatience is the same for a completion that commits a handler's own effects.
	completePatience = 100 * time.Millisecond
	lockPatience     = 3 * time.Second
	// heldPause is the pause before jobs are completed whose rows another transaction held.
	heldPause = 50 * time.Millisecond
)

// ended is a job whose attempt is over.
type ended struct {
	job     store.Job
	attempt Attempt
	// closed: there is nothing to complete any more.
	closed bool
	// since is when it was first to be completed.
	since time.Time
	// onlyCancelled: it is completed only if it is to be cancelled.
	onlyCancelled bool
}

// completed is the result of a completion.
type completed struct {
	// held could not be completed, because another transaction holds their rows, or because of err.
	held []ended
	err  error
}

func (completed) event() {}

// finisher has the jobs that have ended and are not completed.
type finisher struct {
	part
	// ended are to be completed since endedSince. held could not be, because other transactions
	// hold their rows, until heldUntil. inCompletion are those that the completion under way has.
	ended, held, inCompletion []ended
	endedSince, heldUntil     time.Time
	completing                bool
	// db is what the database does to completions.
	db trouble
}

func newFinisher(p part) finisher { return finisher{part: p, db: trouble{doing: "complete"}} }

// add adds what has ended now.
func (f *finisher) add(jobs []ended) {
	now := time.Now()
	for _, e := range jobs {
		if e.closed {
			continue
		}
		if len(f.ended) == 0 {
			f.endedSince = now
		}
		e.since = now
		f.ended = append(f.ended, e)
	}
}

// busy reports whether something is to be completed.
func (f *finisher) busy() bool { return f.completing || len(f.ended)+len(f.held) > 0 }

// drop leaves all to another turn.
func (f *finisher) drop() { f.ended, f.held = nil, nil }

// known are the jobs that have ended, and the begun ones.
func (f *finisher) known(begun map[string]bool) map[string]bool {
	known := maps.Clone(begun)
	for _, some := range [][]ended{f.ended, f.held, f.inCompletion} {
		for _, e := range some {
			known[e.job.ID] = true
		}
	}
	return known
}

// start completes what has ended, and what could not be completed before, in one transaction. While
// that goes on, more gathers for the next one. gathers: jobs are being worked, for which the first
// ones wait a moment.
func (f *finisher) start(work context.Context, gathers bool) {
	if f.completing {
		return
	}
	now := time.Now()
	if !f.db.healthy(now) {
		f.wakeAt(f.db.until)
		return
	}
	retry := len(f.held) > 0 && !now.Before(f.heldUntil)
	switch ready := f.endedSince.Add(gatherFor); {
	case len(f.ended) == 0 && !retry:
		if len(f.held) > 0 {
			f.wakeAt(f.heldUntil)
		}
		return
	case !retry && gathers && len(f.ended) < gatherEnough && now.Before(ready):
		f.wakeAt(ready)
		return
	}
	all := f.ended
	if retry {
		all, f.held = append(f.held, all...), nil
	}
	slices.SortFunc(all, func(a, b ended) int { // rows are locked in the same order everywhere
		return cmp.Or(cmp.Compare(a.job.OrgID, b.job.OrgID), cmp.Compare(a.job.ID, b.job.ID))
	})
	f.ended = nil
	f.completing, f.inCompletion = true, all
	go func() {
		held, err := completing{f.turn}.complete(work, all)
		f.tell(completed{held: held, err: err})
	}()
}

// take takes in the result of a completion, and returns its error. Jobs that have ended are kept
// through an outage: their handlers are not called again.
func (f *finisher) take(c completed) error {
	f.completing, f.inCompletion = false, nil
	if len(c.held) > 0 {
		f.held, f.heldUntil = append(f.held, c.held...), time.Now().Add(heldPause)
	}
	if c.err != nil {
		for i := range f.held {
			f.held[i].since = time.Now()
		}
		f.heldUntil = time.Time{}
	}
	return c.err
}

// completing completes jobs that have ended, beside the loop.
type completing struct{ *turn }
