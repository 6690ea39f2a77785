package engine

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// cappedRest is the pause before another try at organizations whose cap is reached. A job that ends
// in this turn ends the pause; other turns and workers do not say when theirs do.
const cappedRest = 250 * time.Millisecond

// lease leases up to n jobs, for which it reserves room.
func (t *turn) lease(work context.Context, n int) refilled {
	e, turn := t.engine, t.leases.heldBy()
	turn.Begins = e.begins
	l, err := e.leaseWhole(work, turn, n, e.room)
	t.leases.note(len(l.Jobs), err)
	for i := range l.Jobs {
		h, _ := e.handlers.Handling(l.Jobs[i].Type)
		l.Jobs[i].Room = !h.Bulk
	}
	again := l.Wait()
	if l.Capped && (again == 0 || again > cappedRest) {
		again = cappedRest
	}
	return refilled{
		jobs: e.marked(l.Jobs), asked: n, again: again, err: err, outlook: outlook{
			unread: l.Unread, heldBack: l.Again > 0 && !l.Unread && !l.Locked, capped: l.Capped, roomless: l.Passed,
		},
	}
}

// Lease leases up to limit due jobs for a turn, which Process works then. Cancelled, it may have
// leased some all the same.
func (e *Engine) Lease(ctx context.Context, turn store.Turn, limit int, stop <-chan struct{}) (n int, err error) {
	err = e.persist(ctx, stop, "lease", func() error {
		if turn.Fence, err = e.kind.NextFence(ctx); err != nil {
			return err
		}
		for {
			l, err := e.leaseWhole(ctx, turn, limit, known{e.room})
			n = len(l.Jobs)
			if err != nil || n > 0 || l.Again == 0 || l.Locked {
				return err
			}
			select { // only a scan that has read everything can tell that nothing is due
			case <-time.After(l.Again):
			case <-stop:
				return nil
			case <-ctx.Done():
				return nil
			}
		}
	})
	return n, err
}

// leaseWhole leases jobs. The caller may be told to stop meanwhile: the statement is not cut off,
// so that what it leases is known.
func (e *Engine) leaseWhole(ctx context.Context, turn store.Turn, limit int, room store.Room) (store.Leased, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*store.LeaseLimit)
	defer cancel()
	leased, err := e.kind.LeaseFor(ctx, turn, limit, room)
	e.observer.leased(turn, leased.Jobs)
	return leased, err
}

// marked notes of jobs that were just leased whether they are charged from the beginning.
func (e *Engine) marked(jobs []store.Job) []store.Job {
	for i := range jobs {
		jobs[i].Waiting = !e.begins
	}
	return jobs
}
