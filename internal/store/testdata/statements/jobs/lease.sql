-- $1 priorities
-- $2 orgs
-- $3 slots
-- $4 ats
-- $5 ids
-- $6 quotas
-- $7 locked
-- $8 fleet
-- $9 rated
-- $10 turn
-- $11 detached
-- $12 fence
-- $13 worker
-- $14 begins
-- $15 capped
-- $16 counted
WITH due AS MATERIALIZED (
    SELECT j.id
      FROM unnest($1::smallint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::integer[], $7::boolean[])
           WITH ORDINALITY AS s (priority, org_id, slot, at, id, quota, locked, n)
      LEFT JOIN daybook.organizations o ON o.id = s.org_id
     CROSS JOIN LATERAL (
           SELECT q.id
             FROM daybook.jobs q
            WHERE q.state = 'pending' AND q.fleet = $8 AND q.priority = s.priority AND q.org_id = s.org_id AND daybook.job_slot(q.type, q.queue, q.min_version) = s.slot
              AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
            ORDER BY q.org_id, daybook.job_slot(q.type, q.queue, q.min_version), q.ready_at, q.id
            LIMIT CASE WHEN o.paused_at IS NOT NULL THEN 0
                       WHEN o.max_in_flight IS NULL AND o.rate IS NULL THEN s.quota
                       WHEN NOT s.locked OR o.rate IS NOT NULL AND s.org_id <> ALL ($9::text[]) THEN 0
                       ELSE greatest(0, least(s.quota, o.max_in_flight - (
                            SELECT count(*) FROM daybook.jobs l
                             WHERE l.capped AND l.turn_id IS NOT NULL AND l.org_id = s.org_id))) END
              FOR NO KEY UPDATE SKIP LOCKED) j
     ORDER BY s.n
)
UPDATE daybook.jobs q
   SET state = 'leased', turn_id = $10, detached = $11, fence = $12, worker = $13, leased_generation = generation, run_count = run_count + 1,
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), updated_at = clock_timestamp(),
       working = $14, capped = q.org_id = ANY ($15::text[]), counted = q.type = ANY ($16::text[])
 WHERE q.id = ANY (ARRAY(SELECT id FROM due))
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, q.attempt_started_at, q.reclaims, q.cancel_requested, q.leased_generation,
          q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
          ,
          coalesce(q.traceparent, ''), coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited
