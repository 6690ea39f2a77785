UPDATE daybook.jobs q
   SET run_count = q.run_count + 1, updated_at = clock_timestamp()
 WHERE q.id = $1
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
          q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
          ,
          coalesce(q.traceparent, ''), coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited
