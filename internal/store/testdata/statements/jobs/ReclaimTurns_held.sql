-- $1 max_attempts
-- $2 crashed
-- $3 first_fence
-- $4 from
-- $5 fence
SELECT q.id, c.charged,
       q.generation <> q.leased_generation
       OR c.charged AND q.run_count >= coalesce(q.max_attempts, greatest($1::integer, 1000)) AS ends,
       q.org_id, q.type, '', q.run_count, coalesce(q.worker, ''), coalesce(q.turn_id, '')
  FROM daybook.jobs q
 CROSS JOIN LATERAL (SELECT q.working AND $2 AND q.fence < $3) AS c (charged)
 WHERE q.turn_id = ANY ($4) AND num_nulls(nullif(q.state, 'leased')) = 1 AND q.fence < $5
 ORDER BY q.org_id, q.id
   FOR NO KEY UPDATE OF q SKIP LOCKED
