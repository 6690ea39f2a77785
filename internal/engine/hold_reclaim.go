package engine

import (
	"cmp"
	"context"

	"github.com/daybook-dev/daybook/internal/store"
)

// reclaim takes what earlier activities of the turn leased, for the loop.
func (l *leases) reclaim(ctx context.Context, crashed bool) error {
	l.taking.Lock()
	defer l.taking.Unlock()
	turn := l.heldBy()
	taken, err := l.engine.kind.ReclaimTurns(ctx, turn, []string{turn.ID}, crashed)
	if err != nil {
		return err
	}
	l.tally.note(func(r *Report) {
		r.Leased += len(taken.Jobs)
		r.Lost += taken.Lost
		r.Failed += taken.Failed
	})
	l.engine.observer.leasedAgain(turn, taken.Jobs, taken.Lost)
	if len(taken.Jobs) > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.taken = append(l.taken, l.engine.marked(taken.Jobs)...)
		select {
		case l.arrived <- struct{}{}:
		default:
		}
	}
	return nil
}

// reclaimFirst is reclaim before anything else is done. A try that ended with an error may have
// been committed: the next one draws a new fence, under which it finds those jobs too, and charges
// none twice.
func (l *leases) reclaimFirst(ctx, work context.Context, stop <-chan struct{}, crashed bool) error {
	tried := false
	return l.engine.persist(ctx, stop, "reclaim the turn", func() error {
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
		return l.reclaim(work, crashed)
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
