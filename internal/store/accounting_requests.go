package store

import (
	"context"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// EnqueueAccountingJob asks for a document version to be posted. A nil readyAt is now; priority 0
// is normal.
func EnqueueAccountingJob(ctx context.Context, q Querier, org, document string, version int64, readyAt *time.Time,
	priority models.Priority,
) (Requested, error) {
	const stmt = `SELECT job_id, result FROM daybook.enqueue_accounting_job(@org, @document, @version, @ready_at, NULLIF(@priority::integer, 0))`
	var r Requested
	a := Args{"org": org, "document": document, "version": version, "ready_at": readyAt, "priority": int32(priority)}
	err := requestRow(ctx, q, stmt, a).Scan(&r.JobID, &r.Result)
	return r, Wrap("enqueue", err)
}

// AccountingJobRows is a set of requests, column by column.
type AccountingJobRows struct {
	Orgs, Documents []string
	Versions        []int64
	ReadyAts        []*time.Time
	Priorities      []int32
}

// EnqueueAccountingJobs asks for many document versions in one statement; the answers are in the
// order of the rows.
func EnqueueAccountingJobs(ctx context.Context, q Querier, rows AccountingJobRows) ([]Requested, error) {
	const stmt = `SELECT ordinal, job_id, result FROM daybook.enqueue_accounting_jobs(@orgs, @documents, @versions, @ready_ats, @priorities)`
	text, args := traced(ctx, stmt, Args{
		"orgs": rows.Orgs, "documents": rows.Documents, "versions": rows.Versions, "ready_ats": rows.ReadyAts,
		"priorities": rows.Priorities,
	})
	out := make([]Requested, len(rows.Orgs))
	var ordinal int
	var r Requested
	err := Each(ctx, q, []any{&ordinal, &r.JobID, &r.Result}, func() error {
		out[ordinal-1] = r
		return nil
	}, text, args)
	return out, Wrap("enqueue many", err)
}

// Answers of the statements of this file where a function of the database would raise an error. An
// error of the database ends the caller's transaction: the statements lock the row first, and call
// the function only when it can do what it is asked for.
const (
	absent    = "absent"
	completed = "completed"
	deleted   = "deleted"
)

// MarkAccountingJobPending asks for one more attempt after a delay. A nil version leaves the job's
// alone; an older one never replaces it.
func MarkAccountingJobPending(ctx context.Context, q Querier, org, document string, version *int64,
	delay time.Duration,
) (Requested, error) {
	const stmt = `
WITH found AS MATERIALIZED (
    SELECT q.org_id, q.document_id FROM daybook.accounting_work_queue q WHERE q.org_id = @org AND q.document_id = @document FOR NO KEY UPDATE
)
SELECT m.job_id, m.result FROM found f CROSS JOIN LATERAL daybook.mark_accounting_job_pending(f.org_id, f.document_id, @version, @delay) m
UNION ALL
SELECT '', 'absent' WHERE NOT EXISTS (SELECT FROM found)`
	return changeAccountingJob(ctx, q, "mark pending", stmt,
		Args{"org": org, "document": document, "version": version, "delay": delay.Seconds()})
}

// RepostAccountingJob asks for a document to be reversed and posted anew, even if neither it nor
// the rules changed.
func RepostAccountingJob(ctx context.Context, q Querier, org, document string) (Requested, error) {
	const stmt = `
WITH found AS MATERIALIZED (
    SELECT q.org_id, q.document_id FROM daybook.accounting_work_queue q WHERE q.org_id = @org AND q.document_id = @document FOR NO KEY UPDATE
)
SELECT m.job_id, m.result FROM found f CROSS JOIN LATERAL daybook.repost_accounting_job(f.org_id, f.document_id) m
UNION ALL
SELECT '', 'absent' WHERE NOT EXISTS (SELECT FROM found)`
	return changeAccountingJob(ctx, q, "repost", stmt, Args{"org": org, "document": document})
}

// CancelAccountingJob asks that a document not be posted.
func CancelAccountingJob(ctx context.Context, q Querier, org, document string) (Requested, error) {
	const stmt = `
WITH found AS MATERIALIZED (
    SELECT q.org_id, q.document_id, q.state = 'completed' AS completed
      FROM daybook.accounting_work_queue q
     WHERE q.org_id = @org AND q.document_id = @document
       FOR NO KEY UPDATE
)
SELECT c.job_id, c.result FROM found f CROSS JOIN LATERAL daybook.cancel_accounting_job(f.org_id, f.document_id) c WHERE NOT f.completed
UNION ALL
SELECT '', 'completed' FROM found f WHERE f.completed
UNION ALL
SELECT '', 'absent' WHERE NOT EXISTS (SELECT FROM found)`
	return changeAccountingJob(ctx, q, "cancel", stmt, Args{"org": org, "document": document})
}

// changeAccountingJob runs a statement that answers with a job's id and a result.
func changeAccountingJob(ctx context.Context, q Querier, doing, stmt string, a Args) (r Requested, err error) {
	org, document := a["org"], a["document"]
	if err = requestRow(ctx, q, stmt, a).Scan(&r.JobID, &r.Result); err != nil {
		return Requested{}, Wrap(doing, err)
	}
	switch r.Result {
	case absent:
		return Requested{}, NoAccountingJob(fmt.Sprint(org), fmt.Sprint(document))
	case completed:
		return Requested{}, Refuse(ErrJobCompleted,
			fmt.Sprintf("the accounting job for document %v of organization %v is completed", document, org),
			"mark the document not ready or deleted to take its posting back")
	default:
		return r, nil
	}
}

// Marked is what a change of a document's readiness led to.
type Marked struct {
	Requested
	// Version is the document's version after the change.
	Version int64
}

// MarkDocumentReady marks a document ready under its next version and enqueues that.
func MarkDocumentReady(ctx context.Context, q Querier, org, document string, priority models.Priority) (Marked, error) {
	const stmt = `
WITH found AS MATERIALIZED (
    SELECT d.org_id, d.id, d.deleted_at IS NOT NULL AS deleted FROM daybook.documents d WHERE d.org_id = @org AND d.id = @document FOR NO KEY UPDATE
)
SELECT m.version, m.job_id, m.result FROM found f CROSS JOIN LATERAL daybook.mark_document_ready(f.org_id, f.id, NULLIF(@priority::integer, 0)) m WHERE NOT f.deleted
UNION ALL
SELECT 0, '', 'deleted' FROM found f WHERE f.deleted
UNION ALL
SELECT 0, '', 'absent' WHERE NOT EXISTS (SELECT FROM found)`
	return changeReadiness(ctx, q, "mark document ready", writeFirst, stmt,
		Args{"org": org, "document": document, "priority": int32(priority)})
}

// MarkDocumentNotReady takes a document's readiness back under its next version and enqueues that.
func MarkDocumentNotReady(ctx context.Context, q Querier, org, document string) (Marked, error) {
	const stmt = `
WITH found AS MATERIALIZED (
    SELECT d.org_id, d.id FROM daybook.documents d WHERE d.org_id = @org AND d.id = @document FOR NO KEY UPDATE
)
SELECT m.version, m.job_id, m.result FROM found f CROSS JOIN LATERAL daybook.mark_document_not_ready(f.org_id, f.id) m
UNION ALL
SELECT 0, '', 'absent' WHERE NOT EXISTS (SELECT FROM found)`
	return changeReadiness(ctx, q, "mark document not ready", writeFirst, stmt, Args{"org": org, "document": document})
}

// MarkDocumentDeleted marks a document deleted under its next version and enqueues that. Its row
// may have been removed already: then its job knows the version.
func MarkDocumentDeleted(ctx context.Context, q Querier, org, document string) (Marked, error) {
	const stmt = `
WITH document AS MATERIALIZED (
    SELECT d.org_id, d.id FROM daybook.documents d WHERE d.org_id = @org AND d.id = @document FOR NO KEY UPDATE
), job AS MATERIALIZED (
    SELECT q.org_id, q.document_id AS id
      FROM daybook.accounting_work_queue q
     WHERE q.org_id = @org AND q.document_id = @document AND NOT EXISTS (SELECT FROM document)
       FOR NO KEY UPDATE
), found AS (
    SELECT d.org_id, d.id FROM document d UNION ALL SELECT j.org_id, j.id FROM job j
)
SELECT m.version, m.job_id, m.result FROM found f CROSS JOIN LATERAL daybook.mark_document_deleted(f.org_id, f.id) m
UNION ALL
SELECT 0, '', 'absent' WHERE NOT EXISTS (SELECT FROM found)`
	return changeReadiness(ctx, q, "mark document deleted",
		"it was never enqueued either, so that nothing has to be done", stmt, Args{"org": org, "document": document})
}

// writeFirst is what a caller does who marks a document that is not there.
const writeFirst = "write the document in the same transaction before it is marked"

// changeReadiness runs a statement that marks a document. todo is what the caller does when it is
// not there.
func changeReadiness(ctx context.Context, q Querier, doing, todo, stmt string, a Args) (m Marked, err error) {
	org, document := a["org"], a["document"]
	if err = requestRow(ctx, q, stmt, a).Scan(&m.Version, &m.JobID, &m.Result); err != nil {
		return Marked{}, Wrap(doing, err)
	}
	switch m.Result {
	case absent:
		return Marked{}, Refuse(ErrDocumentNotFound, fmt.Sprintf("organization %v has no document %v", org, document), todo)
	case deleted:
		return Marked{}, Refuse(ErrDocumentDeleted, fmt.Sprintf("document %v of organization %v is deleted", document, org),
			"set deleted_at to null before the document is marked ready")
	default:
		return m, nil
	}
}
