-- $1 from
-- $2 age
-- $3 most
SELECT id, last_attempted_at, working, org_id, type, '', run_count, coalesce(worker, ''), coalesce(turn_id, '')
  FROM daybook.jobs
 WHERE state = 'leased' AND last_attempted_at >= $1 AND last_attempted_at < statement_timestamp() - make_interval(secs => $2)
 ORDER BY last_attempted_at
 LIMIT $3
   FOR NO KEY UPDATE SKIP LOCKED
