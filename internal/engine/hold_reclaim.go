package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/daybook-dev/daybook/internal/store"
)

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
