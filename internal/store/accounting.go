package store

// Accounting is the queue of documents to be posted, for a worker that reads daybook.documents and
// has no hooks.
var Accounting = accounting(Abilities{Sources: []string{SourceDaybook}})

func accounting(can Abilities) *Kind {
	// An empty array, because nothing is among the names of null.
	can.Sources, can.Hooks = append([]string{}, can.Sources...), append([]string{}, can.Hooks...)
	locked := func(j *Job) []any {
		return append(leaseFields(j), &j.DocumentID, &j.Version, &j.NotReady, &j.Epoch)
	}
	return &Kind{
		Name: "accounting", table: "daybook.accounting_work_queue", wake: "daybook.wake_accounting_queue",
		lostCode: "WORKER_LOST", channel: "daybook_accounting", key: 1, abilities: &can, oldRows: oldAccounting,
		waits: waits{
			`SELECT coalesce((SELECT id FROM daybook.accounting_returns WHERE id > $1 ORDER BY id LIMIT 1), 0), 86400::float8 FROM (SELECT $2::timestamptz) AS since`,
			`SELECT daybook.return_more_jobs(), 0, 0::bigint, NULL::timestamptz FROM (SELECT $1::bigint, $2::timestamptz) AS behind`,
		},
		fields: func(j *Job) []any { return append(locked(j), &j.TraceParent) }, locked: locked,
	}
}

// oldAccounting are the rows of the accounting queue that cleaning up removes. Its jobs stay: each
// document has one.
var oldAccounting = []OldRows{{Name: "attempts", Days: 90, stmt: cleanAttempts}}

// cleanAttempts removes, of the log of attempts, those at accounting jobs that are completed or
// cancelled. What was posted stays as it is, with the numbers of job and attempt in it.
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
