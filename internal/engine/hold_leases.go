package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// leases are those of one turn: by which turn and fence they are held, renewed, reclaimed from
// earlier activities, handed over and given back. Its methods are safe for concurrent use.
//
// Who holds a job is one value, the identity. It changes in two ways, both here: a new fence after
// a reclaim whose result is unknown, and a detached turn that goes on without its activity. What
// commits under it pins it for as long as that takes.
type leases struct {
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

	// some: the turn has leased something, or may have.
	some atomic.Bool
	// unsure: a reclaim ended with an error, so that it is unknown what it took.
	unsure atomic.Bool
	// lost: leases of the turn were taken while it worked on them.
	lost atomic.Bool
}

func newLeases(e *Engine, turn store.Turn, cs *calls, t *tally) *leases {
	l := &leases{engine: e, calls: cs, tally: t, arrived: make(chan struct{}, 1)}
	l.identity.Store(&turn)
	return l
}

// note takes in that n jobs were leased, and with an error perhaps more.
func (l *leases) note(n int, err error) {
	if n > 0 || err != nil {
		l.some.Store(true)
	}
}

func (l *leases) heldBy() store.Turn { return *l.identity.Load() }

// pin returns by which turn the leases are held, and keeps that from changing until free is called.
func (l *leases) pin() (turn store.Turn, free func()) {
	l.moving.RLock()
	return l.heldBy(), l.moving.RUnlock
}

// pinLimit is how long a transaction waits for the identity to be pinned. A hand-over takes
// milliseconds, unless it waits for a connection of the pool, and then the transactions that wait
// for it may have all of them.
const pinLimit = 500 * time.Millisecond

// pinWithin is pin for what holds a connection meanwhile. It gives up after limit, and ok is false.
func (l *leases) pinWithin(limit time.Duration) (turn store.Turn, free func(), ok bool) {
	for began := time.Now(); !l.moving.TryRLock(); time.Sleep(firstPause) {
		if time.Since(began) > limit {
			return store.Turn{}, nil, false
		}
	}
	return l.heldBy(), l.moving.RUnlock, true
}

// held returns which jobs the turn holds. What is reclaimed meanwhile has arrived when it returns.
func (l *leases) held(ctx context.Context) ([]string, error) {
	l.taking.Lock()
	defer l.taking.Unlock()
	return l.engine.kind.Held(ctx, l.heldBy())
}

// giveBack gives jobs back, uncounted, and returns how many: not what another transaction holds
// locked.
func (l *leases) giveBack(ctx context.Context, jobs []store.Job, delay time.Duration) (int, error) {
	if len(jobs) == 0 {
		return 0, nil
	}
	n, err := l.engine.kind.GiveBack(ctx, l.heldBy(), idsOf(jobs), delay)
	l.tally.note(func(r *Report) { r.Released += n })
	l.tally.tell()
	return n, err
}

// reclaim takes what the named turns have leased, for the loop. crashed: a worker has ended while
// it worked on it.
func (l *leases) reclaim(ctx context.Context, from []string, crashed bool) error {
	l.taking.Lock()
	defer l.taking.Unlock()
	turn := l.heldBy()
	taken, err := l.engine.kind.ReclaimTurns(ctx, turn, from, crashed)
	l.note(len(taken.Jobs), err)
	if err != nil {
		return err
	}
	l.tally.note(func(r *Report) {
		r.Leased += len(taken.Jobs)
		r.Lost += taken.Lost
		r.Failed += taken.Failed
	})
	// Those whose attempt was lost begin anew, and the others go on as they were.
	l.engine.observer.leased(turn,
		slices.DeleteFunc(slices.Clone(taken.Jobs), func(j store.Job) bool { return !j.Charged }))
	if len(taken.Jobs) > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.taken = append(l.taken, l.engine.marked(taken.Jobs)...)
		signal(l.arrived)
	}
	return nil
}

// reclaimFirst takes, before anything else is done, what earlier activities of the turn leased and
// what was left behind by others. A try that ended with an error may have been committed: the next
// one draws a new fence, under which it finds those jobs too, and charges none twice.
func (l *leases) reclaimFirst(ctx, work context.Context, q TurnRequest) error {
	tried := false
	return l.engine.persist(ctx, q.Stop, "reclaim the turn", func() error {
		if tried {
			fence, err := l.engine.kind.NextFence(work)
			if err != nil {
				return err
			}
			l.moving.Lock()
			again := l.heldBy()
			again.FirstFence, again.Fence = cmp.Or(again.FirstFence, again.Fence), fence
			l.identity.Store(&again)
			l.moving.Unlock()
		}
		tried = true
		if !q.Fresh {
			if err := l.reclaim(work, []string{q.Turn.ID}, q.Crashed); err != nil {
				return err
			}
		}
		if len(q.LeftBehind) > 0 {
			return l.reclaim(work, q.LeftBehind, false)
		}
		return nil
	})
}

// takeArrived returns what was reclaimed since it was last called.
func (l *leases) takeArrived() []store.Job {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.taken
	l.taken = nil
	return taken
}

const (
	// renewLimit bounds one try at renewing, renewRetry is the pause before the next. After one
	// that missed rows which were locked it grows.
	renewLimit = 3 * time.Second
	renewRetry = 200 * time.Millisecond
)

// renew renews the turn's leases until ctx ends, cancels the calls of jobs that the turn has lost
// or that are to be cancelled, and reclaims what a suspended earlier activity leased after this one
// had begun. When that fails it is tried again at once: after an outage a holder has to renew
// before others reclaim.
func (l *leases) renew(ctx context.Context, every time.Duration) {
	log := l.engine.options.Log
	timer := time.NewTimer(every)
	defer timer.Stop()
	failing, missed := false, time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		again, err := l.renewOnce(ctx, every)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			log.Warn("leases were not renewed; trying again until the database answers",
				"turn", l.heldBy().ID, "error", store.Explain(err))
		case err == nil && failing:
			log.Info("leases are renewed again", "turn", l.heldBy().ID)
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

// renewOnce reports whether it is to be repeated soon, because it has missed rows that another
// transaction held locked. It asks nothing before the turn may have leased something.
func (l *leases) renewOnce(ctx context.Context, every time.Duration) (again bool, err error) {
	if !l.some.Load() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, renewLimit)
	defer cancel()
	turn, free := l.pin()
	defer free()
	before := l.calls.inHand()
	renewed, err := l.engine.kind.Renew(ctx, turn, l.calls.overdue(), every/2)
	if err != nil {
		return false, err
	}
	l.calls.cancelAsked(before, renewed.Asked)
	if l.calls.cancelLost(before, renewed.Held) && !l.lost.Swap(true) {
		l.engine.lost.Add(1)
	}
	if renewed.Crowded {
		return renewed.Missed, nil // a reclaim would wait for a connection
	}
	if err = l.reclaim(ctx, []string{turn.ID}, false); err != nil {
		l.unsure.Store(true)
	}
	return renewed.Missed, err
}
