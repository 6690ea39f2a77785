-- $1 from
-- $2 age
-- $3 before
-- $4 gone
-- $5 most
SELECT id, last_attempted_at, working, org_id,  '', document_id , run_count, coalesce(worker, ''), coalesce(turn_id, ''),
       hashtext(coalesce(worker, ''))::oid, reclaims
  FROM daybook.accounting_work_queue
 WHERE state = 'leased' AND last_attempted_at >= $1
   AND last_attempted_at < greatest(statement_timestamp() - make_interval(secs => $2), $3)
   AND (last_attempted_at < statement_timestamp() - make_interval(secs => $2) OR hashtext(worker)::oid = ANY ($4))
 ORDER BY last_attempted_at
 LIMIT $5
   FOR NO KEY UPDATE SKIP LOCKED
