package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Job is a leased job as a worker sees it.
type Job struct {
	ID         string
	OrgID      string
	DocumentID string
	Version    int64
	// Attempt is the number of the running attempt, from 1.
	Attempt   int
	StartedAt time.Time
	// Takeovers counts how often the lease was taken over since the last settlement.
	Takeovers int
	// NotReady counts the looks so far that found the document not ready.
	NotReady int
	// CancelRequested: the attempt is to commit nothing.
	CancelRequested bool
	// Epoch grows with each deliberate repost.
	Epoch int
}

const jobColumns = `q.id, q.org_id, q.document_id, q.version_hint, q.run_count, q.attempt_started_at, q.takeovers, q.not_ready_count, q.cancel_requested, q.epoch`

func scanJob(row pgx.CollectableRow) (Job, error) {
	var j Job
	err := row.Scan(&j.ID, &j.OrgID, &j.DocumentID, &j.Version, &j.Attempt, &j.StartedAt, &j.Takeovers, &j.NotReady, &j.CancelRequested, &j.Epoch)
	return j, err
}

// Lease claims up to limit due jobs for the turn, highest priority and oldest first. Rows that anybody holds are
// skipped, so two callers never get the same one.
//
// The inner query probes each priority on its own: with one ordered scan, every row of a high priority that is due
// later would be walked before the first of the next. The ids go through one array, so that the plan stays the same.
func (s *Store) Lease(ctx context.Context, turn Turn, limit int) ([]Job, error) {
	const stmt = `
WITH due AS MATERIALIZED (
    SELECT j.id
      FROM (VALUES (1::smallint), (2::smallint), (3::smallint)) AS p (priority)
     CROSS JOIN LATERAL (
           SELECT q.id
             FROM daybook.accounting_work_queue q
            WHERE q.state = 'pending' AND q.priority = p.priority AND q.ready_at <= statement_timestamp()
            ORDER BY q.ready_at, q.id
            LIMIT $4
              FOR NO KEY UPDATE SKIP LOCKED) j
     LIMIT $4
)
UPDATE daybook.accounting_work_queue q
   SET state = 'leased', turn_id = $1, fence = $2, worker = $3, leased_generation = generation, run_count = run_count + 1,
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), updated_at = clock_timestamp()
 WHERE q.id = ANY (ARRAY(SELECT id FROM due))
RETURNING ` + jobColumns
	jobs, err := byKey(ctx, s.pool, scanJob, stmt, turn.ID, turn.Fence, turn.Worker, limit)
	return jobs, wrap("lease", err)
}

// Renew says that the turn still lives: its leases are young again, but for those of the ids that are overdue. It returns
// the ids that it still holds.
func (s *Store) Renew(ctx context.Context, turn Turn, overdue []string) ([]string, error) {
	const stmt = `
WITH held AS (
    SELECT id FROM daybook.accounting_work_queue
     WHERE turn_id = $1 AND state = 'leased' AND fence = $2 AND id <> ALL ($3)
     ORDER BY org_id, document_id
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE daybook.accounting_work_queue q
   SET last_attempted_at = clock_timestamp()
  FROM held
 WHERE q.id = held.id
RETURNING q.id`
	if _, err := byKey(ctx, s.pool, pgx.RowTo[string], stmt, turn.ID, turn.Fence, overdue); err != nil {
		return nil, wrap("renew", err)
	}
	return s.Held(ctx, turn)
}

// Held returns the ids of the jobs that the turn holds under its fence.
func (s *Store) Held(ctx context.Context, turn Turn) ([]string, error) {
	const stmt = `SELECT id FROM daybook.accounting_work_queue WHERE turn_id = $1 AND state = 'leased' AND fence = $2`
	ids, err := byKey(ctx, s.pool, pgx.RowTo[string], stmt, turn.ID, turn.Fence)
	return ids, wrap("read the turn's leases", err)
}

// TurnsWithLeases returns those of the named turns that still hold a lease under any fence.
func (s *Store) TurnsWithLeases(ctx context.Context, turns []string) ([]string, error) {
	const stmt = `SELECT DISTINCT turn_id FROM daybook.accounting_work_queue WHERE turn_id = ANY ($1) AND state = 'leased' ORDER BY turn_id`
	ids, err := byKey(ctx, s.pool, pgx.RowTo[string], stmt, turns)
	return ids, wrap("read turns with leases", err)
}

// MarkWorking says that the turn works on these jobs now, one by one: should it end with its worker, they are charged.
// Only ids that it still holds are marked and returned.
func (s *Store) MarkWorking(ctx context.Context, turn Turn, ids []string) ([]string, error) {
	const stmt = `
UPDATE daybook.accounting_work_queue q
   SET working = true, last_attempted_at = clock_timestamp(), attempt_started_at = clock_timestamp()
 WHERE q.id = ANY (ARRAY(SELECT id FROM daybook.accounting_work_queue
                          WHERE id = ANY ($3) AND turn_id = $1 AND fence = $2
                          ORDER BY org_id, document_id FOR NO KEY UPDATE SKIP LOCKED))
RETURNING q.id`
	held, err := byKey(ctx, s.pool, pgx.RowTo[string], stmt, turn.ID, turn.Fence, ids)
	return held, wrap("mark working", err)
}

// givenBack is what every release of a lease sets, but for ready_at: the attempt is uncounted, and a request that came
// meanwhile counts anew.
const givenBack = `
       state = CASE WHEN q.cancel_requested THEN 'cancelled' ELSE 'pending' END::daybook.accounting_job_state,
       finished_at = CASE WHEN q.cancel_requested THEN clock_timestamp() END,
       run_count = CASE WHEN q.generation <> q.leased_generation AND NOT q.cancel_requested THEN 0 ELSE greatest(q.run_count - 1, 0) END,
       first_ready_at = CASE WHEN q.generation <> q.leased_generation THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,
       not_ready_count = CASE WHEN q.generation <> q.leased_generation THEN 0 ELSE q.not_ready_count END,
       cancel_requested = false, working = false, updated_at = clock_timestamp(),
       turn_id = NULL, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL`

// Release gives jobs back uncounted: they are pending again after delay, or cancelled where that was asked for. With
// nil ids it gives back everything that the turn holds. Rows that somebody holds locked stay leased.
func (s *Store) Release(ctx context.Context, turn Turn, ids []string, delay time.Duration) (int, error) {
	const stmt = `
WITH held AS (
    SELECT id FROM daybook.accounting_work_queue
     WHERE turn_id = $1 AND state = 'leased' AND fence <= $2 AND ($3::text[] IS NULL OR id = ANY ($3))
     ORDER BY org_id, document_id
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE daybook.accounting_work_queue q
   SET ` + givenBack + `,
       ready_at = CASE WHEN q.generation <> q.leased_generation THEN greatest(q.ready_at, clock_timestamp())
                       ELSE clock_timestamp() + make_interval(secs => $4) END
  FROM held
 WHERE q.id = held.id
RETURNING q.id`
	released, err := byKey(ctx, s.pool, pgx.RowTo[string], stmt, turn.ID, turn.Fence, ids, delay.Seconds())
	return len(released), wrap("release", err)
}
