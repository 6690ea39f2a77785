-- Chapter 3: the accounting queue: documents, and one job for each document.

-- +goose Up
-- +goose StatementBegin

CREATE TABLE daybook.documents (
    org_id     text COLLATE "C" NOT NULL CHECK (org_id <> '' AND octet_length(org_id) <= 255),
    id         text COLLATE "C" NOT NULL CHECK (id <> '' AND octet_length(id) <= 255),
    type       text NOT NULL CHECK (type <> ''),
    direction  text NOT NULL CHECK (direction IN ('in', 'out')),
    currency   text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    issue_date date NOT NULL,
    value_date date,
    content    jsonb NOT NULL,

    accounting_ready_at          timestamptz,
    accounting_ready_version     bigint NOT NULL DEFAULT 0 CHECK (accounting_ready_version >= 0),
    accounting_impact_created_at timestamptz,
    deleted_at                   timestamptz,
    import_id                    bigint,

    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (org_id, id),
    CONSTRAINT dates_are_bookable CHECK (daybook.is_bookable(issue_date) AND daybook.is_bookable(value_date))
) WITH (
    -- Room for the next version of every document on the same page: then a chunk that posts all of
    -- them touches no index.
    fillfactor = 50,
    -- A document is updated once a posting, which leaves a dead row: the server's default would
    -- wait until a fifth of the table is dead.
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 1);
COMMENT ON COLUMN daybook.documents.accounting_ready_version IS
    'Grows by one each time the document is marked ready, not ready or deleted';
COMMENT ON COLUMN daybook.documents.accounting_impact_created_at IS
    'When the live impact was posted; kept for readers of older schemas, nothing is locked by it';

COMMENT ON COLUMN daybook.documents.import_id IS
    'The import (daybook.imports) that wrote it last; null: none did';

-- One row per (organization, document). No foreign keys: an application may keep its documents in
-- tables of its own.
CREATE TABLE daybook.accounting_work_queue (
    -- Ids grow with time. Pages of the index keep room for the entries that completions write,
    -- which would otherwise look for dead entries to remove.
    id                text COLLATE "C" DEFAULT daybook.new_id() PRIMARY KEY WITH (fillfactor = 55),
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    org_id            text COLLATE "C" NOT NULL,
    document_id       text COLLATE "C" NOT NULL,
    version_hint      bigint NOT NULL,
    ready_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    state             daybook.job_state NOT NULL DEFAULT 'pending',
    run_count         integer NOT NULL DEFAULT 0,
    last_attempted_at timestamptz,
    last_error        text,

    last_error_code   text,
    priority          smallint NOT NULL DEFAULT 2,
    first_ready_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at       timestamptz,
    -- Requests: each raises generation; a completion finishes a job only if it is the one that was
    -- leased.
    generation        bigint NOT NULL DEFAULT 0,
    -- Grows with each deliberate repost under unchanged versions.
    epoch             integer NOT NULL DEFAULT 0,
    cancel_requested  boolean NOT NULL DEFAULT false,
    -- The version in which the document was deleted (mark_document_deleted). While it is
    -- version_hint, a source may answer that it does not know the document: it counts as deleted.
    deleted_version   bigint,
    -- Consecutive attempts that found the document not ready; the delay of the next one grows with
    -- them.
    not_ready_count   integer NOT NULL DEFAULT 0,
    -- The lease. last_attempted_at is when it was taken or renewed.
    turn_id           text COLLATE "C",
    fence             bigint,
    leased_generation bigint,
    worker            text,
    attempt_started_at timestamptz,
    -- Set while the row alone is being worked: when its lease is reclaimed, the lost attempt
    -- counts.
    working           boolean NOT NULL DEFAULT false,
    -- Held by its process beyond its turn, under a turn of its own that no activity works.
    detached          boolean NOT NULL DEFAULT false,
    -- Reclaims since the last completion: the more, the smaller the chunk.
    reclaims         integer NOT NULL DEFAULT 0,
    -- Whether the lease counts towards its organization's cap; only such leases are indexed by
    -- organization.
    capped            boolean NOT NULL DEFAULT false,
    -- The trace of the request.
    traceparent       varchar(55) DEFAULT daybook.traceparent(),

    -- The attempt that completed the job: its version is version_hint, its number run_count and its
    -- end finished_at. It has no row in attempt_log until the row is changed.
    completed_turn_id    text COLLATE "C",
    completed_fence      bigint,
    completed_by         text,
    completed_started_at timestamptz,

    UNIQUE (org_id, document_id)
) WITH (
    -- Room for some of the jobs' next versions on the same page.
    fillfactor = 75,
    -- A row is updated twice a job, which leaves two dead ones: the server's default would wait
    -- until a fifth of the table is dead.
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 1,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 10000);
COMMENT ON COLUMN daybook.accounting_work_queue.priority IS '1 high, 2 normal, 3 low';
COMMENT ON COLUMN daybook.accounting_work_queue.traceparent IS
    'The trace of the request that the next attempt answers, as W3C Trace Context writes it';
COMMENT ON COLUMN daybook.accounting_work_queue.run_count IS 'Attempts, the running one included';
COMMENT ON COLUMN daybook.accounting_work_queue.first_ready_at IS
    'When the present request was first due; backoff moves ready_at and leaves this for the latency figures';
COMMENT ON COLUMN daybook.accounting_work_queue.epoch IS
    'The document is posted anew if the epoch of its live impact is lower; each deliberate repost (repost_accounting_job) sets it above all of them';
COMMENT ON COLUMN daybook.accounting_work_queue.completed_turn_id IS
    'The turn whose attempt completed the job; null: the job is not completed, or its row was changed since: then the attempt is in attempt_log';
COMMENT ON COLUMN daybook.accounting_work_queue.completed_fence IS 'The fence of that turn';
COMMENT ON COLUMN daybook.accounting_work_queue.completed_by IS 'The worker that completed the job';
COMMENT ON COLUMN daybook.accounting_work_queue.completed_started_at IS 'When the attempt that completed the job began';

-- What a row of the queue must be, rule by rule; each has the name that a CHECK of its own would
-- have.
CREATE FUNCTION daybook.is_sound_accounting_job(job daybook.accounting_work_queue) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    RETURN CASE
        WHEN NOT (octet_length(job.org_id) BETWEEN 1 AND 255) THEN daybook.refuse_row('accounting_work_queue', 'accounting_work_queue_org_id_check')
        WHEN NOT (octet_length(job.document_id) BETWEEN 1 AND 255) THEN daybook.refuse_row('accounting_work_queue', 'accounting_work_queue_document_id_check')
        WHEN job.version_hint < 0 THEN daybook.refuse_row('accounting_work_queue', 'accounting_work_queue_version_hint_check')
        WHEN job.deleted_version < 0 THEN daybook.refuse_row('accounting_work_queue', 'accounting_work_queue_deleted_version_check')
        WHEN job.epoch < 0 THEN daybook.refuse_row('accounting_work_queue', 'accounting_work_queue_epoch_check')
        WHEN NOT (job.priority BETWEEN 1 AND 3) THEN daybook.refuse_row('accounting_work_queue', 'accounting_work_queue_priority_check')
        -- Counts end far below what their type can hold: a lease adds to them, and one that
        -- overflows fails with all its rows.
        WHEN NOT (job.run_count BETWEEN 0 AND 1000000) THEN daybook.refuse_row('accounting_work_queue', 'accounting_work_queue_run_count_check')
        WHEN NOT (job.not_ready_count BETWEEN 0 AND 1000000) THEN daybook.refuse_row('accounting_work_queue', 'accounting_work_queue_not_ready_count_check')
        WHEN NOT (job.reclaims BETWEEN 0 AND 1000000) THEN daybook.refuse_row('accounting_work_queue', 'accounting_work_queue_reclaims_check')
        WHEN CASE WHEN job.state = 'leased'
                  THEN num_nulls(job.turn_id, job.fence, job.leased_generation, job.attempt_started_at, job.last_attempted_at) > 0 OR job.run_count <= 0
                  ELSE num_nonnulls(job.turn_id, job.fence, job.leased_generation, job.attempt_started_at, job.worker) > 0 OR job.working OR job.detached
             END THEN daybook.refuse_row('accounting_work_queue', 'leased_has_lease')
        WHEN num_nonnulls(job.completed_turn_id, job.completed_fence, job.completed_by, job.completed_started_at) <> 0
             AND (job.state <> 'completed' OR job.run_count <= 0
                  OR num_nulls(job.completed_turn_id, job.completed_fence, job.completed_by, job.completed_started_at) > 0)
             THEN daybook.refuse_row('accounting_work_queue', 'completed_has_attempt')
        WHEN job.cancel_requested AND job.state <> 'leased' THEN daybook.refuse_row('accounting_work_queue', 'cancel_only_while_leased')
        WHEN job.state = 'failed' AND num_nulls(job.last_error, job.last_error_code) > 0 THEN daybook.refuse_row('accounting_work_queue', 'failed_has_error')
        WHEN (job.state IN ('completed', 'failed', 'cancelled')) <> (job.finished_at IS NOT NULL)
            THEN daybook.refuse_row('accounting_work_queue', 'finished_has_time')
        -- Every time is one that every program can read: from the year 1 to the year 9999. An
        -- infinite one in a row that is leased with others would keep all of them from being
        -- worked.
        WHEN least(job.ready_at, job.first_ready_at, job.created_at, job.updated_at, job.last_attempted_at, job.attempt_started_at, job.finished_at,
                   job.completed_started_at) < '0001-01-01 00:00:00+00'
             OR greatest(job.ready_at, job.first_ready_at, job.created_at, job.updated_at, job.last_attempted_at, job.attempt_started_at, job.finished_at,
                         job.completed_started_at)
                 > '9999-12-31 23:59:59+00' THEN daybook.refuse_row('accounting_work_queue', 'times_are_readable')
        ELSE true END;
END
$$;

-- The worker's completion is not checked, because that takes a tenth of PostgreSQL's time for it:
-- it alone gives a row a completed_fence. A row that has one loses it with the next change, which
-- is checked then, and is checked when it is inserted.
ALTER TABLE daybook.accounting_work_queue ADD CONSTRAINT sound
    CHECK (completed_fence IS NOT NULL OR daybook.is_sound_accounting_job(accounting_work_queue));

-- A completed job may be asked for anew, and its row says then what is asked for. So the attempt
-- that completed it leaves the row with the next change, whatever that is: it gets its row in the
-- log, before any attempt that follows. It runs with the rights of the schema's owner, because
-- domain code asks for documents and writes no attempts.
CREATE FUNCTION daybook.log_kept_attempt() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO daybook.attempt_log (job_id, org_id, document_id, version, attempt, outcome, started_at, ended_at, worker, turn_id, fence, workflow_run_id)
    VALUES (OLD.id, OLD.org_id, OLD.document_id, OLD.version_hint, OLD.run_count, 'completed', OLD.completed_started_at, OLD.finished_at, OLD.completed_by,
            OLD.completed_turn_id, OLD.completed_fence, split_part(OLD.completed_turn_id COLLATE "default", '/', 1));
    IF TG_OP = 'DELETE' THEN
        RETURN NULL;
    END IF;
    NEW.completed_turn_id := NULL;
    NEW.completed_fence := NULL;
    NEW.completed_by := NULL;
    NEW.completed_started_at := NULL;
    RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION daybook.log_kept_attempt FROM PUBLIC; -- the right to execute it is the right to make it a trigger of any table
-- One condition of one column: PostgreSQL reads the conditions of a table's triggers, as text, for
-- each statement.
CREATE TRIGGER kept_attempt_leaves BEFORE UPDATE ON daybook.accounting_work_queue
    FOR EACH ROW WHEN (OLD.completed_fence IS NOT NULL)
    EXECUTE FUNCTION daybook.log_kept_attempt();
CREATE TRIGGER kept_attempt_stays AFTER DELETE ON daybook.accounting_work_queue
    FOR EACH ROW WHEN (OLD.completed_fence IS NOT NULL)
    EXECUTE FUNCTION daybook.log_kept_attempt();

CREATE FUNCTION daybook.check_completed_accounting_job() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM daybook.is_sound_accounting_job(NEW);
    RETURN NULL;
END
$$;
CREATE TRIGGER kept_attempt_inserted AFTER INSERT ON daybook.accounting_work_queue
    FOR EACH ROW WHEN (NEW.completed_fence IS NOT NULL)
    EXECUTE FUNCTION daybook.check_completed_accounting_job();

-- The lease query: one range a priority and organization, oldest first.
CREATE INDEX accounting_work_queue_due ON daybook.accounting_work_queue (priority, org_id, ready_at, id) WHERE state = 'pending';
-- Recent scans: what has fallen due lately, of all organizations. Only statements with this very
-- condition use it: where a snapshot keeps completed rows, ANALYZE finds hardly any pending row,
-- and to the planner both indexes cost nothing.
CREATE INDEX accounting_work_queue_ready ON daybook.accounting_work_queue (ready_at) WHERE num_nulls(nullif(state, 'pending')) = 1;
-- Leases of a turn, and stale leases by age. Each index of leases has a condition in words of its
-- own: if all said state = 'leased', the one by age would be walked in place of the others where
-- ANALYZE finds no lease.
CREATE INDEX accounting_work_queue_turn ON daybook.accounting_work_queue (turn_id, last_attempted_at) WHERE num_nulls(nullif(state, 'leased')) = 1;
CREATE INDEX accounting_work_queue_stale ON daybook.accounting_work_queue (last_attempted_at) WHERE state = 'leased';
-- The caps of organizations. A job has a turn while it is leased.
CREATE INDEX accounting_work_queue_capped ON daybook.accounting_work_queue (org_id)
    WHERE capped AND turn_id IS NOT NULL;
-- Failed jobs: those that wait for a person, newest first; and those that return when their cause
-- is gone.
CREATE INDEX accounting_work_queue_failed ON daybook.accounting_work_queue (updated_at DESC) WHERE state = 'failed';
CREATE INDEX accounting_work_queue_failed_code ON daybook.accounting_work_queue (org_id, last_error_code, updated_at DESC, id) WHERE state = 'failed';
-- Failed jobs of all organizations by the code that they failed with, and the newest and the oldest
-- of each code.
CREATE INDEX accounting_work_queue_failed_cause ON daybook.accounting_work_queue (last_error_code, updated_at DESC, id) WHERE state = 'failed';

-- What was completed lately: an entry for 32 pages of rows, which costs a completion next to
-- nothing.
CREATE INDEX accounting_work_queue_completed ON daybook.accounting_work_queue USING brin (finished_at) WITH (pages_per_range = 32) WHERE state = 'completed';

-- Wakes a waiting worker at commit. NOTIFY takes a global lock at commit, so it is sent only while
-- a worker waits. PostgreSQL refuses PREPARE TRANSACTION after a NOTIFY: a transaction that is to
-- be prepared sets daybook.notify to off, and its work is found at the poll interval.
CREATE FUNCTION daybook.wake_accounting_queue() RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    IF daybook.must_wake(1, '-infinity') AND current_setting('daybook.notify', true) IS DISTINCT FROM 'off' THEN
        PERFORM pg_notify('daybook_accounting', '');
    END IF;
END
$$;

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.wake_accounting_queue;
ALTER TABLE daybook.accounting_work_queue DROP CONSTRAINT sound;
DROP FUNCTION daybook.is_sound_accounting_job(daybook.accounting_work_queue);
DROP TABLE daybook.accounting_work_queue, daybook.documents;
DROP FUNCTION daybook.check_completed_accounting_job, daybook.log_kept_attempt;
