package store

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// EnqueueAccountingJob asks for a document version to be posted. A nil readyAt is now; priority 0 is normal.
func EnqueueAccountingJob(ctx context.Context, q Querier, org, document string, version int64, readyAt *time.Time, priority models.Priority) (Requested, error) {
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

// EnqueueAccountingJobs asks for many document versions in one statement; the answers are in the order of the rows.
func EnqueueAccountingJobs(ctx context.Context, q Querier, rows AccountingJobRows) ([]Requested, error) {
	const stmt = `SELECT ordinal, job_id, result FROM daybook.enqueue_accounting_jobs(@orgs, @documents, @versions, @ready_ats, @priorities)`
	text, args := traced(ctx, stmt, Args{
		"orgs": rows.Orgs, "documents": rows.Documents, "versions": rows.Versions, "ready_ats": rows.ReadyAts, "priorities": rows.Priorities,
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
