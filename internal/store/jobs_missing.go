package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/models"
)

// HandlerMissingAfter is for how long no worker that lives may have had a handler for a type before
// its due jobs become dead letters. A worker lives for so long after it was last heard of, unless
// it has stopped.
const HandlerMissingAfter = 5 * time.Minute

// JobWorker is a worker of background jobs, and the types that it has handlers for.
type JobWorker struct {
	// ID is the process's own; Name is for people.
	ID, Name string
	Types    []string
	// Versions are those of the handlers of Types, in their order; nil: each is 0.
	Versions []int32
	// Unshared has, for each type whose jobs share no transactions although their policy says so,
	// what a function of theirs did there.
	Unshared map[string]string
}

const noteWorkerStmt = `
WITH gone AS (
    DELETE FROM daybook.job_workers WHERE last_seen < clock_timestamp() - interval '1 day' AND id <> @id
)
INSERT INTO daybook.job_workers AS w (id, name, types, fleet, versions, unshared)
VALUES (@id, @name, coalesce(@types::text[], '{}'), @fleet, coalesce(@versions::integer[], '{}'), coalesce(@unshared::jsonb, '{}'))
ON CONFLICT (id) DO UPDATE SET name = excluded.name, fleet = excluded.fleet, types = excluded.types, versions = excluded.versions, unshared = excluded.unshared, last_seen = clock_timestamp(), stopped_at = NULL
RETURNING CASE WHEN w.xmax = 0 THEN daybook.wake_job_queue(@fleet::integer)::text ELSE '' END`

// note are the arguments of noteWorkerStmt.
func (s *Store) note(w JobWorker) Args {
	return Args{
		"id": w.ID, "name": w.Name, "types": w.Types, "versions": w.Versions, "fleet": s.kind.fleetID(),
		"unshared": w.Unshared,
	}
}

// NoteJobWorker puts on record that a worker lives, and which types it has handlers for. When it is
// new, the waiting workers of its fleet are woken: they may be waiting in its place while jobs of
// its types are due.
func (s *Store) NoteJobWorker(ctx context.Context, w JobWorker) error {
	_, err := byKey(ctx, s.pool, pgx.RowTo[string], noteWorkerStmt, s.note(w))
	return Wrap("put the worker on record", err)
}

// Tend does, in one transaction, what a worker does once a minute: it puts itself on record as
// NoteJobWorker does, has the jobs of its fleet's queues gathered (gatherStmt), and looks whether
// dead letters are to be returned. If so ReturnMissing returns them, and their number is returned.
func (s *Store) Tend(ctx context.Context, w JobWorker) (int, error) {
	const missing = `
SELECT EXISTS (SELECT FROM daybook.jobs WHERE state = 'failed' AND last_error_code = 'HANDLER_MISSING' AND type = ANY ($1) AND fleet = $2)`
	within, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	for try := 0; ; try++ {
		batch := batchByKey(s.pool)
		batch.Queue(gatherStmt, s.kind.fleetID())
		batch.Queue(noteWorkerStmt, s.note(w))
		batch.Queue(missing, w.Types, s.kind.fleetID())
		found, err := lastRows(within, s.pool, batch, pgx.RowTo[bool])
		switch {
		case try == 0 && FaultOf(err) == Stale:
		case err != nil || !found[0]:
			return 0, Wrap("put the worker on record", err)
		default:
			return s.ReturnMissing(ctx, w.Types)
		}
	}
}

// NoteJobWorkerStopped puts on record that a worker has stopped. FailMissing counts it as before,
// so that a deployment makes no dead letters.
func (s *Store) NoteJobWorkerStopped(ctx context.Context, id string) error {
	const stmt = `UPDATE daybook.job_workers SET stopped_at = clock_timestamp() WHERE id = $1 RETURNING id`
	_, err := byKey(ctx, s.pool, pgx.RowTo[string], stmt, id)
	return Wrap("put on record that the worker has stopped", err)
}

// HasHandler reports whether a worker that lives has a handler for jobs of the type in the named
// queue; empty: in none.
func HasHandler(ctx context.Context, q Querier, jobType, queue string) (bool, error) {
	const stmt = `
SELECT EXISTS (SELECT FROM daybook.live_job_workers w
                WHERE w.fleet = coalesce((SELECT u.fleet FROM daybook.queues u WHERE u.name = $2), 0) AND $1 = ANY (w.types))`
	return value[bool](ctx, q, "look for a worker that has a handler", stmt, jobType, queue)
}

// missingBatch is how many jobs of a partition one transaction makes dead letters of.
const missingBatch = 1000

// FailMissing makes dead letters (HANDLER_MISSING) of jobs that have been due for age, and for
// whose type no worker has had a handler in that time, if the worker of that id has lived so long:
// then they have not waited for a deployment. It looks where this store has met jobs without a
// handler, and returns how many there were of each type. No attempt is counted.
//
// With age 0 the worker of that id is taken to be the only one.
func (s *Store) FailMissing(ctx context.Context, id string, age time.Duration) (map[string]int, error) {
	const stmt = `
WITH gone AS MATERIALIZED (
    SELECT j.id
      FROM unnest(@priorities::smallint[], @orgs::text[], @slots::text[]) AS p (priority, org_id, slot)
     CROSS JOIN LATERAL (
           SELECT q.id
             FROM daybook.jobs q
            WHERE q.state = 'pending' AND q.fleet = @fleet AND q.priority = p.priority AND q.org_id = p.org_id AND daybook.job_slot(q.type, q.queue, q.min_version) = p.slot
              AND q.ready_at <= statement_timestamp() - make_interval(secs => @age)
            ORDER BY q.ready_at, q.id
            LIMIT @most
              FOR NO KEY UPDATE SKIP LOCKED) j
     WHERE @age = 0
        OR EXISTS (SELECT 1 FROM daybook.job_workers w WHERE w.id = @worker AND w.first_seen <= statement_timestamp() - make_interval(secs => @age))
       AND NOT EXISTS (SELECT 1 FROM daybook.job_workers w WHERE w.last_seen > statement_timestamp() - make_interval(secs => @age)
                           AND w.fleet = @fleet AND split_part(p.slot, '/', 1) = ANY (w.types))
)
UPDATE daybook.jobs q
   SET state = 'failed', last_error_code = 'HANDLER_MISSING',
       last_error = 'no worker' || coalesce(' of the fleet ' || (SELECT f.name FROM daybook.fleets f WHERE f.id = @fleet AND f.id > 0), '') ||
                    ' has a handler for jobs of type ' || q.type || ': they come back when a worker starts that has one',
       finished_at = clock_timestamp(), updated_at = clock_timestamp()
 WHERE q.id = ANY (ARRAY(SELECT gone.id FROM gone))
RETURNING q.id, q.org_id, q.type, q.run_count, q.last_error`
	failed := map[string]int{}
	// What a scan finds meanwhile is left to the next time.
	for partitions := range slices.Chunk(s.due.WithoutHandler(), missingBatch) {
		a := s.kind.able(shareColumns(partitions))
		a["age"], a["worker"], a["most"] = age.Seconds(), id, missingBatch
		for {
			gone, err := byKey(ctx, s.pool, func(row pgx.CollectableRow) (Change, error) {
				c := Change{What: events.Failed, Code: models.CodeHandlerMissing}
				err := row.Scan(&c.Job.ID, &c.Job.OrgID, &c.Job.Type, &c.Job.Attempt, &c.Message)
				return c, err
			}, stmt, a)
			if err != nil {
				return failed, Wrap("scan for jobs without a handler", err)
			}
			for _, c := range gone {
				failed[c.Job.Type]++
			}
			s.changed(gone)
			if len(gone) == 0 {
				break
			}
		}
	}
	return failed, nil
}

// ReturnMissing makes the dead letters pending again that failed because no worker had a handler
// for one of the types, in batches, and says how many there were. What was counted of their
// attempts stays counted. One that is to be unique while another with its payload is open stays a
// dead letter.
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
		within, cancel := context.WithTimeout(ctx, statementLimit)
		err := s.InTx(within, func(tx pgx.Tx) error {
			var result string
			return Each(within, tx, []any{&last, &result}, func() error {
				if n++; result != "unchanged" {
					returned++
				}
				return nil
			}, stmt, types, last, s.kind.fleetID())
		})
		cancel()
		if err == nil {
			total += returned
		}
		if err != nil || n == 0 {
			return total, Wrap("return jobs whose handler was missing", err)
		}
	}
}
