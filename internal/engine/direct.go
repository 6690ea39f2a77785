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

// errSuspicious says that a job may have ended its worker: it is leased, so that the one to blame is found.
var errSuspicious = errors.New("a job was reclaimed from a worker that is gone")

// suspicious reports whether a job was reclaimed since its last settlement.
func suspicious(j store.Job) bool { return j.Takeovers > 0 }

// workDirectly locks, works and settles the next jobs in one transaction, without leasing them first. It reports false when
// they are to be leased instead: because that failed (a lease lets the one to blame be found), or because the jobs in flight
// of an organization are counted.
//
// A worker that dies leaves no trace of it: the jobs are pending as before. So it is not done in a turn whose activity before
// did not end by itself: if a document killed its worker, then it is leased there, and found by take-overs.
func (t *turn) workDirectly(work context.Context) (n int, again time.Duration, ok bool) {
	for range directTries {
		n, again, ok, empty := t.workPicked(work)
		if n > 0 || !ok || empty || work.Err() != nil {
			return n, again, ok
		}
		// What was picked had been worked meanwhile. That says nothing of what else is due.
	}
	return 0, lockedRest, true
}

// directTries is how often jobs are picked that other transactions turn out to have, before they are left alone for
// lockedRest.
const (
	directTries = 3
	lockedRest  = 250 * time.Millisecond
)

// workPicked is one try of workDirectly. empty says that nothing is due that is not being worked: then it says when to look again.
func (t *turn) workPicked(work context.Context) (n int, again time.Duration, ok, empty bool) {
	s, log := t.engine.store, t.engine.options.Log
	pick, err := s.PickType(work, min(t.batch, t.engine.options.ChunkSize), "", nil)
	if err != nil {
		log.Debug("what is due is leased instead", "error", err)
		return 0, 0, false, false
	}
	if pick.Empty() {
		return 0, pick.Wait(), !pick.Counted(), true
	}
	ctx, cancel := context.WithTimeout(work, t.engine.options.ChunkTimeout)
	defer cancel()
	var settled store.Settled
	var later []store.Job
	err = s.InTxWaiting(ctx, t.engine.lockWait(), func(tx pgx.Tx) error {
		jobs, err := pick.Lock(ctx, tx)
		if err != nil || len(jobs) == 0 {
			return err
		}
		if slices.ContainsFunc(jobs, suspicious) {
			return errSuspicious
		}
		commit, err := t.prepare(ctx, jobs)
		if err != nil {
			return err
		}
		var settlements []store.Settlement
		if settlements, later, err = t.effect(ctx, tx, commit, jobs); err != nil {
			return err
		}
		settlements = slices.DeleteFunc(settlements, t.holdBack)
		if n = len(settlements); n == 0 {
			return nil
		}
		settled, err = s.SettlePicked(ctx, tx, t.identity(), settlements)
		return err
	})
	if err != nil || len(later) > 0 {
		pick.Undo()
	}
	pick.LeaveAlone()
	if store.IsTableLock(err) {
		t.engine.sayLocked(err)
		return 0, lockedPause, true, true
	}
	if err != nil {
		log.Debug("a transaction failed; its jobs are leased instead", "error", err)
		return 0, 0, false, false
	}
	t.count(settled)
	t.mu.Lock()
	t.report.Leased += n
	t.mu.Unlock()
	if n > 0 {
		t.tellProgress()
	}
	t.leaseNext = pick.Counted()
	return n, 0, n > 0 || !pick.Counted(), false
}

// holdBack reports whether a job's organization has its configuration changed just now. Then the organization is held back: its jobs
// are left as they are, instead of being rewritten again and again while that lasts.
func (t *turn) holdBack(s store.Settlement) bool {
	if s.Code != models.CodeConfigurationLocked {
		return false
	}
	if pause, begun := t.engine.store.HoldBack(s.Job.OrgID); begun {
		t.engine.options.Log.Info("another transaction is changing an organization's configuration: its jobs wait", "org", s.Job.OrgID, "pause", pause)
	}
	return true
}
