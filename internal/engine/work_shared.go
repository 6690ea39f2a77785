package engine

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
)

// sharedWork is one transaction that jobs of a type share.
type sharedWork struct {
	*turn
	key    shareKey
	by     store.Turn
	tx     pgx.Tx
	shared *store.Shared
	// done are the jobs whose functions have run and are kept, failed those whose functions have
	// failed by themselves, again are to share another transaction. The others are to be completed
	// one by one.
	done, failed, again []*sharer
}

// run completes jobs in one transaction, and returns those that are to share another one. What ends
// it charges none of them: those that it has not completed run alone.
func (s sharedWork) run(work context.Context, all []*sharer) (again []*sharer) {
	ctx, cancel := context.WithTimeout(work, completeLimit)
	defer cancel()
	var completions []store.Completion
	var completed store.Completed
	err := s.engine.kind.InTx(ctx, func(tx pgx.Tx) error {
		s.tx = tx
		going, err := s.lock(ctx, all)
		if err != nil || len(going) == 0 {
			return err
		}
		if s.key.function == "" {
			err = s.functions(ctx, work, going)
		} else {
			err = s.callTogether(ctx, going)
		}
		if err != nil || len(s.done) == 0 {
			return err
		}
		for _, m := range s.done {
			m.attempt.took = time.Since(m.call.began)
			completions = append(completions, m.attempt.completion(m.job))
		}
		completed, err = s.completeWorked(work, tx, s.by, completions, store.Access{Commit: true})
		return err
	})
	if err == nil {
		s.committed(s.by, completions, completed, 0)
	}
	s.tellAll(all, err)
	return s.again
}

// tellAll says how the transaction, which ended with err, has ended for each job.
func (s sharedWork) tellAll(all []*sharer, err error) {
	told := map[*sharer]bool{}
	for _, m := range s.again {
		told[m] = true
	}
	if err == nil {
		for _, m := range s.done {
			told[m] = true
			m.decide(false, nil)
		}
	}
	for _, m := range s.failed {
		// What it has met may have been a neighbour's, which is not committed.
		if err == nil || store.IsEnded(m.err) {
			told[m] = true
			m.decide(false, m.err)
		}
	}
	for _, m := range all {
		if !told[m] {
			m.decide(true, nil)
		}
	}
}

// lock locks the rows of the jobs and returns those that it has. The others run alone: another
// transaction holds them, they are to be cancelled, or are not the turn's any more.
func (s *sharedWork) lock(ctx context.Context, all []*sharer) ([]*sharer, error) {
	ids := make([]string, len(all))
	for i, m := range all {
		ids[i] = m.job.ID
	}
	s.by = s.leases.heldBy()
	locked, err := s.engine.kind.LockChunk(ctx, s.tx, s.by, ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]store.Job, len(locked))
	for _, l := range locked {
		byID[l.ID] = l
	}
	var going []*sharer
	for _, m := range all {
		if l, has := byID[m.job.ID]; has && sameAttempt(l, m.job) && !l.CancelRequested {
			going = append(going, m)
		}
	}
	return going, nil
}

// functions runs the functions of the jobs until the transaction is full or one of them fails for a
// reason that may lie in its neighbours.
func (s *sharedWork) functions(ctx, work context.Context, going []*sharer) (err error) {
	if s.shared, err = store.Share(ctx, s.tx, shareFunction); err != nil {
		return err
	}
	if err = s.eachFunction(ctx, work, going); err != nil || len(s.done) == 0 {
		return err
	}
	same, err := s.shared.Unchanged(ctx)
	return s.checkSettings(same, err)
}

// eachFunction runs one function after another.
func (s *sharedWork) eachFunction(ctx, work context.Context, going []*sharer) error {
	began := time.Now()
	for i, m := range going {
		if time.Since(began) > s.engine.options.ShareFor || s.shared.Savepoints() >= shareSavepoints {
			s.again = going[i:]
			return nil
		}
		goOn, err := s.function(ctx, work, m)
		if err != nil || !goOn {
			return err
		}
	}
	return nil
}

// function runs the function of one job, and keeps or undoes what it has done. Where goOn is false
// the jobs after it run alone. With an error nothing can be committed.
func (s *sharedWork) function(ctx, work context.Context, m *sharer) (goOn bool, err error) {
	end, late, err := s.call(ctx, work, m)
	switch {
	case late:
		s.engine.unshared.add(s.key, sharePause)
		return true, s.shared.Undo(ctx)
	case end.Unshared != "":
		s.engine.unshare(s.key, end.Unshared)
		return false, s.shared.Undo(ctx)
	case err == nil && end.Fault != nil:
		// It goes on without a statement that alone may succeed.
		return true, s.shared.Undo(ctx)
	case err == nil:
		if err = s.shared.Keep(ctx); err == nil {
			s.done = append(s.done, m)
			return true, nil
		}
		if store.SQLState(err) != "" {
			// A deferred constraint refuses it, which is said of it when it has run alone.
			return !store.IsBlameless(err), s.shared.Undo(ctx)
		}
	}
	if err = Own(ctx, s.tx, err); end.Fault != nil || store.IsBlameless(err) || !isOwn(err) {
		return false, s.shared.Undo(ctx)
	}
	m.err = err
	s.failed = append(s.failed, m)
	return true, s.shared.Undo(ctx)
}

// call calls the function of one job. late: it takes too long for its neighbours, or for its policy.
// What it does then has no effect.
func (s *sharedWork) call(ctx, work context.Context, m *sharer) (end store.LoanEnd, late bool, err error) {
	try, cancel := s.calls.try(work, m.call, m.timeout)
	defer cancel()
	loan := s.shared.Lend(ctx)
	over := startOwnGoroutine(func() error {
		return m.attempt.Leave(m.attempt.InTx(span.Inherit(try, m.job.TraceParent), loan.Tx()))
	})
	tooLong := time.NewTimer(shareFunction)
	defer tooLong.Stop()
	select {
	case err = <-over:
		late = try.Err() != nil && work.Err() == nil
		s.calls.spare(m.call)
	case <-tooLong.C:
		late, m.after = true, over
		cancel()
	}
	return loan.End(2 * shareFunction), late, err
}

// checkSettings fails when a function has changed a setting, which those after it have seen.
func (s *sharedWork) checkSettings(same bool, err error) error {
	if err != nil || same {
		return err
	}
	does := "change a setting"
	if s.key.function != "" {
		does += ", or leave a temporary table or an open cursor"
	}
	s.engine.unshare(s.key, does)
	return store.ErrSpoilt
}

// callTogether has one statement call the function of the database that the jobs name. What the
// statement does not keep is not judged: the jobs run alone.
func (s *sharedWork) callTogether(ctx context.Context, going []*sharer) error {
	calls := make([]store.FunctionCall, len(going))
	for i, m := range going {
		calls[i] = m.attempt.Call.FunctionCall
	}
	called, same, err := store.CallTogether(ctx, s.tx, shareFunction, s.engine.options.ShareFor, s.key.function, calls)
	if err = s.checkSettings(same, err); err != nil {
		return err
	}
	late := false
	for i, c := range called {
		late = late || c.Late()
		if !c.Kept() {
			continue
		}
		if err := going[i].attempt.Call.Returned(ctx, s.tx, c.Result); err != nil {
			return err
		}
		s.done = append(s.done, going[i])
	}
	if n := len(called); n > 0 && called[n-1].Kept() {
		s.again = going[n:]
	}
	if late || len(s.done) == 0 {
		s.engine.unshared.add(s.key, sharePause)
	}
	return nil
}
