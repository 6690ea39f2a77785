package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// settledJobs is what came of a settlement.
type settledJobs struct {
	// held could not be settled, because another transaction holds their rows, or because of err.
	held []ended
	err  error
}

// startSettling settles what has ended, and what could not be settled before, in one transaction. While that goes on, more
// gathers for the next one.
func (s *stream) startSettling(work context.Context) {
	if s.settling {
		return
	}
	now := time.Now()
	if !s.settlements.well(now) {
		s.wakeAt(s.settlements.until)
		return
	}
	retry := len(s.held) > 0 && !now.Before(s.heldUntil)
	switch ready := s.endedSince.Add(gatherFor); {
	case len(s.ended) == 0 && !retry:
		if len(s.held) > 0 {
			s.wakeAt(s.heldUntil)
		}
		return
	case !retry && s.active > 0 && len(s.ended) < gatherEnough && now.Before(ready):
		s.wakeAt(ready)
		return
	}
	all := s.ended
	if retry {
		all, s.held = append(s.held, all...), nil
	}
	s.ended = nil
	s.settling, s.inSettlement = true, all
	go func() {
		held, err := s.settle(work, all)
		s.settles <- settledJobs{held: held, err: err}
	}()
}

// noteSettled takes in what a settlement led to. Jobs that have ended are kept through an outage: their handlers are not called again.
func (s *stream) noteSettled(work context.Context, r settledJobs) error {
	s.settling, s.inSettlement = false, nil
	if len(r.held) > 0 {
		s.held, s.heldUntil = append(s.held, r.held...), time.Now().Add(skippedPause/4)
	}
	if r.err == nil {
		s.recovered(&s.settlements)
		return nil
	}
	for i := range s.held {
		s.held[i].since = time.Now()
	}
	s.heldUntil = time.Time{}
	return s.endure(work, &s.settlements, r.err)
}

// settle settles what has ended in one transaction, and returns what another transaction holds locked and is still the turn's. With an
// error it returns what may not be settled.
func (s *stream) settle(work context.Context, all []ended) ([]ended, error) {
	done, err := s.trySettle(work, all)
	switch {
	case err != nil && isConflict(err):
		return s.leftOver(work, all, nil)
	case err != nil && store.IsUnstorable(err):
		// One of them has something that cannot be stored: each for itself.
		return s.settleEach(work, all)
	case err != nil:
		return all, err
	}
	return s.leftOver(work, all, done)
}

// leftOver returns those that are not done and still the turn's. With an error it returns all that are not done.
func (s *stream) leftOver(work context.Context, all []ended, done map[string]bool) ([]ended, error) {
	if len(done) == len(all) {
		return nil, nil
	}
	ids, err := s.engine.store.Held(context.WithoutCancel(work), s.identity())
	held := setOf(ids)
	var kept []ended
	for _, e := range all {
		if !done[e.job.ID] && (err != nil || held[e.job.ID] && time.Since(e.since) < settleLimit) {
			kept = append(kept, e)
		}
	}
	return kept, err
}

// settleEach settles each job for itself; if what its handler said cannot be stored, it fails with that.
func (s *stream) settleEach(work context.Context, all []ended) ([]ended, error) {
	done := make(map[string]bool, len(all))
	for i, e := range all {
		one, err := s.trySettle(work, []ended{e})
		if err != nil && store.IsUnstorable(err) {
			s.engine.options.Log.Error("what a handler said could not be stored", "job", e.job.ID, "type", e.job.Type, "error", err)
			e.attempt = Attempt{Outcome: models.OutcomeFailed, Code: models.CodeHandlerError, Message: "what the handler said could not be stored"}
			one, err = s.trySettle(work, []ended{e})
		}
		if err != nil && !isConflict(err) {
			return all[i:], err
		}
		if one[e.job.ID] {
			done[e.job.ID] = true
		}
	}
	return s.leftOver(work, all, done)
}

// trySettle settles those whose rows it can lock, and says which.
func (s *stream) trySettle(work context.Context, all []ended) (done map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), settleLimit)
	defer cancel()
	settled, done, err := s.settleAll(ctx, all)
	if errors.Is(err, store.ErrLeaseLost) || errors.Is(err, store.ErrRowHeld) {
		settled, done, err = s.settleLocked(ctx, all)
	}
	if err != nil {
		return nil, err
	}
	s.count(settled)
	s.tellProgress()
	return done, nil
}

// settlePatience is how long settleAll waits for a row that somebody holds locked.
const settlePatience = 100 * time.Millisecond

// settleAll settles all, or, if it cannot do that, none.
func (s *stream) settleAll(ctx context.Context, all []ended) (settled store.Settled, done map[string]bool, err error) {
	slices.SortFunc(all, func(a, b ended) int {
		return cmp.Or(cmp.Compare(a.job.OrgID, b.job.OrgID), cmp.Compare(a.job.ID, b.job.ID))
	})
	settlements := make([]store.Settlement, len(all))
	done = make(map[string]bool, len(all))
	for i, e := range all {
		settlements[i] = e.attempt.settlement(e.job)
		done[e.job.ID] = true
	}
	err = s.engine.store.InTx(ctx, func(tx pgx.Tx) (err error) {
		settled, err = s.engine.store.SettleUnlocked(ctx, tx, s.identity(), settlements, settlePatience)
		return err
	})
	return settled, done, err
}

// settleLocked settles those that are still the turn's and that nobody holds locked; what is to be cancelled is cancelled.
func (s *stream) settleLocked(ctx context.Context, all []ended) (settled store.Settled, done map[string]bool, err error) {
	kind := s.engine.store
	byID := make(map[string]ended, len(all))
	ids := make([]string, len(all))
	for i, e := range all {
		byID[e.job.ID], ids[i] = e, e.job.ID
	}
	done = make(map[string]bool, len(all))
	err = s.engine.store.InTx(ctx, func(tx pgx.Tx) error {
		locked, err := kind.LockChunk(ctx, tx, s.identity(), ids)
		if err != nil || len(locked) == 0 {
			return err
		}
		settlements := make([]store.Settlement, len(locked))
		for i, l := range locked {
			done[l.ID] = true
			e := byID[l.ID]
			settlements[i] = e.attempt.settlement(e.job)
			if l.CancelRequested {
				settlements[i] = store.Settlement{Job: e.job, Outcome: models.OutcomeCancelled}
			}
		}
		settled, err = kind.Settle(ctx, tx, s.identity(), settlements)
		return err
	})
	return settled, done, err
}
