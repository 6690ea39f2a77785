package store

// oldAccounting are the rows of the accounting queue that cleaning up removes. Its jobs stay: each document has one.
var oldAccounting = []OldRows{{Name: "attempts", Days: 90, stmt: cleanAttempts}}

// cleanAttempts removes, of the log of attempts, those at accounting jobs that are completed or cancelled. What was posted stays as it is,
// with the numbers of job and attempt in it.
const cleanAttempts = `
WITH looked AS MATERIALIZED (
    SELECT job_id, id, ended_at, org_id, kind
      FROM daybook.attempt_log
     WHERE (job_id, id) > (@id, @n)
     ORDER BY job_id, id
     LIMIT @batch
), gone AS (
    DELETE FROM daybook.attempt_log a
     USING looked l
      JOIN daybook.accounting_work_queue q ON q.id = l.job_id
     WHERE a.job_id = l.job_id AND a.id = l.id AND l.kind = 'accounting' AND l.ended_at < @before AND l.job_id <> @keep
       AND (@org = '' OR l.org_id = @org) AND q.state IN ('completed', 'cancelled')
    RETURNING 1
)
SELECT (SELECT count(*) FROM looked), 0, (SELECT count(*) FROM gone), 0, @time::timestamptz,
       coalesce((SELECT job_id FROM looked ORDER BY job_id DESC, id DESC LIMIT 1), @id),
       coalesce((SELECT id FROM looked ORDER BY job_id DESC, id DESC LIMIT 1), @n)`
