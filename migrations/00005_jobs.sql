-- Background jobs: the table that works like accounting_work_queue, what may be asked of it, and what it leaves behind.
--
-- SQLSTATEs of our own, besides those of 00002 (DB010 invalid, DB011 no such job, DB012 the job is completed):
-- DB020 the payload is too large, DB021 the payload is invalid, DB022 the idempotency key was used with other input.

-- +goose Up
-- +goose StatementBegin

CREATE TYPE daybook.job_state AS ENUM ('pending', 'leased', 'completed', 'failed', 'cancelled');

CREATE TABLE daybook.jobs (
    id                text COLLATE "C" PRIMARY KEY DEFAULT daybook.new_id(),
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    org_id            text COLLATE "C" NOT NULL CHECK (org_id <> '' AND octet_length(org_id) <= 255),
    type              text COLLATE "C" NOT NULL CHECK (octet_length(type) <= 64 AND type ~ '^[A-Za-z][A-Za-z0-9_.:-]*$'),
    payload           jsonb NOT NULL CHECK (jsonb_typeof(payload) = 'object'),
    input_hash        bytea NOT NULL CHECK (octet_length(input_hash) = 32),
    idempotency_key   text COLLATE "C" CHECK (idempotency_key <> '' AND octet_length(idempotency_key) <= 255),
    unique_hash       bytea CHECK (unique_hash = input_hash),
    priority          smallint NOT NULL DEFAULT 2 CHECK (priority BETWEEN 1 AND 3),
    state             daybook.job_state NOT NULL DEFAULT 'pending',
    ready_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    first_ready_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    run_count         integer NOT NULL DEFAULT 0 CHECK (run_count BETWEEN 0 AND 1000000),
    max_attempts      integer CHECK (max_attempts BETWEEN 1 AND 1000),
    last_attempted_at timestamptz,
    last_error        text,
    last_error_code   text,
    result            jsonb,
    progress          jsonb,
    finished_at       timestamptz,

    -- Requests and the lease, as in accounting_work_queue.
    generation        bigint NOT NULL DEFAULT 0,
    cancel_requested  boolean NOT NULL DEFAULT false,
    turn_id           text COLLATE "C",
    fence             bigint,
    leased_generation bigint,
    worker            text,
    attempt_started_at timestamptz,
    working           boolean NOT NULL DEFAULT false,
    takeovers         integer NOT NULL DEFAULT 0 CHECK (takeovers BETWEEN 0 AND 1000000),
    capped            boolean NOT NULL DEFAULT false,
    counted           boolean NOT NULL DEFAULT false,

    CONSTRAINT leased_has_lease CHECK (
        (state = 'leased' AND turn_id IS NOT NULL AND fence IS NOT NULL AND leased_generation IS NOT NULL
                          AND attempt_started_at IS NOT NULL AND last_attempted_at IS NOT NULL AND run_count > 0)
        OR
        (state <> 'leased' AND turn_id IS NULL AND fence IS NULL AND leased_generation IS NULL
                           AND worker IS NULL AND attempt_started_at IS NULL AND NOT working)),
    CONSTRAINT failed_has_error CHECK (state <> 'failed' OR (last_error IS NOT NULL AND last_error_code IS NOT NULL)),
    CONSTRAINT finished_has_time CHECK ((state IN ('completed', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT cancel_only_while_leased CHECK (NOT cancel_requested OR state = 'leased'),
    -- What a worker reads of a job has a place in its calendar: a row that cannot be read would stop the leases of all.
    -- Every time is one that every program can read: from the year 1 to the year 9999.
    CONSTRAINT times_are_readable CHECK (
        ready_at BETWEEN to_timestamp(-62135596800) AND to_timestamp(253402300799)
        AND first_ready_at BETWEEN to_timestamp(-62135596800) AND to_timestamp(253402300799)
        AND created_at BETWEEN to_timestamp(-62135596800) AND to_timestamp(253402300799)
        AND updated_at BETWEEN to_timestamp(-62135596800) AND to_timestamp(253402300799)
        AND last_attempted_at BETWEEN to_timestamp(-62135596800) AND to_timestamp(253402300799)
        AND attempt_started_at BETWEEN to_timestamp(-62135596800) AND to_timestamp(253402300799)
        AND finished_at BETWEEN to_timestamp(-62135596800) AND to_timestamp(253402300799))
);
COMMENT ON COLUMN daybook.jobs.input_hash IS 'daybook.job_input_hash of type and payload: whether a key is used again with other input';
COMMENT ON COLUMN daybook.jobs.unique_hash IS 'input_hash, if the job is to be the only open one of its organization with this type and payload';
COMMENT ON COLUMN daybook.jobs.priority IS '1 high, 2 normal, 3 low';
COMMENT ON COLUMN daybook.jobs.state IS 'failed is the dead letter';
COMMENT ON COLUMN daybook.jobs.run_count IS 'Attempts, the running one included';
COMMENT ON COLUMN daybook.jobs.max_attempts IS 'Null: the policy of the type''s handler says';
COMMENT ON COLUMN daybook.jobs.counted IS 'Whether the lease counts towards its type''s limit over all workers; only such leases are indexed by type';
COMMENT ON COLUMN daybook.jobs.first_ready_at IS
    'When the present request was first due; backoff moves ready_at and leaves this for the latency figures';

-- The lease query (a place is a priority, an organization and a type), what has fallen due lately, take-over and sweep by turn,
-- stale leases by age, caps: as in accounting_work_queue. Limits of types over all workers.
CREATE INDEX jobs_due ON daybook.jobs (priority, org_id, type, ready_at, id) WHERE state = 'pending';
CREATE INDEX jobs_ready ON daybook.jobs (ready_at) WHERE state = 'pending';
CREATE INDEX jobs_turn ON daybook.jobs (turn_id, last_attempted_at) WHERE state = 'leased';
CREATE INDEX jobs_stale ON daybook.jobs (last_attempted_at) WHERE state = 'leased';
CREATE INDEX jobs_capped ON daybook.jobs (org_id) WHERE state = 'leased' AND capped;
CREATE INDEX jobs_counted ON daybook.jobs (type) WHERE state = 'leased' AND counted;
-- Dead letters, newest first, of everybody and of one organization; and those that come back when their cause is gone.
CREATE INDEX jobs_failed ON daybook.jobs (finished_at DESC, id) WHERE state = 'failed';
CREATE INDEX jobs_failed_org ON daybook.jobs (org_id, finished_at DESC, id) WHERE state = 'failed';
CREATE INDEX jobs_failed_code ON daybook.jobs (last_error_code, type) WHERE state = 'failed';
-- Retention.
CREATE INDEX jobs_finished ON daybook.jobs (finished_at) WHERE state IN ('completed', 'cancelled');
CREATE UNIQUE INDEX jobs_key ON daybook.jobs (org_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX jobs_unique ON daybook.jobs (org_id, unique_hash) WHERE unique_hash IS NOT NULL AND state IN ('pending', 'leased');

ALTER TABLE daybook.jobs SET (fillfactor = 75);
ALTER TABLE daybook.jobs SET (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 1,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 10000);

-- What a job is about, to find it by.
CREATE TABLE daybook.job_links (
    job_id text COLLATE "C" NOT NULL REFERENCES daybook.jobs ON DELETE CASCADE,
    kind   text COLLATE "C" NOT NULL CHECK (kind <> '' AND octet_length(kind) <= 64),
    id     text COLLATE "C" NOT NULL CHECK (id <> '' AND octet_length(id) <= 255),
    PRIMARY KEY (kind, id, job_id)
);
CREATE INDEX job_links_job ON daybook.job_links (job_id);

-- Which worker has handlers for which types: a worker leaves alone what it has none for.
CREATE TABLE daybook.job_workers (
    id         text COLLATE "C" PRIMARY KEY,
    name       text NOT NULL,
    types      text[] NOT NULL,
    first_seen timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen  timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE daybook.job_workers IS 'Each worker of background jobs says every minute that it lives; after a day without that its row is removed';

-- The log of attempts is one for both kinds.
ALTER TABLE daybook.attempts
    ADD COLUMN kind text NOT NULL DEFAULT 'accounting',
    ADD COLUMN type text COLLATE "C",
    ALTER COLUMN document_id DROP NOT NULL,
    ALTER COLUMN version DROP NOT NULL,
    ADD CONSTRAINT attempts_kind CHECK (CASE kind
        WHEN 'accounting' THEN document_id IS NOT NULL AND version IS NOT NULL AND type IS NULL
        WHEN 'jobs' THEN document_id IS NULL AND version IS NULL AND type IS NOT NULL
        ELSE false END);

-- Who may use the HTTP API. A token is known by its SHA-256 alone.
CREATE TABLE daybook.api_tokens (
    id           text COLLATE "C" PRIMARY KEY DEFAULT daybook.new_id(),
    org_id       text COLLATE "C" CHECK (org_id <> '' AND octet_length(org_id) <= 255),
    name         text NOT NULL,
    scopes       text[] NOT NULL CHECK (cardinality(scopes) > 0 AND scopes <@ ARRAY['read', 'enqueue', 'operate'] AND array_position(scopes, NULL) IS NULL),
    hash         bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz,
    revoked_at   timestamptz,
    types        text[] CHECK (cardinality(types) BETWEEN 1 AND 100 AND array_position(types, NULL) IS NULL),
    requests_per_minute integer CHECK (requests_per_minute BETWEEN 1 AND 1000000),
    jobs_per_minute     integer CHECK (jobs_per_minute BETWEEN 1 AND 1000000),
    run_by_get   boolean NOT NULL DEFAULT false CHECK (NOT run_by_get OR 'operate' = ANY (scopes))
);
COMMENT ON COLUMN daybook.api_tokens.org_id IS 'The organization that it is good for; null: all';
COMMENT ON COLUMN daybook.api_tokens.types IS
    'The types of background jobs that it may enqueue; null: all, but cleanup and db_function only with the scope operate';
COMMENT ON COLUMN daybook.api_tokens.requests_per_minute IS 'How many requests each server takes from it in a minute; null: no limit';
COMMENT ON COLUMN daybook.api_tokens.jobs_per_minute IS 'How many jobs each server enqueues for it in a minute; null: no limit';
COMMENT ON COLUMN daybook.api_tokens.run_by_get IS 'GET /api/jobs/run works due jobs, as POST does';

-- Requests that change many jobs. The jobs are chosen when the request is made; each batch of them is changed, counted and removed
-- in one transaction, so that what was begun can be gone on with.
CREATE TABLE daybook.bulk_operations (
    id            text COLLATE "C" PRIMARY KEY DEFAULT daybook.new_id(),
    org_id        text COLLATE "C" CHECK (org_id <> '' AND octet_length(org_id) <= 255),
    action        text NOT NULL CHECK (action IN ('retry', 'cancel')),
    mode          text CHECK (mode IN ('now', 'later', 'reset')),
    delay_seconds double precision,
    states        text[] NOT NULL,
    matched       integer NOT NULL DEFAULT 0,
    changed       integer NOT NULL DEFAULT 0,
    left_alone    integer NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at   timestamptz,
    CHECK ((action = 'retry') = (mode IS NOT NULL))
);
COMMENT ON COLUMN daybook.bulk_operations.org_id IS 'The organization whose jobs are meant; null: those of all';
CREATE INDEX bulk_operations_open ON daybook.bulk_operations (updated_at) WHERE finished_at IS NULL;

CREATE TABLE daybook.bulk_batches (
    operation_id text COLLATE "C" NOT NULL REFERENCES daybook.bulk_operations ON DELETE CASCADE,
    n            integer NOT NULL,
    job_ids      text[] NOT NULL,
    PRIMARY KEY (operation_id, n)
);

-- Receipts of webhooks. They stay when their job is purged.
CREATE TABLE daybook.webhook_deliveries (
    job_id      text COLLATE "C" NOT NULL,
    attempt     integer NOT NULL CHECK (attempt > 0),
    url         text NOT NULL,
    status      integer,
    ok          boolean NOT NULL,
    error_code  text,
    duration_ms integer NOT NULL CHECK (duration_ms >= 0),
    sent_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job_id, attempt)
);
COMMENT ON COLUMN daybook.webhook_deliveries.url IS 'Without query and credentials';
COMMENT ON COLUMN daybook.webhook_deliveries.status IS 'The answer''s HTTP status; null: none came';

-- As wake_accounting_queue. It is called for what is due within a minute, so that who waits learns when to look again.
CREATE FUNCTION daybook.wake_job_queue() RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock_shared(1684109666, 2) AND current_setting('daybook.notify', true) IS DISTINCT FROM 'off' THEN
        PERFORM pg_notify('daybook_jobs', '');
    END IF;
END
$$;

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

-- When a job is due that is tried again; raises when mode or delay is wrong.
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

CREATE FUNCTION daybook.retry_job(
    INOUT job_id  text,
    mode          text DEFAULT 'now',
    delay_seconds double precision DEFAULT NULL,
    OUT result    text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    job daybook.jobs;
    due CONSTANT timestamptz := daybook.retry_due(mode, delay_seconds);
BEGIN
    SELECT * INTO job FROM daybook.jobs j WHERE j.id = retry_job.job_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no job %', retry_job.job_id USING ERRCODE = 'DB011', HINT = 'it may have been purged';
    END IF;

    CASE job.state
        WHEN 'completed' THEN
            RAISE EXCEPTION 'job % is completed', job.id USING ERRCODE = 'DB012', HINT = 'enqueue a new one';
        WHEN 'leased' THEN
            -- It is being tried; but a cancellation is taken back, as if it had never been asked for.
            result := CASE WHEN job.cancel_requested THEN 'coalesced' ELSE 'unchanged' END;
            IF job.cancel_requested THEN
                UPDATE daybook.jobs j
                   SET cancel_requested = false, generation = j.leased_generation, updated_at = clock_timestamp()
                 WHERE j.id = job.id;
            END IF;
            RETURN;
        ELSE
            result := CASE job.state WHEN 'pending' THEN 'rescheduled' ELSE 'requeued' END;
    END CASE;

    BEGIN
        UPDATE daybook.jobs j
           SET state           = 'pending',
               ready_at        = due,
               first_ready_at  = due,
               generation      = j.generation + 1,
               takeovers       = 0,
               run_count       = CASE mode WHEN 'reset' THEN 0 ELSE j.run_count END,
               last_error      = CASE WHEN mode <> 'reset' THEN j.last_error END,
               last_error_code = CASE WHEN mode <> 'reset' THEN j.last_error_code END,
               progress        = CASE WHEN mode <> 'reset' THEN j.progress END,
               finished_at     = NULL,
               updated_at      = clock_timestamp()
         WHERE j.id = job.id;
    EXCEPTION WHEN unique_violation THEN
        -- It is to be unique, and another one with its payload is open: that does its work.
        result := 'unchanged';
        RETURN;
    END;
    IF due <= clock_timestamp() + interval '1 minute' THEN
        PERFORM daybook.wake_job_queue();
    END IF;
END
$$;
COMMENT ON FUNCTION daybook.retry_job IS
    'Tries a job again: now (attempts stay counted), later (after delay_seconds, 300 if null) or reset (as if never tried). result: requeued, rescheduled, coalesced or unchanged';

-- retry_job for many in one statement: those that are in one of the states and that no other transaction has locked. Returns how many
-- were changed. Of several that are to be unique and have the same payload one is.
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
BEGIN
    BEGIN
        WITH matching AS MATERIALIZED (
            SELECT j.id, j.org_id, CASE WHEN j.state <> 'pending' THEN j.unique_hash END AS hash
              FROM daybook.jobs j
             WHERE j.id = ANY (job_ids) AND j.state::text = ANY (states) AND j.state IN ('pending', 'failed', 'cancelled')
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
               SET state = 'pending', ready_at = due, first_ready_at = due, generation = j.generation + 1, takeovers = 0, finished_at = NULL,
                   run_count       = CASE retry_jobs.mode WHEN 'reset' THEN 0 ELSE j.run_count END,
                   last_error      = CASE WHEN retry_jobs.mode <> 'reset' THEN j.last_error END,
                   last_error_code = CASE WHEN retry_jobs.mode <> 'reset' THEN j.last_error_code END,
                   progress        = CASE WHEN retry_jobs.mode <> 'reset' THEN j.progress END,
                   updated_at      = clock_timestamp()
              FROM chosen
             WHERE j.id = chosen.id
            RETURNING j.id
        )
        SELECT count(*) INTO changed FROM updated;
    EXCEPTION WHEN unique_violation THEN
        -- Another transaction has enqueued one of them meanwhile: one by one.
        SELECT count(*) FILTER (WHERE r.result <> 'unchanged') INTO changed
          FROM (SELECT j.id FROM daybook.jobs j
                 WHERE j.id = ANY (job_ids) AND j.state::text = ANY (states) AND j.state IN ('pending', 'failed', 'cancelled')
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
COMMENT ON FUNCTION daybook.retry_jobs IS 'retry_job for many: those in one of the states that no other transaction has locked';

-- cancel_job for many, as retry_jobs. A job whose attempt has begun is cancelled after it; any other one at once, also when it is
-- leased: its worker finds at the begin that it is gone.
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
               generation         = CASE WHEN j.working THEN j.leased_generation ELSE j.generation END + 1,
               run_count          = CASE WHEN j.state = 'leased' AND NOT j.working THEN greatest(j.run_count - 1, 0) ELSE j.run_count END,
               takeovers          = CASE WHEN j.working THEN j.takeovers ELSE 0 END,
               finished_at        = CASE WHEN NOT j.working THEN clock_timestamp() END,
               turn_id            = CASE WHEN j.working THEN j.turn_id END,
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
COMMENT ON FUNCTION daybook.cancel_jobs IS 'cancel_job for many: those in one of the states that no other transaction has locked';

CREATE FUNCTION daybook.cancel_job(
    INOUT job_id text,
    OUT result   text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    job daybook.jobs;
BEGIN
    SELECT * INTO job FROM daybook.jobs j WHERE j.id = cancel_job.job_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no job %', cancel_job.job_id USING ERRCODE = 'DB011', HINT = 'it may have been purged';
    END IF;
    CASE job.state
        WHEN 'completed' THEN
            RAISE EXCEPTION 'job % is completed', job.id USING ERRCODE = 'DB012', HINT = 'what it did has to be undone elsewhere';
        WHEN 'cancelled' THEN
            result := 'unchanged';
            RETURN;
        ELSE
            result := CASE WHEN job.working THEN 'cancelling' ELSE 'cancelled' END;
    END CASE;
    PERFORM daybook.cancel_jobs(ARRAY[job.id], ARRAY[job.state::text]);
END
$$;
COMMENT ON FUNCTION daybook.cancel_job IS
    'Asks that a job not be worked. result: cancelled, cancelling (after the running attempt) or unchanged';

-- Changes the next batch of jobs of a bulk operation that no other transaction works, and counts them with it. Returns whether there
-- was one; when none is left the operation is finished.
CREATE FUNCTION daybook.work_bulk_batch(operation_id text) RETURNS boolean
    LANGUAGE plpgsql
AS $$
DECLARE
    operation daybook.bulk_operations;
    ids       text[];
    done      integer;
BEGIN
    DELETE FROM daybook.bulk_batches b
     WHERE b.operation_id = work_bulk_batch.operation_id
       AND b.n = (SELECT c.n FROM daybook.bulk_batches c
                   WHERE c.operation_id = work_bulk_batch.operation_id
                   ORDER BY c.n
                   LIMIT 1
                     FOR UPDATE SKIP LOCKED)
    RETURNING b.job_ids INTO ids;
    IF NOT FOUND THEN
        UPDATE daybook.bulk_operations o
           SET finished_at = clock_timestamp(), updated_at = clock_timestamp()
         WHERE o.id = work_bulk_batch.operation_id AND o.finished_at IS NULL
           AND NOT EXISTS (SELECT FROM daybook.bulk_batches b WHERE b.operation_id = o.id);
        RETURN false;
    END IF;
    SELECT * INTO operation FROM daybook.bulk_operations o WHERE o.id = work_bulk_batch.operation_id;
    done := CASE operation.action
        WHEN 'retry' THEN daybook.retry_jobs(ids, operation.states, operation.mode, operation.delay_seconds)
        ELSE daybook.cancel_jobs(ids, operation.states) END;
    UPDATE daybook.bulk_operations o
       SET changed = o.changed + done, left_alone = o.left_alone + cardinality(ids) - done, updated_at = clock_timestamp()
     WHERE o.id = operation.id;
    RETURN true;
END
$$;

CREATE VIEW daybook.job_status AS
SELECT j.type, j.state, count(*) AS count, min(j.created_at) AS oldest, max(j.created_at) AS newest, avg(j.run_count) AS average_attempts
  FROM daybook.jobs j
 GROUP BY j.type, j.state;
COMMENT ON VIEW daybook.job_status IS 'Background jobs by type and state';

-- For people who come from a table async_operations: its columns, its states and its function. workspace_id is the organization,
-- the ids that a job is linked with are text.
CREATE VIEW daybook.async_operations AS
SELECT j.id,
       j.type AS operation_type,
       j.payload,
       (SELECT l.id FROM daybook.job_links l WHERE l.job_id = j.id AND l.kind = 'submission' ORDER BY l.id LIMIT 1) AS submission_id,
       (SELECT l.id FROM daybook.job_links l WHERE l.job_id = j.id AND l.kind = 'form' ORDER BY l.id LIMIT 1) AS form_id,
       (SELECT l.id FROM daybook.job_links l WHERE l.job_id = j.id AND l.kind = 'workspace' ORDER BY l.id LIMIT 1) AS workspace_id,
       CASE j.state
           WHEN 'pending' THEN CASE WHEN j.last_error_code IS NULL THEN 'pending' ELSE 'failed' END
           WHEN 'leased' THEN 'processing'
           WHEN 'failed' THEN 'dead'
           ELSE j.state::text END AS status,
       j.run_count AS attempts,
       j.max_attempts,
       j.last_attempted_at AS last_attempt_at,
       CASE j.state WHEN 'pending' THEN j.ready_at END AS next_retry_at,
       CASE j.state WHEN 'completed' THEN j.finished_at END AS completed_at,
       j.last_error,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('error', a.error, 'error_code', a.error_code, 'timestamp', a.ended_at, 'attempt', a.attempt) ORDER BY a.id), '[]')
          FROM daybook.attempts a
         WHERE a.job_id = j.id AND a.outcome IN ('retried', 'failed', 'lost')) AS error_history,
       j.result,
       j.created_at,
       j.updated_at
  FROM daybook.jobs j;
COMMENT ON VIEW daybook.async_operations IS 'daybook.jobs under other names: failed is a job that waits to be tried again, dead one that will not be';

CREATE VIEW daybook.async_operations_status AS
SELECT o.operation_type, o.status, count(*) AS count, min(o.created_at) AS oldest, max(o.created_at) AS newest, avg(o.attempts) AS avg_attempts
  FROM daybook.async_operations o
 GROUP BY o.operation_type, o.status;

CREATE FUNCTION daybook.enqueue_async_operation(
    p_operation_type text,
    p_payload        jsonb,
    p_submission_id  uuid DEFAULT NULL,
    p_form_id        uuid DEFAULT NULL,
    p_workspace_id   uuid DEFAULT NULL,
    p_max_attempts   integer DEFAULT 3
) RETURNS uuid
    LANGUAGE sql
AS $$
    SELECT e.job_id::uuid
      FROM daybook.enqueue_job(
        coalesce(p_workspace_id::text, 'default'), p_operation_type, p_payload, max_attempts => p_max_attempts,
        links => (SELECT jsonb_agg(jsonb_build_object('kind', l.kind, 'id', l.id))
                    FROM (VALUES ('submission', p_submission_id), ('form', p_form_id), ('workspace', p_workspace_id)) AS l (kind, id)
                   WHERE l.id IS NOT NULL)) e
$$;
COMMENT ON FUNCTION daybook.enqueue_async_operation IS
    'enqueue_job for people who come from async_operations. The organization is the workspace, or "default"';

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.enqueue_async_operation;
DROP VIEW daybook.async_operations_status, daybook.async_operations, daybook.job_status;
DROP FUNCTION daybook.work_bulk_batch, daybook.cancel_job, daybook.cancel_jobs, daybook.retry_job, daybook.retry_jobs, daybook.retry_due;
DROP FUNCTION daybook.enqueue_jobs, daybook.enqueue_job, daybook.join_unique_job;
DROP FUNCTION daybook.check_job_request, daybook.check_job_payload, daybook.job_input_hash, daybook.wake_job_queue;
DROP TABLE daybook.bulk_batches, daybook.bulk_operations, daybook.webhook_deliveries, daybook.api_tokens, daybook.job_workers, daybook.job_links, daybook.jobs;
DELETE FROM daybook.attempts WHERE kind = 'jobs';
ALTER TABLE daybook.attempts
    DROP CONSTRAINT attempts_kind,
    DROP COLUMN kind,
    DROP COLUMN type,
    ALTER COLUMN document_id SET NOT NULL,
    ALTER COLUMN version SET NOT NULL;
DROP TYPE daybook.job_state;
