-- $1 turn
-- $2 detached
-- $3 fence
-- $4 worker
-- $5 ids
-- $6 attempts
-- $7 started
-- $8 updated
-- $9 waiting
-- $10 locked
UPDATE daybook.jobs q
   SET state = 'leased', turn_id = $1, detached = $2, fence = $3, worker = $4, leased_generation = generation,
       run_count = v.attempt, attempt_started_at = v.started_at, last_attempted_at = clock_timestamp(), updated_at = clock_timestamp(),
       working = NOT v.waiting, capped = false, counted = false
  FROM unnest($5::text[], $6::integer[], $7::timestamptz[], $8::timestamptz[], $9::boolean[])
       AS v (id, attempt, started_at, updated_at, waiting)
 WHERE q.id = v.id AND q.state::text = 'pending' AND q.run_count = v.attempt - 1 AND ($10 OR q.updated_at = v.updated_at AND q.unique_hash IS NULL)
RETURNING q.id
