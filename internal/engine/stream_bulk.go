package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

const (
	// bulkPatience is for how many timeouts of its type the jobs of a failed bulk are worked one by one.
	bulkPatience = 10
	// directLimit is how long a bulk may take that is worked without a lease: its rows stay locked, and the turn leases
	// nothing meanwhile.
	directLimit = time.Second
)

// startMany works jobs of a bulk type, as many together as its handler takes.
func (s *stream) startMany(work context.Context, jobType string, jobs []store.Job) {
	h, _ := s.engine.handlers.Handling(jobType)
	for len(jobs) > 0 {
		n := min(len(jobs), max(1, h.Parallel))
		some := jobs[:n]
		jobs = jobs[n:]
		s.active += n
		go func() { s.over <- s.workMany(work, h, some) }()
	}
}

// workMany works jobs of a bulk type in one transaction. If that fails they are worked one by one.
func (s *stream) workMany(work context.Context, h Handling, jobs []store.Job) []ended {
	all := make([]ended, len(jobs))
	began := time.Now()
	err := s.tryMany(work, h, jobs)
	for i, j := range jobs {
		all[i] = ended{job: j, closed: true}
		if err == nil || work.Err() != nil {
			continue
		}
		if len(jobs) > 1 && time.Since(began) > bulkPatience*h.Timeout {
			// Each takes its time: the rest another time, uncounted.
			s.leave(work, jobs[i:i+1])
			continue
		}
		alone := err
		if len(jobs) > 1 {
			alone = s.tryMany(work, h, jobs[i:i+1])
		}
		if alone != nil {
			all[i].attempt, all[i].closed = s.notCompleted(work, j, alone), work.Err() != nil
		}
	}
	return all
}

// leave gives jobs back for a second. If that fails, they are given back at the end of the turn.
func (s *stream) leave(work context.Context, jobs []store.Job) {
	if err := s.giveBack(work, jobs, time.Second); err != nil {
		s.engine.options.Log.Warn("jobs were not given back", "error", err)
	}
}

// tryMany works leased jobs in the transaction that settles them.
func (s *stream) tryMany(work context.Context, h Handling, jobs []store.Job) error {
	deadline := time.Now().Add(h.Timeout)
	ctx, cancel := context.WithDeadline(work, deadline)
	defer cancel()
	s.turn.begin(jobs, running{cancel: cancel, deadline: deadline})
	defer s.turn.end(jobs)
	byID := make(map[string]store.Job, len(jobs))
	for _, j := range jobs {
		byID[j.ID] = j
	}
	kind := s.engine.store.Kind()
	var settled store.Settled
	var skipped []store.Job
	// Another worker's lease that came too late holds rows locked for a moment.
	for pause := firstSkip; ; pause *= 2 {
		err := pgx.BeginFunc(ctx, s.engine.store.Pool(), func(tx pgx.Tx) (err error) {
			defer recovered(&err)
			locked, err := kind.LockChunk(ctx, tx, s.request.Turn, idsOf(jobs))
			if err != nil {
				return err
			}
			if skipped = without(jobs, locked); len(skipped) > 0 && pause < skippedPause {
				return store.ErrRowHeld
			}
			going := make([]store.Job, len(locked))
			for i, l := range locked {
				going[i] = byID[l.ID]
				going[i].CancelRequested = l.CancelRequested
			}
			settlements, err := s.effects(ctx, tx, going)
			if err == nil {
				settled, err = kind.Settle(ctx, tx, s.request.Turn, settlements)
			}
			return err
		})
		if !errors.Is(err, store.ErrRowHeld) {
			if err == nil {
				s.count(settled)
				s.leave(work, skipped)
			}
			return err
		}
		time.Sleep(pause)
	}
}

// effects has a bulk handler work jobs of its type, and says how they are to be settled.
func (s *stream) effects(ctx context.Context, tx pgx.Tx, jobs []store.Job) ([]store.Settlement, error) {
	settlements := make([]store.Settlement, 0, len(jobs))
	going := make([]store.Job, 0, len(jobs))
	for _, j := range jobs {
		if j.CancelRequested {
			settlements = append(settlements, store.Settlement{Job: j, Outcome: models.OutcomeCancelled})
		} else {
			going = append(going, j)
		}
	}
	if len(going) == 0 {
		return settlements, nil
	}
	// The handler's statements are planned as usual.
	if err := store.PlanFreely(ctx, tx); err != nil {
		return nil, err
	}
	attempts, err := s.engine.handlers.WorkMany(ctx, tx, going)
	if err != nil {
		return nil, err
	}
	for i, a := range attempts {
		settlements = append(settlements, a.settlement(going[i]))
	}
	return settlements, nil
}

// onlyBulk returns the bulk type that all the jobs have, or the empty string.
func (s *stream) onlyBulk(jobs []store.Job) string {
	for _, j := range jobs {
		if j.Type != jobs[0].Type {
			return ""
		}
	}
	if h, ok := s.engine.handlers.Handling(jobs[0].Type); !ok || !h.Bulk {
		return ""
	}
	return jobs[0].Type
}

// workManyDirectly locks, works and settles the next jobs of a bulk type in one transaction, without leasing them first, as
// workDirectly does with documents. What fails, and what is of another type, is leased.
func (s *stream) workManyDirectly(work context.Context, jobType string, n int) leasedJobs {
	began := time.Now()
	h, _ := s.engine.handlers.Handling(jobType)
	l := leasedJobs{asked: min(n, max(1, h.Parallel))}
	pick, err := s.engine.store.Pick(work, l.asked)
	if err == nil && pick.Empty() {
		l.again, l.notDirectly = pick.Wait(), pick.Capped
		return l
	}
	var settled store.Settled
	if err == nil {
		ctx, cancel := context.WithTimeout(work, h.Timeout)
		defer cancel()
		err = pgx.BeginFunc(ctx, s.engine.store.Pool(), func(tx pgx.Tx) (err error) {
			defer recovered(&err)
			locked, err := pick.Lock(ctx, tx)
			if err != nil {
				return err
			}
			jobs := slices.DeleteFunc(slices.Clone(locked), func(j store.Job) bool { return j.Type != jobType })
			l.worked, l.notDirectly = len(jobs), len(jobs) < len(locked) || pick.Capped
			if len(jobs) == 0 {
				return nil
			}
			settlements, err := s.effects(ctx, tx, jobs)
			if err == nil {
				settled, err = s.engine.store.Kind().SettlePicked(ctx, tx, s.request.Turn, settlements)
			}
			return err
		})
		if err != nil || l.notDirectly {
			pick.Undo()
		}
	}
	if err != nil {
		s.engine.options.Log.Debug("jobs are leased instead of being worked at once", "type", jobType, "error", err)
		return leasedJobs{asked: l.asked, notDirectly: true}
	}
	s.count(settled)
	if l.worked > 0 {
		s.tellProgress()
	}
	l.notDirectly = l.notDirectly || time.Since(began) > directLimit
	return l
}
