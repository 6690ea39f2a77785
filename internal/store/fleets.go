package store

import (
	"context"
	"strconv"
)

// Fleet is a set of programs that work the same named queues. The zero value is the fleet without a name, which works the jobs that are in no queue, and
// the queues that name no fleet.
type Fleet struct {
	ID   int16
	Name string
}

// FleetOf returns the fleet of that name, which is made on first use. It returns ErrInvalid for a name that cannot be one.
func FleetOf(ctx context.Context, q Querier, name string) (Fleet, error) {
	f := Fleet{Name: name}
	if name == "" {
		return f, nil
	}
	err := q.QueryRow(ctx, `SELECT daybook.fleet_of($1)`, name).Scan(&f.ID)
	return f, Wrap("look up the fleet "+name, err)
}

// JobsOf is the queue of background jobs as the workers of a fleet see it.
func JobsOf(f Fleet) *Kind {
	if f.ID == 0 {
		return Jobs
	}
	return &Kind{
		Name: Jobs.Name, table: Jobs.table, wake: Jobs.wake, lostCode: Jobs.lostCode, channel: Jobs.channel + "_" + strconv.Itoa(int(f.ID)), key: Jobs.key,
		oldRows: Jobs.oldRows, fields: Jobs.fields, locked: Jobs.locked, fleet: f.ID,
	}
}

// wakeKey is the key of the lock by which the waiters of a kind, and of a fleet, are known to those that enqueue (daybook.jobs_key).
func (k *Kind) wakeKey() int { return k.key + 16*int(k.fleet) }
