package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Renewed is what came of Renew.
type Renewed struct {
	// Held are the jobs that the turn still holds.
	Held []string
	// Missed says that some were not renewed, because another transaction holds their rows: often for a moment only, to see whether they
	// have expired.
	Missed bool
}

// Renew says that the turn still lives: its leases are young again, but for those of the ids that are overdue and those that are younger
// than young anyhow.
func (s *Store) Renew(ctx context.Context, turn Turn, overdue []string, young time.Duration) (Renewed, error) {
	const stmt = `
WITH held AS (
    SELECT id FROM {queue}
     WHERE turn_id = $1 AND state = 'leased' AND fence = $2 AND id <> ALL ($3)
       AND last_attempted_at < statement_timestamp() - make_interval(secs => $4)
     ORDER BY {order}
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {queue} q
   SET last_attempted_at = clock_timestamp()
  FROM held
 WHERE q.id = held.id
RETURNING q.id`
	const read = `
SELECT id, id <> ALL ($3) AND last_attempted_at < statement_timestamp() - 2 * make_interval(secs => $4)
  FROM {queue} WHERE turn_id = $1 AND state = 'leased' AND fence = $2`
	var r Renewed
	args := []any{turn.ID, turn.Fence, overdue, young.Seconds()}
	if _, err := byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(stmt), args...); err != nil {
		return r, wrap("renew", err)
	}
	_, err := byKey(ctx, s.pool, func(row pgx.CollectableRow) (struct{}, error) {
		var id string
		var missed bool
		err := row.Scan(&id, &missed)
		r.Held, r.Missed = append(r.Held, id), r.Missed || missed
		return struct{}{}, err
	}, s.kind.sql(read), args...)
	return r, wrap("read the turn's leases", err)
}

// Held returns the ids of the jobs that the turn holds under its fence.
func (s *Store) Held(ctx context.Context, turn Turn) ([]string, error) {
	const stmt = `SELECT id FROM {queue} WHERE turn_id = $1 AND state = 'leased' AND fence = $2`
	ids, err := byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(stmt), turn.ID, turn.Fence)
	return ids, wrap("read the turn's leases", err)
}

// TurnsWithLeases returns those of the named turns that still hold a lease under any fence.
func (s *Store) TurnsWithLeases(ctx context.Context, turns []string) ([]string, error) {
	const stmt = `SELECT DISTINCT turn_id FROM {queue} WHERE turn_id = ANY ($1) AND state = 'leased' ORDER BY turn_id`
	ids, err := byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(stmt), turns)
	return ids, wrap("read turns with leases", err)
}

// MarkWorking says that the turn works on these jobs now, one by one: should it end with its worker, they are charged.
// Only ids that it still holds are marked and returned.
func (s *Store) MarkWorking(ctx context.Context, turn Turn, ids []string) ([]string, error) {
	const stmt = `
UPDATE {queue} q
   SET working = true, last_attempted_at = clock_timestamp(), attempt_started_at = clock_timestamp()
 WHERE q.id = ANY (ARRAY(SELECT id FROM {queue}
                          WHERE id = ANY ($3) AND turn_id = $1 AND fence = $2
                          ORDER BY {order} FOR NO KEY UPDATE SKIP LOCKED))
RETURNING q.id`
	held, err := byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(stmt), turn.ID, turn.Fence, ids)
	return held, wrap("mark working", err)
}

// givenBack is what every release of a lease sets, but for ready_at: the attempt is uncounted, and a request that came
// meanwhile counts anew.
const givenBack = `
       state = CASE WHEN q.cancel_requested THEN 'cancelled' ELSE 'pending' END::{state},
       finished_at = CASE WHEN q.cancel_requested THEN clock_timestamp() END,
       run_count = CASE WHEN q.generation <> q.leased_generation AND NOT q.cancel_requested THEN 0 ELSE greatest(q.run_count - 1, 0) END,
       first_ready_at = CASE WHEN q.generation <> q.leased_generation THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,{given back}
       cancel_requested = false, working = false, updated_at = clock_timestamp(),
       turn_id = NULL, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL`

// Release gives jobs back uncounted: they are pending again after delay, or cancelled where that was asked for. With
// nil ids it gives back everything that the turn holds. Rows that another transaction holds locked stay leased. Those that wait for work are told.
func (s *Store) Release(ctx context.Context, turn Turn, ids []string, delay time.Duration) (int, error) {
	const stmt = `
WITH held AS (
    SELECT id FROM {queue}
     WHERE turn_id = $1 AND state = 'leased' AND fence <= $2 AND ($3::text[] IS NULL OR id = ANY ($3))
     ORDER BY {order}
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {queue} q
   SET ` + givenBack + `,
       ready_at = CASE WHEN q.generation <> q.leased_generation THEN greatest(q.ready_at, clock_timestamp())
                       ELSE clock_timestamp() + make_interval(secs => $4) END
  FROM held
 WHERE q.id = held.id
RETURNING q.id`
	released, err := byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(stmt), turn.ID, turn.Fence, ids, delay.Seconds())
	if len(released) > 0 && err == nil {
		// Other processes wait for work as well. Should this fail, they find it when they look by themselves.
		_, _ = byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(`SELECT {wake}()::text`))
	}
	return len(released), wrap("release", err)
}
