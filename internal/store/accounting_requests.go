package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// EnqueueAccountingJob asks for a document version to be posted. A nil readyAt is now; priority 0 is normal.
func EnqueueAccountingJob(ctx context.Context, q Querier, org, document string, version int64, readyAt *time.Time, priority models.Priority) (Requested, error) {
	const stmt = `SELECT job_id, result FROM daybook.enqueue_accounting_job(@org, @document, @version, @ready_at, NULLIF(@priority::integer, 0))`
	var r Requested
	text, args := traced(ctx, stmt, Args{"org": org, "document": document, "version": version, "ready_at": readyAt, "priority": int32(priority)})
	err := queryRow(ctx, q, text, args).Scan(&r.JobID, &r.Result)
	return r, Wrap("enqueue", err)
}

// AccountingJobRows is a set of requests, column by column.
type AccountingJobRows struct {
	Orgs, Documents []string
	Versions        []int64
	ReadyAts        []*time.Time
	Priorities      []int32
}

// EnqueueAccountingJobs asks for many document versions in one statement; the answers are in the order of the rows.
func EnqueueAccountingJobs(ctx context.Context, q Querier, rows AccountingJobRows) ([]Requested, error) {
	const stmt = `SELECT ordinal, job_id, result FROM daybook.enqueue_accounting_jobs(@orgs, @documents, @versions, @ready_ats, @priorities)`
	text, args := traced(ctx, stmt, Args{
		"orgs": rows.Orgs, "documents": rows.Documents, "versions": rows.Versions, "ready_ats": rows.ReadyAts, "priorities": rows.Priorities,
	})
	res, err := query(ctx, q, text, args)
	if err != nil {
		return nil, Wrap("enqueue many", err)
	}
	out := make([]Requested, len(rows.Orgs))
	var ordinal int
	var r Requested
	_, err = pgx.ForEachRow(res, []any{&ordinal, &r.JobID, &r.Result}, func() error {
		out[ordinal-1] = r
		return nil
	})
	return out, Wrap("enqueue many", err)
}

// MarkAccountingJobPending asks for one more attempt after a delay. A nil version leaves the job's alone; an older one never replaces it.
func MarkAccountingJobPending(ctx context.Context, q Querier, org, document string, version *int64, delay time.Duration) (Requested, error) {
	const stmt = `SELECT job_id, result FROM daybook.mark_accounting_job_pending(@org, @document, @version, @delay)`
	var r Requested
	text, args := traced(ctx, stmt, Args{"org": org, "document": document, "version": version, "delay": delay.Seconds()})
	err := queryRow(ctx, q, text, args).Scan(&r.JobID, &r.Result)
	return r, Wrap("mark pending", err)
}

// RepostAccountingJob asks for a document to be reversed and posted anew, even if neither it nor the rules changed.
func RepostAccountingJob(ctx context.Context, q Querier, org, document string) (Requested, error) {
	const stmt = `SELECT job_id, result FROM daybook.repost_accounting_job(@org, @document)`
	var r Requested
	text, args := traced(ctx, stmt, Args{"org": org, "document": document})
	err := queryRow(ctx, q, text, args).Scan(&r.JobID, &r.Result)
	return r, Wrap("repost", err)
}

// CancelAccountingJob asks that a document not be posted.
func CancelAccountingJob(ctx context.Context, q Querier, org, document string) (Requested, error) {
	const stmt = `SELECT job_id, result FROM daybook.cancel_accounting_job($1, $2)`
	var r Requested
	err := q.QueryRow(ctx, stmt, org, document).Scan(&r.JobID, &r.Result)
	return r, Wrap("cancel", err)
}

// Marked is what a change of a document's readiness led to.
type Marked struct {
	Requested
	// Version is the document's version after the change.
	Version int64
}

// MarkDocumentReady marks a document ready under its next version and enqueues that.
func MarkDocumentReady(ctx context.Context, q Querier, org, document string, priority models.Priority) (Marked, error) {
	const stmt = `SELECT version, job_id, result FROM daybook.mark_document_ready(@org, @document, NULLIF(@priority::integer, 0))`
	return changeReadiness(ctx, q, "mark document ready", stmt, Args{"org": org, "document": document, "priority": int32(priority)})
}

// MarkDocumentNotReady takes a document's readiness back under its next version and enqueues that.
func MarkDocumentNotReady(ctx context.Context, q Querier, org, document string) (Marked, error) {
	const stmt = `SELECT version, job_id, result FROM daybook.mark_document_not_ready(@org, @document)`
	return changeReadiness(ctx, q, "mark document not ready", stmt, Args{"org": org, "document": document})
}

// MarkDocumentDeleted marks a document deleted under its next version and enqueues that.
func MarkDocumentDeleted(ctx context.Context, q Querier, org, document string) (Marked, error) {
	const stmt = `SELECT version, job_id, result FROM daybook.mark_document_deleted(@org, @document)`
	return changeReadiness(ctx, q, "mark document deleted", stmt, Args{"org": org, "document": document})
}

func changeReadiness(ctx context.Context, q Querier, doing, stmt string, a Args) (Marked, error) {
	var m Marked
	text, args := traced(ctx, stmt, a)
	err := queryRow(ctx, q, text, args).Scan(&m.Version, &m.JobID, &m.Result)
	return m, Wrap(doing, err)
}
