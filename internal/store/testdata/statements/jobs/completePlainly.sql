-- $1 ids
-- $2 outcomes
-- $3 codes
-- $4 errors
-- $5 delays
-- $6 versions
-- $7 results
-- $8 unlogged
-- $9 attempts
-- $10 generations
-- $11 started
-- $12 old_versions
-- $13 places
-- $14 picked
-- $15 turn
-- $16 fence
-- $17 worker
-- $18 unlocked
-- $19 run
WITH v AS (
    SELECT id, outcome, code, error, coalesce(delay, 0) AS delay, version, result, coalesce(unlogged, false) AS unlogged, attempt, generation, started_at,
           coalesce(old_version, 0) AS old_version, place
      FROM (SELECT unnest($1::text[]) AS id, unnest($2::text[]) AS outcome, unnest($3::text[]) AS code, unnest($4::text[]) AS error,
                   unnest($5::float8[]) AS delay, unnest($6::bigint[]) AS version, unnest($7::text[]) AS result,
                   unnest($8::boolean[]) AS unlogged, unnest($9::integer[]) AS attempt, unnest($10::bigint[]) AS generation, unnest($11::timestamptz[]) AS started_at,
                   unnest($12::bigint[]) AS old_version, unnest($13::tid[]) AS place) u
), completed AS (
    UPDATE daybook.jobs q
       SET state = CASE
               WHEN q.cancel_requested THEN 'cancelled'
               WHEN q.generation <> q.leased_generation OR v.outcome IN ('retried', 'rescheduled') THEN 'pending'
               ELSE v.outcome END::daybook.job_state,
           run_count = CASE
               WHEN q.generation <> q.leased_generation AND NOT q.cancel_requested THEN 0
               WHEN v.outcome = 'rescheduled' THEN v.attempt - 1
               ELSE v.attempt END,
           ready_at = CASE
               WHEN q.generation <> q.leased_generation THEN greatest(q.ready_at, clock_timestamp())
               WHEN v.outcome IN ('retried', 'rescheduled') THEN clock_timestamp() + make_interval(secs => v.delay)
               ELSE q.ready_at END,
           first_ready_at = CASE WHEN q.generation <> q.leased_generation THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,
           finished_at = CASE
               WHEN q.cancel_requested THEN clock_timestamp()
               WHEN q.generation <> q.leased_generation OR v.outcome IN ('retried', 'rescheduled') THEN NULL
               ELSE clock_timestamp() END,
           result = CASE WHEN v.outcome = 'completed' THEN v.result::jsonb ELSE q.result END,
           last_error = v.error, last_error_code = v.code,
           cancel_requested = false, working = false, reclaims = 0,
           turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL,
           last_attempted_at = CASE WHEN $14 THEN v.started_at ELSE q.last_attempted_at END,
           completed_turn_id = CASE WHEN v.outcome = 'completed' AND NOT q.cancel_requested AND q.generation = coalesce(q.leased_generation, q.generation)
                                              THEN $15 END,
           completed_fence = CASE WHEN v.outcome = 'completed' AND NOT q.cancel_requested AND q.generation = coalesce(q.leased_generation, q.generation)
                                              THEN $16::bigint END,
           completed_by = CASE WHEN v.outcome = 'completed' AND NOT q.cancel_requested AND q.generation = coalesce(q.leased_generation, q.generation)
                                              THEN $17 END,
           completed_started_at = CASE WHEN v.outcome = 'completed' AND NOT q.cancel_requested AND q.generation = coalesce(q.leased_generation, q.generation)
                                              THEN v.started_at END,
           updated_at = clock_timestamp()
      FROM v
     WHERE q.id = v.id
       AND CASE WHEN $14 THEN q.turn_id IS NULL AND q.finished_at IS NULL AND q.generation = v.generation
                ELSE q.turn_id = $15 AND q.fence = $16 AND q.run_count = v.attempt AND q.leased_generation = v.generation AND q.attempt_started_at = v.started_at AND NOT ($18 AND q.cancel_requested) END
    RETURNING q.id AS job_id, q.org_id, v.attempt, v.outcome, v.code, v.error, v.started_at, v.unlogged,
              'jobs' AS kind, q.type, NULL::text AS document_id, NULL::bigint AS version
              ,
              q.state = 'pending' AND v.outcome NOT IN ('retried', 'rescheduled') AS asked_again,
              q.completed_turn_id IS NOT NULL AS kept
), logged AS (
    INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, document_id, version, attempt, outcome, error_code, error, started_at,
                                     worker, turn_id, fence, workflow_run_id)
    SELECT job_id, org_id, kind, type, document_id, version, attempt, outcome::daybook.attempt_outcome, code, error, started_at,
           $17, $15, $16, $19
      FROM completed s
     WHERE NOT unlogged AND NOT kept
)
SELECT CASE WHEN count(*) = cardinality($1::text[]) THEN count(*) FILTER (WHERE asked_again) ELSE daybook.lease_lost(cardinality($1::text[]), count(*)) END
  FROM completed
