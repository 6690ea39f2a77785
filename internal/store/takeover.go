package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// Taken is what a take-over led to.
type Taken struct {
	// Jobs are leased by the turn now, under its fence.
	Jobs []Job
	// Lost counts the jobs whose attempt was logged as lost.
	Lost int
	// Failed counts those of them that had no attempt left and failed with WORKER_LOST.
	Failed int
	// Others counts the jobs that were given back at once, because they are of organizations whose source this worker does
	// not read, or whose hooks it lacks.
	Others int
}

// TakeOver makes every job of the named turns that has a lower fence the turn's own. Rows that somebody holds locked are
// left for a later sweep.
//
// crashed says that the activity before did not end by itself. Then the rows that it was working alone are charged: their
// attempt is logged as lost and the next one begins, or the job fails with WORKER_LOST after its last. What the running activity
// took under a fence that it drew before is not charged again.
func (s *Store) TakeOver(ctx context.Context, turn Turn, from []string, crashed bool) (Taken, error) {
	const held = `
SELECT id, working AND $3 AND fence < $4 AS charged, working AND $3 AND fence < $4 AS logged
  FROM {queue}
 WHERE turn_id = ANY ($1) AND state = 'leased' AND fence < $2
 ORDER BY {order}
   FOR NO KEY UPDATE SKIP LOCKED`
	return s.take(ctx, turn, crashed, held, from, turn.Fence, crashed, cmp.Or(turn.FirstFence, turn.Fence))
}

// take locks the rows that the query finds and leases them to the turn, in one transaction.
func (s *Store) take(ctx context.Context, turn Turn, crashed bool, find string, args ...any) (Taken, error) {
	var t Taken
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	var ids []string
	attempt := func(tx pgx.Tx) error {
		t, ids = Taken{}, nil
		var charged, logged []bool
		_, err := byKey(ctx, tx, func(row pgx.CollectableRow) (struct{}, error) {
			var id string
			var charge, log bool
			err := row.Scan(&id, &charge, &log)
			ids, charged, logged = append(ids, id), append(charged, charge), append(logged, log)
			return struct{}{}, err
		}, s.kind.sql(find), args...)
		if err != nil || len(ids) == 0 {
			return err
		}
		t, err = s.takeRows(ctx, tx, turn, crashed, ids, charged, logged)
		return err
	}
	err := s.InTx(ctx, attempt)
	for try := 0; try < weedTries && s.kind.blamesRow(err); try++ {
		s.doubt(ids...)
		s.weed(ctx)
		err = s.InTx(ctx, attempt)
	}
	s.weed(ctx)
	return t, wrap("take over", err)
}

func (s *Store) takeRows(ctx context.Context, tx pgx.Tx, turn Turn, crashed bool, ids []string, charged, logged []bool) (Taken, error) {
	const fail = `
UPDATE {queue} q
   SET state = 'failed', last_error = 'the worker ended while it worked on this job, for the last time that it may be tried',
       last_error_code = '{lost code}', finished_at = clock_timestamp(), updated_at = clock_timestamp(), takeovers = 0,
       working = false,
       turn_id = NULL, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
  FROM unnest($1::text[], $2::boolean[]) AS held (id, charged)
 WHERE q.id = held.id AND held.charged AND q.run_count >= {max attempts}`
	// What was asked for while the job was leased is due when the request said, or never, if it was a Cancel.
	const giveBack = `
UPDATE {queue} q
   SET ` + givenBack + `,
       ready_at = greatest(q.ready_at, clock_timestamp()), takeovers = 0,
       last_error      = CASE WHEN held.charged THEN 'the worker ended while it worked on this job' ELSE q.last_error END,
       last_error_code = CASE WHEN held.charged THEN '{lost code}' ELSE q.last_error_code END
  FROM unnest($1::text[], $2::boolean[]) AS held (id, charged)
 WHERE q.id = held.id AND q.generation <> q.leased_generation`
	const lease = `
UPDATE {queue} q
   SET turn_id = $4, fence = $5, worker = $6,
       run_count = q.run_count + CASE WHEN held.charged THEN 1 ELSE 0 END, working = {working},
       takeovers = least(q.takeovers, 999999) + CASE WHEN $3 THEN 1 ELSE 0 END,
       last_error      = CASE WHEN held.charged THEN 'the worker ended while it worked on this job' ELSE q.last_error END,
       last_error_code = CASE WHEN held.charged THEN '{lost code}' ELSE q.last_error_code END,
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), updated_at = clock_timestamp()
  FROM unnest($1::text[], $2::boolean[]) AS held (id, charged)
 WHERE q.id = held.id AND q.turn_id IS NOT NULL
RETURNING {columns}`

	var t Taken
	tag, err := tx.Exec(ctx, s.kind.sql(logLost), ids, logged)
	if err != nil {
		return t, err
	}
	t.Lost = int(tag.RowsAffected())
	if _, err := tx.Exec(ctx, s.kind.sql(giveBack), ids, charged); err != nil {
		return t, err
	}
	if t.Lost > 0 {
		tag, err = tx.Exec(ctx, s.kind.sql(fail), ids, charged, models.MaxAttempts)
		if err != nil {
			return t, err
		}
		t.Failed = int(tag.RowsAffected())
	}
	rows, err := tx.Query(ctx, s.kind.sql(lease), ids, charged, crashed, turn.ID, turn.Fence, turn.Worker)
	if err != nil {
		return t, err
	}
	if t.Jobs, err = s.readJobs(rows); err != nil || len(t.Jobs) == 0 || s.kind.abilities == nil {
		return t, err
	}
	others, err := s.giveBackOthers(ctx, tx, turn)
	t.Others = len(others)
	t.Jobs = slices.DeleteFunc(t.Jobs, func(j Job) bool { return slices.Contains(others, j.ID) })
	return t, err
}

// giveBackOthers gives back, uncounted, what the turn holds of organizations that this worker may not work: another worker
// leased it. What counts take-overs stays, so that a document that ends its workers is found among those that can read it.
func (s *Store) giveBackOthers(ctx context.Context, tx pgx.Tx, turn Turn) ([]string, error) {
	const stmt = `
UPDATE {queue} q
   SET ` + givenBack + `,
       ready_at = greatest(q.ready_at, clock_timestamp())
 WHERE q.id = ANY (ARRAY(
       SELECT h.id
         FROM {queue} h
         LEFT JOIN daybook.organizations o ON o.id = h.org_id
        WHERE h.turn_id = $1 AND h.fence = $2 AND h.state = 'leased' AND NOT ({covered})))
RETURNING q.id`
	rows, err := tx.Query(ctx, s.kind.sql(stmt), turn.ID, turn.Fence)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
