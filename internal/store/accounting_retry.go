package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// AccountingRetryFilter says which jobs to make pending. State is required; an empty OrgID or Code
// means any.
type AccountingRetryFilter struct {
	OrgID string
	State models.JobState
	Code  models.ErrorCode
	// Before leaves out jobs that were changed at or after that time, so that a job that fails again
	// at once is not retried without end. Take it from Now.
	Before time.Time
}

func (f AccountingRetryFilter) args(a Args) Args {
	a["state"], a["before"], a["org"], a["code"] = string(f.State), f.Before, f.OrgID, string(f.Code)
	return a
}

// AccountingJobsToRetry returns the ids of the jobs that are meant, in the order of organizations
// and documents.
func AccountingJobsToRetry(ctx context.Context, q Querier, f AccountingRetryFilter) ([]string, error) {
	const stmt = `
SELECT id
  FROM daybook.accounting_work_queue
 WHERE state = @state::daybook.job_state AND updated_at < @before AND (@org = '' OR org_id = @org) AND (@code = '' OR last_error_code = @code)
 ORDER BY org_id, document_id`
	ids, err := Collect(ctx, q, pgx.RowTo[string], stmt, f.args(Args{}))
	return ids, Wrap("choose the jobs", err)
}

// MarkAccountingJobsPending asks for one more attempt at those of the jobs that are still meant, as
// MarkAccountingJobPending does for one, and returns how many it asked for. Rows that another
// transaction holds locked are left out. (As text, the state is not that of the index of failed
// jobs, which would be read whole.)
func MarkAccountingJobsPending(ctx context.Context, q Querier, ids []string, f AccountingRetryFilter,
	delay time.Duration,
) (int, error) {
	const stmt = `
WITH matching AS MATERIALIZED (
    SELECT org_id, document_id
      FROM daybook.accounting_work_queue
     WHERE id = ANY (@ids) AND state::text = @state AND updated_at < @before AND (@org = '' OR org_id = @org) AND (@code = '' OR last_error_code = @code)
     ORDER BY org_id, document_id
       FOR NO KEY UPDATE SKIP LOCKED
)
SELECT count(r.job_id)
  FROM matching m
 CROSS JOIN LATERAL daybook.mark_accounting_job_pending(m.org_id, m.document_id, NULL, @delay) r`
	return value[int](ctx, q, "mark many pending", stmt, f.args(Args{"ids": ids, "delay": delay.Seconds()}))
}

// Now reads the database's clock.
func Now(ctx context.Context, q Querier) (time.Time, error) {
	return value[time.Time](ctx, q, "read the clock", `SELECT clock_timestamp()`)
}

// ReturnFailed makes an organization's failed jobs with one of the codes pending again, their
// attempts reset, and returns how many: 1,000 at once, the others by way of CheckWaits. A row that
// another transaction is changing is left to it: it is not failed any more.
func ReturnFailed(ctx context.Context, tx pgx.Tx, org string, codes ...models.ErrorCode) (int, error) {
	return value[int](ctx, tx, "return failed jobs", `SELECT daybook.return_failed_jobs($1, $2)`, org, Texts(codes))
}
