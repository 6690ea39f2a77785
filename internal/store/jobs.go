package store

// Jobs is the queue of background jobs.
var Jobs = newJobs()

func newJobs() *Kind {
	return &Kind{
		Name: "jobs", table: "daybook.jobs", wake: "daybook.wake_job_queue",
		lostCode: "JOB_LOCK_TIMEOUT_RECLAIMED", channel: "daybook_jobs", key: 2, oldRows: oldJobs,
		ownChecks: []Check{{"waits_for_nothing", "a job that waits for its turn or for other jobs waits for something " +
			"that has not ended, or is about to be released", auditWaits}},
		waits: waits{
			probeWaits, `SELECT decided, again, last, left_from FROM daybook.check_waits(beyond => $1, since => $2)`,
		},
		fields: func(j *Job) []any {
			return append(leaseFields(j), &j.Type, &j.Payload, &j.MaxAttempts, &j.Key, &j.EnqueuedAt, &j.TraceParent,
				&j.Queue, &j.MinVersion, &j.Awaited)
		},
		locked: leaseFields,
	}
}

// oldJobs are the rows of the queue of jobs that go when they are old.
var oldJobs = []OldRows{{Name: "jobs", Days: 30, stmt: cleanJobs}, {Name: "receipts", Days: 90, stmt: cleanReceipts}}

// cleanJobs removes jobs that were completed or cancelled, in the order of their end, with their
// links, attempts and receipts. A job that another transaction holds locked is left for another
// time.
const cleanJobs = `
WITH looked AS MATERIALIZED (
    SELECT id, finished_at
      FROM daybook.jobs
     WHERE state IN ('completed', 'cancelled') AND finished_at < @before AND (finished_at, id) > (@time, @id)
     ORDER BY finished_at, id
     LIMIT @batch
), doomed AS MATERIALIZED (
    SELECT j.id
      FROM daybook.jobs j
      JOIN looked l ON l.id = j.id
     WHERE (@org = '' OR j.org_id = @org) AND j.id <> @keep AND j.state IN ('completed', 'cancelled') AND j.finished_at < @before
       FOR UPDATE OF j SKIP LOCKED
), attempts AS (
    DELETE FROM daybook.attempt_log a USING doomed d WHERE a.job_id = d.id RETURNING 1
), receipts AS (
    DELETE FROM daybook.webhook_deliveries w USING doomed d WHERE w.job_id = d.id RETURNING 1
), deliveries AS (
    DELETE FROM daybook.job_deliveries c USING doomed d WHERE c.job_id = d.id
), jobs AS (
    DELETE FROM daybook.jobs j USING doomed d WHERE j.id = d.id RETURNING 1
)
SELECT (SELECT count(*) FROM looked), (SELECT count(*) FROM jobs), (SELECT count(*) FROM attempts), (SELECT count(*) FROM receipts),
       coalesce((SELECT max(finished_at) FROM looked), @time), coalesce((SELECT id FROM looked ORDER BY finished_at DESC, id DESC LIMIT 1), @id),
       @n::bigint`

// cleanReceipts removes the webhook receipts of jobs that are completed, cancelled or gone. The
// receipt of a job that may still be tried again says whether its webhook was delivered, and stays.
const cleanReceipts = `
WITH looked AS MATERIALIZED (
    SELECT job_id, attempt, sent_at
      FROM daybook.webhook_deliveries
     WHERE (job_id, attempt) > (@id, @n)
     ORDER BY job_id, attempt
     LIMIT @batch
), gone AS (
    DELETE FROM daybook.webhook_deliveries w
     USING looked l
      LEFT JOIN daybook.jobs j ON j.id = l.job_id
     WHERE w.job_id = l.job_id AND w.attempt = l.attempt AND l.sent_at < @before AND l.job_id <> @keep
       AND (@org = '' OR j.org_id = @org) AND (j.id IS NULL OR j.state IN ('completed', 'cancelled'))
    RETURNING 1
)
SELECT (SELECT count(*) FROM looked), 0, 0, (SELECT count(*) FROM gone), @time::timestamptz,
       coalesce((SELECT job_id FROM looked ORDER BY job_id DESC, attempt DESC LIMIT 1), @id),
       coalesce((SELECT attempt FROM looked ORDER BY job_id DESC, attempt DESC LIMIT 1), @n)`
