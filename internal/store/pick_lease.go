package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// LeasePicked implements engine.Leases. Every request for a job sets its updated_at, under the lock of its row: what was asked for since is not swallowed. Only a
// request for a unique job that finds it as it is leaves no trace, so no unique one is leased in another transaction. Times are compared for equality alone,
// because the clock may have been set back.
func (s *Store) LeasePicked(ctx context.Context, tx pgx.Tx, turn Turn, jobs []Job, locked bool) ([]string, error) {
	const stmt = `
UPDATE daybook.jobs q
   SET state = 'leased', turn_id = @turn, detached = @detached, fence = @fence, worker = @worker, leased_generation = generation,
       run_count = v.attempt, attempt_started_at = v.started_at, last_attempted_at = clock_timestamp(), updated_at = clock_timestamp(),
       working = NOT v.waiting, capped = false/* jobs */, counted = false/* accounting: */
  FROM unnest(@ids::text[], @attempts::integer[], @started::timestamptz[], @updated::timestamptz[], @waiting::boolean[])
       AS v (id, attempt, started_at, updated_at, waiting)
 WHERE q.id = v.id AND q.state = 'pending' AND q.run_count = v.attempt - 1 AND (@locked OR q.updated_at = v.updated_at/* jobs */ AND q.unique_hash IS NULL/* accounting: */)
RETURNING q.id`
	ids, attempts := make([]string, len(jobs)), make([]int32, len(jobs))
	started, updated, waiting := make([]time.Time, len(jobs)), make([]time.Time, len(jobs)), make([]bool, len(jobs))
	for i, j := range jobs {
		ids[i], attempts[i], started[i], updated[i], waiting[i] = j.ID, int32(j.Attempt), j.StartedAt, j.UpdatedAt, j.Waiting
	}
	a := turn.args(Args{
		"detached": turn.Detached, "worker": turn.Worker, "ids": ids, "attempts": attempts, "started": started, "updated": updated,
		"waiting": waiting, "locked": locked,
	})
	leased, err := byKey(ctx, tx, pgx.RowTo[string], s.kind.sql(stmt), a)
	return leased, Wrap("lease picked jobs", err)
}
