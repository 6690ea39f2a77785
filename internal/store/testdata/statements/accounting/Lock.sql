-- $1 priorities
-- $2 orgs
-- $3 slots
-- $4 ats
-- $5 ids
-- $6 quotas
-- $7 sources
-- $8 hooks
SELECT j.*
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::integer[])
       WITH ORDINALITY AS s (priority, org_id, slot, at, id, quota, n)
 CROSS JOIN (SELECT pg_current_xact_id()::text::bigint) AS x (own)
  LEFT JOIN daybook.organizations o ON o.id = s.org_id
 CROSS JOIN LATERAL (
       SELECT q.priority, q.ready_at, q.id, q.org_id, q.run_count + 1, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
               q.document_id, q.version_hint, q.not_ready_count, q.epoch ,
              coalesce(q.traceparent, '') ,
              q.updated_at,
              CASE WHEN q.xmax = '0'::xid THEN false
                   WHEN (x.own - q.xmax::text::bigint) & 4294967295 NOT BETWEEN 1 AND least(x.own - 3, 2147483647) THEN false
                   ELSE coalesce(pg_xact_status((x.own - ((x.own - q.xmax::text::bigint) & 4294967295))::text::xid8) = 'aborted', false) END,
              q.ctid
         FROM daybook.accounting_work_queue q
        WHERE q.state = 'pending' AND  q.priority = s.priority AND q.org_id = s.org_id
          AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
        ORDER BY q.org_id , q.ready_at, q.id
        LIMIT CASE WHEN o.paused_at IS NULL AND o.max_in_flight IS NULL
                    AND coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY ($7)
                                  AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ $8  THEN s.quota ELSE 0 END
          FOR NO KEY UPDATE SKIP LOCKED) j
