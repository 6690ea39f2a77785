-- Chapter 25: background jobs under the functions of a table async_operations, for programs that
-- claim, complete and fail operations by SQL. The views, and the function that enqueues, are in
-- chapter 11.
--
-- A claim holds a job as any worker does: under a turn, a fence and a lease that expires. The lease
-- lasts 5 minutes and is not renewed by itself: last_attempted_at, from which leases are counted
-- that expire after 10 seconds, is 290 seconds ahead of the claim. So workers of Daybook end an
-- expired claim as they end any lease, and reset_stuck_async_operations does it where no worker
-- runs.
--
-- Statements that name a job by its id ask for the state as text: otherwise they could read an
-- index of all leased or pending jobs, of which statistics from before the claims expect few.
--
-- SQLSTATEs: DB010 the request is invalid, DB011 there is no such job, DB031 the job is not the
-- caller's any more.

-- +goose Up
-- +goose StatementBegin

-- How much longer the lease of a claim lasts than the 10 seconds of a worker's.
CREATE FUNCTION daybook.async_operation_lease() RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT interval '290 seconds' $$;

-- Whether a turn is a claim's.
CREATE FUNCTION daybook.is_async_operation_claim(turn_id text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT coalesce(starts_with($1, '/async-operations/'), false) $$;

-- Whether a job's id is a UUID. Those that enqueue_job makes are; a row that was inserted by hand
-- may have another, and is no operation.
CREATE FUNCTION daybook.is_async_operation_id(id text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT $1 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' $$;

-- Puts on record that a program claims operations of these types, so that no worker makes dead
-- letters of them for want of a handler. One row stands for all such programs. It is written once a
-- minute, and never waits for another transaction that writes it.
CREATE FUNCTION daybook.note_async_operation_types(types text[]) RETURNS void
    LANGUAGE plpgsql
AS $$
DECLARE
    known text[];
    seen  timestamptz;
BEGIN
    SELECT w.types, w.last_seen INTO known, seen FROM daybook.job_workers w WHERE w.id = 'async-operations';
    IF NOT FOUND THEN
        IF NOT pg_try_advisory_xact_lock(daybook.lock_class('async operations'), 0) THEN
            RETURN; -- another transaction writes it
        END IF;
        INSERT INTO daybook.job_workers (id, name, types)
        VALUES ('async-operations', 'async operations by SQL', ARRAY(SELECT DISTINCT t FROM unnest(note_async_operation_types.types) t WHERE t IS NOT NULL ORDER BY t))
        ON CONFLICT DO NOTHING;
    ELSIF seen < clock_timestamp() - interval '1 minute' OR NOT note_async_operation_types.types <@ known THEN
        UPDATE daybook.job_workers w
           SET last_seen = clock_timestamp(),
               types = ARRAY(SELECT DISTINCT t FROM unnest(w.types || note_async_operation_types.types) t WHERE t IS NOT NULL ORDER BY t)
         WHERE w.id = (SELECT x.id FROM daybook.job_workers x WHERE x.id = 'async-operations' FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
END
$$;

CREATE FUNCTION daybook.lease_async_operation(p_operation_id uuid, p_worker text DEFAULT NULL) RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    job   daybook.jobs;
    org   daybook.organizations;
    mine  bigint;
BEGIN
    SELECT * INTO job FROM daybook.jobs j
     WHERE j.id = p_operation_id::text AND j.state::text = 'pending' AND j.ready_at <= clock_timestamp() AND j.min_version IS NULL
       AND j.fleet >= 0 -- less: it waits for its limit by key
       FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT * INTO org FROM daybook.organizations o WHERE o.id = job.org_id;
    IF org.paused_at IS NOT NULL OR job.queue IS NOT NULL AND daybook.queue_uncounted(job.queue) IS NOT TRUE THEN
        RETURN NULL;
    END IF;
    IF num_nonnulls(org.max_in_flight, org.rate) > 0 THEN
        -- The lock that workers count an organization's leases under.
        IF NOT pg_try_advisory_xact_lock(daybook.lock_class('organization leases'), hashtext(job.org_id)) THEN
            RETURN NULL;
        END IF;
        IF (SELECT count(*) FROM daybook.jobs l WHERE l.capped AND l.turn_id IS NOT NULL AND l.org_id = job.org_id) >= org.max_in_flight
           OR org.rate IS NOT NULL AND daybook.organization_starts(org) < 1 THEN
            RETURN NULL;
        END IF;
    END IF;
    IF org.rate IS NOT NULL THEN
        PERFORM daybook.count_organization_starts(org.id, 1);
    END IF;
    mine := nextval('daybook.fence_seq');
    UPDATE daybook.jobs j
       SET state = 'leased', turn_id = '/async-operations/' || mine, detached = false, fence = mine, leased_generation = j.generation,
           worker = coalesce(nullif(p_worker, ''), nullif(current_setting('application_name', true), ''), session_user::text),
           run_count = j.run_count + 1, working = true, capped = org.max_in_flight IS NOT NULL, counted = true,
           attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp() + daybook.async_operation_lease(), updated_at = clock_timestamp()
     WHERE j.id = job.id
    RETURNING j.* INTO job;
    PERFORM daybook.note_async_operation_types(ARRAY[job.type]);
    -- What ends a lease leaves the number of the policy to what begins the next attempt.
    IF job.reclaims > 0 AND job.run_count > daybook.async_operation_attempts(job) THEN
        PERFORM daybook.end_async_operation(job, 'failed', NULL, 'JOB_LOCK_TIMEOUT_RECLAIMED',
                                            format('the worker ended in the last attempt, of %s', daybook.async_operation_attempts(job)), NULL);
        RETURN NULL;
    END IF;
    RETURN mine;
END
$$;
COMMENT ON FUNCTION daybook.lease_async_operation IS
    'Claims a job that is due, for 5 minutes, and returns the fence of the claim; null: it is not due, waits for its limit by key, or has ended its program in each of its attempts (it is a dead letter then), another program or worker holds it, its organization is paused or at its cap or rate, or its named queue is paused or has a limit or a rate, which workers alone count';

CREATE FUNCTION daybook.claim_async_operation(p_operation_id uuid) RETURNS boolean
    LANGUAGE sql
AS $$ SELECT daybook.lease_async_operation(p_operation_id) IS NOT NULL $$;
COMMENT ON FUNCTION daybook.claim_async_operation IS
    'lease_async_operation for programs that do not keep the fence of their claim';

CREATE FUNCTION daybook.renew_async_operation(p_operation_id uuid, p_fence bigint DEFAULT NULL) RETURNS boolean
    LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE daybook.jobs j
       SET last_attempted_at = clock_timestamp() + daybook.async_operation_lease(), updated_at = clock_timestamp()
     WHERE j.id = p_operation_id::text AND j.state::text = 'leased' AND daybook.is_async_operation_claim(j.turn_id)
       AND j.fence = coalesce(p_fence, j.fence);
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION daybook.renew_async_operation IS
    'Has the lease of a claim last for 5 minutes from now; false: the job is not the claim''s any more';

-- How many attempts a job has: its own number, else that of its type's policy, else that of the
-- operation's type.
CREATE FUNCTION daybook.async_operation_attempts(job daybook.jobs) RETURNS integer
    LANGUAGE sql STABLE
AS $$
    SELECT coalesce(job.max_attempts, (SELECT nullif(t.max_attempts, 0) FROM daybook.job_types t WHERE t.kind = 'jobs' AND t.type = job.type),
                    CASE WHEN job.type IN ('webhook', 'webhook_delivery') THEN 5 ELSE 3 END)
$$;

-- Ends the attempt of a claim, also of chapter 29, whose row the caller has locked: as it came out,
-- or as a request that was made meanwhile asks.
CREATE FUNCTION daybook.end_async_operation(job daybook.jobs, outcome daybook.attempt_outcome, result jsonb, code text,
    error text, delay interval) RETURNS void
    LANGUAGE plpgsql
AS $$
DECLARE
    again CONSTANT boolean := job.generation <> job.leased_generation AND NOT job.cancel_requested;
    due   CONSTANT timestamptz := CASE WHEN again THEN greatest(job.ready_at, clock_timestamp())
                                       WHEN end_async_operation.outcome IN ('retried', 'rescheduled') THEN clock_timestamp() + end_async_operation.delay
                                       ELSE least(job.ready_at, clock_timestamp()) END;
    fails CONSTANT boolean := end_async_operation.outcome = 'failed' OR end_async_operation.outcome = 'lost' AND job.run_count >= daybook.async_operation_attempts(job);
    ends  CONSTANT text := CASE WHEN job.cancel_requested THEN 'cancelled' WHEN again THEN 'pending' WHEN fails THEN 'failed'
                                WHEN end_async_operation.outcome IN ('retried', 'rescheduled', 'lost') THEN 'pending' ELSE end_async_operation.outcome::text END;
BEGIN
    IF end_async_operation.outcome = 'rescheduled' THEN
        -- One row for an attempt that is put off again and again, as completeStmt folds it.
        UPDATE daybook.attempt_log a
           SET times = a.times + 1, first_started_at = coalesce(a.first_started_at, a.started_at), error = end_async_operation.error,
               started_at = job.attempt_started_at, ended_at = clock_timestamp(), worker = coalesce(job.worker, ''), turn_id = job.turn_id, fence = job.fence
         WHERE a.job_id = job.id AND a.id = (SELECT max(l.id) FROM daybook.attempt_log l WHERE l.job_id = job.id)
           AND a.outcome = 'rescheduled' AND a.attempt = job.run_count AND a.error_code = end_async_operation.code;
    END IF;
    IF ends <> 'completed' AND NOT (end_async_operation.outcome = 'rescheduled' AND FOUND) THEN
        INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, error, started_at, worker, turn_id, fence)
        VALUES (job.id, job.org_id, 'jobs', job.type, job.run_count, end_async_operation.outcome, end_async_operation.code, end_async_operation.error,
                job.attempt_started_at, coalesce(job.worker, ''), job.turn_id, job.fence);
    END IF;
    UPDATE daybook.jobs j
       SET state = ends::daybook.job_state,
           run_count = CASE WHEN again THEN 0 WHEN end_async_operation.outcome = 'rescheduled' THEN j.run_count - 1 ELSE j.run_count END,
           ready_at = due,
           first_ready_at = CASE WHEN again THEN due ELSE j.first_ready_at END,
           finished_at = CASE WHEN ends <> 'pending' THEN clock_timestamp() END,
           result = CASE WHEN end_async_operation.outcome = 'completed' THEN end_async_operation.result ELSE j.result END,
           last_error = left(end_async_operation.error, 4096), last_error_code = end_async_operation.code,
           last_attempted_at = j.attempt_started_at, updated_at = clock_timestamp(),
           reclaims = CASE WHEN end_async_operation.outcome = 'lost' AND NOT again AND ends = 'pending' THEN least(j.reclaims, 999999) + 1 ELSE 0 END,
           completed_turn_id = CASE WHEN ends = 'completed' THEN j.turn_id END, completed_fence = CASE WHEN ends = 'completed' THEN j.fence END,
           completed_by = CASE WHEN ends = 'completed' THEN coalesce(j.worker, '') END,
           completed_started_at = CASE WHEN ends = 'completed' THEN j.attempt_started_at END,
           cancel_requested = false, working = false,
           turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
     WHERE j.id = job.id;
    IF ends = 'pending' AND daybook.must_wake(daybook.jobs_key(job.fleet), due) THEN
        PERFORM daybook.wake_job_queue(job.fleet);
    END IF;
END
$$;

-- Locks the job that a claim holds. An empty row: it holds it no more.
CREATE FUNCTION daybook.held_async_operation(p_operation_id uuid, p_fence bigint) RETURNS daybook.jobs
    LANGUAGE sql
AS $$
    SELECT j FROM daybook.jobs j
     WHERE j.id = p_operation_id::text AND j.state::text = 'leased' AND daybook.is_async_operation_claim(j.turn_id) AND j.fence = coalesce(p_fence, j.fence)
       FOR NO KEY UPDATE
$$;

CREATE FUNCTION daybook.complete_async_operation(p_operation_id uuid, p_result jsonb DEFAULT NULL,
    p_fence bigint DEFAULT NULL) RETURNS boolean
    LANGUAGE plpgsql
AS $$
DECLARE
    job CONSTANT daybook.jobs := daybook.held_async_operation(p_operation_id, p_fence);
BEGIN
    IF job.id IS NULL THEN
        RAISE EXCEPTION 'operation % is not held by this claim', p_operation_id
            USING ERRCODE = 'DB031', HINT = 'its lease of 5 minutes has expired and it was reset, or it was never claimed; what this attempt did is not on record';
    END IF;
    IF job.cancel_requested THEN
        PERFORM daybook.end_async_operation(job, 'cancelled', NULL, 'JOB_CANCELLED', 'it was cancelled during the attempt', NULL);
        RETURN false;
    END IF;
    PERFORM daybook.end_async_operation(job, 'completed', p_result, NULL, NULL, NULL);
    RETURN true;
END
$$;
COMMENT ON FUNCTION daybook.complete_async_operation IS
    'Completes a claimed job, with a result. An error (DB031), which undoes the caller''s transaction, when the claim does not hold it any more; false: it was cancelled meanwhile, and is';

-- Whether only Daybook gives a job the code: models.JobCodeIsReserved.
CREATE FUNCTION daybook.job_code_is_reserved(code text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
AS $$ SELECT $1 IN ('SNOOZED', 'AWAITING_CALLBACK', 'AWAITED_CANCELLED', 'REPLACED', 'HANDLER_MISSING', 'ROW_UNREADABLE', 'RESULT_NOT_STORED') $$;

-- Whether a job that failed with the code is a dead letter at once: models.JobErrorIsFinal.
CREATE FUNCTION daybook.job_error_is_final(code text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
AS $$
    SELECT $1 IN ('PAYLOAD_INVALID', 'PAYLOAD_TOO_LARGE', 'PAYLOAD_NOT_ENCRYPTED', 'AUTHENTICATION_FAILED', 'NOT_FOUND', 'HANDLER_MISSING',
                  'ROW_UNREADABLE', 'AWAITED_CANCELLED')
$$;

CREATE FUNCTION daybook.fail_async_operation(p_operation_id uuid, p_error text, p_fence bigint DEFAULT NULL, p_error_code text DEFAULT 'HANDLER_ERROR') RETURNS boolean
    LANGUAGE plpgsql
AS $$
DECLARE
    job  CONSTANT daybook.jobs := daybook.held_async_operation(p_operation_id, p_fence);
    code text := coalesce(nullif(p_error_code, ''), 'HANDLER_ERROR');
    said text := coalesce(nullif(p_error, ''), 'the program that claimed it said no more');
BEGIN
    IF job.id IS NULL THEN
        RETURN false;
    END IF;
    IF daybook.job_code_is_reserved(code) THEN
        said := format('the code %s is Daybook''s own: %s', code, said);
        code := 'HANDLER_ERROR';
    END IF;
    PERFORM daybook.end_async_operation(
        job,
        CASE WHEN daybook.job_error_is_final(code) OR job.run_count >= daybook.async_operation_attempts(job)
             THEN 'failed' ELSE 'retried' END::daybook.attempt_outcome,
        NULL, code, left(said, 4096),
        least(interval '5 minutes' * power(2, least(job.run_count, 20) - 1), interval '6 hours'));
    RETURN true;
END
$$;
COMMENT ON FUNCTION daybook.fail_async_operation IS
    'Ends the attempt at a claimed job: it is due again in 5, 10, 20 … minutes (6 hours at most), or a dead letter after its last attempt, or at once when the code says that trying again cannot help. False: the claim does not hold it any more';

CREATE FUNCTION daybook.reset_stuck_async_operations() RETURNS integer
    LANGUAGE plpgsql
AS $$
DECLARE
    job   daybook.jobs;
    total integer := 0;
BEGIN
    -- Claims from before the clock was set back count from now on.
    UPDATE daybook.jobs j
       SET last_attempted_at = clock_timestamp() + daybook.async_operation_lease()
     WHERE j.id = ANY (ARRAY(
           SELECT x.id FROM daybook.jobs x
            WHERE x.state = 'leased' AND x.last_attempted_at > clock_timestamp() + interval '10 seconds' + daybook.async_operation_lease()
              AND daybook.is_async_operation_claim(x.turn_id)
              FOR NO KEY UPDATE SKIP LOCKED));
    FOR job IN
        SELECT * FROM daybook.jobs j
         WHERE j.state = 'leased' AND j.last_attempted_at < clock_timestamp() - interval '10 seconds' AND daybook.is_async_operation_claim(j.turn_id)
         ORDER BY j.org_id, j.id
           FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        PERFORM daybook.end_async_operation(
            job, 'lost', NULL, 'JOB_LOCK_TIMEOUT_RECLAIMED',
            'the worker ended while it worked on this job' ||
            CASE WHEN job.run_count >= daybook.async_operation_attempts(job) THEN ', for the last time that it may be tried' ELSE '' END, NULL);
        total := total + 1;
    END LOOP;
    RETURN total;
END
$$;
COMMENT ON FUNCTION daybook.reset_stuck_async_operations IS
    'Ends claims that are older than 5 minutes: their jobs are due again, or dead letters after their last attempt. Workers of Daybook do it by themselves';

CREATE FUNCTION daybook.retry_async_operation(p_operation_id uuid) RETURNS boolean
    LANGUAGE sql
AS $$ SELECT r.result <> 'unchanged' FROM daybook.retry_job(p_operation_id::text, 'reset') r $$;
COMMENT ON FUNCTION daybook.retry_async_operation IS
    'retry_job as if the job had never been tried; false: it runs, or waits as another job with its payload does';

CREATE FUNCTION daybook.cancel_async_operation(p_operation_id uuid) RETURNS boolean
    LANGUAGE sql
AS $$ SELECT c.result <> 'unchanged' FROM daybook.cancel_job(p_operation_id::text) c $$;
COMMENT ON FUNCTION daybook.cancel_async_operation IS 'cancel_job; false: it was cancelled before';

-- Of the operations that are due, the 1000 of each fleet that have been due for longest are put in
-- order: to sort all of a backlog takes seconds.
CREATE FUNCTION daybook.get_pending_async_operations(p_operation_types text[] DEFAULT NULL, p_limit integer DEFAULT 10)
    RETURNS TABLE (
    id uuid, operation_type text, payload jsonb, submission_id text, form_id text, workspace_id text, status text,
    attempts integer, max_attempts integer,
    last_attempt_at timestamptz, next_retry_at timestamptz, completed_at timestamptz, last_error text,
    error_history jsonb, result jsonb, created_at timestamptz, updated_at timestamptz)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM daybook.note_async_operation_types(coalesce(p_operation_types, '{}'));
    RETURN QUERY
    SELECT o.id::uuid, o.operation_type, o.payload, o.submission_id, o.form_id, o.workspace_id, o.status, o.attempts, o.max_attempts, o.last_attempt_at,
           o.next_retry_at, o.completed_at, o.last_error, o.error_history, o.result, o.created_at, o.updated_at
      FROM (SELECT oldest.id, oldest.priority, oldest.ready_at
              FROM daybook.fleets f
             CROSS JOIN LATERAL (
                    SELECT j.id, j.priority, j.ready_at
                      FROM daybook.jobs j
                     WHERE num_nulls(nullif(j.state, 'pending')) = 1 AND j.fleet = f.id AND j.ready_at <= statement_timestamp()
                       AND (p_operation_types IS NULL OR j.type = ANY (p_operation_types)) AND daybook.is_async_operation_id(j.id)
                       AND (j.queue IS NULL OR daybook.queue_uncounted(j.queue))
                       AND NOT EXISTS (SELECT 1 FROM daybook.organizations g WHERE g.id = j.org_id AND g.paused_at IS NOT NULL)
                     ORDER BY j.ready_at
                     LIMIT greatest(1000, p_limit)) oldest
             ORDER BY oldest.priority, oldest.ready_at, oldest.id
             LIMIT p_limit) due
      JOIN daybook.async_operations o ON o.id = due.id
     ORDER BY due.priority, due.ready_at, due.id;
END
$$;
COMMENT ON FUNCTION daybook.get_pending_async_operations IS
    'Operations that are due and may be claimed, of these types or of all (null): high priorities first, then the longest due';

CREATE FUNCTION daybook.get_dead_async_operations(p_limit integer DEFAULT 50) RETURNS TABLE (
    id uuid, operation_type text, payload jsonb, submission_id text, form_id text, workspace_id text, status text,
    attempts integer, max_attempts integer,
    last_attempt_at timestamptz, next_retry_at timestamptz, completed_at timestamptz, last_error text,
    error_history jsonb, result jsonb, created_at timestamptz, updated_at timestamptz)
    LANGUAGE sql STABLE
AS $$
    SELECT o.id::uuid, o.operation_type, o.payload, o.submission_id, o.form_id, o.workspace_id, o.status, o.attempts, o.max_attempts, o.last_attempt_at,
           o.next_retry_at, o.completed_at, o.last_error, o.error_history, o.result, o.created_at, o.updated_at
      FROM (SELECT j.id, j.finished_at FROM daybook.jobs j
             WHERE j.state = 'failed' AND daybook.is_async_operation_id(j.id) ORDER BY j.finished_at DESC, j.id LIMIT p_limit) dead
      JOIN daybook.async_operations o ON o.id = dead.id
     ORDER BY dead.finished_at DESC, dead.id
$$;
COMMENT ON FUNCTION daybook.get_dead_async_operations IS 'Dead letters, the newest first';

CREATE FUNCTION daybook.notification_stats(
    p_org_id        text DEFAULT NULL,
    p_time_zone     text DEFAULT 'UTC',
    OUT pending     bigint,
    OUT processing  bigint,
    OUT completed   bigint,
    OUT failed      bigint,
    OUT todays_sent bigint
)
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    midnight timestamptz;
BEGIN
    BEGIN
        midnight := date_trunc('day', clock_timestamp() AT TIME ZONE p_time_zone) AT TIME ZONE p_time_zone;
    EXCEPTION WHEN invalid_parameter_value THEN
        RAISE EXCEPTION 'there is no time zone %', p_time_zone USING ERRCODE = 'DB010', HINT = 'name it as the IANA database does: Europe/Berlin';
    END;
    SELECT count(*) FILTER (WHERE j.state = 'pending'), count(*) FILTER (WHERE j.state = 'leased'), count(*) FILTER (WHERE j.state = 'completed'),
           count(*) FILTER (WHERE j.state = 'failed'), count(*) FILTER (WHERE j.state = 'completed' AND j.finished_at >= midnight)
      INTO pending, processing, completed, failed, todays_sent
      FROM daybook.jobs j
     WHERE j.type IN ('email', 'sms', 'notification') AND (p_org_id IS NULL OR j.org_id = p_org_id);
END
$$;
COMMENT ON FUNCTION daybook.notification_stats IS
    'Counts jobs of the types email, sms and notification, of an organization or of all (null): pending also those that are to be tried again, failed the dead letters, todays_sent those completed since midnight in the time zone';

-- The trigger that `daybook adopt async-operations` puts on a legacy table. A row that Daybook
-- holds stays as it is there: when a person or a program has it tried again, Daybook tries its job
-- again. It runs with the rights of the schema's owner.
CREATE FUNCTION daybook.keep_adopted_operation() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    here   CONSTANT text := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
    wanted CONSTANT text := to_jsonb(NEW) ->> 'status';
    held   text;
BEGIN
    SELECT a.job_id INTO held FROM daybook.adopted_rows a WHERE a.legacy_table = here AND a.legacy_id = to_jsonb(OLD) ->> 'id';
    IF NOT FOUND OR wanted NOT IN ('pending', 'failed', 'processing') THEN
        RETURN NEW;
    END IF;
    IF wanted = 'pending' AND EXISTS (SELECT 1 FROM daybook.jobs j WHERE j.id = held AND j.state IN ('failed', 'cancelled')) THEN
        PERFORM daybook.retry_job(held, 'reset');
    END IF;
    RETURN OLD;
END
$$;
REVOKE ALL ON FUNCTION daybook.keep_adopted_operation FROM PUBLIC;
COMMENT ON FUNCTION daybook.keep_adopted_operation IS
    'Keeps a legacy queue from working rows that Daybook holds, and tries their jobs again; a trigger of legacy '
    'tables';

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.keep_adopted_operation;
DROP FUNCTION daybook.notification_stats, daybook.get_dead_async_operations, daybook.get_pending_async_operations,
    daybook.cancel_async_operation,
    daybook.retry_async_operation, daybook.reset_stuck_async_operations, daybook.fail_async_operation, daybook.job_code_is_reserved, daybook.job_error_is_final,
    daybook.complete_async_operation,
    daybook.held_async_operation, daybook.end_async_operation, daybook.async_operation_attempts,
    daybook.renew_async_operation,
    daybook.claim_async_operation, daybook.lease_async_operation, daybook.note_async_operation_types,
    daybook.is_async_operation_claim, daybook.is_async_operation_id,
    daybook.async_operation_lease;
