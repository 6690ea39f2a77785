package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// MarkWaiting implements engine.Leases.
func (s *Store) MarkWaiting(ctx context.Context, turn Turn, ids []string) error {
	const stmt = `
UPDATE daybook.jobs q
   SET working = false
 WHERE q.id = ANY (ARRAY(SELECT id FROM daybook.jobs
                          WHERE id = ANY (@ids) AND turn_id = @turn AND fence = @fence
                          ORDER BY org_id, id FOR NO KEY UPDATE SKIP LOCKED))
RETURNING q.id`
	_, err := byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(stmt), turn.args(Args{"ids": ids}))
	return Wrap("mark waiting", err)
}

// Begun is what came of BeginWaiting.
type Begun struct {
	// Working are the jobs that are marked as being worked.
	Working []string
	// Held are still the turn's and wait: another transaction holds their rows.
	Held []string
	// Cancelled counts those that were to be cancelled, and are.
	Cancelled int
}

// BeginWaiting implements engine.Leases. A job that the turn has leased anew meanwhile is the turn's, and may be begun: which of its attempts completes it is
// decided by the completion, which compares the attempt and the generation.
func (s *Store) BeginWaiting(ctx context.Context, turn Turn, ids []string) (Begun, error) {
	const begin = `
UPDATE daybook.jobs q
   SET working = true, last_attempted_at = clock_timestamp(), attempt_started_at = clock_timestamp()
 WHERE q.id = ANY (ARRAY(SELECT id FROM daybook.jobs
                          WHERE id = ANY (@ids) AND turn_id = @turn AND fence = @fence AND NOT cancel_requested
                          ORDER BY org_id, id FOR NO KEY UPDATE SKIP LOCKED))
RETURNING q.id`
	const held = `
SELECT id FROM daybook.jobs WHERE id = ANY (@ids) AND turn_id = @turn AND fence = @fence AND state = 'leased' AND NOT working`
	var b Begun
	var err error
	a := turn.args(Args{"ids": ids, "cancelled": true, "delay": 0.0})
	if b.Working, err = byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(begin), a); err != nil {
		return b, Wrap("begin jobs", err)
	}
	if len(b.Working) == len(ids) {
		return b, nil
	}
	cancelled, err := byKey(ctx, s.pool, backFrom(turn), s.kind.sql(giveBackStmt), a)
	if err != nil {
		return b, Wrap("cancel jobs before they begin", err)
	}
	s.changed(cancelled)
	b.Cancelled = len(cancelled)
	b.Held, err = byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(held), a)
	return b, Wrap("read jobs that wait", err)
}

// HandOver implements engine.Leases.
func (s *Store) HandOver(ctx context.Context, from, to Turn, ids []string) (bool, error) {
	const stmt = `
UPDATE daybook.jobs q
   SET turn_id = @to, detached = @detached, last_attempted_at = clock_timestamp()
 WHERE q.id = ANY (ARRAY(SELECT id FROM daybook.jobs
                          WHERE id = ANY (@ids) AND turn_id IN (@turn, @to) AND fence = @fence
                          ORDER BY org_id, id FOR NO KEY UPDATE SKIP LOCKED))
RETURNING q.id`
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		handed, err := byKey(ctx, tx, pgx.RowTo[string], s.kind.sql(stmt),
			from.args(Args{"to": to.ID, "detached": to.Detached, "ids": ids}))
		if err == nil && len(handed) < len(ids) {
			err = ErrRowHeld
		}
		return err
	})
	if errors.Is(err, ErrRowHeld) {
		return false, nil
	}
	return err == nil, Wrap("hand jobs over", err)
}

// PutOff implements engine.Completer.
func (s *Store) PutOff(ctx context.Context, id string, attempt int) (n int, err error) {
	const stmt = `
SELECT coalesce(sum(times), 0) FROM daybook.attempt_log
 WHERE job_id = $1 AND attempt = $2 AND outcome = 'rescheduled' AND error_code = 'DATABASE_ERROR'`
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	return value[int](ctx, s.pool, "count what was put off", stmt, id, attempt)
}

// SetProgress implements engine.Completer.
func (s *Store) SetProgress(ctx context.Context, turn Turn, j Job, progress []byte) error {
	const stmt = `
UPDATE daybook.jobs SET progress = @progress::text::jsonb, updated_at = clock_timestamp()
 WHERE id = @id AND turn_id = @turn AND fence = @fence AND run_count = @attempt AND leased_generation = @generation
RETURNING id`
	written, err := byKey(ctx, s.pool, pgx.RowTo[string], stmt, Args{
		"turn": turn.ID, "fence": turn.Fence, "id": j.ID, "attempt": int32(j.Attempt), "generation": j.Generation, "progress": string(progress),
	})
	if err == nil && len(written) == 0 {
		return fmt.Errorf("job %s: %w", j.ID, ErrLeaseLost)
	}
	return Wrap("store progress", err)
}

// ReturnMissing makes the dead letters pending again that failed because no worker had a handler for one of the types, in
// batches, and says how many there were. What was counted of their attempts stays counted. One that is to be unique while another with its payload is open stays a dead letter.
func (s *Store) ReturnMissing(ctx context.Context, types []string) (int, error) {
	const stmt = `
WITH f AS MATERIALIZED (
    SELECT id FROM daybook.jobs
     WHERE state = 'failed' AND last_error_code = 'HANDLER_MISSING' AND type = ANY ($1) AND fleet = $3 AND id > $2
       AND (queue IS NULL OR EXISTS (SELECT FROM daybook.queues u WHERE u.name = queue))
     ORDER BY id
     LIMIT 1000
       FOR NO KEY UPDATE SKIP LOCKED)
SELECT f.id, r.result
  FROM f
 CROSS JOIN LATERAL daybook.retry_job(f.id, 'now') r
 ORDER BY f.id`
	total, last := 0, ""
	for {
		n, returned := 0, 0
		err := s.InTx(ctx, func(tx pgx.Tx) error {
			var result string
			return Each(ctx, tx, []any{&last, &result}, func() error {
				if n++; result != "unchanged" {
					returned++
				}
				return nil
			}, stmt, types, last, s.kind.fleetID())
		})
		if err == nil {
			total += returned
		}
		if err != nil || n == 0 {
			return total, Wrap("return jobs whose handler was missing", err)
		}
	}
}
