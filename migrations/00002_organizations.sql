-- Chapter 2: organizations and their configuration (chart of accounts, rule sets, periods), and the
-- locks under which configuration is changed and used.

-- +goose Up
-- +goose StatementBegin

CREATE TYPE daybook.closed_period_policy AS ENUM ('fail', 'first_open_day');

CREATE TABLE daybook.organizations (
    id              text COLLATE "C" PRIMARY KEY CHECK (id <> '' AND octet_length(id) <= 255),
    name            text NOT NULL DEFAULT '',
    active_rule_set bigint,
    config_version  bigint NOT NULL DEFAULT 0,
    -- Names that need no quoting: they are part of the text of the worker's statements.
    source          text CHECK (source ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'),
    hooks           text[] CHECK (array_to_string(hooks, '/', ' ') ~ '^([a-z0-9][a-z0-9_.-]{0,62}(/[a-z0-9][a-z0-9_.-]{0,62})*)?$'),
    closed_period_policy daybook.closed_period_policy NOT NULL DEFAULT 'fail',
    -- Limits of its jobs, in both queues.
    paused_at       timestamptz,
    max_in_flight   integer CHECK (max_in_flight > 0),
    rate            integer CHECK (rate > 0),
    rate_seconds    double precision CHECK (rate_seconds BETWEEN 0.001 AND 31536000),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    currency          text CHECK (currency ~ '^[A-Z]{3}$'),
    exchange_accounts text[] CHECK (cardinality(exchange_accounts) = 3),
    CONSTRAINT rate_has_seconds CHECK ((rate IS NULL) = (rate_seconds IS NULL))
);
-- Those that are held back: few, however many organizations there are.
CREATE INDEX organizations_paused ON daybook.organizations (id) WHERE paused_at IS NOT NULL;
CREATE INDEX organizations_capped ON daybook.organizations (id) WHERE max_in_flight IS NOT NULL;
-- Those that name a source or hooks of their own, which not every worker may have.
CREATE INDEX organizations_own ON daybook.organizations (id) WHERE source IS NOT NULL OR hooks IS NOT NULL;
COMMENT ON COLUMN daybook.organizations.config_version IS
    'Grows whenever a rule set is activated or an account added: a failure found under an older one is tried again';
COMMENT ON COLUMN daybook.organizations.source IS
    'The source that its documents are read from: only workers that read it lease its jobs; null: that of daybook.defaults';
COMMENT ON COLUMN daybook.organizations.hooks IS
    'The hooks that are called with its postings: only workers that have all of them lease its jobs; null: those of daybook.defaults';
COMMENT ON COLUMN daybook.organizations.closed_period_policy IS
    'What a document does whose posting date lies in a closed period: fail with PERIOD_CLOSED, or post on the first open day after it';
COMMENT ON COLUMN daybook.organizations.currency IS 'Its own currency, into which exchange differences are computed; null: none';
COMMENT ON COLUMN daybook.organizations.exchange_accounts IS
    'The accounts by which exchange differences were booked last: adjustment, gain, loss; null: none were';
COMMENT ON COLUMN daybook.organizations.paused_at IS 'Since when nothing of it is leased; null: it is not paused';
COMMENT ON COLUMN daybook.organizations.max_in_flight IS
    'How many of its jobs may be leased at a time, over all workers; null: any number';
COMMENT ON COLUMN daybook.organizations.rate IS
    'How many attempts of its background jobs may begin in rate_seconds, over all workers; null: any number';

-- What is left of an organization's rate. A table of its own, because each lease of such an
-- organization writes it, and each scan reads daybook.organizations.
CREATE TABLE daybook.organization_rates (
    org_id text COLLATE "C" PRIMARY KEY REFERENCES daybook.organizations (id) ON DELETE CASCADE,
    starts double precision NOT NULL,
    at     timestamptz NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
COMMENT ON TABLE daybook.organization_rates IS
    'How many attempts could begin at a time, of each organization with a rate that was leased from';

-- How many attempts at background jobs of an organization with a rate may begin now: at once what
-- the rate allows in 50 ms, at least one.
CREATE FUNCTION daybook.organization_starts(of daybook.organizations) RETURNS double precision
    LANGUAGE plpgsql
AS $$
DECLARE
    most CONSTANT double precision := greatest(1, ceil(of.rate * 0.05 / of.rate_seconds));
BEGIN
    RETURN least(most, coalesce((SELECT r.starts + greatest(extract(epoch FROM clock_timestamp() - r.at), 0) * of.rate / of.rate_seconds
                                   FROM daybook.organization_rates r WHERE r.org_id = of.id), most));
END
$$;

-- Counts attempts that begin towards the rate of their organization, if it has one, and returns in
-- how many seconds one more may begin, 0 or less: now. The caller holds the lock of the
-- organization's leases, since before it asked how many may begin.
CREATE FUNCTION daybook.count_organization_starts(org_id text, began integer) RETURNS double precision
    LANGUAGE sql
AS $$
    INSERT INTO daybook.organization_rates AS r (org_id, starts, at)
    SELECT o.id, daybook.organization_starts(o) - $2, clock_timestamp() FROM daybook.organizations o WHERE o.id = $1 AND o.rate IS NOT NULL
    ON CONFLICT ON CONSTRAINT organization_rates_pkey DO UPDATE SET starts = excluded.starts, at = excluded.at
    RETURNING (1 - r.starts) * (SELECT o.rate_seconds / o.rate FROM daybook.organizations o WHERE o.id = $1)
$$;

-- The source and hooks of organizations that name none, also of those without a row. The table has
-- one row.
CREATE TABLE daybook.defaults (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one),
    source text NOT NULL DEFAULT 'daybook' CHECK (source ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'),
    hooks  text[] NOT NULL DEFAULT '{}' CHECK (array_to_string(hooks, '/', ' ') ~ '^([a-z0-9][a-z0-9_.-]{0,62}(/[a-z0-9][a-z0-9_.-]{0,62})*)?$')
);
COMMENT ON COLUMN daybook.defaults.source IS
    'The source of organizations that name none; daybook is the table daybook.documents';
INSERT INTO daybook.defaults DEFAULT VALUES;
CREATE TRIGGER defaults_stay BEFORE DELETE OR TRUNCATE ON daybook.defaults
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_removal();

CREATE TYPE daybook.account_type AS ENUM ('asset', 'liability', 'equity', 'income', 'expense');

CREATE TABLE daybook.accounts (
    org_id     text COLLATE "C" NOT NULL REFERENCES daybook.organizations (id),
    code       text COLLATE "C" NOT NULL CHECK (code <> '' AND octet_length(code) <= 64),
    name       text NOT NULL DEFAULT '',
    type       daybook.account_type NOT NULL,
    currencies text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    role       text NOT NULL DEFAULT ''
        CHECK (role IN ('', 'receivable', 'payable', 'advance', 'cash', 'tax', 'suspense', 'rounding', 'exchange')),
    section    text NOT NULL DEFAULT '' CHECK (octet_length(section) <= 255),
    PRIMARY KEY (org_id, code)
);
COMMENT ON COLUMN daybook.accounts.currencies IS 'The currencies that may be posted to the account; empty: all';
COMMENT ON COLUMN daybook.accounts.role IS
    'What the account is for beyond its type: receivable, payable and advance have open items, cash is money at hand, tax is in the VAT summary, suspense, rounding and exchange are looked at when a month is closed; empty: none of these';
COMMENT ON COLUMN daybook.accounts.section IS 'The heading in statements under which the account stands; empty: that of its type alone';

-- Workers cache an organization's chart and periods under its config_version. This trigger raises
-- it, so that accounts and periods may be changed by SQL too.
CREATE FUNCTION daybook.configuration_changed() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE daybook.organizations o
       SET config_version = o.config_version + 1, updated_at = clock_timestamp()
     WHERE o.id = CASE WHEN TG_OP = 'DELETE' THEN OLD.org_id ELSE NEW.org_id END;
    RETURN NULL;
END
$$;
CREATE TRIGGER accounts_changed AFTER INSERT OR UPDATE OR DELETE ON daybook.accounts
    FOR EACH ROW EXECUTE FUNCTION daybook.configuration_changed();

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

-- Spans of posting dates. What lies in no period is open or closed by daybook.closed_spans.
CREATE TYPE daybook.period_state AS ENUM ('open', 'closed');
CREATE TABLE daybook.periods (
    org_id     text COLLATE "C" NOT NULL REFERENCES daybook.organizations (id),
    starts_on  date NOT NULL,
    ends_on    date NOT NULL,
    state      daybook.period_state NOT NULL DEFAULT 'open',
    -- When it was last closed; null: it is open.
    closed_at  timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (org_id, starts_on),
    CHECK (starts_on <= ends_on),
    CONSTRAINT dates_are_bookable CHECK (daybook.is_bookable(starts_on) AND daybook.is_bookable(ends_on)),
    CHECK ((state = 'closed') = (closed_at IS NOT NULL))
);

-- Periods of an organization do not overlap. A change waits until no transaction posts for the
-- organization, and keeps other changes out, so this sees all of them.
CREATE FUNCTION daybook.check_periods() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM daybook.lock_configuration(OLD.org_id);
        RETURN OLD;
    END IF;
    PERFORM daybook.lock_configuration(NEW.org_id);
    IF EXISTS (SELECT 1 FROM daybook.periods p
                WHERE p.org_id = NEW.org_id AND p.starts_on <> NEW.starts_on
                  AND p.starts_on <= NEW.ends_on AND p.ends_on >= NEW.starts_on) THEN
        RAISE EXCEPTION 'the period from % to % overlaps another one of organization %',
            to_char(NEW.starts_on, 'YYYY-MM-DD'), to_char(NEW.ends_on, 'YYYY-MM-DD'), NEW.org_id
            USING ERRCODE = 'DB010', HINT = 'list the periods, and give one that begins after the last ends';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER periods_check BEFORE INSERT OR UPDATE OR DELETE ON daybook.periods
    FOR EACH ROW EXECUTE FUNCTION daybook.check_periods();
CREATE TRIGGER periods_changed AFTER INSERT OR UPDATE OR DELETE ON daybook.periods
    FOR EACH ROW EXECUTE FUNCTION daybook.configuration_changed();

-- The days on which nothing is posted for an organization: its closed periods, and the days in no
-- period that lie before one that is closed, or between the last closed one and the first open one
-- after it. Without a closed period there are none.
CREATE FUNCTION daybook.closed_spans(org_id text, OUT starts_on date, OUT ends_on date, OUT in_period boolean)
    RETURNS SETOF record
    LANGUAGE sql STABLE ROWS 12
AS $$
    WITH p AS (
        SELECT x.starts_on, x.ends_on, x.state,
               coalesce(lag(x.ends_on) OVER (ORDER BY x.starts_on) + 1, date '1900-01-01') AS gap_starts_on,
               -- It is closed, or one after it is.
               bool_or(x.state = 'closed') OVER (ORDER BY x.starts_on DESC) AS before_closed
          FROM daybook.periods x WHERE x.org_id = closed_spans.org_id
    ), open AS (
        SELECT min(p.starts_on) FILTER (WHERE NOT p.before_closed) AS first_day FROM p HAVING bool_or(p.before_closed)
    )
    SELECT p.starts_on, p.ends_on, true FROM p WHERE p.state = 'closed'
     UNION ALL
    SELECT p.gap_starts_on, p.starts_on - 1, false
      FROM p CROSS JOIN open
     WHERE p.gap_starts_on < p.starts_on AND (p.before_closed OR p.starts_on = open.first_day)
     ORDER BY 1
$$;
COMMENT ON FUNCTION daybook.closed_spans IS
    'The days on which nothing is posted for an organization: closed periods, and gaps before and between them and up to the first open period after them';

-- An organization's configuration (rules, accounts, periods) is changed under its exclusive lock
-- and used under its shared one. Advisory locks queue fairly: what waits to change it is not
-- overtaken by what uses it.
--
-- A transaction that posts for 500 organizations must not take 500 places in the server's lock
-- table. So organizations share 64 locks, and only when the lock that it shares is taken, an
-- organization is locked by a lock of its own: a change of one does not hold up the others that
-- share the lock. Posting never waits for these locks. Changes take the shared lock first, so that
-- they do not deadlock.
CREATE FUNCTION daybook.lock_configuration(org_id text) RETURNS void
    LANGUAGE sql
AS $$
    SELECT pg_advisory_xact_lock(daybook.lock_class('configuration groups'), hashtext(lock_configuration.org_id) & 63);
    SELECT pg_advisory_xact_lock(daybook.lock_class('configurations'), hashtext(lock_configuration.org_id));
$$;
COMMENT ON FUNCTION daybook.lock_configuration IS
    'Waits until no transaction posts for the organization, and keeps posting and other changes of its configuration out until the end of the transaction';

-- Waits until no transaction changes the organization's configuration, and keeps it as it is until
-- the end of the transaction. It takes the organization's own lock alone, which each change takes
-- behind the shared one: it may wait, and the transaction may be an application's and stay open for
-- long, so neither is to be about the other organizations that share a lock. A transaction that
-- changes the configuration as well changes it first: two that both use it and then change it would
-- wait for each other.
CREATE FUNCTION daybook.use_configuration(org_id text) RETURNS void
    LANGUAGE sql
AS $$
    SELECT pg_advisory_xact_lock_shared(daybook.lock_class('configurations'), hashtext(use_configuration.org_id));
$$;

-- Returns those of the organizations that may be posted for until the transaction ends. It takes at
-- most 64 locks of single organizations; the others are left for later transactions.
CREATE FUNCTION daybook.try_use_configurations(org_ids text[]) RETURNS SETOF text
    LANGUAGE plpgsql
AS $$
DECLARE
    shared integer[];
BEGIN
    SELECT array_agg(s.lock) INTO shared
      FROM (SELECT DISTINCT hashtext(o) & 63 AS lock FROM unnest(org_ids) AS o) s
     WHERE pg_try_advisory_xact_lock_shared(daybook.lock_class('configuration groups'), s.lock);
    RETURN QUERY
    SELECT o FROM unnest(org_ids) AS o WHERE (hashtext(o) & 63) = ANY (shared)
     UNION ALL
    SELECT own.o
      FROM (SELECT o FROM unnest(org_ids) AS o WHERE ((hashtext(o) & 63) = ANY (shared)) IS NOT TRUE LIMIT 64) own
     WHERE pg_try_advisory_xact_lock_shared(daybook.lock_class('configurations'), hashtext(own.o));
END
$$;

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.try_use_configurations, daybook.use_configuration, daybook.lock_configuration;
DROP FUNCTION daybook.closed_spans;
DROP TABLE daybook.periods;
DROP FUNCTION daybook.check_periods;
DROP TYPE daybook.period_state;
DROP TABLE daybook.accounts;
DROP FUNCTION daybook.configuration_changed;
DROP TYPE daybook.account_type;
-- Each of the two refers to the other.
DROP FUNCTION daybook.count_organization_starts, daybook.organization_starts;
DROP TABLE daybook.organization_rates, daybook.organizations, daybook.rule_sets;
DROP TABLE daybook.defaults;
DROP TYPE daybook.closed_period_policy;
