-- Chapter 9: enqueuing jobs. The Go package queue calls these functions, and so may any other language.
--
-- SQLSTATEs: DB010 the request is invalid, DB020 the payload is too large, DB021 the payload is invalid, DB022 the idempotency key was
-- used with other input.

-- +goose Up
-- +goose StatementBegin

-- What a job is known by: its type and payload. The two names of the type webhook are one: a delivery that was enqueued under the
-- one is the same under the other. Stable, as convert_to is, so that the planner can inline it.
CREATE FUNCTION daybook.job_input_hash(type text, payload text) RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT sha256(convert_to(CASE $1 WHEN 'webhook_delivery' THEN 'webhook' ELSE $1 END || E'\n' || $2, 'UTF8'))
$$;

-- Raises when a payload is no object, larger than 131072 bytes, deeper than 10 levels, or has more than 500 keys.
-- as_text is payload::text, which the caller has at hand.
--
-- A key takes five bytes of the text at least, so a short text has few of them, and brackets bound the levels: nearly every payload is
-- let through by looking at its text.
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
    IF bytes <= 2500 AND bytes - octet_length(translate(as_text, '{[', '')) <= 10 THEN
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

-- Raises when anything but the payload of a request is wrong.
CREATE FUNCTION daybook.check_job_request(
    org_id text, type text, idempotency_key text, ready_at timestamptz, priority integer, max_attempts integer, links jsonb
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
    IF ready_at > to_timestamp(253402300799) THEN
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

-- Asks for a job that is to be unique and is open, and locked by the caller, once more. An attempt that has begun may have read
-- what is old by now: the job is pending again after it. One that has not begun does what is asked for. A job that was never tried
-- is moved to an earlier time; one that waits after an attempt keeps its time.
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
    IF opened.cancel_requested THEN
        -- The attempt has not begun, and begins now after all.
        UPDATE daybook.jobs j
           SET generation = j.leased_generation, cancel_requested = false, updated_at = clock_timestamp()
         WHERE j.id = opened.id;
        RETURN 'coalesced';
    END IF;
    IF opened.state = 'pending' AND opened.run_count = 0 AND opened.last_attempted_at IS NULL AND due < opened.ready_at THEN
        UPDATE daybook.jobs j
           SET ready_at = due, first_ready_at = due, priority = least(j.priority, asked_priority), updated_at = clock_timestamp()
         WHERE j.id = opened.id;
        IF due <= clock_timestamp() + interval '1 minute' THEN
            PERFORM daybook.wake_job_queue();
        END IF;
        RETURN 'rescheduled';
    END IF;
    IF opened.state = 'pending' AND asked_priority < opened.priority THEN
        UPDATE daybook.jobs j SET priority = asked_priority, updated_at = clock_timestamp() WHERE j.id = opened.id;
    END IF;
    RETURN 'unchanged';
END
$$;

-- result: enqueued; unchanged, when the job of the key or the unique one that waits is the answer; rescheduled, when the unique one
-- is due earlier now; coalesced, when the unique one is running and is worked again after its attempt.
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
    OUT job_id      text,
    OUT duplicate   boolean,
    OUT result      text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    as_text CONSTANT text := enqueue_job.payload::text;
    hash    bytea;
    due     timestamptz;
    first   record;
    opened  daybook.jobs;
BEGIN
    -- Only a request that may be wrong pays for finding out how.
    IF coalesce(enqueue_job.org_id, '') = '' OR octet_length(enqueue_job.org_id) > 255
       OR enqueue_job.type IS NULL OR octet_length(enqueue_job.type) > 64 OR enqueue_job.type !~ '^[A-Za-z][A-Za-z0-9_.:-]*$'
       OR enqueue_job.idempotency_key = '' OR octet_length(enqueue_job.idempotency_key) > 255
       OR enqueue_job.priority NOT BETWEEN 1 AND 3 OR enqueue_job.max_attempts NOT BETWEEN 1 AND 1000
       OR enqueue_job.ready_at > to_timestamp(253402300799) OR enqueue_job.links IS NOT NULL THEN
        PERFORM daybook.check_job_request(enqueue_job.org_id, enqueue_job.type, enqueue_job.idempotency_key, enqueue_job.ready_at,
                                          enqueue_job.priority, enqueue_job.max_attempts, enqueue_job.links);
    END IF;
    IF enqueue_job.payload IS NULL OR jsonb_typeof(enqueue_job.payload) <> 'object' OR octet_length(as_text) > 2500
       OR octet_length(as_text) - octet_length(translate(as_text, '{[', '')) > 10 THEN
        PERFORM daybook.check_job_payload(enqueue_job.payload, as_text);
    END IF;
    hash := daybook.job_input_hash(enqueue_job.type, as_text);
    duplicate := false;
    result := 'enqueued';

    -- The job that was in the way may be gone, or closed, when it is looked for: then the insert is tried again.
    LOOP
        due := greatest(coalesce(enqueue_job.ready_at, '-infinity'), clock_timestamp());
        INSERT INTO daybook.jobs (org_id, type, payload, input_hash, idempotency_key, unique_hash, ready_at, first_ready_at, priority, max_attempts)
        VALUES (enqueue_job.org_id, enqueue_job.type, enqueue_job.payload, hash, enqueue_job.idempotency_key, CASE WHEN unique_payload THEN hash END,
                due, due, coalesce(enqueue_job.priority, 2), enqueue_job.max_attempts)
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
        IF unique_payload THEN
            -- The lock lasts until the caller commits: an attempt that begins after that sees what the caller wrote.
            SELECT * INTO opened
              FROM daybook.jobs j
             WHERE j.org_id = enqueue_job.org_id AND j.unique_hash = hash AND j.state IN ('pending', 'leased')
               FOR NO KEY UPDATE;
            IF FOUND THEN
                job_id := opened.id;
                duplicate := true;
                result := daybook.join_unique_job(opened, due, enqueue_job.priority);
                RETURN;
            END IF;
        END IF;
    END LOOP;

    IF enqueue_job.links IS NOT NULL THEN
        INSERT INTO daybook.job_links (job_id, kind, id)
        SELECT DISTINCT enqueue_job.job_id, l ->> 'kind', l ->> 'id' FROM jsonb_array_elements(enqueue_job.links) l;
    END IF;
    IF due <= clock_timestamp() + interval '1 minute' THEN
        PERFORM daybook.wake_job_queue();
    END IF;
END
$$;
COMMENT ON FUNCTION daybook.enqueue_job IS
    'Asks for a background job. In a CTE it runs only if the query reads from that CTE';

-- Many jobs at once. The arrays but for the first three may be null or as long as these. ordinal is the position, from 1.
--
-- Those that are to be unique are inserted first, in the order of their hashes, then those with a key in the order of their keys:
-- two callers do not deadlock, unless jobs have both.
CREATE FUNCTION daybook.enqueue_jobs(
    org_ids          text[],
    types            text[],
    payloads         jsonb[],
    idempotency_keys text[] DEFAULT NULL,
    ready_ats        timestamptz[] DEFAULT NULL,
    priorities       integer[] DEFAULT NULL,
    max_attempts     integer[] DEFAULT NULL,
    links            jsonb[] DEFAULT NULL,
    unique_payloads  boolean[] DEFAULT NULL
) RETURNS TABLE (ordinal integer, job_id text, duplicate boolean, result text)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    total CONSTANT integer := coalesce(cardinality(org_ids), 0);
    req   record;
    -- Positions and ids of the rows that were inserted.
    fresh integer[];
    ids   text[];
    -- Whether one of them is due now.
    now_due boolean;
BEGIN
    IF coalesce(cardinality(types), 0) <> total OR coalesce(cardinality(payloads), 0) <> total
       OR coalesce(cardinality(idempotency_keys), total) <> total OR coalesce(cardinality(ready_ats), total) <> total
       OR coalesce(cardinality(priorities), total) <> total OR coalesce(cardinality(enqueue_jobs.max_attempts), total) <> total
       OR coalesce(cardinality(links), total) <> total OR coalesce(cardinality(unique_payloads), total) <> total THEN
        RAISE EXCEPTION 'all arrays must be equally long, or null but for org_ids, types and payloads' USING ERRCODE = 'DB010';
    END IF;

    -- The set as a whole is looked at once; only a set with a row that may be wrong pays for finding out which, and how.
    -- IS TRUE has what was inserted looked up in a hash, however many rows the planner expects.
    WITH r AS MATERIALIZED (
        SELECT x.n::integer AS n, daybook.new_id() AS id, x.org, x.type, x.payload, x.payload::text AS as_text, x.key,
               greatest(coalesce(x.ready_at, '-infinity'), clock_timestamp()) AS due, x.ready_at, x.priority, x.attempts, x.links,
               coalesce(x.is_unique, false) AS is_unique
          FROM unnest(org_ids, types, payloads, idempotency_keys, ready_ats, priorities, enqueue_jobs.max_attempts, links, unique_payloads)
               WITH ORDINALITY AS x (org, type, payload, key, ready_at, priority, attempts, links, is_unique, n)
    ), doubt AS MATERIALIZED (
        SELECT EXISTS (
            SELECT FROM r
             WHERE coalesce(r.org, '') = '' OR octet_length(r.org) > 255 OR r.type IS NULL OR octet_length(r.type) > 64
                OR r.key = '' OR octet_length(r.key) > 255 OR r.priority NOT BETWEEN 1 AND 3 OR r.attempts NOT BETWEEN 1 AND 1000
                OR r.ready_at > to_timestamp(253402300799) OR r.links IS NOT NULL OR r.payload IS NULL OR jsonb_typeof(r.payload) <> 'object'
                OR octet_length(r.as_text) > 2500 OR octet_length(r.as_text) - octet_length(translate(r.as_text, '{[', '')) > 10)
            OR EXISTS (SELECT FROM (SELECT DISTINCT r.type FROM r) t WHERE t.type !~ '^[A-Za-z][A-Za-z0-9_.:-]*$') AS any
    ), checked AS MATERIALIZED (
        SELECT count(daybook.check_job_request(r.org, r.type, r.key, r.ready_at, r.priority, r.attempts, r.links))
               + count(daybook.check_job_payload(r.payload, r.as_text)) AS checks
          FROM r
         WHERE (SELECT doubt.any FROM doubt)
    ), hashed AS MATERIALIZED (
        SELECT r.*, daybook.job_input_hash(r.type, r.as_text) AS hash
          FROM r
         WHERE (SELECT checked.checks FROM checked) >= 0
    ), ins AS (
        INSERT INTO daybook.jobs AS j (id, org_id, type, payload, input_hash, idempotency_key, unique_hash, ready_at, first_ready_at, priority, max_attempts)
        SELECT h.id, h.org, h.type, h.payload, h.hash, h.key, CASE WHEN h.is_unique THEN h.hash END, h.due, h.due, coalesce(h.priority, 2), h.attempts
          FROM hashed h
         ORDER BY h.is_unique DESC, CASE WHEN h.is_unique OR h.key IS NOT NULL THEN h.org END COLLATE "C",
                  CASE WHEN h.is_unique THEN h.hash END, h.key COLLATE "C", h.n
        ON CONFLICT DO NOTHING
        RETURNING j.id
    ), linked AS (
        INSERT INTO daybook.job_links (job_id, kind, id)
        SELECT DISTINCT h.id, l ->> 'kind', l ->> 'id'
          FROM hashed h CROSS JOIN jsonb_array_elements(h.links) l
         WHERE (h.id IN (SELECT ins.id FROM ins)) IS TRUE
    )
    SELECT array_agg(h.n), array_agg(h.id), bool_or(h.due <= clock_timestamp() + interval '1 minute') INTO fresh, ids, now_due
      FROM hashed h
     WHERE (h.id IN (SELECT ins.id FROM ins)) IS TRUE;

    IF fresh IS NOT NULL THEN
        IF now_due THEN
            PERFORM daybook.wake_job_queue();
        END IF;
        RETURN QUERY SELECT f.n, f.id, false, 'enqueued'::text FROM unnest(fresh, ids) AS f (n, id);
    END IF;
    IF coalesce(cardinality(fresh), 0) = total THEN
        RETURN;
    END IF;

    -- What was there before, and what was asked for twice: one by one, by the same rules as a single request.
    FOR req IN
        SELECT x.*
          FROM unnest(org_ids, types, payloads, idempotency_keys, ready_ats, priorities, enqueue_jobs.max_attempts, links, unique_payloads)
               WITH ORDINALITY AS x (org, type, payload, key, ready_at, priority, attempts, links, is_unique, n)
         WHERE (x.n::integer IN (SELECT unnest(fresh))) IS NOT TRUE
         ORDER BY coalesce(x.is_unique, false) DESC, x.org COLLATE "C",
                  CASE WHEN x.is_unique THEN daybook.job_input_hash(x.type, x.payload::text) END, x.key COLLATE "C", x.n
    LOOP
        ordinal := req.n;
        SELECT e.job_id, e.duplicate, e.result INTO job_id, duplicate, result
          FROM daybook.enqueue_job(req.org, req.type, req.payload, req.key, req.ready_at, req.priority, req.attempts, req.links,
                                   coalesce(req.is_unique, false)) e;
        RETURN NEXT;
    END LOOP;
END
$$;
COMMENT ON FUNCTION daybook.enqueue_jobs IS 'Asks for many background jobs in one statement';

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.enqueue_jobs, daybook.enqueue_job, daybook.join_unique_job;
DROP FUNCTION daybook.check_job_request, daybook.check_job_payload, daybook.job_input_hash;
