package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Renewed is the result of Renew.
type Renewed struct {
	// Held are the jobs that the turn still holds.
	Held []string
	// Asked are those of them that are to be cancelled.
	Asked []string
	// Missed says that some were not renewed, because another transaction holds their rows: often for
	// a moment only, to see whether they have expired.
	Missed bool
	// Crowded says that no connection of the pool was free.
	Crowded bool
}

// Renew implements engine.Leases.
func (s *Store) Renew(ctx context.Context, turn Turn, overdue []string, young time.Duration) (Renewed, error) {
	const stmt = `
WITH held AS (
    SELECT id FROM daybook.jobs
     WHERE turn_id = @turn AND num_nulls(nullif(state, 'leased')) = 1 AND fence = @fence AND id <> ALL (@overdue)
       AND last_attempted_at < statement_timestamp() - make_interval(secs => @young)
     ORDER BY org_id, id
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE daybook.jobs q
   SET last_attempted_at = clock_timestamp()
  FROM held
 WHERE q.id = held.id
RETURNING q.id`
	const read = `
SELECT id, id <> ALL (@overdue) AND last_attempted_at < statement_timestamp() - 2 * make_interval(secs => @young), cancel_requested
  FROM daybook.jobs WHERE turn_id = @turn AND num_nulls(nullif(state, 'leased')) = 1 AND fence = @fence`
	var r Renewed
	a := turn.args(Args{"overdue": overdue, "young": young.Seconds()})
	var err error
	r.Crowded, err = s.keeping(ctx, func(q batcher) error {
		if _, err := byKey(ctx, q, pgx.RowTo[string], s.kind.sql(stmt), a); err != nil {
			return Wrap("renew", err)
		}
		var id string
		var missed, asked bool
		_, err := byKey(ctx, q, eachRow([]any{&id, &missed, &asked}, func() {
			r.Held, r.Missed = append(r.Held, id), r.Missed || missed
			if asked {
				r.Asked = append(r.Asked, id)
			}
		}), s.kind.sql(read), a)
		return Wrap("read the turn's leases", err)
	})
	return r, err
}

// Held implements engine.Leases.
func (s *Store) Held(ctx context.Context, turn Turn) ([]string, error) {
	const stmt = `SELECT id FROM daybook.jobs WHERE turn_id = @turn AND num_nulls(nullif(state, 'leased')) = 1 AND fence = @fence`
	ids, err := kept(ctx, &s.base, func(q batcher) ([]string, error) {
		return byKey(ctx, q, pgx.RowTo[string], s.kind.sql(stmt), turn.args(Args{}))
	})
	return ids, Wrap("read the turn's leases", err)
}

// TurnsWithLeases implements engine.Leases.
func (s *Store) TurnsWithLeases(ctx context.Context, turns []string) ([]string, error) {
	const stmt = `SELECT DISTINCT turn_id FROM daybook.jobs WHERE turn_id = ANY ($1) AND num_nulls(nullif(state, 'leased')) = 1 ORDER BY turn_id`
	ids, err := byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(stmt), turns)
	return ids, Wrap("read turns with leases", err)
}

// giveBackStmt gives jobs back: those of @ids, or all that the turn holds if that is null; with
// @cancelled only those that are to be cancelled. The attempt is uncounted, and a request that came
// meanwhile counts anew.
const giveBackStmt = `
WITH held AS (
    SELECT id, generation <> leased_generation AS again, run_count
      FROM daybook.jobs
     WHERE turn_id = @turn AND num_nulls(nullif(state, 'leased')) = 1 AND fence <= @fence AND (@ids::text[] IS NULL OR id = ANY (@ids))
       AND (NOT @cancelled OR cancel_requested)
     ORDER BY org_id, id
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE daybook.jobs q
   SET state = CASE WHEN q.cancel_requested THEN 'cancelled' ELSE 'pending' END::daybook.job_state,
       finished_at = CASE WHEN q.cancel_requested THEN clock_timestamp() END,
       run_count = CASE WHEN held.again AND NOT q.cancel_requested THEN 0 ELSE greatest(q.run_count - 1, 0) END,
       ready_at       = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE clock_timestamp() + make_interval(secs => @delay) END,
       first_ready_at = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,
       /* accounting: not_ready_count = CASE WHEN held.again THEN 0 ELSE q.not_ready_count END, */
       cancel_requested = false, working = false, updated_at = clock_timestamp(),
       turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
  FROM held
 WHERE q.id = held.id
RETURNING q.id, q.org_id, /* jobs */q.type, ''/* accounting: '', q.document_id */, held.run_count, q.state = 'cancelled'`

// GiveBack implements engine.Leases.
//
// The generation would not tell what was given back and is leased again. Should a try whose answer
// was lost be repeated after that, the attempt of that lease commits nothing, and the job is worked
// again.
func (s *Store) GiveBack(ctx context.Context, turn Turn, ids []string, delay time.Duration) (int, error) {
	released, err := byKey(ctx, s.pool, backFrom(turn), s.kind.sql(giveBackStmt),
		turn.args(Args{"ids": ids, "delay": delay.Seconds(), "cancelled": false}))
	if len(released) > 0 && err == nil {
		// Other processes wait for work as well, also those of a fleet that a job was moved to. Should
		// this fail, they find it when they look by themselves.
		_, _ = byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(`SELECT daybook.wake_job_queue()::text`))
	}
	if err == nil { // the rows are there also when their commit failed
		s.changed(released)
	}
	return len(released), Wrap("release", err)
}

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
	// StartedAt says of each of them when its attempt began, where a lease is known by that.
	StartedAt map[string]time.Time
	// Held are still the turn's and wait: another transaction holds their rows.
	Held []string
	// Cancelled counts those that were to be cancelled, and are.
	Cancelled int
}

// BeginWaiting implements engine.Leases. A job that the turn has leased anew meanwhile is the
// turn's, and may be begun: which of its attempts completes it is decided by the completion, which
// compares the attempt, the generation and the begin.
func (s *Store) BeginWaiting(ctx context.Context, turn Turn, ids []string) (Begun, error) {
	const begin = `
UPDATE daybook.jobs q
   SET working = true, last_attempted_at = clock_timestamp(), attempt_started_at = clock_timestamp()
 WHERE q.id = ANY (ARRAY(SELECT id FROM daybook.jobs
                          WHERE id = ANY (@ids) AND turn_id = @turn AND fence = @fence AND NOT cancel_requested
                          ORDER BY org_id, id FOR NO KEY UPDATE SKIP LOCKED))
RETURNING q.id, q.attempt_started_at`
	const held = `
SELECT id FROM daybook.jobs WHERE id = ANY (@ids) AND turn_id = @turn AND fence = @fence AND NOT working`
	b := Begun{StartedAt: map[string]time.Time{}}
	var id string
	var at time.Time
	a := turn.args(Args{"ids": ids, "cancelled": true, "delay": 0.0})
	if _, err := byKey(ctx, s.pool, eachRow([]any{&id, &at}, func() {
		b.Working, b.StartedAt[id] = append(b.Working, id), at
	}), s.kind.sql(begin), a); err != nil {
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
WITH mine AS MATERIALIZED (
    SELECT id FROM daybook.jobs
     WHERE id = ANY (@ids) AND turn_id IN (@turn, @to) AND fence = @fence
     ORDER BY org_id, id
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE daybook.jobs q
   SET turn_id = @to, detached = @detached, last_attempted_at = clock_timestamp()
 WHERE q.id = ANY (ARRAY(SELECT id FROM mine)) AND (SELECT count(*) FROM mine) = cardinality(@ids::text[])
RETURNING q.id`
	handed, err := kept(ctx, &s.base, func(q batcher) ([]string, error) {
		return byKey(ctx, q, pgx.RowTo[string], s.kind.sql(stmt),
			from.args(Args{"to": to.ID, "detached": to.Detached, "ids": ids}))
	})
	return err == nil && len(handed) == len(ids), Wrap("hand jobs over", err)
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
       AND attempt_started_at = @started
RETURNING id`
	written, err := byKey(ctx, s.pool, pgx.RowTo[string], stmt,
		turn.args(Args{
			"id": j.ID, "attempt": int32(j.Attempt), "generation": j.Generation, "started": j.StartedAt,
			"progress": string(progress),
		}))
	if err == nil && len(written) == 0 {
		return fmt.Errorf("job %s: %w", j.ID, ErrLeaseLost)
	}
	return Wrap("store progress", err)
}
