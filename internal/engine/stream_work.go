package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

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

// start works a job in a goroutine that has ended another one, whose stack has grown already, or in a new one.
func (s *stream) start(work context.Context, j store.Job) {
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
	e := ended{job: j, closed: true}
	defer func() { s.over <- []ended{e} }()
	e = s.work(work, j)
}

// work works one job, and commits it where it asked for the transaction that does.
func (s *stream) work(work context.Context, j store.Job) ended {
	h, known := s.engine.handlers.Handling(j.Type)
	if !known {
		s.engine.missing(j.Type)
		return ended{job: j, attempt: Attempt{
			Outcome: models.OutcomeFailed, Code: models.CodeHandlerMissing,
			Message: "this worker has no handler for jobs of type " + j.Type + ": they come back when a worker starts that has one",
		}}
	}
	began := time.Now()
	deadline := began.Add(h.Timeout)
	ctx, cancel := context.WithDeadline(work, deadline)
	defer cancel()
	s.turn.begin([]store.Job{j}, running{cancel: cancel, deadline: deadline})
	defer s.turn.end([]store.Job{j})
	a := s.engine.handlers.Work(ctx, j, func(ctx context.Context, p []byte) error {
		return s.engine.store.SetProgress(ctx, s.request.Turn, j.ID, p)
	})
	if a.Outcome == models.OutcomeCompleted && a.InTx != nil {
		settled, err := s.complete(ctx, j, a)
		if err == nil {
			s.count(settled)
			return ended{job: j, closed: true, took: time.Since(began)}
		}
		a = s.notCompleted(ctx, j, err)
	}
	// Told to stop, and the grace is over: it is given back at the end of the turn, uncounted.
	return ended{job: j, attempt: a, closed: a.Outcome != models.OutcomeCompleted && work.Err() != nil, took: time.Since(began)}
}

// notCompleted is the attempt of a job whose transaction failed with err. What is not the job's fault is not counted.
func (s *stream) notCompleted(ctx context.Context, j store.Job, err error) Attempt {
	if errors.Is(err, store.ErrRowHeld) || ctx.Err() == nil && (isConflict(err) || store.IsOutage(err)) {
		return Attempt{Outcome: models.OutcomeRescheduled, Code: models.CodeDatabaseError, Message: err.Error(), Delay: time.Second}
	}
	return s.engine.handlers.Failed(j, err)
}

// complete runs what the handler wants in the transaction that completes its job. A job that was cancelled meanwhile ends as
// that, and nothing of it is done.
func (s *stream) complete(ctx context.Context, j store.Job, a Attempt) (store.Settled, error) {
	for began := time.Now(); ; {
		settled, err := s.tryComplete(ctx, j, a)
		if errors.Is(err, store.ErrLeaseLost) {
			settled, err = s.closeCancelled(ctx, j)
		}
		// A connection that was cut and a lost race are nobody's attempt.
		if err == nil || !isConflict(err) && !store.IsOutage(err) && !errors.Is(err, store.ErrRowHeld) {
			return settled, err
		}
		if ctx.Err() != nil || time.Since(began) > lockPatience {
			return nil, err
		}
		time.Sleep(firstSkip)
	}
}

// tryComplete returns ErrLeaseLost, and nothing is done, when the job is no longer the turn's or is to be cancelled.
func (s *stream) tryComplete(ctx context.Context, j store.Job, a Attempt) (settled store.Settled, err error) {
	err = pgx.BeginFunc(ctx, s.engine.store.Pool(), func(tx pgx.Tx) (err error) {
		defer recovered(&err)
		if a.Result, err = a.InTx(ctx, tx); err != nil {
			return err
		}
		settled, err = s.engine.store.Kind().SettleUnlocked(ctx, tx, s.request.Turn, []store.Settlement{a.settlement(j)}, lockPatience)
		return err
	})
	return settled, err
}

// closeCancelled settles a job that is to be cancelled; ErrRowHeld: it is not, or not the turn's any more, or its row is locked.
func (s *stream) closeCancelled(ctx context.Context, j store.Job) (settled store.Settled, err error) {
	kind := s.engine.store.Kind()
	err = pgx.BeginFunc(ctx, s.engine.store.Pool(), func(tx pgx.Tx) error {
		locked, err := kind.LockChunk(ctx, tx, s.request.Turn, []string{j.ID})
		if err == nil && (len(locked) == 0 || !locked[0].CancelRequested) {
			err = store.ErrRowHeld
		}
		if err != nil {
			return err
		}
		settled, err = kind.Settle(ctx, tx, s.request.Turn, []store.Settlement{{Job: j, Outcome: models.OutcomeCancelled}})
		return err
	})
	return settled, err
}

// note takes in jobs that have ended.
func (s *stream) note(some []ended) {
	now := time.Now()
	for _, e := range some {
		state := s.stateOf(e.job.Type)
		state.working--
		if e.took > 0 {
			state.pace = cmp.Or(state.pace+(e.took-state.pace)/8, e.took)
		}
		if s.abandoned[e.job.ID] {
			delete(s.abandoned, e.job.ID)
			continue
		}
		s.active--
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

// abandon ends the attempts of handlers that go on although their time has long been up: nothing can stop them, and the turn
// does not wait for them. They keep their place among those of their type until they return. When the turn was told to stop,
// nothing is said of the attempt, and the job is given back.
func (s *stream) abandon(work context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if work.Err() != nil && s.goodbye.IsZero() {
		s.goodbye = now
	}
	stopped := !s.goodbye.IsZero() && now.Sub(s.goodbye) > lastGoodbye
	for id, r := range s.running {
		late := now.Sub(r.deadline) > lastGoodbye
		if !late && !stopped || s.abandoned[id] {
			continue
		}
		s.abandoned[id] = true
		s.active--
		s.engine.options.Log.Error("a handler goes on although its context has ended; its job is not waited for",
			"type", r.job.Type, "job", id, "attempt", r.job.Attempt)
		if late {
			err := fmt.Errorf("the handler did not return when its context ended: %w", context.DeadlineExceeded)
			s.toSettle(ended{job: r.job, attempt: s.engine.handlers.Failed(r.job, err), since: now})
		}
	}
}
