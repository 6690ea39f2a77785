-- $1 turn
-- $2 detached
-- $3 fence
-- $4 worker
-- $5 crashed
-- $6 lost_code
-- $7 ids
-- $8 charged
UPDATE daybook.jobs q
   SET turn_id = $1, detached = $2, fence = $3, worker = $4,
       run_count = q.run_count + CASE WHEN held.charged THEN 1 ELSE 0 END, working = true,
       reclaims = least(q.reclaims, 999999) + CASE WHEN $5 THEN 1 ELSE 0 END,
       last_error      = CASE WHEN held.charged THEN 'the worker ended while it worked on this job' ELSE q.last_error END,
       last_error_code = CASE WHEN held.charged THEN $6 ELSE q.last_error_code END,
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), updated_at = clock_timestamp()
  FROM unnest($7::text[], $8::boolean[]) AS held (id, charged)
 WHERE q.id = held.id
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, q.attempt_started_at, q.reclaims, q.cancel_requested, q.leased_generation,
          q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
          ,
          coalesce(q.traceparent, ''), coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited
