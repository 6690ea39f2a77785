-- Chapter 10: further requests for jobs: to try them again, to cancel them and to correct their
-- payloads, one by one or many.
--
-- SQLSTATEs: DB010 the request is invalid, DB011 there is no such job, DB012 the job is completed,
-- DB020 the payload is too large, DB021 it is invalid, DB040 the job is being worked, DB041 it was
-- changed meanwhile, DB042 another job that is open has the payload.

-- +goose Up
-- +goose StatementBegin

-- Returns when a job that is tried again is due; raises when mode or delay is wrong.
CREATE FUNCTION daybook.retry_due(mode text, delay_seconds double precision) RETURNS timestamptz
    LANGUAGE plpgsql
AS $$
BEGIN
    IF mode IS NULL OR mode NOT IN ('now', 'later', 'reset') THEN
        RAISE EXCEPTION 'mode must be now, later or reset, not %', mode USING ERRCODE = 'DB010';
    END IF;
    IF delay_seconds NOT BETWEEN 0 AND 3.2e9 THEN
        RAISE EXCEPTION 'delay must be between 0 seconds and 100 years, not % seconds', delay_seconds USING ERRCODE = 'DB010';
    END IF;
    RETURN clock_timestamp() + make_interval(secs => coalesce(delay_seconds, CASE mode WHEN 'later' THEN 300 ELSE 0 END));
END
$$;

-- The open job that keeps this one, which is not open, from being pending; null: there is none.
CREATE FUNCTION daybook.open_twin(job daybook.jobs) RETURNS text
    LANGUAGE sql STABLE
AS $$
    SELECT o.id FROM daybook.jobs o
     WHERE o.org_id = $1.org_id AND o.unique_hash = $1.unique_hash AND o.state IN ('pending', 'leased') AND o.id <> $1.id
$$;

CREATE FUNCTION daybook.retry_job(
    INOUT job_id  text,
    mode          text DEFAULT 'now',
    delay_seconds double precision DEFAULT NULL,
    OUT result    text,
    OUT reason    text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    job    daybook.jobs;
    due    CONSTANT timestamptz := daybook.retry_due(mode, delay_seconds);
    target smallint;
BEGIN
    SELECT * INTO job FROM daybook.jobs j WHERE j.id = retry_job.job_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no job %', retry_job.job_id USING ERRCODE = 'DB011', HINT = 'check the id, the job may have been purged';
    END IF;

    CASE job.state
        WHEN 'completed' THEN
            RAISE EXCEPTION 'job % is completed', job.id USING ERRCODE = 'DB012', HINT = 'enqueue a new one';
        WHEN 'leased' THEN
            -- It is being worked; only a requested cancellation is withdrawn. What was asked for before
            -- that one stands: it counts on, as in cancel_jobs.
            result := CASE WHEN job.cancel_requested THEN 'coalesced' ELSE 'unchanged' END;
            reason := CASE WHEN NOT job.cancel_requested THEN 'the job runs already' END;
            IF job.cancel_requested THEN
                UPDATE daybook.jobs j
                   SET cancel_requested = false, generation = j.generation - 1, updated_at = clock_timestamp()
                 WHERE j.id = job.id;
            END IF;
            RETURN;
        ELSE
            result := CASE job.state WHEN 'pending' THEN 'rescheduled' ELSE 'requeued' END;
    END CASE;

    -- Its queue may have been deleted, whose limits it would go around, or belong to another fleet
    -- by now.
    SELECT u.fleet INTO target FROM (SELECT) AS one LEFT JOIN daybook.queues u ON u.name = job.queue;
    IF job.queue IS NOT NULL AND target IS NULL THEN
        RAISE EXCEPTION 'the queue % of job % was deleted', quote_literal(job.queue), job.id
            USING ERRCODE = 'DB023', HINT = 'make it again: SELECT daybook.set_queue(name), or `daybook queues create NAME`; or enqueue a new job';
    END IF;
    target := coalesce(target, 0);

    BEGIN
        UPDATE daybook.jobs j
           SET state           = 'pending',
               fleet           = CASE WHEN j.limit_key IS NULL THEN target ELSE -1 END,
               ready_at        = CASE WHEN daybook.must_wait(j.id, j.org_id, j.sequence) THEN '9999-12-31 00:00:00+00' ELSE due END,
               first_ready_at  = due,
               generation      = j.generation + 1,
               reclaims       = 0,
               run_count       = CASE mode WHEN 'reset' THEN 0 ELSE j.run_count END,
               last_error      = CASE WHEN mode <> 'reset' THEN j.last_error END,
               last_error_code = CASE WHEN mode <> 'reset' THEN j.last_error_code END,
               progress        = CASE WHEN mode <> 'reset' THEN j.progress END,
               finished_at     = NULL,
               updated_at      = clock_timestamp()
         WHERE j.id = job.id;
    EXCEPTION WHEN unique_violation THEN
        -- Another job that is to be the only one, as this one is, is open, and does its work. It
        -- may have ended just now: then there is no id to name.
        result := 'unchanged';
        reason := 'job ' || coalesce(daybook.open_twin(job), '(ended meanwhile)') || ' is open, and one of the two may be: it has '
               || CASE WHEN job.unique_hash = daybook.job_input_hash(job.type, job.payload::text) THEN 'the same payload'
                       WHEN job.debounce_key IS NOT NULL THEN 'the same debounce key'
                       ELSE 'the same schedule' END
               || '. Wait for its end, or cancel it, and retry then';
        RETURN;
    END;
    IF mode = 'reset' AND job.awaited THEN
        DELETE FROM daybook.job_steps s WHERE s.job_id = job.id;
    END IF;
    PERFORM daybook.note_waiting(ARRAY[job.id]);
    IF daybook.must_wake(daybook.jobs_key(target), due) THEN
        PERFORM daybook.wake_job_queue(target);
    END IF;
END
$$;
COMMENT ON FUNCTION daybook.retry_job IS
    'Tries a job again, which waits for its turn and for other jobs as before: now (attempts stay counted), later (after delay_seconds, 300 if null) or reset (as if never tried: its steps are forgotten). result: requeued, rescheduled, coalesced or unchanged. reason: why it is unchanged';

-- retry_job for many in one statement: those that are in one of the states and that no other
-- transaction has locked, and whose queue there is. Returns how many were changed. Of several that
-- are to be unique and have the same payload one is.
CREATE FUNCTION daybook.retry_jobs(
    job_ids       text[],
    states        text[],
    mode          text DEFAULT 'now',
    delay_seconds double precision DEFAULT NULL
) RETURNS integer
    LANGUAGE plpgsql
AS $$
DECLARE
    due     CONSTANT timestamptz := daybook.retry_due(mode, delay_seconds);
    changed integer;
    tried   text[];
BEGIN
    BEGIN
        WITH matching AS MATERIALIZED (
            SELECT j.id, j.org_id, CASE WHEN j.state <> 'pending' THEN j.unique_hash END AS hash
              FROM daybook.jobs j
             WHERE j.id = ANY (job_ids) AND j.state::text = ANY (states) AND j.state IN ('pending', 'failed', 'cancelled')
               AND (j.queue IS NULL OR EXISTS (SELECT FROM daybook.queues u WHERE u.name = j.queue))
             ORDER BY j.id
               FOR NO KEY UPDATE SKIP LOCKED
        ), chosen AS (
            SELECT DISTINCT ON (m.org_id, m.hash, CASE WHEN m.hash IS NULL THEN m.id END) m.id
              FROM matching m
             WHERE m.hash IS NULL
                OR NOT EXISTS (SELECT FROM daybook.jobs o WHERE o.org_id = m.org_id AND o.unique_hash = m.hash AND o.state IN ('pending', 'leased'))
             ORDER BY m.org_id, m.hash, CASE WHEN m.hash IS NULL THEN m.id END, m.id
        ), updated AS (
            UPDATE daybook.jobs j
               SET state = 'pending', fleet = CASE WHEN j.limit_key IS NULL THEN coalesce((SELECT u.fleet FROM daybook.queues u WHERE u.name = j.queue), 0) ELSE -1 END,
                   first_ready_at = due, generation = j.generation + 1, reclaims = 0, finished_at = NULL,
                   run_count       = CASE retry_jobs.mode WHEN 'reset' THEN 0 ELSE j.run_count END,
                   last_error      = CASE WHEN retry_jobs.mode <> 'reset' THEN j.last_error END,
                   last_error_code = CASE WHEN retry_jobs.mode <> 'reset' THEN j.last_error_code END,
                   progress        = CASE WHEN retry_jobs.mode <> 'reset' THEN j.progress END,
                   ready_at        = CASE WHEN daybook.must_wait(j.id, j.org_id, j.sequence) THEN '9999-12-31 00:00:00+00' ELSE due END,
                   updated_at      = clock_timestamp()
              FROM chosen
             WHERE j.id = chosen.id
            RETURNING j.id, j.awaited
        ), steps AS (
            DELETE FROM daybook.job_steps s USING updated u WHERE s.job_id = u.id AND u.awaited AND retry_jobs.mode = 'reset'
        )
        SELECT count(*), array_agg(u.id) INTO changed, tried FROM updated u;
        PERFORM daybook.note_waiting(tried);
    EXCEPTION WHEN unique_violation THEN
        -- Another transaction has enqueued one of them meanwhile: one by one.
        SELECT count(*) FILTER (WHERE r.result <> 'unchanged') INTO changed
          FROM (SELECT j.id FROM daybook.jobs j
                 WHERE j.id = ANY (job_ids) AND j.state::text = ANY (states) AND j.state IN ('pending', 'failed', 'cancelled')
                   AND (j.queue IS NULL OR EXISTS (SELECT FROM daybook.queues u WHERE u.name = j.queue))
                 ORDER BY j.id
                   FOR NO KEY UPDATE SKIP LOCKED) m
         CROSS JOIN LATERAL daybook.retry_job(m.id, retry_jobs.mode, retry_jobs.delay_seconds) r;
    END;
    IF changed > 0 AND due <= clock_timestamp() + interval '1 minute' THEN
        PERFORM daybook.wake_job_queue();
    END IF;
    RETURN changed;
END
$$;
COMMENT ON FUNCTION daybook.retry_jobs IS
    'retry_job for many: those in one of the states that no other transaction has locked, and whose queue there is';

CREATE FUNCTION daybook.cancel_job(
    INOUT job_id text,
    OUT result   text,
    OUT reason   text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    job daybook.jobs;
BEGIN
    SELECT * INTO job FROM daybook.jobs j WHERE j.id = cancel_job.job_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no job %', cancel_job.job_id USING ERRCODE = 'DB011', HINT = 'check the id, the job may have been purged';
    END IF;
    CASE job.state
        WHEN 'completed' THEN
            RAISE EXCEPTION 'job % is completed', job.id USING ERRCODE = 'DB012', HINT = 'what it did has to be undone elsewhere';
        WHEN 'cancelled' THEN
            result := 'unchanged';
            reason := 'the job is cancelled already';
            RETURN;
        ELSE
            result := CASE WHEN job.working THEN 'cancelling' ELSE 'cancelled' END;
    END CASE;
    PERFORM daybook.cancel_jobs(ARRAY[job.id], ARRAY[job.state::text]);
END
$$;
COMMENT ON FUNCTION daybook.cancel_job IS
    'Asks that a job not be worked. result: cancelled, cancelling (after the running attempt) or unchanged. reason: why it is unchanged';

-- cancel_job for many, as retry_jobs. A job whose attempt has begun is cancelled after it. Any
-- other is cancelled at once, also when it is leased: its worker notices that before it begins the
-- job.
CREATE FUNCTION daybook.cancel_jobs(job_ids text[], states text[]) RETURNS integer
    LANGUAGE sql
AS $$
    WITH matching AS MATERIALIZED (
        SELECT j.id
          FROM daybook.jobs j
         WHERE j.id = ANY (job_ids) AND j.state::text = ANY (states) AND j.state IN ('pending', 'leased', 'failed')
         ORDER BY j.id
           FOR NO KEY UPDATE SKIP LOCKED
    ), updated AS (
        UPDATE daybook.jobs j
           SET state              = CASE WHEN j.working THEN j.state ELSE 'cancelled' END,
               cancel_requested   = j.working,
               generation         = j.generation + (NOT j.cancel_requested)::integer,
               run_count          = CASE WHEN j.state = 'leased' AND NOT j.working THEN greatest(j.run_count - 1, 0) ELSE j.run_count END,
               reclaims          = CASE WHEN j.working THEN j.reclaims ELSE 0 END,
               finished_at        = CASE WHEN NOT j.working THEN clock_timestamp() END,
               turn_id            = CASE WHEN j.working THEN j.turn_id END,
               detached           = j.working AND j.detached,
               fence              = CASE WHEN j.working THEN j.fence END,
               worker             = CASE WHEN j.working THEN j.worker END,
               leased_generation  = CASE WHEN j.working THEN j.leased_generation END,
               attempt_started_at = CASE WHEN j.working THEN j.attempt_started_at END,
               updated_at         = clock_timestamp()
          FROM matching
         WHERE j.id = matching.id
        RETURNING j.id
    )
    SELECT count(*)::integer FROM updated
$$;
COMMENT ON FUNCTION daybook.cancel_jobs IS
    'cancel_job for many: those in one of the states that no other transaction has locked';

-- Why a payload may not be replaced by another one; null: it may. Which members of it are encrypted
-- is not known here: a further one in plain could be one of them.
CREATE FUNCTION daybook.edit_refusal(before jsonb, after jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE
AS $$
    SELECT CASE
        WHEN NOT $1 ? '$encrypted' THEN NULL
        WHEN NOT $2 ? '$encrypted' THEN 'is encrypted, and the new one is not'
        WHEN $1 -> '$encrypted' = $2 -> '$encrypted' AND $2 - ARRAY(SELECT jsonb_object_keys($1)) <> '{}'
            THEN 'is encrypted, and the new one has further members in plain' END
$$;

-- Gives a job another payload. A job that waits may have one, too: it need not use up its attempts
-- first. The idempotency key stands for the request, and keeps the hash of what was asked for: the
-- same request still leads to this job. A unique job is the only one of its new payload, and a job
-- whose limit_key is of its payload, or that has none because of it, gets that of the new one.
CREATE FUNCTION daybook.edit_job(
    INOUT job_id text,
    payload      jsonb,
    actor        text DEFAULT NULL,
    retry        text DEFAULT NULL,
    generation   bigint DEFAULT NULL,
    type         text DEFAULT NULL,
    OUT result   text,
    OUT reason   text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    job     daybook.jobs;
    as_text CONSTANT text := edit_job.payload::text;
BEGIN
    PERFORM daybook.check_job_payload(edit_job.payload, as_text);
    PERFORM daybook.retry_due(edit_job.retry, NULL) WHERE edit_job.retry IS NOT NULL;
    SELECT * INTO job FROM daybook.jobs j WHERE j.id = edit_job.job_id FOR NO KEY UPDATE;
    CASE
        WHEN NOT FOUND THEN
            RAISE EXCEPTION 'there is no job %', edit_job.job_id USING ERRCODE = 'DB011', HINT = 'check the id, the job may have been purged';
        WHEN job.type <> edit_job.type THEN
            RAISE EXCEPTION 'job % has the type %, not %', job.id, job.type, edit_job.type USING ERRCODE = 'DB010';
        WHEN job.state = 'completed' THEN
            RAISE EXCEPTION 'job % is completed', job.id USING ERRCODE = 'DB012', HINT = 'enqueue a new one';
        WHEN job.state = 'leased' THEN
            RAISE EXCEPTION 'job % is being worked', job.id USING ERRCODE = 'DB040', HINT = 'edit it when its attempt has ended';
        WHEN job.generation <> edit_job.generation THEN
            RAISE EXCEPTION 'job % was changed meanwhile', job.id USING ERRCODE = 'DB041', HINT = 'look at it again, and repeat the edit if it is still right';
        WHEN daybook.edit_refusal(job.payload, edit_job.payload) IS NOT NULL THEN
            RAISE EXCEPTION 'the payload of job % %', job.id, daybook.edit_refusal(job.payload, edit_job.payload)
                USING ERRCODE = 'DB010', HINT = 'give all of it, and name the members to encrypt, as when the job was enqueued';
        WHEN jsonb_array_length(job.edits) >= 100 THEN
            RAISE EXCEPTION 'job % was edited 100 times', job.id USING ERRCODE = 'DB010', HINT = 'cancel it, and enqueue a new one';
        ELSE
    END CASE;
    result := 'unchanged';
    reason := 'the job has this payload already';
    IF job.payload <> edit_job.payload THEN
        UPDATE daybook.jobs j
           SET payload     = edit_job.payload,
               unique_hash = CASE j.unique_hash WHEN daybook.job_input_hash(j.type, j.payload::text) THEN daybook.job_input_hash(j.type, as_text)
                                                ELSE j.unique_hash END,
               edits       = coalesce(j.edits, '[]') || jsonb_build_object(
                                 'at', clock_timestamp(), 'by', left(coalesce(nullif(actor, ''), session_user), 255), 'attempts', j.run_count, 'payload', j.payload),
               generation  = j.generation + 1,
               updated_at  = clock_timestamp()
         WHERE j.id = job.id;
        PERFORM daybook.change_limit(job.id, daybook.limit_of(job.type, job.queue, job.org_id, edit_job.payload, NULL))
          WHERE job.limit_key = (SELECT daybook.limit_key(l, job.org_id, job.payload) FROM daybook.job_limits l WHERE l.scope = job.limit_scope)
             OR job.limit_key IS NULL AND daybook.limit_of(job.type, job.queue, job.org_id, job.payload, NULL) IS NULL;
        result := 'edited';
        reason := NULL;
    END IF;
    IF edit_job.retry IS NOT NULL THEN
        SELECT r.result, r.reason INTO result, reason FROM daybook.retry_job(job.id, edit_job.retry) r;
        IF result = 'unchanged' THEN
            RAISE unique_violation USING MESSAGE = reason;
        END IF;
    END IF;
EXCEPTION WHEN unique_violation THEN
    RAISE EXCEPTION 'another job with the payload or schedule of job % is open, and one of the two may be', job.id
        USING ERRCODE = 'DB042', HINT = 'wait for its end, or cancel it, and edit then';
END
$$;
COMMENT ON FUNCTION daybook.edit_job IS
    'Gives a job that waits, is a dead letter or is cancelled another payload, and keeps the old one in edits. retry: null, or the mode by which retry_job tries it again in the same transaction. generation: refused unless the job is still at it. result: edited, unchanged, or what retry_job says';

-- The value at a place of a JSON document (RFC 6901, as json_place reads it); null: there is none.
CREATE FUNCTION daybook.json_at(doc jsonb, place text[]) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    token text;
BEGIN
    FOREACH token IN ARRAY place LOOP
        doc := CASE jsonb_typeof(doc)
            WHEN 'object' THEN doc -> token
            WHEN 'array' THEN CASE WHEN token ~ '^(0|[1-9][0-9]{0,5})$' THEN doc -> token::integer END
        END;
    END LOOP;
    RETURN doc;
END
$$;

-- The tokens of a JSON pointer of a patch.
CREATE FUNCTION daybook.json_place(pointer jsonb) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    as_text CONSTANT text := pointer #>> '{}';
BEGIN
    IF jsonb_typeof(pointer) IS DISTINCT FROM 'string' OR as_text !~ '^(/([^~/]|~[01])*)*$' THEN
        RAISE EXCEPTION 'a JSON patch names places by pointers such as "/lines/0/net", not by %', coalesce(pointer::text, 'nothing') USING ERRCODE = 'DB010';
    END IF;
    RETURN ARRAY(SELECT replace(replace(t.token, '~1', '/'), '~0', '~')
                   FROM regexp_split_to_table(as_text, '/') WITH ORDINALITY AS t (token, n) WHERE t.n > 1 ORDER BY t.n);
END
$$;

-- The document with a value added at a place; null: there is no such place.
CREATE FUNCTION daybook.json_add(doc jsonb, place text[], value jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    n      CONSTANT integer := cardinality(place);
    parent CONSTANT jsonb := daybook.json_at(doc, place[:n - 1]);
    last   CONSTANT text := place[n];
BEGIN
    RETURN CASE
        WHEN n = 0 THEN value
        WHEN jsonb_typeof(parent) = 'object' THEN jsonb_set(doc, place, value)
        WHEN jsonb_typeof(parent) <> 'array' THEN NULL
        WHEN last = '-' THEN jsonb_insert(doc, place[:n - 1] || jsonb_array_length(parent)::text, value)
        WHEN last ~ '^(0|[1-9][0-9]{0,5})$' AND last::integer <= jsonb_array_length(parent) THEN jsonb_insert(doc, place, value)
    END;
END
$$;

-- In SQL, because bulk operations are worked in the database, and any process goes on with them.
CREATE FUNCTION daybook.patch_json(doc jsonb, patch jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    step  jsonb;
    op    text;
    place text[];
    value jsonb;
BEGIN
    IF jsonb_typeof(patch) IS DISTINCT FROM 'array' OR jsonb_array_length(patch) NOT BETWEEN 1 AND 100 THEN
        RAISE EXCEPTION 'a JSON patch is an array of 1 to 100 operations'
            USING ERRCODE = 'DB010', HINT = 'for instance [{"op": "replace", "path": "/currency", "value": "EUR"}]';
    END IF;
    FOR step IN SELECT * FROM jsonb_array_elements(patch) LOOP
        op := step ->> 'op';
        place := daybook.json_place(step -> 'path');
        value := CASE WHEN op IN ('move', 'copy') THEN daybook.json_at(doc, daybook.json_place(step -> 'from')) ELSE step -> 'value' END;
        CASE
            WHEN op IS NULL OR op NOT IN ('add', 'remove', 'replace', 'move', 'copy', 'test') THEN
                RAISE EXCEPTION 'an operation of a JSON patch is add, remove, replace, move, copy or test, not %', coalesce(step -> 'op', 'null')
                    USING ERRCODE = 'DB010';
            WHEN op IN ('add', 'replace', 'test') AND value IS NULL THEN
                RAISE EXCEPTION 'the operation % of a JSON patch needs a value', op USING ERRCODE = 'DB010';
            WHEN op = 'move' AND starts_with(step ->> 'path', concat(step ->> 'from', '/'))
                 OR op = 'remove' AND place = '{}' THEN
                RAISE EXCEPTION 'a JSON patch cannot % %', op, step ->> 'path' USING ERRCODE = 'DB010';
            ELSE
        END CASE;
        CONTINUE WHEN doc IS NULL; -- an earlier operation did not apply
        doc := CASE op
            WHEN 'test' THEN CASE WHEN daybook.json_at(doc, place) = value THEN doc END
            WHEN 'remove' THEN CASE WHEN daybook.json_at(doc, place) IS NOT NULL THEN doc #- place END
            WHEN 'replace' THEN CASE WHEN place = '{}' THEN value WHEN daybook.json_at(doc, place) IS NOT NULL THEN jsonb_set(doc, place, value) END
            WHEN 'move' THEN daybook.json_add(doc #- daybook.json_place(step -> 'from'), place, value)
            ELSE daybook.json_add(doc, place, value)
        END;
        -- Copies of copies would soon fill the memory.
        IF pg_column_size(doc) > 10 * 131072 THEN
            RAISE EXCEPTION 'the patched document has more than 1310720 bytes' USING ERRCODE = 'DB020', HINT = 'a payload may have 131072';
        END IF;
    END LOOP;
    RETURN doc;
END
$$;
COMMENT ON FUNCTION daybook.patch_json IS
    'The document with a JSON patch (RFC 6902); null: the patch does not apply, because a place is missing or a test fails';

-- The payload of a job with a JSON patch; null: the patch does not apply, or changes nothing.
CREATE FUNCTION daybook.patched_payload(payload jsonb, patch jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    patched CONSTANT jsonb := nullif(daybook.patch_json(payload, patch), payload);
BEGIN
    IF patched IS NOT NULL AND patched -> '$encrypted' IS DISTINCT FROM payload -> '$encrypted' THEN
        RAISE EXCEPTION 'a JSON patch reaches the plain members of a payload alone, not "$encrypted"' USING ERRCODE = 'DB010';
    END IF;
    RETURN patched;
END
$$;

-- edit_job with a JSON patch for many: those that are in one of the states and that no other
-- transaction has locked. Returns how many were changed; those that the patch does not apply to,
-- or leaves as they are, or whose payload would be refused, are not. generations, one a job, are
-- edit_job's.
--
-- They are edited one by one and tried again together, which takes a third of the time. Where one
-- of them cannot be tried again, all are undone and edited and tried again one by one.
CREATE FUNCTION daybook.edit_jobs(job_ids text[], states text[], patch jsonb, actor text DEFAULT NULL, retry text DEFAULT NULL,
    generations bigint[] DEFAULT NULL) RETURNS integer
    LANGUAGE plpgsql
AS $$
DECLARE
    job      record;
    wanted   jsonb;
    edited   text[];
    together boolean;
BEGIN
    PERFORM daybook.patch_json('{}', patch);
    PERFORM daybook.retry_due(retry, NULL) WHERE retry IS NOT NULL;
    FOREACH together IN ARRAY '{true,false}'::boolean[] LOOP
        edited := '{}';
        BEGIN
            FOR job IN
                SELECT j.id, j.payload, asked.generation
                  FROM unnest(job_ids, generations) AS asked (id, generation)
                  JOIN daybook.jobs j ON j.id = asked.id
                 WHERE j.state::text = ANY (states) AND j.state IN ('pending', 'failed', 'cancelled')
                 ORDER BY j.id
                   FOR NO KEY UPDATE OF j SKIP LOCKED
            LOOP
                BEGIN
                    wanted := daybook.patched_payload(job.payload, patch);
                    CONTINUE WHEN wanted IS NULL;
                    PERFORM daybook.edit_job(job.id, wanted, actor, CASE WHEN NOT together THEN retry END, job.generation);
                    edited := edited || job.id;
                EXCEPTION WHEN SQLSTATE 'DB010' OR SQLSTATE 'DB020' OR SQLSTATE 'DB021' OR SQLSTATE 'DB023' OR SQLSTATE 'DB041' OR SQLSTATE 'DB042' THEN
                    NULL; -- it is left as it is
                END;
            END LOOP;
            EXIT WHEN NOT together OR retry IS NULL OR daybook.retry_jobs(edited, states, retry) = cardinality(edited);
            RAISE unique_violation;
        EXCEPTION WHEN unique_violation THEN
            NULL;
        END;
    END LOOP;
    RETURN cardinality(edited);
END
$$;
COMMENT ON FUNCTION daybook.edit_jobs IS
    'edit_job with a JSON patch (RFC 6902) for many: those in one of the states that no other transaction has locked. retry: null, or retry_job''s mode';

-- Requests that change many jobs. The jobs are chosen when the request is made. Each batch is
-- changed, counted and removed in one transaction, so that an interrupted request can be continued.
CREATE TABLE daybook.bulk_operations (
    id            text COLLATE "C" PRIMARY KEY DEFAULT daybook.new_id(),
    kind          text NOT NULL DEFAULT 'jobs' CHECK (kind IN ('jobs', 'accounting')),
    org_id        text COLLATE "C" CHECK (org_id <> '' AND octet_length(org_id) <= 255),
    action        text NOT NULL CHECK (action IN ('retry', 'cancel', 'edit')),
    mode          text CHECK (mode IN ('now', 'later', 'reset')),
    delay_seconds double precision,
    patch         jsonb,
    actor         text,
    states        text[] NOT NULL,
    matched       integer NOT NULL DEFAULT 0,
    changed       integer NOT NULL DEFAULT 0,
    left_alone    integer NOT NULL DEFAULT 0,
    left_open     integer NOT NULL DEFAULT 0,
    left_queue    integer NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at   timestamptz,
    CHECK (action = 'edit' OR (action = 'retry') = (mode IS NOT NULL)),
    CHECK ((action = 'edit' AND finished_at IS NULL) = (patch IS NOT NULL)),
    -- Accounting jobs are tried again as mark_accounting_job_pending does it, which counts their
    -- attempts from 0.
    CHECK (kind = 'jobs' OR action = 'retry' AND mode IN ('now', 'later'))
);
COMMENT ON COLUMN daybook.bulk_operations.patch IS
    'The JSON patch of an edit, until it is finished: it may hold what is to be erased';
COMMENT ON COLUMN daybook.bulk_operations.actor IS 'Who edits, for the jobs'' edits';
COMMENT ON COLUMN daybook.bulk_operations.left_open IS
    'Those of left_alone that are to be the only open job of their payload or schedule, while another one is open';
COMMENT ON COLUMN daybook.bulk_operations.left_queue IS 'Those of left_alone whose named queue was deleted';
COMMENT ON COLUMN daybook.bulk_operations.org_id IS 'The organization whose jobs are changed; null: all organizations';
-- Operations that are not finished.
CREATE INDEX bulk_operations_open ON daybook.bulk_operations (updated_at) WHERE finished_at IS NULL;

CREATE TABLE daybook.bulk_batches (
    operation_id text COLLATE "C" NOT NULL REFERENCES daybook.bulk_operations ON DELETE CASCADE,
    n            integer NOT NULL,
    job_ids      text[] NOT NULL,
    generations  bigint[],
    PRIMARY KEY (operation_id, n)
);
COMMENT ON COLUMN daybook.bulk_batches.generations IS
    'Of an edit: the generations that the jobs had when the patch was tried on them. One that has changed since is left alone';

-- mark_accounting_job_pending for many: those in one of the states that no other transaction has
-- locked. Returns how many there were.
CREATE FUNCTION daybook.retry_accounting_jobs(job_ids text[], states text[],
    delay_seconds double precision DEFAULT NULL) RETURNS integer
    LANGUAGE sql
AS $$
    WITH matching AS MATERIALIZED (
        SELECT q.org_id, q.document_id
          FROM daybook.accounting_work_queue q
         WHERE q.id = ANY (job_ids) AND q.state::text = ANY (states) AND q.state IN ('failed', 'cancelled')
         ORDER BY q.org_id, q.document_id
           FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT count(r.job_id)::integer
      FROM matching m
     CROSS JOIN LATERAL daybook.mark_accounting_job_pending(m.org_id, m.document_id, NULL, coalesce(retry_accounting_jobs.delay_seconds, 0)) r
$$;

-- Changes the next batch of jobs of a bulk operation that no other transaction works, and counts
-- them with it. Returns whether there was one; when none is left the operation is finished.
CREATE FUNCTION daybook.work_bulk_batch(operation_id text) RETURNS boolean
    LANGUAGE plpgsql
AS $$
DECLARE
    operation daybook.bulk_operations;
    ids       text[];
    tried     bigint[];
    done      integer;
BEGIN
    DELETE FROM daybook.bulk_batches b
     WHERE b.operation_id = work_bulk_batch.operation_id
       AND b.n = (SELECT c.n FROM daybook.bulk_batches c
                   WHERE c.operation_id = work_bulk_batch.operation_id
                   ORDER BY c.n
                   LIMIT 1
                     FOR UPDATE SKIP LOCKED)
    RETURNING b.job_ids, b.generations INTO ids, tried;
    IF NOT FOUND THEN
        UPDATE daybook.bulk_operations o
           SET finished_at = clock_timestamp(), updated_at = clock_timestamp(), patch = NULL
         WHERE o.id = work_bulk_batch.operation_id AND o.finished_at IS NULL
           AND NOT EXISTS (SELECT FROM daybook.bulk_batches b WHERE b.operation_id = o.id);
        RETURN false;
    END IF;
    SELECT * INTO operation FROM daybook.bulk_operations o WHERE o.id = work_bulk_batch.operation_id;
    done := CASE
        WHEN operation.kind = 'accounting' THEN daybook.retry_accounting_jobs(ids, operation.states, operation.delay_seconds)
        WHEN operation.action = 'edit' THEN daybook.edit_jobs(ids, operation.states, operation.patch, operation.actor, operation.mode, tried)
        WHEN operation.action = 'retry' THEN daybook.retry_jobs(ids, operation.states, operation.mode, operation.delay_seconds)
        ELSE daybook.cancel_jobs(ids, operation.states) END;
    UPDATE daybook.bulk_operations o
       SET changed = o.changed + done, left_alone = o.left_alone + cardinality(ids) - done, updated_at = clock_timestamp()
     WHERE o.id = operation.id;
    IF operation.kind = 'jobs' AND operation.action = 'retry' AND done < cardinality(ids) THEN
        -- The jobs that were to be tried again and have not changed.
        UPDATE daybook.bulk_operations o
           SET left_open = o.left_open + x.open, left_queue = o.left_queue + x.queue
          FROM (SELECT count(*) FILTER (WHERE queued AND daybook.open_twin(j) IS NOT NULL) AS open, count(*) FILTER (WHERE NOT queued) AS queue
                  FROM daybook.jobs j
                 CROSS JOIN LATERAL (SELECT j.queue IS NULL OR EXISTS (SELECT FROM daybook.queues u WHERE u.name = j.queue) AS queued) q
                 WHERE j.id = ANY (ids) AND j.state::text = ANY (operation.states) AND j.state IN ('failed', 'cancelled')) x
         WHERE o.id = operation.id;
    END IF;
    RETURN true;
END
$$;

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.work_bulk_batch, daybook.retry_accounting_jobs;
DROP TABLE daybook.bulk_batches, daybook.bulk_operations;
DROP FUNCTION daybook.edit_jobs, daybook.patched_payload, daybook.patch_json, daybook.json_add, daybook.json_place, daybook.json_at, daybook.edit_job,
    daybook.edit_refusal;
DROP FUNCTION daybook.cancel_jobs, daybook.cancel_job, daybook.retry_jobs, daybook.retry_job, daybook.open_twin,
    daybook.retry_due;
