package store

import "context"

// oldAccounting are the rows of the accounting queue that go when they are old. Its jobs stay: a document has one.
var oldAccounting = []OldRows{{"attempts", 90, CleanAttempts}}

// CleanAttempts looks at the next batch of the log of attempts, and removes those at accounting jobs that are completed or
// cancelled. What was posted stays as it is, with the numbers of job and attempt in it.
func CleanAttempts(ctx context.Context, q Querier, r Retention, from CleanupCursor) (Cleaned, CleanupCursor, error) {
	const stmt = `
WITH looked AS MATERIALIZED (
    SELECT job_id, id, ended_at, org_id, kind
      FROM daybook.attempts
     WHERE (job_id, id) > (@id, @n)
     ORDER BY job_id, id
     LIMIT @batch
), gone AS (
    DELETE FROM daybook.attempts a
     USING looked l
      JOIN daybook.accounting_work_queue q ON q.id = l.job_id
     WHERE a.job_id = l.job_id AND a.id = l.id AND l.kind = 'accounting' AND l.ended_at < @before AND l.job_id <> @keep
       AND (@org = '' OR l.org_id = @org) AND q.state IN ('completed', 'cancelled')
    RETURNING 1
)
SELECT (SELECT count(*) FROM looked), (SELECT count(*) FROM gone),
       coalesce((SELECT job_id FROM looked ORDER BY job_id DESC, id DESC LIMIT 1), @id),
       coalesce((SELECT id FROM looked ORDER BY job_id DESC, id DESC LIMIT 1), @n)`
	var looked int
	var c Cleaned
	to := from
	err := queryRow(ctx, q, stmt, r.args(args{"id": from.id, "n": from.n})).
		Scan(&looked, &c.Attempts, &to.id, &to.n)
	c.Done = looked < r.Batch
	return c, to, wrap("clean up attempts", err)
}
