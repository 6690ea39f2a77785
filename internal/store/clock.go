package store

import "context"

// setBack sets to the present what lies more than ten seconds ahead of the database's clock and can
// only be of the past: the clock was set back since, or a standby whose clock is behind was
// promoted. What is judged by its age would stay as it is until the clock has come there. Rows that
// another transaction holds are left to the next time.
//
// A lease counts from now on, so that its holder has time to renew it. One by SQL
// (async_operation_lease) is always ahead of the clock. A time until which something waits may well
// be in the future, and is left alone.
func (s *Store) setBack(ctx context.Context) error {
	const leases = `
UPDATE daybook.jobs
   SET last_attempted_at = clock_timestamp()/* jobs */ + CASE WHEN daybook.is_async_operation_claim(turn_id) THEN daybook.async_operation_lease() ELSE '0' END/* accounting: */
 WHERE id = ANY (ARRAY(
       SELECT id FROM daybook.jobs
        WHERE state = 'leased' AND last_attempted_at > statement_timestamp() + interval '10 seconds'/* jobs */
          AND (last_attempted_at > statement_timestamp() + interval '10 seconds' + daybook.async_operation_lease() OR NOT daybook.is_async_operation_claim(turn_id))/* accounting: */
          FOR NO KEY UPDATE SKIP LOCKED))`
	const workers = `
UPDATE daybook.job_workers
   SET first_seen = least(first_seen, clock_timestamp()), last_seen = least(last_seen, clock_timestamp())
 WHERE id = ANY (ARRAY(
       SELECT id FROM daybook.job_workers WHERE greatest(first_seen, last_seen) > statement_timestamp() + interval '10 seconds' FOR NO KEY UPDATE SKIP LOCKED))`
	const rates = `
UPDATE daybook.queue_rates
   SET at = clock_timestamp()
 WHERE queue = ANY (ARRAY(SELECT queue FROM daybook.queue_rates WHERE at > statement_timestamp() + interval '10 seconds' FOR NO KEY UPDATE SKIP LOCKED))`
	const orgRates = `
UPDATE daybook.organization_rates
   SET at = clock_timestamp()
 WHERE org_id = ANY (ARRAY(SELECT org_id FROM daybook.organization_rates WHERE at > statement_timestamp() + interval '10 seconds' FOR NO KEY UPDATE SKIP LOCKED))`
	// When the bucket is whole is found when the key is looked at (admit_limited). A key waits a little
	// longer than from one beginning to the next.
	const keyRates = `
UPDATE daybook.job_limit_rates
   SET look_at = clock_timestamp()
 WHERE (scope, org_id, limit_key) IN (
       SELECT r.scope, r.org_id, r.limit_key
         FROM daybook.job_limits l
         JOIN daybook.job_limit_rates r ON r.scope = l.scope
        WHERE r.look_at > statement_timestamp() + interval '10 seconds' + make_interval(secs => l.rate_seconds / l.rate)
          FOR NO KEY UPDATE OF r SKIP LOCKED)`
	// A worker that sees to one of these workflows just now finds its claim gone.
	const workflows = `
UPDATE daybook.job_workflows
   SET asked_at = least(asked_at, clock_timestamp()), cancelled_at = CASE WHEN cancelled_at IS NOT NULL THEN least(cancelled_at, clock_timestamp()) END,
       due_at = CASE WHEN due_at IS NOT NULL THEN clock_timestamp() END
 WHERE job_id = ANY (ARRAY(
       SELECT job_id FROM daybook.job_workflows
        WHERE greatest(asked_at, cancelled_at, due_at - make_interval(secs => 60 + grace_seconds)) > statement_timestamp() + interval '10 seconds'
          FOR NO KEY UPDATE SKIP LOCKED))`
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	// One transaction: none of them waits for a row, so that they hold nothing up.
	batch := batchByKey(s.pool)
	for _, stmt := range []string{s.kind.sql(leases), workers, rates, orgRates, keyRates, workflows} {
		batch.Queue(stmt)
	}
	return Wrap("set times back that are ahead of the database's clock", sendAll(ctx, s.pool, batch))
}
