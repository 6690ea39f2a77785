package engine

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// holder keeps the leases of one turn: by which turn and fence they are held, renewed, reclaimed from earlier activities, handed over and
// given back. Its methods are safe for concurrent use.
//
// Who holds a job is one value, the identity. It changes in two ways, both here: a new fence after a reclaim whose result is unknown,
// and a detached turn that goes on without its activity. What commits under it pins it for as long as that takes.
type holder struct {
	engine *Engine
	calls  *calls
	tally  *tally

	identity atomic.Pointer[store.Turn]
	// moving is locked while the identity changes, and read-locked while it is pinned.
	moving sync.RWMutex

	// taking is locked while leases are reclaimed, until they have arrived.
	taking sync.Mutex
	// mu guards taken, which are the jobs that were reclaimed and that the loop has not seen.
	mu    sync.Mutex
	taken []store.Job
	// arrived has a token when there are such jobs.
	arrived chan struct{}

	// unsure: a reclaim ended with an error, so that it is unknown what it took.
	unsure atomic.Bool
	// lost: leases of the turn were taken while it worked on them.
	lost atomic.Bool
}

func newHolder(e *Engine, turn store.Turn, cs *calls, t *tally) *holder {
	h := &holder{engine: e, calls: cs, tally: t, arrived: make(chan struct{}, 1)}
	h.identity.Store(&turn)
	return h
}

// turn is the turn that holds the leases now.
func (h *holder) turn() store.Turn { return *h.identity.Load() }

// pin returns by which turn the leases are held, and keeps that from changing until free is called.
func (h *holder) pin() (turn store.Turn, free func()) {
	h.moving.RLock()
	return h.turn(), h.moving.RUnlock
}

// pinLimit is how long a transaction waits for the identity to be pinned. A hand-over takes milliseconds, unless it waits for a connection of the pool,
// and then the transactions that wait for it may have all of them.
const pinLimit = 500 * time.Millisecond

// pinWithin is pin for what holds a connection meanwhile. It gives up after limit, and ok is false.
func (h *holder) pinWithin(limit time.Duration) (turn store.Turn, free func(), ok bool) {
	for began := time.Now(); !h.moving.TryRLock(); time.Sleep(firstPause) {
		if time.Since(began) > limit {
			return store.Turn{}, nil, false
		}
	}
	return h.turn(), h.moving.RUnlock, true
}

// reclaim takes what earlier activities of the turn leased, for the loop.
func (h *holder) reclaim(ctx context.Context, crashed bool) error {
	h.taking.Lock()
	defer h.taking.Unlock()
	turn := h.turn()
	taken, err := h.engine.kind.ReclaimTurns(ctx, turn, []string{turn.ID}, crashed)
	if err != nil {
		return err
	}
	h.tally.note(func(r *Report) {
		r.Leased += len(taken.Jobs)
		r.Lost += taken.Lost
		r.Failed += taken.Failed
	})
	h.engine.observer.leasedAgain(turn, taken.Jobs, taken.Lost)
	if len(taken.Jobs) > 0 {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.taken = append(h.taken, h.engine.marked(taken.Jobs)...)
		select {
		case h.arrived <- struct{}{}:
		default:
		}
	}
	return nil
}

// reclaimFirst is reclaim before anything else is done. A try that ended with an error may have been committed: the
// next one draws a new fence, under which it finds those jobs too, and charges none twice.
func (h *holder) reclaimFirst(ctx, work context.Context, stop <-chan struct{}, crashed bool) error {
	tried := false
	return h.engine.persist(ctx, stop, "reclaim the turn", func() error {
		if tried {
			fence, err := h.engine.kind.NextFence(work)
			if err != nil {
				return err
			}
			h.moving.Lock()
			again := h.turn()
			again.FirstFence, again.Fence = cmp.Or(again.FirstFence, again.Fence), fence
			h.identity.Store(&again)
			h.moving.Unlock()
		}
		tried = true
		return h.reclaim(work, crashed)
	})
}

// takeArrived returns what was reclaimed since it was last called.
func (h *holder) takeArrived() []store.Job {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := h.taken
	h.taken = nil
	return taken
}

// held returns which jobs the turn holds. What is reclaimed meanwhile has arrived when it returns.
func (h *holder) held(ctx context.Context) ([]string, error) {
	h.taking.Lock()
	defer h.taking.Unlock()
	return h.engine.kind.Held(ctx, h.turn())
}

// giveBack gives jobs back, uncounted, and returns how many: not what another transaction holds locked.
func (h *holder) giveBack(ctx context.Context, jobs []store.Job, delay time.Duration) (int, error) {
	if len(jobs) == 0 {
		return 0, nil
	}
	n, err := h.engine.kind.GiveBack(ctx, h.turn(), idsOf(jobs), delay)
	h.tally.note(func(r *Report) { r.Released += n })
	h.tally.tell()
	return n, err
}

// releaseLimit bounds a try at giving back what a turn holds.
const releaseLimit = 5 * time.Second

// finish gives back all that the turn as holds, under a context of its own, and says what it could not give back. It is not called after an
// error: the rows stay with the turn, and its next activity reclaims them.
func (h *holder) finish(ctx context.Context, stop <-chan struct{}, as store.Turn) error {
	return h.engine.persist(ctx, stop, "end a turn", func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
		defer cancel()
		n, err := h.engine.kind.GiveBack(ctx, as, nil, 0)
		if err != nil {
			return err
		}
		if n > 0 {
			h.engine.waker.Remind() // a fetch that waits has not seen them
		}
		left, err := h.engine.kind.TurnsWithLeases(ctx, []string{as.ID})
		h.tally.note(func(r *Report) {
			r.Released += n
			r.LeftBehind = left
		})
		if len(left) > 0 {
			// Nothing renews them, and the lane's next fetch may come late for what another transaction had locked for a moment.
			h.engine.reclaimLater(as)
		}
		return err
	})
}

// handOver makes all of the leases, which calls have in hand, those of the detached turn. It reports false when that has to be tried again
// later: the identity is pinned, a row is locked for a moment, or a job is no longer the turn's.
func (h *holder) handOver(work context.Context, ids []string) (bool, error) {
	if !h.moving.TryLock() {
		return false, nil // what runs beside a completion, or a renewal, is not to wait for it
	}
	defer h.moving.Unlock()
	inHand := h.calls.inHand()
	before := h.turn()
	after := before.Detach()
	var handed bool
	// After a broken connection it is unknown which turn holds the jobs: nothing else is done before that is known. Renewals wait meanwhile, so a try is as long as theirs.
	err := h.engine.persist(work, nil, "hand jobs over", func() (err error) {
		try, cancel := context.WithTimeout(work, renewLimit)
		defer cancel()
		handed, err = h.engine.kind.HandOver(try, before, after, ids)
		return err
	})
	if err != nil {
		return false, err
	}
	if !handed {
		held, err := h.engine.kind.Held(work, before)
		if err == nil {
			h.calls.cancelLost(inHand, held)
		}
		return false, err
	}
	h.identity.Store(&after)
	return true, nil
}

const (
	// renewLimit bounds one try at renewing, renewRetry is the pause before the next. After one that missed rows which were locked it grows.
	renewLimit = 3 * time.Second
	renewRetry = 200 * time.Millisecond
)

// renew renews the turn's leases until ctx ends, cancels the calls of jobs that the turn has lost or that are to be cancelled, and reclaims what a suspended earlier
// activity leased after this one had begun. When that fails it is tried again at once: after an outage a holder has to renew before others
// reclaim.
func (h *holder) renew(ctx context.Context, every time.Duration) {
	log := h.engine.options.Log
	timer := time.NewTimer(every)
	defer timer.Stop()
	failing, missed := false, time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		again, err := h.renewOnce(ctx, every)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			log.Warn("leases were not renewed; trying again until the database answers", "turn", h.turn().ID, "error", store.Explain(err))
		case err == nil && failing:
			log.Info("leases are renewed again", "turn", h.turn().ID)
		}
		pause := every
		if failing = err != nil; failing {
			pause = min(every, renewRetry)
		}
		if !again {
			missed = 0
		} else if missed = min(every, max(2*missed, renewRetry)); !failing {
			pause = missed
		}
		timer.Reset(pause)
	}
}

// renewOnce reports whether it is to be repeated soon, because it has missed rows that another transaction held locked.
func (h *holder) renewOnce(ctx context.Context, every time.Duration) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, renewLimit)
	defer cancel()
	turn, free := h.pin()
	defer free()
	before := h.calls.inHand()
	renewed, err := h.engine.kind.Renew(ctx, turn, h.calls.overdue(), every/2)
	if err != nil {
		return false, err
	}
	h.calls.cancelAsked(before, renewed.Asked)
	if h.calls.cancelLost(before, renewed.Held) && !h.lost.Swap(true) {
		h.engine.reclaims.lost.Add(1)
	}
	if renewed.Crowded {
		return renewed.Missed, nil // a reclaim would wait for a connection
	}
	if err = h.reclaim(ctx, false); err != nil {
		h.unsure.Store(true)
	}
	return renewed.Missed, err
}
