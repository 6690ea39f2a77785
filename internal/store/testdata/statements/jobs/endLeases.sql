-- $1 max_attempts
-- $2 ids
-- $3 charged
-- $4 lost_code
-- $5 fleet
WITH held AS (
    SELECT q.id, h.charged, q.generation <> q.leased_generation AS again,
           q.generation = q.leased_generation AND NOT q.cancel_requested AND h.charged
           AND q.run_count >= coalesce(q.max_attempts, greatest($1::integer, 1000)) AS fails
      FROM unnest($2::text[], $3::boolean[]) AS h (id, charged)
      JOIN daybook.jobs q ON q.id = h.id
)
UPDATE daybook.jobs q
   SET state = CASE WHEN q.cancel_requested THEN 'cancelled' WHEN held.fails THEN 'failed' ELSE 'pending' END::daybook.job_state,
       finished_at = CASE WHEN q.cancel_requested OR held.fails THEN clock_timestamp() END,
       run_count = CASE WHEN held.again AND NOT q.cancel_requested THEN 0
                        WHEN held.charged THEN q.run_count
                        ELSE greatest(q.run_count - 1, 0) END,
       -- It was due when it was leased, also where the clock was set back since.
       ready_at       = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE least(q.ready_at, clock_timestamp()) END,
       first_ready_at = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,
       reclaims      = CASE WHEN held.again OR held.fails OR q.cancel_requested THEN 0
                             ELSE least(q.reclaims, 999999) + CASE WHEN q.working THEN 1 ELSE 0 END END,
       last_error = CASE WHEN held.fails THEN 'the worker ended while it worked on this job, for the last time that it may be tried'
                         WHEN held.charged THEN 'the worker ended while it worked on this job'
                         ELSE q.last_error END,
       last_error_code = CASE WHEN held.charged THEN $4 ELSE q.last_error_code END,
       cancel_requested = false, working = false, updated_at = clock_timestamp(),
       turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
  FROM held
 WHERE q.id = held.id
RETURNING q.state = 'pending' AND q.ready_at <= clock_timestamp(), q.state::text, q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version),
          q.ready_at, q.id, EXISTS (SELECT 1 FROM daybook.organizations o WHERE o.id = q.org_id AND num_nonnulls(o.max_in_flight, o.rate) > 0),
          q.queue IS NOT NULL AND EXISTS (SELECT 1 FROM daybook.queues u WHERE u.name = q.queue AND num_nonnulls(u.max_parallel, u.rate, u.per_process) > 0),
          q.fleet = $5
