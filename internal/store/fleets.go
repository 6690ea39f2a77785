package store

import (
	"context"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// FleetOf returns the number of a fleet, a set of programs that work the same named queues. It is
// put on record on first use. It returns ErrInvalid for a name that cannot be one.
func FleetOf(ctx context.Context, q Querier, name string) (int16, error) {
	return value[int16](ctx, q, "look up the fleet "+name, `SELECT daybook.fleet_of($1)`, name)
}

// FleetNames returns the names of the fleets that are on record, the one without a name first, as
// the empty text.
func FleetNames(ctx context.Context, q Querier) ([]string, error) {
	names, err := Collect(ctx, q, pgx.RowTo[string], `SELECT f.name FROM daybook.fleets f ORDER BY f.name`)
	return names, Wrap("list the fleets", err)
}

// noFleet is the number of a fleet that is not known yet: no job has it.
const noFleet = math.MinInt16

// JobsOf is the queue of background jobs as the workers of a fleet see it. A store of it finds
// nothing before Join.
func JobsOf(fleet string) *Kind {
	if fleet == "" {
		return Jobs
	}
	k := newJobs()
	k.fleetName = fleet
	k.fleet.Store(noFleet)
	return k
}

// Join looks up the number of the store's fleet, which is put on record if it is new. It does
// nothing when it is known.
func (s *Store) Join(ctx context.Context) error {
	if s.kind.fleet.Load() != noFleet {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	id, err := FleetOf(ctx, s.pool, s.kind.fleetName)
	if err == nil {
		s.kind.fleet.Store(int32(id))
	}
	return err
}

// fleetID is the number of the workers' fleet.
func (k *Kind) fleetID() int16 { return int16(k.fleet.Load()) }

// wakeKey is the key of the lock by which the waiters of a kind, and of a fleet, are known to those
// that enqueue (daybook.jobs_key); wakeChannel is where those notify.
func (k *Kind) wakeKey() int { return k.key + 16*int(k.fleet.Load()) }

func (k *Kind) wakeChannel() string {
	if n := k.fleet.Load(); n > 0 {
		return k.channel + "_" + strconv.Itoa(int(n))
	}
	return k.channel
}
