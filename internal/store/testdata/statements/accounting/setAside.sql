-- $1 why
-- $2 first
-- $3 last
-- $4 id
UPDATE daybook.accounting_work_queue q
   SET state = 'failed', last_error_code = 'ROW_UNREADABLE', last_error = $1,
       run_count = CASE WHEN q.run_count NOT BETWEEN 0 AND 999999 THEN 0
                        WHEN q.state = 'leased' THEN greatest(q.run_count - 1, 0)
                        ELSE q.run_count END,
       reclaims = 0,  not_ready_count = 0,
       created_at     = CASE WHEN q.created_at BETWEEN $2 AND $3 THEN q.created_at ELSE clock_timestamp() END,
       ready_at       = CASE WHEN q.ready_at BETWEEN $2 AND $3 THEN q.ready_at ELSE clock_timestamp() END,
       first_ready_at = CASE WHEN q.first_ready_at BETWEEN $2 AND $3 THEN q.first_ready_at ELSE clock_timestamp() END,
       last_attempted_at = CASE WHEN q.last_attempted_at BETWEEN $2 AND $3 THEN q.last_attempted_at END,
       finished_at = clock_timestamp(), updated_at = clock_timestamp(), cancel_requested = false, working = false,
       turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
 WHERE q.id = $4
RETURNING q.org_id,  '', q.document_id , q.run_count
