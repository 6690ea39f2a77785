-- Chapter 8: background jobs: their queue, a table that works like accounting_work_queue, and what belongs to a job.

-- +goose Up
-- +goose StatementBegin

CREATE TABLE daybook.jobs (
    id                text COLLATE "C" PRIMARY KEY DEFAULT daybook.new_id(),
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    org_id            text COLLATE "C" NOT NULL CHECK (org_id <> '' AND octet_length(org_id) <= 255),
    type              text COLLATE "C" NOT NULL CHECK (octet_length(type) <= 64 AND type ~ '^[A-Za-z][A-Za-z0-9_.:-]*$'),
    payload           jsonb NOT NULL CHECK (jsonb_typeof(payload) = 'object'),
    input_hash        bytea CHECK (octet_length(input_hash) = 32),
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
    -- Held by its process, under a turn of its own that no activity works.
    detached          boolean NOT NULL DEFAULT false,
    reclaims         integer NOT NULL DEFAULT 0 CHECK (reclaims BETWEEN 0 AND 1000000),
    -- What the lease counts towards: its organization's cap, its type's limit.
    capped            boolean NOT NULL DEFAULT false,
    counted           boolean NOT NULL DEFAULT false,

    CONSTRAINT key_has_hash CHECK (input_hash IS NOT NULL OR (idempotency_key IS NULL AND unique_hash IS NULL)),
    CONSTRAINT leased_has_lease CHECK (
        (state = 'leased' AND turn_id IS NOT NULL AND fence IS NOT NULL AND leased_generation IS NOT NULL
                          AND attempt_started_at IS NOT NULL AND last_attempted_at IS NOT NULL AND run_count > 0)
        OR
        (state <> 'leased' AND turn_id IS NULL AND fence IS NULL AND leased_generation IS NULL
                           AND worker IS NULL AND attempt_started_at IS NULL AND NOT working AND NOT detached)),
    CONSTRAINT failed_has_error CHECK (state <> 'failed' OR (last_error IS NOT NULL AND last_error_code IS NOT NULL)),
    CONSTRAINT finished_has_time CHECK ((state IN ('completed', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT cancel_only_while_leased CHECK (NOT cancel_requested OR state = 'leased'),
    -- Every time is one that every program can read: from the year 1 to the year 9999.
    CONSTRAINT times_are_readable CHECK (
        least(ready_at, first_ready_at, created_at, updated_at, last_attempted_at, attempt_started_at, finished_at) >= '0001-01-01 00:00:00+00'
        AND greatest(ready_at, first_ready_at, created_at, updated_at, last_attempted_at, attempt_started_at, finished_at) <= '9999-12-31 23:59:59+00')
) WITH (
    -- As accounting_work_queue.
    fillfactor = 75,
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 1,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 10000);
COMMENT ON COLUMN daybook.jobs.input_hash IS 'daybook.job_input_hash of type and payload: whether a key is used again with other input; null: it has no key and need not be unique';
COMMENT ON COLUMN daybook.jobs.unique_hash IS 'input_hash, if the job is to be the only open one of its organization with this type and payload';
COMMENT ON COLUMN daybook.jobs.priority IS '1 high, 2 normal, 3 low';
COMMENT ON COLUMN daybook.jobs.state IS 'failed is the dead letter';
COMMENT ON COLUMN daybook.jobs.run_count IS 'Attempts, the running one included';
COMMENT ON COLUMN daybook.jobs.max_attempts IS 'Null: the policy of the type''s handler says';
COMMENT ON COLUMN daybook.jobs.counted IS 'Whether the lease counts towards its type''s limit over all workers; only such leases are indexed by type';
COMMENT ON COLUMN daybook.jobs.first_ready_at IS
    'When the present request was first due; backoff moves ready_at and leaves this for the latency figures';

-- The lease query: one range a priority, organization and type, oldest first.
CREATE INDEX jobs_due ON daybook.jobs (priority, org_id, type, ready_at, id) WHERE state = 'pending';
-- Scans: what has fallen due lately, whichever organization and type it is of.
CREATE INDEX jobs_ready ON daybook.jobs (ready_at) WHERE state = 'pending';
-- Reclaim by turn, and stale leases by age.
CREATE INDEX jobs_turn ON daybook.jobs (turn_id, last_attempted_at) WHERE state = 'leased';
CREATE INDEX jobs_stale ON daybook.jobs (last_attempted_at) WHERE state = 'leased';
-- The caps of organizations, and the limits of types over all workers.
CREATE INDEX jobs_capped ON daybook.jobs (org_id) WHERE state = 'leased' AND capped;
CREATE INDEX jobs_counted ON daybook.jobs (type) WHERE state = 'leased' AND counted;
-- Dead letters, newest first, of all organizations and of one; and those that come back when their cause is gone.
CREATE INDEX jobs_failed ON daybook.jobs (finished_at DESC, id) WHERE state = 'failed';
CREATE INDEX jobs_failed_org ON daybook.jobs (org_id, finished_at DESC, id) WHERE state = 'failed';
CREATE INDEX jobs_failed_code ON daybook.jobs (last_error_code, type) WHERE state = 'failed';
-- Retention.
CREATE INDEX jobs_finished ON daybook.jobs (finished_at) WHERE state IN ('completed', 'cancelled');
-- One job a key; one open job of those that are to be unique.
CREATE UNIQUE INDEX jobs_key ON daybook.jobs (org_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX jobs_unique ON daybook.jobs (org_id, unique_hash) WHERE unique_hash IS NOT NULL AND state IN ('pending', 'leased');

-- As wake_accounting_queue.
CREATE FUNCTION daybook.wake_job_queue() RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    IF daybook.must_wake(2, '-infinity') AND current_setting('daybook.notify', true) IS DISTINCT FROM 'off' THEN
        PERFORM pg_notify('daybook_jobs', '');
    END IF;
END
$$;

-- What a job is about, to find it by.
CREATE TABLE daybook.job_links (
    job_id text COLLATE "C" NOT NULL REFERENCES daybook.jobs ON DELETE CASCADE,
    kind   text COLLATE "C" NOT NULL CHECK (kind <> '' AND octet_length(kind) <= 64),
    id     text COLLATE "C" NOT NULL CHECK (id <> '' AND octet_length(id) <= 255),
    PRIMARY KEY (kind, id, job_id)
);
-- The links of a job, also when it is removed.
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

-- +goose StatementEnd

-- +goose Down
DELETE FROM daybook.attempts WHERE kind = 'jobs';
DROP TABLE daybook.webhook_deliveries, daybook.job_workers, daybook.job_links;
DROP FUNCTION daybook.wake_job_queue;
DROP TABLE daybook.jobs;
