package engine

import (
	"context"
	"errors"
	"fmt"
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
	for _, j := range jobs {
		s.begun[j.ID] = true
	}
	for len(jobs) > 0 {
		n := min(len(jobs), max(1, h.Parallel))
		some := jobs[:n]
		jobs = jobs[n:]
		s.active += n
		go s.workMany(work, h, some)
	}
}

// workMany works jobs of a bulk type in one transaction. If that fails they are worked one by one. It says so when they are
// over, even if the handler ends its goroutine: then they are given back at the end of the turn.
func (s *stream) workMany(work context.Context, h Handling, jobs []store.Job) {
	c := &call{jobType: jobs[0].Type, open: len(jobs), deadline: time.Now().Add(h.Timeout), cancel: func() {}}
	all := make([]ended, len(jobs))
	for i, j := range jobs {
		all[i] = ended{job: j, closed: true}
	}
	defer func() { s.tell(c, all) }()
	s.turn.begin(c)
	defer s.turn.end(c)
	began := time.Now()
	lost, err := s.tryMany(work, h, c, jobs, nil)
	if err == nil || work.Err() != nil {
		return
	}
	if len(jobs) == 1 {
		all[0].attempt, all[0].closed = lost, false
		return
	}
	for i := range jobs {
		if time.Since(began) > bulkPatience*h.Timeout {
			// Each takes its time: the rest another time, uncounted.
			s.leave(work, jobs[i:])
			return
		}
		alone, err := s.tryMany(work, h, c, jobs[i:i+1], jobs[i+1:])
		switch {
		case work.Err() != nil || s.gaveUp(c):
			return
		case err != nil:
			all[i].attempt, all[i].closed = alone, false
		}
	}
}

// gaveUp reports whether nobody waits for the call any more.
func (s *stream) gaveUp(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.abandoned
}

// leave gives jobs back for a second. If that fails, they are given back at the end of the turn.
func (s *stream) leave(work context.Context, jobs []store.Job) {
	if err := s.giveBack(work, jobs, time.Second); err != nil {
		s.engine.options.Log.Warn("jobs were not given back", "error", err)
	}
}

// tryMany works leased jobs in the transaction that settles them; later are those that come after them. What the database does to
// that transaction is tried again. With an error it returns the attempt of a job that is alone.
func (s *stream) tryMany(work context.Context, h Handling, c *call, jobs, later []store.Job) (lost Attempt, err error) {
	s.mu.Lock()
	c.inHand, c.later = jobs, later
	s.mu.Unlock()
	gone := 0
	for try := 1; ; try++ {
		ctx, cancel := s.anew(work, c, h.Timeout)
		settled, skipped, err := s.tryManyOnce(ctx, jobs)
		switch {
		case err == nil:
			cancel()
			s.count(settled)
			s.leave(work, skipped)
			return Attempt{}, nil
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			err = late(h.Timeout, err)
		}
		lostLease := ctx.Err() != nil
		cancel()
		again := !ownTrouble(err) && !lostLease && (isConflict(err) || store.IsOutage(err))
		switch {
		case again && s.away(work, c) && gone < maxUncounted:
			try = 0 // that was no try, unless the database is gone each time
			gone++
		case again && try >= chunkTries:
			err = &notCompletedError{tries: try, cause: err}
			again = false
		}
		if !again || work.Err() != nil {
			return s.notCompleted(work, jobs[0], err), err
		}
	}
}

// tryManyOnce is one try of tryMany. It returns those that another transaction holds locked for longer than a moment, or that are no
// longer the turn's.
func (s *stream) tryManyOnce(ctx context.Context, jobs []store.Job) (settled store.Settled, skipped []store.Job, err error) {
	byID := make(map[string]store.Job, len(jobs))
	for _, j := range jobs {
		byID[j.ID] = j
	}
	kind := s.engine.store
	// Another worker's lease that came too late holds rows locked for a moment.
	for pause := firstSkip; ; pause *= 2 {
		err = s.engine.store.InTx(ctx, func(tx pgx.Tx) (err error) {
			defer recovered(&err)
			locked, err := kind.LockChunk(ctx, tx, s.identity(), idsOf(jobs))
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
			if err == nil && len(settlements) > 0 {
				settled, err = kind.Settle(ctx, tx, s.identity(), settlements)
			}
			return err
		})
		if !errors.Is(err, store.ErrRowHeld) {
			return settled, skipped, err
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
		return nil, ownError(tx, err)
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

// startDirectly works the next jobs of a bulk type without leasing them first.
func (s *stream) startDirectly(work context.Context, jobType string, n int) {
	h, _ := s.engine.handlers.Handling(jobType)
	began := time.Now()
	ctx, cancel := context.WithTimeout(work, h.Timeout)
	c := s.turn.begin(&call{jobType: jobType, direct: true, cancel: cancel, deadline: began.Add(h.Timeout)})
	go func() {
		// That holds if the handler ends its goroutine.
		l := leasedJobs{notDirectly: true}
		defer func() {
			cancel()
			s.turn.end(c)
			l.call = c
			s.leases <- l
		}()
		l = s.workDirectlyMany(ctx, jobType, min(n, max(1, h.Parallel)))
		l.slow = time.Since(began) > directLimit
		l.notDirectly = l.notDirectly || l.slow
	}()
}

// workDirectlyMany locks, works and settles the next jobs of a bulk type in one transaction, as workDirectly does with
// documents. What fails, and what comes with jobs of other types, is leased.
func (s *stream) workDirectlyMany(ctx context.Context, jobType string, n int) leasedJobs {
	l := leasedJobs{asked: n}
	pick, err := s.engine.store.PickType(ctx, n, jobType, s.engine.room)
	if err == nil && pick.Empty() {
		l.again, l.notDirectly = pick.Wait(), pick.Counted() || pick.Others()
		return l
	}
	var settled store.Settled
	if err == nil {
		done := false
		defer func() {
			if !done {
				pick.Undo()
			}
		}()
		err = s.engine.store.InTx(ctx, func(tx pgx.Tx) (err error) {
			defer recovered(&err)
			jobs, err := pick.Lock(ctx, tx)
			if err != nil || len(jobs) == 0 {
				return err
			}
			if slices.ContainsFunc(jobs, suspicious) {
				return errSuspicious
			}
			l.worked = len(jobs)
			settlements, err := s.effects(ctx, tx, jobs)
			if err == nil {
				settled, err = s.engine.store.SettlePicked(ctx, tx, s.identity(), settlements)
			}
			return err
		})
		done = err == nil && !pick.Counted()
	}
	if err != nil {
		s.engine.options.Log.Debug("jobs are leased instead of being worked at once", "type", jobType, "error", fmt.Sprint(err))
		return leasedJobs{asked: n, notDirectly: true}
	}
	l.notDirectly = pick.Counted() || pick.Others()
	if l.worked == 0 {
		l.again = lockedRest // other transactions have them
	}
	s.count(settled)
	if l.worked > 0 {
		s.tellProgress()
	}
	return l
}
