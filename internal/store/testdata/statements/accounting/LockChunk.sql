-- $1 ids
-- $2 turn
-- $3 fence
SELECT q.id, q.org_id, q.run_count, q.attempt_started_at, q.reclaims, q.cancel_requested, q.leased_generation
        , q.document_id, q.version_hint, q.not_ready_count, q.epoch
  FROM daybook.accounting_work_queue q
 WHERE q.id = ANY ($1) AND q.turn_id = $2 AND q.fence = $3
 ORDER BY q.org_id, q.id
   FOR NO KEY UPDATE SKIP LOCKED
