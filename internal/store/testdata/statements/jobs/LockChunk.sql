-- $1 ids
-- $2 turn
-- $3 fence
SELECT q.id, q.org_id, q.run_count, q.attempt_started_at, q.reclaims, q.cancel_requested, q.leased_generation
  FROM daybook.jobs q
 WHERE q.id = ANY ($1) AND q.turn_id = $2 AND q.fence = $3
 ORDER BY q.org_id, q.id
   FOR NO KEY UPDATE SKIP LOCKED
