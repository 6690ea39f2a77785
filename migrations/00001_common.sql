-- Chapter 1: types and functions that the queues and the ledger share, and the log of attempts.
--
-- The chapters make the whole schema in the order of their numbers. Every table, function, index
-- and trigger is in one place, and a chapter uses only what an earlier one made.
--
-- Daybook's own SQLSTATEs; each chapter names those that its functions raise:
-- DB001 to DB003, DB005, DB006  the ledger refuses a posting (chapter 4)
-- DB004  a row that is kept may not be removed, and an append-only row may not be changed
-- DB010 to DB014  a request is invalid, or meets a state that it cannot change
--                 (chapters 2, 5, 6, 7, 9 and 10)
-- DB020 to DB022  a job's payload or idempotency key is refused (chapter 9)
-- DB030  a table was replaced
-- DB031  a job that is to be completed is no longer the caller's

-- +goose Up
-- +goose StatementBegin

-- The states of a job, in both queues. docs/states.md has the transitions between them.
CREATE TYPE daybook.job_state AS ENUM ('pending', 'leased', 'completed', 'failed', 'cancelled');

-- What an attempt led to. `lost`: its lease expired, and another turn reclaimed the job.
CREATE TYPE daybook.attempt_outcome AS ENUM ('completed', 'retried', 'rescheduled', 'failed', 'cancelled', 'lost');

-- A UUID of version 7 as text: ordered by time, to a quarter of a microsecond, so that new rows go
-- to the end of the primary key's index: the first 15 digits are the milliseconds and, behind them,
-- 4096ths of one. One expression, so that the planner can inline it.
CREATE FUNCTION daybook.new_id() RETURNS text
    LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$
    SELECT overlay(overlay(lpad(to_hex((date_part('epoch', clock_timestamp()) * 4096000)::bigint), 15, '0') PLACING '-' FROM 9 FOR 0) PLACING '-7' FROM 14 FOR 0)
           || substr(gen_random_uuid()::text, 19)
$$;
COMMENT ON FUNCTION daybook.new_id() IS 'A UUID version 7 as text';

-- As many such ids as are asked for, each later than the one before it, for a statement with many
-- rows: a call of new_id for each takes three times as long. What is random in new_id comes from
-- one seed here. An id is no secret.
CREATE FUNCTION daybook.new_ids(total integer) RETURNS text[]
    LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    first CONSTANT bigint := date_part('epoch', clock_timestamp()) * 4096000;
    seed  CONSTANT text := gen_random_uuid()::text;
BEGIN
    -- 48 bits of milliseconds, the version 7, and 12 bits of 4096ths of one; then the variant
    -- (binary 10), and 62 bits of the hash.
    RETURN ARRAY(
        SELECT encode(int8send(((t & -4096) << 4) | 28672 | (t & 4095))
                      || int8send((hashtextextended(seed, t) & 4611686018427387903) | -9223372036854775808), 'hex')::uuid::text
          FROM generate_series(first, first + total - 1) AS t);
END
$$;
COMMENT ON FUNCTION daybook.new_ids(integer) IS 'UUIDs version 7 as text, in ascending order';

-- The class of an advisory lock, its first key, by its purpose. Package models/locks says what each
-- is for, and what its second key is. No two purposes share a class: where the second key is a
-- hash, two unrelated transactions would wait for each other. One expression, so that the planner
-- folds it into a number.
CREATE FUNCTION daybook.lock_class(name text) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE name
        WHEN 'wakers'               THEN 1684109666
        WHEN 'reclaim'              THEN 1684109667
        WHEN 'organization leases'  THEN 1684109668
        WHEN 'type leases'          THEN 1684109669
        WHEN 'configuration groups' THEN 1684109670
        WHEN 'sampler'              THEN 1684109671
        WHEN 'adoption'             THEN 1684109672
        WHEN 'configurations'       THEN 1684109673
        WHEN 'task type leases'     THEN 1684109674
        WHEN 'async operations'     THEN 1684109675
        WHEN 'queue leases'         THEN 1684109680
        WHEN 'fleets'               THEN 1684109681
        WHEN 'workers'              THEN 1684109682
        WHEN 'job limits'           THEN 1684109683
        WHEN 'reconciliations'      THEN 1684109684
    END
$$;
COMMENT ON FUNCTION daybook.lock_class(text) IS 'The classid, in pg_locks, of Daybook''s advisory locks of a purpose';

-- Whether a worker that waits has to be woken for what is due then. It looks at its queue every
-- minute by itself, and learns then when the next job is due; before that a request wakes it. While
-- it waits it holds the exclusive lock of its queue, so that the shared one cannot be taken. queue
-- is 1 for accounting, 2 for jobs. One expression, so that the planner can inline it.
CREATE FUNCTION daybook.must_wake(queue integer, due timestamptz) RETURNS boolean
    LANGUAGE sql VOLATILE
AS $$
    SELECT due <= clock_timestamp() + interval '1 minute' AND NOT pg_try_advisory_xact_lock_shared(daybook.lock_class('wakers'), queue)
$$;

-- The trace that a request belongs to: the setting daybook.traceparent, in the form of W3C Trace
-- Context's header of that name, version 00; null when it is not set or has another form. It is the
-- default of the column traceparent, so that requests carry it without an argument of their own.
-- One expression, so that the planner can inline it.
CREATE FUNCTION daybook.traceparent() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN current_setting('daybook.traceparent', true) ~ '^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$'
                THEN current_setting('daybook.traceparent', true) END
$$;
COMMENT ON FUNCTION daybook.traceparent() IS 'The setting daybook.traceparent, if it has the form of a traceparent';

-- Whether documents, postings and periods may have the date: the years of models.FirstYear to
-- models.LastYear, which each program that an export is made for can read. One expression, so that
-- a CHECK inlines it. It is null for null.
CREATE FUNCTION daybook.is_bookable(day date) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT day BETWEEN date '1900-01-01' AND date '2999-12-31'
$$;
COMMENT ON FUNCTION daybook.is_bookable(date) IS 'Whether documents, postings and periods may have the date';

CREATE FUNCTION daybook.refuse_removal() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'daybook.% keeps its row: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'DB004', HINT = 'update it instead';
END
$$;

CREATE FUNCTION daybook.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'daybook.% is append-only: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'DB004', HINT = 'correct a posting by a reversal and a new impact';
END
$$;

-- Fails unless the table is the one that the caller knows: restoring a dump makes another table of
-- the same name.
CREATE FUNCTION daybook.require_table(name text, table_id oid) RETURNS void
    LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF to_regclass(name) IS DISTINCT FROM table_id THEN
        RAISE EXCEPTION 'the table % was replaced', name USING ERRCODE = 'DB030', HINT = 'verify the schema before it is used again';
    END IF;
END
$$;

-- Refuses a row as a CHECK of that name refuses it. What a row of a queue must be is one CHECK,
-- which calls a function with the row: PostgreSQL reads the text of each CHECK of a table anew for
-- every statement that writes to it, which for sixteen of them takes 30 µs of processor time, and
-- the text of a function once a session.
CREATE FUNCTION daybook.refuse_row(table_name text, rule text) RETURNS boolean
    LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'new row for relation "%" violates check constraint "%"', table_name, rule
        USING ERRCODE = 'check_violation', SCHEMA = 'daybook', TABLE = table_name, CONSTRAINT = rule;
END
$$;

-- Fails a completion that found fewer jobs than it was to complete: the others are not the turn's
-- any more. It is an error and not a result, so that a COMMIT which was sent after the completion
-- is not executed.
CREATE FUNCTION daybook.lease_lost(wanted bigint, found bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    RAISE EXCEPTION '% of % jobs are still its own', found, wanted USING ERRCODE = 'DB031';
END
$$;

CREATE SEQUENCE daybook.fence_seq;
COMMENT ON SEQUENCE daybook.fence_seq IS
    'Fences of leases: an activity takes the next one when it starts; the holder of a lower one commits nothing';

-- All kinds share one log of attempts. It is read by job, through the view daybook.attempts, which
-- also has the attempts that the rows of completed jobs keep. It has no foreign key: its rows stay
-- when their job is removed by hand.
CREATE TABLE daybook.attempt_log (
    id              bigint GENERATED ALWAYS AS IDENTITY,
    job_id          text COLLATE "C" NOT NULL,
    org_id          text COLLATE "C" NOT NULL,
    kind            text NOT NULL DEFAULT 'accounting',
    -- Of an attempt at an accounting job.
    document_id     text COLLATE "C",
    version         bigint,
    -- Of an attempt at a job.
    type            text COLLATE "C",
    attempt         integer NOT NULL CHECK (attempt > 0),
    outcome         daybook.attempt_outcome NOT NULL,
    error_code      text,
    error           text,
    started_at      timestamptz NOT NULL,
    ended_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    worker          text NOT NULL DEFAULT '',
    turn_id         text COLLATE "C" NOT NULL,
    fence           bigint NOT NULL,
    workflow_run_id text NOT NULL DEFAULT '',
    -- A row may stand for several consecutive attempts with the same result: its other columns are
    -- those of the last one.
    times            integer NOT NULL DEFAULT 1 CHECK (times > 0),
    first_started_at timestamptz,
    PRIMARY KEY (job_id, id),
    CHECK ((outcome IN ('retried', 'failed')) <= (error_code IS NOT NULL)),
    CHECK ((times > 1) = (first_started_at IS NOT NULL)),
    CONSTRAINT attempts_kind CHECK (CASE kind
        WHEN 'accounting' THEN document_id IS NOT NULL AND version IS NOT NULL AND type IS NULL
        WHEN 'jobs' THEN document_id IS NULL AND version IS NULL AND type IS NOT NULL
        ELSE false END)
);
COMMENT ON COLUMN daybook.attempt_log.times IS
    'How many attempts the row stands for: rescheduled ones with the same number, version and error code are kept as one row, the last of them';
COMMENT ON COLUMN daybook.attempt_log.first_started_at IS
    'When the first of several attempts began; null: it stands for one';

-- +goose StatementEnd

-- +goose Down
DROP TABLE daybook.attempt_log;
DROP SEQUENCE daybook.fence_seq;
DROP FUNCTION daybook.refuse_row, daybook.require_table, daybook.lease_lost, daybook.refuse_change,
    daybook.refuse_removal, daybook.is_bookable, daybook.traceparent, daybook.must_wake, daybook.lock_class,
    daybook.new_ids, daybook.new_id;
DROP TYPE daybook.attempt_outcome, daybook.job_state;
