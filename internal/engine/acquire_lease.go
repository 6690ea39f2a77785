package engine

import (
	"context"

	"github.com/daybook-dev/daybook/internal/store"
)

// lease leases up to n jobs, for which it reserves room.
func (t *turn) lease(work context.Context, n int) refilled {
	l, err := t.engine.leaseRoomy(work, t.leases.heldBy(), n)
	return refilled{
		jobs: l.Jobs, asked: n, again: l.Wait(), unread: l.Unread, capped: l.Capped, roomless: l.Passed, err: err,
	}
}

// leaseRoomy leases jobs that can be begun at once, and notes that room for them is reserved.
func (e *Engine) leaseRoomy(ctx context.Context, turn store.Turn, n int) (store.Leased, error) {
	turn.Begins = e.begins
	leased, err := e.leaseWhole(ctx, turn, n, e.room)
	for i := range leased.Jobs {
		h, _ := e.handlers.Handling(leased.Jobs[i].Type)
		leased.Jobs[i].Room = !h.Bulk
	}
	leased.Jobs = e.marked(leased.Jobs)
	return leased, err
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
