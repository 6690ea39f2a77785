package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/daybook-dev/daybook/models"
)

// LockChunk implements engine.Completer.
func (k *Kind) LockChunk(ctx context.Context, tx pgx.Tx, turn Turn, ids []string) ([]Job, error) {
	const stmt = `
SELECT q.id, q.org_id, q.run_count, q.attempt_started_at, q.reclaims, q.cancel_requested, q.leased_generation
       /* accounting: , q.document_id, q.version_hint, q.not_ready_count, q.epoch */
  FROM daybook.jobs q
 WHERE q.id = ANY (@ids) AND q.turn_id = @turn AND q.fence = @fence
 ORDER BY q.org_id, q.id
   FOR NO KEY UPDATE SKIP LOCKED`
	jobs, err := byKey(ctx, tx, func(row pgx.CollectableRow) (j Job, err error) {
		err = row.Scan(k.locked(&j)...)
		return j, err
	}, k.sql(stmt), turn.args(Args{"ids": ids}))
	return jobs, Wrap("lock the chunk", err)
}

// Completion is how one attempt ends.
type Completion struct {
	Job     Job
	Outcome models.Outcome
	// Code and Message say why, for every outcome but completed.
	Code    models.ErrorCode
	Message string
	// Delay is until the next attempt, for retried and rescheduled.
	Delay time.Duration
	// Version replaces the job's version; nil leaves it alone.
	Version *int64
	// Result is what a completed background job leaves, as JSON; nil: nothing.
	Result []byte
	// Unlogged: an attempt that is put off leaves no row in the log.
	Unlogged bool
	// Took is how long the handler took, for those that observe the worker; it is not stored.
	Took time.Duration
}

// Completed counts what the completions of a chunk led to. A job that was asked for anew while it
// was leased is pending again whatever its attempt led to; the attempt counts as what it was.
type Completed map[models.Outcome]int

// Requeued is under what Completed counts the jobs that are pending because they were asked for
// anew, besides their outcome.
const Requeued models.Outcome = "requeued"

// Access is how a transaction has the jobs that it completes. The zero value: LockChunk has locked
// them in it.
type Access struct {
	// Picked: a Pick has locked them in it, and no turn has leased them.
	Picked bool
	// Wait: it has not locked them, which saves that step, and waits so long for each row that
	// another transaction holds.
	Wait time.Duration
	// Commit: the completion is the last step of a transaction that InTx has begun, and commits it in
	// the same round trip, unless it fails.
	Commit bool
}

// endsItsJob is whether a job stays completed, and so keeps the attempt in its row: it was not
// asked for anew, or cancelled, meanwhile. The version that the attempt at a document was for is
// that of the row, or the attempt is logged.
const endsItsJob = `v.outcome = 'completed' AND NOT q.cancel_requested AND q.generation = coalesce(q.leased_generation, q.generation)
                                             /* accounting: AND coalesce(v.version, q.version_hint) = v.old_version */`

// completeStmt ends attempts. Of what was not leased (@picked) the generation is still the one that
// was locked, unless the transaction itself has asked for the job anew: then the completion fails
// as that of a lost lease, and the jobs are leased, under which the request is seen by its
// generation.
//
// An attempt that is rescheduled for the reason of the one before it is folded into that one's row:
// a document that stays not ready, or a job that snoozes, leaves one row however often it is looked
// at. A row that a purge has just removed is logged anew. Those rows are named by their places: a
// plan by another way, made while the log was empty, would walk all of it for each completion.
//
// What folds is left out of the statement when nothing is rescheduled (completePlainly): to start
// it takes a fifth of the time of one completion. So is what a job that awaits a callback needs:
// its trigger looks for what came meanwhile.
//
// The state is compared by turn and fence, not by state = 'leased', which would tempt the planner
// into walking the partial index of leased rows for each job. What a lease is known by: decision 4.
//
// Accounting jobs of a chunk finish at one moment, because each later one in their block range
// index would be written into the index anew, which takes a quarter of the update. Background jobs
// have moments of their own: cleanup and archive go through them by these.
//
// Arrays of what most completions have nothing in may be empty (sparse): unnest fills up with null.
const completeStmt = `
WITH v AS (
    SELECT id, outcome, code, error, coalesce(delay, 0) AS delay, version, result, coalesce(unlogged, false) AS unlogged, attempt, generation, started_at,
           coalesce(old_version, 0) AS old_version, place
      FROM (SELECT unnest(@ids::text[]) AS id, unnest(@outcomes::text[]) AS outcome, unnest(@codes::text[]) AS code, unnest(@errors::text[]) AS error,
                   unnest(@delays::float8[]) AS delay, unnest(@versions::bigint[]) AS version, unnest(@results::text[]) AS result,
                   unnest(@unlogged::boolean[]) AS unlogged, unnest(@attempts::integer[]) AS attempt, unnest(@generations::bigint[]) AS generation, unnest(@started::timestamptz[]) AS started_at,
                   unnest(@old_versions::bigint[]) AS old_version, unnest(@places::tid[]) AS place) u
), completed AS (
    UPDATE daybook.jobs q
       SET state = CASE
               WHEN q.cancel_requested THEN 'cancelled'
               WHEN q.generation <> q.leased_generation OR v.outcome IN ('retried', 'rescheduled') THEN 'pending'
               ELSE v.outcome END::daybook.job_state,
           run_count = CASE
               WHEN q.generation <> q.leased_generation AND NOT q.cancel_requested THEN 0
               WHEN v.outcome = 'rescheduled' THEN v.attempt - 1
               ELSE v.attempt END,
           ready_at = CASE
               WHEN q.generation <> q.leased_generation THEN greatest(q.ready_at, clock_timestamp())
               WHEN v.outcome IN ('retried', 'rescheduled') THEN clock_timestamp() + make_interval(secs => v.delay)
               ELSE q.ready_at END,
           first_ready_at = CASE WHEN q.generation <> q.leased_generation THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,
           finished_at = CASE
               WHEN q.cancel_requested THEN clock_timestamp()
               WHEN q.generation <> q.leased_generation OR v.outcome IN ('retried', 'rescheduled') THEN NULL
               ELSE /* jobs */clock_timestamp()/* accounting: statement_timestamp() */ END,
           /* jobs */result = CASE WHEN v.outcome = 'completed' THEN v.result::jsonb ELSE q.result END,
           -- folds
           awaited = q.awaited OR v.code IS NOT DISTINCT FROM 'AWAITING_CALLBACK',
           -- until here
           /* accounting: version_hint = CASE WHEN v.version IS NULL OR q.generation <> q.leased_generation THEN q.version_hint ELSE v.version END,
           not_ready_count = CASE WHEN v.code IS DISTINCT FROM 'DOCUMENT_NOT_READY' OR q.generation <> q.leased_generation THEN 0
                                  ELSE least(q.not_ready_count, 999999) + 1 END, */
           last_error = v.error, last_error_code = v.code,
           cancel_requested = false, working = false, reclaims = 0,
           turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL,
           last_attempted_at = CASE WHEN @picked THEN v.started_at ELSE q.last_attempted_at END,
           completed_turn_id = CASE WHEN ` + endsItsJob + ` THEN @turn END,
           completed_fence = CASE WHEN ` + endsItsJob + ` THEN @fence::bigint END,
           completed_by = CASE WHEN ` + endsItsJob + ` THEN @worker END,
           completed_started_at = CASE WHEN ` + endsItsJob + ` THEN v.started_at END,
           updated_at = clock_timestamp()
      FROM v
     WHERE q.id = v.id
       AND CASE WHEN @picked THEN q.turn_id IS NULL AND q.finished_at IS NULL AND q.generation = v.generation
                ELSE q.turn_id = @turn AND q.fence = @fence AND q.run_count = v.attempt AND q.leased_generation = v.generation AND q.attempt_started_at = v.started_at AND NOT (@unlocked AND q.cancel_requested) END
    RETURNING q.id AS job_id, q.org_id, v.attempt, v.outcome, v.code, v.error, v.started_at, v.unlogged,
              /* jobs */'jobs' AS kind, q.type, NULL::text AS document_id, NULL::bigint AS version
              /* accounting: 'accounting' AS kind, NULL::text AS type, q.document_id, v.old_version AS version */,
              q.state = 'pending' AND v.outcome NOT IN ('retried', 'rescheduled') AS asked_again,
              q.completed_turn_id IS NOT NULL AS kept
-- folds
), again AS (
    SELECT s.job_id, s.error, s.started_at, a.place
      FROM completed s
     CROSS JOIN LATERAL (SELECT *, ctid AS place FROM daybook.attempt_log a WHERE a.job_id = s.job_id ORDER BY a.id DESC LIMIT 1) a
     WHERE s.outcome = 'rescheduled' AND NOT s.unlogged AND a.outcome = 'rescheduled' AND a.attempt = s.attempt
       AND a.error_code IS NOT DISTINCT FROM s.code AND a.version IS NOT DISTINCT FROM s.version
), folded AS (
    UPDATE daybook.attempt_log a
       SET times = a.times + 1, first_started_at = coalesce(a.first_started_at, a.started_at),
           error = (SELECT g.error FROM again g WHERE g.job_id = a.job_id), started_at = (SELECT g.started_at FROM again g WHERE g.job_id = a.job_id),
           ended_at = clock_timestamp(), worker = @worker, turn_id = @turn, fence = @fence, workflow_run_id = @run
     WHERE a.ctid = ANY (ARRAY(SELECT g.place FROM again g))
    RETURNING a.job_id
-- until here
), logged AS (
    INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, document_id, version, attempt, outcome, error_code, error, started_at,
                                     worker, turn_id, fence, workflow_run_id)
    SELECT job_id, org_id, kind, type, document_id, version, attempt, outcome::daybook.attempt_outcome, code, error, started_at,
           @worker, @turn, @fence, @run
      FROM completed s
     WHERE NOT unlogged AND NOT kept
-- folds
       AND s.job_id <> ALL (ARRAY(SELECT f.job_id FROM folded f))
-- until here
)
SELECT CASE WHEN count(*) = cardinality(@ids::text[]) THEN count(*) FILTER (WHERE asked_again) ELSE daybook.lease_lost(cardinality(@ids::text[]), count(*)) END
  FROM completed`

// completePlainly is completeStmt for attempts of which none is rescheduled or waits for a
// callback; completePlaced is the same for rows that the transaction has picked and not changed
// since: they are found by their places, which are others when a hook has asked for one of them
// anew.
var (
	completePlainly = regexp.MustCompile(`(?s)-- folds\n.*?-- until here\n`).ReplaceAllString(completeStmt, "")
	completePlaced  = strings.Replace(completePlainly, "WHERE q.id = v.id", "WHERE q.ctid = v.place AND q.id = v.id", 1)
)

// completeKept completes jobs that the transaction has picked, and that are all completed: their
// rows keep their attempts. Rows that it has not changed since are found by their places.
const completeKept = `
WITH v AS (
    SELECT unnest(@places::tid[]) AS place, unnest(@ids::text[]) AS id, unnest(@attempts::integer[]) AS attempt, unnest(@started::timestamptz[]) AS started_at,
           /* jobs */unnest(@results::text[]) AS result/* accounting: unnest(@old_versions::bigint[]) AS version */
), completed AS (
    UPDATE daybook.jobs q
       SET state = 'completed', run_count = v.attempt, last_error = NULL, last_error_code = NULL,
           /* jobs */finished_at = clock_timestamp(), result = v.result::jsonb/* accounting: finished_at = statement_timestamp(), not_ready_count = 0 */,
           reclaims = 0, last_attempted_at = v.started_at, completed_turn_id = @turn, completed_fence = @fence, completed_by = @worker,
           completed_started_at = v.started_at, updated_at = clock_timestamp()
      FROM v
     WHERE q.ctid = v.place AND q.id = v.id AND q.turn_id IS NULL AND q.finished_at IS NULL/* accounting: AND q.version_hint = coalesce(v.version, 0) */
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality(@ids::text[]) THEN 0 ELSE daybook.lease_lost(cardinality(@ids::text[]), count(*)) END
  FROM completed`

// completeKeptByID is completeKept for rows that the transaction may have changed, but not asked
// for anew.
var completeKeptByID = strings.NewReplacer("unnest(@places::tid[]) AS place",
	"unnest(@generations::bigint[]) AS generation",
	"q.ctid = v.place", "q.generation = v.generation").Replace(completeKept)

// Complete implements engine.Completer: the jobs change state under the turn's fence, and each
// attempt is logged, or kept in the row of the job that it completed.
func (k *Kind) Complete(ctx context.Context, tx pgx.Tx, turn Turn, completions []Completion,
	a Access,
) (Completed, error) {
	n := len(completions)
	ids, outcomes := make([]string, n), make([]string, n)
	codes, errs := make([]*string, n), make([]*string, n)
	delays, versions, unlogged := make([]float64, n), make([]*int64, n), make([]bool, n)
	attempts, generations, started, oldVersions := make([]int32, n), make([]int64, n), make([]time.Time, n),
		make([]int64, n)
	results, places := make([]*string, n), make([]pgtype.TID, n)
	counts, placed, plain := Completed{}, true, a.Picked
	for i := range completions {
		s := &completions[i]
		ids[i], outcomes[i] = s.Job.ID, string(s.Outcome)
		if s.Code != "" {
			code, message := string(s.Code), clip(s.Message)
			codes[i], errs[i] = &code, &message
		}
		places[i], placed = s.Job.Place, placed && s.Job.Place.Valid
		plain = plain && s.Outcome == models.OutcomeCompleted && s.Version == nil && s.Code == ""
		delays[i], versions[i], unlogged[i] = s.Delay.Seconds(), s.Version, s.Unlogged
		attempts[i], generations[i], started[i], oldVersions[i] = int32(s.Job.Attempt), s.Job.Generation, s.Job.StartedAt,
			s.Job.Version
		if s.Result != nil {
			results[i] = new(string(s.Result))
		}
		counts[s.Outcome]++
	}
	batch := &pgx.Batch{}
	if a.Wait > 0 {
		batch.Queue(planWaiting, strconv.FormatInt(a.Wait.Milliseconds(), 10))
	} else {
		queuePlan(tx, batch)
	}
	var again int
	stmt := k.sql(completePlainly)
	switch {
	case counts[models.OutcomeRescheduled] > 0 ||
		slices.ContainsFunc(completions, func(c Completion) bool { return c.Code == models.CodeAwaitingCallback }):
		stmt = k.sql(completeStmt)
	case plain:
		if stmt = k.sql(completeKept); !placed {
			stmt = k.sql(completeKeptByID)
		}
	case a.Picked && placed:
		stmt = k.sql(completePlaced)
	}
	batch.Queue(stmt, turn.args(Args{
		"worker": turn.Worker, "run": turn.WorkflowRunID, "picked": a.Picked, "unlocked": a.Wait > 0,
		"ids": ids, "outcomes": outcomes, "codes": sparse(codes), "errors": sparse(errs), "delays": sparse(delays),
		"versions": sparse(versions),
		"results":  sparse(results), "unlogged": sparse(unlogged), "places": sparse(places), "attempts": attempts,
		"generations": generations, "started": started, "old_versions": sparse(oldVersions),
	})).QueryRow(func(row pgx.Row) error { return row.Scan(&again) })
	if err := sendCompletion(ctx, tx, turn, batch, a); err != nil {
		return nil, err
	}
	if again > 0 {
		counts[Requeued] = again
	}
	return counts, nil
}

// sparse returns the values, or none if each is the zero value.
func sparse[T comparable](all []T) []T {
	var zero T
	if slices.ContainsFunc(all, func(v T) bool { return v != zero }) {
		return all
	}
	return []T{}
}

// sendCompletion sends a completion, and commits it where the transaction ends with it.
func sendCompletion(ctx context.Context, tx pgx.Tx, turn Turn, batch *pgx.Batch, a Access) (err error) {
	switch own, ok := tx.(*transaction); {
	case !a.Commit:
		err = tx.SendBatch(ctx, batch).Close()
	case ok:
		err = own.sendAndCommit(ctx, batch)
	default:
		err = errors.New("the transaction was not begun by InTx")
	}
	switch {
	case SQLState(err) == stateLeaseLost:
		return fmt.Errorf("complete, in turn %s: %s: %w", turn.ID, pgError(err).Message, ErrLeaseLost)
	case a.Wait > 0 && IsLockTimeout(err):
		return fmt.Errorf("%w: %w", ErrRowHeld, err)
	}
	return Wrap("complete", err)
}

// maxErrorBytes bounds what is kept of an error's text.
const maxErrorBytes = 4096

// clip shortens a message to what is kept, at a rune's end, and drops what PostgreSQL's text cannot
// hold.
func clip(s string) string {
	clean := make([]rune, 0, min(len(s), maxErrorBytes))
	size := 0
	for _, r := range s {
		if r == 0 {
			continue
		}
		if size += len(string(r)); size > maxErrorBytes {
			return string(clean) + "…"
		}
		clean = append(clean, r)
	}
	return string(clean)
}
