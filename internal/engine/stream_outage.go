package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// A stream goes on while the database is away: handlers run, and what has ended is kept until it can be settled. Statements of its own are
// made again after a short pause. It gives up after outageLimit, or when it was told to stop and the grace is over.

// trouble is how often the database has failed statements of one sort.
type trouble struct {
	doing string
	// since is when that began; zero: it has not. until is when the next may be made, pause the pause before it.
	since, until time.Time
	pause        time.Duration
	// verified: since the last failure it is known which jobs are still the turn's.
	verified bool
}

// troubleOver is how long after its last failure a trouble is over, if nothing has shown that before.
const troubleOver = time.Minute

// well says whether the next statement may be made.
func (t *trouble) well(now time.Time) bool { return !now.Before(t.until) }

// endure takes in how a statement ended. It returns the error only if the stream is to end with it.
func (s *stream) endure(work context.Context, t *trouble, err error) error {
	if err == nil {
		return nil
	}
	now := time.Now()
	log := s.engine.options.Log.With("turn", s.identity().ID, "doing", t.doing)
	t.verified = false
	if t.since.IsZero() || now.Sub(t.until) > troubleOver {
		t.since, t.pause = now, firstPause
		if work.Err() == nil {
			log.Warn("the database failed a statement; jobs that run go on, and it is tried again", "error", err)
		}
	} else {
		t.pause = min(2*t.pause, longestPause)
	}
	if work.Err() != nil || now.Sub(t.since) > outageLimit {
		return err
	}
	t.until = now.Add(t.pause)
	s.wakeAt(t.until)
	return nil
}

// recovered takes in that a statement of the sort has succeeded.
func (s *stream) recovered(t *trouble) {
	if t.since.IsZero() {
		return
	}
	s.engine.options.Log.Info("the database answers again", "turn", s.identity().ID, "doing", t.doing, "after", time.Since(t.since).Round(time.Millisecond))
	*t = trouble{doing: t.doing}
}

// givenBack are jobs that are to be pending again after a delay.
type givenBack struct {
	jobs  []store.Job
	delay time.Duration
}

// later has jobs given back by the next giveAllBack that succeeds: they are not worked any more, because they may be another turn's as soon as
// that was tried.
func (s *stream) later(jobs []store.Job, delay time.Duration) {
	if len(jobs) > 0 {
		s.leaveRoom(jobs)
		s.back = append(s.back, givenBack{jobs, delay})
	}
}

func (s *stream) giveAllBack(work context.Context) error {
	for len(s.back) > 0 {
		if err := s.giveBack(work, s.back[0].jobs, s.back[0].delay); err != nil {
			return err
		}
		s.back = s.back[1:]
		s.recovered(&s.own)
	}
	return nil
}

// undo takes back what begin decided, because the jobs could not be marked. They keep the room that they have.
func (s *stream) undo(queue []store.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(queue, s.queue...)
}

// reconcile gives back what the turn holds and does not know, after a lease that ended without saying what it leased: its statement may have
// been committed, or still be.
func (s *stream) reconcile(work context.Context) error {
	now := time.Now()
	if s.unsure.Swap(false) {
		s.doubt, s.reconcileAt = now, time.Time{}
	}
	if s.doubt.IsZero() || s.leasing {
		return nil
	}
	if now.Before(s.reconcileAt) {
		s.wakeAt(s.reconcileAt)
		return nil
	}
	// What is taken over meanwhile is in the queue when the lock is free again.
	s.taking.Lock()
	ids, err := s.engine.store.Held(work, s.identity())
	s.taking.Unlock()
	if err != nil {
		return err
	}
	known := s.known()
	var orphans []store.Job
	for _, id := range ids {
		if !known[id] {
			orphans = append(orphans, store.Job{ID: id})
		}
	}
	if err := s.giveBack(work, orphans, 0); err != nil {
		return err
	}
	s.reconcileAt = now.Add(reconcileEvery)
	if now.Sub(s.doubt) > store.LeaseLimit {
		s.doubt = time.Time{}
	}
	return nil
}

// reconcileEvery is the pause between two looks for what a lease may have left, until its statement has surely ended.
const reconcileEvery = time.Second

// known are the jobs of which the stream knows that the turn holds them.
func (s *stream) known() map[string]bool {
	known := make(map[string]bool, len(s.begun))
	for id := range s.begun {
		known[id] = true
	}
	for _, some := range [][]ended{s.ended, s.held, s.inSettlement} {
		for _, e := range some {
			known[e.job.ID] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.queue {
		known[j.ID] = true
	}
	return known
}

// leaseRoomy leases jobs that can be begun at once, and notes that room for them is reserved. The caller may be told to stop meanwhile: the
// statement is not cut off, so that what it leases is known.
func (e *Engine) leaseRoomy(ctx context.Context, turn store.Turn, n int) (store.Leased, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*store.LeaseLimit)
	defer cancel()
	leased, err := e.store.LeaseFor(ctx, turn, n, e.room)
	for i := range leased.Jobs {
		h, _ := e.handlers.Handling(leased.Jobs[i].Type)
		leased.Jobs[i].Room = !h.Bulk
	}
	return leased, err
}

// takeOverFirst adds to the queue what earlier activities of the turn leased, before anything else is done. A try that ended without saying
// what it took may have been committed: the next one draws a new fence, under which it finds that too, and charges nothing twice.
func (t *turn) takeOverFirst(ctx, work context.Context) error {
	crashed := t.request.Crashed
	tried := false
	return t.engine.persist(ctx, t.request.Stop, "take the turn over", func() error {
		if tried {
			fence, err := t.engine.store.NextFence(work)
			if err != nil {
				return err
			}
			again := t.identity()
			again.FirstFence, again.Fence = cmp.Or(again.FirstFence, again.Fence), fence
			t.handover.Lock()
			t.named.Store(&again)
			t.handover.Unlock()
		}
		tried = true
		return t.takeOver(work, crashed)
	})
}

// verify asks, when the database was away, which jobs are still the turn's: what is not is not begun. The trouble is not over with that:
// a database that answers may still refuse to write.
func (s *stream) verify(work context.Context) error {
	if s.own.since.IsZero() || s.own.verified {
		return nil
	}
	s.taking.Lock()
	defer s.taking.Unlock()
	held, err := s.engine.store.Held(work, s.identity())
	if err != nil {
		return err
	}
	s.mu.Lock()
	still := setOf(held)
	s.leaveRoom(slices.DeleteFunc(slices.Clone(s.queue), func(j store.Job) bool { return still[j.ID] }))
	s.queue = keep(s.queue, held)
	s.mu.Unlock()
	s.own.verified = true
	return nil
}

// reclaimDoubtful has given back, later, what a lease of the turn may have left that ended without saying what it leased.
func (s *stream) reclaimDoubtful(turn store.Turn) {
	if !s.doubt.IsZero() {
		s.engine.reclaimLater(turn)
	}
}

// reclaimLater gives back what a turn that has ended may still lease: the statement of a lease that broke off may yet be committed.
func (e *Engine) reclaimLater(turn store.Turn) {
	if e.life.Err() != nil {
		return
	}
	e.outlived.running.Go(func() {
		for until := time.Now().Add(store.LeaseLimit + reconcileEvery); time.Now().Before(until) && e.life.Err() == nil; {
			rest(e.life, reconcileEvery)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(e.life), releaseLimit)
			n, err := e.store.Release(ctx, turn, nil, 0)
			cancel()
			if n > 0 || err != nil {
				e.waker.Remind()
				e.options.Log.Info("gave back what a lease left that had broken off", "turn", turn.ID, "jobs", n, "error", err)
			}
		}
	})
}
