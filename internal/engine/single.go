package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/models"
)

// start works a job beside the loop.
func (r *runner) start(work context.Context, j store.Job) {
	r.active++
	r.begun[j.ID] = true
	c := &call{jobType: j.Type, single: true, open: 1, inHand: []store.Job{j}}
	r.spawn(func() { r.workAndTell(work, c) })
}

// workAndTell works a job and tells the runner that the call is over. It does so even if the handler ends its goroutine (runtime.Goexit): then the
// attempt has failed.
func (r *runner) workAndTell(work context.Context, c *call) {
	j := c.inHand[0]
	e := ended{job: j, closed: true}
	working := false
	defer func() {
		if working {
			e = r.judged(work, c, j, r.engine.failed(j, errEndedGoroutine))
		}
		r.engine.room.ended(c.jobType)
		if c.from != nil {
			r.tellPicked(c, e)
		} else {
			r.tellOver(returned{call: c, jobs: []ended{e}})
		}
	}()
	if c.from == nil || !c.from.lost(j.ID) {
		working = true
		e = r.work(work, c, j)
		working = false
	}
}

// work works one job. If its handler asked for the completing transaction (InTx), work runs that too.
func (r *runner) work(work context.Context, c *call, j store.Job) ended {
	h, _ := r.engine.handlers.Handling(j.Type)
	try, cancel := r.calls.try(work, c, h.Timeout)
	defer cancel()
	r.calls.begin(c)
	defer r.calls.end(c)
	defer r.engine.handles()()
	needsLease := false
	try.handle()
	a := r.engine.handlers.Work(span.Inherit(try, j.TraceParent), j, func(ctx context.Context, p []byte) error {
		needsLease = true
		return store.Await(ctx, store.OutageLimit, func(ctx context.Context) error {
			if err := r.awaitLease(ctx, c); err != nil {
				return err
			}
			turn, free := r.holder.pin()
			defer free()
			return r.engine.kind.SetProgress(ctx, turn, j, p)
		})
	})
	if try.handled() {
		a = withdrawn(a)
	}
	r.engine.pace.note(j.Type, time.Since(c.began), needsLease || a.InTx != nil)
	if a.Unavailable {
		r.calls.spare(c)
		a = r.uncounted(work, j, a.Message, a)
	}
	var e ended
	completes := a.Outcome == models.OutcomeCompleted
	if !completes || a.InTx == nil {
		if e = r.judged(work, c, j, a); e.closed || e.attempt.InTx == nil {
			return e
		}
		a = e.attempt
	}
	// The handler has returned: what takes time now is the database.
	r.calls.spare(c)
	if err := r.awaitLease(work, c); err != nil {
		return ended{job: j, closed: true} // it is worked again, or is given back
	}
	done := &completion{runner: r, call: c, timeout: h.Timeout, job: j, attempt: a}
	err := done.run(work)
	switch {
	case err == nil:
		return ended{job: j, closed: true}
	case !completes:
		return e
	}
	a = r.notCompleted(work, j, err)
	if errors.Is(err, errCancelRequested) {
		a = withdrawn(a)
	}
	return r.judged(work, c, j, a)
}

// withdrawn is how an attempt ends that a request to cancel its job has interrupted, should a later request have taken that one back: the job is worked again at once,
// and the attempt is not counted. While the request stands the job is cancelled, however the attempt ends.
func withdrawn(a Attempt) Attempt {
	if a.Outcome != models.OutcomeRetried && a.Outcome != models.OutcomeFailed {
		return a // the handler has said how it ends
	}
	return Attempt{
		Outcome: models.OutcomeRescheduled, Code: models.CodeJobCancelled, InTx: a.InTx,
		Message: "a request cancelled the job while its handler ran, and a later one asked for it again",
	}
}

// judged is how an attempt ends that a handler has ended as a.
func (r *runner) judged(work context.Context, c *call, j store.Job, a Attempt) ended {
	a.took = time.Since(c.began)
	e := ended{job: j, attempt: a}
	if a.Outcome != models.OutcomeCompleted && work.Err() != nil {
		// Told to stop, and the grace period is over.
		e.attempt, e.closed = r.stopped(j, a.took)
		e.attempt.took = a.took
	}
	if !e.closed {
		e.attempt = r.engine.review(work, j, e.attempt)
	}
	return e
}

// stoppedError says that an attempt ended because its process was stopped.
type stoppedError struct{ ran time.Duration }

func (e *stoppedError) Error() string {
	return fmt.Sprintf("the worker was stopped, and its grace period was over, when the attempt had run for %s; an attempt that long is counted",
		e.ran.Round(time.Second))
}

// ErrorCode is the code of the attempt.
func (e *stoppedError) ErrorCode() models.ErrorCode { return models.CodeWorkerLost }

// stopped says how an attempt ends that ran for ran when its process was stopped. A short one is uncounted: back is true, and the job is
// given back at the end of the turn. A long one is counted, because a job that takes longer than processes live would otherwise be begun
// anew for ever.
func (r *runner) stopped(j store.Job, ran time.Duration) (a Attempt, back bool) {
	if ran < r.engine.options.CountStopped {
		return Attempt{}, true
	}
	return r.engine.failed(j, &stoppedError{ran}), false
}
