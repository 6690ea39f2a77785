-- Chapter 9: enqueuing jobs. The Go package queue calls these functions, and programs in other
-- languages may too.
--
-- SQLSTATEs: DB010 the request is invalid, DB011 a job that it is to wait for is unknown, DB020 the
-- payload is too large, DB021 it is invalid, DB022 the idempotency key was used with other input,
-- DB023 there is no such queue.

-- +goose Up
-- +goose StatementBegin

-- The hash of a job's type and payload (as jsonb writes it), by which idempotency keys and unique
-- jobs recognize the same input. webhook and webhook_delivery are two names of one type, and hash
-- alike. Numbers count by their value: jsonb writes 1e0 as 1 and keeps the zeros at the end of 1.0
-- and 1.50, which are left out here. The pattern takes strings whole, so that what looks like a
-- number in them stays. Encrypted members differ each time and are left out. STABLE, as convert_to is: the planner inlines no function that is declared
-- stricter than its body.
CREATE FUNCTION daybook.job_input_hash(type text, payload text) RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT sha256(convert_to(CASE $1 WHEN 'webhook_delivery' THEN 'webhook' ELSE $1 END || E'\n' ||
        CASE WHEN strpos($2, '"$encrypted": {') > 0 THEN ($2::jsonb - '$encrypted')::text
             WHEN $2 ~ '\.[0-9]*0[],}]'
             THEN regexp_replace($2, '("(?:[^"\\]|\\.)*")|(\.[0-9]*[1-9])0+(?![0-9])|\.0+(?![0-9])', '\1\2', 'g')
             ELSE $2 END, 'UTF8'))
$$;

-- By which an open job of the key is found that keeps further ones out (skip_while_open). No type
-- begins with a line break, so it is no job_input_hash.
CREATE FUNCTION daybook.job_skip_hash(key text) RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT sha256(convert_to(E'\n' || $1, 'UTF8'))
$$;

-- Raises DB020 when a payload has more than 131072 bytes, and DB021 when it is no object, is nested
-- deeper than 10 levels, or has more than 500 keys. as_text is payload::text, which the caller has
-- already.
--
-- Walking through a payload is slow, and its text tells enough of nearly all: a key takes at least
-- 5 bytes of it, so 2500 bytes hold no more than 500 keys; and there are no more levels than
-- opening brackets.
CREATE FUNCTION daybook.check_job_payload(payload jsonb, as_text text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    bytes CONSTANT integer := octet_length(as_text);
    deep  integer;
    keys  bigint;
BEGIN
    IF payload IS NULL OR jsonb_typeof(payload) <> 'object' THEN
        RAISE EXCEPTION 'the payload must be a JSON object, not %', coalesce(jsonb_typeof(payload), 'null') USING ERRCODE = 'DB021';
    END IF;
    IF bytes > 131072 THEN
        RAISE EXCEPTION 'the payload has % bytes and may have 131072', bytes
            USING ERRCODE = 'DB020', HINT = 'keep what is large elsewhere, and its name in the payload';
    END IF;
    IF bytes <= 2500 AND 2 * bytes - octet_length(replace(as_text, '{', '')) - octet_length(replace(as_text, '[', '')) <= 10 THEN
        RETURN;
    END IF;
    WITH RECURSIVE walk (value, level) AS (
        SELECT check_job_payload.payload, 1
        UNION ALL
        SELECT inner_value.value, w.level + 1
          FROM walk w
         CROSS JOIN LATERAL (
                SELECT e.value FROM jsonb_each(CASE WHEN jsonb_typeof(w.value) = 'object' THEN w.value END) e
                UNION ALL
                SELECT e.value FROM jsonb_array_elements(CASE WHEN jsonb_typeof(w.value) = 'array' THEN w.value END) e (value)) inner_value
         WHERE jsonb_typeof(inner_value.value) IN ('object', 'array') AND w.level <= 10
    )
    SELECT max(level), sum((SELECT count(*) FROM jsonb_object_keys(CASE WHEN jsonb_typeof(walk.value) = 'object' THEN walk.value END)))
      INTO deep, keys
      FROM walk;
    IF deep > 10 THEN
        RAISE EXCEPTION 'the payload is nested deeper than 10 levels' USING ERRCODE = 'DB021';
    END IF;
    IF keys > 500 THEN
        RAISE EXCEPTION 'the payload has % keys and may have 500', keys USING ERRCODE = 'DB021';
    END IF;
END
$$;

-- Raises DB010 when a part of a request other than its payload is invalid.
CREATE FUNCTION daybook.check_job_request(
    org_id text, type text, idempotency_key text, ready_at timestamptz, priority integer, max_attempts integer,
    links jsonb
) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF coalesce(org_id, '') = '' OR octet_length(org_id) > 255 THEN
        RAISE EXCEPTION 'organization id must have 1 to 255 bytes' USING ERRCODE = 'DB010';
    END IF;
    IF type IS NULL OR octet_length(type) > 64 OR type !~ '^[A-Za-z][A-Za-z0-9_.:-]*$' THEN
        RAISE EXCEPTION 'type must be a letter and then letters, digits, "_", ".", ":" or "-", 64 bytes at most' USING ERRCODE = 'DB010';
    END IF;
    IF idempotency_key = '' OR octet_length(idempotency_key) > 255 THEN
        RAISE EXCEPTION 'idempotency key must have 1 to 255 bytes, or be null' USING ERRCODE = 'DB010';
    END IF;
    IF priority NOT BETWEEN 1 AND 3 THEN
        RAISE EXCEPTION 'priority must be 1 (high), 2 (normal) or 3 (low), not %', priority USING ERRCODE = 'DB010';
    END IF;
    IF max_attempts NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'max_attempts must be from 1 to 1000, not %', max_attempts
            USING ERRCODE = 'DB010', HINT = 'leave it null for the policy of the type''s handler';
    END IF;
    IF ready_at > '9999-12-31 23:59:59+00' THEN
        RAISE EXCEPTION 'ready_at must not be infinity or after the year 9999' USING ERRCODE = 'DB010', HINT = 'enqueue the job when it is to be worked';
    END IF;
    IF links IS NULL THEN
        RETURN;
    END IF;
    IF jsonb_typeof(links) <> 'array' THEN
        RAISE EXCEPTION 'links must be an array' USING ERRCODE = 'DB010', HINT = 'for instance [{"kind": "order", "id": "o_1"}]';
    END IF;
    IF jsonb_array_length(links) > 32 THEN
        RAISE EXCEPTION 'a job may have 32 links, not %', jsonb_array_length(links) USING ERRCODE = 'DB010';
    END IF;
    IF EXISTS (SELECT FROM jsonb_array_elements(links) l
                WHERE jsonb_typeof(l) <> 'object' OR jsonb_typeof(l -> 'kind') IS DISTINCT FROM 'string' OR jsonb_typeof(l -> 'id') IS DISTINCT FROM 'string'
                   OR octet_length(l ->> 'kind') NOT BETWEEN 1 AND 64 OR octet_length(l ->> 'id') NOT BETWEEN 1 AND 255) THEN
        RAISE EXCEPTION 'a link must be an object with a kind of 1 to 64 bytes and an id of 1 to 255'
            USING ERRCODE = 'DB010', HINT = 'for instance {"kind": "order", "id": "o_1"}';
    END IF;
END
$$;

-- Reports whether a request may be invalid; only then is check_job called. It is false for a valid
-- request without links whose payload is short and contains no object or array. The caller checks
-- the pattern of the type. One expression, so that the planner can inline it.
CREATE FUNCTION daybook.job_in_doubt(
    org_id text, type text, payload jsonb, as_text text, idempotency_key text, ready_at timestamptz, priority integer,
    max_attempts integer, links jsonb
) RETURNS boolean
    LANGUAGE sql IMMUTABLE
AS $$
    SELECT (org_id <> '' AND octet_length(org_id) <= 255 AND octet_length(type) <= 64
            AND jsonb_typeof(payload) = 'object' AND octet_length(as_text) <= 2500 AND strpos(as_text, ': {') = 0 AND strpos(as_text, '[') = 0
            AND (idempotency_key IS NULL OR octet_length(idempotency_key) BETWEEN 1 AND 255)
            AND (ready_at IS NULL OR ready_at <= '9999-12-31 23:59:59+00') AND (priority IS NULL OR priority BETWEEN 1 AND 3)
            AND (max_attempts IS NULL OR max_attempts BETWEEN 1 AND 1000) AND links IS NULL) IS NOT TRUE
$$;

-- Returns the payload of a valid request; raises DB010, DB020 or DB021 when the request is invalid.
CREATE FUNCTION daybook.check_job(
    org_id text, type text, payload jsonb, as_text text, idempotency_key text, ready_at timestamptz, priority integer,
    max_attempts integer, links jsonb
) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    PERFORM daybook.check_job_request(org_id, type, idempotency_key, ready_at, priority, max_attempts, links);
    PERFORM daybook.check_job_payload(payload, as_text);
    RETURN payload;
END
$$;

-- The ids of a JSON array of ids; null for null.
CREATE FUNCTION daybook.job_ids(list jsonb) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF jsonb_typeof(list) <> 'array' THEN
        RAISE EXCEPTION 'the jobs to wait for must be an array of ids, not %', jsonb_typeof(list) USING ERRCODE = 'DB010';
    END IF;
    RETURN CASE WHEN list IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(list)) END;
END
$$;

-- Raises DB010 when a request's named queue, sequence, awaited jobs or limit key are invalid;
-- requests without them are not checked.
CREATE FUNCTION daybook.check_job_order(queue text, sequence text, after text[], limit_key text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF queue IS NOT NULL AND (octet_length(queue) > 64 OR queue !~ '^[A-Za-z][A-Za-z0-9_.:-]*$') THEN
        RAISE EXCEPTION 'queue must be a letter and then letters, digits, "_", ".", ":" or "-", 64 bytes at most' USING ERRCODE = 'DB010';
    END IF;
    IF sequence = '' OR octet_length(sequence) > 255 THEN
        RAISE EXCEPTION 'sequence must have 1 to 255 bytes, or be null' USING ERRCODE = 'DB010';
    END IF;
    IF limit_key = '' OR octet_length(limit_key) > 255 THEN
        RAISE EXCEPTION 'limit_key must have 1 to 255 bytes, or be null' USING ERRCODE = 'DB010';
    END IF;
    IF cardinality(after) > 100 THEN
        RAISE EXCEPTION 'a job may wait for 100 others, not %', cardinality(after)
            USING ERRCODE = 'DB010', HINT = 'let a job of its own wait for some of them, and this one for that';
    END IF;
    IF array_position(after, NULL) IS NOT NULL OR array_ndims(after) > 1 THEN
        RAISE EXCEPTION 'after must be a list of job ids' USING ERRCODE = 'DB010';
    END IF;
END
$$;

-- Merges a request into the unique job of the same input that is open, whose row the caller has
-- locked. Returns enqueue_job's result.
--
-- An attempt that has begun may have read old data, so the job is pending again after it. A job
-- that has not begun will read what the caller wrote. If it was never tried it is moved to an
-- earlier time; if it waits after an attempt it keeps its time. Steps that were kept before the
-- request are forgotten: what they did, they did with old data.
CREATE FUNCTION daybook.join_unique_job(opened daybook.jobs, due timestamptz, asked_priority integer) RETURNS text
    LANGUAGE plpgsql
AS $$
BEGIN
    IF opened.working THEN
        UPDATE daybook.jobs j
           SET generation = j.generation + 1, cancel_requested = false, priority = least(j.priority, asked_priority), updated_at = clock_timestamp(),
               ready_at = CASE WHEN j.generation = j.leased_generation OR j.cancel_requested THEN due ELSE least(j.ready_at, due) END
         WHERE j.id = opened.id;
        RETURN 'coalesced';
    END IF;
    IF opened.awaited THEN
        DELETE FROM daybook.job_steps s WHERE s.job_id = opened.id;
    END IF;
    IF opened.cancel_requested THEN
        -- The attempt has not begun: without the cancellation it will.
        UPDATE daybook.jobs j
           SET generation = j.leased_generation, cancel_requested = false, updated_at = clock_timestamp()
         WHERE j.id = opened.id;
        RETURN 'coalesced';
    END IF;
    IF opened.state = 'pending' AND opened.run_count = 0 AND opened.last_attempted_at IS NULL
       AND due < (CASE WHEN daybook.is_waiting(opened) THEN opened.first_ready_at ELSE opened.ready_at END) THEN
        UPDATE daybook.jobs j
           SET ready_at = CASE WHEN daybook.is_waiting(opened) THEN j.ready_at ELSE due END, first_ready_at = due, priority = least(j.priority, asked_priority), updated_at = clock_timestamp()
         WHERE j.id = opened.id;
        IF opened.fleet < 0 OR daybook.must_wake(daybook.jobs_key(opened.fleet), due) THEN
            PERFORM daybook.wake_job_queue(opened.fleet);
        END IF;
        RETURN 'rescheduled';
    END IF;
    IF opened.state = 'pending' AND asked_priority < opened.priority THEN
        -- A worker's cursor of the new priority may have passed the job's time already: the time of
        -- this request is ahead of it.
        UPDATE daybook.jobs j
           SET priority = asked_priority, ready_at = greatest(j.ready_at, clock_timestamp()), updated_at = clock_timestamp()
         WHERE j.id = opened.id;
    END IF;
    RETURN 'unchanged';
END
$$;

-- ready_at: null or in the past is now. priority: null is 2 (normal). max_attempts: null is the
-- policy of the type's handler. duplicate: job_id is a job that existed before. result:
--   enqueued     a new job was made
--   unchanged    the key's job, or the unique one that waits, does what is asked for; a higher priority is given to the latter
--   rescheduled  the unique job is due earlier now
--   coalesced    the unique job is running and is worked again after its attempt, or its cancellation was undone
--   skipped      a job of skip_while_open's key is open, and nothing was asked of it
--   replaced     the debounced job that waits has a new payload
-- queue: the named queue; null is default. sequence: jobs of one organization and sequence are
-- worked one after the other. after: ids of jobs of the organization that must have been completed
-- before; after_any_end: it is enough that they have ended, also as dead letters, cancelled or
-- removed. A job that existed before keeps its own. skip_while_open: a key; while a job of the
-- organization that was enqueued with it waits or runs, nothing is enqueued, and job_id is that
-- job. It is not combined with unique_payload, which has a running job worked again. min_version: the
-- lowest version of the type's handler that may work it; null is any. A unique job that existed
-- before gets the higher one. debounce: has the job wait for further requests with a key, which
-- change it (debounce_job). limit_key: what it shares the limit of its queue or its type with
-- (set_job_limit); null: what the limit itself says.
CREATE FUNCTION daybook.enqueue_job(
    org_id          text,
    type            text,
    payload         jsonb,
    idempotency_key text DEFAULT NULL,
    ready_at        timestamptz DEFAULT NULL,
    priority        integer DEFAULT NULL,
    max_attempts    integer DEFAULT NULL,
    links           jsonb DEFAULT NULL,
    unique_payload  boolean DEFAULT false,
    queue           text DEFAULT NULL,
    sequence        text DEFAULT NULL,
    after           text[] DEFAULT NULL,
    after_any_end   boolean DEFAULT false,
    skip_while_open text DEFAULT NULL,
    min_version     integer DEFAULT NULL,
    debounce        jsonb DEFAULT NULL,
    limit_key       text DEFAULT NULL,
    OUT job_id      text,
    OUT duplicate   boolean,
    OUT result      text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    due     timestamptz := greatest(coalesce(enqueue_job.ready_at, '-infinity'), clock_timestamp());
    wake    boolean;
    as_text text;
    hash    bytea;
    -- What no other open job of the organization may have.
    single  bytea;
    -- The named queue, and the fleet that works it.
    named   text;
    crew    smallint;
    -- It waits for others: it is due when they have ended.
    waits   boolean;
    first   record;
    opened  daybook.jobs;
BEGIN
    -- Most requests ask for no more than this. One statement checks and serves them, because
    -- PL/pgSQL prepares each expression anew in each transaction that reaches it: the rest of this
    -- function then takes a fifth of what an enqueue costs. A priority out of range is left to the
    -- checks below: the planner may cast it to smallint, and fail, before the statement's condition
    -- is looked at.
    IF num_nonnulls(enqueue_job.idempotency_key, enqueue_job.queue, enqueue_job.sequence, enqueue_job.after, skip_while_open, enqueue_job.min_version,
                    debounce, enqueue_job.limit_key) = 0 AND NOT unique_payload
       AND coalesce(enqueue_job.priority, 2) BETWEEN 1 AND 3 THEN
        INSERT INTO daybook.jobs (org_id, type, payload, ready_at, first_ready_at, priority, max_attempts)
        SELECT enqueue_job.org_id, enqueue_job.type, enqueue_job.payload, due, due, coalesce(enqueue_job.priority, 2), enqueue_job.max_attempts
         WHERE enqueue_job.type ~ '^[A-Za-z][A-Za-z0-9_.:-]*$'
           AND NOT daybook.job_in_doubt(enqueue_job.org_id, enqueue_job.type, enqueue_job.payload, enqueue_job.payload::text, NULL, enqueue_job.ready_at,
                                        enqueue_job.priority, enqueue_job.max_attempts, enqueue_job.links)
           AND NOT EXISTS (SELECT FROM daybook.job_limits l WHERE l.scope = enqueue_job.type)
        RETURNING id, false, 'enqueued', daybook.must_wake(daybook.jobs_key(0), due) INTO job_id, duplicate, result, wake;
        -- Null: the request may be invalid, or its type has a limit, and no row was made.
        IF NOT wake THEN
            RETURN;
        ELSIF wake THEN
            PERFORM daybook.wake_job_queue(0);
            RETURN;
        END IF;
    ELSIF debounce IS NOT NULL THEN
        IF unique_payload
           OR num_nonnulls(enqueue_job.idempotency_key, enqueue_job.ready_at, enqueue_job.sequence, enqueue_job.after, skip_while_open, enqueue_job.min_version) > 0 THEN
            RAISE EXCEPTION 'debounce is not combined with an idempotency key, a time, unique_payload, sequence, after, skip_while_open or min_version'
                USING ERRCODE = 'DB010', HINT = 'the key of debounce says which requests are one, and wait_seconds when the job is due';
        END IF;
        SELECT d.job_id, d.duplicate, d.result INTO job_id, duplicate, result
          FROM daybook.debounce_job(enqueue_job.org_id, enqueue_job.type, enqueue_job.payload, debounce, enqueue_job.priority, enqueue_job.max_attempts,
                                    enqueue_job.links, enqueue_job.queue, enqueue_job.limit_key) d;
        RETURN;
    END IF;

    as_text := enqueue_job.payload::text;
    named := nullif(enqueue_job.queue, 'default');
    crew := CASE WHEN named IS NULL THEN 0 ELSE daybook.queue_fleet(named) END;
    waits := enqueue_job.sequence IS NOT NULL OR coalesce(cardinality(enqueue_job.after), 0) > 0;
    IF daybook.job_in_doubt(enqueue_job.org_id, enqueue_job.type, enqueue_job.payload, as_text, enqueue_job.idempotency_key, enqueue_job.ready_at,
                            enqueue_job.priority, enqueue_job.max_attempts, enqueue_job.links)
       OR enqueue_job.type !~ '^[A-Za-z][A-Za-z0-9_.:-]*$' THEN
        PERFORM daybook.check_job(enqueue_job.org_id, enqueue_job.type, enqueue_job.payload, as_text, enqueue_job.idempotency_key,
                                  enqueue_job.ready_at, enqueue_job.priority, enqueue_job.max_attempts, enqueue_job.links);
    END IF;
    IF waits OR num_nonnulls(enqueue_job.queue, enqueue_job.limit_key) > 0 THEN
        PERFORM daybook.check_job_order(enqueue_job.queue, enqueue_job.sequence, enqueue_job.after, enqueue_job.limit_key);
    END IF;
    IF enqueue_job.min_version < 1 THEN
        RAISE EXCEPTION 'min_version must be at least 1, not %', enqueue_job.min_version USING ERRCODE = 'DB010', HINT = 'leave it null for any version';
    END IF;
    duplicate := false;
    result := 'enqueued';

    IF enqueue_job.idempotency_key IS NOT NULL OR unique_payload OR skip_while_open IS NOT NULL THEN
        hash := daybook.job_input_hash(enqueue_job.type, as_text);
    END IF;
    IF skip_while_open IS NOT NULL THEN
        IF unique_payload OR octet_length(skip_while_open) NOT BETWEEN 1 AND 255 THEN
            RAISE EXCEPTION 'skip_while_open must have 1 to 255 bytes, and is not combined with unique_payload' USING ERRCODE = 'DB010';
        END IF;
        single := daybook.job_skip_hash(skip_while_open);
    ELSIF unique_payload THEN
        single := hash;
    END IF;
    -- The conflicting job may have been removed, or have ended, before it is read: then the insert
    -- is tried again.
    WHILE job_id IS NULL LOOP
        due := greatest(due, clock_timestamp());
        INSERT INTO daybook.jobs (org_id, type, payload, input_hash, idempotency_key, unique_hash, ready_at, first_ready_at, priority, max_attempts,
                                  fleet, queue, sequence, awaited, min_version, limit_scope, limit_key)
        SELECT enqueue_job.org_id, enqueue_job.type, enqueue_job.payload, hash, enqueue_job.idempotency_key, single,
                CASE WHEN waits THEN '9999-12-31 00:00:00+00' ELSE due END, due, coalesce(enqueue_job.priority, 2), enqueue_job.max_attempts,
                CASE WHEN k.lim IS NULL THEN crew ELSE -1 END, named, enqueue_job.sequence, num_nonnulls(enqueue_job.sequence, k.lim) > 0, enqueue_job.min_version,
                k.lim[1], k.lim[2]
          FROM (SELECT CASE WHEN enqueue_job.limit_key IS NOT NULL OR EXISTS (SELECT FROM daybook.job_limits l WHERE l.scope IN (enqueue_job.type, 'queue/' || named))
                            THEN daybook.limit_of(enqueue_job.type, named, enqueue_job.org_id, enqueue_job.payload, enqueue_job.limit_key) END AS lim OFFSET 0) k
        ON CONFLICT DO NOTHING
        RETURNING id INTO job_id;
        EXIT WHEN FOUND;

        IF enqueue_job.idempotency_key IS NOT NULL THEN
            SELECT j.id, j.input_hash INTO first
              FROM daybook.jobs j
             WHERE j.org_id = enqueue_job.org_id AND j.idempotency_key = enqueue_job.idempotency_key;
            IF FOUND THEN
                IF first.input_hash <> hash THEN
                    RAISE EXCEPTION 'the idempotency key % of organization % was used for other input', enqueue_job.idempotency_key, enqueue_job.org_id
                        USING ERRCODE = 'DB022', HINT = 'use a key of its own for each type and payload';
                END IF;
                job_id := first.id;
                duplicate := true;
                result := 'unchanged';
                RETURN;
            END IF;
        END IF;
        IF skip_while_open IS NOT NULL THEN
            SELECT j.id INTO job_id
              FROM daybook.jobs j
             WHERE j.org_id = enqueue_job.org_id AND j.unique_hash = single AND j.state IN ('pending', 'leased');
            IF FOUND THEN
                duplicate := true;
                result := 'skipped';
                RETURN;
            END IF;
        END IF;
        IF unique_payload THEN
            -- The lock lasts until the caller commits: an attempt that begins after that sees what
            -- the caller wrote.
            SELECT * INTO opened
              FROM daybook.jobs j
             WHERE j.org_id = enqueue_job.org_id AND j.unique_hash = hash AND j.state IN ('pending', 'leased')
               FOR NO KEY UPDATE;
            IF FOUND THEN
                job_id := opened.id;
                duplicate := true;
                result := daybook.join_unique_job(opened, due, enqueue_job.priority);
                IF enqueue_job.min_version > coalesce(opened.min_version, 0) THEN
                    UPDATE daybook.jobs j SET min_version = enqueue_job.min_version, updated_at = clock_timestamp() WHERE j.id = opened.id;
                END IF;
                RETURN;
            END IF;
        END IF;
    END LOOP;

    IF enqueue_job.links IS NOT NULL THEN
        INSERT INTO daybook.job_links (job_id, kind, id)
        SELECT DISTINCT enqueue_job.job_id, l ->> 'kind', l ->> 'id' FROM jsonb_array_elements(enqueue_job.links) l;
    END IF;
    IF waits THEN
        PERFORM daybook.hold_jobs(ARRAY[job_id], ARRAY[enqueue_job.org_id], ARRAY[enqueue_job.sequence], ARRAY[to_jsonb(enqueue_job.after)],
                                  ARRAY[enqueue_job.after_any_end]);
        due := clock_timestamp();
    END IF;
    IF daybook.must_wake(daybook.jobs_key(crew), due) THEN
        PERFORM daybook.wake_job_queue(crew);
    END IF;
END
$$;
COMMENT ON FUNCTION daybook.enqueue_job IS
    'Asks for a background job. In a CTE it runs only if the query reads from that CTE';

-- Many jobs at once. The first three arrays must be equally long; each other one is null or as long
-- as they are. ordinal is the position in the arrays, from 1. afters are JSON arrays of ids. Jobs
-- of one sequence follow each other in the order of the arrays.
--
-- Unique jobs are inserted first, in the order of organization and hash; then jobs with a key, in
-- the order of organization and key; debounced jobs last, in the order of organization, type and
-- key. So two callers do not deadlock, unless jobs are unique and have a key as well.
CREATE FUNCTION daybook.enqueue_jobs(
    org_ids          text[],
    types            text[],
    payloads         jsonb[],
    idempotency_keys text[] DEFAULT NULL,
    ready_ats        timestamptz[] DEFAULT NULL,
    priorities       integer[] DEFAULT NULL,
    max_attempts     integer[] DEFAULT NULL,
    links            jsonb[] DEFAULT NULL,
    unique_payloads  boolean[] DEFAULT NULL,
    queues           text[] DEFAULT NULL,
    sequences        text[] DEFAULT NULL,
    afters           jsonb[] DEFAULT NULL,
    afters_any_end   boolean[] DEFAULT NULL,
    min_versions     integer[] DEFAULT NULL,
    debounces        jsonb[] DEFAULT NULL,
    limit_keys       text[] DEFAULT NULL
) RETURNS TABLE (ordinal integer, job_id text, duplicate boolean, result text)
    LANGUAGE plpgsql
    -- JIT is off: compiling takes longer than running.
    SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    total CONSTANT integer := coalesce(cardinality(org_ids), 0);
    req   record;
    -- The ids that new jobs get, by position, and those of them that were inserted.
    ids   text[];
    fresh text[];
    -- Whether a type is invalid. A call has few different types, and each is checked once.
    strange boolean;
    -- Whether a type or a queue has a limit by key.
    limited boolean;
    -- The earliest time of the jobs that were inserted.
    due   timestamptz := '-infinity';
BEGIN
    IF coalesce(cardinality(types), 0) <> total OR coalesce(cardinality(payloads), 0) <> total
       OR coalesce(cardinality(idempotency_keys), total) <> total OR coalesce(cardinality(ready_ats), total) <> total
       OR coalesce(cardinality(priorities), total) <> total OR coalesce(cardinality(enqueue_jobs.max_attempts), total) <> total
       OR coalesce(cardinality(links), total) <> total OR coalesce(cardinality(unique_payloads), total) <> total
       OR coalesce(cardinality(queues), total) <> total OR coalesce(cardinality(sequences), total) <> total
       OR coalesce(cardinality(afters), total) <> total OR coalesce(cardinality(afters_any_end), total) <> total
       OR coalesce(cardinality(min_versions), total) <> total OR coalesce(cardinality(debounces), total) <> total
       OR coalesce(cardinality(limit_keys), total) <> total THEN
        RAISE EXCEPTION 'all arrays must be equally long, or null but for org_ids, types and payloads' USING ERRCODE = 'DB010';
    END IF;
    IF 0 >= ANY (min_versions) THEN
        RAISE EXCEPTION 'min_versions must be at least 1' USING ERRCODE = 'DB010', HINT = 'leave them null for any version';
    END IF;
    IF debounces IS NOT NULL THEN
        RETURN QUERY
        SELECT x.places[e.ordinal], e.job_id, e.duplicate, e.result
          FROM (SELECT array_agg(u.n::integer ORDER BY u.n) AS places, array_agg(u.org ORDER BY u.n) AS orgs, array_agg(u.type ORDER BY u.n) AS types,
                       array_agg(u.payload ORDER BY u.n) AS payloads, array_agg(u.key ORDER BY u.n) AS keys, array_agg(u.ready_at ORDER BY u.n) AS ready_ats,
                       array_agg(u.priority ORDER BY u.n) AS priorities, array_agg(u.attempts ORDER BY u.n) AS attempts, array_agg(u.links ORDER BY u.n) AS links,
                       array_agg(u.is_unique ORDER BY u.n) AS uniques, array_agg(u.queue ORDER BY u.n) AS queues, array_agg(u.sequence ORDER BY u.n) AS sequences,
                       array_agg(u.after ORDER BY u.n) AS afters, array_agg(u.any_end ORDER BY u.n) AS any_ends, array_agg(u.min_version ORDER BY u.n) AS min_versions,
                       array_agg(u.limit_key ORDER BY u.n) AS limit_keys
                  FROM unnest(org_ids, types, payloads, idempotency_keys, ready_ats, priorities, enqueue_jobs.max_attempts, links, unique_payloads,
                              queues, sequences, afters, afters_any_end, min_versions, debounces, limit_keys)
                       WITH ORDINALITY AS u (org, type, payload, key, ready_at, priority, attempts, links, is_unique, queue, sequence, after, any_end, min_version, debounce, limit_key, n)
                 WHERE u.debounce IS NULL) x
         CROSS JOIN LATERAL daybook.enqueue_jobs(x.orgs, x.types, x.payloads, x.keys, x.ready_ats, x.priorities, x.attempts, x.links, x.uniques,
                                                 x.queues, x.sequences, x.afters, x.any_ends, x.min_versions, limit_keys => x.limit_keys) e;
        RETURN QUERY
        SELECT d.* FROM daybook.debounce_jobs(org_ids, types, payloads, debounces, idempotency_keys, ready_ats, priorities, enqueue_jobs.max_attempts,
                                              links, unique_payloads, queues, sequences, afters, min_versions, limit_keys) d;
        RETURN;
    END IF;
    ids := daybook.new_ids(total);
    IF queues IS NOT NULL OR sequences IS NOT NULL OR afters IS NOT NULL OR limit_keys IS NOT NULL THEN
        PERFORM daybook.check_job_order(x.queue, x.sequence, daybook.job_ids(x.after), x.limit_key)
           FROM unnest(queues, sequences, afters, limit_keys) AS x (queue, sequence, after, limit_key);
    END IF;
    SELECT bool_or((t.type ~ '^[A-Za-z][A-Za-z0-9_.:-]*$') IS NOT TRUE), bool_or(EXISTS (SELECT FROM daybook.job_limits l WHERE l.scope = t.type))
           OR queues IS NOT NULL AND EXISTS (SELECT FROM daybook.job_limits l WHERE l.queue = ANY (queues))
      INTO strange, limited
      FROM (SELECT DISTINCT unnest(types) AS type) t;

    -- OFFSET 0 keeps the planner from making a payload's text anew for each use.
    IF idempotency_keys IS NULL AND unique_payloads IS NULL THEN
        -- None of these conflicts with another job.
        INSERT INTO daybook.jobs (id, org_id, type, payload, ready_at, first_ready_at, priority, max_attempts, fleet, queue, sequence, awaited, min_version, limit_scope, limit_key)
        SELECT r.id, r.org, r.type,
               CASE WHEN strange OR daybook.job_in_doubt(r.org, r.type, r.payload, r.as_text, NULL, r.ready_at, r.priority, r.attempts, r.links)
                    THEN daybook.check_job(r.org, r.type, r.payload, r.as_text, NULL, r.ready_at, r.priority, r.attempts, r.links)
                    ELSE r.payload END,
               CASE WHEN r.sequence IS NOT NULL OR r.after <> '[]' THEN '9999-12-31 00:00:00+00' ELSE r.due END, r.due,
               coalesce(r.priority, 2), r.attempts, least(CASE WHEN r.queue IS NULL THEN 0 ELSE daybook.queue_fleet(r.queue) END, CASE WHEN r.lim IS NOT NULL THEN -1 END), r.queue, r.sequence,
               num_nonnulls(r.sequence, r.lim) > 0, r.min_version, r.lim[1], r.lim[2]
          FROM (SELECT x.*, CASE WHEN limited OR x.limit_key IS NOT NULL THEN daybook.limit_of(x.type, x.queue, x.org, x.payload, x.limit_key) END AS lim,
                       x.payload::text AS as_text, greatest(coalesce(x.ready_at, '-infinity'), clock_timestamp()) AS due
                  FROM (SELECT unnest(ids) AS id, unnest(org_ids) AS org, unnest(types) AS type, unnest(payloads) AS payload, unnest(ready_ats) AS ready_at,
                               unnest(priorities) AS priority, unnest(enqueue_jobs.max_attempts) AS attempts, unnest(links) AS links,
                               nullif(unnest(queues), 'default') AS queue, unnest(sequences) AS sequence, unnest(afters) AS after,
                               unnest(min_versions) AS min_version, unnest(limit_keys) AS limit_key) x
                OFFSET 0) r;
        fresh := ids;
    ELSE
        WITH hashed AS MATERIALIZED (
            SELECT r.*, CASE WHEN r.is_unique OR r.key IS NOT NULL THEN daybook.job_input_hash(r.type, r.as_text) END AS hash,
                   CASE WHEN strange OR daybook.job_in_doubt(r.org, r.type, r.payload, r.as_text, r.key, r.ready_at, r.priority, r.attempts, r.links)
                        THEN daybook.check_job(r.org, r.type, r.payload, r.as_text, r.key, r.ready_at, r.priority, r.attempts, r.links)
                        ELSE r.payload END AS checked
              FROM (SELECT x.*, CASE WHEN limited OR x.limit_key IS NOT NULL THEN daybook.limit_of(x.type, x.queue, x.org, x.payload, x.limit_key) END AS lim,
                           x.payload::text AS as_text, greatest(coalesce(x.ready_at, '-infinity'), clock_timestamp()) AS due,
                           coalesce(x.asked_unique, false) AS is_unique
                      FROM (SELECT generate_series(1, total) AS n, unnest(ids) AS id, unnest(org_ids) AS org, unnest(types) AS type,
                                   unnest(payloads) AS payload, unnest(idempotency_keys) AS key,
                                   unnest(ready_ats) AS ready_at, unnest(priorities) AS priority, unnest(enqueue_jobs.max_attempts) AS attempts,
                                   unnest(links) AS links, unnest(unique_payloads) AS asked_unique,
                                   nullif(unnest(queues), 'default') AS queue, unnest(sequences) AS sequence, unnest(afters) AS after,
                                   unnest(min_versions) AS min_version, unnest(limit_keys) AS limit_key) x
                    OFFSET 0) r
        ), ins AS (
            INSERT INTO daybook.jobs AS j (id, org_id, type, payload, input_hash, idempotency_key, unique_hash, ready_at, first_ready_at, priority,
                                           max_attempts, fleet, queue, sequence, awaited, min_version, limit_scope, limit_key)
            SELECT h.id, h.org, h.type, h.checked, h.hash, h.key, CASE WHEN h.is_unique THEN h.hash END,
                   CASE WHEN h.sequence IS NOT NULL OR h.after <> '[]' THEN '9999-12-31 00:00:00+00' ELSE h.due END, h.due,
                   coalesce(h.priority, 2), h.attempts, least(CASE WHEN h.queue IS NULL THEN 0 ELSE daybook.queue_fleet(h.queue) END, CASE WHEN h.lim IS NOT NULL THEN -1 END), h.queue, h.sequence,
                   num_nonnulls(h.sequence, h.lim) > 0, h.min_version, h.lim[1], h.lim[2]
              FROM hashed h
             ORDER BY h.is_unique DESC, CASE WHEN h.is_unique OR h.key IS NOT NULL THEN h.org END COLLATE "C",
                      CASE WHEN h.is_unique THEN h.hash END, h.key COLLATE "C", h.n
            ON CONFLICT DO NOTHING
            RETURNING j.id
        )
        SELECT coalesce(array_agg(ins.id), '{}') INTO fresh FROM ins;
    END IF;

    -- IS TRUE keeps IN from becoming a join: its ids are looked up in a hash, also when the planner
    -- expects few rows.
    IF links IS NOT NULL THEN
        INSERT INTO daybook.job_links (job_id, kind, id)
        SELECT DISTINCT x.id, l ->> 'kind', l ->> 'id'
          FROM unnest(ids, links) AS x (id, links) CROSS JOIN jsonb_array_elements(x.links) l
         WHERE (x.id IN (SELECT unnest(fresh))) IS TRUE;
    END IF;
    IF sequences IS NOT NULL OR afters IS NOT NULL THEN
        PERFORM daybook.hold_jobs(array_agg(x.id ORDER BY x.n), array_agg(x.org ORDER BY x.n), array_agg(x.sequence ORDER BY x.n), array_agg(x.after ORDER BY x.n),
                                  array_agg(x.any_end ORDER BY x.n))
           FROM unnest(ids, org_ids, sequences, afters, afters_any_end) WITH ORDINALITY AS x (id, org, sequence, after, any_end, n)
          WHERE (x.id IN (SELECT unnest(fresh))) IS TRUE AND (x.sequence IS NOT NULL OR x.after <> '[]');
    ELSIF ready_ats IS NOT NULL THEN
        due := (SELECT min(coalesce(x.ready_at, '-infinity')) FROM unnest(ids, ready_ats) AS x (id, ready_at) WHERE (x.id IN (SELECT unnest(fresh))) IS TRUE);
    END IF;
    IF cardinality(fresh) > 0 AND queues IS NULL AND daybook.must_wake(2, due) THEN
        PERFORM daybook.wake_job_queue(0);
    ELSIF cardinality(fresh) > 0 AND queues IS NOT NULL AND due <= clock_timestamp() + interval '1 minute' THEN
        PERFORM daybook.wake_job_queue();
    END IF;
    IF cardinality(fresh) = total THEN
        RETURN QUERY SELECT generate_series(1, total), unnest(ids), false, 'enqueued'::text;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT x.n::integer, x.id, false, 'enqueued'::text
      FROM unnest(ids) WITH ORDINALITY AS x (id, n)
     WHERE (x.id IN (SELECT unnest(fresh))) IS TRUE;

    -- Requests that met an existing job, and repeats within this call, are made one by one, by
    -- enqueue_job's rules.
    FOR req IN
        SELECT x.*
          FROM unnest(org_ids, types, payloads, idempotency_keys, ready_ats, priorities, enqueue_jobs.max_attempts, links, unique_payloads,
                      queues, sequences, afters, afters_any_end, min_versions, limit_keys)
               WITH ORDINALITY AS x (org, type, payload, key, ready_at, priority, attempts, links, is_unique, queue, sequence, after, any_end, min_version, limit_key, n)
         WHERE (ids[x.n] IN (SELECT unnest(fresh))) IS NOT TRUE
         ORDER BY coalesce(x.is_unique, false) DESC, x.org COLLATE "C",
                  CASE WHEN x.is_unique THEN daybook.job_input_hash(x.type, x.payload::text) END, x.key COLLATE "C", x.n
    LOOP
        ordinal := req.n;
        SELECT e.job_id, e.duplicate, e.result INTO job_id, duplicate, result
          FROM daybook.enqueue_job(req.org, req.type, req.payload, req.key, req.ready_at, req.priority, req.attempts, req.links,
                                   coalesce(req.is_unique, false), req.queue, req.sequence, daybook.job_ids(req.after), req.any_end,
                                   min_version => req.min_version, limit_key => req.limit_key) e;
        RETURN NEXT;
    END LOOP;
END
$$;
COMMENT ON FUNCTION daybook.enqueue_jobs IS 'Asks for many background jobs in one statement';

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.enqueue_jobs, daybook.enqueue_job, daybook.join_unique_job;
DROP FUNCTION daybook.check_job_order, daybook.job_ids, daybook.check_job, daybook.job_in_doubt,
    daybook.check_job_request, daybook.check_job_payload,
    daybook.job_skip_hash, daybook.job_input_hash;
