-- +goose Up
-- +goose StatementBegin

CREATE TYPE daybook.accounting_job_state AS ENUM ('pending', 'leased', 'completed', 'failed', 'cancelled');

-- What an attempt led to. `lost`: its lease was taken over.
CREATE TYPE daybook.attempt_outcome AS ENUM ('completed', 'retried', 'rescheduled', 'failed', 'cancelled', 'lost');

CREATE TYPE daybook.account_type AS ENUM ('asset', 'liability', 'equity', 'income', 'expense');
CREATE TYPE daybook.entry_side AS ENUM ('debit', 'credit');
CREATE TYPE daybook.impact_kind AS ENUM ('post', 'reverse');

-- A UUID of version 7 as text: ordered by time, so that new rows go to the end of the primary key's index.
-- One expression, so that the planner can inline it.
CREATE FUNCTION daybook.new_id() RETURNS text
    LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$
    SELECT overlay(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') PLACING '-' FROM 9 FOR 0)
           || '-7' || substr(gen_random_uuid()::text, 16)
$$;
COMMENT ON FUNCTION daybook.new_id() IS 'A UUID version 7 as text';

CREATE FUNCTION daybook.refuse_removal() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'daybook.% keeps its row: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'DB004', HINT = 'update it instead';
END
$$;

-- Fails unless the table is the one that the caller knows: a restored dump makes another one of the same name.
CREATE FUNCTION daybook.require_table(name text, table_id oid) RETURNS void
    LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF to_regclass(name) IS DISTINCT FROM table_id THEN
        RAISE EXCEPTION 'the table % was replaced', name USING ERRCODE = 'DB030', HINT = 'verify the schema before it is used again';
    END IF;
END
$$;

CREATE TABLE daybook.organizations (
    id              text COLLATE "C" PRIMARY KEY CHECK (id <> '' AND octet_length(id) <= 255),
    name            text NOT NULL DEFAULT '',
    active_rule_set bigint,
    config_version  bigint NOT NULL DEFAULT 0,
    -- Names without anything that needs quoting: they stand in the text of the worker's statements.
    source          text CHECK (source ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'),
    hooks           text[] CHECK (array_to_string(hooks, '/', ' ') ~ '^([a-z0-9][a-z0-9_.-]{0,62}(/[a-z0-9][a-z0-9_.-]{0,62})*)?$'),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON COLUMN daybook.organizations.config_version IS
    'Grows whenever a rule set is activated or an account added: a failure found under an older one is tried again';
COMMENT ON COLUMN daybook.organizations.source IS
    'The source that its documents are read from: only workers that read it lease its jobs; null: that of daybook.defaults';
COMMENT ON COLUMN daybook.organizations.hooks IS
    'The AfterPosting hooks that its postings are told to: only workers that have all of them lease its jobs; null: those of daybook.defaults';

-- What holds for every organization that does not say otherwise, also for those without a row. It has one row.
CREATE TABLE daybook.defaults (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one),
    source text NOT NULL DEFAULT 'daybook' CHECK (source ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'),
    hooks  text[] NOT NULL DEFAULT '{}' CHECK (array_to_string(hooks, '/', ' ') ~ '^([a-z0-9][a-z0-9_.-]{0,62}(/[a-z0-9][a-z0-9_.-]{0,62})*)?$')
);
COMMENT ON COLUMN daybook.defaults.source IS 'The source of organizations that name none; daybook is the table daybook.documents';
INSERT INTO daybook.defaults DEFAULT VALUES;
CREATE TRIGGER defaults_stay BEFORE DELETE OR TRUNCATE ON daybook.defaults
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_removal();

CREATE TABLE daybook.accounts (
    org_id     text COLLATE "C" NOT NULL REFERENCES daybook.organizations (id),
    code       text COLLATE "C" NOT NULL CHECK (code <> '' AND octet_length(code) <= 64),
    name       text NOT NULL DEFAULT '',
    type       daybook.account_type NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (org_id, code)
);

CREATE TABLE daybook.rule_sets (
    org_id     text COLLATE "C" NOT NULL REFERENCES daybook.organizations (id),
    version    bigint NOT NULL CHECK (version > 0),
    name       text NOT NULL,
    source     text NOT NULL,
    sha256     text NOT NULL CHECK (length(sha256) = 64),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (org_id, version)
);
ALTER TABLE daybook.organizations
    ADD FOREIGN KEY (id, active_rule_set) REFERENCES daybook.rule_sets (org_id, version);

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

    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (org_id, id)
);
COMMENT ON COLUMN daybook.documents.accounting_ready_version IS
    'Grows by one each time the document is marked ready, not ready or deleted';
COMMENT ON COLUMN daybook.documents.accounting_impact_created_at IS
    'When the live impact was posted; kept for readers of older schemas, nothing is locked by it';

-- One row per (organization, document). No foreign keys: an application may keep its documents in tables of its own.
CREATE TABLE daybook.accounting_work_queue (
    id                text COLLATE "C" PRIMARY KEY DEFAULT daybook.new_id(),
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    org_id            text COLLATE "C" NOT NULL CHECK (org_id <> '' AND octet_length(org_id) <= 255),
    document_id       text COLLATE "C" NOT NULL CHECK (document_id <> '' AND octet_length(document_id) <= 255),
    version_hint      bigint NOT NULL CHECK (version_hint >= 0),
    ready_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    state             daybook.accounting_job_state NOT NULL DEFAULT 'pending',
    -- Counts end far below what their type can hold: a lease adds to them, and one that overflows fails with all its rows.
    run_count         integer NOT NULL DEFAULT 0 CHECK (run_count BETWEEN 0 AND 1000000),
    last_attempted_at timestamptz,
    last_error        text,

    last_error_code   text,
    priority          smallint NOT NULL DEFAULT 2 CHECK (priority BETWEEN 1 AND 3),
    first_ready_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at       timestamptz,
    -- Requests: each raises generation; a settlement finishes a job only if it is the one that was leased.
    generation        bigint NOT NULL DEFAULT 0,
    cancel_requested  boolean NOT NULL DEFAULT false,
    -- The version in which the document was deleted (mark_document_deleted): while it is version_hint, a source that does not
    -- know the document any more says nothing new.
    deleted_version   bigint CHECK (deleted_version >= 0),
    -- Looks in a row that found the document not ready; slows the next look down.
    not_ready_count   integer NOT NULL DEFAULT 0 CHECK (not_ready_count BETWEEN 0 AND 1000000),
    -- The lease. last_attempted_at is when it was taken or renewed.
    turn_id           text COLLATE "C",
    fence             bigint,
    leased_generation bigint,
    worker            text,
    attempt_started_at timestamptz,
    -- Set while the row alone is being worked: whoever takes the lease over charges the row with the lost attempt.
    working           boolean NOT NULL DEFAULT false,
    -- Take-overs since the last settlement: the more, the smaller the chunk.
    takeovers         integer NOT NULL DEFAULT 0 CHECK (takeovers BETWEEN 0 AND 1000000),

    UNIQUE (org_id, document_id),

    CONSTRAINT leased_has_lease CHECK (
        (state = 'leased' AND turn_id IS NOT NULL AND fence IS NOT NULL AND leased_generation IS NOT NULL
                          AND attempt_started_at IS NOT NULL AND last_attempted_at IS NOT NULL AND run_count > 0)
        OR
        (state <> 'leased' AND turn_id IS NULL AND fence IS NULL AND leased_generation IS NULL
                           AND worker IS NULL AND attempt_started_at IS NULL AND NOT working)),
    CONSTRAINT failed_has_error CHECK (state <> 'failed' OR (last_error IS NOT NULL AND last_error_code IS NOT NULL)),
    CONSTRAINT finished_has_time CHECK ((state IN ('completed', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT cancel_only_while_leased CHECK (NOT cancel_requested OR state = 'leased'),
    -- Every time is one that every program can read: from the year 1 to the year 9999. An infinite one in a row that is leased
    -- with others would keep all of them from being worked.
    CONSTRAINT times_are_readable CHECK (
        ready_at BETWEEN to_timestamp(-62135596800) AND to_timestamp(253402300799)
        AND first_ready_at BETWEEN to_timestamp(-62135596800) AND to_timestamp(253402300799)
        AND created_at BETWEEN to_timestamp(-62135596800) AND to_timestamp(253402300799)
        AND updated_at BETWEEN to_timestamp(-62135596800) AND to_timestamp(253402300799)
        AND last_attempted_at BETWEEN to_timestamp(-62135596800) AND to_timestamp(253402300799)
        AND attempt_started_at BETWEEN to_timestamp(-62135596800) AND to_timestamp(253402300799)
        AND finished_at BETWEEN to_timestamp(-62135596800) AND to_timestamp(253402300799))
);
COMMENT ON COLUMN daybook.accounting_work_queue.priority IS '1 high, 2 normal, 3 low';
COMMENT ON COLUMN daybook.accounting_work_queue.run_count IS 'Attempts, the running one included';
COMMENT ON COLUMN daybook.accounting_work_queue.first_ready_at IS
    'When the present request was first due; backoff moves ready_at and leaves this for the latency figures';

-- The lease query: one probe a priority, oldest first.
CREATE INDEX accounting_work_queue_due ON daybook.accounting_work_queue (priority, ready_at, id) WHERE state = 'pending';
-- Take-over and sweep by turn, stale leases by age.
CREATE INDEX accounting_work_queue_turn ON daybook.accounting_work_queue (turn_id, last_attempted_at) WHERE state = 'leased';
CREATE INDEX accounting_work_queue_stale ON daybook.accounting_work_queue (last_attempted_at) WHERE state = 'leased';
-- What waits for a person, newest first; and what comes back when its cause is gone.
CREATE INDEX accounting_work_queue_failed ON daybook.accounting_work_queue (updated_at DESC) WHERE state = 'failed';
CREATE INDEX accounting_work_queue_failed_code ON daybook.accounting_work_queue (org_id, last_error_code) WHERE state = 'failed';

CREATE SEQUENCE daybook.fence_seq;
COMMENT ON SEQUENCE daybook.fence_seq IS
    'Fences of leases: an activity takes the next one when it starts; who holds the lower one commits nothing';

CREATE TABLE daybook.attempts (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id          text COLLATE "C" NOT NULL,
    org_id          text COLLATE "C" NOT NULL,
    document_id     text COLLATE "C" NOT NULL,
    version         bigint NOT NULL,
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
    -- A row may stand for several attempts in a row that came to the same: its other columns are those of the last.
    times            integer NOT NULL DEFAULT 1 CHECK (times > 0),
    first_started_at timestamptz,
    CHECK ((outcome IN ('retried', 'failed')) <= (error_code IS NOT NULL)),
    CHECK ((times > 1) = (first_started_at IS NOT NULL))
);
COMMENT ON COLUMN daybook.attempts.times IS
    'How many attempts the row stands for: rescheduled ones with the same number, version and error code are kept as one row, the last of them';
COMMENT ON COLUMN daybook.attempts.first_started_at IS 'When the first of several attempts began; null: it stands for one';
CREATE INDEX attempts_job ON daybook.attempts (job_id, id);

CREATE TABLE daybook.impacts (
    id               bigint PRIMARY KEY,
    org_id           text COLLATE "C" NOT NULL,
    document_id      text COLLATE "C" NOT NULL,
    document_version bigint NOT NULL,
    -- The chain of a document: post, reverse, post … The last link is live when it posts.
    seq              integer NOT NULL CHECK (seq > 0),
    previous_seq     integer GENERATED ALWAYS AS (NULLIF(seq - 1, 0)) STORED,
    kind             daybook.impact_kind NOT NULL,
    rule_set_version bigint,
    rule_id          text NOT NULL DEFAULT '',
    document_date    date NOT NULL,
    posting_date     date NOT NULL,
    entry_count      integer NOT NULL CHECK (entry_count >= 0),
    job_id           text COLLATE "C" NOT NULL,
    attempt          integer NOT NULL,
    workflow_run_id  text NOT NULL DEFAULT '',
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (org_id, document_id, seq),
    CONSTRAINT chain_alternates CHECK ((kind = 'post') = (seq % 2 = 1)),
    CONSTRAINT chain_has_no_gap FOREIGN KEY (org_id, document_id, previous_seq)
        REFERENCES daybook.impacts (org_id, document_id, seq)
);
CREATE SEQUENCE daybook.impact_id_seq OWNED BY daybook.impacts.id;

CREATE TABLE daybook.entries (
    impact_id     bigint NOT NULL,
    line_no       integer NOT NULL CHECK (line_no > 0),
    org_id        text COLLATE "C" NOT NULL,
    account_code  text COLLATE "C" NOT NULL,
    side          daybook.entry_side NOT NULL,
    amount_minor  bigint NOT NULL CHECK (amount_minor > 0),
    currency      text NOT NULL CHECK (length(currency) = 3),
    rule_line_id  text NOT NULL DEFAULT '',
    document_line integer,
    PRIMARY KEY (impact_id, line_no)
);
COMMENT ON COLUMN daybook.entries.amount_minor IS 'In minor units of the currency (cents, whole yen)';
CREATE INDEX entries_account ON daybook.entries (org_id, account_code, currency);

CREATE FUNCTION daybook.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'daybook.% is append-only: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'DB004', HINT = 'correct a posting by a reversal and a new impact';
END
$$;

CREATE TRIGGER impacts_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON daybook.impacts
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_change();
CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON daybook.entries
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_change();

-- +goose StatementEnd

-- +goose Down
DROP TABLE daybook.entries, daybook.impacts, daybook.attempts, daybook.accounting_work_queue, daybook.documents CASCADE;
ALTER TABLE daybook.organizations DROP CONSTRAINT organizations_id_active_rule_set_fkey;
DROP TABLE daybook.rule_sets, daybook.accounts, daybook.organizations, daybook.defaults;
DROP SEQUENCE daybook.fence_seq;
DROP FUNCTION daybook.require_table(text, oid), daybook.refuse_change(), daybook.refuse_removal(), daybook.new_id();
DROP TYPE daybook.accounting_job_state, daybook.attempt_outcome, daybook.account_type, daybook.entry_side, daybook.impact_kind;
