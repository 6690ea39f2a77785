-- $1 priorities
-- $2 orgs
-- $3 slots
-- $4 ats
-- $5 ids
-- $6 quotas
-- $7 fleet
SELECT j.id
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::integer[])
       AS s (priority, org_id, slot, at, id, quota)
 CROSS JOIN LATERAL (
       SELECT q.id
         FROM daybook.jobs q
        WHERE q.state = 'pending' AND q.fleet = $7 AND q.priority = s.priority AND q.org_id = s.org_id
          AND daybook.job_slot(q.type, q.queue, q.min_version) = s.slot
          AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
        ORDER BY q.ready_at, q.id
        LIMIT s.quota
          FOR NO KEY UPDATE SKIP LOCKED) j
