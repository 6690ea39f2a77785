package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// OpenJobWorkflow puts on record that a job is about to have a workflow in that namespace of
// Temporal, which may run for so long after the request to cancel it. It reports false, and records
// nothing, when the job is not being worked or is to be cancelled: then no workflow must be
// started.
func OpenJobWorkflow(ctx context.Context, q Querier, jobID, namespace string,
	grace time.Duration,
) (open bool, err error) {
	const stmt = `
WITH job AS (
    SELECT id FROM daybook.jobs WHERE id = @job AND state IN ('pending', 'leased') AND NOT cancel_requested
), opened AS (
    INSERT INTO daybook.job_workflows (job_id, namespace, grace_seconds)
    SELECT job.id, @namespace, @grace FROM job
    ON CONFLICT (job_id) DO UPDATE
       SET namespace = excluded.namespace, grace_seconds = excluded.grace_seconds, asked_at = clock_timestamp(), due_at = NULL, cancelled_at = NULL
    RETURNING job_id
)
SELECT EXISTS (SELECT FROM opened)`
	return value[bool](ctx, q, "put the job's workflow on record", stmt,
		Args{"job": jobID, "namespace": namespace, "grace": grace.Seconds()})
}

// CloseJobWorkflow removes the record of a job's workflow, which has ended.
func CloseJobWorkflow(ctx context.Context, db DB, jobID string) error {
	const stmt = `DELETE FROM daybook.job_workflows WHERE job_id = $1`
	_, err := db.Exec(ctx, stmt, jobID)
	return Wrap("remove the record of the job's workflow", err)
}

// JobIsCancelling reports whether a job that is being worked is to be cancelled, or is gone.
func JobIsCancelling(ctx context.Context, q Querier, jobID string) (cancelling bool, err error) {
	const stmt = `SELECT NOT EXISTS (SELECT FROM daybook.jobs WHERE id = $1 AND NOT cancel_requested)`
	return value[bool](ctx, q, "see whether the job is to be cancelled", stmt, jobID)
}

// LeftWorkflow is a workflow to whose end a worker sees.
type LeftWorkflow struct {
	JobID string
	// Claim is by which the worker changes the record later: another change of it makes that do
	// nothing.
	Claim time.Time
	// Over is whether the job has ended; otherwise it was tried again meanwhile.
	Over bool
	// Asked is how long ago the last attempt asked Temporal to start it.
	Asked time.Duration
	// Cancelled is how long ago Temporal was asked to cancel it; nil: it was not yet.
	Cancelled *time.Duration
	// Grace is how long after that it may run.
	Grace time.Duration
}

// ClaimLeftWorkflows returns workflows of a namespace whose jobs have ended, each to one worker:
// another one finds it half a minute later. At most 25 are claimed for the first time, and 25
// again, so that neither keep the others waiting.
//
// A record is left alone for a second after an attempt has asked for its workflow. The statement
// may have read the job before it was tried again: where the record changes meanwhile, PostgreSQL
// looks at the new record and not at the job again.
func ClaimLeftWorkflows(ctx context.Context, q Querier, namespace string) ([]LeftWorkflow, error) {
	const stmt = `
WITH again AS (
    SELECT w.job_id
      FROM daybook.job_workflows w
     WHERE w.namespace = $1 AND w.due_at <= clock_timestamp()
     ORDER BY w.due_at
     LIMIT 25
       FOR NO KEY UPDATE SKIP LOCKED
), ended AS (
    SELECT w.job_id
      FROM daybook.job_workflows w
      -- The limit keeps this a lookup by key for each.
      LEFT JOIN LATERAL (SELECT j.id FROM daybook.jobs j WHERE j.id = w.job_id AND j.state IN ('pending', 'leased') AND NOT j.cancel_requested LIMIT 1) open ON true
     WHERE w.namespace = $1 AND w.due_at IS NULL AND open.id IS NULL AND w.asked_at < statement_timestamp() - interval '1 second'
     ORDER BY w.asked_at
     LIMIT 25
       FOR NO KEY UPDATE OF w SKIP LOCKED
), due AS (
    SELECT job_id FROM again UNION ALL SELECT job_id FROM ended
)
UPDATE daybook.job_workflows w
   SET due_at = clock_timestamp() + interval '30 seconds'
  FROM due
 WHERE w.job_id = due.job_id
RETURNING w.job_id, w.due_at,
          NOT EXISTS (SELECT FROM daybook.jobs j WHERE j.id = w.job_id AND j.state IN ('pending', 'leased') AND NOT j.cancel_requested),
          clock_timestamp() - w.asked_at, clock_timestamp() - w.cancelled_at, make_interval(secs => w.grace_seconds)`
	left, err := Collect(ctx, q, pgx.RowToStructByPos[LeftWorkflow], stmt, namespace)
	return left, Wrap("find workflows whose jobs have ended", err)
}

// DropLeftWorkflow removes the record of a workflow that has ended.
func DropLeftWorkflow(ctx context.Context, db DB, w LeftWorkflow) error {
	const stmt = `DELETE FROM daybook.job_workflows WHERE job_id = $1 AND due_at = $2`
	_, err := db.Exec(ctx, stmt, w.JobID, w.Claim)
	return Wrap("remove the record of a workflow that has ended", err)
}

// KeepLeftWorkflow has a worker see to the workflow again after so long, and notes whether Temporal
// was asked to cancel it just now.
func KeepLeftWorkflow(ctx context.Context, db DB, w LeftWorkflow, after time.Duration, cancelledNow bool) error {
	const stmt = `
UPDATE daybook.job_workflows
   SET due_at = clock_timestamp() + make_interval(secs => $3), cancelled_at = CASE WHEN $4 THEN clock_timestamp() ELSE cancelled_at END
 WHERE job_id = $1 AND due_at = $2`
	_, err := db.Exec(ctx, stmt, w.JobID, w.Claim, after.Seconds(), cancelledNow)
	return Wrap("keep the record of a workflow", err)
}

// SpareLeftWorkflow lets a workflow go on whose job was tried again.
func SpareLeftWorkflow(ctx context.Context, db DB, w LeftWorkflow) error {
	const stmt = `UPDATE daybook.job_workflows SET due_at = NULL, cancelled_at = NULL WHERE job_id = $1 AND due_at = $2`
	_, err := db.Exec(ctx, stmt, w.JobID, w.Claim)
	return Wrap("let a workflow go on", err)
}
