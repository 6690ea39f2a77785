package store

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// AccountingRetryFilter says which jobs to make pending. State is required; an empty OrgID or Code means any.
type AccountingRetryFilter struct {
	OrgID string
	State models.JobState
	Code  models.ErrorCode
	// Before leaves out jobs that were changed at or after that time, so that a job that fails again at once is not retried
	// without end. Take it from Now.
	Before time.Time
}

// MarkAccountingJobsPending asks for one more attempt at up to limit jobs, as MarkAccountingJobPending does for one, and returns how many it
// asked for. Rows that another transaction holds locked are left out.
func MarkAccountingJobsPending(ctx context.Context, q Querier, f AccountingRetryFilter, delay time.Duration, limit int) (int, error) {
	const stmt = `
WITH matching AS MATERIALIZED (
    SELECT org_id, document_id
      FROM daybook.accounting_work_queue
     WHERE state = @state::daybook.job_state AND updated_at < @before
       AND (@org = '' OR org_id = @org) AND (@code = '' OR last_error_code = @code)
     ORDER BY org_id, document_id
     LIMIT @most
       FOR NO KEY UPDATE SKIP LOCKED
)
SELECT count(r.job_id)
  FROM matching m
 CROSS JOIN LATERAL daybook.mark_accounting_job_pending(m.org_id, m.document_id, NULL, @delay) r`
	var n int
	err := queryRow(ctx, q, stmt, args{
		"state": string(f.State), "before": f.Before, "org": f.OrgID, "code": string(f.Code), "most": limit, "delay": delay.Seconds(),
	}).Scan(&n)
	return n, wrap("mark many pending", err)
}

// Now reads the database's clock.
func Now(ctx context.Context, q Querier) (time.Time, error) {
	var now time.Time
	err := q.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now)
	return now, wrap("read the clock", err)
}
