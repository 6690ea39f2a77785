-- $1 turn
-- $2 fence
-- $3 ids
-- $4 cancelled
-- $5 delay
WITH held AS (
    SELECT id, generation <> leased_generation AS again, run_count
      FROM daybook.jobs
     WHERE turn_id = $1 AND num_nulls(nullif(state, 'leased')) = 1 AND fence <= $2 AND ($3::text[] IS NULL OR id = ANY ($3))
       AND (NOT $4 OR cancel_requested)
     ORDER BY org_id, id
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE daybook.jobs q
   SET state = CASE WHEN q.cancel_requested THEN 'cancelled' ELSE 'pending' END::daybook.job_state,
       finished_at = CASE WHEN q.cancel_requested THEN clock_timestamp() END,
       run_count = CASE WHEN held.again AND NOT q.cancel_requested THEN 0 ELSE greatest(q.run_count - 1, 0) END,
       ready_at       = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE clock_timestamp() + make_interval(secs => $5) END,
       first_ready_at = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,
       cancel_requested = false, working = false, updated_at = clock_timestamp(),
       turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
  FROM held
 WHERE q.id = held.id
RETURNING q.id, q.org_id, q.type, '', held.run_count, q.state = 'cancelled'
