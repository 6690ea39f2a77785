-- $1 priorities
-- $2 orgs
-- $3 slots
-- $4 ats
-- $5 ids
-- $6 quotas
-- $7 fleet
SELECT j.*
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::integer[])
       WITH ORDINALITY AS s (priority, org_id, slot, at, id, quota, n)
 CROSS JOIN (SELECT pg_current_xact_id()::text::bigint) AS x (own)
  LEFT JOIN daybook.organizations o ON o.id = s.org_id
   LEFT JOIN daybook.queues u ON u.name = nullif(split_part(s.slot, '/', 2), '')
 CROSS JOIN LATERAL (
       SELECT q.priority, q.ready_at, q.id, q.org_id, q.run_count + 1, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
              q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
              ,
              coalesce(q.traceparent, ''), coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited,
              q.updated_at,
              CASE WHEN q.xmax = '0'::xid THEN false
                   WHEN (x.own - q.xmax::text::bigint) & 4294967295 NOT BETWEEN 1 AND least(x.own - 3, 2147483647) THEN false
                   ELSE coalesce(pg_xact_status((x.own - ((x.own - q.xmax::text::bigint) & 4294967295))::text::xid8) = 'aborted', false) END,
              q.ctid
         FROM daybook.jobs q
        WHERE q.state = 'pending' AND q.fleet = $7 AND q.priority = s.priority AND q.org_id = s.org_id AND daybook.job_slot(q.type, q.queue, q.min_version) = s.slot
          AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
        ORDER BY q.org_id, daybook.job_slot(q.type, q.queue, q.min_version), q.ready_at, q.id
        LIMIT CASE WHEN o.paused_at IS NULL AND o.max_in_flight IS NULL AND o.rate IS NULL
                    AND u.paused_at IS NULL AND num_nonnulls(u.max_parallel, u.rate, u.per_process) = 0
                    THEN s.quota ELSE 0 END
          FOR NO KEY UPDATE SKIP LOCKED) j
