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

// single is a call that works one job outside of transactions.
type single struct {
	*turn
	call *call
}

// run works the job and tells the loop that the call is over. It does so even if the handler ends
// its goroutine (runtime.Goexit): then the attempt has failed.
func (s single) run(work context.Context) {
	c, j := s.call, s.call.inHand[0]
	e := ended{job: j, closed: true}
	working := false
	defer func() {
		if working {
			e = s.judged(work, j, s.engine.failed(j, errEndedGoroutine))
		}
		s.engine.room.ended(c.jobType)
		if c.from == nil || c.from.take(c, &e) {
			s.tell(&returned{call: c, jobs: []ended{e}})
		}
	}()
	working = true
	e = s.work(work, j)
	working = false
}

// work works one job. If its handler asked for the completing transaction (InTx), work runs that
// too.
func (s single) work(work context.Context, j store.Job) ended {
	c := s.call
	h, _ := s.engine.handlers.Handling(j.Type)
	try, cancel := s.calls.try(work, c, h.Timeout)
	defer cancel()
	s.calls.begin(c)
	defer s.calls.end(c)
	defer s.engine.handles()()
	running := &Running{single: s, job: j}
	try.handle()
	a := s.engine.handlers.Work(span.Inherit(try, j.TraceParent), j, running)
	if try.handled() {
		a = withdrawn(a)
	}
	s.engine.pace.note(j.Type, time.Since(c.began), running.leased.Load() || a.InTx != nil)
	if a.Unavailable {
		s.calls.spare(c)
		a = s.uncounted(work, j, a.Message, a)
	}
	var e ended
	completes := a.Outcome == models.OutcomeCompleted
	if !completes || a.InTx == nil {
		if e = s.judged(work, j, a); e.closed || e.attempt.InTx == nil {
			return e
		}
		a = e.attempt
	}
	// The handler has returned: what takes time now is the database.
	s.calls.spare(c)
	if err := c.awaitLease(work); err != nil {
		return ended{job: j, closed: true} // it is worked again, or is given back
	}
	done := &completion{turn: s.turn, call: c, timeout: h.Timeout, job: j, attempt: a}
	alone, err := true, error(nil)
	if completes && h.Shared {
		alone, err = s.sharing.run(work, done)
	}
	if alone {
		err = done.run(work)
	}
	switch {
	case err == nil:
		return ended{job: j, closed: true}
	case !completes:
		return e
	}
	a = s.notCompleted(work, j, err)
	if errors.Is(err, errCancelRequested) {
		a = withdrawn(a)
	}
	return s.judged(work, j, a)
}

// withdrawn is how an attempt ends that a request to cancel its job has interrupted, should a later
// request have taken that one back: the job is worked again at once, and the attempt is not
// counted. While the request stands the job is cancelled, however the attempt ends.
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
func (s single) judged(work context.Context, j store.Job, a Attempt) ended {
	a.took = time.Since(s.call.began)
	e := ended{job: j, attempt: a}
	if a.Outcome != models.OutcomeCompleted && work.Err() != nil {
		// Told to stop, and the grace period is over.
		e.attempt, e.closed = s.stopped(j, a.took)
		e.attempt.took = a.took
	}
	if !e.closed {
		e.attempt = s.engine.review(work, j, e.attempt)
	}
	return e
}

// stoppedError says that an attempt ended because its process was stopped.
type stoppedError struct{ ran time.Duration }

func (e *stoppedError) Error() string {
	return fmt.Sprintf("the worker was stopped, and its grace period was over, "+
		"when the attempt had run for %s; an attempt that long is counted",
		e.ran.Round(time.Second))
}

// ErrorCode is the code of the attempt.
func (e *stoppedError) ErrorCode() models.ErrorCode { return models.CodeWorkerLost }

// stopped says how an attempt ends that ran for ran when its process was stopped. A short one is
// uncounted: back is true, and the job is given back at the end of the turn. A long one is counted,
// because a job that takes longer than processes live would otherwise be begun anew for ever.
func (s single) stopped(j store.Job, ran time.Duration) (a Attempt, back bool) {
	if ran < s.engine.options.CountStopped {
		return Attempt{}, true
	}
	return s.engine.failed(j, &stoppedError{ran}), false
}
