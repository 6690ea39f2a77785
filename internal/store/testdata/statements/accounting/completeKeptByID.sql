-- $1 generations
-- $2 ids
-- $3 attempts
-- $4 started
-- $5 old_versions
-- $6 turn
-- $7 fence
-- $8 worker
WITH v AS (
    SELECT unnest($1::bigint[]) AS generation, unnest($2::text[]) AS id, unnest($3::integer[]) AS attempt, unnest($4::timestamptz[]) AS started_at,
            unnest($5::bigint[]) AS version
), completed AS (
    UPDATE daybook.accounting_work_queue q
       SET state = 'completed', run_count = v.attempt, last_error = NULL, last_error_code = NULL,
            finished_at = statement_timestamp(), not_ready_count = 0 ,
           reclaims = 0, last_attempted_at = v.started_at, completed_turn_id = $6, completed_fence = $7, completed_by = $8,
           completed_started_at = v.started_at, updated_at = clock_timestamp()
      FROM v
     WHERE q.generation = v.generation AND q.id = v.id AND q.turn_id IS NULL AND q.finished_at IS NULL AND q.version_hint = coalesce(v.version, 0)
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($2::text[]) THEN 0 ELSE daybook.lease_lost(cardinality($2::text[]), count(*)) END
  FROM completed
