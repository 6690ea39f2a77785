package engine

import (
	"context"
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
