package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// ended is a job whose attempt is over.
type ended struct {
	job     store.Job
	attempt Attempt
	// closed: there is nothing to settle any more.
	closed bool
	// took is how long the attempt took; 0: nobody measured.
	took time.Duration
	// since is when it was first to be settled.
	since time.Time
}

// returned is a call that has returned, with all of its jobs.
type returned struct {
	call *call
	jobs []ended
}

// start works a job in a goroutine that has ended another one, whose stack has grown already, or in a new one.
func (s *stream) start(work context.Context, j store.Job) {
	s.begun[j.ID] = true
	select {
	case s.hand <- j:
	default:
		go func() {
			for ok := true; ok; j, ok = <-s.hand {
				s.workAndTell(work, j)
			}
		}()
	}
}

// workAndTell works a job and says that it is over, even if the handler ends its goroutine: then the job is given back at the
// end of the turn.
func (s *stream) workAndTell(work context.Context, j store.Job) {
	c := &call{inHand: []store.Job{j}, jobType: j.Type, open: 1, alone: true}
	e := ended{job: j, closed: true}
	defer func() { s.tell(c, []ended{e}) }()
	e = s.work(work, c, j)
}

// tell says that a call has returned.
func (s *stream) tell(c *call, jobs []ended) {
	if c.alone {
		s.engine.room.ended(c.jobType)
	}
	s.over <- returned{c, jobs}
}

// work works one job, and commits it where it asked for the transaction that does.
func (s *stream) work(work context.Context, c *call, j store.Job) ended {
	h, _ := s.engine.handlers.Handling(j.Type)
	c.began = time.Now()
	c.deadline = c.began.Add(h.Timeout)
	ctx, cancel := context.WithDeadline(work, c.deadline)
	defer cancel()
	c.cancel = cancel
	defer s.turn.end(s.turn.begin(c))
	a := s.engine.handlers.Work(ctx, j, func(ctx context.Context, p []byte) error {
		s.handover.RLock()
		defer s.handover.RUnlock()
		return store.Unavailable(s.engine.store.SetProgress(ctx, s.identity(), j.ID, p))
	})
	if a.Unavailable {
		putOff := Attempt{Outcome: models.OutcomeRescheduled, Code: models.CodeDatabaseError, Message: a.Message, Delay: uncountedDelay}
		a = s.uncounted(work, j, putOff, a)
	}
	if a.Outcome == models.OutcomeCompleted && a.InTx != nil {
		done := &completion{stream: s, call: c, timeout: h.Timeout, job: j, attempt: a}
		settled, err := done.run(ctx, work)
		if err == nil {
			s.count(settled)
			return ended{job: j, closed: true, took: time.Since(c.began)}
		}
		a = s.notCompleted(work, j, err)
	}
	e := ended{job: j, attempt: a, took: time.Since(c.began)}
	if a.Outcome != models.OutcomeCompleted && work.Err() != nil {
		// Told to stop, and the grace is over.
		e.attempt, e.closed = s.stopped(j, e.took)
	}
	return e
}

// note takes in a call that has returned.
func (s *stream) note(r returned) {
	now := time.Now()
	for _, e := range r.jobs {
		delete(s.begun, e.job.ID)
	}
	if s.tight {
		s.lookAgain()
	}
	if r.call.abandoned {
		return
	}
	s.active -= len(r.jobs)
	for _, e := range r.jobs {
		if !e.closed {
			e.since = now
			s.toSettle(e)
		}
	}
}

func (s *stream) toSettle(e ended) {
	if len(s.ended) == 0 {
		s.endedSince = e.since
	}
	s.ended = append(s.ended, e)
}

// abandon gives up calls that go on although their time has long been up: nothing can stop them, and the turn does not wait
// for them. Their jobs in hand are settled as TIMEOUT. When the turn was told to stop, nothing is said of the attempts, and
// everything is given back.
func (s *stream) abandon(work context.Context) {
	now := time.Now()
	if work.Err() != nil && s.goodbye.IsZero() {
		s.goodbye = now
	}
	stopped := !s.goodbye.IsZero() && now.Sub(s.goodbye) > stopGoodbye
	var back []store.Job
	s.mu.Lock()
	for c := range s.calls {
		late := now.Sub(c.deadline) > lastGoodbye
		if c.abandoned || !late && !stopped {
			continue
		}
		c.abandoned = true
		s.engine.options.Log.Error("a handler goes on although its context has ended; it is not waited for", "type", c.jobType, "jobs", len(c.inHand))
		if c.direct {
			s.leasing, s.direct, s.notDirect = false, "", s.ends
			continue
		}
		s.active -= c.open
		if late {
			err := fmt.Errorf("the handler did not return when its context ended: %w", context.DeadlineExceeded)
			for _, j := range c.inHand {
				s.toSettle(ended{job: j, attempt: s.engine.handlers.Failed(j, err), since: now})
			}
			back = append(back, c.later...)
		}
	}
	s.mu.Unlock()
	s.leave(work, back)
}

// close ends the stream. Calls that were abandoned keep their room until they return.
func (s *stream) close() {
	close(s.hand)
	s.leaveRoom(s.takeQueue())
	s.engine.room.wait(s, nil)
}
