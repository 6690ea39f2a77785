-- Chapter 8: background jobs: their queue, a table that works like accounting_work_queue, and the
-- tables that belong to it.

-- +goose Up
-- +goose StatementBegin

CREATE TABLE daybook.jobs (
    id                text COLLATE "C" PRIMARY KEY DEFAULT daybook.new_id(),
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    org_id            text COLLATE "C" NOT NULL,
    type              text COLLATE "C" NOT NULL,
    payload           jsonb NOT NULL,
    input_hash        bytea,
    idempotency_key   text COLLATE "C",
    unique_hash       bytea,
    priority          smallint NOT NULL DEFAULT 2,
    fleet             smallint NOT NULL DEFAULT 0,
    state             daybook.job_state NOT NULL DEFAULT 'pending',
    ready_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    first_ready_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    run_count         integer NOT NULL DEFAULT 0,
    max_attempts      integer,
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
    -- Held by its process beyond its turn, under a turn of its own that no activity works.
    detached          boolean NOT NULL DEFAULT false,
    reclaims         integer NOT NULL DEFAULT 0,
    -- What the lease counts towards: its organization's cap, its type's limit.
    capped            boolean NOT NULL DEFAULT false,
    counted           boolean NOT NULL DEFAULT false,
    traceparent       varchar(55) DEFAULT daybook.traceparent(),

    -- Which named queue works it, what it is worked in turn with, and whether what becomes of it
    -- concerns others (00023_waits.sql).
    queue             text COLLATE "C",
    min_version       integer,
    sequence          text COLLATE "C",
    awaited           boolean NOT NULL DEFAULT false,
    debounce_key      text COLLATE "C",
    -- What it shares its limit with (00030_limits.sql).
    limit_key         text COLLATE "C",
    limit_scope       text COLLATE "C",

    -- The attempt that completed the job, which is its last: its number is run_count and its end
    -- finished_at. It has no row in attempt_log.
    completed_turn_id    text COLLATE "C",
    completed_fence      bigint,
    completed_by         text,
    completed_started_at timestamptz,

    -- Its earlier payloads (edit_job), which go where the row goes; null: it has its first one.
    edits                jsonb
) WITH (
    -- As accounting_work_queue.
    fillfactor = 75,
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 1,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 10000);
COMMENT ON COLUMN daybook.jobs.input_hash IS
    'daybook.job_input_hash of type and payload as it was enqueued: whether a key is used again with other input; null: '
    'it has no key and need not be unique, or is debounced';
COMMENT ON COLUMN daybook.jobs.unique_hash IS
    'What no other open job of its organization may have: daybook.job_input_hash, if the job is to be the only one with '
    'its type and payload, daybook.job_skip_hash of skip_while_open, or daybook.job_debounce_hash of type and debounce_key';
COMMENT ON COLUMN daybook.jobs.priority IS '1 high, 2 normal, 3 low';
COMMENT ON COLUMN daybook.jobs.traceparent IS
    'The trace of the request that made the job, as W3C Trace Context writes it';
COMMENT ON COLUMN daybook.jobs.state IS 'failed is the dead letter';
COMMENT ON COLUMN daybook.jobs.run_count IS 'Attempts, the running one included';
COMMENT ON COLUMN daybook.jobs.max_attempts IS 'Null: the policy of the type''s handler says';
COMMENT ON COLUMN daybook.jobs.counted IS
    'Whether the lease counts towards its type''s limit over all workers; only such leases are indexed by type';
COMMENT ON COLUMN daybook.jobs.fleet IS
    'The fleet whose workers work it (daybook.fleets): that of its queue; 0: the one without a name; -1 or -2: none yet, because its limit_key comes first (00030_limits.sql)';
COMMENT ON COLUMN daybook.jobs.first_ready_at IS
    'When the present request was first due; backoff moves ready_at and leaves this for the latency figures. While the job waits for something, when it is to be due';
COMMENT ON COLUMN daybook.jobs.queue IS 'The named queue; null: the queue default';
COMMENT ON COLUMN daybook.jobs.min_version IS
    'The lowest version of its type''s handler that may work it; null: any';
COMMENT ON COLUMN daybook.jobs.sequence IS
    'The key of its sequence: jobs of one organization and key are worked one after the other';
COMMENT ON COLUMN daybook.jobs.limit_key IS
    'The key of its limit: of the jobs of one limit_scope, organization and key so many run at a time, or begin in a time';
COMMENT ON COLUMN daybook.jobs.limit_scope IS
    'What its limit_key is a key of: its type, or queue/ and the name of its queue; null: it has no key';
COMMENT ON COLUMN daybook.jobs.debounce_key IS
    'The key of the requests that the job has gathered (debounce_job)';
COMMENT ON COLUMN daybook.jobs.completed_turn_id IS
    'The turn whose attempt completed the job; null: the job is not completed, or its completion was adopted';
COMMENT ON COLUMN daybook.jobs.completed_fence IS 'The fence of that turn';
COMMENT ON COLUMN daybook.jobs.completed_by IS 'The worker that completed the job';
COMMENT ON COLUMN daybook.jobs.completed_started_at IS 'When the attempt that completed the job began';
COMMENT ON COLUMN daybook.jobs.edits IS
    '[{"at", "by", "attempts", "payload"}], the first one first: the payload that the job had until then, after so many attempts';
COMMENT ON COLUMN daybook.jobs.awaited IS
    'Other jobs may wait for its end, also those of its limit_key, or it for a callback, or it has kept steps: its changes are looked at';

-- What a row of the queue must be, as for accounting_work_queue.
--
-- Nearly all rows are pending or completed ones without anything special, and pass the first
-- condition, which is the second one for such rows. PL/pgSQL prepares a condition when a
-- transaction first reaches it, and a transaction of one job spends most of its time on that: a
-- short condition takes half as long.
CREATE FUNCTION daybook.is_sound_job(job daybook.jobs) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF num_nonnulls(job.input_hash, job.unique_hash, job.idempotency_key, job.max_attempts, job.queue, job.sequence, job.min_version, job.limit_key,
                    job.limit_scope, job.turn_id, job.fence, job.leased_generation, job.worker, job.attempt_started_at) = 0
       AND num_nonnulls(job.finished_at, job.completed_turn_id, job.completed_fence, job.completed_by, job.completed_started_at)
           = (CASE job.state WHEN 'pending' THEN 0 WHEN 'completed' THEN 5 END)
       AND octet_length(job.org_id) BETWEEN 1 AND 255 AND octet_length(job.type) <= 64 AND job.type ~ '^[A-Za-z][A-Za-z0-9_.:-]*$'
       AND jsonb_typeof(job.payload) = 'object' AND job.priority BETWEEN 1 AND 3 AND job.run_count BETWEEN (job.state = 'completed')::integer AND 1000000 AND job.reclaims = 0
       AND NOT (job.working OR job.detached OR job.cancel_requested)
       AND least(job.ready_at, job.first_ready_at, job.created_at, job.updated_at, job.last_attempted_at, job.finished_at, job.completed_started_at)
               >= '0001-01-01 00:00:00+00'
       AND greatest(job.ready_at, job.first_ready_at, job.created_at, job.updated_at, job.last_attempted_at, job.finished_at, job.completed_started_at)
               <= '9999-12-31 23:59:59+00' THEN
        RETURN true;
    END IF;
    RETURN CASE
        WHEN NOT (octet_length(job.org_id) BETWEEN 1 AND 255) THEN daybook.refuse_row('jobs', 'jobs_org_id_check')
        WHEN octet_length(job.type) > 64 OR job.type !~ '^[A-Za-z][A-Za-z0-9_.:-]*$' THEN daybook.refuse_row('jobs', 'jobs_type_check')
        WHEN jsonb_typeof(job.payload) <> 'object' THEN daybook.refuse_row('jobs', 'jobs_payload_check')
        WHEN octet_length(job.input_hash) <> 32 THEN daybook.refuse_row('jobs', 'jobs_input_hash_check')
        WHEN NOT (octet_length(job.idempotency_key) BETWEEN 1 AND 255) THEN daybook.refuse_row('jobs', 'jobs_idempotency_key_check')
        WHEN NOT (octet_length(job.debounce_key) BETWEEN 1 AND 255) THEN daybook.refuse_row('jobs', 'jobs_debounce_key_check')
        WHEN job.input_hash IS NULL AND num_nonnulls(job.idempotency_key, CASE WHEN job.debounce_key IS NULL THEN job.unique_hash END) > 0 THEN daybook.refuse_row('jobs', 'key_has_hash')
        WHEN octet_length(job.unique_hash) <> 32 THEN daybook.refuse_row('jobs', 'jobs_unique_hash_check')
        WHEN NOT (job.priority BETWEEN 1 AND 3) THEN daybook.refuse_row('jobs', 'jobs_priority_check')
        WHEN NOT (job.max_attempts BETWEEN 1 AND 1000) THEN daybook.refuse_row('jobs', 'jobs_max_attempts_check')
        WHEN job.queue IS NOT NULL AND (octet_length(job.queue) > 64 OR job.queue !~ '^[A-Za-z][A-Za-z0-9_.:-]*$') THEN daybook.refuse_row('jobs', 'jobs_queue_check')
        WHEN job.min_version < 1 THEN daybook.refuse_row('jobs', 'jobs_min_version_check')
        WHEN NOT (octet_length(job.sequence) BETWEEN 1 AND 255) THEN daybook.refuse_row('jobs', 'jobs_sequence_check')
        WHEN NOT (octet_length(job.limit_key) BETWEEN 1 AND 255) THEN daybook.refuse_row('jobs', 'jobs_limit_key_check')
        WHEN (job.limit_key IS NULL) <> (job.limit_scope IS NULL) THEN daybook.refuse_row('jobs', 'limit_key_has_scope')
        WHEN NOT (job.run_count BETWEEN 0 AND 1000000) THEN daybook.refuse_row('jobs', 'jobs_run_count_check')
        WHEN NOT (job.reclaims BETWEEN 0 AND 1000000) THEN daybook.refuse_row('jobs', 'jobs_reclaims_check')
        WHEN CASE WHEN job.state = 'leased'
                  THEN num_nulls(job.turn_id, job.fence, job.leased_generation, job.attempt_started_at, job.last_attempted_at) > 0 OR job.run_count <= 0
                  ELSE num_nonnulls(job.turn_id, job.fence, job.leased_generation, job.attempt_started_at, job.worker) > 0 OR job.working OR job.detached
             END THEN daybook.refuse_row('jobs', 'leased_has_lease')
        WHEN num_nonnulls(job.completed_turn_id, job.completed_fence, job.completed_by, job.completed_started_at) <> 0
             AND (job.state <> 'completed' OR job.run_count <= 0
                  OR num_nulls(job.completed_turn_id, job.completed_fence, job.completed_by, job.completed_started_at) > 0)
             THEN daybook.refuse_row('jobs', 'completed_has_attempt')
        WHEN job.cancel_requested AND job.state <> 'leased' THEN daybook.refuse_row('jobs', 'cancel_only_while_leased')
        WHEN job.state = 'failed' AND num_nulls(job.last_error, job.last_error_code) > 0 THEN daybook.refuse_row('jobs', 'failed_has_error')
        WHEN (job.state IN ('completed', 'failed', 'cancelled')) <> (job.finished_at IS NOT NULL) THEN daybook.refuse_row('jobs', 'finished_has_time')
        WHEN least(job.ready_at, job.first_ready_at, job.created_at, job.updated_at, job.last_attempted_at, job.attempt_started_at, job.finished_at,
                   job.completed_started_at) < '0001-01-01 00:00:00+00'
             OR greatest(job.ready_at, job.first_ready_at, job.created_at, job.updated_at, job.last_attempted_at, job.attempt_started_at, job.finished_at,
                         job.completed_started_at)
                 > '9999-12-31 23:59:59+00' THEN daybook.refuse_row('jobs', 'times_are_readable')
        ELSE true END;
END
$$;

-- The worker's completion is not checked, because that takes an eighth of the time of a job that
-- does nothing: it alone gives a row a completed_fence. A row that has one is checked whenever it
-- is changed, and when it is inserted.
ALTER TABLE daybook.jobs ADD CONSTRAINT sound CHECK (completed_fence IS NOT NULL OR daybook.is_sound_job(jobs));

CREATE FUNCTION daybook.check_completed_job() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM daybook.is_sound_job(NEW);
    RETURN NULL;
END
$$;
CREATE TRIGGER completed_changed AFTER UPDATE ON daybook.jobs
    FOR EACH ROW WHEN (OLD.completed_fence IS NOT NULL)
    EXECUTE FUNCTION daybook.check_completed_job();
CREATE TRIGGER completed_inserted AFTER INSERT ON daybook.jobs
    FOR EACH ROW WHEN (NEW.completed_fence IS NOT NULL)
    EXECUTE FUNCTION daybook.check_completed_job();

-- Where a job stands among those of its organization and priority: its type, and for a job in a
-- named queue both. A job with a lowest version has a slot that only workers of that version ask
-- for. A type has no slash. One expression, so that the planner can inline it, and a short one,
-- because each insert prepares it anew: what few jobs need stands in a function of its own.
CREATE FUNCTION daybook.versioned_job_slot(type text, queue text, min_version integer) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
BEGIN
    RETURN $1 || '/' || coalesce($2, '') || '/' || $3::text;
END
$$;
CREATE FUNCTION daybook.job_slot(type text, queue text, min_version integer) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN $3 IS NULL THEN coalesce($1 || '/' || $2, $1) ELSE daybook.versioned_job_slot($1, $2, $3) END
$$;
COMMENT ON FUNCTION daybook.job_slot IS
    'type, type/queue, or type/queue/min_version: what the due jobs of an organization and a priority are divided by';

-- The lease query: one range a fleet, priority, organization and slot, oldest first.
CREATE INDEX jobs_due ON daybook.jobs (fleet, priority, org_id, daybook.job_slot(type, queue, min_version), ready_at, id) WHERE state = 'pending';
-- Recent scans: what has fallen due lately, of all organizations and types of a fleet. Only
-- statements with this very condition use it: where a snapshot keeps completed rows, ANALYZE finds
-- hardly any pending row, and to the planner both indexes cost nothing.
CREATE INDEX jobs_ready ON daybook.jobs (fleet, ready_at) WHERE num_nulls(nullif(state, 'pending')) = 1;
-- Leases of a turn, and stale leases by age. Each index of leases has a condition in words of its
-- own: if all said state = 'leased', the one by age would be walked in place of the others where
-- ANALYZE finds no lease.
CREATE INDEX jobs_turn ON daybook.jobs (turn_id, last_attempted_at) WHERE num_nulls(nullif(state, 'leased')) = 1;
CREATE INDEX jobs_stale ON daybook.jobs (last_attempted_at) WHERE state = 'leased';
-- The caps of organizations, and the limits of types over all workers. A job has a turn while it is
-- leased.
CREATE INDEX jobs_capped ON daybook.jobs (org_id) WHERE capped AND turn_id IS NOT NULL;
CREATE INDEX jobs_counted ON daybook.jobs (type) WHERE counted AND turn_id IS NOT NULL;
-- Named queues: how many of a queue's jobs are leased, how many are in each state, and which are to
-- move to another fleet. A job without a queue has no entry.
CREATE INDEX jobs_queue ON daybook.jobs (queue, state, fleet) WHERE queue IS NOT NULL;
-- Dead letters, newest first, of all organizations and of one; and by the code that they failed
-- with: those that return when their cause is gone, and the newest and the oldest of each code.
CREATE INDEX jobs_failed ON daybook.jobs (finished_at DESC, id) WHERE state = 'failed';
CREATE INDEX jobs_failed_org ON daybook.jobs (org_id, finished_at DESC, id) WHERE state = 'failed';
CREATE INDEX jobs_failed_code ON daybook.jobs (last_error_code, type, finished_at DESC, id) WHERE state = 'failed';
-- Retention.
CREATE INDEX jobs_finished ON daybook.jobs (finished_at) WHERE state IN ('completed', 'cancelled');
-- One job a key, found also when its organization is not known; one open job of those that are to
-- be unique.
CREATE UNIQUE INDEX jobs_key ON daybook.jobs (idempotency_key, org_id) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX jobs_unique ON daybook.jobs (org_id, unique_hash) WHERE unique_hash IS NOT NULL AND state IN ('pending', 'leased');

-- The key of the lock by which the workers of a fleet wait for jobs. Each fleet has its own, so
-- that a job wakes only those who may work it.
CREATE FUNCTION daybook.jobs_key(fleet integer) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT 2 + 16 * $1
$$;

-- As wake_accounting_queue, for the workers of a fleet; null, or none that works it yet: of every
-- fleet.
CREATE FUNCTION daybook.wake_job_queue(fleet integer DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    IF fleet IS NULL OR fleet < 0 THEN
        PERFORM daybook.wake_job_queue(f.id) FROM daybook.fleets f;
    ELSIF daybook.must_wake(daybook.jobs_key(fleet), '-infinity') AND current_setting('daybook.notify', true) IS DISTINCT FROM 'off' THEN
        PERFORM pg_notify(CASE fleet WHEN 0 THEN 'daybook_jobs' ELSE 'daybook_jobs_' || fleet END, '');
    END IF;
END
$$;

-- Each attempt of every kind. What completed a job stays in the job's row, which saves each job a
-- row of the log and an index entry: a background job that is completed is final, and that of a
-- document goes to the log when its row is changed. Among the attempts of its job it has the
-- highest id.
CREATE VIEW daybook.attempts AS
SELECT id, job_id, org_id, kind, document_id, version, type, attempt, outcome, error_code, error, started_at, ended_at,
    worker, turn_id, fence,
       workflow_run_id, times, first_started_at
  FROM daybook.attempt_log
UNION ALL
SELECT 9007199254740991, j.id, j.org_id, 'jobs', NULL::text COLLATE "C", NULL::bigint, j.type, j.run_count, 'completed'::daybook.attempt_outcome, j.last_error_code, j.last_error,
       j.completed_started_at, j.finished_at, j.completed_by, j.completed_turn_id, j.completed_fence,
       split_part(j.completed_turn_id COLLATE "default", '/', 1), 1, NULL::timestamptz
  FROM daybook.jobs j
 WHERE j.state = 'completed' AND j.completed_turn_id IS NOT NULL
UNION ALL
SELECT 9007199254740991, q.id, q.org_id, 'accounting', q.document_id, q.version_hint, NULL::text COLLATE "C", q.run_count, 'completed'::daybook.attempt_outcome, NULL::text, NULL::text,
       q.completed_started_at, q.finished_at, q.completed_by, q.completed_turn_id, q.completed_fence,
       split_part(q.completed_turn_id COLLATE "default", '/', 1), 1, NULL::timestamptz
  FROM daybook.accounting_work_queue q
 WHERE q.state = 'completed' AND q.completed_turn_id IS NOT NULL;
COMMENT ON VIEW daybook.attempts IS
    'Every attempt at a job: those of attempt_log, and those that completed jobs, which the rows of the jobs keep';

-- What a job is about: pairs of words by which it is found.
CREATE TABLE daybook.job_links (
    job_id text COLLATE "C" NOT NULL REFERENCES daybook.jobs ON DELETE CASCADE,
    kind   text COLLATE "C" NOT NULL CHECK (kind <> '' AND octet_length(kind) <= 64),
    id     text COLLATE "C" NOT NULL CHECK (id <> '' AND octet_length(id) <= 255),
    PRIMARY KEY (kind, id, job_id)
);
-- The links of a job, also when it is removed.
CREATE INDEX job_links_job ON daybook.job_links (job_id);

-- Which worker has handlers for which types.
CREATE TABLE daybook.job_workers (
    id         text COLLATE "C" PRIMARY KEY,
    name       text NOT NULL,
    fleet      smallint NOT NULL DEFAULT 0,
    types      text[] NOT NULL,
    versions   integer[] NOT NULL DEFAULT '{}',
    first_seen timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen  timestamptz NOT NULL DEFAULT clock_timestamp(),
    stopped_at timestamptz,
    unshared   jsonb NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE daybook.job_workers IS
    'Each worker of background jobs writes every minute that it is alive, and its types; a row that is a day old is '
    'removed';
COMMENT ON COLUMN daybook.job_workers.versions IS 'The version of the handler of each of types; empty: each is 0';
COMMENT ON COLUMN daybook.job_workers.stopped_at IS
    'When the worker stopped; null: it runs, or has ended without saying so. For want of a handler jobs become dead '
    'letters five minutes later';
COMMENT ON COLUMN daybook.job_workers.unshared IS
    'The types whose jobs share no transactions in this process although their policy says so, with what a function of '
    'theirs did there';

CREATE VIEW daybook.live_job_workers AS
SELECT w.id, w.name, w.fleet, w.types, w.versions, w.unshared
  FROM daybook.job_workers w
 WHERE w.stopped_at IS NULL AND w.last_seen > statement_timestamp() - interval '5 minutes';
COMMENT ON VIEW daybook.live_job_workers IS
    'Workers of background jobs that were heard of in the last five minutes and have not stopped, among them what '
    'claims operations by SQL (async-operations)';

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
    -- Whose webhook it was, by which an erasure finds it when its job is gone.
    org_id      text COLLATE "C",
    PRIMARY KEY (job_id, attempt)
);
CREATE INDEX webhook_deliveries_org_id ON daybook.webhook_deliveries (org_id);
COMMENT ON COLUMN daybook.webhook_deliveries.url IS 'Without query and credentials';
COMMENT ON COLUMN daybook.webhook_deliveries.status IS 'The answer''s HTTP status; null: none came';

-- What became of each channel of a job that sends by several. The row is written before the channel
-- is asked, so that no later attempt asks it again.
CREATE TABLE daybook.job_deliveries (
    job_id     text COLLATE "C" NOT NULL,
    channel    text COLLATE "C" NOT NULL CHECK (channel ~ '^[a-z][a-z0-9_]{0,31}$'),
    state      text NOT NULL CHECK (state IN ('sending', 'sent', 'failed', 'refused', 'unknown')),
    attempt    integer NOT NULL CHECK (attempt > 0),
    generation bigint NOT NULL,
    reference  text,
    error_code text,
    error      text,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at   timestamptz,
    PRIMARY KEY (job_id, channel)
);
COMMENT ON COLUMN daybook.job_deliveries.state IS
    'sending: asked, no answer yet; sent; failed: not sent, the next attempt asks again; refused: not sent for good; unknown: perhaps sent, and not sent again';
COMMENT ON COLUMN daybook.job_deliveries.generation IS
    'The job''s when the channel was asked: a later request to try the job again asks channels that refused anew';
COMMENT ON COLUMN daybook.job_deliveries.reference IS
    'What the channel calls the message; while it is being asked, the mark of the call that asks';

-- The results of steps that attempts at a job have kept, for the attempts after them. Only a job
-- that is awaited may have any. Like the waits of a job they have no foreign key: forget_waits
-- (00023_waits.sql) removes them with it.
CREATE TABLE daybook.job_steps (
    job_id     text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL CHECK (name <> '' AND octet_length(name) <= 64),
    position   integer NOT NULL CHECK (position > 0),
    attempt    integer NOT NULL CHECK (attempt > 0),
    result     jsonb NOT NULL,
    done       boolean NOT NULL DEFAULT true,
    times      integer NOT NULL DEFAULT 1 CHECK (times > 0),
    started_at timestamptz NOT NULL,
    kept_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job_id, name)
);
COMMENT ON COLUMN daybook.job_steps.position IS 'The how many-th step of its attempt it was, from 1';
COMMENT ON COLUMN daybook.job_steps.attempt IS 'The attempt that has kept it, or the last one that has';
COMMENT ON COLUMN daybook.job_steps.done IS 'False: a loop, which goes on from the result';
COMMENT ON COLUMN daybook.job_steps.times IS 'How often it was kept: once, or once for each round of a loop';

-- +goose StatementEnd

-- +goose Down
DROP VIEW daybook.attempts, daybook.live_job_workers;
DELETE FROM daybook.attempt_log WHERE kind = 'jobs';
DROP TABLE daybook.job_steps, daybook.job_deliveries, daybook.webhook_deliveries, daybook.job_workers, daybook.job_links;
DROP FUNCTION daybook.wake_job_queue, daybook.jobs_key;
ALTER TABLE daybook.jobs DROP CONSTRAINT sound;
DROP FUNCTION daybook.is_sound_job(daybook.jobs);
DROP TABLE daybook.jobs;
DROP FUNCTION daybook.check_completed_job;
DROP FUNCTION daybook.job_slot, daybook.versioned_job_slot;
