-- The schema that the migrations make, for review. Written by `daybook migrate dump` (make schema); do not edit.

-- Name: daybook; Type: SCHEMA; Schema: -; Owner: -

CREATE SCHEMA daybook;

-- Name: internal; Type: SCHEMA; Schema: -; Owner: -

CREATE SCHEMA internal;

-- Name: SCHEMA internal; Type: COMMENT; Schema: -; Owner: -

COMMENT ON SCHEMA internal IS 'Made by Daybook';

-- Name: queues; Type: SCHEMA; Schema: -; Owner: -

CREATE SCHEMA queues;

-- Name: SCHEMA queues; Type: COMMENT; Schema: -; Owner: -

COMMENT ON SCHEMA queues IS 'Made by Daybook';

-- Name: account_type; Type: TYPE; Schema: daybook; Owner: -

CREATE TYPE daybook.account_type AS ENUM (
    'asset',
    'liability',
    'equity',
    'income',
    'expense'
);

-- Name: attempt_outcome; Type: TYPE; Schema: daybook; Owner: -

CREATE TYPE daybook.attempt_outcome AS ENUM (
    'completed',
    'retried',
    'rescheduled',
    'failed',
    'cancelled',
    'lost'
);

-- Name: closed_period_policy; Type: TYPE; Schema: daybook; Owner: -

CREATE TYPE daybook.closed_period_policy AS ENUM (
    'fail',
    'first_open_day'
);

-- Name: entry_side; Type: TYPE; Schema: daybook; Owner: -

CREATE TYPE daybook.entry_side AS ENUM (
    'debit',
    'credit'
);

-- Name: impact_kind; Type: TYPE; Schema: daybook; Owner: -

CREATE TYPE daybook.impact_kind AS ENUM (
    'post',
    'reverse'
);

-- Name: job_state; Type: TYPE; Schema: daybook; Owner: -

CREATE TYPE daybook.job_state AS ENUM (
    'pending',
    'leased',
    'completed',
    'failed',
    'cancelled'
);

-- Name: period_state; Type: TYPE; Schema: daybook; Owner: -

CREATE TYPE daybook.period_state AS ENUM (
    'open',
    'closed'
);

-- Name: statement_line; Type: TYPE; Schema: daybook; Owner: -

CREATE TYPE daybook.statement_line AS (
	place text,
	kind text,
	currency text,
	type text,
	section text,
	account_code text,
	name text,
	value text,
	amount numeric
);

-- Name: account_sums(text, date, date, text, text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.account_sums(org_id text, from_day date DEFAULT NULL::date, to_day date DEFAULT NULL::date, by_key text DEFAULT NULL::text, where_key text DEFAULT NULL::text, where_value text DEFAULT NULL::text) RETURNS TABLE(account_code text, currency text, year_end boolean, value text, debit numeric, credit numeric)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
BEGIN
    PERFORM daybook.check_dimension(account_sums.org_id, k.key)
       FROM unnest(ARRAY[account_sums.by_key, account_sums.where_key]) AS k (key) WHERE k.key IS NOT NULL;
    RETURN QUERY
    SELECT s.account_code, s.currency, s.year_end, coalesce(s.dimensions ->> by_key, ''), sum(s.debit), sum(s.credit)
      FROM daybook.dimension_sums(account_sums.org_id, from_day, to_day, by_key IS NOT NULL OR where_key IS NOT NULL) s
     WHERE where_key IS NULL OR coalesce(s.dimensions ->> where_key, '') = coalesce(where_value, '')
     GROUP BY 1, 2, 3, 4
    -- An account to which only entries were posted that are counted elsewhere.
    HAVING sum(s.debit) <> 0 OR sum(s.credit) <> 0;
END
$$;

-- Name: FUNCTION account_sums(org_id text, from_day date, to_day date, by_key text, where_key text, where_value text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.account_sums(org_id text, from_day date, to_day date, by_key text, where_key text, where_value text) IS 'What was posted to each account from one day to another, in minor units, also by the values of a dimension; closed days from the sums that are kept';

-- Name: accounting_request_in_doubt(text, text, bigint, integer, timestamp with time zone); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.accounting_request_in_doubt(org_id text, document_id text, version_hint bigint, priority integer, ready_at timestamp with time zone) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT (octet_length(org_id) BETWEEN 1 AND 255 AND octet_length(document_id) BETWEEN 1 AND 255 AND version_hint >= 0
            AND (priority IS NULL OR priority BETWEEN 1 AND 3) AND (ready_at IS NULL OR ready_at <= '9999-12-31 23:59:59+00')) IS NOT TRUE
$$;

-- Name: add_statement_totals(text, daybook.statement_line[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.add_statement_totals(org_id text, lines daybook.statement_line[]) RETURNS SETOF daybook.statement_line
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    WITH chart AS (
        SELECT a.code, a.type::text, a.section, a.name,
               min(a.code) OVER (PARTITION BY a.type, a.section) AS section_code
          FROM daybook.accounts a WHERE a.org_id = add_statement_totals.org_id
    ), placed AS (
        SELECT l.kind, l.currency, coalesce(l.type, c.type, 'asset') AS type, coalesce(c.section, l.section, '') AS section, l.account_code,
               coalesce(c.name, l.name, '') AS name, l.value, l.amount,
               CASE coalesce(l.type, c.type, 'asset') WHEN 'asset' THEN '1' WHEN 'liability' THEN '2' WHEN 'equity' THEN '3' WHEN 'income' THEN '4' ELSE '5' END AS part,
               coalesce(c.section_code, CASE WHEN l.kind = 'account' THEN '' ELSE '~' || l.kind END) AS section_code
          FROM unnest(lines) l LEFT JOIN chart c ON c.code = l.account_code
    )
    SELECT p.part || ' ' || p.section_code || E'\x01' || p.account_code, p.kind, p.currency, p.type, p.section, p.account_code, p.name, p.value, p.amount
      FROM placed p
     WHERE p.amount <> 0
     UNION ALL
    SELECT p.part || ' ' || p.section_code || E'\x02', 'section', p.currency, p.type, p.section, '', 'Total ' || p.section, p.value, sum(p.amount)
      FROM placed p
     WHERE p.section <> ''
     GROUP BY p.part, p.section_code, p.currency, p.type, p.section, p.value
     UNION ALL
    SELECT p.part || '~', 'total', p.currency, p.type, '', '',
           'Total ' || CASE p.type WHEN 'asset' THEN 'assets' WHEN 'liability' THEN 'liabilities' WHEN 'expense' THEN 'expenses' ELSE p.type END, p.value, sum(p.amount)
      FROM placed p
     GROUP BY p.part, p.currency, p.type, p.value
$$;

-- Name: admit_all_limited(text, text, text, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.admit_all_limited(scope text, org_id text, key text, batch integer) RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    o text := admit_all_limited.org_id;
    k text := admit_all_limited.key;
BEGIN
    FOR i IN 1..batch LOOP
        SELECT j.org_id, j.limit_key INTO o, k
          FROM daybook.jobs j
         WHERE j.limit_scope = admit_all_limited.scope AND (j.org_id, j.limit_key) > (o, k) AND j.limit_key IS NOT NULL AND j.finished_at IS NULL
         ORDER BY j.org_id, j.limit_key
         LIMIT 1;
        IF NOT FOUND THEN
            RETURN true;
        END IF;
        IF NOT daybook.admit_limited(admit_all_limited.scope, o, k) THEN
            INSERT INTO daybook.job_wait_checks (limit_scope, org_id, limit_key) VALUES (admit_all_limited.scope, o, k);
        END IF;
    END LOOP;
    INSERT INTO daybook.job_wait_checks (limit_scope, org_id, limit_key, limit_all) VALUES (admit_all_limited.scope, o, k, true);
    RETURN true;
END
$$;

-- Name: admit_limited(text, text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.admit_limited(scope text, org_id text, key text) RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    most  CONSTANT integer := 200;
    ahead CONSTANT double precision := 0.25;
    found daybook.job_limits;
    held  integer;
    begun integer;
    -- How many the limit allows beside those that hold a place, and how many may be admitted now.
    free  integer;
    room  integer;
    -- Of a rate: seconds from one beginning to the next, how many may begin at once, when the bucket
    -- is full, and how many it allows.
    step  double precision;
    burst integer;
    base  timestamptz;
    allowed integer;
    n     integer;
    line  boolean;
    at    timestamptz;
BEGIN
    IF NOT daybook.may_admit() THEN
        RETURN false;
    END IF;
    at := clock_timestamp();
    SELECT l.* INTO found FROM daybook.job_limits l WHERE l.scope = admit_limited.scope;
    SELECT count(*), count(*) FILTER (WHERE p.turn_id IS NOT NULL) INTO held, begun
      FROM daybook.limited_places(admit_limited.scope, admit_limited.org_id, admit_limited.key) p
     WHERE found.scope IS NOT NULL;
    free := coalesce(found.parallel - held, most);
    room := least(most, free);
    IF found.rate IS NOT NULL THEN
        step := found.rate_seconds / found.rate;
        burst := greatest(1, least(most, floor(0.05 / step)));
        SELECT r.next_at INTO base
          FROM daybook.job_limit_rates r
         WHERE r.scope = admit_limited.scope AND r.org_id = admit_limited.org_id AND r.limit_key = admit_limited.key
           FOR NO KEY UPDATE SKIP LOCKED;
        IF base IS NULL AND EXISTS (SELECT FROM daybook.job_limit_rates r
                                     WHERE r.scope = admit_limited.scope AND r.org_id = admit_limited.org_id AND r.limit_key = admit_limited.key) THEN
            RETURN false;
        END IF;
        base := greatest(at, least(coalesce(base, at), at + make_interval(secs => ahead + burst * step)));
        allowed := greatest(0, least(most, floor((ahead - extract(epoch FROM base - at)) / step + burst)));
        room := least(room, allowed, greatest(burst, least(most, ceil(ahead / step))) - (held - begun));
    END IF;
    WITH next AS MATERIALIZED (
        SELECT x.id, row_number() OVER () AS nth
          FROM (SELECT j.id
                  FROM daybook.jobs j
                 WHERE j.limit_scope = admit_limited.scope AND j.org_id = admit_limited.org_id AND j.limit_key = admit_limited.key AND j.finished_at IS NULL AND j.fleet = -2
                 ORDER BY j.priority, j.ready_at, j.id
                 LIMIT greatest(room, 0)
                   FOR NO KEY UPDATE SKIP LOCKED) x
    ), admitted AS (
        UPDATE daybook.jobs j
           SET fleet = coalesce((SELECT u.fleet FROM daybook.queues u WHERE u.name = j.queue), 0),
               ready_at = greatest(at, base + make_interval(secs => (next.nth - burst) * step)),
               first_ready_at = CASE WHEN j.run_count = 0 THEN greatest(at, base + make_interval(secs => (next.nth - burst) * step)) ELSE j.first_ready_at END,
               updated_at = at
          FROM next
         WHERE j.id = next.id AND j.fleet = -2
        RETURNING j.id
    )
    SELECT count(*) INTO n FROM admitted;
    IF n > 0 THEN
        PERFORM daybook.wake_job_queue();
    END IF;
    line := EXISTS (SELECT FROM daybook.jobs j
                     WHERE j.limit_scope = admit_limited.scope AND j.org_id = admit_limited.org_id AND j.limit_key = admit_limited.key AND j.finished_at IS NULL AND j.fleet = -2);
    IF found.rate IS NOT NULL THEN
        PERFORM daybook.note_limit_rate(admit_limited.scope, admit_limited.org_id, admit_limited.key, base + make_interval(secs => n * step),
                                        CASE WHEN NOT line OR n >= free THEN NULL
                                             WHEN n >= allowed THEN base + make_interval(secs => (n + 1 - burst) * step - ahead)
                                             ELSE at + interval '100 ms' END);
    END IF;
    RETURN NOT line
        OR n = room AND n BETWEEN 1 AND most - 1
        OR found.rate IS NOT NULL AND n < free
        OR room <= 0 AND held = (SELECT count(*) FROM daybook.lock_limited_places(admit_limited.scope, admit_limited.org_id, admit_limited.key));
END
$$;

-- Name: ageing(text, date); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.ageing(org_id text, on_day date) RETURNS TABLE(counterparty text, account_code text, role text, currency text, items bigint, open_amount numeric, not_due numeric, due_30 numeric, due_60 numeric, due_90 numeric, due_longer numeric)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT o.counterparty, o.account_code, min(o.role), o.currency, count(*), sum(o.open_amount),
           coalesce(sum(o.open_amount) FILTER (WHERE d.days <= 0), 0), coalesce(sum(o.open_amount) FILTER (WHERE d.days BETWEEN 1 AND 30), 0),
           coalesce(sum(o.open_amount) FILTER (WHERE d.days BETWEEN 31 AND 60), 0), coalesce(sum(o.open_amount) FILTER (WHERE d.days BETWEEN 61 AND 90), 0),
           coalesce(sum(o.open_amount) FILTER (WHERE d.days > 90), 0)
      FROM daybook.open_items(ageing.org_id, ageing.on_day) o
     CROSS JOIN LATERAL (SELECT ageing.on_day - coalesce(o.due_date, o.issue_date) AS days) d
     GROUP BY o.counterparty, o.account_code, o.currency
$$;

-- Name: FUNCTION ageing(org_id text, on_day date); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.ageing(org_id text, on_day date) IS 'What is open on a day by counterparty, account and currency: not due yet, and due for up to 30, 60 and 90 days, and longer';

-- Name: new_id(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.new_id() RETURNS text
    LANGUAGE sql PARALLEL SAFE
    AS $$
    SELECT overlay(overlay(lpad(to_hex((date_part('epoch', clock_timestamp()) * 4096000)::bigint), 15, '0') PLACING '-' FROM 9 FOR 0) PLACING '-7' FROM 14 FOR 0)
           || substr(gen_random_uuid()::text, 19)
$$;

-- Name: FUNCTION new_id(); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.new_id() IS 'A UUID version 7 as text';

-- Name: traceparent(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.traceparent() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $_$
    SELECT CASE WHEN current_setting('daybook.traceparent', true) ~ '^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$'
                THEN current_setting('daybook.traceparent', true) END
$_$;

-- Name: FUNCTION traceparent(); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.traceparent() IS 'The setting daybook.traceparent, if it has the form of a traceparent';

-- Name: jobs; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.jobs (
    id text DEFAULT daybook.new_id() NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    org_id text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    payload jsonb NOT NULL,
    input_hash bytea,
    idempotency_key text COLLATE pg_catalog."C",
    unique_hash bytea,
    priority smallint DEFAULT 2 NOT NULL,
    fleet smallint DEFAULT 0 NOT NULL,
    state daybook.job_state DEFAULT 'pending'::daybook.job_state NOT NULL,
    ready_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    first_ready_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    run_count integer DEFAULT 0 NOT NULL,
    max_attempts integer,
    last_attempted_at timestamp with time zone,
    last_error text,
    last_error_code text,
    result jsonb,
    progress jsonb,
    finished_at timestamp with time zone,
    generation bigint DEFAULT 0 NOT NULL,
    cancel_requested boolean DEFAULT false NOT NULL,
    turn_id text COLLATE pg_catalog."C",
    fence bigint,
    leased_generation bigint,
    worker text,
    attempt_started_at timestamp with time zone,
    working boolean DEFAULT false NOT NULL,
    detached boolean DEFAULT false NOT NULL,
    reclaims integer DEFAULT 0 NOT NULL,
    capped boolean DEFAULT false NOT NULL,
    counted boolean DEFAULT false NOT NULL,
    traceparent character varying(55) DEFAULT daybook.traceparent(),
    queue text COLLATE pg_catalog."C",
    min_version integer,
    sequence text COLLATE pg_catalog."C",
    awaited boolean DEFAULT false NOT NULL,
    debounce_key text COLLATE pg_catalog."C",
    limit_key text COLLATE pg_catalog."C",
    limit_scope text COLLATE pg_catalog."C",
    completed_turn_id text COLLATE pg_catalog."C",
    completed_fence bigint,
    completed_by text,
    completed_started_at timestamp with time zone,
    edits jsonb
)
WITH (fillfactor='75', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='10000', autovacuum_vacuum_cost_delay='1', autovacuum_analyze_scale_factor='0.05', autovacuum_analyze_threshold='10000');

-- Name: COLUMN jobs.input_hash; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.input_hash IS 'daybook.job_input_hash of type and payload as it was enqueued: whether a key is used again with other input; null: it has no key and need not be unique, or is debounced';

-- Name: COLUMN jobs.unique_hash; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.unique_hash IS 'What no other open job of its organization may have: daybook.job_input_hash, if the job is to be the only one with its type and payload, daybook.job_skip_hash of skip_while_open, or daybook.job_debounce_hash of type and debounce_key';

-- Name: COLUMN jobs.priority; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.priority IS '1 high, 2 normal, 3 low';

-- Name: COLUMN jobs.fleet; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.fleet IS 'The fleet whose workers work it (daybook.fleets): that of its queue; 0: the one without a name; -1 or -2: none yet, because its limit_key comes first (00030_limits.sql)';

-- Name: COLUMN jobs.state; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.state IS 'failed is the dead letter';

-- Name: COLUMN jobs.first_ready_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.first_ready_at IS 'When the present request was first due; backoff moves ready_at and leaves this for the latency figures. While the job waits for something, when it is to be due';

-- Name: COLUMN jobs.run_count; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.run_count IS 'Attempts, the running one included';

-- Name: COLUMN jobs.max_attempts; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.max_attempts IS 'Null: the policy of the type''s handler says';

-- Name: COLUMN jobs.counted; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.counted IS 'Whether the lease counts towards its type''s limit over all workers; only such leases are indexed by type';

-- Name: COLUMN jobs.traceparent; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.traceparent IS 'The trace of the request that made the job, as W3C Trace Context writes it';

-- Name: COLUMN jobs.queue; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.queue IS 'The named queue; null: the queue default';

-- Name: COLUMN jobs.min_version; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.min_version IS 'The lowest version of its type''s handler that may work it; null: any';

-- Name: COLUMN jobs.sequence; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.sequence IS 'The key of its sequence: jobs of one organization and key are worked one after the other';

-- Name: COLUMN jobs.awaited; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.awaited IS 'Other jobs may wait for its end, also those of its limit_key, or it for a callback, or it has kept steps: its changes are looked at';

-- Name: COLUMN jobs.debounce_key; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.debounce_key IS 'The key of the requests that the job has gathered (debounce_job)';

-- Name: COLUMN jobs.limit_key; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.limit_key IS 'The key of its limit: of the jobs of one limit_scope, organization and key so many run at a time, or begin in a time';

-- Name: COLUMN jobs.limit_scope; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.limit_scope IS 'What its limit_key is a key of: its type, or queue/ and the name of its queue; null: it has no key';

-- Name: COLUMN jobs.completed_turn_id; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.completed_turn_id IS 'The turn whose attempt completed the job; null: the job is not completed, or its completion was adopted';

-- Name: COLUMN jobs.completed_fence; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.completed_fence IS 'The fence of that turn';

-- Name: COLUMN jobs.completed_by; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.completed_by IS 'The worker that completed the job';

-- Name: COLUMN jobs.completed_started_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.completed_started_at IS 'When the attempt that completed the job began';

-- Name: COLUMN jobs.edits; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.jobs.edits IS '[{"at", "by", "attempts", "payload"}], the first one first: the payload that the job had until then, after so many attempts';

-- Name: async_operation_attempts(daybook.jobs); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.async_operation_attempts(job daybook.jobs) RETURNS integer
    LANGUAGE sql STABLE
    AS $$
    SELECT coalesce(job.max_attempts, (SELECT nullif(t.max_attempts, 0) FROM daybook.job_types t WHERE t.kind = 'jobs' AND t.type = job.type),
                    CASE WHEN job.type IN ('webhook', 'webhook_delivery') THEN 5 ELSE 3 END)
$$;

-- Name: async_operation_lease(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.async_operation_lease() RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT interval '290 seconds' $$;

-- Name: awaited_job_changed(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.awaited_job_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- Nothing waits for most jobs that end. That is found here, without a call: what comes below
    -- costs more than the rest of a completion.
    IF NEW.finished_at IS NOT NULL AND NEW.sequence IS NULL AND current_setting('transaction_isolation') = 'read committed' THEN
        IF NOT EXISTS (SELECT FROM daybook.job_waits w WHERE w.awaits = NEW.id AND w.ended_as IS NULL) THEN
            IF EXISTS (SELECT FROM daybook.jobs j
                        WHERE j.limit_scope = OLD.limit_scope AND j.org_id = OLD.org_id AND j.limit_key = OLD.limit_key AND j.finished_at IS NULL AND j.fleet = -2) THEN
                PERFORM daybook.limited_job_changed(OLD, NEW);
            END IF;
            RETURN NULL;
        END IF;
    END IF;
    IF num_nonnulls(NEW.limit_key, OLD.limit_key) > 0 THEN
        -- It joins its key's line, is admitted, or lines up anew without a request: limited_job_changed,
        -- which has it do that, also passes its place on.
        IF NEW.state = 'pending' AND NEW.fleet <> OLD.fleet
           AND (OLD.fleet < 0 OR NEW.fleet < 0 AND NEW.generation = OLD.generation AND NEW.limit_key = OLD.limit_key) THEN
            RETURN NULL;
        END IF;
        PERFORM daybook.limited_job_changed(OLD, NEW);
    END IF;
    -- It was asked for anew while it was worked: the steps were kept for the request before.
    IF OLD.state = 'leased' AND NEW.state = 'pending' AND OLD.generation <> OLD.leased_generation AND NOT OLD.cancel_requested THEN
        DELETE FROM daybook.job_steps s WHERE s.job_id = NEW.id;
    END IF;
    IF NEW.state IN ('completed', 'failed', 'cancelled') THEN
        IF NEW.state <> OLD.state AND OLD.state NOT IN ('completed', 'cancelled') THEN
            PERFORM daybook.tell_of_ended_job(OLD, NEW.state::text);
        END IF;
    ELSIF NEW.last_error_code = 'AWAITING_CALLBACK' AND NEW.state = 'pending' AND NEW.ready_at > OLD.ready_at THEN
        UPDATE daybook.job_callbacks c SET awaited = true WHERE c.job_id = NEW.id AND NOT c.awaited;
        PERFORM daybook.find_callback(NEW.id);
    ELSIF NEW.state = 'pending' AND OLD.state = 'leased' THEN
        PERFORM daybook.yield_to_newer(NEW.id);
    END IF;
    RETURN NULL;
END
$$;

-- Name: awaited_job_removed(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.awaited_job_removed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF OLD.limit_key IS NOT NULL THEN
        PERFORM daybook.limited_job_changed(OLD, NULL);
    END IF;
    PERFORM daybook.tell_of_ended_job(OLD, 'removed');
    RETURN NULL;
END
$$;

-- Name: balance_sheet(text, date, text, text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.balance_sheet(org_id text, on_day date DEFAULT NULL::date, by_key text DEFAULT NULL::text, where_key text DEFAULT NULL::text, where_value text DEFAULT NULL::text) RETURNS SETOF daybook.statement_line
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    WITH sums AS (
        SELECT coalesce(a.type::text, 'asset') AS type, s.account_code, s.currency, s.value, sum(s.debit - s.credit) AS amount
          FROM daybook.account_sums(balance_sheet.org_id, NULL, on_day, by_key, where_key, where_value) s
          LEFT JOIN daybook.accounts a ON a.org_id = balance_sheet.org_id AND a.code = s.account_code
         GROUP BY 1, 2, 3, 4
    ), results AS (
        SELECT s.currency, s.value, -sum(s.amount) AS amount FROM sums s WHERE s.type IN ('income', 'expense') GROUP BY 1, 2
    ), earlier AS (
        SELECT s.currency, s.value, sum(s.credit - s.debit) AS amount
          FROM daybook.account_sums(balance_sheet.org_id, NULL, date_trunc('year', coalesce(on_day, current_date))::date - 1, by_key, where_key, where_value) s
          JOIN daybook.accounts a ON a.org_id = balance_sheet.org_id AND a.code = s.account_code AND a.type IN ('income', 'expense')
         GROUP BY 1, 2
    ), lines AS (
        SELECT (NULL, 'account', s.currency, s.type, '', s.account_code, '', s.value, CASE s.type WHEN 'asset' THEN s.amount ELSE -s.amount END)::daybook.statement_line AS line
          FROM sums s WHERE s.type NOT IN ('income', 'expense')
         UNION ALL
        SELECT (NULL, 'earlier_result', e.currency, 'equity', '', '', 'Result of earlier years', e.value, e.amount)::daybook.statement_line FROM earlier e
         UNION ALL
        SELECT (NULL, 'result', r.currency, 'equity', '', '', 'Result of the year', r.value, r.amount - coalesce(e.amount, 0))::daybook.statement_line
          FROM results r LEFT JOIN earlier e USING (currency, value)
    ), totals AS (
        SELECT t.* FROM daybook.add_statement_totals(balance_sheet.org_id, (SELECT array_agg(l.line) FROM lines l)) t
    )
    SELECT x.*
      FROM (SELECT * FROM totals
             UNION ALL
            SELECT '3~~', 'total', t.currency, '', '', '', 'Total liabilities and equity', t.value, sum(t.amount)
              FROM totals t WHERE t.kind = 'total' AND t.type IN ('liability', 'equity')
             GROUP BY t.currency, t.value) x
     ORDER BY x.currency, x.place COLLATE "C", x.value COLLATE "C"
$$;

-- Name: FUNCTION balance_sheet(org_id text, on_day date, by_key text, where_key text, where_value text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.balance_sheet(org_id text, on_day date, by_key text, where_key text, where_value text) IS 'Assets, liabilities and equity at the end of a day (null: of all that is posted), with totals and the result that no year-end close has moved';

-- Name: cancel_accounting_job(text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.cancel_accounting_job(org_id text, document_id text, OUT job_id text, OUT result text) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    job daybook.accounting_work_queue;
BEGIN
    PERFORM daybook.check_accounting_request(cancel_accounting_job.org_id, cancel_accounting_job.document_id, 0, 2);
    SELECT * INTO job
      FROM daybook.accounting_work_queue q
     WHERE q.org_id = cancel_accounting_job.org_id AND q.document_id = cancel_accounting_job.document_id
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no accounting job for document % of organization %', cancel_accounting_job.document_id, cancel_accounting_job.org_id
            USING ERRCODE = 'DB011';
    END IF;

    job_id := job.id;
    CASE job.state
        WHEN 'completed' THEN
            RAISE EXCEPTION 'the accounting job for document % of organization % is completed', job.document_id, job.org_id
                USING ERRCODE = 'DB012', HINT = 'mark the document not ready or deleted to take its posting back';
        WHEN 'cancelled' THEN
            result := 'unchanged';
        WHEN 'leased' THEN
            result := 'cancelling';
            UPDATE daybook.accounting_work_queue q
               SET cancel_requested = true, generation = q.generation + 1, updated_at = clock_timestamp()
             WHERE q.id = job.id;
        ELSE
            result := 'cancelled';
            UPDATE daybook.accounting_work_queue q
               SET state = 'cancelled', generation = q.generation + 1, reclaims = 0,
                   finished_at = clock_timestamp(), updated_at = clock_timestamp()
             WHERE q.id = job.id;
    END CASE;
END
$$;

-- Name: FUNCTION cancel_accounting_job(org_id text, document_id text, OUT job_id text, OUT result text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.cancel_accounting_job(org_id text, document_id text, OUT job_id text, OUT result text) IS 'Asks that a document not be posted. result: cancelled, cancelling (after the running attempt, which commits nothing) or unchanged';

-- Name: cancel_async_operation(uuid); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.cancel_async_operation(p_operation_id uuid) RETURNS boolean
    LANGUAGE sql
    AS $$ SELECT c.result <> 'unchanged' FROM daybook.cancel_job(p_operation_id::text) c $$;

-- Name: FUNCTION cancel_async_operation(p_operation_id uuid); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.cancel_async_operation(p_operation_id uuid) IS 'cancel_job; false: it was cancelled before';

-- Name: cancel_job(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.cancel_job(INOUT job_id text, OUT result text, OUT reason text) RETURNS record
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

-- Name: FUNCTION cancel_job(INOUT job_id text, OUT result text, OUT reason text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.cancel_job(INOUT job_id text, OUT result text, OUT reason text) IS 'Asks that a job not be worked. result: cancelled, cancelling (after the running attempt) or unchanged. reason: why it is unchanged';

-- Name: cancel_jobs(text[], text[]); Type: FUNCTION; Schema: daybook; Owner: -

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

-- Name: FUNCTION cancel_jobs(job_ids text[], states text[]); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.cancel_jobs(job_ids text[], states text[]) IS 'cancel_job for many: those in one of the states that no other transaction has locked';

-- Name: cash_statement(text, date, date); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.cash_statement(org_id text, from_day date DEFAULT NULL::date, to_day date DEFAULT NULL::date) RETURNS TABLE(kind text, currency text, account_code text, name text, opening numeric, paid_in numeric, paid_out numeric, closing numeric)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    WITH sums AS (
        SELECT s.currency, s.account_code, s.debit - s.credit AS opening, 0 AS paid_in, 0 AS paid_out
          FROM daybook.account_sums(cash_statement.org_id, NULL, from_day - 1) s WHERE from_day IS NOT NULL
         UNION ALL
        SELECT s.currency, s.account_code, 0, s.debit, s.credit FROM daybook.account_sums(cash_statement.org_id, from_day, to_day) s
    )
    SELECT CASE grouping(a.code) WHEN 0 THEN 'account' ELSE 'total' END, s.currency, coalesce(a.code, ''),
           CASE grouping(a.code) WHEN 0 THEN min(a.name) ELSE 'Total' END, sum(s.opening), sum(s.paid_in), sum(s.paid_out), sum(s.opening + s.paid_in - s.paid_out)
      FROM sums s
      JOIN daybook.accounts a ON a.org_id = cash_statement.org_id AND a.code = s.account_code AND a.role = 'cash'
     GROUP BY GROUPING SETS ((s.currency, a.code), (s.currency))
     ORDER BY s.currency, grouping(a.code), a.code
$$;

-- Name: FUNCTION cash_statement(org_id text, from_day date, to_day date); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.cash_statement(org_id text, from_day date, to_day date) IS 'What the accounts with the role cash had before a day, what came in and went out until another, and what they had then';

-- Name: chain_hash(bytea, bytea); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.chain_hash(chained bytea, next bytea) RETURNS bytea
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
BEGIN
    RETURN sha256(chained || next);
END
$$;

-- Name: change_limit(text, text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.change_limit(job_id text, limit_of text[]) RETURNS void
    LANGUAGE sql
    AS $_$
    UPDATE daybook.jobs j
       SET limit_scope = $2[1], limit_key = $2[2], awaited = j.awaited OR $2 IS NOT NULL,
           ready_at = CASE WHEN j.state = 'pending' AND $2 IS NOT NULL THEN greatest(j.ready_at, clock_timestamp()) ELSE j.ready_at END,
           fleet = CASE WHEN $2 IS NULL THEN coalesce((SELECT u.fleet FROM daybook.queues u WHERE u.name = j.queue), 0) ELSE -1 END
     WHERE j.id = $1 AND (j.limit_scope, j.limit_key) IS DISTINCT FROM ($2[1], $2[2])
$_$;

-- Name: check_accounting_request(text, text, bigint, integer, timestamp with time zone); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_accounting_request(org_id text, document_id text, version_hint bigint, priority integer, ready_at timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
BEGIN
    IF coalesce(org_id, '') = '' OR coalesce(document_id, '') = '' THEN
        RAISE EXCEPTION 'organization id and document id must not be empty' USING ERRCODE = 'DB010';
    END IF;
    IF octet_length(org_id) > 255 OR octet_length(document_id) > 255 THEN
        RAISE EXCEPTION 'organization id and document id must not be longer than 255 bytes' USING ERRCODE = 'DB010';
    END IF;
    IF version_hint IS NULL OR version_hint < 0 THEN
        RAISE EXCEPTION 'version must not be negative or null' USING ERRCODE = 'DB010';
    END IF;
    IF priority NOT BETWEEN 1 AND 3 THEN
        RAISE EXCEPTION 'priority must be 1 (high), 2 (normal) or 3 (low), not %', priority USING ERRCODE = 'DB010';
    END IF;
    IF ready_at > '9999-12-31 23:59:59+00' THEN
        RAISE EXCEPTION 'ready_at must not be infinity or after the year 9999' USING ERRCODE = 'DB010', HINT = 'enqueue the document when it is to be posted';
    END IF;
END
$$;

-- Name: check_awaited(text, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_awaited(awaited text, batch integer) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    job record;
BEGIN
    -- The lock: as long as it is held, the job does not end, and the transaction that ends it later
    -- sees that it is awaited.
    SELECT j.state, j.awaited INTO job FROM daybook.jobs j WHERE j.id = check_awaited.awaited FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        IF EXISTS (SELECT FROM daybook.jobs j WHERE j.id = check_awaited.awaited) THEN
            RETURN false;
        END IF;
        RETURN daybook.tell_waiting_jobs(check_awaited.awaited, 'removed', batch);
    END IF;
    IF job.state IN ('completed', 'cancelled') THEN
        RETURN daybook.tell_waiting_jobs(check_awaited.awaited, job.state::text, batch);
    END IF;
    IF job.state = 'failed' AND NOT daybook.tell_waiting_jobs(check_awaited.awaited, 'failed', batch) THEN
        RETURN false;
    END IF;
    IF NOT job.awaited THEN
        UPDATE daybook.jobs j SET awaited = true WHERE j.id = check_awaited.awaited;
    END IF;
    RETURN true;
END
$$;

-- Name: check_closing_change(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_closing_change() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    unsigned daybook.closings := NEW;
BEGIN
    unsigned.signature := NULL;
    unsigned.key_id := NULL;
    IF OLD.signature IS NULL AND unsigned IS NOT DISTINCT FROM OLD THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'daybook.closings is append-only: UPDATE refused'
        USING ERRCODE = 'DB004', HINT = 'a row that has no signature may get one; nothing else changes';
END
$$;

-- Name: check_completed_accounting_job(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_completed_accounting_job() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM daybook.is_sound_accounting_job(NEW);
    RETURN NULL;
END
$$;

-- Name: check_completed_job(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_completed_job() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM daybook.is_sound_job(NEW);
    RETURN NULL;
END
$$;

-- Name: check_debounce(jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_debounce(debounce jsonb) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
BEGIN
    IF jsonb_typeof(debounce) <> 'object' OR debounce - '{key,wait_seconds,max_wait_seconds,keep,merge}'::text[] <> '{}' THEN
        RAISE EXCEPTION 'debounce must be an object with key, wait_seconds and perhaps max_wait_seconds, keep and merge'
            USING ERRCODE = 'DB010', HINT = 'for instance {"key": "customer-17", "wait_seconds": 60}';
    END IF;
    IF (jsonb_typeof(debounce -> 'key') = 'string' AND octet_length(debounce ->> 'key') BETWEEN 1 AND 255) IS NOT TRUE THEN
        RAISE EXCEPTION 'the key of debounce must have 1 to 255 bytes' USING ERRCODE = 'DB010';
    END IF;
    IF (jsonb_typeof(debounce -> 'wait_seconds') = 'number' AND (debounce ->> 'wait_seconds')::numeric BETWEEN 0 AND 3.2e9) IS NOT TRUE THEN
        RAISE EXCEPTION 'wait_seconds of debounce must be a number from 0 to 3.2e9' USING ERRCODE = 'DB010';
    END IF;
    IF debounce ->> 'max_wait_seconds' IS NOT NULL
       AND (jsonb_typeof(debounce -> 'max_wait_seconds') = 'number'
            AND (debounce ->> 'max_wait_seconds')::numeric BETWEEN (debounce ->> 'wait_seconds')::numeric AND 3.2e9) IS NOT TRUE THEN
        RAISE EXCEPTION 'max_wait_seconds of debounce must be a number from wait_seconds to 3.2e9, or null' USING ERRCODE = 'DB010';
    END IF;
    IF coalesce(debounce ->> 'keep', 'newest') NOT IN ('newest', 'first', 'merged') THEN
        RAISE EXCEPTION 'keep of debounce must be newest, first or merged, not %', debounce ->> 'keep' USING ERRCODE = 'DB010';
    END IF;
    IF debounce ->> 'merge' IS NOT NULL AND debounce ->> 'keep' IS DISTINCT FROM 'merged' THEN
        RAISE EXCEPTION 'merge of debounce is for keep merged alone' USING ERRCODE = 'DB010';
    END IF;
END
$$;

-- Name: check_dimension(text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_dimension(org_id text, key text) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    _org  CONSTANT text := check_dimension.org_id;
    known text;
BEGIN
    IF EXISTS (SELECT FROM daybook.closed_dimension_sums k WHERE k.org_id = _org AND k.dimensions ? key) THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM daybook.entries e WHERE e.org_id = _org AND e.dimensions ? key) THEN
        RETURN;
    END IF;
    SELECT string_agg(DISTINCT k.key, ', ' ORDER BY k.key) INTO known
      FROM daybook.dimension_sums(_org, NULL, NULL, true) s CROSS JOIN LATERAL jsonb_object_keys(s.dimensions) AS k (key);
    RAISE EXCEPTION 'no entry of organization % has the dimension %', _org, key
        USING ERRCODE = 'DB017', HINT = coalesce('those that they have: ' || known, 'they have none: documents state them, or rules');
END
$$;

-- Name: check_entries(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_entries() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    bad record;
BEGIN
    -- One pass finds that nothing is wrong, as long as an impact has one currency; two more say
    -- what is wrong, and look at impacts of several currencies. The impact is looked up by its id
    -- alone: with more keys in the join the planner may prefer another index.
    IF EXISTS (SELECT 1
                 FROM (SELECT impact_id, org_id, currency, count(*) AS entries, max(line_no) AS last_line,
                              sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END) AS difference
                         FROM new_entries GROUP BY impact_id, org_id, currency) n
                 LEFT JOIN daybook.impacts i ON i.id = n.impact_id
                WHERE n.difference <> 0 OR i.entry_count IS DISTINCT FROM n.entries OR n.last_line <> n.entries OR i.org_id <> n.org_id) THEN
        SELECT n.impact_id, n.currency, sum(CASE n.side WHEN 'debit' THEN n.amount_minor ELSE -n.amount_minor END) AS difference
          INTO bad
          FROM new_entries n
         GROUP BY n.impact_id, n.currency
        HAVING sum(CASE n.side WHEN 'debit' THEN n.amount_minor ELSE -n.amount_minor END) <> 0
         LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'impact % does not balance: debits exceed credits by % minor units of %', bad.impact_id, bad.difference, bad.currency
                USING ERRCODE = 'DB001', HINT = 'insert all entries of an impact in one statement, debits equal to credits per currency';
        END IF;

        -- Numbered from 1 to entry_count, its entries leave the primary key no room for later ones.
        SELECT n.impact_id, n.entries, n.last_line, CASE WHEN i.org_id = n.org_id AND i.org_id = n.last_org_id THEN i.entry_count END AS entry_count
          INTO bad
          FROM (SELECT impact_id, min(org_id) AS org_id, max(org_id) AS last_org_id, count(*) AS entries, max(line_no) AS last_line
                  FROM new_entries GROUP BY impact_id) n
          LEFT JOIN daybook.impacts i ON i.id = n.impact_id
         WHERE i.entry_count IS DISTINCT FROM n.entries OR n.last_line <> n.entries OR i.org_id <> n.org_id OR i.org_id <> n.last_org_id
         LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'impact % was to have % entries and gets %, numbered up to %', bad.impact_id, coalesce(bad.entry_count::text, 'no'), bad.entries, bad.last_line
                USING ERRCODE = 'DB002', HINT = 'insert all entries of an impact in one statement, beside the impact; none can be added later';
        END IF;
    END IF;

    -- All lines are compared with the present chart at once. Reversals are compared with what they
    -- mirror (check_impacts) and not with the chart; which lines belong to reversals is only read
    -- when a line does not fit the chart.
    IF EXISTS (SELECT 1
                 FROM (SELECT DISTINCT org_id, account_code, currency FROM new_entries) n
                 LEFT JOIN daybook.accounts a ON a.org_id = n.org_id AND a.code = n.account_code
                WHERE a.code IS NULL OR (a.currencies <> '{}' AND n.currency <> ALL (a.currencies))) THEN
        SELECT n.org_id, n.account_code, n.currency, a.code IS NOT NULL AS known
          INTO bad
          FROM new_entries n
          JOIN daybook.impacts i ON i.id = n.impact_id AND i.kind = 'post'
          LEFT JOIN daybook.accounts a ON a.org_id = n.org_id AND a.code = n.account_code
         WHERE a.code IS NULL OR (a.currencies <> '{}' AND n.currency <> ALL (a.currencies))
         LIMIT 1;
        IF FOUND AND bad.known THEN
            RAISE EXCEPTION 'account % of organization % does not take %', bad.account_code, bad.org_id, bad.currency
                USING ERRCODE = 'DB003', HINT = 'add the currency to the account, or post to another one';
        ELSIF FOUND THEN
            RAISE EXCEPTION 'organization % has no account %', bad.org_id, bad.account_code
                USING ERRCODE = 'DB003', HINT = 'add the account to the chart of accounts';
        END IF;
    END IF;
    RETURN NULL;
END
$$;

-- Name: check_impacts(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_impacts() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    bad record;
BEGIN
    SELECT n.id, n.entry_count
      INTO bad
      FROM new_impacts n
     WHERE n.entry_count > 0 AND NOT EXISTS (SELECT 1 FROM daybook.entries e WHERE e.impact_id = n.id)
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'impact % was to have % entries and gets none', bad.id, bad.entry_count
            USING ERRCODE = 'DB002', HINT = 'insert an impact and all its entries in one statement';
    END IF;

    IF EXISTS (SELECT 1 FROM new_impacts n WHERE n.seq > 1) THEN
        -- Each impact is looked up by itself (OFFSET 0 keeps the join from being put another way):
        -- a plan that was made while the table was empty would read all of it. chain_has_no_gap is
        -- no foreign key: that would be a trigger's call for each first impact as well, which has
        -- none before it. Impacts are never changed or removed, so the one before needs no lock: it
        -- has to be visible here, which makes it committed or this transaction's own.
        SELECT n.id, n.seq
          INTO bad
          FROM new_impacts n
          LEFT JOIN LATERAL (SELECT x.seq FROM daybook.impacts x WHERE x.org_id = n.org_id AND x.document_id = n.document_id AND x.seq = n.previous_seq OFFSET 0) p ON true
         WHERE n.seq > 1 AND p.seq IS NULL
         LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'impact % is number % of its document''s chain, which has no number %', bad.id, bad.seq, bad.seq - 1
                USING ERRCODE = 'foreign_key_violation', SCHEMA = 'daybook', TABLE = 'impacts', CONSTRAINT = 'chain_has_no_gap',
                      HINT = 'the impacts of a document are numbered from 1 without a gap; insert them in that order';
        END IF;

        -- The rest of impacts_once. The chain has no gap, so the first posting is visible here.
        SELECT n.id, f.id AS posted
          INTO bad
          FROM new_impacts n
         CROSS JOIN LATERAL (SELECT * FROM daybook.impacts x WHERE x.org_id = n.org_id AND x.document_id = n.document_id AND x.seq = 1 OFFSET 0) f
         WHERE n.seq > 1 AND n.kind = 'post' AND f.document_version = n.document_version AND f.rule_set_version = n.rule_set_version AND f.epoch = n.epoch
         LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'impact % posts what impact % has posted: the same version, rule set and epoch of a document', bad.id, bad.posted
                USING ERRCODE = 'unique_violation', SCHEMA = 'daybook', TABLE = 'impacts', CONSTRAINT = 'impacts_once',
                      HINT = 'repost_accounting_job posts a version anew, in an epoch of its own';
        END IF;

        SELECT n.id, p.id AS mirrored
          INTO bad
          FROM new_impacts n
         CROSS JOIN LATERAL (SELECT * FROM daybook.impacts x WHERE x.org_id = n.org_id AND x.document_id = n.document_id AND x.seq = n.previous_seq OFFSET 0) p
         WHERE n.kind = 'reverse'
           AND (n.entry_count <> p.entry_count
                OR EXISTS (SELECT 1
                             FROM daybook.entries e
                             LEFT JOIN daybook.entries o ON o.impact_id = p.id AND o.line_no = e.line_no
                            WHERE e.impact_id = n.id
                              AND (o.side IS NOT DISTINCT FROM e.side
                                   OR (o.account_code, o.amount_minor, o.currency, o.rule_line_id, o.document_line, o.dimensions)
                                      IS DISTINCT FROM (e.account_code, e.amount_minor, e.currency, e.rule_line_id, e.document_line, e.dimensions))))
         LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'impact % does not mirror impact %', bad.id, bad.mirrored
                USING ERRCODE = 'DB006', HINT = 'a reversal has the lines of the impact before it, each on the opposite side';
        END IF;
    END IF;

    SELECT n.org_id, n.document_id, n.posting_date, s.starts_on, s.ends_on, s.in_period
      INTO bad
      FROM (SELECT DISTINCT x.org_id FROM new_impacts x) o
     CROSS JOIN LATERAL daybook.closed_spans(o.org_id) s
      JOIN new_impacts n ON n.org_id = o.org_id AND n.posting_date BETWEEN s.starts_on AND s.ends_on
     WHERE EXISTS (SELECT FROM daybook.periods p WHERE p.org_id = o.org_id AND p.state = 'closed')
     LIMIT 1;
    IF FOUND AND bad.in_period THEN
        RAISE EXCEPTION 'document % of organization % would be posted on %, in the closed period from % to %',
            bad.document_id, bad.org_id, bad.posting_date, bad.starts_on, bad.ends_on
            USING ERRCODE = 'DB005', HINT = 'open the period, or let the organization post on the first open day';
    ELSIF FOUND THEN
        RAISE EXCEPTION 'document % of organization % would be posted on %, in no period, before one that is closed or before the first open one',
            bad.document_id, bad.org_id, bad.posting_date
            USING ERRCODE = 'DB005', HINT = 'add an open period for the date, or let the organization post on the first open day';
    END IF;
    RETURN NULL;
END
$$;

-- Name: check_job(text, text, jsonb, text, text, timestamp with time zone, integer, integer, jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_job(org_id text, type text, payload jsonb, as_text text, idempotency_key text, ready_at timestamp with time zone, priority integer, max_attempts integer, links jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    AS $$
BEGIN
    PERFORM daybook.check_job_request(org_id, type, idempotency_key, ready_at, priority, max_attempts, links);
    PERFORM daybook.check_job_payload(payload, as_text);
    RETURN payload;
END
$$;

-- Name: check_job_order(text, text, text[], text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_job_order(queue text, sequence text, after text[], limit_key text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
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
$_$;

-- Name: check_job_payload(jsonb, text); Type: FUNCTION; Schema: daybook; Owner: -

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

-- Name: check_job_request(text, text, text, timestamp with time zone, integer, integer, jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_job_request(org_id text, type text, idempotency_key text, ready_at timestamp with time zone, priority integer, max_attempts integer, links jsonb) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
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
$_$;

-- Name: check_names(text[], text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_names(names text[], what text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
DECLARE
    bad text;
BEGIN
    SELECT coalesce(n, 'null') INTO bad FROM unnest(names) AS n WHERE (n ~ '^[a-z0-9][a-z0-9_.-]{0,62}$') IS NOT TRUE LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '"%" cannot be the name of a %', bad, what
            USING ERRCODE = 'DB010', HINT = 'name it by 1 to 63 of a-z, 0-9, _, . and -, beginning with a letter or digit';
    END IF;
END
$_$;

-- Name: check_organization(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_organization(org_id text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
BEGIN
    IF coalesce(org_id, '') = '' OR octet_length(org_id) > 255 THEN
        RAISE EXCEPTION 'an organization''s id must have 1 to 255 bytes' USING ERRCODE = 'DB010';
    END IF;
END
$$;

-- Name: check_periods(); Type: FUNCTION; Schema: daybook; Owner: -

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

-- Name: check_sequence(text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_sequence(org_id text, sequence text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    turn  text;
    state text;
BEGIN
    SELECT s.holder INTO turn
      FROM daybook.job_sequences s
     WHERE s.org_id = check_sequence.org_id AND s.key = check_sequence.sequence
       FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        -- An insertion would wait for a transaction that has changed the row or removed it.
        IF EXISTS (SELECT FROM daybook.job_sequences s WHERE s.org_id = check_sequence.org_id AND s.key = check_sequence.sequence) THEN
            RETURN false;
        END IF;
        INSERT INTO daybook.job_sequences (org_id, key, holder) VALUES (check_sequence.org_id, check_sequence.sequence, '')
        ON CONFLICT DO NOTHING
        RETURNING holder INTO turn;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
    END IF;
    FOR i IN 1..2 LOOP
        SELECT j.state INTO state FROM daybook.jobs j WHERE j.id = turn FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND AND EXISTS (SELECT FROM daybook.jobs j WHERE j.id = turn) THEN
            RETURN false;
        END IF;
        IF state IN ('pending', 'leased', 'failed') THEN
            PERFORM daybook.release_jobs(ARRAY[turn]);
            RETURN true;
        END IF;
        turn := (SELECT j.id
                   FROM daybook.jobs j
                  WHERE j.org_id = check_sequence.org_id AND j.sequence = check_sequence.sequence AND j.state IN ('pending', 'leased', 'failed')
                  ORDER BY j.id
                  LIMIT 1);
        IF turn IS NULL THEN
            DELETE FROM daybook.job_sequences s WHERE s.org_id = check_sequence.org_id AND s.key = check_sequence.sequence;
            RETURN true;
        END IF;
        UPDATE daybook.job_sequences s SET holder = turn WHERE s.org_id = check_sequence.org_id AND s.key = check_sequence.sequence;
    END LOOP;
    RETURN false;
END
$$;

-- Name: check_step(text, text, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_step(job_id text, name text, bytes integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    others CONSTANT bigint := (SELECT count(*) FROM daybook.job_steps s WHERE s.job_id = check_step.job_id AND s.name <> check_step.name);
    total  bigint := check_step.bytes;
BEGIN
    IF (octet_length(check_step.name) BETWEEN 1 AND 64) IS NOT TRUE THEN
        RAISE EXCEPTION 'the name of a step must have 1 to 64 bytes' USING ERRCODE = 'DB010', DETAIL = 'STEP_INVALID';
    END IF;
    IF others >= 1000 THEN
        RAISE EXCEPTION 'the job has kept % steps', others USING ERRCODE = 'DB010', DETAIL = 'STEP_INVALID', HINT = 'use a loop: one step of many rounds';
    END IF;
    IF check_step.bytes > 1048576 THEN
        RAISE EXCEPTION 'the result of step % has % bytes, and may have 1048576', quote_literal(check_step.name), check_step.bytes
            USING ERRCODE = 'DB010', DETAIL = 'STEP_NOT_STORED', HINT = 'store it elsewhere, and keep where it is';
    END IF;
    IF others >= 16 THEN
        total := total + (SELECT sum(octet_length(s.result::text)) FROM daybook.job_steps s WHERE s.job_id = check_step.job_id AND s.name <> check_step.name);
    END IF;
    IF total > 16777216 THEN
        RAISE EXCEPTION 'with step % the steps of the job have % bytes, and may have 16777216', quote_literal(check_step.name), total
            USING ERRCODE = 'DB010', DETAIL = 'STEP_NOT_STORED', HINT = 'store results elsewhere, and keep where they are';
    END IF;
END
$$;

-- Name: check_waiting_job(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_waiting_job(job_id text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM FROM daybook.jobs j WHERE j.id = check_waiting_job.job_id FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NOT EXISTS (SELECT FROM daybook.jobs j WHERE j.id = check_waiting_job.job_id);
    END IF;
    PERFORM daybook.release_jobs(ARRAY[check_waiting_job.job_id]);
    UPDATE daybook.jobs j
       SET ready_at = clock_timestamp(), first_ready_at = least(j.first_ready_at, clock_timestamp()), updated_at = clock_timestamp()
     WHERE j.id = check_waiting_job.job_id AND j.state::text = 'pending' AND j.last_error_code = 'AWAITING_CALLBACK' AND j.ready_at > clock_timestamp()
       AND EXISTS (SELECT FROM daybook.job_callbacks c WHERE c.job_id = j.id AND c.called_at IS NOT NULL AND NOT c.seen);
    IF FOUND THEN
        PERFORM daybook.wake_job_queue();
    END IF;
    RETURN true;
END
$$;

-- Name: check_waits(integer, bigint, timestamp with time zone); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.check_waits(batch integer DEFAULT 500, beyond bigint DEFAULT 0, since timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, OUT decided integer, OUT again integer, OUT last bigint, OUT left_from timestamp with time zone) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    ids   bigint[];
    asked record;
    done  boolean;
BEGIN
    decided := 0;
    again := 0;
    SELECT g.decided, g.again, g.left_from INTO decided, again, left_from FROM daybook.pass_limits(batch, since) g;
    ids := ARRAY(SELECT t.id FROM daybook.job_wait_checks t WHERE t.id > beyond ORDER BY t.id LIMIT batch FOR UPDATE SKIP LOCKED);
    last := coalesce(ids[cardinality(ids)], 0);
    FOR asked IN
        WITH taken AS (
            DELETE FROM daybook.job_wait_checks c WHERE c.id = ANY (ids)
            RETURNING c.org_id, c.sequence, c.awaits, c.job_id, c.queue, c.limit_scope, c.limit_key, c.limit_all
        )
        SELECT DISTINCT * FROM taken t ORDER BY t.org_id, t.sequence, t.awaits, t.job_id, t.queue, t.limit_scope, t.limit_key
    LOOP
        done := CASE
            WHEN asked.sequence IS NOT NULL THEN daybook.check_sequence(asked.org_id, asked.sequence)
            WHEN asked.awaits IS NOT NULL THEN daybook.check_awaited(asked.awaits, batch)
            WHEN asked.queue IS NOT NULL THEN daybook.move_queue(asked.queue)
            WHEN asked.limit_all THEN daybook.admit_all_limited(asked.limit_scope, asked.org_id, asked.limit_key, batch)
            WHEN asked.limit_scope IS NOT NULL THEN daybook.admit_limited(asked.limit_scope, asked.org_id, asked.limit_key)
            ELSE daybook.check_waiting_job(asked.job_id) END;
        IF done THEN
            decided := decided + 1;
        ELSE
            again := again + 1;
            INSERT INTO daybook.job_wait_checks (org_id, sequence, awaits, job_id, queue, limit_scope, limit_key, limit_all)
            VALUES (asked.org_id, asked.sequence, asked.awaits, asked.job_id, asked.queue, asked.limit_scope, asked.limit_key, asked.limit_all);
        END IF;
    END LOOP;
END
$$;

-- Name: FUNCTION check_waits(batch integer, beyond bigint, since timestamp with time zone, OUT decided integer, OUT again integer, OUT last bigint, OUT left_from timestamp with time zone); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.check_waits(batch integer, beyond bigint, since timestamp with time zone, OUT decided integer, OUT again integer, OUT last bigint, OUT left_from timestamp with time zone) IS 'Releases jobs that wait for nothing any more, or whose limit allows it, and moves jobs of queues to their fleets, where the transaction that caused it could not. Workers call it';

-- Name: claim_async_operation(uuid); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.claim_async_operation(p_operation_id uuid) RETURNS boolean
    LANGUAGE sql
    AS $$ SELECT daybook.lease_async_operation(p_operation_id) IS NOT NULL $$;

-- Name: FUNCTION claim_async_operation(p_operation_id uuid); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.claim_async_operation(p_operation_id uuid) IS 'lease_async_operation for programs that do not keep the fence of their claim';

-- Name: claim_jobs(text, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.claim_jobs(worker text, most integer DEFAULT 1) RETURNS TABLE(job_id text, org_id text, type text, payload jsonb, attempt integer, max_attempts integer, fence bigint, idempotency_key text, priority integer, queue text, enqueued_at timestamp with time zone, traceparent text, steps integer)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    known  daybook.job_workers;
    sealed text[];
    mine   bigint;
    ids    text[] := '{}';
    before integer;
    part   record;
    job    daybook.jobs;
    began  CONSTANT timestamptz := clock_timestamp();
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'claim_jobs counts leases, and needs READ COMMITTED for that' USING ERRCODE = 'DB010', HINT = 'call it in a transaction of its own, and commit before you work the jobs';
    END IF;
    IF most IS NULL OR most NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'most must be 1 to 1000' USING ERRCODE = 'DB010';
    END IF;
    SELECT * INTO known FROM daybook.job_workers w WHERE w.id = daybook.sql_turn(claim_jobs.worker);
    IF known.id IS NULL OR known.stopped_at IS NOT NULL THEN
        RAISE EXCEPTION 'no worker % has started', coalesce(quote_literal(worker), 'null') USING ERRCODE = 'DB010', HINT = 'call daybook.start_job_worker first';
    END IF;
    -- Once a minute, and every ten seconds while leases are stale.
    IF known.last_seen NOT BETWEEN began - interval '1 minute' AND began
       OR known.last_seen < began - interval '10 seconds'
          AND EXISTS (SELECT FROM daybook.jobs j
                       WHERE j.state = 'leased' AND j.last_attempted_at < began - interval '20 seconds' AND starts_with(j.turn_id, '/sql/')) THEN
        PERFORM daybook.reclaim_claimed_jobs(known.last_seen);
        UPDATE daybook.job_workers w SET last_seen = clock_timestamp() WHERE w.id = known.id;
        UPDATE daybook.job_types t SET last_seen = clock_timestamp() WHERE t.kind = 'jobs' AND t.type = ANY (known.types) AND t.last_seen < clock_timestamp() - interval '1 day';
        PERFORM daybook.return_missing_jobs(known.types, known.fleet);
    END IF;
    IF EXISTS (SELECT FROM daybook.job_wait_checks)
       OR EXISTS (SELECT FROM daybook.jobs j
                   WHERE j.fleet = -1 AND num_nulls(nullif(j.state, 'pending')) = 1 AND j.ready_at > '-infinity' AND j.ready_at <= began)
       OR EXISTS (SELECT FROM daybook.job_limit_rates r WHERE r.look_at <= began) THEN
        PERFORM daybook.check_waits();
    END IF;
    sealed := daybook.encrypted_types(known.types); -- workers in Go may have come to encrypt one since it started
    mine := nextval('daybook.fence_seq');
    FOR prio IN 1..3 LOOP
        LOOP
            before := cardinality(ids);
            -- The organizations in a random order, none with more than its share.
            FOR part IN SELECT p.org_id, p.slot, ceil((claim_jobs.most - before)::numeric / count(*) OVER ())::integer AS share
                          FROM daybook.job_partitions(known.fleet, prio::smallint, known.types, known.versions) p
                         WHERE split_part(p.slot, '/', 1) <> ALL (sealed) ORDER BY random() LOOP
                EXIT WHEN cardinality(ids) >= claim_jobs.most;
                ids := ids || daybook.claim_of_partition(known.fleet, prio::smallint, part.org_id, part.slot, claim_jobs.worker, mine,
                                                         least(part.share, claim_jobs.most - cardinality(ids)));
            END LOOP;
            EXIT WHEN cardinality(ids) = before OR cardinality(ids) >= claim_jobs.most;
        END LOOP;
    END LOOP;
    -- What has ended its worker in the last attempt that it may have is a dead letter.
    FOR job IN SELECT * FROM daybook.jobs j WHERE j.id = ANY (ids) AND j.reclaims > 0 AND j.run_count > daybook.async_operation_attempts(j) LOOP
        PERFORM daybook.end_async_operation(job, 'failed', NULL, 'JOB_LOCK_TIMEOUT_RECLAIMED',
                                            format('the worker ended in the last attempt, of %s', daybook.async_operation_attempts(job)), NULL);
    END LOOP;
    RETURN QUERY
    SELECT j.id, j.org_id, j.type, j.payload, j.run_count, daybook.async_operation_attempts(j), j.fence, coalesce(j.idempotency_key, j.id), j.priority::integer, j.queue,
           j.created_at, j.traceparent::text,
           CASE WHEN j.awaited THEN (SELECT count(*)::integer FROM daybook.job_steps s WHERE s.job_id = j.id) ELSE 0 END
      FROM daybook.jobs j
     WHERE j.id = ANY (ids) AND j.fence = mine
     ORDER BY j.priority, j.ready_at, j.id;
END
$$;

-- Name: FUNCTION claim_jobs(worker text, most integer); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.claim_jobs(worker text, most integer) IS 'Leases up to most due jobs of the types of a worker (start_job_worker) for 10 seconds: commit, and call renew_jobs every second or two. Priority first, then organizations in turn, then the longest due; pauses, caps and rates of organizations, limits by key, and limits and rates of named queues are kept';

-- Name: claim_of_partition(smallint, smallint, text, text, text, bigint, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.claim_of_partition(fleet smallint, priority smallint, org_id text, slot text, worker text, fence bigint, most integer) RETURNS text[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    queue CONSTANT text := nullif(split_part(claim_of_partition.slot, '/', 2), '');
    org   CONSTANT daybook.organizations := (SELECT o FROM daybook.organizations o WHERE o.id = claim_of_partition.org_id);
    room  CONSTANT integer := daybook.claim_room(org, queue, claim_of_partition.worker, claim_of_partition.most);
    -- A time that the index can end at: behind it may be a million jobs.
    due   CONSTANT timestamptz := clock_timestamp();
    of    daybook.queues;
    ids   text[];
BEGIN
    IF room < 1 THEN
        RETURN '{}';
    END IF;
    ids := ARRAY(SELECT j.id FROM daybook.jobs j
                  WHERE j.state = 'pending' AND j.fleet = claim_of_partition.fleet AND j.priority = claim_of_partition.priority AND j.org_id = claim_of_partition.org_id
                    AND daybook.job_slot(j.type, j.queue, j.min_version) = claim_of_partition.slot AND j.ready_at <= due
                  ORDER BY j.ready_at, j.id
                  LIMIT room
                    FOR NO KEY UPDATE SKIP LOCKED);
    IF cardinality(ids) = 0 THEN
        RETURN ids;
    END IF;
    UPDATE daybook.jobs j
       SET state = 'leased', turn_id = daybook.sql_turn(claim_of_partition.worker), detached = false, fence = claim_of_partition.fence,
           leased_generation = j.generation, worker = claim_of_partition.worker, run_count = j.run_count + 1, working = true,
           capped = org.max_in_flight IS NOT NULL, counted = true,
           attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), updated_at = clock_timestamp()
     WHERE j.id = ANY (ids);
    IF org.rate IS NOT NULL THEN
        PERFORM daybook.count_organization_starts(org.id, cardinality(ids));
    END IF;
    SELECT * INTO of FROM daybook.queues u WHERE u.name = queue AND u.rate IS NOT NULL;
    IF FOUND THEN
        INSERT INTO daybook.queue_rates AS r (queue, starts, at)
        VALUES (of.name, daybook.queue_starts(of) - cardinality(ids), clock_timestamp())
        ON CONFLICT (queue) DO UPDATE SET starts = excluded.starts, at = excluded.at;
    END IF;
    RETURN ids;
END
$$;

-- Name: organizations; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.organizations (
    id text NOT NULL COLLATE pg_catalog."C",
    name text DEFAULT ''::text NOT NULL,
    active_rule_set bigint,
    config_version bigint DEFAULT 0 NOT NULL,
    source text,
    hooks text[],
    closed_period_policy daybook.closed_period_policy DEFAULT 'fail'::daybook.closed_period_policy NOT NULL,
    paused_at timestamp with time zone,
    max_in_flight integer,
    rate integer,
    rate_seconds double precision,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    currency text,
    exchange_accounts text[],
    CONSTRAINT organizations_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT organizations_exchange_accounts_check CHECK ((cardinality(exchange_accounts) = 3)),
    CONSTRAINT organizations_hooks_check CHECK ((array_to_string(hooks, '/'::text, ' '::text) ~ '^([a-z0-9][a-z0-9_.-]{0,62}(/[a-z0-9][a-z0-9_.-]{0,62})*)?$'::text)),
    CONSTRAINT organizations_id_check CHECK (((id <> ''::text) AND (octet_length(id) <= 255))),
    CONSTRAINT organizations_max_in_flight_check CHECK ((max_in_flight > 0)),
    CONSTRAINT organizations_rate_check CHECK ((rate > 0)),
    CONSTRAINT organizations_rate_seconds_check CHECK (((rate_seconds >= (0.001)::double precision) AND (rate_seconds <= (31536000)::double precision))),
    CONSTRAINT organizations_source_check CHECK ((source ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'::text)),
    CONSTRAINT rate_has_seconds CHECK (((rate IS NULL) = (rate_seconds IS NULL)))
);

-- Name: COLUMN organizations.config_version; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.organizations.config_version IS 'Grows whenever a rule set is activated or an account added: a failure found under an older one is tried again';

-- Name: COLUMN organizations.source; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.organizations.source IS 'The source that its documents are read from: only workers that read it lease its jobs; null: that of daybook.defaults';

-- Name: COLUMN organizations.hooks; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.organizations.hooks IS 'The hooks that are called with its postings: only workers that have all of them lease its jobs; null: those of daybook.defaults';

-- Name: COLUMN organizations.closed_period_policy; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.organizations.closed_period_policy IS 'What a document does whose posting date lies in a closed period: fail with PERIOD_CLOSED, or post on the first open day after it';

-- Name: COLUMN organizations.paused_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.organizations.paused_at IS 'Since when nothing of it is leased; null: it is not paused';

-- Name: COLUMN organizations.max_in_flight; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.organizations.max_in_flight IS 'How many of its jobs may be leased at a time, over all workers; null: any number';

-- Name: COLUMN organizations.rate; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.organizations.rate IS 'How many attempts of its background jobs may begin in rate_seconds, over all workers; null: any number';

-- Name: COLUMN organizations.currency; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.organizations.currency IS 'Its own currency, into which exchange differences are computed; null: none';

-- Name: COLUMN organizations.exchange_accounts; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.organizations.exchange_accounts IS 'The accounts by which exchange differences were booked last: adjustment, gain, loss; null: none were';

-- Name: claim_room(daybook.organizations, text, text, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.claim_room(org daybook.organizations, queue text, worker text, most integer) RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
    of   daybook.queues;
    left_of integer := most;
BEGIN
    IF org.paused_at IS NOT NULL THEN
        RETURN 0;
    END IF;
    IF num_nonnulls(org.max_in_flight, org.rate) > 0 THEN
        IF NOT pg_try_advisory_xact_lock(daybook.lock_class('organization leases'), hashtext(org.id)) THEN
            RETURN 0;
        END IF;
        left_of := least(left_of, org.max_in_flight - (SELECT count(*) FROM daybook.jobs l WHERE l.capped AND l.turn_id IS NOT NULL AND l.org_id = org.id),
            CASE WHEN org.rate IS NOT NULL THEN floor(daybook.organization_starts(org)) END);
    END IF;
    IF claim_room.queue IS NULL THEN
        RETURN left_of;
    END IF;
    SELECT * INTO of FROM daybook.queues u WHERE u.name = claim_room.queue;
    IF of.paused_at IS NOT NULL THEN
        RETURN 0;
    END IF;
    IF num_nonnulls(of.max_parallel, of.per_process, of.rate) = 0 THEN
        RETURN left_of;
    END IF;
    IF NOT pg_try_advisory_xact_lock(daybook.lock_class('queue leases'), hashtext(claim_room.queue)) THEN
        RETURN 0;
    END IF;
    RETURN least(left_of,
        of.max_parallel - (SELECT count(*) FROM daybook.jobs l WHERE l.queue = of.name AND l.state = 'leased'),
        of.per_process - (SELECT count(*) FROM daybook.jobs l WHERE l.queue = of.name AND l.state = 'leased' AND l.worker = claim_room.worker),
        CASE WHEN of.rate IS NOT NULL THEN floor(daybook.queue_starts(of)) END);
END
$$;

-- Name: close_year(text, integer, text, text, boolean); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.close_year(org_id text, year integer, to_account text, actor text DEFAULT SESSION_USER, undo boolean DEFAULT false, OUT document_id text, OUT version bigint, OUT result text, OUT moved jsonb) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    _org     CONSTANT text := close_year.org_id;
    _id      CONSTANT text := 'year-end:' || close_year.year;
    _first   date;
    _last    date;
    _entries jsonb;
    _content jsonb;
    d        daybook.documents;
BEGIN
    document_id := _id;
    moved := '[]';
    IF year IS NULL OR year NOT BETWEEN 1900 AND 2999 OR coalesce(actor, '') = '' THEN
        RAISE EXCEPTION 'the year must be between 1900 and 2999, and the actor not empty' USING ERRCODE = 'DB010';
    END IF;
    _first := make_date(year, 1, 1);
    _last := make_date(year, 12, 31);
    SELECT * INTO d FROM daybook.documents x WHERE x.org_id = _org AND x.id = _id FOR UPDATE;
    version := d.accounting_ready_version;
    PERFORM daybook.use_configuration(_org);
    IF d.id IS NOT NULL AND d.deleted_at IS NULL AND d.content #> '{journal,year_end}' IS DISTINCT FROM 'true' THEN
        RAISE EXCEPTION 'document % of organization % is no year-end close', _id, _org
            USING ERRCODE = 'DB010', HINT = 'the id is that of the year-end close: give the document another one';
    END IF;
    IF undo AND (d.id IS NULL OR d.deleted_at IS NOT NULL) THEN
        result := 'nothing';
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM daybook.closed_spans(_org) s WHERE _last BETWEEN s.starts_on AND s.ends_on) THEN
        RAISE EXCEPTION 'the %, on which the year-end close of % stands, is closed', to_char(_last, 'YYYY-MM-DD'), year
            USING ERRCODE = 'DB016', HINT = 'open its period, close the year or undo that, have it posted, and close the period again';
    END IF;
    IF undo THEN
        version := (SELECT x.version FROM daybook.mark_document_deleted(_org, _id) x);
        result := 'deleted';
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM daybook.accounts a WHERE a.org_id = _org AND a.code = to_account AND a.type = 'equity') THEN
        RAISE EXCEPTION 'organization % has no account % of the type equity', _org, coalesce(to_account, '')
            USING ERRCODE = 'DB010', HINT = 'name one of the chart: `daybook accounts list`';
    END IF;

    WITH sums AS (
        SELECT s.account_code, s.currency, s.dimensions, sum(s.credit - s.debit) AS amount
          FROM daybook.dimension_sums(_org, _first, _last, true) s
          JOIN daybook.accounts a ON a.org_id = _org AND a.code = s.account_code AND a.type IN ('income', 'expense')
         WHERE NOT s.year_end
         GROUP BY 1, 2, 3
        HAVING sum(s.credit - s.debit) <> 0
    ), results AS (
        SELECT s.currency, s.dimensions, sum(s.amount) AS amount FROM sums s GROUP BY 1, 2
    ), entries AS (
        SELECT 1 AS part, s.account_code, s.currency, s.dimensions, s.amount FROM sums s
         UNION ALL
        SELECT 2, to_account, r.currency, r.dimensions, -r.amount FROM results r WHERE r.amount <> 0
    )
    SELECT (SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object('account', e.account_code, 'amount', e.amount, 'currency', e.currency, 'dimensions', e.dimensions))
                             ORDER BY e.currency, e.part, e.account_code, e.dimensions NULLS FIRST) FROM entries e),
           (SELECT coalesce(jsonb_agg(jsonb_build_object('currency', r.currency, 'amount', r.amount::text) ORDER BY r.currency), '[]')
              FROM (SELECT x.currency, sum(x.amount) AS amount FROM results x GROUP BY 1) r)
      INTO _entries, moved;
    IF _entries IS NULL THEN
        result := 'nothing';
        IF d.id IS NOT NULL AND d.deleted_at IS NULL THEN
            version := (SELECT x.version FROM daybook.mark_document_deleted(_org, _id) x);
            result := 'deleted';
        END IF;
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM jsonb_array_elements(_entries) e WHERE abs((e ->> 'amount')::numeric) > 9223372036854775807) THEN
        RAISE EXCEPTION 'the result of % is more than a journal can state', year USING ERRCODE = 'DB010', HINT = 'close it by journals of parts of it';
    END IF;
    _content := jsonb_build_object('number', _id, 'source', 'year-end', 'journal', jsonb_build_object(
        'reason', format('Year-end close of %s to account %s', year, to_account), 'by', actor, 'year_end', true, 'entries', _entries));
    IF d.deleted_at IS NULL AND d.accounting_ready_at IS NOT NULL
       AND d.content -> 'journal' -> 'entries' = _entries AND d.content -> 'journal' ->> 'reason' = _content -> 'journal' ->> 'reason' THEN
        result := 'unchanged';
        RETURN;
    END IF;
    INSERT INTO daybook.documents AS x (org_id, id, type, direction, currency, issue_date, content)
    VALUES (_org, _id, 'journal', 'out', _entries -> 0 ->> 'currency', _last, _content)
    ON CONFLICT (org_id, id) DO UPDATE
       SET content = excluded.content, currency = excluded.currency, issue_date = excluded.issue_date, deleted_at = NULL, updated_at = clock_timestamp();
    version := (SELECT x.version FROM daybook.mark_document_ready(_org, _id) x);
    result := 'written';
END
$$;

-- Name: FUNCTION close_year(org_id text, year integer, to_account text, actor text, undo boolean, OUT document_id text, OUT version bigint, OUT result text, OUT moved jsonb); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.close_year(org_id text, year integer, to_account text, actor text, undo boolean, OUT document_id text, OUT version bigint, OUT result text, OUT moved jsonb) IS 'Writes the journal that moves a year''s income and expense to an account of equity, or deletes it (undo); a worker posts or reverses it';

-- Name: closed_days(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.closed_days(org_id text) RETURNS datemultirange
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
SELECT coalesce(range_agg(daterange(s.starts_on, s.ends_on, '[]')), '{}') FROM daybook.closed_spans(closed_days.org_id) s
$$;

-- Name: FUNCTION closed_days(org_id text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.closed_days(org_id text) IS 'The days of daybook.closed_spans';

-- Name: closed_spans(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.closed_spans(org_id text, OUT starts_on date, OUT ends_on date, OUT in_period boolean) RETURNS SETOF record
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

-- Name: FUNCTION closed_spans(org_id text, OUT starts_on date, OUT ends_on date, OUT in_period boolean); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.closed_spans(org_id text, OUT starts_on date, OUT ends_on date, OUT in_period boolean) IS 'The days on which nothing is posted for an organization: closed periods, and gaps before and between them and up to the first open period after them';

-- Name: closing_adjustments(text, date, bigint, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.closing_adjustments(org_id text, starts_on date, after bigint DEFAULT 0, most integer DEFAULT 1000) RETURNS TABLE(impact_id bigint, document_id text, kind daybook.impact_kind, reason text, document_date date, posting_date date, created_at timestamp with time zone, currency text, amount numeric)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
WITH first AS MATERIALIZED (
    SELECT min(c.number) AS number, min(c.last_impact_id) AS last_impact_id, range_agg(d) AS days
      FROM daybook.closings c CROSS JOIN LATERAL unnest(c.days) AS d
     WHERE c.org_id = closing_adjustments.org_id AND c.starts_on = closing_adjustments.starts_on AND c.action = 'closed'
), first_open AS MATERIALIZED (
    SELECT DISTINCT upper(d) AS day
      FROM first JOIN daybook.closings c ON c.org_id = closing_adjustments.org_id AND c.number >= first.number
     CROSS JOIN LATERAL unnest(c.closed_days) AS d
), later AS MATERIALIZED (
    SELECT i.id, i.kind, i.document_id, i.seq
      FROM first CROSS JOIN first_open o
      JOIN daybook.impacts i ON i.org_id = closing_adjustments.org_id AND i.posting_date = o.day AND i.id > first.last_impact_id
      LEFT JOIN daybook.impacts r ON i.kind = 'reverse' AND r.org_id = i.org_id AND r.document_id = i.document_id AND r.seq = i.previous_seq
     CROSS JOIN LATERAL (SELECT coalesce(r.posting_date, i.document_date) AS day) due
     CROSS JOIN LATERAL (SELECT c.closed_days FROM daybook.closings c
                          WHERE c.org_id = i.org_id AND c.last_impact_id < i.id ORDER BY c.number DESC LIMIT 1) at
     WHERE due.day <@ first.days AND NOT i.posting_date <@ first.days
       AND EXISTS (SELECT FROM unnest(at.closed_days) AS d WHERE due.day <@ d AND upper(d) = i.posting_date)
), behind AS MATERIALIZED (
    -- A document that was posted or reversed on a later day is not posted before that any more, though
    -- its own day be open again.
    SELECT i.id, i.kind, i.document_id, i.seq
      FROM first
     CROSS JOIN (SELECT l.document_id, min(l.seq) AS seq FROM later l GROUP BY l.document_id) r
      JOIN daybook.impacts i ON i.org_id = closing_adjustments.org_id AND i.document_id = r.document_id AND i.seq > r.seq
     WHERE i.kind = 'post' AND i.document_date <@ first.days AND NOT i.posting_date <@ first.days
), moved AS MATERIALIZED (
    SELECT * FROM later UNION SELECT * FROM behind
), found AS MATERIALIZED (
    SELECT i.id, 'opened_again' AS reason
      FROM first CROSS JOIN LATERAL unnest(first.days) AS d
      JOIN daybook.impacts i
        ON i.org_id = closing_adjustments.org_id AND i.posting_date >= lower(d) AND i.posting_date < upper(d) AND i.id > first.last_impact_id
     UNION ALL
    SELECT l.id, 'later_day' FROM moved l
     UNION
    SELECT r.id, 'later_day'
      FROM moved l
      JOIN daybook.impacts r ON r.org_id = closing_adjustments.org_id AND r.document_id = l.document_id AND r.kind = 'reverse' AND r.previous_seq = l.seq
     WHERE l.kind = 'post'
)
SELECT i.id, i.document_id, i.kind, f.reason, i.document_date, i.posting_date, i.created_at, e.currency, e.amount
  FROM (SELECT x.id, x.reason FROM found x WHERE x.id > closing_adjustments.after ORDER BY x.id LIMIT closing_adjustments.most) f
  JOIN daybook.impacts i ON i.id = f.id
  LEFT JOIN LATERAL (SELECT x.currency, sum(x.amount_minor) AS amount FROM daybook.entries x
                      WHERE x.impact_id = i.id AND x.side = 'debit' GROUP BY x.currency) e ON true
 ORDER BY i.id, e.currency
$$;

-- Name: FUNCTION closing_adjustments(org_id text, starts_on date, after bigint, most integer); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.closing_adjustments(org_id text, starts_on date, after bigint, most integer) IS 'What was posted of the period that begins on that day after it was first closed: on its days while they were open again, or on a later day';

-- Name: closing_differences(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.closing_differences(org_id text) RETURNS TABLE(organization text, number integer, impact_id bigint, detail text)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "DateStyle" TO 'ISO, YMD'
    AS $$
WITH c AS MATERIALIZED (
    SELECT x.org_id, x.number, x.action, x.starts_on, x.ends_on, x.days, x.closed_days, x.impacts, x.entries, x.last_impact_id, x.impacts_hash,
           x.previous_hash, x.hash, daybook.closing_hash(x) AS hash_now,
           lag(x.hash) OVER w AS hash_before, coalesce(lag(x.number) OVER w, 0) AS number_before, lead(x.number) OVER w IS NULL AS last,
           -- The days that it closed and that were not opened since.
           x.days - coalesce((SELECT range_agg(r) FROM daybook.closings o CROSS JOIN LATERAL unnest(o.days) AS r
                               WHERE o.org_id = x.org_id AND o.number > x.number AND o.action = 'opened'), '{}') AS days_now
      FROM daybook.closings x
     WHERE closing_differences.org_id = '' OR x.org_id = closing_differences.org_id
    WINDOW w AS (PARTITION BY x.org_id ORDER BY x.number)
)
SELECT c.org_id, c.number, NULL::bigint, format('closing %s is not as it was written', c.number)
  FROM c WHERE c.hash <> c.hash_now
 UNION ALL
SELECT c.org_id, c.number, NULL, format('closing %s does not continue closing %s', c.number, c.number_before)
  FROM c WHERE c.number <> c.number_before + 1 OR c.previous_hash IS DISTINCT FROM c.hash_before
 UNION ALL
SELECT c.org_id, c.number, NULL,
       format('what was %s from %s to %s (closing %s) was changed: %s impacts and %s entries then, %s and %s now%s', c.action, c.starts_on, c.ends_on,
              c.number, c.impacts, c.entries, h.impacts, h.entries,
              CASE WHEN (h.impacts, h.entries) = (c.impacts, c.entries) THEN ', with other contents' ELSE '' END)
  FROM c CROSS JOIN LATERAL daybook.hash_impacts(c.org_id, c.days, c.last_impact_id) h
 WHERE (h.impacts, h.entries, h.hash) IS DISTINCT FROM (c.impacts, c.entries, c.impacts_hash)
 UNION ALL
SELECT c.org_id, c.number, i.id, format('posted on %s after closing %s', i.posting_date, c.number)
  FROM c
 CROSS JOIN LATERAL unnest(c.days_now) AS span
  JOIN daybook.impacts i ON i.org_id = c.org_id AND i.posting_date >= lower(span) AND i.posting_date < upper(span) AND i.id > c.last_impact_id
 WHERE c.action = 'closed'
 UNION ALL
SELECT o.id, c.number, NULL, format('the days that are closed are %s, and those of the last closing are %s', daybook.closed_days(o.id), coalesce(c.closed_days, '{}'))
  FROM (SELECT DISTINCT p.org_id AS id FROM daybook.periods p WHERE p.state = 'closed' AND (closing_differences.org_id = '' OR p.org_id = closing_differences.org_id)
         UNION SELECT c.org_id FROM c) o
  LEFT JOIN c ON c.org_id = o.id AND c.last
 WHERE daybook.closed_days(o.id) <> coalesce(c.closed_days, '{}')
 ORDER BY 1, 2, 3
$$;

-- Name: FUNCTION closing_differences(org_id text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.closing_differences(org_id text) IS 'What of closings, or of what they closed, is not as it was; empty: nothing. An empty organization: all. It reads all closed impacts';

-- Name: closings; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.closings (
    org_id text NOT NULL COLLATE pg_catalog."C",
    number integer NOT NULL,
    action text NOT NULL,
    starts_on date NOT NULL,
    ends_on date NOT NULL,
    days datemultirange NOT NULL,
    closed_days datemultirange NOT NULL,
    closed_by text NOT NULL,
    db_role text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    impacts bigint NOT NULL,
    entries bigint NOT NULL,
    last_impact_id bigint NOT NULL,
    impacts_hash bytea NOT NULL,
    previous_hash bytea,
    hash bytea NOT NULL,
    list jsonb,
    signature bytea,
    key_id text,
    CONSTRAINT closings_action_check CHECK ((action = ANY (ARRAY['closed'::text, 'opened'::text]))),
    CONSTRAINT closings_closed_by_check CHECK ((octet_length(closed_by) <= 1000)),
    CONSTRAINT closings_days_check CHECK ((NOT isempty(days))),
    CONSTRAINT closings_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT closings_impacts_hash_check CHECK ((octet_length(impacts_hash) = 32)),
    CONSTRAINT closings_key_id_check CHECK ((key_id ~ '^[0-9a-f]{32}$'::text)),
    CONSTRAINT closings_number_check CHECK ((number > 0)),
    CONSTRAINT closings_signature_check CHECK ((octet_length(signature) = 64)),
    CONSTRAINT first_has_none_before CHECK (((number = 1) = (previous_hash IS NULL))),
    CONSTRAINT signature_has_key CHECK (((signature IS NULL) = (key_id IS NULL)))
);

-- Name: TABLE closings; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.closings IS 'Closings and openings of periods, each with the hash of what it closed or opened and of the row before it. Append-only';

-- Name: COLUMN closings.number; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closings.number IS 'From 1 in each organization, without a gap';

-- Name: COLUMN closings.starts_on; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closings.starts_on IS 'The period''s first day; of days in no period, the first of them';

-- Name: COLUMN closings.days; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closings.days IS 'The days that it closed or opened: those of the period, and those in no period that go with it';

-- Name: COLUMN closings.closed_days; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closings.closed_days IS 'All days that are closed after it';

-- Name: COLUMN closings.closed_by; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closings.closed_by IS 'The setting daybook.actor of its transaction; without one, the role that logged in';

-- Name: COLUMN closings.impacts; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closings.impacts IS 'How many impacts the days had';

-- Name: COLUMN closings.last_impact_id; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closings.last_impact_id IS 'No impact that was made before it has a higher id, and none that was made after it has one as low';

-- Name: COLUMN closings.impacts_hash; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closings.impacts_hash IS 'daybook.hash_impacts of the days, up to last_impact_id';

-- Name: COLUMN closings.previous_hash; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closings.previous_hash IS 'The hash of the row before it';

-- Name: COLUMN closings.hash; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closings.hash IS 'daybook.closing_hash of the row';

-- Name: COLUMN closings.list; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closings.list IS 'What was open when it was closed: daybook.closing_list; null: it was opened';

-- Name: COLUMN closings.signature; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closings.signature IS 'Ed25519, of the text "daybook closing " and the hash in hexadecimal; null: not signed';

-- Name: COLUMN closings.key_id; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closings.key_id IS 'Of the key that signed: the first 16 bytes of the SHA-256 of the public key (DER), in hexadecimal';

-- Name: closing_hash(daybook.closings); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.closing_hash(c daybook.closings) RETURNS bytea
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    SET "DateStyle" TO 'ISO, YMD'
    SET bytea_output TO 'hex'
    AS $$
SELECT sha256(convert_to(ROW(c.org_id, c.number, c.action, c.starts_on, c.ends_on, c.days, c.closed_days, c.closed_by, c.db_role, c.created_at,
                             c.impacts, c.entries, c.last_impact_id, c.impacts_hash, c.previous_hash, c.list)::text, 'UTF8'))
$$;

-- Name: closing_list(text, date, text[], date[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.closing_list(org_id text, starts_on date, computed_ids text[] DEFAULT '{}'::text[], computed_days date[] DEFAULT '{}'::date[]) RETURNS TABLE(code text, required boolean, count bigint, account text, currency text, amount numeric, examples text[], what_to_do text)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
SELECT l.*
  FROM daybook.periods p
 CROSS JOIN LATERAL daybook.open_at_closing(p.org_id, p.starts_on, p.ends_on, daybook.days_to_close(p.org_id, p.starts_on), computed_ids, computed_days) l
 WHERE p.org_id = closing_list.org_id AND p.starts_on = closing_list.starts_on
$$;

-- Name: FUNCTION closing_list(org_id text, starts_on date, computed_ids text[], computed_days date[]); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.closing_list(org_id text, starts_on date, computed_ids text[], computed_days date[]) IS 'What is to be done before the period that begins on that day is closed; required: it has to be';

-- Name: complete_async_operation(uuid, jsonb, bigint); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.complete_async_operation(p_operation_id uuid, p_result jsonb DEFAULT NULL::jsonb, p_fence bigint DEFAULT NULL::bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    job CONSTANT daybook.jobs := daybook.held_async_operation(p_operation_id, p_fence);
BEGIN
    IF job.id IS NULL THEN
        RAISE EXCEPTION 'operation % is not held by this claim', p_operation_id
            USING ERRCODE = 'DB031', HINT = 'its lease of 5 minutes has expired and it was reset, or it was never claimed; what this attempt did is not on record';
    END IF;
    IF job.cancel_requested THEN
        PERFORM daybook.end_async_operation(job, 'cancelled', NULL, 'JOB_CANCELLED', 'it was cancelled during the attempt', NULL);
        RETURN false;
    END IF;
    PERFORM daybook.end_async_operation(job, 'completed', p_result, NULL, NULL, NULL);
    RETURN true;
END
$$;

-- Name: FUNCTION complete_async_operation(p_operation_id uuid, p_result jsonb, p_fence bigint); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.complete_async_operation(p_operation_id uuid, p_result jsonb, p_fence bigint) IS 'Completes a claimed job, with a result. An error (DB031), which undoes the caller''s transaction, when the claim does not hold it any more; false: it was cancelled meanwhile, and is';

-- Name: complete_callback(text, jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.complete_callback(token text, data jsonb, OUT job_id text, OUT result text) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    asked daybook.job_callbacks;
    state text;
BEGIN
    PERFORM daybook.check_job_payload(complete_callback.data, complete_callback.data::text);
    SELECT * INTO asked FROM daybook.job_callbacks c WHERE c.token_hash = sha256(convert_to(token, 'UTF8')) FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no such callback' USING ERRCODE = 'DB026', HINT = 'its job may have been purged';
    END IF;
    job_id := asked.job_id;
    IF asked.called_at IS NOT NULL THEN
        IF asked.data <> complete_callback.data THEN
            RAISE EXCEPTION 'the callback came before with other data' USING ERRCODE = 'DB028', HINT = 'the first data count';
        END IF;
        result := 'unchanged';
        RETURN;
    END IF;
    SELECT j.state INTO state FROM daybook.jobs j WHERE j.id = asked.job_id;
    IF asked.deadline <= clock_timestamp() OR state IN ('completed', 'cancelled') THEN
        RAISE EXCEPTION 'nothing waits for the callback any more' USING ERRCODE = 'DB027', HINT = 'it came after its deadline, or its job has ended';
    END IF;
    UPDATE daybook.job_callbacks c SET called_at = clock_timestamp(), data = complete_callback.data WHERE c.token_hash = asked.token_hash;
    INSERT INTO daybook.job_wait_checks (job_id) VALUES (asked.job_id);
    -- All fleets: the job may be of any, and the workers of any decide what is on record.
    PERFORM daybook.wake_job_queue();
    result := 'received';
END
$$;

-- Name: FUNCTION complete_callback(token text, data jsonb, OUT job_id text, OUT result text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.complete_callback(token text, data jsonb, OUT job_id text, OUT result text) IS 'Tells a job what it waits for: token is the one that its handler gave away, data a JSON object';

-- Name: complete_job(text, bigint, jsonb, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.complete_job(job_id text, fence bigint, result jsonb DEFAULT NULL::jsonb, unstored text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    job CONSTANT daybook.jobs := daybook.held_job(complete_job.job_id, complete_job.fence);
    why CONSTANT text := CASE WHEN octet_length(complete_job.result::text) > 16777216 THEN 'the result has more than 16777216 bytes' ELSE complete_job.unstored END;
BEGIN
    IF job.id IS NULL OR job.cancel_requested THEN
        RAISE EXCEPTION 'job % is %', complete_job.job_id, CASE WHEN job.id IS NULL THEN 'not held by this claim any more' ELSE 'to be cancelled' END
            USING ERRCODE = 'DB031', HINT = 'roll back: what the attempt did in this transaction must not be kept; then call daybook.fail_job';
    END IF;
    PERFORM daybook.end_async_operation(job, 'completed', CASE WHEN why IS NULL THEN complete_job.result END,
                                        CASE WHEN why IS NOT NULL THEN 'RESULT_NOT_STORED' END, why, NULL);
END
$$;

-- Name: FUNCTION complete_job(job_id text, fence bigint, result jsonb, unstored text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.complete_job(job_id text, fence bigint, result jsonb, unstored text) IS 'Completes a claimed job, with a result, in the transaction that writes its effects. unstored: why it leaves no result. DB031, which undoes that, when the claim is lost or the job is to be cancelled';

-- Name: configuration_changed(); Type: FUNCTION; Schema: daybook; Owner: -

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

-- Name: continue_versions(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.continue_versions() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    known bigint;
BEGIN
    SELECT greatest(
               (SELECT q.version_hint FROM daybook.accounting_work_queue q WHERE q.org_id = NEW.org_id AND q.document_id = NEW.id),
               (SELECT max(greatest(i.document_version, (SELECT max(c.document_version) FROM daybook.confirmations c WHERE c.impact_id = i.id)))
                  FROM daybook.impacts i WHERE i.org_id = NEW.org_id AND i.document_id = NEW.id))
      INTO known;
    IF known >= NEW.accounting_ready_version THEN
        NEW.accounting_ready_version := known + 1;
    END IF;
    RETURN NEW;
END
$$;

-- Name: count_organization_starts(text, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.count_organization_starts(org_id text, began integer) RETURNS double precision
    LANGUAGE sql
    AS $_$
    INSERT INTO daybook.organization_rates AS r (org_id, starts, at)
    SELECT o.id, daybook.organization_starts(o) - $2, clock_timestamp() FROM daybook.organizations o WHERE o.id = $1 AND o.rate IS NOT NULL
    ON CONFLICT ON CONSTRAINT organization_rates_pkey DO UPDATE SET starts = excluded.starts, at = excluded.at
    RETURNING (1 - r.starts) * (SELECT o.rate_seconds / o.rate FROM daybook.organizations o WHERE o.id = $1)
$_$;

-- Name: counterparty_statement(text, text, date, date); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.counterparty_statement(org_id text, counterparty text, from_day date, to_day date) RETURNS TABLE(posting_date date, impact_id bigint, document_id text, type text, number text, issue_date date, due_date date, account_code text, currency text, amount numeric, balance numeric, open_amount numeric)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    _org   CONSTANT text := counterparty_statement.org_id;
    _party CONSTANT text := counterparty_statement.counterparty;
    own    text[];
    shared text[];
BEGIN
    own := ARRAY(SELECT d.id FROM daybook.documents d WHERE d.org_id = _org AND d.content ->> 'counterparty' = _party);
    shared := ARRAY(
        SELECT DISTINCT g.document_id
          FROM unnest(own) AS k (id)
          JOIN daybook.reconciled r ON r.org_id = _org AND r.document_id = k.id
          JOIN daybook.reconciled g ON g.org_id = _org AND g.group_id = r.group_id AND g.document_id <> ALL (own)
          LEFT JOIN daybook.documents d ON d.org_id = _org AND d.id = g.document_id
         WHERE coalesce(d.content ->> 'counterparty', '') = '');
    RETURN QUERY
    WITH items AS MATERIALIZED (
        SELECT o.*, nullif(d.content ->> 'counterparty', '') AS party,
               sum(abs(o.amount)) OVER (PARTITION BY o.group_id, o.account_code, o.currency, sign(o.amount)
                                            ORDER BY o.day, o.document_id COLLATE "C") AS upto
          FROM daybook.item_amounts(_org, to_day, ARRAY(
                   SELECT unnest(own || shared) AS id
                    UNION SELECT g.document_id FROM daybook.reconciled r JOIN daybook.reconciled g ON g.org_id = _org AND g.group_id = r.group_id
                           WHERE r.org_id = _org AND r.document_id = ANY (own || shared))) o
          LEFT JOIN daybook.documents d ON d.org_id = _org AND d.id = o.document_id
    ), rest AS MATERIALIZED (
        SELECT r.document_id,
               (SELECT coalesce(min(nullif(x.content ->> 'counterparty', '')), '')
                  FROM daybook.reconciled g JOIN daybook.documents x ON x.org_id = _org AND x.id = g.document_id
                 WHERE g.org_id = _org AND g.group_id = r.group_id) = _party AS is_own
          FROM daybook.reconciled r WHERE r.org_id = _org AND r.document_id = ANY (shared)
    ), paid AS (
        SELECT u.document_id, u.account_code, u.currency, u.amount, x.party = _party AS is_own,
               sign(u.amount) * greatest(0, least(u.upto, x.upto) - greatest(u.upto - abs(u.amount), x.upto - abs(x.amount))) AS part
          FROM items u
          LEFT JOIN items x ON x.group_id = u.group_id AND x.account_code = u.account_code AND x.currency = u.currency
                           AND sign(x.amount) = -sign(u.amount) AND x.party IS NOT NULL
         WHERE u.document_id = ANY (shared)
    ), parts AS MATERIALIZED (
        SELECT p.document_id, p.account_code, p.currency, p.amount,
               CASE WHEN r.is_own THEN p.amount - coalesce(sum(p.part) FILTER (WHERE NOT p.is_own), 0)
                    ELSE coalesce(sum(p.part) FILTER (WHERE p.is_own), 0) END AS part
          FROM paid p JOIN rest r ON r.document_id = p.document_id
         GROUP BY p.document_id, p.account_code, p.currency, p.amount, r.is_own
    ), posted AS (
        SELECT i.posting_date, i.id, i.document_id, e.account_code, e.currency,
               sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) AS amount
          FROM unnest(own || shared) AS k (id)
         CROSS JOIN LATERAL (SELECT * FROM daybook.impacts x WHERE x.org_id = _org AND x.document_id = k.id OFFSET 0) i
          JOIN daybook.entries e ON e.impact_id = i.id
          JOIN daybook.accounts a ON a.org_id = _org AND a.code = e.account_code AND a.role IN ('receivable', 'payable', 'advance')
         WHERE (i.posting_date > to_day) IS NOT TRUE
         GROUP BY i.posting_date, i.id, i.document_id, e.account_code, e.currency
    ), moves AS (
        SELECT p.posting_date, p.id, p.document_id, p.account_code, p.currency,
               CASE WHEN r.document_id IS NULL THEN p.amount
                    WHEN s.amount IS NULL THEN CASE WHEN r.is_own THEN p.amount ELSE 0 END -- nothing is left of it
                    ELSE div(sum(p.amount) OVER so_far * s.part, s.amount) - div((sum(p.amount) OVER so_far - p.amount) * s.part, s.amount) END AS amount
          FROM posted p
          LEFT JOIN rest r ON r.document_id = p.document_id
          LEFT JOIN parts s ON s.document_id = p.document_id AND s.account_code = p.account_code AND s.currency = p.currency
        WINDOW so_far AS (PARTITION BY p.document_id, p.account_code, p.currency ORDER BY p.posting_date, p.id)
    ), lines AS (
        SELECT m.* FROM moves m WHERE (m.posting_date < from_day) IS NOT TRUE AND m.amount <> 0
         UNION ALL
        SELECT NULL, NULL, NULL, m.account_code, m.currency, sum(m.amount) FROM moves m
         WHERE m.posting_date < from_day AND m.amount <> 0
         GROUP BY m.account_code, m.currency
    )
    SELECT l.posting_date, l.id, l.document_id, d.type, d.content ->> 'number', d.issue_date, daybook.day_of(d.content ->> 'due_date'),
           l.account_code, l.currency, l.amount,
           sum(l.amount) OVER (PARTITION BY l.account_code, l.currency ORDER BY l.posting_date NULLS FIRST, l.id),
           CASE WHEN r.is_own IS FALSE THEN 0 ELSE coalesce(o.open_amount, 0) END
      FROM lines l
      LEFT JOIN daybook.documents d ON d.org_id = _org AND d.id = l.document_id
      LEFT JOIN rest r ON r.document_id = l.document_id
      LEFT JOIN items o ON o.document_id = l.document_id AND o.account_code = l.account_code AND o.currency = l.currency
     ORDER BY l.account_code, l.currency, l.posting_date NULLS FIRST, l.id;
END
$$;

-- Name: FUNCTION counterparty_statement(org_id text, counterparty text, from_day date, to_day date); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.counterparty_statement(org_id text, counterparty text, from_day date, to_day date) IS 'What a counterparty''s documents have posted on accounts with open items in a span of days, with the balance before and after each; debits less credits, in minor units';

-- Name: day_of(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.day_of(day text) RETURNS date
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$
    SELECT CASE WHEN day ~ '^(19|2\d)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$'
                THEN make_date(left(day, 4)::integer, substr(day, 6, 2)::integer, 1) + right(day, 2)::integer - 1 END
$_$;

-- Name: days_to_close(text, date); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.days_to_close(org_id text, starts_on date) RETURNS datemultirange
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
WITH p AS (
    SELECT x.* FROM daybook.periods x WHERE x.org_id = days_to_close.org_id AND x.starts_on = days_to_close.starts_on
), last AS (
    SELECT x.starts_on, x.ends_on
      FROM daybook.periods x CROSS JOIN p
     WHERE x.org_id = p.org_id AND (x.state = 'closed' OR x.starts_on = p.starts_on)
     ORDER BY x.starts_on DESC LIMIT 1
)
SELECT CASE p.state
       WHEN 'open' THEN
           datemultirange(daterange('1900-01-01', coalesce(
               (SELECT min(x.starts_on) FROM daybook.periods x WHERE x.org_id = p.org_id AND x.starts_on > last.starts_on), last.ends_on + 1)))
           - coalesce((SELECT range_agg(daterange(x.starts_on, x.ends_on, '[]')) FROM daybook.periods x
                        WHERE x.org_id = p.org_id AND x.state = 'open' AND x.starts_on <> p.starts_on), '{}')
           - daybook.closed_days(p.org_id)
       ELSE
           (datemultirange(daterange(p.starts_on, p.ends_on, '[]'))
            + coalesce((SELECT c.days FROM daybook.closings c
                         WHERE c.org_id = p.org_id AND c.starts_on = p.starts_on AND c.action = 'closed' ORDER BY c.number DESC LIMIT 1), '{}'))
           * daybook.closed_days(p.org_id)
       END
  FROM p CROSS JOIN last
$$;

-- Name: FUNCTION days_to_close(org_id text, starts_on date); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.days_to_close(org_id text, starts_on date) IS 'The days that the closing of the period that begins on that day closes, or has closed: its own, and those in no period that go with it';

-- Name: debounce_job(text, text, jsonb, jsonb, integer, integer, jsonb, text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.debounce_job(org_id text, type text, payload jsonb, debounce jsonb, priority integer DEFAULT NULL::integer, max_attempts integer DEFAULT NULL::integer, links jsonb DEFAULT NULL::jsonb, queue text DEFAULT NULL::text, limit_key text DEFAULT NULL::text, OUT job_id text, OUT duplicate boolean, OUT result text) RETURNS record
    LANGUAGE plpgsql
    AS $_$
#variable_conflict use_column
DECLARE
    -- Null: not all parts of the request were checked.
    known   boolean;
    keep    text;
    merger  text;
    wake    boolean;
    crew    smallint;
    -- The limit and key of another payload, when they are not those that the job has; empty: it has
    -- none.
    other   text[];
    opened  daybook.jobs;
    -- The job that has begun, which the new one follows.
    earlier text;
BEGIN
    LOOP
        -- As in enqueue_job, one statement checks and serves most requests.
        INSERT INTO daybook.jobs AS j (org_id, type, payload, unique_hash, debounce_key, ready_at, first_ready_at, priority, max_attempts, fleet, queue,
                                       limit_scope, limit_key, awaited)
        SELECT debounce_job.org_id, debounce_job.type, debounce_job.payload, daybook.job_debounce_hash(debounce_job.type, debounce ->> 'key'),
               debounce ->> 'key', CASE WHEN earlier IS NULL THEN x.due ELSE '9999-12-31 00:00:00+00' END, x.due, coalesce(debounce_job.priority, 2),
               debounce_job.max_attempts,
               least(CASE WHEN debounce_job.queue <> 'default' THEN daybook.queue_fleet(debounce_job.queue) ELSE 0 END, CASE WHEN x.lim IS NOT NULL THEN -1 END),
               nullif(debounce_job.queue, 'default'), x.lim[1], x.lim[2], x.lim IS NOT NULL
          FROM (SELECT clock_timestamp() + make_interval(secs => daybook.debounce_seconds(debounce, 'wait_seconds')) AS due,
                       CASE WHEN debounce_job.limit_key IS NOT NULL OR EXISTS (SELECT FROM daybook.job_limits l WHERE l.scope IN (debounce_job.type, 'queue/' || debounce_job.queue))
                            THEN daybook.limit_of(debounce_job.type, debounce_job.queue, debounce_job.org_id, debounce_job.payload, debounce_job.limit_key) END AS lim
                 WHERE known
                    OR debounce_job.type ~ '^[A-Za-z][A-Za-z0-9_.:-]*$'
                       AND NOT daybook.job_in_doubt(debounce_job.org_id, debounce_job.type, debounce_job.payload, debounce_job.payload::text, NULL, NULL,
                                                    debounce_job.priority, debounce_job.max_attempts, debounce_job.links)
                       AND num_nonnulls(debounce_job.queue, debounce_job.limit_key) = 0 AND daybook.is_plain_debounce(debounce) OFFSET 0) x
        ON CONFLICT (org_id, unique_hash) WHERE unique_hash IS NOT NULL AND state IN ('pending', 'leased') DO UPDATE
           SET payload = CASE keep WHEN 'first' THEN j.payload
                                   WHEN 'merged' THEN daybook.merge_payloads(j.payload, excluded.payload, merger)
                                   ELSE excluded.payload END,
               (ready_at, first_ready_at) = (
                   SELECT CASE WHEN j.ready_at = '9999-12-31 00:00:00+00' THEN j.ready_at ELSE x.due END, x.due
                     FROM (SELECT daybook.debounced_until(j.created_at, j.first_ready_at, daybook.debounce_seconds(debounce, 'wait_seconds'),
                                                          daybook.debounce_seconds(debounce, 'max_wait_seconds')) AS due OFFSET 0) x),
               priority = least(j.priority, debounce_job.priority), generation = j.generation + 1, updated_at = clock_timestamp()
         WHERE j.state = 'pending' AND j.last_attempted_at IS NULL
        RETURNING id, j.generation > 0, fleet, daybook.must_wake(daybook.jobs_key(greatest(j.fleet, 0)), j.ready_at),
                  CASE WHEN j.generation = 0 THEN 'enqueued' WHEN keep = 'first' THEN 'rescheduled' ELSE 'replaced' END,
                  CASE WHEN j.generation > 0 AND keep IS DISTINCT FROM 'first'
                            AND (num_nonnulls(debounce_job.limit_key, j.limit_key) > 0
                                 OR EXISTS (SELECT FROM daybook.job_limits l WHERE l.scope IN (j.type, 'queue/' || j.queue)))
                       THEN nullif(coalesce(daybook.limit_of(j.type, j.queue, j.org_id, j.payload, debounce_job.limit_key), '{}'),
                                   array_remove(ARRAY[j.limit_scope, j.limit_key], NULL)) END
             INTO job_id, duplicate, crew, wake, result, other;
        IF other IS NOT NULL THEN
            PERFORM daybook.change_limit(job_id, nullif(other, '{}'));
        END IF;
        IF wake IS FALSE AND known IS NULL THEN
            RETURN;
        END IF;
        EXIT WHEN wake IS NOT NULL;
        IF known IS NULL THEN
            -- The request may be invalid, and no row was made; or the job of the key has begun.
            PERFORM daybook.check_job(debounce_job.org_id, debounce_job.type, debounce_job.payload, debounce_job.payload::text, NULL, NULL,
                                      debounce_job.priority, debounce_job.max_attempts, debounce_job.links);
            PERFORM daybook.check_debounce(debounce), daybook.check_job_order(debounce_job.queue, NULL, NULL, debounce_job.limit_key);
            merger := daybook.merge_function(debounce ->> 'merge');
            keep := coalesce(debounce ->> 'keep', 'newest');
            known := true;
            CONTINUE;
        END IF;

        -- The job of the key has begun, and the statement has locked it.
        SELECT * INTO opened
          FROM daybook.jobs j
         WHERE j.org_id = debounce_job.org_id AND j.unique_hash = daybook.job_debounce_hash(debounce_job.type, debounce ->> 'key')
           AND j.state IN ('pending', 'leased')
           FOR NO KEY UPDATE;
        CONTINUE WHEN NOT FOUND;
        IF opened.state = 'pending' AND keep = 'first' THEN
            UPDATE daybook.jobs j SET generation = j.generation + 1, updated_at = clock_timestamp() WHERE j.id = opened.id;
            IF opened.awaited THEN
                DELETE FROM daybook.job_steps s WHERE s.job_id = opened.id; -- they were kept before this request
            END IF;
            job_id := opened.id;
            duplicate := true;
            result := 'unchanged';
            RETURN;
        END IF;
        -- It gives the key up. A lease goes by the generation, which stays.
        UPDATE daybook.jobs j
           SET unique_hash = NULL, awaited = true, generation = j.generation + (j.state = 'pending')::integer, updated_at = clock_timestamp()
         WHERE j.id = opened.id;
        earlier := opened.id;
    END LOOP;

    IF earlier IS NOT NULL THEN
        INSERT INTO daybook.job_waits (job_id, awaits, any_end, replaces) VALUES (debounce_job.job_id, earlier, true, keep = 'newest');
        IF opened.state = 'pending' THEN
            PERFORM daybook.yield_to_newer(earlier);
        END IF;
    END IF;
    IF debounce_job.links IS NOT NULL AND NOT duplicate THEN
        INSERT INTO daybook.job_links (job_id, kind, id)
        SELECT DISTINCT debounce_job.job_id, l ->> 'kind', l ->> 'id' FROM jsonb_array_elements(debounce_job.links) l;
    END IF;
    IF wake THEN
        PERFORM daybook.wake_job_queue(crew);
    END IF;
END
$_$;

-- Name: FUNCTION debounce_job(org_id text, type text, payload jsonb, debounce jsonb, priority integer, max_attempts integer, links jsonb, queue text, limit_key text, OUT job_id text, OUT duplicate boolean, OUT result text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.debounce_job(org_id text, type text, payload jsonb, debounce jsonb, priority integer, max_attempts integer, links jsonb, queue text, limit_key text, OUT job_id text, OUT duplicate boolean, OUT result text) IS 'Asks for a background job that waits for further requests with its key: enqueue_job with debounce';

-- Name: debounce_jobs(text[], text[], jsonb[], jsonb[], text[], timestamp with time zone[], integer[], integer[], jsonb[], boolean[], text[], text[], jsonb[], integer[], text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.debounce_jobs(org_ids text[], types text[], payloads jsonb[], debounces jsonb[], idempotency_keys text[], ready_ats timestamp with time zone[], priorities integer[], max_attempts integer[], links jsonb[], unique_payloads boolean[], queues text[], sequences text[], afters jsonb[], min_versions integer[], limit_keys text[]) RETURNS TABLE(ordinal integer, job_id text, duplicate boolean, result text)
    LANGUAGE plpgsql
    AS $_$
#variable_conflict use_column
DECLARE
    req   record;
    -- As in enqueue_jobs; null: all are made one by one.
    ids   text[];
    fresh text[];
    due   timestamptz;
BEGIN
    IF num_nonnulls(idempotency_keys, ready_ats, links, unique_payloads, queues, sequences, afters, min_versions, limit_keys) = 0
       AND NOT EXISTS (SELECT FROM daybook.job_limits l WHERE l.scope = ANY (types))
       AND (SELECT bool_and(d IS NOT NULL AND daybook.is_plain_debounce(d)) FROM unnest(debounces) AS d) THEN
        ids := daybook.new_ids(cardinality(debounces));
        WITH ins AS (
            INSERT INTO daybook.jobs AS j (id, org_id, type, payload, unique_hash, debounce_key, ready_at, first_ready_at, priority, max_attempts)
            SELECT u.id, u.org, u.type,
                   CASE WHEN u.type ~ '^[A-Za-z][A-Za-z0-9_.:-]*$'
                             AND NOT daybook.job_in_doubt(u.org, u.type, u.payload, u.as_text, NULL, NULL, u.priority, u.attempts, NULL) THEN u.payload
                        ELSE daybook.check_job(u.org, u.type, u.payload, u.as_text, NULL, NULL, u.priority, u.attempts, NULL) END,
                   daybook.job_debounce_hash(u.type, u.key), u.key, u.due, u.due, coalesce(u.priority, 2), u.attempts
              FROM (SELECT DISTINCT ON (x.org COLLATE "C", x.type COLLATE "C", x.debounce ->> 'key' COLLATE "C") x.*, x.debounce ->> 'key' AS key, x.payload::text AS as_text,
                           clock_timestamp() + make_interval(secs => daybook.debounce_seconds(x.debounce, 'wait_seconds')) AS due
                      FROM unnest(ids, org_ids, types, payloads, priorities, debounce_jobs.max_attempts, debounces)
                           WITH ORDINALITY AS x (id, org, type, payload, priority, attempts, debounce, n)
                     ORDER BY x.org COLLATE "C", x.type COLLATE "C", x.debounce ->> 'key' COLLATE "C", x.n) u
            ON CONFLICT (org_id, unique_hash) WHERE unique_hash IS NOT NULL AND state IN ('pending', 'leased') DO UPDATE SET id = j.id WHERE false
            RETURNING j.id, j.ready_at
        )
        SELECT array_agg(ins.id), min(ins.ready_at) INTO fresh, due FROM ins;
        IF daybook.must_wake(daybook.jobs_key(0), due) THEN
            PERFORM daybook.wake_job_queue(0);
        END IF;
    END IF;
    RETURN QUERY
    SELECT x.n::integer, x.id, false, 'enqueued'::text
      FROM unnest(ids) WITH ORDINALITY AS x (id, n)
     WHERE (x.id IN (SELECT unnest(fresh))) IS TRUE;
    FOR req IN
        SELECT u.*
          FROM unnest(ids, org_ids, types, payloads, idempotency_keys, ready_ats, priorities, debounce_jobs.max_attempts, links, unique_payloads,
                      queues, sequences, afters, min_versions, debounces, limit_keys)
               WITH ORDINALITY AS u (id, org, type, payload, key, ready_at, priority, attempts, links, is_unique, queue, sequence, after, min_version, debounce,
                                     limit_key, n)
         WHERE u.debounce IS NOT NULL AND (u.id IN (SELECT unnest(fresh))) IS NOT TRUE
         ORDER BY u.org COLLATE "C", u.type COLLATE "C", u.debounce ->> 'key' COLLATE "C", u.n
    LOOP
        ordinal := req.n;
        SELECT e.job_id, e.duplicate, e.result INTO job_id, duplicate, result
          FROM daybook.enqueue_job(req.org, req.type, req.payload, req.key, req.ready_at, req.priority, req.attempts, req.links,
                                   coalesce(req.is_unique, false), req.queue, req.sequence, daybook.job_ids(req.after), min_version => req.min_version, debounce => req.debounce,
                                   limit_key => req.limit_key) e;
        RETURN NEXT;
    END LOOP;
END
$_$;

-- Name: debounce_seconds(jsonb, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.debounce_seconds(debounce jsonb, member text) RETURNS double precision
    LANGUAGE sql IMMUTABLE
    AS $_$
    SELECT CASE WHEN jsonb_typeof($1 -> $2) = 'number'
                THEN CASE WHEN ($1 -> $2)::numeric BETWEEN 0 AND 3.2e9 THEN ($1 -> $2)::double precision END END
$_$;

-- Name: debounced_until(timestamp with time zone, timestamp with time zone, double precision, double precision); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.debounced_until(first_asked timestamp with time zone, due timestamp with time zone, wait double precision, longest double precision) RETURNS timestamp with time zone
    LANGUAGE sql
    AS $$
    SELECT CASE WHEN first_asked + make_interval(secs => longest) <= clock_timestamp() THEN least(due, clock_timestamp())
                ELSE least(clock_timestamp() + make_interval(secs => wait), first_asked + make_interval(secs => longest)) END
$$;

-- Name: decide_posted_elsewhere(text, text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.decide_posted_elsewhere(org_id text, document_id text, post text, OUT version bigint, OUT job_id text, OUT result text) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    job   daybook.accounting_work_queue;
    known daybook.posted_elsewhere;
BEGIN
    IF (post IN ('difference', 'full', 'nothing')) IS NOT TRUE THEN
        RAISE EXCEPTION '"%" is no decision', post USING ERRCODE = 'DB010', HINT = 'decide difference, full or nothing';
    END IF;
    -- The job's row first: what posts the document holds it until its commit.
    SELECT * INTO job FROM daybook.accounting_work_queue q
     WHERE q.org_id = decide_posted_elsewhere.org_id AND q.document_id = decide_posted_elsewhere.document_id
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no accounting job for document % of organization %', decide_posted_elsewhere.document_id, decide_posted_elsewhere.org_id
            USING ERRCODE = 'DB011', HINT = 'enqueue the document first';
    END IF;
    SELECT * INTO known FROM daybook.posted_elsewhere p
     WHERE p.org_id = decide_posted_elsewhere.org_id AND p.document_id = decide_posted_elsewhere.document_id
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'document % of organization % is not posted elsewhere', decide_posted_elsewhere.document_id, decide_posted_elsewhere.org_id
            USING ERRCODE = 'DB013', HINT = 'retry its job as that of any other document';
    END IF;
    IF post = 'difference' AND known.entries IS NULL THEN
        RAISE EXCEPTION 'the entries of document % of organization % that are posted elsewhere are not known', job.document_id, job.org_id
            USING ERRCODE = 'DB010', HINT = 'record them by `daybook adopt accounting-queue --entries VIEW --apply`, or decide full or nothing';
    END IF;
    IF post = 'nothing' AND EXISTS (SELECT 1 FROM daybook.impacts i WHERE i.org_id = job.org_id AND i.document_id = job.document_id) THEN
        RAISE EXCEPTION 'Daybook has posted document % of organization % already', job.document_id, job.org_id
            USING ERRCODE = 'DB010', HINT = 'decide difference or full, so that both ledgers together hold it once';
    END IF;

    version := job.version_hint;
    UPDATE daybook.posted_elsewhere p
       SET next             = CASE post WHEN 'nothing' THEN 'wait' ELSE post END,
           -- What the other system has posted of this version is for a person to say again.
           entries          = CASE WHEN post = 'nothing' AND job.version_hint > p.document_version THEN NULL ELSE p.entries END,
           document_version = CASE WHEN post = 'nothing' THEN greatest(p.document_version, job.version_hint) ELSE p.document_version END,
           left_version  = CASE WHEN post = 'nothing' THEN job.version_hint END,
           updated_at       = clock_timestamp()
     WHERE p.org_id = job.org_id AND p.document_id = job.document_id;
    IF post = 'nothing' THEN
        SELECT m.job_id, m.result INTO job_id, result FROM daybook.mark_accounting_job_pending(job.org_id, job.document_id) m;
    ELSE
        -- A new epoch, so that a version which Daybook has looked at before is posted by the
        -- decision.
        SELECT m.job_id, m.result INTO job_id, result FROM daybook.repost_accounting_job(job.org_id, job.document_id) m;
    END IF;
END
$$;

-- Name: FUNCTION decide_posted_elsewhere(org_id text, document_id text, post text, OUT version bigint, OUT job_id text, OUT result text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.decide_posted_elsewhere(org_id text, document_id text, post text, OUT version bigint, OUT job_id text, OUT result text) IS 'Decides what a document that is posted elsewhere does: difference posts what is missing, full posts all of it, nothing leaves this version to the other system';

-- Name: delete_queue(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.delete_queue(name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    opened bigint;
BEGIN
    PERFORM daybook.queue_fleet(delete_queue.name);
    PERFORM FROM daybook.queues u WHERE u.name = delete_queue.name FOR UPDATE;
    SELECT count(*) INTO opened FROM daybook.jobs j WHERE j.queue = delete_queue.name AND j.state IN ('pending', 'leased');
    IF opened > 0 THEN
        RAISE EXCEPTION 'the queue % has % open jobs', delete_queue.name, opened
            USING ERRCODE = 'DB025', HINT = 'let them be worked, or cancel them, and delete it then';
    END IF;
    DELETE FROM daybook.queues u WHERE u.name = delete_queue.name;
END
$$;

-- Name: FUNCTION delete_queue(name text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.delete_queue(name text) IS 'Deletes a named queue that has no open jobs';

-- Name: dimension_sums(text, date, date, boolean); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.dimension_sums(org_id text, from_day date, to_day date, by_dimensions boolean) RETURNS TABLE(account_code text, currency text, year_end boolean, dimensions jsonb, debit numeric, credit numeric)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    WITH span AS (
        SELECT coalesce(from_day, '-infinity') AS first_day, coalesce(to_day, 'infinity') AS last_day
    ), kept AS (
        SELECT k.starts_on FROM span
          JOIN daybook.closed_sum_spans k ON k.starts_on >= span.first_day AND k.ends_on <= span.last_day
         WHERE k.org_id = dimension_sums.org_id
    )
    SELECT k.account_code, k.currency, k.year_end, NULL::jsonb, k.debit, k.credit
      FROM kept JOIN daybook.closed_sums k ON k.org_id = dimension_sums.org_id AND k.starts_on = kept.starts_on
     UNION ALL
    -- What has dimensions is moved from the entries that have none.
    SELECT k.account_code, k.currency, k.year_end, moved.dimensions, moved.sign * k.debit, moved.sign * k.credit
      FROM kept JOIN daybook.closed_dimension_sums k ON k.org_id = dimension_sums.org_id AND k.starts_on = kept.starts_on
     CROSS JOIN LATERAL (VALUES (k.dimensions, 1), (NULL, -1)) AS moved (dimensions, sign)
     WHERE by_dimensions
     UNION ALL
    SELECT e.account_code, e.currency, e.year_end, e.dimensions, e.debit, e.credit
      FROM span CROSS JOIN LATERAL daybook.unkept_spans(dimension_sums.org_id, span.first_day, span.last_day) u
     CROSS JOIN LATERAL daybook.entry_sums(dimension_sums.org_id, u.first_day, u.last_day, by_dimensions) e
$$;

-- Name: edit_job(text, jsonb, text, text, bigint, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.edit_job(INOUT job_id text, payload jsonb, actor text DEFAULT NULL::text, retry text DEFAULT NULL::text, generation bigint DEFAULT NULL::bigint, type text DEFAULT NULL::text, OUT result text, OUT reason text) RETURNS record
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

-- Name: FUNCTION edit_job(INOUT job_id text, payload jsonb, actor text, retry text, generation bigint, type text, OUT result text, OUT reason text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.edit_job(INOUT job_id text, payload jsonb, actor text, retry text, generation bigint, type text, OUT result text, OUT reason text) IS 'Gives a job that waits, is a dead letter or is cancelled another payload, and keeps the old one in edits. retry: null, or the mode by which retry_job tries it again in the same transaction. generation: refused unless the job is still at it. result: edited, unchanged, or what retry_job says';

-- Name: edit_jobs(text[], text[], jsonb, text, text, bigint[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.edit_jobs(job_ids text[], states text[], patch jsonb, actor text DEFAULT NULL::text, retry text DEFAULT NULL::text, generations bigint[] DEFAULT NULL::bigint[]) RETURNS integer
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

-- Name: FUNCTION edit_jobs(job_ids text[], states text[], patch jsonb, actor text, retry text, generations bigint[]); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.edit_jobs(job_ids text[], states text[], patch jsonb, actor text, retry text, generations bigint[]) IS 'edit_job with a JSON patch (RFC 6902) for many: those in one of the states that no other transaction has locked. retry: null, or retry_job''s mode';

-- Name: edit_refusal(jsonb, jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.edit_refusal(before jsonb, after jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $_$
    SELECT CASE
        WHEN NOT $1 ? '$encrypted' THEN NULL
        WHEN NOT $2 ? '$encrypted' THEN 'is encrypted, and the new one is not'
        WHEN $1 -> '$encrypted' = $2 -> '$encrypted' AND $2 - ARRAY(SELECT jsonb_object_keys($1)) <> '{}'
            THEN 'is encrypted, and the new one has further members in plain' END
$_$;

-- Name: encrypted_types(text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.encrypted_types(types text[]) RETURNS text[]
    LANGUAGE sql STABLE
    AS $_$ SELECT ARRAY(SELECT t.type FROM daybook.job_types t WHERE t.kind = 'jobs' AND t.encrypts AND t.type = ANY ($1) ORDER BY t.type) $_$;

-- Name: end_async_operation(daybook.jobs, daybook.attempt_outcome, jsonb, text, text, interval); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.end_async_operation(job daybook.jobs, outcome daybook.attempt_outcome, result jsonb, code text, error text, delay interval) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    again CONSTANT boolean := job.generation <> job.leased_generation AND NOT job.cancel_requested;
    due   CONSTANT timestamptz := CASE WHEN again THEN greatest(job.ready_at, clock_timestamp())
                                       WHEN end_async_operation.outcome IN ('retried', 'rescheduled') THEN clock_timestamp() + end_async_operation.delay
                                       ELSE least(job.ready_at, clock_timestamp()) END;
    fails CONSTANT boolean := end_async_operation.outcome = 'failed' OR end_async_operation.outcome = 'lost' AND job.run_count >= daybook.async_operation_attempts(job);
    ends  CONSTANT text := CASE WHEN job.cancel_requested THEN 'cancelled' WHEN again THEN 'pending' WHEN fails THEN 'failed'
                                WHEN end_async_operation.outcome IN ('retried', 'rescheduled', 'lost') THEN 'pending' ELSE end_async_operation.outcome::text END;
BEGIN
    IF end_async_operation.outcome = 'rescheduled' THEN
        -- One row for an attempt that is put off again and again, as completeStmt folds it.
        UPDATE daybook.attempt_log a
           SET times = a.times + 1, first_started_at = coalesce(a.first_started_at, a.started_at), error = end_async_operation.error,
               started_at = job.attempt_started_at, ended_at = clock_timestamp(), worker = coalesce(job.worker, ''), turn_id = job.turn_id, fence = job.fence
         WHERE a.job_id = job.id AND a.id = (SELECT max(l.id) FROM daybook.attempt_log l WHERE l.job_id = job.id)
           AND a.outcome = 'rescheduled' AND a.attempt = job.run_count AND a.error_code = end_async_operation.code;
    END IF;
    IF ends <> 'completed' AND NOT (end_async_operation.outcome = 'rescheduled' AND FOUND) THEN
        INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, error, started_at, worker, turn_id, fence)
        VALUES (job.id, job.org_id, 'jobs', job.type, job.run_count, end_async_operation.outcome, end_async_operation.code, end_async_operation.error,
                job.attempt_started_at, coalesce(job.worker, ''), job.turn_id, job.fence);
    END IF;
    UPDATE daybook.jobs j
       SET state = ends::daybook.job_state,
           run_count = CASE WHEN again THEN 0 WHEN end_async_operation.outcome = 'rescheduled' THEN j.run_count - 1 ELSE j.run_count END,
           ready_at = due,
           first_ready_at = CASE WHEN again THEN due ELSE j.first_ready_at END,
           finished_at = CASE WHEN ends <> 'pending' THEN clock_timestamp() END,
           result = CASE WHEN end_async_operation.outcome = 'completed' THEN end_async_operation.result ELSE j.result END,
           last_error = left(end_async_operation.error, 4096), last_error_code = end_async_operation.code,
           last_attempted_at = j.attempt_started_at, updated_at = clock_timestamp(),
           reclaims = CASE WHEN end_async_operation.outcome = 'lost' AND NOT again AND ends = 'pending' THEN least(j.reclaims, 999999) + 1 ELSE 0 END,
           completed_turn_id = CASE WHEN ends = 'completed' THEN j.turn_id END, completed_fence = CASE WHEN ends = 'completed' THEN j.fence END,
           completed_by = CASE WHEN ends = 'completed' THEN coalesce(j.worker, '') END,
           completed_started_at = CASE WHEN ends = 'completed' THEN j.attempt_started_at END,
           cancel_requested = false, working = false,
           turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
     WHERE j.id = job.id;
    IF ends = 'pending' AND daybook.must_wake(daybook.jobs_key(job.fleet), due) THEN
        PERFORM daybook.wake_job_queue(job.fleet);
    END IF;
END
$$;

-- Name: ends_wait(boolean, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.ends_wait(any_end boolean, ended_as text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $_$ SELECT $1 OR $2 <> 'failed' $_$;

-- Name: enqueue_accounting_job(text, text, bigint, timestamp with time zone, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.enqueue_accounting_job(org_id text, document_id text, version_hint bigint, ready_at timestamp with time zone DEFAULT NULL::timestamp with time zone, priority integer DEFAULT NULL::integer, OUT job_id text, OUT result text) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    version  CONSTANT bigint := enqueue_accounting_job.version_hint;
    prio     CONSTANT integer := coalesce(enqueue_accounting_job.priority, 2);
    due      timestamptz := greatest(coalesce(enqueue_accounting_job.ready_at, '-infinity'), clock_timestamp());
    job      daybook.accounting_work_queue;
BEGIN
    IF daybook.accounting_request_in_doubt(enqueue_accounting_job.org_id, enqueue_accounting_job.document_id, version, prio, enqueue_accounting_job.ready_at) THEN
        PERFORM daybook.check_accounting_request(enqueue_accounting_job.org_id, enqueue_accounting_job.document_id, version, prio,
                                                 enqueue_accounting_job.ready_at);
    END IF;

    -- A purge may remove the row between the two statements: then the insert is tried again.
    LOOP
        INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, ready_at, first_ready_at, priority)
        VALUES (enqueue_accounting_job.org_id, enqueue_accounting_job.document_id, version, due, due, prio)
        ON CONFLICT (org_id, document_id) DO NOTHING
        RETURNING id INTO job_id;
        IF FOUND THEN
            result := 'enqueued';
            EXIT;
        END IF;

        SELECT * INTO job
          FROM daybook.accounting_work_queue q
         WHERE q.org_id = enqueue_accounting_job.org_id AND q.document_id = enqueue_accounting_job.document_id
           FOR NO KEY UPDATE;
        CONTINUE WHEN NOT FOUND;

        job_id := job.id;
        due := greatest(due, clock_timestamp());
        IF job.state = 'leased' AND (version > job.version_hint OR (version = job.version_hint AND job.cancel_requested)) THEN
            -- The running attempt goes on; its completion sees that the generation has grown and
            -- makes the job pending again. Of several requests since the job was leased, the
            -- earliest time counts.
            result := 'coalesced';
            UPDATE daybook.accounting_work_queue q
               SET version_hint = version, priority = least(q.priority, prio), generation = q.generation + 1,
                   ready_at = CASE WHEN q.generation = q.leased_generation OR q.cancel_requested THEN due ELSE least(q.ready_at, due) END,
                   traceparent = coalesce(daybook.traceparent(), q.traceparent), cancel_requested = false, updated_at = clock_timestamp()
             WHERE q.id = job.id;
        ELSIF job.state = 'pending' AND version > job.version_hint THEN
            result := 'coalesced';
            due := greatest(least(job.ready_at, due), clock_timestamp());
            UPDATE daybook.accounting_work_queue q
               SET version_hint = version, ready_at = due, first_ready_at = due, priority = least(q.priority, prio), generation = q.generation + 1,
                   run_count = 0, not_ready_count = 0, reclaims = 0, last_error = NULL, last_error_code = NULL,
                   traceparent = coalesce(daybook.traceparent(), q.traceparent), updated_at = clock_timestamp()
             WHERE q.id = job.id;
        ELSIF job.state IN ('completed', 'failed', 'cancelled')
              AND (version > job.version_hint OR (version = job.version_hint AND job.state = 'cancelled')) THEN
            result := 'requeued';
            UPDATE daybook.accounting_work_queue q
               SET state = 'pending', version_hint = version, ready_at = due, first_ready_at = due, priority = prio,
                   generation = q.generation + 1, run_count = 0, not_ready_count = 0, reclaims = 0,
                   last_error = NULL, last_error_code = NULL, finished_at = NULL, traceparent = daybook.traceparent(), updated_at = clock_timestamp()
             WHERE q.id = job.id;
        ELSE
            result := 'unchanged';
            IF job.state = 'pending' AND version = job.version_hint AND prio < job.priority THEN
                -- A worker's cursor of the new priority may have passed the job's time already: the
                -- time of this request is ahead of it.
                UPDATE daybook.accounting_work_queue q
                   SET priority = prio, ready_at = greatest(q.ready_at, clock_timestamp()), updated_at = clock_timestamp()
                 WHERE q.id = job.id;
            END IF;
        END IF;
        EXIT;
    END LOOP;

    IF result <> 'unchanged' AND daybook.must_wake(1, due) THEN
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;

-- Name: FUNCTION enqueue_accounting_job(org_id text, document_id text, version_hint bigint, ready_at timestamp with time zone, priority integer, OUT job_id text, OUT result text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.enqueue_accounting_job(org_id text, document_id text, version_hint bigint, ready_at timestamp with time zone, priority integer, OUT job_id text, OUT result text) IS 'Asks for a document version to be posted. result: enqueued, coalesced, requeued or unchanged';

-- Name: enqueue_accounting_jobs(text[], text[], bigint[], timestamp with time zone[], integer[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.enqueue_accounting_jobs(org_ids text[], document_ids text[], version_hints bigint[], ready_ats timestamp with time zone[] DEFAULT NULL::timestamp with time zone[], priorities integer[] DEFAULT NULL::integer[]) RETURNS TABLE(ordinal integer, job_id text, result text)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    total CONSTANT integer := coalesce(cardinality(org_ids), 0);
    made  record;
    bad   record;
BEGIN
    IF coalesce(cardinality(document_ids), 0) <> total OR coalesce(cardinality(version_hints), 0) <> total
       OR coalesce(cardinality(ready_ats), total) <> total OR coalesce(cardinality(priorities), total) <> total THEN
        RAISE EXCEPTION 'org_ids, document_ids, version_hints, ready_ats and priorities must be equally long' USING ERRCODE = 'DB010';
    END IF;
    -- One statement checks all requests. Only when one is invalid does the loop look for it, and
    -- raise its error.
    IF EXISTS (SELECT FROM (SELECT unnest(org_ids) AS o, unnest(document_ids) AS d, unnest(version_hints) AS v, unnest(priorities) AS p, unnest(ready_ats) AS t) r
                WHERE daybook.accounting_request_in_doubt(r.o, r.d, r.v, r.p, r.t)) THEN
        FOR bad IN SELECT * FROM unnest(org_ids, document_ids, version_hints, priorities, ready_ats) AS r (o, d, v, p, t) LOOP
            PERFORM daybook.check_accounting_request(bad.o, bad.d, bad.v, bad.p, bad.t);
        END LOOP;
    END IF;

    -- If no document has a job yet, all are one INSERT. It fails if a document is named twice, or
    -- another transaction enqueues one meanwhile.
    IF NOT EXISTS (SELECT FROM (SELECT unnest(org_ids) AS o, unnest(document_ids) AS d OFFSET 0) r
                     JOIN daybook.accounting_work_queue q ON q.org_id = r.o AND q.document_id = r.d) THEN
        -- Sorted before they get their ids, so that ids grow in the order of insertion.
        SELECT array_agg(r.n) AS ordinals, daybook.new_ids(total) AS ids, array_agg(r.o) AS orgs, array_agg(r.d) AS documents,
               array_agg(r.v) AS versions, array_agg(r.t) AS times, array_agg(r.p) AS priorities
          INTO made
          FROM (SELECT x.*
                  FROM (SELECT generate_series(1, total) AS n, unnest(org_ids) AS o, unnest(document_ids) AS d, unnest(version_hints) AS v,
                               unnest(ready_ats) AS t, unnest(priorities) AS p) x
                 ORDER BY x.o COLLATE "C", x.d COLLATE "C") r;
        BEGIN
            INSERT INTO daybook.accounting_work_queue (id, org_id, document_id, version_hint, ready_at, first_ready_at, priority)
            SELECT r.id, r.o, r.d, r.v, r.due, r.due, r.p
              FROM (SELECT x.*, greatest(coalesce(x.t, '-infinity'), clock_timestamp()) AS due, coalesce(x.priority, 2) AS p
                      FROM (SELECT unnest(made.ids) AS id, unnest(made.orgs) AS o, unnest(made.documents) AS d, unnest(made.versions) AS v,
                                   unnest(made.times) AS t, unnest(made.priorities) AS priority) x
                    OFFSET 0) r;
            IF total > 0 AND daybook.must_wake(1, coalesce((SELECT min(coalesce(t, '-infinity')) FROM unnest(ready_ats) AS t), '-infinity')) THEN
                PERFORM daybook.wake_accounting_queue();
            END IF;
            RETURN QUERY SELECT unnest(made.ordinals), unnest(made.ids), 'enqueued'::text;
            RETURN;
        EXCEPTION WHEN unique_violation THEN
            NULL;
        END;
    END IF;

    -- Otherwise documents without a job are inserted in runs. If another transaction enqueues one
    -- of them meanwhile, all are made one by one.
    BEGIN
        RETURN QUERY SELECT * FROM daybook.enqueue_accounting_runs(org_ids, document_ids, version_hints, ready_ats, priorities, true);
    EXCEPTION WHEN unique_violation THEN
        RETURN QUERY SELECT * FROM daybook.enqueue_accounting_runs(org_ids, document_ids, version_hints, ready_ats, priorities, false);
    END;
END
$$;

-- Name: enqueue_accounting_runs(text[], text[], bigint[], timestamp with time zone[], integer[], boolean); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.enqueue_accounting_runs(org_ids text[], document_ids text[], version_hints bigint[], ready_ats timestamp with time zone[], priorities integer[], bulk boolean) RETURNS TABLE(ordinal integer, job_id text, result text)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    run record;
    req record;
    -- The earliest time of the rows that were inserted in bulk.
    first_due timestamptz := 'infinity';
BEGIN
    FOR run IN
        WITH r AS (
            SELECT r.o COLLATE "C" AS o, r.d COLLATE "C" AS d, r.v, r.t, r.p, r.n::integer AS n,
                   NOT bulk OR q.id IS NOT NULL OR row_number() OVER (PARTITION BY r.o COLLATE "C", r.d COLLATE "C" ORDER BY r.n) > 1 AS known
              FROM unnest(org_ids, document_ids, version_hints, ready_ats, priorities) WITH ORDINALITY AS r (o, d, v, t, p, n)
              LEFT JOIN daybook.accounting_work_queue q ON q.org_id = r.o AND q.document_id = r.d
        ), placed AS (
            SELECT r.*, row_number() OVER (ORDER BY r.o, r.d, r.n) AS place,
                   row_number() OVER (ORDER BY r.o, r.d, r.n) - row_number() OVER (PARTITION BY r.known ORDER BY r.o, r.d, r.n) AS run
              FROM r
        )
        SELECT known, array_agg(o ORDER BY place) AS orgs, array_agg(d ORDER BY place) AS docs, array_agg(v ORDER BY place) AS versions,
               array_agg(t ORDER BY place) AS times, array_agg(p ORDER BY place) AS prios, array_agg(n ORDER BY place) AS ordinals
          FROM placed
         GROUP BY known, run
         ORDER BY min(place)
    LOOP
        IF NOT run.known THEN
            RETURN QUERY
            WITH r AS (
                SELECT daybook.new_id() AS id, r.o, r.d, r.v, greatest(coalesce(r.t, '-infinity'), clock_timestamp()) AS due, coalesce(r.p, 2)::smallint AS p, r.n, r.place
                  FROM unnest(run.orgs, run.docs, run.versions, run.times, run.prios, run.ordinals) WITH ORDINALITY AS r (o, d, v, t, p, n, place)
            ), ins AS (
                INSERT INTO daybook.accounting_work_queue (id, org_id, document_id, version_hint, ready_at, first_ready_at, priority)
                SELECT r.id, r.o, r.d, r.v, r.due, r.due, r.p FROM r ORDER BY r.place
            )
            SELECT r.n, r.id, 'enqueued'::text FROM r;
            first_due := least(first_due, (SELECT min(coalesce(t, '-infinity')) FROM unnest(run.times) AS t));
        ELSE
            FOR req IN
                SELECT * FROM unnest(run.orgs, run.docs, run.versions, run.times, run.prios, run.ordinals) AS r (o, d, v, t, p, n)
            LOOP
                ordinal := req.n;
                SELECT e.job_id, e.result INTO job_id, result
                  FROM daybook.enqueue_accounting_job(req.o, req.d, req.v, req.t, req.p) e;
                RETURN NEXT;
            END LOOP;
        END IF;
    END LOOP;
    IF daybook.must_wake(1, first_due) THEN
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;

-- Name: enqueue_async_operation(text, jsonb, uuid, uuid, uuid, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.enqueue_async_operation(p_operation_type text, p_payload jsonb, p_submission_id uuid DEFAULT NULL::uuid, p_form_id uuid DEFAULT NULL::uuid, p_workspace_id uuid DEFAULT NULL::uuid, p_max_attempts integer DEFAULT 3) RETURNS uuid
    LANGUAGE sql
    AS $$
    SELECT e.job_id::uuid
      FROM daybook.enqueue_job(
        coalesce(p_workspace_id::text, 'default'), p_operation_type, p_payload, max_attempts => p_max_attempts,
        links => (SELECT jsonb_agg(jsonb_build_object('kind', l.kind, 'id', l.id))
                    FROM (VALUES ('submission', p_submission_id), ('form', p_form_id), ('workspace', p_workspace_id)) AS l (kind, id)
                   WHERE l.id IS NOT NULL)) e
$$;

-- Name: FUNCTION enqueue_async_operation(p_operation_type text, p_payload jsonb, p_submission_id uuid, p_form_id uuid, p_workspace_id uuid, p_max_attempts integer); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.enqueue_async_operation(p_operation_type text, p_payload jsonb, p_submission_id uuid, p_form_id uuid, p_workspace_id uuid, p_max_attempts integer) IS 'enqueue_job for applications that come from async_operations. The organization is the workspace, or "default"';

-- Name: enqueue_job(text, text, jsonb, text, timestamp with time zone, integer, integer, jsonb, boolean, text, text, text[], boolean, text, integer, jsonb, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.enqueue_job(org_id text, type text, payload jsonb, idempotency_key text DEFAULT NULL::text, ready_at timestamp with time zone DEFAULT NULL::timestamp with time zone, priority integer DEFAULT NULL::integer, max_attempts integer DEFAULT NULL::integer, links jsonb DEFAULT NULL::jsonb, unique_payload boolean DEFAULT false, queue text DEFAULT NULL::text, sequence text DEFAULT NULL::text, after text[] DEFAULT NULL::text[], after_any_end boolean DEFAULT false, skip_while_open text DEFAULT NULL::text, min_version integer DEFAULT NULL::integer, debounce jsonb DEFAULT NULL::jsonb, limit_key text DEFAULT NULL::text, OUT job_id text, OUT duplicate boolean, OUT result text) RETURNS record
    LANGUAGE plpgsql
    AS $_$
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
$_$;

-- Name: FUNCTION enqueue_job(org_id text, type text, payload jsonb, idempotency_key text, ready_at timestamp with time zone, priority integer, max_attempts integer, links jsonb, unique_payload boolean, queue text, sequence text, after text[], after_any_end boolean, skip_while_open text, min_version integer, debounce jsonb, limit_key text, OUT job_id text, OUT duplicate boolean, OUT result text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.enqueue_job(org_id text, type text, payload jsonb, idempotency_key text, ready_at timestamp with time zone, priority integer, max_attempts integer, links jsonb, unique_payload boolean, queue text, sequence text, after text[], after_any_end boolean, skip_while_open text, min_version integer, debounce jsonb, limit_key text, OUT job_id text, OUT duplicate boolean, OUT result text) IS 'Asks for a background job. In a CTE it runs only if the query reads from that CTE';

-- Name: enqueue_job_with_callback(text, text, jsonb, text, interval, text, integer, integer, jsonb, text, integer, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.enqueue_job_with_callback(org_id text, type text, payload jsonb, callback text, within interval, idempotency_key text DEFAULT NULL::text, priority integer DEFAULT NULL::integer, max_attempts integer DEFAULT NULL::integer, links jsonb DEFAULT NULL::jsonb, queue text DEFAULT NULL::text, min_version integer DEFAULT NULL::integer, limit_key text DEFAULT NULL::text, OUT job_id text, OUT duplicate boolean, OUT result text, OUT token text) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_variable
DECLARE
    due CONSTANT timestamptz := clock_timestamp() + within;
BEGIN
    IF (octet_length(callback) BETWEEN 1 AND 64 AND within > interval '0' AND within <= interval '10 years') IS NOT TRUE THEN
        RAISE EXCEPTION 'a callback must have a name of 1 to 64 bytes, and some time to come, 10 years at most' USING ERRCODE = 'DB010';
    END IF;
    SELECT e.job_id, e.duplicate, e.result INTO job_id, duplicate, result
      FROM daybook.enqueue_job(org_id, type, payload, idempotency_key, due, priority, max_attempts, links, queue => queue, min_version => min_version,
                               limit_key => limit_key) e;
    IF duplicate THEN
        RETURN;
    END IF;
    -- Three random UUIDs have 366 random bits, of a strong source.
    token := translate(rtrim(encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'base64'), '='), '+/', '-_');
    INSERT INTO daybook.job_callbacks (token_hash, job_id, name, deadline, awaited) VALUES (sha256(convert_to(token, 'UTF8')), job_id, callback, due, true);
    UPDATE daybook.jobs j
       SET awaited = true, last_error_code = 'AWAITING_CALLBACK', last_error = format('waiting for the callback "%s", until %s at most', callback, to_char(due AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'))
     WHERE j.id = job_id;
END
$$;

-- Name: FUNCTION enqueue_job_with_callback(org_id text, type text, payload jsonb, callback text, within interval, idempotency_key text, priority integer, max_attempts integer, links jsonb, queue text, min_version integer, limit_key text, OUT job_id text, OUT duplicate boolean, OUT result text, OUT token text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.enqueue_job_with_callback(org_id text, type text, payload jsonb, callback text, within interval, idempotency_key text, priority integer, max_attempts integer, links jsonb, queue text, min_version integer, limit_key text, OUT job_id text, OUT duplicate boolean, OUT result text, OUT token text) IS 'Asks for a background job that begins when another system answers, or at the deadline. Returns the token for that system once';

-- Name: enqueue_jobs(text[], text[], jsonb[], text[], timestamp with time zone[], integer[], integer[], jsonb[], boolean[], text[], text[], jsonb[], boolean[], integer[], jsonb[], text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.enqueue_jobs(org_ids text[], types text[], payloads jsonb[], idempotency_keys text[] DEFAULT NULL::text[], ready_ats timestamp with time zone[] DEFAULT NULL::timestamp with time zone[], priorities integer[] DEFAULT NULL::integer[], max_attempts integer[] DEFAULT NULL::integer[], links jsonb[] DEFAULT NULL::jsonb[], unique_payloads boolean[] DEFAULT NULL::boolean[], queues text[] DEFAULT NULL::text[], sequences text[] DEFAULT NULL::text[], afters jsonb[] DEFAULT NULL::jsonb[], afters_any_end boolean[] DEFAULT NULL::boolean[], min_versions integer[] DEFAULT NULL::integer[], debounces jsonb[] DEFAULT NULL::jsonb[], limit_keys text[] DEFAULT NULL::text[]) RETURNS TABLE(ordinal integer, job_id text, duplicate boolean, result text)
    LANGUAGE plpgsql
    SET jit TO 'off'
    AS $_$
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
$_$;

-- Name: FUNCTION enqueue_jobs(org_ids text[], types text[], payloads jsonb[], idempotency_keys text[], ready_ats timestamp with time zone[], priorities integer[], max_attempts integer[], links jsonb[], unique_payloads boolean[], queues text[], sequences text[], afters jsonb[], afters_any_end boolean[], min_versions integer[], debounces jsonb[], limit_keys text[]); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.enqueue_jobs(org_ids text[], types text[], payloads jsonb[], idempotency_keys text[], ready_ats timestamp with time zone[], priorities integer[], max_attempts integer[], links jsonb[], unique_payloads boolean[], queues text[], sequences text[], afters jsonb[], afters_any_end boolean[], min_versions integer[], debounces jsonb[], limit_keys text[]) IS 'Asks for many background jobs in one statement';

-- Name: entry_sums(text, date, date, boolean); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.entry_sums(org_id text, from_day date, to_day date, by_dimensions boolean) RETURNS TABLE(account_code text, currency text, year_end boolean, dimensions jsonb, debit numeric, credit numeric)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    SET jit TO 'off'
    SET random_page_cost TO '1.1'
    SET work_mem TO '64MB'
    SET enable_sort TO 'off'
    SET enable_nestloop TO 'on'
    AS $$
#variable_conflict use_column
DECLARE
    _first bigint;
    _last  bigint;
    _n     bigint;
BEGIN
    SELECT min(i.id + 0), max(i.id + 0), count(*) INTO _first, _last, _n
      FROM daybook.impacts i WHERE i.org_id = entry_sums.org_id AND i.posting_date BETWEEN from_day AND to_day;
    IF _n = 0 THEN
        RETURN;
    END IF;
    IF _last - _first < 4 * _n THEN
        PERFORM set_config('enable_nestloop', 'off', true);
    END IF;
    RETURN QUERY
    SELECT e.account_code, e.currency, e.rule_line_id = 'year-end', CASE WHEN by_dimensions THEN e.dimensions END,
           coalesce(sum(e.amount_minor) FILTER (WHERE e.side = 'debit'), 0),
           coalesce(sum(e.amount_minor) FILTER (WHERE e.side = 'credit'), 0)
      FROM daybook.impacts i
      JOIN daybook.entries e ON e.impact_id = i.id
     WHERE i.org_id = entry_sums.org_id AND i.posting_date BETWEEN from_day AND to_day AND e.impact_id BETWEEN _first AND _last
     GROUP BY 1, 2, 3, 4;
END
$$;

-- Name: exchange_booked(text, text, date); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.exchange_booked(org_id text, adjustment text, until date) RETURNS numeric
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
    SELECT coalesce((
               SELECT sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)
                 FROM daybook.entries e
                 JOIN daybook.impacts i ON i.id = e.impact_id
                 JOIN daybook.organizations o ON o.id = e.org_id
                WHERE e.org_id = exchange_booked.org_id AND e.account_code = adjustment AND e.currency = o.currency
                  AND (i.posting_date <= until OR i.document_date <= until AND i.document_id LIKE 'exchange:%')
                  AND NOT EXISTS (SELECT FROM daybook.documents d WHERE d.org_id = i.org_id AND d.id = i.document_id AND d.deleted_at IS NOT NULL)), 0)
         + coalesce((
               SELECT sum(daybook.stated_number(j ->> 'amount'))
                 FROM daybook.documents d
                CROSS JOIN LATERAL jsonb_path_query(d.content, '$.journal.entries[*]') AS j
                WHERE d.org_id = exchange_booked.org_id AND d.id >= 'exchange:' AND d.id < 'exchange;' AND d.deleted_at IS NULL AND d.issue_date <= until
                  AND j ->> 'account' = adjustment
                  AND NOT EXISTS (SELECT FROM daybook.impacts i WHERE i.org_id = d.org_id AND i.document_id = d.id)), 0)
$_$;

-- Name: FUNCTION exchange_booked(org_id text, adjustment text, until date); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.exchange_booked(org_id text, adjustment text, until date) IS 'What stands on the adjustment account of exchange differences until a day, with the journals that are not posted yet';

-- Name: exchange_differences(text, date); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.exchange_differences(org_id text, until date) RETURNS TABLE(group_id bigint, account_code text, currency text, debit_document text, credit_document text, debit_day date, credit_day date, amount numeric, debit_rate numeric, credit_rate numeric, own_currency text, difference numeric)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
WITH own AS (
    SELECT o.currency FROM daybook.organizations o WHERE o.id = exchange_differences.org_id AND o.currency IS NOT NULL
), items AS MATERIALIZED (
    SELECT r.group_id, r.document_id, e.account_code, e.currency, date '1900-01-01' + (max(ARRAY[i.seq, i.document_date - date '1900-01-01']))[2] AS day,
           sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) AS amount
      FROM own
      JOIN daybook.accounts a ON a.org_id = exchange_differences.org_id AND a.role IN ('receivable', 'payable', 'advance')
      JOIN daybook.entries e ON e.org_id = exchange_differences.org_id AND e.account_code = a.code AND e.currency <> own.currency
      JOIN daybook.impacts i ON i.id = e.impact_id AND i.posting_date <= coalesce(exchange_differences.until, date 'infinity')
      JOIN daybook.reconciled r ON r.org_id = exchange_differences.org_id AND r.document_id = i.document_id
     GROUP BY r.group_id, r.document_id, e.account_code, e.currency
    HAVING sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) <> 0
), spans AS MATERIALIZED (
    SELECT i.*, sum(abs(i.amount)) OVER (PARTITION BY i.group_id, i.account_code, i.currency, sign(i.amount) ORDER BY i.day, i.document_id) AS upto
      FROM items i
), pairs AS (
    SELECT d.group_id, d.account_code, d.currency, d.document_id AS debit_document, c.document_id AS credit_document, d.day AS debit_day, c.day AS credit_day,
           least(d.upto, c.upto) - greatest(d.upto - d.amount, c.upto + c.amount) AS amount
      FROM spans d
      JOIN spans c ON c.group_id = d.group_id AND c.account_code = d.account_code AND c.currency = d.currency AND c.amount < 0
     WHERE d.amount > 0 AND least(d.upto, c.upto) > greatest(d.upto - d.amount, c.upto + c.amount)
)
SELECT p.group_id, p.account_code, p.currency, p.debit_document, p.credit_document, p.debit_day, p.credit_day, p.amount, d.rate, c.rate, own.currency,
       round(p.amount * (c.rate - d.rate) * 10::numeric ^ (daybook.minor_digits(own.currency) - daybook.minor_digits(p.currency)))
  FROM pairs p
 CROSS JOIN own
  LEFT JOIN LATERAL (SELECT x.rate FROM daybook.rates x WHERE x.org_id = exchange_differences.org_id AND x.currency = p.currency AND x.valid_on <= p.debit_day
                      ORDER BY x.valid_on DESC LIMIT 1) d ON true
  LEFT JOIN LATERAL (SELECT x.rate FROM daybook.rates x WHERE x.org_id = exchange_differences.org_id AND x.currency = p.currency AND x.valid_on <= p.credit_day
                      ORDER BY x.valid_on DESC LIMIT 1) c ON true
$$;

-- Name: FUNCTION exchange_differences(org_id text, until date); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.exchange_differences(org_id text, until date) IS 'What was won or lost by rates where items in other currencies pay each other in a group until a day (null: all), in minor units of the own currency';

-- Name: fail_async_operation(uuid, text, bigint, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.fail_async_operation(p_operation_id uuid, p_error text, p_fence bigint DEFAULT NULL::bigint, p_error_code text DEFAULT 'HANDLER_ERROR'::text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    job  CONSTANT daybook.jobs := daybook.held_async_operation(p_operation_id, p_fence);
    code text := coalesce(nullif(p_error_code, ''), 'HANDLER_ERROR');
    said text := coalesce(nullif(p_error, ''), 'the program that claimed it said no more');
BEGIN
    IF job.id IS NULL THEN
        RETURN false;
    END IF;
    IF daybook.job_code_is_reserved(code) THEN
        said := format('the code %s is Daybook''s own: %s', code, said);
        code := 'HANDLER_ERROR';
    END IF;
    PERFORM daybook.end_async_operation(
        job,
        CASE WHEN daybook.job_error_is_final(code) OR job.run_count >= daybook.async_operation_attempts(job)
             THEN 'failed' ELSE 'retried' END::daybook.attempt_outcome,
        NULL, code, left(said, 4096),
        least(interval '5 minutes' * power(2, least(job.run_count, 20) - 1), interval '6 hours'));
    RETURN true;
END
$$;

-- Name: FUNCTION fail_async_operation(p_operation_id uuid, p_error text, p_fence bigint, p_error_code text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.fail_async_operation(p_operation_id uuid, p_error text, p_fence bigint, p_error_code text) IS 'Ends the attempt at a claimed job: it is due again in 5, 10, 20 … minutes (6 hours at most), or a dead letter after its last attempt, or at once when the code says that trying again cannot help. False: the claim does not hold it any more';

-- Name: fail_job(text, bigint, text, text, interval, boolean, double precision, double precision, double precision); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.fail_job(job_id text, fence bigint, code text, error text, delay interval DEFAULT NULL::interval, final boolean DEFAULT false, base_seconds double precision DEFAULT 30, factor double precision DEFAULT 2, cap_seconds double precision DEFAULT 21600) RETURNS text
    LANGUAGE plpgsql
    AS $_$
DECLARE
    job  CONSTANT daybook.jobs := daybook.held_job(fail_job.job_id, fail_job.fence);
    what text := coalesce(nullif(fail_job.code, ''), 'HANDLER_ERROR');
    said text := coalesce(nullif(fail_job.error, ''), 'the handler said no more');
BEGIN
    IF job.id IS NULL THEN
        RETURN NULL;
    END IF;
    -- As package jobs, allowedCode.
    IF what !~ '^[A-Z0-9_]{1,64}$' THEN
        said := format('the code %s is not of 1 to 64 capital letters, digits and ''_'': %s', quote_literal(left(what, 200)), said);
        what := 'HANDLER_ERROR';
    ELSIF daybook.job_code_is_reserved(what) THEN
        said := format('the code %s is Daybook''s own: %s', what, said);
        what := 'HANDLER_ERROR';
    END IF;
    PERFORM daybook.end_async_operation(
        job,
        CASE WHEN job.cancel_requested OR what = 'JOB_CANCELLED' THEN 'cancelled'
             WHEN fail_job.final OR job.run_count >= daybook.async_operation_attempts(job)
               OR fail_job.delay IS NULL AND daybook.job_error_is_final(what) THEN 'failed'
             ELSE 'retried' END::daybook.attempt_outcome,
        NULL, what, left(said, 4096),
        CASE WHEN fail_job.delay IS NULL THEN daybook.retry_delay(job.id, job.run_count, fail_job.base_seconds, fail_job.factor, fail_job.cap_seconds)
             ELSE least(greatest(fail_job.delay, interval '0'), interval '100 years') END);
    RETURN (SELECT j.state::text FROM daybook.jobs j WHERE j.id = job.id);
END
$_$;

-- Name: FUNCTION fail_job(job_id text, fence bigint, code text, error text, delay interval, final boolean, base_seconds double precision, factor double precision, cap_seconds double precision); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.fail_job(job_id text, fence bigint, code text, error text, delay interval, final boolean, base_seconds double precision, factor double precision, cap_seconds double precision) IS 'Ends the attempt at a claimed job as failed: due again after delay (null: as retry_delay says of base_seconds, factor and cap_seconds), a dead letter after the last attempt, with final, or by a final code; JOB_CANCELLED cancels it. Returns the job''s state; null: the claim is lost';

-- Name: find_callback(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.find_callback(job_id text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM daybook.job_callbacks c WHERE c.job_id = find_callback.job_id AND c.called_at IS NOT NULL AND NOT c.seen)
       OR current_setting('transaction_isolation') <> 'read committed' THEN
        INSERT INTO daybook.job_wait_checks (job_id) VALUES (find_callback.job_id);
        PERFORM daybook.wake_job_queue();
    END IF;
END
$$;

-- Name: fleet_of(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.fleet_of(name text) RETURNS smallint
    LANGUAGE plpgsql
    AS $_$
DECLARE
    found smallint;
BEGIN
    SELECT f.id INTO found FROM daybook.fleets f WHERE f.name = coalesce(fleet_of.name, '');
    IF found IS NOT NULL THEN
        RETURN found;
    END IF;
    IF fleet_of.name !~ '^[a-z0-9][a-z0-9_.-]{0,62}$' THEN
        RAISE EXCEPTION '% cannot be the name of a fleet', quote_literal(fleet_of.name)
            USING ERRCODE = 'DB010', HINT = 'take lower-case letters, digits, "_", "." and "-", 63 at most, and begin with a letter or a digit';
    END IF;
    -- One at a time: numbers are without gaps.
    PERFORM pg_advisory_xact_lock(daybook.lock_class('fleets'), 0);
    INSERT INTO daybook.fleets (id, name)
    SELECT max(f.id) + 1, fleet_of.name FROM daybook.fleets f
    ON CONFLICT DO NOTHING;
    RETURN (SELECT f.id FROM daybook.fleets f WHERE f.name = fleet_of.name);
END
$_$;

-- Name: FUNCTION fleet_of(name text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.fleet_of(name text) IS 'The number of a fleet; it is made on first use';

-- Name: forget_closed_sums(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.forget_closed_sums(org_id text) RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    DELETE FROM daybook.closed_sum_spans k
     WHERE k.org_id = forget_closed_sums.org_id
       AND NOT EXISTS (SELECT FROM daybook.closed_spans(forget_closed_sums.org_id) s WHERE s.starts_on = k.starts_on AND s.ends_on = k.ends_on);
$$;

-- Name: forget_sums_of_periods(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.forget_sums_of_periods() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM daybook.forget_closed_sums(CASE TG_OP WHEN 'DELETE' THEN OLD.org_id ELSE NEW.org_id END);
    RETURN NULL;
END
$$;

-- Name: forget_waits(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.forget_waits() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    DELETE FROM daybook.job_waits w USING removed r WHERE w.job_id = r.id;
    DELETE FROM daybook.job_callbacks c USING removed r WHERE c.job_id = r.id;
    IF EXISTS (SELECT FROM removed r WHERE r.awaited) THEN
        DELETE FROM daybook.job_steps s USING removed r WHERE s.job_id = r.id AND r.awaited;
    END IF;
    RETURN NULL;
END
$$;

-- Name: forward_accounting_request(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.forward_accounting_request() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    here    CONSTANT text := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
    wanted  CONSTANT jsonb := to_jsonb(NEW);
    org     CONSTANT text := wanted ->> 'org_id';
    doc     CONSTANT text := wanted ->> 'document_id';
    version CONSTANT bigint := wanted ->> 'version_hint';
    due     timestamptz;
    job     text;
    answer  text;
    taken   daybook.adopted_rows;
BEGIN
    SELECT * INTO taken FROM daybook.adopted_rows a WHERE a.legacy_table = here AND a.legacy_id = wanted ->> 'id';
    IF NOT FOUND AND (TG_OP = 'UPDATE' OR TG_ARGV[0] IS DISTINCT FROM 'forward') THEN
        RETURN NULL;
    END IF;

    IF wanted ->> 'state' = 'completed' THEN
        -- The legacy worker ended an attempt that counted as abandoned: that it posted is on record
        -- in its own transaction. A row that was asked for again meanwhile may name a later version
        -- than the one that it posted.
        IF taken.taken_state IN ('leased', 'pending') THEN
            PERFORM 1 FROM daybook.accounting_work_queue q WHERE q.org_id = org AND q.document_id = doc FOR NO KEY UPDATE;
            INSERT INTO daybook.posted_elsewhere AS p (org_id, document_id, document_version, next, posted_on, system)
            VALUES (org, doc, CASE taken.taken_state WHEN 'leased' THEN version ELSE version - 1 END, 'wait', CURRENT_DATE, here)
            ON CONFLICT (org_id, document_id) DO UPDATE
               SET document_version = greatest(p.document_version, excluded.document_version), next = 'wait', entries = NULL, updated_at = clock_timestamp();
            UPDATE daybook.adopted_rows a SET problem = 'COMPLETED_LATE' WHERE a.legacy_table = here AND a.legacy_id = taken.legacy_id;
        END IF;
        RETURN NULL;
    END IF;

    -- A time without a zone is UTC.
    due := CASE WHEN wanted ->> 'ready_at' ~ '(Z|[+-][0-9]{2}(:?[0-9]{2})?)$' THEN (wanted ->> 'ready_at')::timestamptz
                ELSE (wanted ->> 'ready_at')::timestamp AT TIME ZONE 'UTC' END;
    SELECT e.job_id, e.result INTO job, answer FROM daybook.enqueue_accounting_job(org, doc, version, due) e;
    IF answer = 'unchanged' AND EXISTS (SELECT 1 FROM daybook.accounting_work_queue q WHERE q.id = job AND q.state = 'failed' AND q.version_hint = version) THEN
        -- Old code that resets a failed row asks for one more attempt at it.
        PERFORM daybook.mark_accounting_job_pending(org, doc, version, greatest(extract(epoch FROM due - clock_timestamp()), 0)::double precision);
    END IF;
    IF taken.legacy_id IS NULL THEN
        INSERT INTO daybook.adopted_rows (legacy_table, legacy_id, kind, org_id, document_id, job_id, version, taken_state, legacy_row)
        VALUES (here, wanted ->> 'id', 'accounting', org, doc, job, version, 'forwarded', wanted);
    END IF;
    EXECUTE format('UPDATE %I.%I SET state = ''cancelled''%s WHERE id = $1.id', TG_TABLE_SCHEMA, TG_TABLE_NAME,
                   CASE WHEN wanted ? 'last_error' THEN ', last_error = ''held by Daybook''' ELSE '' END) USING NEW;
    RETURN NULL;
END
$_$;

-- Name: FUNCTION forward_accounting_request(); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.forward_accounting_request() IS 'Hands requests of old code for documents that Daybook holds on to it; a trigger of legacy queues';

-- Name: get_dead_async_operations(integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.get_dead_async_operations(p_limit integer DEFAULT 50) RETURNS TABLE(id uuid, operation_type text, payload jsonb, submission_id text, form_id text, workspace_id text, status text, attempts integer, max_attempts integer, last_attempt_at timestamp with time zone, next_retry_at timestamp with time zone, completed_at timestamp with time zone, last_error text, error_history jsonb, result jsonb, created_at timestamp with time zone, updated_at timestamp with time zone)
    LANGUAGE sql STABLE
    AS $$
    SELECT o.id::uuid, o.operation_type, o.payload, o.submission_id, o.form_id, o.workspace_id, o.status, o.attempts, o.max_attempts, o.last_attempt_at,
           o.next_retry_at, o.completed_at, o.last_error, o.error_history, o.result, o.created_at, o.updated_at
      FROM (SELECT j.id, j.finished_at FROM daybook.jobs j
             WHERE j.state = 'failed' AND daybook.is_async_operation_id(j.id) ORDER BY j.finished_at DESC, j.id LIMIT p_limit) dead
      JOIN daybook.async_operations o ON o.id = dead.id
     ORDER BY dead.finished_at DESC, dead.id
$$;

-- Name: FUNCTION get_dead_async_operations(p_limit integer); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.get_dead_async_operations(p_limit integer) IS 'Dead letters, the newest first';

-- Name: get_pending_async_operations(text[], integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.get_pending_async_operations(p_operation_types text[] DEFAULT NULL::text[], p_limit integer DEFAULT 10) RETURNS TABLE(id uuid, operation_type text, payload jsonb, submission_id text, form_id text, workspace_id text, status text, attempts integer, max_attempts integer, last_attempt_at timestamp with time zone, next_retry_at timestamp with time zone, completed_at timestamp with time zone, last_error text, error_history jsonb, result jsonb, created_at timestamp with time zone, updated_at timestamp with time zone)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    PERFORM daybook.note_async_operation_types(coalesce(p_operation_types, '{}'));
    RETURN QUERY
    SELECT o.id::uuid, o.operation_type, o.payload, o.submission_id, o.form_id, o.workspace_id, o.status, o.attempts, o.max_attempts, o.last_attempt_at,
           o.next_retry_at, o.completed_at, o.last_error, o.error_history, o.result, o.created_at, o.updated_at
      FROM (SELECT oldest.id, oldest.priority, oldest.ready_at
              FROM daybook.fleets f
             CROSS JOIN LATERAL (
                    SELECT j.id, j.priority, j.ready_at
                      FROM daybook.jobs j
                     WHERE num_nulls(nullif(j.state, 'pending')) = 1 AND j.fleet = f.id AND j.ready_at <= statement_timestamp()
                       AND (p_operation_types IS NULL OR j.type = ANY (p_operation_types)) AND daybook.is_async_operation_id(j.id)
                       AND (j.queue IS NULL OR daybook.queue_uncounted(j.queue))
                       AND NOT EXISTS (SELECT 1 FROM daybook.organizations g WHERE g.id = j.org_id AND g.paused_at IS NOT NULL)
                     ORDER BY j.ready_at
                     LIMIT greatest(1000, p_limit)) oldest
             ORDER BY oldest.priority, oldest.ready_at, oldest.id
             LIMIT p_limit) due
      JOIN daybook.async_operations o ON o.id = due.id
     ORDER BY due.priority, due.ready_at, due.id;
END
$$;

-- Name: FUNCTION get_pending_async_operations(p_operation_types text[], p_limit integer); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.get_pending_async_operations(p_operation_types text[], p_limit integer) IS 'Operations that are due and may be claimed, of these types or of all (null): high priorities first, then the longest due';

-- Name: hash_impacts(text, datemultirange, bigint); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.hash_impacts(org_id text, days datemultirange, last_impact_id bigint, OUT impacts bigint, OUT entries bigint, OUT hash bytea) RETURNS record
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    SET "DateStyle" TO 'ISO, YMD'
    SET bytea_output TO 'hex'
    SET jit TO 'off'
    SET random_page_cost TO '1.1'
    AS $$
SELECT count(*), coalesce(sum(h.entries), 0)::bigint, daybook.chained_hash(h.hash ORDER BY h.id)
  FROM (SELECT i.id, e.entries,
               sha256(convert_to(ROW(i.id, i.org_id, i.document_id, i.document_version, i.seq, i.kind, i.rule_set_version, i.rule_id, i.epoch,
                                     i.document_date, i.posting_date, i.entry_count, i.content_hash, i.job_id, i.attempt, i.workflow_run_id,
                                     i.created_at, i.no_entries)::text || e.lines, 'UTF8')) AS hash
          FROM unnest(hash_impacts.days) AS span
         -- OFFSET 0: lest the entries of all impacts are read before those of other days are left out.
         CROSS JOIN LATERAL (
               SELECT * FROM daybook.impacts x
                WHERE x.org_id = hash_impacts.org_id AND x.posting_date >= lower(span) AND x.posting_date < upper(span)
                  AND x.id <= hash_impacts.last_impact_id OFFSET 0) i
         CROSS JOIN LATERAL (
               SELECT count(*) AS entries,
                      coalesce(string_agg(ROW(x.line_no, x.org_id, x.account_code, x.side, x.amount_minor, x.currency, x.rule_line_id, x.document_line,
                                              x.dimensions)::text, '' ORDER BY x.line_no), '') AS lines
                 FROM daybook.entries x WHERE x.impact_id = i.id) e) h
$$;

-- Name: FUNCTION hash_impacts(org_id text, days datemultirange, last_impact_id bigint, OUT impacts bigint, OUT entries bigint, OUT hash bytea); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.hash_impacts(org_id text, days datemultirange, last_impact_id bigint, OUT impacts bigint, OUT entries bigint, OUT hash bytea) IS 'The hash of all impacts of an organization with a posting date in the days and an id up to last_impact_id, with their entries';

-- Name: held_async_operation(uuid, bigint); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.held_async_operation(p_operation_id uuid, p_fence bigint) RETURNS daybook.jobs
    LANGUAGE sql
    AS $$
    SELECT j FROM daybook.jobs j
     WHERE j.id = p_operation_id::text AND j.state::text = 'leased' AND daybook.is_async_operation_claim(j.turn_id) AND j.fence = coalesce(p_fence, j.fence)
       FOR NO KEY UPDATE
$$;

-- Name: held_job(text, bigint); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.held_job(job_id text, fence bigint) RETURNS daybook.jobs
    LANGUAGE sql
    AS $_$
    SELECT j FROM daybook.jobs j
     WHERE j.id = $1 AND j.state::text = 'leased' AND starts_with(j.turn_id, '/sql/') AND j.fence = $2
       FOR NO KEY UPDATE
$_$;

-- Name: hold_jobs(text[], text[], text[], jsonb[], boolean[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.hold_jobs(ids text[], orgs text[], sequences text[], afters jsonb[], any_ends boolean[]) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    missing record;
BEGIN
    WITH asked AS MATERIALIZED (
        SELECT DISTINCT x.id, x.org, a.awaits, coalesce(x.any_end, false) AS any_end
          FROM unnest(ids, orgs, afters, any_ends) AS x (id, org, after, any_end)
         CROSS JOIN LATERAL jsonb_array_elements_text(x.after) AS a (awaits)
    ), found AS MATERIALIZED (
        SELECT k.id, k.org, k.awaits, k.any_end, j.state,
               CASE WHEN k.any_end AND j.state IN ('completed', 'failed', 'cancelled') THEN j.state::text END AS ended_as
          FROM asked k
          LEFT JOIN daybook.jobs j ON j.id = k.awaits AND j.org_id = k.org
    ), inserted AS (
        -- A completed job stays completed: nothing is left to wait for.
        INSERT INTO daybook.job_waits (job_id, awaits, any_end, ended_as)
        SELECT f.id, f.awaits, f.any_end, f.ended_as FROM found f WHERE f.state <> 'completed' OR f.any_end
        RETURNING awaits, ended_as
    ), checks AS (
        INSERT INTO daybook.job_wait_checks (awaits) SELECT DISTINCT i.awaits FROM inserted i WHERE i.ended_as IS NULL
    )
    SELECT f.org, f.awaits INTO missing FROM found f WHERE f.state IS NULL LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'there is no job % of organization % to wait for', missing.awaits, missing.org
            USING ERRCODE = 'DB011', HINT = 'it may have been purged; enqueue what is to be done first before what waits for it';
    END IF;
    INSERT INTO daybook.job_wait_checks (org_id, sequence)
    SELECT DISTINCT x.org, x.sequence FROM unnest(orgs, sequences) AS x (org, sequence) WHERE x.sequence IS NOT NULL;
    UPDATE daybook.jobs j
       SET ready_at = j.first_ready_at
     WHERE j.id IN (SELECT x.id FROM unnest(ids, sequences) AS x (id, sequence) WHERE x.sequence IS NULL) AND j.ready_at = '9999-12-31 00:00:00+00'
       -- OFFSET 0 has each job's waits looked up by their key: as a join, or hashed, it would be a
       -- walk over the table while that seems empty.
       AND NOT EXISTS (SELECT FROM daybook.job_waits w WHERE w.job_id = j.id AND num_nulls(w.ended_as) = 1 OFFSET 0);
END
$$;

-- Name: income_statement(text, date, date, text, text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.income_statement(org_id text, from_day date DEFAULT NULL::date, to_day date DEFAULT NULL::date, by_key text DEFAULT NULL::text, where_key text DEFAULT NULL::text, where_value text DEFAULT NULL::text) RETURNS SETOF daybook.statement_line
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    WITH lines AS (
        SELECT (NULL, 'account', s.currency, a.type::text, '', s.account_code, '', s.value,
                CASE a.type WHEN 'income' THEN s.credit - s.debit ELSE s.debit - s.credit END)::daybook.statement_line AS line
          FROM daybook.account_sums(income_statement.org_id, from_day, to_day, by_key, where_key, where_value) s
          JOIN daybook.accounts a ON a.org_id = income_statement.org_id AND a.code = s.account_code AND a.type IN ('income', 'expense')
         WHERE NOT s.year_end
    ), totals AS (
        SELECT t.* FROM daybook.add_statement_totals(income_statement.org_id, (SELECT array_agg(l.line) FROM lines l)) t
    )
    SELECT x.*
      FROM (SELECT * FROM totals
             UNION ALL
            SELECT '5~~', 'result', t.currency, '', '', '', 'Result', t.value, sum(CASE t.type WHEN 'income' THEN t.amount ELSE -t.amount END)
              FROM totals t WHERE t.kind = 'total'
             GROUP BY t.currency, t.value) x
     ORDER BY x.currency, x.place COLLATE "C", x.value COLLATE "C"
$$;

-- Name: FUNCTION income_statement(org_id text, from_day date, to_day date, by_key text, where_key text, where_value text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.income_statement(org_id text, from_day date, to_day date, by_key text, where_key text, where_value text) IS 'Income and expense from one day to another, with totals and the result; what year-end closes moved is left out';

-- Name: is_async_operation_claim(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.is_async_operation_claim(turn_id text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$ SELECT coalesce(starts_with($1, '/async-operations/'), false) $_$;

-- Name: is_async_operation_id(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.is_async_operation_id(id text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$ SELECT $1 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' $_$;

-- Name: is_bookable(date); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.is_bookable(day date) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT day BETWEEN date '1900-01-01' AND date '2999-12-31'
$$;

-- Name: FUNCTION is_bookable(day date); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.is_bookable(day date) IS 'Whether documents, postings and periods may have the date';

-- Name: is_plain_debounce(jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.is_plain_debounce(debounce jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $_$
    SELECT $1 - '{key,wait_seconds,max_wait_seconds}'::text[] = '{}' AND jsonb_typeof($1 -> 'key') = 'string'
           AND octet_length($1 ->> 'key') BETWEEN 1 AND 255
           AND daybook.debounce_seconds($1, 'wait_seconds') <= CASE WHEN $1 ? 'max_wait_seconds' THEN daybook.debounce_seconds($1, 'max_wait_seconds') ELSE 3.2e9 END
$_$;

-- Name: accounting_work_queue; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.accounting_work_queue (
    id text DEFAULT daybook.new_id() NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    org_id text NOT NULL COLLATE pg_catalog."C",
    document_id text NOT NULL COLLATE pg_catalog."C",
    version_hint bigint NOT NULL,
    ready_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    state daybook.job_state DEFAULT 'pending'::daybook.job_state NOT NULL,
    run_count integer DEFAULT 0 NOT NULL,
    last_attempted_at timestamp with time zone,
    last_error text,
    last_error_code text,
    priority smallint DEFAULT 2 NOT NULL,
    first_ready_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    finished_at timestamp with time zone,
    generation bigint DEFAULT 0 NOT NULL,
    epoch integer DEFAULT 0 NOT NULL,
    cancel_requested boolean DEFAULT false NOT NULL,
    deleted_version bigint,
    not_ready_count integer DEFAULT 0 NOT NULL,
    turn_id text COLLATE pg_catalog."C",
    fence bigint,
    leased_generation bigint,
    worker text,
    attempt_started_at timestamp with time zone,
    working boolean DEFAULT false NOT NULL,
    detached boolean DEFAULT false NOT NULL,
    reclaims integer DEFAULT 0 NOT NULL,
    capped boolean DEFAULT false NOT NULL,
    traceparent character varying(55) DEFAULT daybook.traceparent(),
    completed_turn_id text COLLATE pg_catalog."C",
    completed_fence bigint,
    completed_by text,
    completed_started_at timestamp with time zone
)
WITH (fillfactor='75', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='10000', autovacuum_vacuum_cost_delay='1', autovacuum_analyze_scale_factor='0.05', autovacuum_analyze_threshold='10000');

-- Name: COLUMN accounting_work_queue.run_count; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.accounting_work_queue.run_count IS 'Attempts, the running one included';

-- Name: COLUMN accounting_work_queue.priority; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.accounting_work_queue.priority IS '1 high, 2 normal, 3 low';

-- Name: COLUMN accounting_work_queue.first_ready_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.accounting_work_queue.first_ready_at IS 'When the present request was first due; backoff moves ready_at and leaves this for the latency figures';

-- Name: COLUMN accounting_work_queue.epoch; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.accounting_work_queue.epoch IS 'The document is posted anew if the epoch of its live impact is lower; each deliberate repost (repost_accounting_job) sets it above all of them';

-- Name: COLUMN accounting_work_queue.traceparent; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.accounting_work_queue.traceparent IS 'The trace of the request that the next attempt answers, as W3C Trace Context writes it';

-- Name: COLUMN accounting_work_queue.completed_turn_id; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.accounting_work_queue.completed_turn_id IS 'The turn whose attempt completed the job; null: the job is not completed, or its row was changed since: then the attempt is in attempt_log';

-- Name: COLUMN accounting_work_queue.completed_fence; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.accounting_work_queue.completed_fence IS 'The fence of that turn';

-- Name: COLUMN accounting_work_queue.completed_by; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.accounting_work_queue.completed_by IS 'The worker that completed the job';

-- Name: COLUMN accounting_work_queue.completed_started_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.accounting_work_queue.completed_started_at IS 'When the attempt that completed the job began';

-- Name: is_sound_accounting_job(daybook.accounting_work_queue); Type: FUNCTION; Schema: daybook; Owner: -

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

-- Name: is_sound_job(daybook.jobs); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.is_sound_job(job daybook.jobs) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
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
$_$;

-- Name: documents; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.documents (
    org_id text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL,
    direction text NOT NULL,
    currency text NOT NULL,
    issue_date date NOT NULL,
    value_date date,
    content jsonb NOT NULL,
    accounting_ready_at timestamp with time zone,
    accounting_ready_version bigint DEFAULT 0 NOT NULL,
    accounting_impact_created_at timestamp with time zone,
    deleted_at timestamp with time zone,
    import_id bigint,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT dates_are_bookable CHECK ((daybook.is_bookable(issue_date) AND daybook.is_bookable(value_date))),
    CONSTRAINT documents_accounting_ready_version_check CHECK ((accounting_ready_version >= 0)),
    CONSTRAINT documents_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT documents_direction_check CHECK ((direction = ANY (ARRAY['in'::text, 'out'::text]))),
    CONSTRAINT documents_id_check CHECK (((id <> ''::text) AND (octet_length(id) <= 255))),
    CONSTRAINT documents_org_id_check CHECK (((org_id <> ''::text) AND (octet_length(org_id) <= 255))),
    CONSTRAINT documents_type_check CHECK ((type <> ''::text))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='10000', autovacuum_vacuum_cost_delay='1');

-- Name: COLUMN documents.accounting_ready_version; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.documents.accounting_ready_version IS 'Grows by one each time the document is marked ready, not ready or deleted';

-- Name: COLUMN documents.accounting_impact_created_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.documents.accounting_impact_created_at IS 'When the live impact was posted; kept for readers of older schemas, nothing is locked by it';

-- Name: COLUMN documents.import_id; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.documents.import_id IS 'The import (daybook.imports) that wrote it last; null: none did';

-- Name: is_undone(daybook.documents); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.is_undone(document daybook.documents) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    SELECT document.deleted_at IS NOT NULL
       AND EXISTS (SELECT FROM daybook.import_documents m
                    WHERE m.import_id = document.import_id AND m.document_id = document.id AND m.undone = 'reversed'
                      AND m.version = document.accounting_ready_version)
$$;

-- Name: is_waiting(daybook.jobs); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.is_waiting(job daybook.jobs) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    SELECT job.state = 'pending' AND job.ready_at = '9999-12-31 00:00:00+00'
           AND (job.sequence IS NOT NULL OR EXISTS (SELECT FROM daybook.job_waits w WHERE w.job_id = job.id AND num_nulls(w.ended_as) = 1))
$$;

-- Name: item_accounts(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.item_accounts(org_id text) RETURNS text[]
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT coalesce(array_agg(a.code ORDER BY a.code), '{}') FROM daybook.accounts a
     WHERE a.org_id = item_accounts.org_id AND a.role IN ('receivable', 'payable', 'advance')
$$;

-- Name: item_amounts(text, date, text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.item_amounts(org_id text, until date, documents text[]) RETURNS TABLE(document_id text, account_code text, currency text, day date, amount numeric, open_amount numeric, group_id bigint)
    LANGUAGE plpgsql STABLE ROWS 10000
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    SET jit TO 'off'
    SET random_page_cost TO '1.1'
    SET work_mem TO '64MB'
    AS $$
#variable_conflict use_column
DECLARE
    _org      CONSTANT text := item_amounts.org_id;
    _until    CONSTANT date := coalesce(item_amounts.until, 'infinity');
    _accounts CONSTANT text[] := daybook.item_accounts(_org);
BEGIN
    RETURN QUERY
    WITH units AS MATERIALIZED (
        SELECT u.* FROM daybook.open_units(_org, _until, _accounts) u WHERE documents IS NULL
    ), members AS (
        SELECT d.id FROM unnest(documents) AS d (id)
         UNION
        SELECT r.document_id FROM units u JOIN daybook.reconciled r ON r.org_id = _org AND r.group_id = u.group_id
    ), items AS MATERIALIZED (
        SELECT r.group_id, m.id AS document_id, e.account_code, e.currency, date '1900-01-01' + (max(ARRAY[i.seq, i.document_date - date '1900-01-01']))[2] AS day,
               sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) AS amount
          FROM members m
         CROSS JOIN LATERAL (SELECT * FROM daybook.impacts x WHERE x.org_id = _org AND x.document_id = m.id AND x.posting_date <= _until OFFSET 0) i
          JOIN daybook.entries e ON e.impact_id = i.id AND e.account_code = ANY (_accounts)
          LEFT JOIN daybook.reconciled r ON r.org_id = _org AND r.document_id = m.id
         GROUP BY r.group_id, m.id, e.account_code, e.currency
        HAVING sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) <> 0
    ), shared AS (
        SELECT s.*, sum(greatest(s.amount, 0)) OVER whole AS debits, sum(greatest(-s.amount, 0)) OVER whole AS credits,
               coalesce(sum(abs(s.amount)) OVER (PARTITION BY s.group_id, s.account_code, s.currency, sign(s.amount)
                   ORDER BY s.day, s.document_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS older
          FROM items s
         WHERE s.group_id IS NOT NULL
        WINDOW whole AS (PARTITION BY s.group_id, s.account_code, s.currency)
    )
    SELECT s.document_id, s.account_code, s.currency, s.day, s.amount,
           CASE WHEN s.amount > 0 THEN s.amount - greatest(0, least(s.amount, s.credits - s.older))
                ELSE s.amount + greatest(0, least(-s.amount, s.debits - s.older)) END, s.group_id
      FROM shared s
     UNION ALL
    SELECT s.document_id, s.account_code, s.currency, s.day, s.amount, s.amount, NULL FROM items s WHERE s.group_id IS NULL
     UNION ALL
    SELECT u.document_id, u.account_code, u.currency, NULL, u.amount, u.amount, NULL FROM units u WHERE u.group_id IS NULL;
END
$$;

-- Name: items_of_document(text, text, date); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.items_of_document(org_id text, of_document text, until date DEFAULT NULL::date) RETURNS TABLE(document_id text, account_code text, currency text, role text, type text, direction text, number text, counterparty text, issue_date date, due_date date, amount numeric, open_amount numeric, group_id bigint)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
    SELECT * FROM daybook.items_until($1, $3, (
        SELECT coalesce(array_agg(g.document_id), ARRAY[daybook.open_item_of($1, $2)])
          FROM daybook.reconciled r JOIN daybook.reconciled g ON g.org_id = r.org_id AND g.group_id = r.group_id
         WHERE r.org_id = $1 AND r.document_id = daybook.open_item_of($1, $2)), true)
$_$;

-- Name: FUNCTION items_of_document(org_id text, of_document text, until date); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.items_of_document(org_id text, of_document text, until date) IS 'The items of a document and of those in its group, also those of which nothing is open';

-- Name: items_until(text, date, text[], boolean); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.items_until(org_id text, until date, documents text[], closed boolean) RETURNS TABLE(document_id text, account_code text, currency text, role text, type text, direction text, number text, counterparty text, issue_date date, due_date date, amount numeric, open_amount numeric, group_id bigint)
    LANGUAGE sql STABLE ROWS 10000
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET jit TO 'off'
    AS $$
SELECT o.document_id, o.account_code, o.currency, a.role, coalesce(d.type, ''), coalesce(d.direction, ''), coalesce(d.content ->> 'number', ''),
       coalesce(nullif(d.content ->> 'counterparty', ''),
           CASE WHEN o.group_id IS NOT NULL THEN
               (SELECT min(nullif(x.content ->> 'counterparty', '')) FROM daybook.reconciled r JOIN daybook.documents x ON x.org_id = r.org_id AND x.id = r.document_id
                 WHERE r.org_id = items_until.org_id AND r.group_id = o.group_id) END, ''),
       coalesce(d.issue_date, o.day, (SELECT i.document_date FROM daybook.impacts i
                                       WHERE i.org_id = items_until.org_id AND i.document_id = o.document_id AND (i.posting_date > items_until.until) IS NOT TRUE
                                       ORDER BY i.seq DESC LIMIT 1)),
       daybook.day_of(d.content ->> 'due_date'), o.amount, o.open_amount, o.group_id
  FROM daybook.item_amounts(items_until.org_id, items_until.until, documents) o
  JOIN daybook.accounts a ON a.org_id = items_until.org_id AND a.code = o.account_code
  LEFT JOIN LATERAL (SELECT * FROM daybook.documents x WHERE x.org_id = items_until.org_id AND x.id = o.document_id OFFSET 0) d ON true
 WHERE closed OR o.open_amount <> 0
$$;

-- Name: FUNCTION items_until(org_id text, until date, documents text[], closed boolean); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.items_until(org_id text, until date, documents text[], closed boolean) IS 'The items until a day (null: all) of an organization, or of some documents, and what is open of each: debits less credits, in minor units';

-- Name: job_code_is_reserved(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.job_code_is_reserved(code text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $_$ SELECT $1 IN ('SNOOZED', 'AWAITING_CALLBACK', 'AWAITED_CANCELLED', 'REPLACED', 'HANDLER_MISSING', 'ROW_UNREADABLE', 'RESULT_NOT_STORED') $_$;

-- Name: job_debounce_hash(text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.job_debounce_hash(type text, key text) RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $_$
    SELECT sha256(convert_to(E'\r' || $1 || E'\n' || $2, 'UTF8'))
$_$;

-- Name: job_error_is_final(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.job_error_is_final(code text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $_$
    SELECT $1 IN ('PAYLOAD_INVALID', 'PAYLOAD_TOO_LARGE', 'PAYLOAD_NOT_ENCRYPTED', 'AUTHENTICATION_FAILED', 'NOT_FOUND', 'HANDLER_MISSING',
                  'ROW_UNREADABLE', 'AWAITED_CANCELLED')
$_$;

-- Name: job_ids(jsonb); Type: FUNCTION; Schema: daybook; Owner: -

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

-- Name: job_in_doubt(text, text, jsonb, text, text, timestamp with time zone, integer, integer, jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.job_in_doubt(org_id text, type text, payload jsonb, as_text text, idempotency_key text, ready_at timestamp with time zone, priority integer, max_attempts integer, links jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT (org_id <> '' AND octet_length(org_id) <= 255 AND octet_length(type) <= 64
            AND jsonb_typeof(payload) = 'object' AND octet_length(as_text) <= 2500 AND strpos(as_text, ': {') = 0 AND strpos(as_text, '[') = 0
            AND (idempotency_key IS NULL OR octet_length(idempotency_key) BETWEEN 1 AND 255)
            AND (ready_at IS NULL OR ready_at <= '9999-12-31 23:59:59+00') AND (priority IS NULL OR priority BETWEEN 1 AND 3)
            AND (max_attempts IS NULL OR max_attempts BETWEEN 1 AND 1000) AND links IS NULL) IS NOT TRUE
$$;

-- Name: job_input_hash(text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.job_input_hash(type text, payload text) RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $_$
    SELECT sha256(convert_to(CASE $1 WHEN 'webhook_delivery' THEN 'webhook' ELSE $1 END || E'\n' ||
        CASE WHEN strpos($2, '"$encrypted": {') > 0 THEN ($2::jsonb - '$encrypted')::text
             WHEN $2 ~ '\.[0-9]*0[],}]'
             THEN regexp_replace($2, '("(?:[^"\\]|\\.)*")|(\.[0-9]*[1-9])0+(?![0-9])|\.0+(?![0-9])', '\1\2', 'g')
             ELSE $2 END, 'UTF8'))
$_$;

-- Name: job_partitions(smallint, smallint, text[], integer[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.job_partitions(fleet smallint, priority smallint, types text[], versions integer[]) RETURNS TABLE(org_id text, slot text)
    LANGUAGE sql STABLE ROWS 10
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    SET jit TO 'off'
    AS $_$
    WITH RECURSIVE part AS (
        (SELECT j.org_id, daybook.job_slot(j.type, j.queue, j.min_version) AS slot
           FROM daybook.jobs j
          WHERE j.state = 'pending' AND j.fleet = $1 AND j.priority = $2
          ORDER BY j.org_id, daybook.job_slot(j.type, j.queue, j.min_version)
          LIMIT 1)
        UNION ALL
        SELECT n.org_id, n.slot
          FROM part p
         CROSS JOIN LATERAL (
               SELECT j.org_id, daybook.job_slot(j.type, j.queue, j.min_version) AS slot
                 FROM daybook.jobs j
                WHERE j.state = 'pending' AND j.fleet = $1 AND j.priority = $2
                  AND (j.org_id, daybook.job_slot(j.type, j.queue, j.min_version)) > (p.org_id, p.slot)
                ORDER BY j.org_id, daybook.job_slot(j.type, j.queue, j.min_version)
                LIMIT 1) n
    )
    SELECT p.org_id, p.slot
      FROM part p
      JOIN unnest($3) WITH ORDINALITY AS t (type, n) ON t.type = split_part(p.slot, '/', 1)
     WHERE coalesce(nullif(split_part(p.slot, '/', 3), '')::integer, 0) <= coalesce($4[t.n], 0)
$_$;

-- Name: job_skip_hash(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.job_skip_hash(key text) RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $_$
    SELECT sha256(convert_to(E'\n' || $1, 'UTF8'))
$_$;

-- Name: job_slot(text, text, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.job_slot(type text, queue text, min_version integer) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$
    SELECT CASE WHEN $3 IS NULL THEN coalesce($1 || '/' || $2, $1) ELSE daybook.versioned_job_slot($1, $2, $3) END
$_$;

-- Name: FUNCTION job_slot(type text, queue text, min_version integer); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.job_slot(type text, queue text, min_version integer) IS 'type, type/queue, or type/queue/min_version: what the due jobs of an organization and a priority are divided by';

-- Name: jobs_key(integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.jobs_key(fleet integer) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$
    SELECT 2 + 16 * $1
$_$;

-- Name: join_limits(text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.join_limits(ids text[]) RETURNS TABLE(scope text, org_id text, limit_key text)
    LANGUAGE sql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
    WITH come AS MATERIALIZED (
        SELECT j.limit_scope AS scope, j.org_id, j.limit_key, array_agg(j.id ORDER BY j.priority, j.ready_at, j.id) AS waiting
          FROM daybook.jobs j
         WHERE j.id = ANY (ids)
         GROUP BY j.limit_scope, j.org_id, j.limit_key
    ), keys AS MATERIALIZED (
        SELECT k.*, EXISTS (SELECT FROM daybook.jobs j WHERE j.limit_scope = k.scope AND j.org_id = k.org_id AND j.limit_key = k.limit_key AND j.finished_at IS NULL AND j.fleet = -2) AS line,
               CASE WHEN NOT k.rated AND k.parallel IS NOT NULL
                    THEN (SELECT count(*) FROM daybook.jobs j WHERE j.limit_scope = k.scope AND j.org_id = k.org_id AND j.limit_key = k.limit_key AND j.finished_at IS NULL AND j.fleet >= 0) END AS held
          FROM (SELECT c.*, l.parallel, l.rate IS NOT NULL AS rated
                  FROM come c
                  LEFT JOIN daybook.job_limits l ON l.scope = c.scope OFFSET 0) k
    ), decided AS MATERIALIZED (
        SELECT k.*, NOT k.rated AND NOT k.line AND (k.parallel > k.held) IS NOT FALSE AS free, k.held >= k.parallel AS taken FROM keys k
    ), moved AS (
        UPDATE daybook.jobs j
           SET fleet = CASE WHEN x.admitted THEN CASE WHEN j.queue IS NULL THEN 0 ELSE coalesce((SELECT u.fleet FROM daybook.queues u WHERE u.name = j.queue), 0) END ELSE -2 END,
               ready_at = CASE WHEN x.admitted THEN clock_timestamp() ELSE j.ready_at END,
               first_ready_at = CASE WHEN x.admitted AND j.run_count = 0 THEN clock_timestamp() ELSE j.first_ready_at END
          FROM (SELECT w.id, d.free AND (w.nth <= d.parallel - d.held) IS NOT FALSE AS admitted
                  FROM decided d
                 CROSS JOIN LATERAL unnest(d.waiting) WITH ORDINALITY AS w (id, nth) OFFSET 0) x
         WHERE j.id = x.id AND j.fleet = -1
    )
    SELECT d.scope, d.org_id, d.limit_key
      FROM decided d
     WHERE NOT d.free
       AND CASE WHEN d.taken THEN d.held > (SELECT count(*) FROM daybook.lock_limited_places(d.scope, d.org_id, d.limit_key)) ELSE true END
$$;

-- Name: join_unique_job(daybook.jobs, timestamp with time zone, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.join_unique_job(opened daybook.jobs, due timestamp with time zone, asked_priority integer) RETURNS text
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

-- Name: json_add(jsonb, text[], jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.json_add(doc jsonb, place text[], value jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
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
$_$;

-- Name: json_at(jsonb, text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.json_at(doc jsonb, place text[]) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
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
$_$;

-- Name: json_place(jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.json_place(pointer jsonb) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
DECLARE
    as_text CONSTANT text := pointer #>> '{}';
BEGIN
    IF jsonb_typeof(pointer) IS DISTINCT FROM 'string' OR as_text !~ '^(/([^~/]|~[01])*)*$' THEN
        RAISE EXCEPTION 'a JSON patch names places by pointers such as "/lines/0/net", not by %', coalesce(pointer::text, 'nothing') USING ERRCODE = 'DB010';
    END IF;
    RETURN ARRAY(SELECT replace(replace(t.token, '~1', '/'), '~0', '~')
                   FROM regexp_split_to_table(as_text, '/') WITH ORDINALITY AS t (token, n) WHERE t.n > 1 ORDER BY t.n);
END
$_$;

-- Name: keep_adopted_operation(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.keep_adopted_operation() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    here   CONSTANT text := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
    wanted CONSTANT text := to_jsonb(NEW) ->> 'status';
    held   text;
BEGIN
    SELECT a.job_id INTO held FROM daybook.adopted_rows a WHERE a.legacy_table = here AND a.legacy_id = to_jsonb(OLD) ->> 'id';
    IF NOT FOUND OR wanted NOT IN ('pending', 'failed', 'processing') THEN
        RETURN NEW;
    END IF;
    IF wanted = 'pending' AND EXISTS (SELECT 1 FROM daybook.jobs j WHERE j.id = held AND j.state IN ('failed', 'cancelled')) THEN
        PERFORM daybook.retry_job(held, 'reset');
    END IF;
    RETURN OLD;
END
$$;

-- Name: FUNCTION keep_adopted_operation(); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.keep_adopted_operation() IS 'Keeps a legacy queue from working rows that Daybook holds, and tries their jobs again; a trigger of legacy tables';

-- Name: keep_closed_items(text, datemultirange); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.keep_closed_items(org_id text, closed_days datemultirange) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    _org      CONSTANT text := keep_closed_items.org_id;
    _accounts CONSTANT text[] := daybook.item_accounts(_org);
    _last     CONSTANT date := (SELECT upper(r) - 1 FROM unnest(closed_days) AS r WHERE lower(r) <= date '1900-01-01');
BEGIN
    PERFORM pg_advisory_xact_lock(daybook.lock_class('reconciliations'), hashtext(_org));
    DELETE FROM daybook.closed_item_days k
     WHERE k.org_id = _org AND (_last IS NULL OR k.last_day > _last OR k.last_day = _last AND NOT k.accounts @> _accounts);
    IF _last IS NULL OR EXISTS (SELECT FROM daybook.closed_item_days k WHERE k.org_id = _org AND k.last_day = _last) THEN
        RETURN;
    END IF;
    -- In one statement, which does not see the day as one that is kept.
    WITH day AS (
        INSERT INTO daybook.closed_item_days (org_id, last_day, accounts) VALUES (_org, _last, _accounts)
    )
    INSERT INTO daybook.closed_items (org_id, last_day, document_id, account_code, currency, amount)
    SELECT _org, _last, i.document_id, i.account_code, i.currency, i.amount FROM daybook.item_amounts(_org, _last, NULL) i;
    DELETE FROM daybook.closed_item_days k
     WHERE k.org_id = _org
       AND k.last_day <= (SELECT x.last_day FROM daybook.closed_item_days x WHERE x.org_id = _org ORDER BY x.last_day DESC OFFSET 13 LIMIT 1);
END
$$;

-- Name: keep_closed_sums(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.keep_closed_sums(org_id text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    _org CONSTANT text := keep_closed_sums.org_id;
    span record;
BEGIN
    FOR span IN
        SELECT s.starts_on, s.ends_on FROM daybook.closed_spans(_org) s
         WHERE NOT EXISTS (SELECT FROM daybook.closed_sum_spans k WHERE k.org_id = _org AND k.starts_on = s.starts_on)
         ORDER BY s.starts_on
    LOOP
        INSERT INTO daybook.closed_sum_spans (org_id, starts_on, ends_on, tax_accounts)
        VALUES (_org, span.starts_on, span.ends_on, daybook.tax_accounts(_org));
        WITH sums AS MATERIALIZED (
            SELECT * FROM daybook.entry_sums(_org, span.starts_on, span.ends_on, true)
        ), dimensions AS (
            INSERT INTO daybook.closed_dimension_sums (org_id, starts_on, account_code, currency, year_end, dimensions, debit, credit)
            SELECT _org, span.starts_on, s.account_code, s.currency, s.year_end, s.dimensions, s.debit, s.credit
              FROM sums s WHERE s.dimensions IS NOT NULL
        )
        INSERT INTO daybook.closed_sums (org_id, starts_on, account_code, currency, year_end, debit, credit)
        SELECT _org, span.starts_on, s.account_code, s.currency, s.year_end, sum(s.debit), sum(s.credit)
          FROM sums s GROUP BY s.account_code, s.currency, s.year_end;

        -- What an impact stated that is live is kept anew, and what one stated that is not stays.
        DELETE FROM daybook.closed_taxes t USING daybook.impacts i
         WHERE t.impact_id = i.id AND i.org_id = _org AND i.posting_date BETWEEN span.starts_on AND span.ends_on
           AND NOT EXISTS (SELECT FROM daybook.impacts x WHERE x.org_id = _org AND x.document_id = i.document_id AND x.seq = i.seq + 1);
        WITH read AS MATERIALIZED (
            SELECT * FROM daybook.read_taxes(_org, span.starts_on, span.ends_on, daybook.tax_accounts(_org), true, true)
        ), taxes AS (
            INSERT INTO daybook.closed_taxes (impact_id, currency, direction, country, category, code, rate, base, tax)
            SELECT r.impact_id, r.currency, r.direction, r.country, r.category, r.code, r.rate, r.base, r.tax
              FROM read r WHERE r.kind = 'impact'
        ), sums AS (
            INSERT INTO daybook.closed_tax_sums (org_id, starts_on, currency, direction, country, category, code, rate, documents, base, tax)
            SELECT _org, span.starts_on, r.currency, r.direction, r.country, r.category, r.code, r.rate, r.documents, r.base, r.tax
              FROM read r WHERE r.kind = 'stated'
        )
        INSERT INTO daybook.closed_tax_differences (org_id, starts_on, document_id, currency, stated, posted)
        SELECT _org, span.starts_on, r.document_id, r.currency, r.tax, r.posted
          FROM read r WHERE r.kind = 'document';
    END LOOP;
END
$$;

-- Name: keep_erasure(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.keep_erasure() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF OLD.finished_at IS NOT NULL OR (NEW.id, NEW.started_at, NEW.actor, NEW.db_role, NEW.org_id, NEW.scope, NEW.scope_salt, NEW.scope_hash)
                                      IS DISTINCT FROM (OLD.id, OLD.started_at, OLD.actor, OLD.db_role, OLD.org_id, OLD.scope, OLD.scope_salt, OLD.scope_hash) THEN
        RAISE EXCEPTION 'the erasure % is on record', OLD.id USING ERRCODE = 'DB004', HINT = 'erase again, which is an erasure of its own';
    END IF;
    RETURN NEW;
END
$$;

-- Name: keep_items_of_parted_groups(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.keep_items_of_parted_groups() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    parted record;
BEGIN
    FOR parted IN
        SELECT m.org_id, array_agg(m.document_id) AS documents
          FROM (SELECT o.org_id, o.group_id, o.document_id FROM old_rows o
                 UNION
                SELECT r.org_id, r.group_id, r.document_id FROM old_rows o JOIN daybook.reconciled r ON r.org_id = o.org_id AND r.group_id = o.group_id) m
          LEFT JOIN daybook.reconciled r ON r.org_id = m.org_id AND r.document_id = m.document_id
         GROUP BY m.org_id, m.group_id
        HAVING count(r.group_id) < count(*) OR min(r.group_id) <> max(r.group_id)
         ORDER BY m.org_id
    LOOP
        PERFORM daybook.see_groups_whole();
        PERFORM pg_advisory_xact_lock(daybook.lock_class('reconciliations'), hashtext(parted.org_id));
        DELETE FROM daybook.closed_items k WHERE k.org_id = parted.org_id AND k.document_id = ANY (parted.documents);
        INSERT INTO daybook.closed_items (org_id, last_day, document_id, account_code, currency, amount)
        SELECT k.org_id, k.last_day, i.document_id, e.account_code, e.currency, sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)
          FROM unnest(parted.documents) AS d (id)
         CROSS JOIN LATERAL (SELECT * FROM daybook.impacts x WHERE x.org_id = parted.org_id AND x.document_id = d.id OFFSET 0) i
          JOIN daybook.entries e ON e.impact_id = i.id
          JOIN daybook.closed_item_days k ON k.org_id = parted.org_id AND k.last_day >= i.posting_date AND e.account_code = ANY (k.accounts)
         GROUP BY 1, 2, 3, 4, 5
        HAVING sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) <> 0;
    END LOOP;
    RETURN NULL;
END
$$;

-- Name: keep_replaced_taxes(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.keep_replaced_taxes() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    last daybook.impacts;
BEGIN
    SELECT * INTO last FROM daybook.impacts i WHERE i.org_id = OLD.org_id AND i.document_id = OLD.id ORDER BY i.seq DESC LIMIT 1;
    IF last.kind = 'post' AND last.entry_count > 0 THEN
        INSERT INTO daybook.replaced_taxes AS k (impact_id, confirmations, type, direction, currency, country, taxes)
        SELECT last.id, (SELECT count(*) FROM daybook.confirmations c WHERE c.impact_id = last.id), OLD.type, OLD.direction, OLD.currency, coalesce(OLD.content ->> 'country', ''),
               daybook.stated_taxes(OLD.content)
            ON CONFLICT (impact_id) DO UPDATE
           SET confirmations = excluded.confirmations, type = excluded.type, direction = excluded.direction, currency = excluded.currency,
               country = excluded.country, taxes = excluded.taxes
         WHERE k.confirmations <> excluded.confirmations;
    END IF;
    RETURN NULL;
END
$$;

-- Name: keep_revoked(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.keep_revoked() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'the token % is revoked', OLD.id USING ERRCODE = 'DB004', HINT = 'make another one: daybook tokens create';
END
$$;

-- Name: keep_step(text, bigint, text, jsonb, boolean, integer, integer, double precision, boolean); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.keep_step(job_id text, fence bigint, name text, result jsonb, done boolean DEFAULT true, round integer DEFAULT 1, place integer DEFAULT 1, took_seconds double precision DEFAULT 0, again boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    job   CONSTANT daybook.jobs := daybook.held_job(keep_step.job_id, keep_step.fence);
    value CONSTANT jsonb := coalesce(keep_step.result, 'null');
BEGIN
    IF job.id IS NULL THEN
        RAISE EXCEPTION 'job % is not held by this claim any more', keep_step.job_id
            USING ERRCODE = 'DB031', HINT = 'roll back, and leave the job alone: another attempt has it, or it is done';
    END IF;
    PERFORM daybook.check_step(job.id, keep_step.name, octet_length(value::text));
    IF NOT daybook.put_step(job.id, job.awaited, keep_step.name, keep_step.place, job.run_count, value, keep_step.done, keep_step.round,
                            keep_step.took_seconds, keep_step.again) THEN
        RAISE EXCEPTION 'round % of step % is kept already, or the one before it is not', keep_step.round, quote_literal(keep_step.name)
            USING ERRCODE = 'DB031', HINT = 'roll back, and read daybook.job_steps: it has what is kept';
    END IF;
END
$$;

-- Name: FUNCTION keep_step(job_id text, fence bigint, name text, result jsonb, done boolean, round integer, place integer, took_seconds double precision, again boolean); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.keep_step(job_id text, fence bigint, name text, result jsonb, done boolean, round integer, place integer, took_seconds double precision, again boolean) IS 'Keeps the result of a step of a claimed job (daybook.job_steps has what is kept), alone or in the transaction that writes its effects. round: from 1, of a loop, which goes on unless done. again: the answer of a call before may be lost. DB031, which undoes that, when the claim is lost or the round is there; DB010 with STEP_INVALID or STEP_NOT_STORED as its detail when it cannot be kept';

-- Name: keep_sums_of_periods(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.keep_sums_of_periods() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM daybook.keep_closed_sums(CASE TG_OP WHEN 'DELETE' THEN OLD.org_id ELSE NEW.org_id END);
    RETURN NULL;
END
$$;

-- Name: lease_async_operation(uuid, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.lease_async_operation(p_operation_id uuid, p_worker text DEFAULT NULL::text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    job   daybook.jobs;
    org   daybook.organizations;
    mine  bigint;
BEGIN
    SELECT * INTO job FROM daybook.jobs j
     WHERE j.id = p_operation_id::text AND j.state::text = 'pending' AND j.ready_at <= clock_timestamp() AND j.min_version IS NULL
       AND j.fleet >= 0 -- less: it waits for its limit by key
       FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT * INTO org FROM daybook.organizations o WHERE o.id = job.org_id;
    IF org.paused_at IS NOT NULL OR job.queue IS NOT NULL AND daybook.queue_uncounted(job.queue) IS NOT TRUE THEN
        RETURN NULL;
    END IF;
    IF num_nonnulls(org.max_in_flight, org.rate) > 0 THEN
        -- The lock that workers count an organization's leases under.
        IF NOT pg_try_advisory_xact_lock(daybook.lock_class('organization leases'), hashtext(job.org_id)) THEN
            RETURN NULL;
        END IF;
        IF (SELECT count(*) FROM daybook.jobs l WHERE l.capped AND l.turn_id IS NOT NULL AND l.org_id = job.org_id) >= org.max_in_flight
           OR org.rate IS NOT NULL AND daybook.organization_starts(org) < 1 THEN
            RETURN NULL;
        END IF;
    END IF;
    IF org.rate IS NOT NULL THEN
        PERFORM daybook.count_organization_starts(org.id, 1);
    END IF;
    mine := nextval('daybook.fence_seq');
    UPDATE daybook.jobs j
       SET state = 'leased', turn_id = '/async-operations/' || mine, detached = false, fence = mine, leased_generation = j.generation,
           worker = coalesce(nullif(p_worker, ''), nullif(current_setting('application_name', true), ''), session_user::text),
           run_count = j.run_count + 1, working = true, capped = org.max_in_flight IS NOT NULL, counted = true,
           attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp() + daybook.async_operation_lease(), updated_at = clock_timestamp()
     WHERE j.id = job.id
    RETURNING j.* INTO job;
    PERFORM daybook.note_async_operation_types(ARRAY[job.type]);
    -- What ends a lease leaves the number of the policy to what begins the next attempt.
    IF job.reclaims > 0 AND job.run_count > daybook.async_operation_attempts(job) THEN
        PERFORM daybook.end_async_operation(job, 'failed', NULL, 'JOB_LOCK_TIMEOUT_RECLAIMED',
                                            format('the worker ended in the last attempt, of %s', daybook.async_operation_attempts(job)), NULL);
        RETURN NULL;
    END IF;
    RETURN mine;
END
$$;

-- Name: FUNCTION lease_async_operation(p_operation_id uuid, p_worker text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.lease_async_operation(p_operation_id uuid, p_worker text) IS 'Claims a job that is due, for 5 minutes, and returns the fence of the claim; null: it is not due, waits for its limit by key, or has ended its program in each of its attempts (it is a dead letter then), another program or worker holds it, its organization is paused or at its cap or rate, or its named queue is paused or has a limit or a rate, which workers alone count';

-- Name: lease_lost(bigint, bigint); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.lease_lost(wanted bigint, found bigint) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '% of % jobs are still its own', found, wanted USING ERRCODE = 'DB031';
END
$$;

-- Name: job_limits; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.job_limits (
    scope text NOT NULL COLLATE pg_catalog."C",
    queue text GENERATED ALWAYS AS (
CASE
    WHEN starts_with(scope, 'queue/'::text) THEN substr(scope, 7)
    ELSE NULL::text
END) STORED COLLATE pg_catalog."C",
    by text DEFAULT ''::text NOT NULL,
    parallel integer,
    rate integer,
    rate_seconds double precision,
    declared boolean DEFAULT false NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT job_limits_by_check CHECK (((by = ANY (ARRAY[''::text, 'org_id'::text])) OR ((by ~ '^payload(\.[^.]+)+$'::text) AND (octet_length(by) <= 255)))),
    CONSTRAINT job_limits_check CHECK (((num_nonnulls(parallel, rate) > 0) AND ((rate IS NULL) = (rate_seconds IS NULL)))),
    CONSTRAINT job_limits_parallel_check CHECK ((parallel > 0)),
    CONSTRAINT job_limits_rate_check CHECK ((rate > 0)),
    CONSTRAINT job_limits_rate_seconds_check CHECK (((rate_seconds >= (0.001)::double precision) AND (rate_seconds <= (31536000)::double precision))),
    CONSTRAINT job_limits_scope_check CHECK ((scope ~ '^(queue/)?[A-Za-z][A-Za-z0-9_.:-]{0,63}$'::text))
);

-- Name: TABLE job_limits; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.job_limits IS 'Limits by key of types of background jobs, and of named queues';

-- Name: COLUMN job_limits.scope; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_limits.scope IS 'A type, or queue/ and the name of a queue';

-- Name: COLUMN job_limits.by; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_limits.by IS 'What the key of a job is that was enqueued without one: org_id, or a member of its payload such as payload.account_id; empty: such a job has no key, and no limit';

-- Name: COLUMN job_limits.parallel; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_limits.parallel IS 'How many jobs of a key run at a time, over all workers; null: any number';

-- Name: COLUMN job_limits.rate; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_limits.rate IS 'How many attempts of a key begin in rate_seconds, over all workers; null: any number';

-- Name: COLUMN job_limits.declared; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_limits.declared IS 'Programs set it: workers that of a type, as the policy of its handler says; otherwise a person, whose limit they leave alone';

-- Name: limit_key(daybook.job_limits, text, jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.limit_key(l daybook.job_limits, org_id text, payload jsonb) RETURNS text
    LANGUAGE sql STABLE
    AS $_$
    SELECT CASE WHEN octet_length(k.key) > 255 THEN encode(sha256(convert_to(k.key, 'UTF8')), 'hex') ELSE nullif(k.key, '') END
      FROM (SELECT CASE $1.by WHEN '' THEN NULL WHEN 'org_id' THEN $2 ELSE $3 #>> string_to_array(substr($1.by, 9), '.') END AS key) k
$_$;

-- Name: limit_of(text, text, text, jsonb, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.limit_of(type text, queue text, org_id text, payload jsonb, limit_key text) RETURNS text[]
    LANGUAGE sql STABLE
    AS $_$
    SELECT ARRAY[x.scope, x.key]
      FROM (SELECT l.scope, coalesce($5, daybook.limit_key(l, $3, $4)) AS key, l.queue FROM daybook.job_limits l WHERE l.scope IN ($1, 'queue/' || $2)
             UNION ALL
            SELECT $1, $5, NULL) x
     WHERE x.key IS NOT NULL
     ORDER BY x.queue NULLS LAST
     LIMIT 1
$_$;

-- Name: limited_job_changed(daybook.jobs, daybook.jobs); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.limited_job_changed(was daybook.jobs, became daybook.jobs) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    holds boolean := coalesce(became.fleet >= 0 AND became.finished_at IS NULL AND (became.limit_scope, became.limit_key) = (was.limit_scope, was.limit_key), false);
BEGIN
    IF became.limit_key IS NOT NULL AND became.state = 'pending' AND became.fleet <> -1 AND became.fleet = was.fleet
       AND (was.state <> 'pending' OR became.ready_at <> was.ready_at) THEN
        -- One that held a place and is due at once joins the line here, as its place is passed on below.
        -- pass_limits would look late for a time that has long passed.
        UPDATE daybook.jobs j
           SET fleet = CASE WHEN was.finished_at IS NULL AND became.ready_at <= clock_timestamp() THEN -2 ELSE -1 END
         WHERE j.id = became.id;
        holds := false;
    END IF;
    IF was.fleet < 0 OR was.finished_at IS NOT NULL OR holds THEN
        RETURN;
    END IF;
    IF current_setting('transaction_isolation') = 'read committed'
       AND (NOT EXISTS (SELECT FROM daybook.jobs j WHERE j.limit_scope = was.limit_scope AND j.org_id = was.org_id AND j.limit_key = was.limit_key AND j.finished_at IS NULL AND j.fleet = -2)
            OR daybook.pass_on_place(was.limit_scope, was.org_id, was.limit_key)) THEN
        RETURN;
    END IF;
    INSERT INTO daybook.job_wait_checks (limit_scope, org_id, limit_key) VALUES (was.limit_scope, was.org_id, was.limit_key);
    PERFORM daybook.wake_job_queue();
END
$$;

-- Name: limited_places(text, text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.limited_places(scope text, org_id text, key text) RETURNS SETOF daybook.jobs
    LANGUAGE sql STABLE
    AS $_$
    SELECT j.* FROM daybook.jobs j WHERE j.limit_scope = $1 AND j.org_id = $2 AND j.limit_key = $3 AND j.finished_at IS NULL AND j.fleet >= 0
$_$;

-- Name: link_documents(text, text, text, text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.link_documents(org_id text, one text, other text, matched_by text, actor text) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    a bigint := (SELECT r.group_id FROM daybook.reconciled r WHERE r.org_id = link_documents.org_id AND r.document_id = one);
    b bigint := (SELECT r.group_id FROM daybook.reconciled r WHERE r.org_id = link_documents.org_id AND r.document_id = other);
    target bigint := coalesce(least(a, b), nextval('daybook.reconciled_group_seq'));
BEGIN
    IF a <> b THEN
        UPDATE daybook.reconciled r SET group_id = target WHERE r.org_id = link_documents.org_id AND r.group_id = greatest(a, b);
    END IF;
    INSERT INTO daybook.reconciled (org_id, document_id, group_id, matched_by, actor)
    SELECT link_documents.org_id, u.id, target, link_documents.matched_by, link_documents.actor
      FROM unnest(ARRAY[one, other]) AS u (id)
        ON CONFLICT ON CONSTRAINT reconciled_pkey DO NOTHING;
    RETURN target;
END
$$;

-- Name: lock_class(text); Type: FUNCTION; Schema: daybook; Owner: -

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

-- Name: FUNCTION lock_class(name text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.lock_class(name text) IS 'The classid, in pg_locks, of Daybook''s advisory locks of a purpose';

-- Name: lock_configuration(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.lock_configuration(org_id text) RETURNS void
    LANGUAGE sql
    AS $$
    SELECT pg_advisory_xact_lock(daybook.lock_class('configuration groups'), hashtext(lock_configuration.org_id) & 63);
    SELECT pg_advisory_xact_lock(daybook.lock_class('configurations'), hashtext(lock_configuration.org_id));
$$;

-- Name: FUNCTION lock_configuration(org_id text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.lock_configuration(org_id text) IS 'Waits until no transaction posts for the organization, and keeps posting and other changes of its configuration out until the end of the transaction';

-- Name: lock_limited_places(text, text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.lock_limited_places(scope text, org_id text, key text) RETURNS SETOF text
    LANGUAGE sql
    AS $_$
    SELECT j.id FROM daybook.jobs j WHERE j.limit_scope = $1 AND j.org_id = $2 AND j.limit_key = $3 AND j.finished_at IS NULL AND j.fleet >= 0
       FOR NO KEY UPDATE SKIP LOCKED
$_$;

-- Name: log_kept_attempt(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.log_kept_attempt() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
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

-- Name: mark_accounting_job_pending(text, text, bigint, double precision); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.mark_accounting_job_pending(org_id text, document_id text, version_hint bigint DEFAULT NULL::bigint, delay_seconds double precision DEFAULT 0, OUT job_id text, OUT result text) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    job   daybook.accounting_work_queue;
    newer boolean;
    due   timestamptz;
BEGIN
    PERFORM daybook.check_accounting_request(mark_accounting_job_pending.org_id, mark_accounting_job_pending.document_id,
                                             coalesce(mark_accounting_job_pending.version_hint, 0), 2);
    IF delay_seconds IS NULL OR NOT delay_seconds BETWEEN 0 AND 3.2e9 THEN
        RAISE EXCEPTION 'delay must be between 0 seconds and 100 years, not % seconds', delay_seconds USING ERRCODE = 'DB010';
    END IF;
    SELECT * INTO job
      FROM daybook.accounting_work_queue q
     WHERE q.org_id = mark_accounting_job_pending.org_id AND q.document_id = mark_accounting_job_pending.document_id
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no accounting job for document % of organization %', mark_accounting_job_pending.document_id, mark_accounting_job_pending.org_id
            USING ERRCODE = 'DB011', HINT = 'enqueue the document first';
    END IF;

    due := clock_timestamp() + make_interval(secs => delay_seconds);
    newer := coalesce(mark_accounting_job_pending.version_hint, 0) > job.version_hint;
    job_id := job.id;
    result := CASE job.state WHEN 'leased' THEN 'coalesced' WHEN 'pending' THEN 'rescheduled' ELSE 'requeued' END;
    UPDATE daybook.accounting_work_queue q
       SET state            = CASE WHEN q.state = 'leased' THEN q.state ELSE 'pending' END,
           version_hint     = CASE WHEN newer THEN mark_accounting_job_pending.version_hint ELSE q.version_hint END,
           ready_at         = due,
           first_ready_at   = CASE WHEN q.state = 'leased' THEN q.first_ready_at ELSE due END,
           generation       = q.generation + 1,
           traceparent      = coalesce(daybook.traceparent(), q.traceparent),
           cancel_requested = false,
           run_count        = CASE WHEN q.state = 'leased' OR (q.state = 'pending' AND NOT newer) THEN q.run_count ELSE 0 END,
           not_ready_count  = 0,
           last_error       = CASE WHEN q.state IN ('leased', 'pending') AND NOT newer THEN q.last_error END,
           last_error_code  = CASE WHEN q.state IN ('leased', 'pending') AND NOT newer THEN q.last_error_code END,
           finished_at      = NULL,
           updated_at       = clock_timestamp()
     WHERE q.id = job.id;
    IF daybook.must_wake(1, due) THEN
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;

-- Name: FUNCTION mark_accounting_job_pending(org_id text, document_id text, version_hint bigint, delay_seconds double precision, OUT job_id text, OUT result text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.mark_accounting_job_pending(org_id text, document_id text, version_hint bigint, delay_seconds double precision, OUT job_id text, OUT result text) IS 'Asks for one more attempt after a delay. result: rescheduled (was pending), requeued, or coalesced (again after the running attempt)';

-- Name: mark_document_deleted(text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.mark_document_deleted(org_id text, document_id text, OUT version bigint, OUT job_id text, OUT result text) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    PERFORM daybook.check_accounting_request(mark_document_deleted.org_id, mark_document_deleted.document_id, 0, 2);
    -- A second deletion changes nothing.
    UPDATE daybook.documents d
       SET accounting_ready_version = d.accounting_ready_version + CASE WHEN d.deleted_at IS NULL THEN 1 ELSE 0 END,
           deleted_at = coalesce(d.deleted_at, clock_timestamp()), updated_at = CASE WHEN d.deleted_at IS NULL THEN clock_timestamp() ELSE d.updated_at END
     WHERE d.org_id = mark_document_deleted.org_id AND d.id = mark_document_deleted.document_id
    RETURNING d.accounting_ready_version INTO version;
    IF NOT FOUND THEN
        -- The row may have been removed already: then the job knows the version.
        SELECT q.version_hint + CASE WHEN q.deleted_version = q.version_hint THEN 0 ELSE 1 END INTO version
          FROM daybook.accounting_work_queue q
         WHERE q.org_id = mark_document_deleted.org_id AND q.document_id = mark_document_deleted.document_id
           FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'organization % has no document %', mark_document_deleted.org_id, mark_document_deleted.document_id
                USING ERRCODE = 'DB013';
        END IF;
    END IF;
    SELECT e.job_id, e.result INTO job_id, result
      FROM daybook.enqueue_accounting_job(mark_document_deleted.org_id, mark_document_deleted.document_id, version) e;
    -- Recorded in the job, so that the row may be removed before a worker has read it.
    UPDATE daybook.accounting_work_queue q
       SET deleted_version = mark_document_deleted.version
     WHERE q.id = mark_document_deleted.job_id AND q.version_hint = mark_document_deleted.version
       AND q.deleted_version IS DISTINCT FROM mark_document_deleted.version;
END
$$;

-- Name: mark_document_not_ready(text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.mark_document_not_ready(org_id text, document_id text, OUT version bigint, OUT job_id text, OUT result text) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    PERFORM daybook.check_accounting_request(mark_document_not_ready.org_id, mark_document_not_ready.document_id, 0, 2);
    UPDATE daybook.documents d
       SET accounting_ready_at = NULL, accounting_ready_version = d.accounting_ready_version + 1, updated_at = clock_timestamp()
     WHERE d.org_id = mark_document_not_ready.org_id AND d.id = mark_document_not_ready.document_id
    RETURNING d.accounting_ready_version INTO version;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'organization % has no document %', mark_document_not_ready.org_id, mark_document_not_ready.document_id
            USING ERRCODE = 'DB013';
    END IF;
    SELECT e.job_id, e.result INTO job_id, result
      FROM daybook.enqueue_accounting_job(mark_document_not_ready.org_id, mark_document_not_ready.document_id, version) e;
END
$$;

-- Name: mark_document_ready(text, text, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.mark_document_ready(org_id text, document_id text, priority integer DEFAULT NULL::integer, OUT version bigint, OUT job_id text, OUT result text) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    deleted boolean;
BEGIN
    PERFORM daybook.check_accounting_request(mark_document_ready.org_id, mark_document_ready.document_id, 0, coalesce(mark_document_ready.priority, 2));
    UPDATE daybook.documents d
       SET accounting_ready_at = clock_timestamp(), accounting_ready_version = d.accounting_ready_version + 1, updated_at = clock_timestamp()
     WHERE d.org_id = mark_document_ready.org_id AND d.id = mark_document_ready.document_id
    RETURNING d.accounting_ready_version, d.deleted_at IS NOT NULL INTO version, deleted;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'organization % has no document %', mark_document_ready.org_id, mark_document_ready.document_id
            USING ERRCODE = 'DB013', HINT = 'write the document in the same transaction before it is marked ready';
    END IF;
    IF deleted THEN
        RAISE EXCEPTION 'document % of organization % is deleted', mark_document_ready.document_id, mark_document_ready.org_id
            USING ERRCODE = 'DB014', HINT = 'set deleted_at to null before the document is marked ready';
    END IF;
    SELECT e.job_id, e.result INTO job_id, result
      FROM daybook.enqueue_accounting_job(mark_document_ready.org_id, mark_document_ready.document_id, version, NULL, mark_document_ready.priority) e;
END
$$;

-- Name: match_open_items(text, text[], text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.match_open_items(org_id text, rules text[] DEFAULT '{reference,number,amount}'::text[], actor text DEFAULT SESSION_USER) RETURNS TABLE(document_id text, other_id text, matched_by text, group_id bigint, account_code text, currency text, amount numeric)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
BEGIN
    PERFORM daybook.see_groups_whole();
    IF coalesce(match_open_items.actor, '') = '' THEN
        RAISE EXCEPTION 'who matches them is missing' USING ERRCODE = 'DB010';
    END IF;
    PERFORM pg_advisory_xact_lock(daybook.lock_class('reconciliations'), hashtext(match_open_items.org_id));
    FOREACH matched_by IN ARRAY coalesce(rules, '{}') LOOP
        -- Nearly all pairs are of two documents that are in no group and no other pair: their groups
        -- are made at once.
        FOR document_id, other_id, account_code, currency, amount, group_id IN
            WITH pairs AS MATERIALIZED (
                SELECT row_number() OVER () AS n, m.* FROM daybook.matching_items(match_open_items.org_id, match_open_items.matched_by) m
            ), ends AS (
                SELECT p.n, p.document_id AS id FROM pairs p UNION ALL SELECT p.n, p.other_id FROM pairs p
            ), shared AS (
                SELECT e.n, count(*) OVER (PARTITION BY e.id) > 1 OR r.document_id IS NOT NULL AS shared
                  FROM ends e
                  LEFT JOIN daybook.reconciled r ON r.org_id = match_open_items.org_id AND r.document_id = e.id
            ), alone AS MATERIALIZED (
                SELECT a.n, nextval('daybook.reconciled_group_seq') AS group_id
                  FROM (SELECT s.n FROM shared s GROUP BY s.n HAVING NOT bool_or(s.shared)) a
            ), made AS (
                INSERT INTO daybook.reconciled (org_id, document_id, group_id, matched_by, actor)
                SELECT match_open_items.org_id, e.id, a.group_id, match_open_items.matched_by, match_open_items.actor
                  FROM alone a JOIN ends e ON e.n = a.n
            )
            SELECT p.document_id, p.other_id, p.account_code, p.currency, p.amount, a.group_id
              FROM pairs p LEFT JOIN alone a ON a.n = p.n ORDER BY 1, 2, 3, 4
        LOOP
            IF group_id IS NULL THEN
                group_id := daybook.link_documents(match_open_items.org_id, match_open_items.document_id, match_open_items.other_id,
                    match_open_items.matched_by, match_open_items.actor);
            END IF;
            RETURN NEXT;
        END LOOP;
    END LOOP;
END
$$;

-- Name: FUNCTION match_open_items(org_id text, rules text[], actor text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.match_open_items(org_id text, rules text[], actor text) IS 'Puts documents together whose open items belong together by the rules reference, number and amount, in the order given, and returns them';

-- Name: match_open_items_job(jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.match_open_items_job(argument jsonb) RETURNS jsonb
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT jsonb_build_object('matched', count(*))
      FROM daybook.match_open_items(current_setting('daybook.org_id'),
               coalesce((SELECT array_agg(r) FROM jsonb_array_elements_text(argument -> 'rules') r), '{reference,number,amount}'), 'a scheduled job')
$$;

-- Name: FUNCTION match_open_items_job(argument jsonb); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.match_open_items_job(argument jsonb) IS 'match_open_items as a function of jobs of the type db_function';

-- Name: matching_items(text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.matching_items(org_id text, rule text) RETURNS TABLE(document_id text, other_id text, account_code text, currency text, amount numeric)
    LANGUAGE plpgsql STABLE ROWS 10000
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET work_mem TO '64MB'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    _org CONSTANT text := matching_items.org_id;
BEGIN
    IF rule = 'amount' THEN
        RETURN QUERY
        SELECT min(o.document_id) FILTER (WHERE o.open_amount < 0), min(o.document_id) FILTER (WHERE o.open_amount > 0),
               o.account_code, o.currency, abs(o.open_amount)
          FROM daybook.open_items(_org) o
         WHERE o.counterparty NOT IN ('', '[erased]')
         GROUP BY o.account_code, o.currency, o.counterparty, abs(o.open_amount)
        HAVING count(*) = 2 AND sum(o.open_amount) = 0;
    ELSIF rule = 'number' THEN
        RETURN QUERY
        WITH open AS MATERIALIZED (
            SELECT * FROM daybook.open_items(_org)
        ), texts AS MATERIALIZED (
            SELECT o.document_id, o.account_code, o.currency, o.open_amount,
                   string_to_array(daybook.words_of(concat_ws(' / ', d.content ->> 'number', d.content -> 'attributes' ->> 'text',
                       d.content -> 'attributes' ->> 'reference', d.content -> 'attributes' ->> 'end_to_end')), ' ') AS words
              FROM open o JOIN daybook.documents d ON d.org_id = _org AND d.id = o.document_id
             WHERE o.type NOT IN ('invoice', 'credit_note')
        ), named AS (
            SELECT t.document_id, t.account_code, t.currency, t.open_amount, array_to_string(t.words[f.n:f.n + k.n], ' ') AS number
              FROM texts t
             CROSS JOIN LATERAL generate_series(1, least(cardinality(t.words), 100)) AS f (n)
             CROSS JOIN generate_series(0, 4) AS k (n)
             WHERE f.n + k.n <= cardinality(t.words)
        ), numbers AS MATERIALIZED (
            SELECT o.document_id, o.account_code, o.currency, o.open_amount, daybook.words_of(o.number) AS number
              FROM open o WHERE o.type IN ('invoice', 'credit_note', 'journal') AND octet_length(o.number) >= 3
        ), found AS (
            SELECT DISTINCT n.document_id, o.document_id AS other_id, n.account_code, n.currency, abs(n.open_amount) AS amount
              FROM named n
              JOIN numbers o ON o.account_code = n.account_code AND o.currency = n.currency AND o.open_amount = -n.open_amount
               AND o.number = n.number AND o.document_id <> n.document_id
             WHERE octet_length(n.number) >= 3
        ), pairs AS (
            SELECT f.*, count(*) OVER (PARTITION BY f.document_id, f.account_code, f.currency) AS others,
                   count(*) OVER (PARTITION BY f.other_id, f.account_code, f.currency) AS ones
              FROM found f
        )
        SELECT p.document_id, p.other_id, p.account_code, p.currency, p.amount FROM pairs p WHERE p.others = 1 AND p.ones = 1;
    ELSIF rule = 'reference' THEN
        RETURN QUERY
        WITH refers AS MATERIALIZED (
            SELECT DISTINCT o.document_id, o.account_code, o.currency, abs(o.open_amount) AS amount, CASE o.counterparty WHEN '[erased]' THEN '' ELSE o.counterparty END AS counterparty,
                   o.group_id, r.name
              FROM daybook.open_items(_org) o
              JOIN daybook.documents d ON d.org_id = _org AND d.id = o.document_id
             CROSS JOIN LATERAL jsonb_array_elements_text(CASE jsonb_typeof(d.content -> 'refers_to') WHEN 'array' THEN d.content -> 'refers_to' ELSE '[]' END) AS r (name)
             WHERE d.content ? 'refers_to' AND r.name <> ''
        ), found AS (
            SELECT r.*, d.id AS other_id, true AS by_id, d.content ->> 'counterparty' AS party
              FROM refers r JOIN daybook.documents d ON d.org_id = _org AND d.id = r.name
             UNION ALL
            SELECT r.*, d.id, true, d.content ->> 'counterparty'
              FROM refers r JOIN daybook.posted_elsewhere p ON p.org_id = _org AND p.document_id = r.name AND p.next <> 'full'
              JOIN daybook.documents d ON d.org_id = _org AND d.id = p.open_item
             UNION ALL
            SELECT r.*, d.id, false, d.content ->> 'counterparty'
              FROM refers r JOIN daybook.documents d ON d.org_id = _org AND d.content ->> 'number' = r.name
        ), fitting AS (
            SELECT f.*, count(*) FILTER (WHERE NOT f.by_id) OVER (PARTITION BY f.document_id, f.account_code, f.currency, f.name) AS of_number
              FROM found f
             WHERE f.other_id <> f.document_id AND (f.by_id OR f.party = f.counterparty OR coalesce(f.party, '') IN ('', '[erased]') OR f.counterparty = '')
               AND EXISTS (SELECT FROM daybook.impacts i JOIN daybook.entries e ON e.impact_id = i.id
                            WHERE i.org_id = _org AND i.document_id = f.other_id AND e.account_code = f.account_code AND e.currency = f.currency)
        )
        SELECT DISTINCT f.document_id, f.other_id, f.account_code, f.currency, f.amount
          FROM fitting f
          LEFT JOIN daybook.reconciled r ON r.org_id = _org AND r.document_id = f.other_id
         WHERE (f.by_id OR f.of_number = 1) AND (f.group_id = r.group_id) IS NOT TRUE;
    ELSE
        RAISE EXCEPTION 'rule % is not known', rule USING ERRCODE = 'DB010', HINT = 'the rules are reference, number and amount';
    END IF;
END
$$;

-- Name: may_admit(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.may_admit() RETURNS boolean
    LANGUAGE sql
    AS $$
    SELECT CASE WHEN current_setting('transaction_isolation') = 'read committed' THEN pg_try_advisory_xact_lock(daybook.lock_class('job limits'), 0) ELSE false END
$$;

-- Name: merge_function(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.merge_function(merge text) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
    found text;
BEGIN
    IF merge IS NOT NULL THEN
        SELECT format('%I.%I', n.nspname, p.proname) INTO found
          FROM pg_proc p
          JOIN pg_namespace n ON n.oid = p.pronamespace
         WHERE p.oid = to_regprocedure(merge || '(jsonb,jsonb)') AND p.prorettype = 'jsonb'::regtype AND p.prokind = 'f' AND NOT p.proretset;
        IF found IS NULL THEN
            RAISE EXCEPTION 'there is no function %(jsonb, jsonb) that returns jsonb', merge
                USING ERRCODE = 'DB010', HINT = 'name one that merges the payload that waits and the new one, with its schema, or none: the members of both are taken then';
        END IF;
    END IF;
    RETURN found;
END
$$;

-- Name: merge_payloads(jsonb, jsonb, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.merge_payloads(older jsonb, newer jsonb, merger text) RETURNS jsonb
    LANGUAGE plpgsql
    AS $_$
DECLARE
    merged jsonb := older || newer;
BEGIN
    IF merger IS NOT NULL THEN
        EXECUTE 'SELECT ' || merger || '($1, $2)' INTO merged USING older, newer;
    END IF;
    PERFORM daybook.check_job_payload(merged, merged::text);
    RETURN merged;
END
$_$;

-- Name: minor_digits(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.minor_digits(currency text) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT CASE WHEN currency = ANY ('{BIF,CLP,DJF,GNF,ISK,JPY,KMF,KRW,PYG,RWF,UGX,UYI,VND,VUV,XAF,XOF,XPF,ADP,BEF,BYB,BYR,ESP,GRD,ITL,LUF,MGF,PTE,ROL,TPE,TRL}') THEN 0
                WHEN currency = ANY ('{BHD,IQD,JOD,KWD,LYD,OMR,TND}') THEN 3
                WHEN currency = ANY ('{CLF,UYW}') THEN 4
                ELSE 2 END
$$;

-- Name: move_queue(text, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.move_queue(queue text, batch integer DEFAULT 1000) RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    target smallint;
    others smallint[];
BEGIN
    SELECT u.fleet, ARRAY(SELECT f.id FROM daybook.fleets f WHERE f.id <> u.fleet) INTO target, others FROM daybook.queues u WHERE u.name = move_queue.queue;
    UPDATE daybook.jobs j
       SET fleet = target
     WHERE j.id = ANY (ARRAY(SELECT o.id
                               FROM daybook.jobs o
                              WHERE o.queue = move_queue.queue AND o.state IN ('pending', 'leased', 'failed') AND o.fleet = ANY (others)
                              LIMIT batch
                                FOR NO KEY UPDATE SKIP LOCKED));
    IF FOUND THEN
        PERFORM daybook.wake_job_queue(target);
    END IF;
    RETURN NOT EXISTS (SELECT FROM daybook.jobs o WHERE o.queue = move_queue.queue AND o.state IN ('pending', 'leased', 'failed') AND o.fleet = ANY (others));
END
$$;

-- Name: must_wait(text, text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.must_wait(job_id text, org_id text, sequence text) RETURNS boolean
    LANGUAGE sql STABLE
    AS $_$
    SELECT EXISTS (SELECT FROM daybook.job_waits w WHERE w.job_id = $1 AND num_nulls(w.ended_as) = 1)
           OR $3 IS NOT NULL AND NOT EXISTS (SELECT FROM daybook.job_sequences s WHERE s.org_id = $2 AND s.key = $3 AND s.holder = $1)
$_$;

-- Name: must_wake(integer, timestamp with time zone); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.must_wake(queue integer, due timestamp with time zone) RETURNS boolean
    LANGUAGE sql
    AS $$
    SELECT due <= clock_timestamp() + interval '1 minute' AND NOT pg_try_advisory_xact_lock_shared(daybook.lock_class('wakers'), queue)
$$;

-- Name: new_ids(integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.new_ids(total integer) RETURNS text[]
    LANGUAGE plpgsql
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

-- Name: FUNCTION new_ids(total integer); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.new_ids(total integer) IS 'UUIDs version 7 as text, in ascending order';

-- Name: note_async_operation_types(text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.note_async_operation_types(types text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    known text[];
    seen  timestamptz;
BEGIN
    SELECT w.types, w.last_seen INTO known, seen FROM daybook.job_workers w WHERE w.id = 'async-operations';
    IF NOT FOUND THEN
        IF NOT pg_try_advisory_xact_lock(daybook.lock_class('async operations'), 0) THEN
            RETURN; -- another transaction writes it
        END IF;
        INSERT INTO daybook.job_workers (id, name, types)
        VALUES ('async-operations', 'async operations by SQL', ARRAY(SELECT DISTINCT t FROM unnest(note_async_operation_types.types) t WHERE t IS NOT NULL ORDER BY t))
        ON CONFLICT DO NOTHING;
    ELSIF seen < clock_timestamp() - interval '1 minute' OR NOT note_async_operation_types.types <@ known THEN
        UPDATE daybook.job_workers w
           SET last_seen = clock_timestamp(),
               types = ARRAY(SELECT DISTINCT t FROM unnest(w.types || note_async_operation_types.types) t WHERE t IS NOT NULL ORDER BY t)
         WHERE w.id = (SELECT x.id FROM daybook.job_workers x WHERE x.id = 'async-operations' FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
END
$$;

-- Name: note_closings(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.note_closings(org_id text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    _org    CONSTANT text := note_closings.org_id;
    _now    CONSTANT datemultirange := daybook.closed_days(_org);
    _actor  CONSTANT text := coalesce(nullif(current_setting('daybook.actor', true), ''), session_user::text);
    -- The posting dates that rules compute, by document.
    _dates  CONSTANT jsonb := coalesce(nullif(current_setting('daybook.computed_dates', true), '')::jsonb, '{}');
    c       daybook.closings;
    changed datemultirange;
    span    record;
    want    daybook.period_state;
BEGIN
    SELECT * INTO c FROM daybook.closings x WHERE x.org_id = _org ORDER BY x.number DESC LIMIT 1;
    IF coalesce(c.closed_days, '{}') = _now THEN
        RETURN;
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the isolation level is %: what was posted before the closing may not be seen', current_setting('transaction_isolation')
            USING ERRCODE = 'DB010', HINT = 'close and open periods in a transaction that is READ COMMITTED';
    END IF;
    PERFORM daybook.keep_closed_sums(_org); -- the lists read them
    FOREACH want IN ARRAY ARRAY['open', 'closed']::daybook.period_state[] LOOP
        changed := CASE want WHEN 'open' THEN coalesce(c.closed_days, '{}') - _now ELSE _now - coalesce(c.closed_days, '{}') END;
        FOR span IN
            SELECT p.starts_on, p.ends_on, lead(p.starts_on) OVER (ORDER BY p.starts_on) IS NULL AS last
              FROM daybook.periods p
             WHERE p.org_id = _org AND p.state = want AND daterange(p.starts_on, p.ends_on, '[]') && changed
             UNION ALL
            SELECT lower(changed), upper(changed) - 1, true
             WHERE NOT isempty(changed)
               AND NOT EXISTS (SELECT FROM daybook.periods p
                                WHERE p.org_id = _org AND p.state = want AND daterange(p.starts_on, p.ends_on, '[]') && changed)
             ORDER BY 1
        LOOP
            c.org_id := _org;
            c.number := coalesce(c.number, 0) + 1;
            c.action := CASE want WHEN 'open' THEN 'opened' ELSE 'closed' END;
            c.starts_on := span.starts_on;
            c.ends_on := span.ends_on;
            c.days := changed * datemultirange(CASE WHEN span.last THEN daterange(NULL, NULL) ELSE daterange(NULL, span.ends_on, '[]') END);
            changed := changed - c.days;
            c.closed_days := CASE want WHEN 'open' THEN c.closed_days - c.days ELSE coalesce(c.closed_days, '{}') + c.days END;
            c.closed_by := _actor;
            c.db_role := session_user;
            c.created_at := clock_timestamp();
            -- A sequence that was never used has the value that comes next.
            SELECT s.last_value - CASE WHEN s.is_called THEN 0 ELSE 1 END INTO c.last_impact_id FROM daybook.impact_id_seq s;
            SELECT h.impacts, h.entries, h.hash INTO c.impacts, c.entries, c.impacts_hash FROM daybook.hash_impacts(_org, c.days, c.last_impact_id) h;
            PERFORM daybook.keep_closed_items(_org, c.closed_days);
            c.list := NULL;
            IF want = 'closed' THEN
                SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                           'code', l.code, 'required', l.required, 'count', l.count, 'account', l.account, 'currency', l.currency, 'amount_minor', l.amount,
                           'examples', nullif(l.examples, '{}'), 'what_to_do', l.what_to_do))), '[]') INTO c.list
                  FROM (SELECT array_agg(d.key) AS ids, array_agg(d.value::date) AS days FROM jsonb_each_text(_dates) d) computed
                 CROSS JOIN LATERAL daybook.open_at_closing(_org, c.starts_on, c.ends_on, c.days, coalesce(computed.ids, '{}'), coalesce(computed.days, '{}')) l;
            END IF;
            c.previous_hash := c.hash;
            c.signature := NULL;
            c.key_id := NULL;
            c.hash := daybook.closing_hash(c);
            INSERT INTO daybook.closings SELECT c.*;
        END LOOP;
    END LOOP;
END
$$;

-- Name: note_job_types(text, text, text[], text[], text[], integer[], double precision[], integer[], boolean[], text[], boolean[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.note_job_types(_kind text, _worker text, _types text[], _aliases text[], _owners text[], _attempts integer[], _timeouts double precision[], _parallel integer[], _bulk boolean[], _secrets text[] DEFAULT NULL::text[], _encrypts boolean[] DEFAULT NULL::boolean[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO daybook.job_types AS t (kind, type, alias_of, owner, max_attempts, timeout_seconds, parallel, bulk, worker, secrets, encrypts)
    SELECT _kind, x.type, x.alias_of, x.owner, x.attempts, x.timeout, x.parallel, x.bulk, _worker, coalesce(string_to_array(x.secrets, E'\n'), '{}'),
           coalesce(x.encrypts, false)
      FROM unnest(_types, _aliases, _owners, _attempts, _timeouts, _parallel, _bulk, _secrets, _encrypts)
           AS x (type, alias_of, owner, attempts, timeout, parallel, bulk, secrets, encrypts)
     ORDER BY x.type COLLATE "C"
    ON CONFLICT (kind, type) DO UPDATE
       SET alias_of = excluded.alias_of, owner = coalesce(nullif(excluded.owner, ''), t.owner), max_attempts = excluded.max_attempts,
           timeout_seconds = excluded.timeout_seconds, parallel = excluded.parallel, bulk = excluded.bulk, worker = excluded.worker, last_seen = clock_timestamp(),
           secrets = CASE WHEN _secrets IS NULL THEN t.secrets ELSE excluded.secrets END,
           encrypts = CASE WHEN _encrypts IS NULL THEN t.encrypts ELSE excluded.encrypts END;
    DELETE FROM daybook.job_types t WHERE t.last_seen < clock_timestamp() - interval '90 days';
END
$$;

-- Name: note_limit_rate(text, text, text, timestamp with time zone, timestamp with time zone); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.note_limit_rate(scope text, org_id text, key text, next_at timestamp with time zone, look_at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    IF note_limit_rate.look_at IS NULL AND note_limit_rate.next_at <= clock_timestamp() THEN
        DELETE FROM daybook.job_limit_rates r WHERE r.scope = note_limit_rate.scope AND r.org_id = note_limit_rate.org_id AND r.limit_key = note_limit_rate.key;
        RETURN;
    END IF;
    INSERT INTO daybook.job_limit_rates AS r (scope, org_id, limit_key, next_at, look_at)
    VALUES (note_limit_rate.scope, note_limit_rate.org_id, note_limit_rate.key, note_limit_rate.next_at,
            greatest(coalesce(note_limit_rate.look_at, note_limit_rate.next_at), clock_timestamp() + interval '10 ms'))
    ON CONFLICT (scope, org_id, limit_key) DO UPDATE SET next_at = excluded.next_at, look_at = excluded.look_at
     WHERE (r.next_at, r.look_at) IS DISTINCT FROM (excluded.next_at, excluded.look_at);
END
$$;

-- Name: note_waiting(text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.note_waiting(ids text[]) RETURNS void
    LANGUAGE sql
    AS $$
    INSERT INTO daybook.job_wait_checks (org_id, sequence, job_id)
    SELECT CASE WHEN j.sequence IS NOT NULL THEN j.org_id END, j.sequence, CASE WHEN j.sequence IS NULL THEN j.id END
      FROM daybook.jobs j
     WHERE j.id = ANY (ids) AND j.ready_at = '9999-12-31 00:00:00+00' AND j.state::text = 'pending'
    UNION
    SELECT NULL, NULL, j.id FROM daybook.jobs j WHERE j.id = ANY (ids) AND j.ready_at = '9999-12-31 00:00:00+00' AND j.state::text = 'pending'
$$;

-- Name: notification_stats(text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.notification_stats(p_org_id text DEFAULT NULL::text, p_time_zone text DEFAULT 'UTC'::text, OUT pending bigint, OUT processing bigint, OUT completed bigint, OUT failed bigint, OUT todays_sent bigint) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
    midnight timestamptz;
BEGIN
    BEGIN
        midnight := date_trunc('day', clock_timestamp() AT TIME ZONE p_time_zone) AT TIME ZONE p_time_zone;
    EXCEPTION WHEN invalid_parameter_value THEN
        RAISE EXCEPTION 'there is no time zone %', p_time_zone USING ERRCODE = 'DB010', HINT = 'name it as the IANA database does: Europe/Berlin';
    END;
    SELECT count(*) FILTER (WHERE j.state = 'pending'), count(*) FILTER (WHERE j.state = 'leased'), count(*) FILTER (WHERE j.state = 'completed'),
           count(*) FILTER (WHERE j.state = 'failed'), count(*) FILTER (WHERE j.state = 'completed' AND j.finished_at >= midnight)
      INTO pending, processing, completed, failed, todays_sent
      FROM daybook.jobs j
     WHERE j.type IN ('email', 'sms', 'notification') AND (p_org_id IS NULL OR j.org_id = p_org_id);
END
$$;

-- Name: FUNCTION notification_stats(p_org_id text, p_time_zone text, OUT pending bigint, OUT processing bigint, OUT completed bigint, OUT failed bigint, OUT todays_sent bigint); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.notification_stats(p_org_id text, p_time_zone text, OUT pending bigint, OUT processing bigint, OUT completed bigint, OUT failed bigint, OUT todays_sent bigint) IS 'Counts jobs of the types email, sms and notification, of an organization or of all (null): pending also those that are to be tried again, failed the dead letters, todays_sent those completed since midnight in the time zone';

-- Name: open_at_closing(text, date, date, datemultirange, text[], date[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.open_at_closing(org_id text, starts_on date, ends_on date, days datemultirange, computed_ids text[], computed_days date[]) RETURNS TABLE(code text, required boolean, count bigint, account text, currency text, amount numeric, examples text[], what_to_do text)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
WITH unposted AS MATERIALIZED (
    SELECT * FROM daybook.unposted_documents(open_at_closing.org_id, open_at_closing.days, computed_ids, computed_days)
), open AS (
    SELECT p.starts_on FROM daybook.periods p
     WHERE p.org_id = open_at_closing.org_id AND p.state = 'open' AND p.starts_on < open_at_closing.starts_on
), balances AS (
    SELECT a.role, a.code, b.currency, sum(b.debit - b.credit) AS amount
      FROM daybook.accounts a
      JOIN daybook.account_sums(open_at_closing.org_id, NULL, open_at_closing.ends_on) b ON b.account_code = a.code
     WHERE a.org_id = open_at_closing.org_id AND a.role IN ('suspense', 'rounding')
     GROUP BY a.role, a.code, b.currency
    HAVING sum(b.debit - b.credit) <> 0
), unreconciled AS (
    SELECT i.account_code, i.currency, count(*) AS count, sum(i.open_amount) AS amount,
           (array_agg(i.document_id ORDER BY i.issue_date, i.document_id))[:20] AS examples
      FROM daybook.open_items(open_at_closing.org_id, open_at_closing.ends_on) i
     WHERE CASE i.role WHEN 'receivable' THEN i.open_amount < 0 WHEN 'payable' THEN i.open_amount > 0 END
     GROUP BY i.account_code, i.currency
), taxes AS (
    SELECT t.currency, count(*) AS count, sum(t.stated - t.posted) AS amount,
           (array_agg(t.document_id ORDER BY abs(t.stated - t.posted) DESC, t.document_id))[:20] AS examples
      FROM daybook.vat_differences(open_at_closing.org_id, open_at_closing.starts_on, open_at_closing.ends_on) t
     WHERE EXISTS (SELECT FROM daybook.accounts a WHERE a.org_id = open_at_closing.org_id AND a.role = 'tax')
     GROUP BY t.currency
), exchange AS (
    SELECT o.currency, count(x.difference) AS count, count(x.amount) FILTER (WHERE x.difference IS NULL) AS missing, o.exchange_accounts[1] AS account,
           coalesce(sum(x.difference), 0)
               - coalesce(daybook.exchange_booked(open_at_closing.org_id, o.exchange_accounts[1], open_at_closing.ends_on), 0) AS amount,
           (array_agg(x.credit_document ORDER BY x.credit_day DESC, x.credit_document) FILTER (WHERE x.difference IS NOT NULL))[:20] AS examples,
           (array_agg(DISTINCT x.currency) FILTER (WHERE x.amount IS NOT NULL AND x.difference IS NULL))[:20] AS currencies
      FROM daybook.organizations o
      LEFT JOIN LATERAL daybook.exchange_differences(o.id, open_at_closing.ends_on) x ON true
     WHERE o.id = open_at_closing.org_id AND o.currency IS NOT NULL
     GROUP BY o.currency, o.exchange_accounts
), list (code, required, count, account, currency, amount, examples) AS (
    SELECT CASE u.state WHEN 'failed' THEN 'UNPOSTED_FAILED' ELSE 'UNPOSTED_WAITING' END, true, count(*), NULL, NULL, NULL::numeric,
           (array_agg(u.document_id ORDER BY u.date, u.document_id))[:20]
      FROM (SELECT document_id, date, CASE state WHEN 'failed' THEN 'failed' ELSE 'waiting' END AS state FROM unposted WHERE inside) u
     GROUP BY u.state
     UNION ALL
    SELECT 'OPEN_BEFORE', true, count(*), NULL, NULL, NULL, (array_agg(to_char(o.starts_on, 'YYYY-MM-DD') ORDER BY o.starts_on))[:20]
      FROM open o
    HAVING count(*) > 0
     UNION ALL
    SELECT 'UNDATED', false, count(*), NULL, NULL, NULL, (array_agg(u.document_id ORDER BY u.document_id))[:20]
      FROM unposted u WHERE u.inside IS NULL
    HAVING count(*) > 0
     UNION ALL
    SELECT upper(b.role), false, 1, b.code, b.currency, b.amount, '{}'
      FROM balances b
     UNION ALL
    SELECT 'UNRECONCILED', false, u.count, u.account_code, u.currency, u.amount, u.examples
      FROM unreconciled u
     UNION ALL
    SELECT 'EXCHANGE', false, x.count, x.account, x.currency, x.amount, x.examples
      FROM exchange x WHERE x.amount <> 0
     UNION ALL
    SELECT 'RATES', false, x.missing, NULL, NULL, NULL, x.currencies
      FROM exchange x WHERE x.missing > 0
     UNION ALL
    SELECT 'TAX', false, t.count, NULL, t.currency, t.amount, t.examples
      FROM taxes t
)
SELECT l.code, l.required, l.count, l.account, l.currency, l.amount, l.examples, t.what_to_do
  FROM list l
  LEFT JOIN (VALUES (1, 'UNPOSTED_FAILED', 'Mend what each failed for: a worker tries it again'),
                    (2, 'UNPOSTED_WAITING', 'Wait until the workers have posted them'),
                    (3, 'OPEN_BEFORE', 'Close them first'),
                    (4, 'UNDATED', 'Have them posted if they belong to the period'),
                    (5, 'SUSPENSE', 'Find out where the amounts belong, and post them there'),
                    (6, 'ROUNDING', 'Check that it is as small as roundings are'),
                    (7, 'UNRECONCILED', 'Put them together with what they pay or correct, or leave them open'),
                    (8, 'EXCHANGE', 'Book them until the last day'),
                    (9, 'RATES', 'Add the rates'),
                    (10, 'TAX', 'Compare what they state with what is posted, and mend the documents or the rules')) AS t (place, code, what_to_do) ON t.code = l.code
 ORDER BY t.place, l.account, l.currency
$$;

-- Name: open_item_ends(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.open_item_ends() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    DELETE FROM daybook.posted_elsewhere p WHERE p.org_id = OLD.org_id AND p.open_item = OLD.id AND p.system = 'opening';
    UPDATE daybook.posted_elsewhere p SET open_item = NULL, updated_at = clock_timestamp() WHERE p.org_id = OLD.org_id AND p.open_item = OLD.id;
    RETURN NULL;
END
$$;

-- Name: open_item_of(text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.open_item_of(org_id text, document_id text) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
    SELECT coalesce((SELECT p.open_item FROM daybook.posted_elsewhere p WHERE p.org_id = $1 AND p.document_id = $2 AND p.next <> 'full'), $2)
$_$;

-- Name: open_items(text, date); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.open_items(org_id text, on_day date DEFAULT NULL::date) RETURNS TABLE(document_id text, account_code text, currency text, role text, type text, direction text, number text, counterparty text, issue_date date, due_date date, amount numeric, open_amount numeric, group_id bigint)
    LANGUAGE sql STABLE ROWS 100000
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT * FROM daybook.items_until(open_items.org_id, open_items.on_day, NULL, false)
$$;

-- Name: FUNCTION open_items(org_id text, on_day date); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.open_items(org_id text, on_day date) IS 'What is open on a day (null: of all that is posted) of each document on accounts of receivables, payables and advances: debits less credits, in minor units';

-- Name: open_twin(daybook.jobs); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.open_twin(job daybook.jobs) RETURNS text
    LANGUAGE sql STABLE
    AS $_$
    SELECT o.id FROM daybook.jobs o
     WHERE o.org_id = $1.org_id AND o.unique_hash = $1.unique_hash AND o.state IN ('pending', 'leased') AND o.id <> $1.id
$_$;

-- Name: open_units(text, date, text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.open_units(org_id text, until date, accounts text[]) RETURNS TABLE(group_id bigint, document_id text, account_code text, currency text, amount numeric)
    LANGUAGE plpgsql STABLE ROWS 10000
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    SET jit TO 'off'
    SET random_page_cost TO '1.1'
    SET work_mem TO '64MB'
    AS $$
#variable_conflict use_column
DECLARE
    _org   CONSTANT text := open_units.org_id;
    _until CONSTANT date := coalesce(open_units.until, 'infinity');
    _kept  CONSTANT date := coalesce((SELECT max(k.last_day) FROM daybook.closed_item_days k
                                       WHERE k.org_id = _org AND k.last_day <= _until AND k.accounts @> open_units.accounts), '-infinity');
    _first bigint;
    _last  bigint;
BEGIN
    SELECT min(i.id + 0), max(i.id + 0) INTO _first, _last
      FROM daybook.impacts i WHERE i.org_id = _org AND i.posting_date > _kept AND i.posting_date <= _until;
    RETURN QUERY
    SELECT r.group_id, CASE WHEN r.group_id IS NULL THEN x.document_id END, x.account_code, x.currency, sum(x.amount)
      FROM (SELECT k.document_id, k.account_code, k.currency, k.amount
              FROM daybook.closed_items k WHERE k.org_id = _org AND k.last_day = _kept AND k.account_code = ANY (accounts)
             UNION ALL
            SELECT i.document_id, e.account_code, e.currency, (CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)::numeric
              FROM daybook.impacts i
              JOIN daybook.entries e ON e.impact_id = i.id AND e.impact_id BETWEEN _first AND _last AND e.account_code = ANY (accounts)
             WHERE i.org_id = _org AND i.posting_date > _kept AND i.posting_date <= _until) x
      LEFT JOIN daybook.reconciled r ON r.org_id = _org AND r.document_id = x.document_id
     GROUP BY 1, 2, 3, 4
    HAVING sum(x.amount) <> 0;
END
$$;

-- Name: organization_starts(daybook.organizations); Type: FUNCTION; Schema: daybook; Owner: -

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

-- Name: pass_limits(integer, timestamp with time zone); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.pass_limits(batch integer, since timestamp with time zone, OUT decided integer, OUT again integer, OUT left_from timestamp with time zone) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    asked record;
    ids   text[];
    -- Times that an index can begin and end at: behind the last one may be a million jobs.
    first CONSTANT timestamptz := coalesce(since, statement_timestamp() - interval '1 minute');
    due   CONSTANT timestamptz := clock_timestamp();
BEGIN
    decided := 0;
    again := 0;
    left_from := since;
    IF NOT daybook.may_admit() THEN
        again := 1;
        RETURN;
    END IF;
    SELECT array_agg(x.id), max(x.ready_at) INTO ids, left_from
      FROM (SELECT j.id, j.ready_at
              FROM daybook.jobs j
             WHERE j.fleet = -1 AND num_nulls(nullif(j.state, 'pending')) = 1 AND j.ready_at BETWEEN first AND due
             ORDER BY j.ready_at
             LIMIT batch
               FOR NO KEY UPDATE SKIP LOCKED) x;
    IF coalesce(cardinality(ids), 0) < batch THEN
        left_from := NULL;
    ELSE
        -- All of these may be of one key. Those that came last, of other keys, do not wait for them.
        ids := ids || ARRAY(SELECT j.id
                              FROM daybook.jobs j
                             WHERE j.fleet = -1 AND num_nulls(nullif(j.state, 'pending')) = 1 AND j.ready_at BETWEEN first AND due AND j.id <> ALL (ids)
                             ORDER BY j.ready_at DESC
                             LIMIT batch / 5
                               FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    IF ids IS NOT NULL THEN
        decided := cardinality(ids);
        FOR asked IN SELECT * FROM daybook.join_limits(ids) LOOP
            IF NOT daybook.admit_limited(asked.scope, asked.org_id, asked.limit_key) THEN
                INSERT INTO daybook.job_wait_checks (limit_scope, org_id, limit_key) VALUES (asked.scope, asked.org_id, asked.limit_key);
                again := again + 1;
            END IF;
        END LOOP;
        PERFORM daybook.wake_job_queue();
    END IF;
    -- The bucket of a key that is at rest goes, and so does that of a scope without a rate.
    DELETE FROM daybook.job_limit_rates r
     USING (SELECT *
              FROM daybook.job_limit_rates x
             WHERE x.look_at BETWEEN first AND due
             ORDER BY x.look_at
             LIMIT batch
               FOR UPDATE SKIP LOCKED) d
     WHERE r.scope = d.scope AND r.org_id = d.org_id AND r.limit_key = d.limit_key
       AND (r.next_at <= clock_timestamp() AND NOT EXISTS (SELECT FROM daybook.jobs j WHERE j.limit_scope = r.scope AND j.org_id = r.org_id AND j.limit_key = r.limit_key AND j.finished_at IS NULL AND j.fleet = -2)
            OR NOT EXISTS (SELECT FROM daybook.job_limits l WHERE l.scope = r.scope AND l.rate IS NOT NULL));
    FOR asked IN SELECT x.*, row_number() OVER (ORDER BY x.look_at) AS nth
                   FROM (SELECT r.scope, r.org_id, r.limit_key, r.look_at
                           FROM daybook.job_limit_rates r
                          WHERE r.look_at BETWEEN first AND due
                          ORDER BY r.look_at
                          LIMIT batch
                            FOR NO KEY UPDATE SKIP LOCKED) x
                  ORDER BY x.look_at LOOP
        decided := decided + 1;
        IF asked.nth = batch THEN
            left_from := least(left_from, asked.look_at);
        END IF;
        IF NOT daybook.admit_limited(asked.scope, asked.org_id, asked.limit_key) THEN
            again := again + 1;
        END IF;
    END LOOP;
END
$$;

-- Name: pass_on_place(text, text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.pass_on_place(scope text, org_id text, key text) RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    crew smallint;
BEGIN
    UPDATE daybook.jobs j
       SET fleet = coalesce((SELECT u.fleet FROM daybook.queues u WHERE u.name = j.queue), 0), ready_at = clock_timestamp(),
           first_ready_at = CASE WHEN j.run_count = 0 THEN clock_timestamp() ELSE j.first_ready_at END, updated_at = clock_timestamp()
     WHERE j.id = (SELECT n.id
                     FROM daybook.jobs n
                    WHERE n.limit_scope = pass_on_place.scope AND n.org_id = pass_on_place.org_id AND n.limit_key = pass_on_place.key AND n.finished_at IS NULL AND n.fleet = -2
                    ORDER BY n.priority, n.ready_at, n.id
                    LIMIT 1
                      FOR NO KEY UPDATE SKIP LOCKED)
       AND j.fleet = -2
       AND (SELECT l.rate IS NULL AND l.parallel > (SELECT count(*) FROM daybook.limited_places(pass_on_place.scope, pass_on_place.org_id, pass_on_place.key))
              FROM daybook.job_limits l WHERE l.scope = pass_on_place.scope)
    RETURNING j.fleet INTO crew;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM daybook.wake_job_queue(crew);
    RETURN true;
END
$$;

-- Name: patch_json(jsonb, jsonb); Type: FUNCTION; Schema: daybook; Owner: -

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

-- Name: FUNCTION patch_json(doc jsonb, patch jsonb); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.patch_json(doc jsonb, patch jsonb) IS 'The document with a JSON patch (RFC 6902); null: the patch does not apply, because a place is missing or a test fails';

-- Name: patched_payload(jsonb, jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.patched_payload(payload jsonb, patch jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
DECLARE
    patched CONSTANT jsonb := nullif(daybook.patch_json(payload, patch), payload);
BEGIN
    IF patched IS NOT NULL AND patched -> '$encrypted' IS DISTINCT FROM payload -> '$encrypted' THEN
        RAISE EXCEPTION 'a JSON patch reaches the plain members of a payload alone, not "$encrypted"' USING ERRCODE = 'DB010';
    END IF;
    RETURN patched;
END
$_$;

-- Name: pause_queue(text, boolean); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.pause_queue(name text, paused boolean DEFAULT true) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    target CONSTANT smallint := daybook.queue_fleet(pause_queue.name);
BEGIN
    UPDATE daybook.queues u
       SET paused_at = CASE WHEN pause_queue.paused THEN clock_timestamp() END, updated_at = clock_timestamp()
     WHERE u.name = pause_queue.name AND (u.paused_at IS NOT NULL) <> pause_queue.paused;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF NOT pause_queue.paused THEN
        PERFORM daybook.wake_job_queue(target);
    END IF;
    RETURN true;
END
$$;

-- Name: FUNCTION pause_queue(name text, paused boolean); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.pause_queue(name text, paused boolean) IS 'Pauses a named queue, or, with false, resumes it';

-- Name: periods_noted(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.periods_noted() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM daybook.note_closings(CASE WHEN TG_OP = 'DELETE' THEN OLD.org_id ELSE NEW.org_id END);
    RETURN NULL;
END
$$;

-- Name: put_step(text, boolean, text, integer, integer, jsonb, boolean, integer, double precision, boolean); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.put_step(job_id text, awaited boolean, name text, place integer, attempt integer, result jsonb, done boolean, round integer, took_seconds double precision, again boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT put_step.awaited THEN
        UPDATE daybook.jobs j SET awaited = true WHERE j.id = put_step.job_id;
    END IF;
    INSERT INTO daybook.job_steps AS s (job_id, name, position, attempt, result, done, times, started_at)
    VALUES (put_step.job_id, put_step.name, put_step.place, put_step.attempt, put_step.result, put_step.done, put_step.round,
            clock_timestamp() - make_interval(secs => put_step.took_seconds))
        ON CONFLICT ON CONSTRAINT job_steps_pkey DO UPDATE
       SET position = excluded.position, attempt = excluded.attempt, result = excluded.result, done = excluded.done, times = excluded.times,
           kept_at = clock_timestamp()
     WHERE s.times = excluded.times - 1 OR put_step.again AND s.times = excluded.times AND s.attempt = excluded.attempt;
    RETURN FOUND;
END
$$;

-- Name: queue_fleet(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.queue_fleet(queue text) RETURNS smallint
    LANGUAGE plpgsql STABLE
    AS $_$
DECLARE
    found smallint;
BEGIN
    SELECT u.fleet INTO found FROM daybook.queues u WHERE u.name = queue_fleet.queue;
    IF found IS NULL AND (queue_fleet.queue IS NULL OR octet_length(queue_fleet.queue) > 64 OR queue_fleet.queue !~ '^[A-Za-z][A-Za-z0-9_.:-]*$') THEN
        RAISE EXCEPTION 'queue must be a letter and then letters, digits, "_", ".", ":" or "-", 64 bytes at most' USING ERRCODE = 'DB010';
    END IF;
    IF found IS NULL THEN
        RAISE EXCEPTION 'there is no queue %', quote_literal(queue_fleet.queue)
            USING ERRCODE = 'DB023', HINT = 'make it first: SELECT daybook.set_queue(name), or `daybook queues create NAME`';
    END IF;
    RETURN found;
END
$_$;

-- Name: FUNCTION queue_fleet(queue text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.queue_fleet(queue text) IS 'The fleet that works a queue; DB023 when there is no such queue';

-- Name: queues; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.queues (
    name text NOT NULL COLLATE pg_catalog."C",
    fleet smallint DEFAULT 0 NOT NULL,
    max_parallel integer,
    rate integer,
    rate_seconds double precision,
    rate_burst integer,
    owner text DEFAULT ''::text NOT NULL,
    paused_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    per_process integer,
    set_by text,
    set_at timestamp with time zone,
    declared jsonb,
    CONSTRAINT queues_check CHECK (((set_by IS NULL) = (set_at IS NULL))),
    CONSTRAINT queues_check1 CHECK (((declared IS NULL) OR (set_by IS NOT NULL))),
    CONSTRAINT queues_check2 CHECK (((rate IS NULL) = (rate_seconds IS NULL))),
    CONSTRAINT queues_check3 CHECK (((rate_burst IS NULL) OR (rate IS NOT NULL))),
    CONSTRAINT queues_max_parallel_check CHECK ((max_parallel > 0)),
    CONSTRAINT queues_name_check CHECK (((name ~ '^[A-Za-z][A-Za-z0-9_.:-]{0,63}$'::text) AND (name <> 'default'::text))),
    CONSTRAINT queues_owner_check CHECK ((octet_length(owner) <= 255)),
    CONSTRAINT queues_per_process_check CHECK ((per_process > 0)),
    CONSTRAINT queues_rate_burst_check CHECK ((rate_burst > 0)),
    CONSTRAINT queues_rate_check CHECK ((rate > 0)),
    CONSTRAINT queues_rate_seconds_check CHECK (((rate_seconds >= (0.001)::double precision) AND (rate_seconds <= (31536000)::double precision))),
    CONSTRAINT queues_set_by_check CHECK (((octet_length(set_by) >= 1) AND (octet_length(set_by) <= 255)))
);

-- Name: COLUMN queues.fleet; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.queues.fleet IS 'The fleet whose workers work it';

-- Name: COLUMN queues.max_parallel; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.queues.max_parallel IS 'How many of its jobs may be leased at a time, over all workers; null: any number';

-- Name: COLUMN queues.rate; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.queues.rate IS 'How many attempts may begin in rate_seconds, over all workers; null: any number';

-- Name: COLUMN queues.rate_burst; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.queues.rate_burst IS 'How many of them may begin at once; null: what the rate allows in 50 ms, at least one';

-- Name: COLUMN queues.owner; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.queues.owner IS 'The team or contact responsible; empty: it is not said';

-- Name: COLUMN queues.paused_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.queues.paused_at IS 'Since when nothing of it is leased; null: it is not paused';

-- Name: COLUMN queues.per_process; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.queues.per_process IS 'How many of its jobs each worker process may have leased at a time; null: any number';

-- Name: COLUMN queues.set_by; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.queues.set_by IS 'Which person has set the settings; null: they are those that programs ask for';

-- Name: COLUMN queues.declared; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.queues.declared IS 'While a person has set them, those that programs have asked for last, as arguments of set_queue; null: none has';

-- Name: queue_settings(daybook.queues); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.queue_settings(of daybook.queues) RETURNS jsonb
    LANGUAGE sql STABLE
    AS $_$
    SELECT jsonb_build_object('fleet', (SELECT f.name FROM daybook.fleets f WHERE f.id = $1.fleet), 'max_parallel', $1.max_parallel, 'rate', $1.rate,
                              'rate_seconds', $1.rate_seconds, 'rate_burst', $1.rate_burst, 'owner', $1.owner, 'per_process', $1.per_process)
$_$;

-- Name: queue_starts(daybook.queues); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.queue_starts(of daybook.queues) RETURNS double precision
    LANGUAGE plpgsql
    AS $$
DECLARE
    most CONSTANT double precision := coalesce(of.rate_burst, greatest(1, ceil(of.rate * 0.05 / of.rate_seconds)));
BEGIN
    RETURN least(most, coalesce((SELECT r.starts + greatest(extract(epoch FROM clock_timestamp() - r.at), 0) * of.rate / of.rate_seconds
                                   FROM daybook.queue_rates r WHERE r.queue = of.name), most));
END
$$;

-- Name: queue_uncounted(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.queue_uncounted(queue text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    RETURN (SELECT CASE WHEN u.paused_at IS NULL THEN num_nonnulls(u.max_parallel, u.rate, u.per_process) = 0 END
              FROM (SELECT) AS one LEFT JOIN daybook.queues u ON u.name = queue_uncounted.queue);
END
$$;

-- Name: read_taxes(text, date, date, text[], boolean, boolean); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.read_taxes(org_id text, from_day date, to_day date, accounts text[], by_impact boolean, by_document boolean) RETURNS TABLE(kind text, impact_id bigint, document_id text, account_code text, currency text, direction text, country text, category text, code text, rate numeric, documents bigint, base numeric, tax numeric, posted numeric)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    SET jit TO 'off'
    SET random_page_cost TO '1.1'
    SET work_mem TO '64MB'
    SET enable_sort TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    _org   CONSTANT text := read_taxes.org_id;
    _kept  CONSTANT boolean := NOT by_impact AND EXISTS (SELECT FROM daybook.closed_sum_spans k WHERE k.org_id = _org AND from_day BETWEEN k.starts_on AND k.ends_on);
    _elsewhere CONSTANT boolean := EXISTS (SELECT FROM daybook.posted_elsewhere p WHERE p.org_id = _org);
    _first bigint;
    _last  bigint;
    _n     bigint;
    _first_document text;
    _last_document  text;
    _dense boolean;
BEGIN
    SELECT min(i.id + 0), max(i.id + 0), min(i.document_id), max(i.document_id), count(*) INTO _first, _last, _first_document, _last_document, _n
      FROM daybook.impacts i WHERE i.org_id = _org AND i.posting_date BETWEEN from_day AND to_day;
    IF _n = 0 THEN
        RETURN;
    END IF;
    _dense := _last - _first < 4 * _n;
    RETURN QUERY
    WITH reversals AS NOT MATERIALIZED (
        SELECT r.id, r.document_id, r.seq, r.posting_date FROM daybook.impacts r WHERE r.org_id = _org AND r.kind = 'reverse'
    ), span AS MATERIALIZED (
        SELECT i.id, i.document_id, i.kind = 'post' AND i.entry_count > 0 AND r.seq IS NULL
                   AND NOT (_elsewhere AND EXISTS (SELECT FROM daybook.posted_elsewhere p JOIN daybook.entries e ON e.impact_id = i.id AND e.rule_line_id = 'posted-elsewhere'
                                                    WHERE p.org_id = _org AND p.document_id = i.document_id)) AS live,
               r.seq IS NOT NULL AS reversed
          FROM daybook.impacts i LEFT JOIN reversals r ON r.document_id = i.document_id AND r.seq = i.seq + 1
         WHERE i.org_id = _org AND i.posting_date BETWEEN from_day AND to_day
    ), replaced AS MATERIALIZED (
        SELECT i.id, i.document_id, k.type, k.direction, k.currency, k.country, k.taxes
          FROM span i JOIN daybook.replaced_taxes k ON k.impact_id = i.id AND k.impact_id BETWEEN _first AND _last
         WHERE NOT _kept AND i.live AND k.confirmations = (SELECT count(*) FROM daybook.confirmations c WHERE c.impact_id = i.id)
    ), contents AS NOT MATERIALIZED (
        SELECT i.id, i.document_id, d.type, d.direction, d.currency, d.content ->> 'country' AS country, d.content -> 'taxes' AS taxes
          FROM span i JOIN daybook.documents d ON d.org_id = _org AND d.id = i.document_id AND d.id BETWEEN _first_document AND _last_document
         WHERE NOT _kept AND i.live AND NOT EXISTS (SELECT FROM replaced r WHERE r.id = i.id)
         UNION ALL
        SELECT r.* FROM replaced r
    ), live AS MATERIALIZED (
        SELECT c.id, c.document_id, c.currency, CASE WHEN c.type <> 'payment' THEN c.direction WHEN c.direction = 'in' THEN 'out' ELSE 'in' END AS direction,
               CASE WHEN c.type IN ('credit_note', 'refund') THEN -1 ELSE 1 END AS sign, coalesce(c.country, '') AS country, c.taxes
          FROM contents c
    ), members AS NOT MATERIALIZED (
        SELECT l.id, l.document_id, l.currency, l.direction, l.country, l.sign, l.taxes -> 0 AS t, true AS single
          FROM live l
         WHERE CASE jsonb_typeof(l.taxes) WHEN 'array' THEN jsonb_array_length(l.taxes) = 1 END
         UNION ALL
        SELECT l.id, l.document_id, l.currency, l.direction, l.country, l.sign, jsonb_array_elements(l.taxes), false
          FROM live l
         WHERE CASE jsonb_typeof(l.taxes) WHEN 'array' THEN jsonb_array_length(l.taxes) > 1 END
    ), taxes AS NOT MATERIALIZED (
        SELECT m.id, m.document_id, m.currency, m.direction, m.country, m.single, coalesce(m.t ->> 'category', '') AS category, coalesce(m.t ->> 'code', '') AS code,
               trim_scale(coalesce(daybook.stated_number(m.t ->> 'rate'), daybook.stated_number(m.t ->> 'rate_bp') / 100, 0)) AS rate,
               m.sign * coalesce(daybook.stated_number(m.t ->> 'base'), 0) AS base, m.sign * coalesce(daybook.stated_number(m.t ->> 'amount'), 0) AS tax
          FROM members m
    ), stated AS MATERIALIZED (
        SELECT true AS live, t.id, t.document_id, t.currency, t.direction, t.country, t.category, t.code, t.rate, 1 AS documents, t.base, t.tax
          FROM taxes t WHERE t.single
         UNION ALL
        SELECT true, t.id, t.document_id, t.currency, t.direction, t.country, t.category, t.code, t.rate, 1, sum(t.base), sum(t.tax)
          FROM taxes t WHERE NOT t.single GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
         UNION ALL
        SELECT false, i.id, i.document_id, k.currency, k.direction, k.country, k.category, k.code, k.rate, 1, k.base, k.tax
          FROM span i JOIN daybook.closed_taxes k ON k.impact_id = i.id AND k.impact_id BETWEEN _first AND _last
         WHERE _kept
         UNION ALL
        SELECT false, i.id, i.document_id, k.currency, k.direction, k.country, k.category, k.code, k.rate, 1, k.base, k.tax
          -- Few are reversed, which PostgreSQL cannot know: each is looked up.
          FROM span i CROSS JOIN LATERAL (SELECT * FROM daybook.closed_taxes x WHERE x.impact_id = i.id OFFSET 0) k
         WHERE NOT _kept AND i.reversed
         UNION ALL
        SELECT false, r.id, r.document_id, k.currency, k.direction, k.country, k.category, k.code, k.rate, -1, -k.base, -k.tax
          FROM reversals r
          JOIN daybook.impacts p ON p.org_id = _org AND p.document_id = r.document_id AND p.seq = r.seq - 1
          JOIN daybook.closed_taxes k ON k.impact_id = p.id
         WHERE r.posting_date BETWEEN from_day AND to_day
    ), lines AS MATERIALIZED (
        SELECT e.impact_id, e.account_code, e.currency, CASE e.side WHEN 'credit' THEN e.amount_minor ELSE -e.amount_minor END AS amount
          FROM daybook.entries e WHERE _dense AND e.impact_id BETWEEN _first AND _last AND e.account_code = ANY (accounts)
    ), posted AS MATERIALIZED (
        SELECT i.document_id, l.account_code, l.currency, l.amount FROM lines l JOIN span i ON i.id = l.impact_id
         UNION ALL
        SELECT i.document_id, e.account_code, e.currency, CASE e.side WHEN 'credit' THEN e.amount_minor ELSE -e.amount_minor END
          FROM span i JOIN daybook.entries e ON e.impact_id = i.id
         WHERE NOT _dense AND e.account_code = ANY (accounts)
    )
    SELECT 'impact', s.id, s.document_id, '', s.currency, s.direction, s.country, s.category, s.code, s.rate, 1::bigint, s.base, s.tax, NULL::numeric
      FROM stated s WHERE by_impact AND s.live
     UNION ALL
    SELECT 'stated', NULL, '', '', s.currency, s.direction, s.country, s.category, s.code, s.rate, sum(s.documents), sum(s.base), sum(s.tax), NULL
      FROM stated s
     GROUP BY s.currency, s.direction, s.country, s.category, s.code, s.rate
     UNION ALL
    SELECT 'posted', NULL, '', p.account_code, p.currency, '', '', '', '', NULL, NULL, NULL, NULL, sum(p.amount)
      FROM posted p GROUP BY p.account_code, p.currency
     UNION ALL
    SELECT 'document', NULL, x.document_id, '', x.currency, '', '', '', '', NULL, NULL, NULL, sum(x.stated), sum(x.posted)
      FROM (SELECT s.document_id, s.currency, CASE s.direction WHEN 'out' THEN s.tax ELSE -s.tax END AS stated, 0 AS posted FROM stated s
             UNION ALL
            SELECT p.document_id, p.currency, 0, p.amount FROM posted p) x
     WHERE by_document
     GROUP BY x.document_id, x.currency
    HAVING sum(x.stated) <> sum(x.posted);
END
$$;

-- Name: reclaim_claimed_jobs(timestamp with time zone); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.reclaim_claimed_jobs(seen timestamp with time zone) RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
    job   daybook.jobs;
    total integer := 0;
BEGIN
    IF seen > clock_timestamp() - interval '10 seconds' THEN
        RETURN 0;
    END IF;
    FOR job IN
        SELECT * FROM daybook.jobs j
         WHERE j.state = 'leased' AND j.last_attempted_at < seen - interval '20 seconds' AND starts_with(j.turn_id, '/sql/')
         ORDER BY j.last_attempted_at
         LIMIT 1000
           FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        PERFORM daybook.end_async_operation(job, 'lost', NULL, 'JOB_LOCK_TIMEOUT_RECLAIMED', 'the worker ended while it worked on this job', NULL);
        total := total + 1;
    END LOOP;
    RETURN total;
END
$$;

-- Name: FUNCTION reclaim_claimed_jobs(seen timestamp with time zone); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.reclaim_claimed_jobs(seen timestamp with time zone) IS 'Ends claims by SQL that had not been renewed for 20 seconds at a time, ten seconds ago or longer, when the caller saw the database: their jobs are due again, or dead letters after their last attempt. claim_jobs calls it';

-- Name: reconcile(text, text[], text, text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.reconcile(org_id text, documents text[], reason text DEFAULT ''::text, matched_by text DEFAULT 'hand'::text, actor text DEFAULT SESSION_USER) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    _org   CONSTANT text := reconcile.org_id;
    ids    text[];
    groups bigint[];
    target bigint;
    bad    text;
BEGIN
    PERFORM daybook.see_groups_whole();
    ids := ARRAY(SELECT DISTINCT daybook.open_item_of(_org, u.id) FROM unnest(documents) AS u (id) WHERE u.id IS NOT NULL ORDER BY 1);
    IF cardinality(ids) < 2 OR reconcile.reason IS NULL OR octet_length(reconcile.reason) > 1000 OR coalesce(reconcile.actor, '') = '' THEN
        RAISE EXCEPTION 'a group takes two documents at least, a reason of at most 1000 bytes, and who puts them together' USING ERRCODE = 'DB010';
    END IF;
    PERFORM pg_advisory_xact_lock(daybook.lock_class('reconciliations'), hashtext(_org));
    SELECT u.id INTO bad FROM unnest(ids) AS u (id)
     WHERE NOT EXISTS (SELECT FROM daybook.impacts i JOIN daybook.entries e ON e.impact_id = i.id
                         JOIN daybook.accounts a ON a.org_id = _org AND a.code = e.account_code AND a.role IN ('receivable', 'payable', 'advance')
                        WHERE i.org_id = _org AND i.document_id = u.id)
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'document % of organization % has nothing on an account with open items', bad, _org
            USING ERRCODE = 'DB013', HINT = 'wait until it is posted; accounts have open items by their role: receivable, payable or advance';
    END IF;
    groups := ARRAY(SELECT DISTINCT r.group_id FROM daybook.reconciled r WHERE r.org_id = _org AND r.document_id = ANY (ids) ORDER BY 1);
    target := coalesce(groups[1], nextval('daybook.reconciled_group_seq'));
    UPDATE daybook.reconciled r SET group_id = target WHERE r.org_id = _org AND r.group_id = ANY (groups[2:]);
    INSERT INTO daybook.reconciled AS r (org_id, document_id, group_id, matched_by, reason, actor)
    SELECT _org, u.id, target, reconcile.matched_by, reconcile.reason, reconcile.actor FROM unnest(ids) AS u (id)
        ON CONFLICT ON CONSTRAINT reconciled_pkey DO NOTHING;
    RETURN target;
END
$$;

-- Name: FUNCTION reconcile(org_id text, documents text[], reason text, matched_by text, actor text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.reconcile(org_id text, documents text[], reason text, matched_by text, actor text) IS 'Puts documents, and the groups that they are in, into one group, and returns its number';

-- Name: refuse_change(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'daybook.% is append-only: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'DB004', HINT = 'correct a posting by a reversal and a new impact';
END
$$;

-- Name: refuse_change_of_action(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.refuse_change_of_action() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NEW.subject = '' AND NEW.details - 'erased' = '{}'
       AND (NEW.id, NEW.at, NEW.via, NEW.action, NEW.token_id, NEW.actor, NEW.db_role, NEW.org_id, NEW.outcome, NEW.code)
           IS NOT DISTINCT FROM (OLD.id, OLD.at, OLD.via, OLD.action, OLD.token_id, OLD.actor, OLD.db_role, OLD.org_id, OLD.outcome, OLD.code)
       AND EXISTS (SELECT 1 FROM daybook.erasures e
                    WHERE e.id = NEW.details ->> 'erased' AND e.finished_at IS NULL AND (e.org_id = NEW.org_id OR NEW.org_id IS NULL)) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'daybook.actions is append-only: UPDATE refused' USING ERRCODE = 'DB004', HINT = 'write an action of its own';
END
$$;

-- Name: refuse_removal(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.refuse_removal() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'daybook.% keeps its row: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'DB004', HINT = 'update it instead';
END
$$;

-- Name: refuse_row(text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.refuse_row(table_name text, rule text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'new row for relation "%" violates check constraint "%"', table_name, rule
        USING ERRCODE = 'check_violation', SCHEMA = 'daybook', TABLE = table_name, CONSTRAINT = rule;
END
$$;

-- Name: release_jobs(text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.release_jobs(ids text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    due timestamptz;
BEGIN
    WITH released AS (
        UPDATE daybook.jobs j
           SET ready_at = greatest(j.first_ready_at, clock_timestamp()), first_ready_at = greatest(j.first_ready_at, clock_timestamp()),
               updated_at = clock_timestamp()
         WHERE j.id = ANY (ids) AND j.state::text = 'pending' AND j.ready_at = '9999-12-31 00:00:00+00' AND NOT daybook.must_wait(j.id, j.org_id, j.sequence)
        RETURNING j.ready_at
    )
    SELECT min(r.ready_at) INTO due FROM released r;
    IF due <= clock_timestamp() + interval '1 minute' THEN
        PERFORM daybook.wake_job_queue();
    END IF;
END
$$;

-- Name: release_queue(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.release_queue(name text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    held daybook.queues;
BEGIN
    PERFORM daybook.queue_fleet(release_queue.name);
    SELECT u.* INTO held FROM daybook.queues u WHERE u.name = release_queue.name FOR NO KEY UPDATE;
    IF held.set_by IS NULL THEN
        RETURN false;
    END IF;
    UPDATE daybook.queues u SET set_by = NULL, set_at = NULL, declared = NULL, updated_at = clock_timestamp() WHERE u.name = held.name;
    IF held.declared IS NOT NULL THEN
        PERFORM daybook.set_queue(held.name, d.fleet, d.max_parallel, d.rate, d.rate_seconds, d.rate_burst, d.owner, d.per_process)
           FROM jsonb_to_record(held.declared) AS d (fleet text, max_parallel integer, rate integer, rate_seconds double precision, rate_burst integer, owner text,
                                                     per_process integer);
    END IF;
    RETURN true;
END
$$;

-- Name: FUNCTION release_queue(name text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.release_queue(name text) IS 'Gives the settings of a queue that a person has set back to the programs';

-- Name: remove_unposted_document(text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.remove_unposted_document(org_id text, document_id text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    _org      CONSTANT text := remove_unposted_document.org_id;
    _document CONSTANT text := remove_unposted_document.document_id;
    _state    daybook.job_state;
BEGIN
    PERFORM FROM daybook.documents d WHERE d.org_id = _org AND d.id = _document FOR UPDATE;
    -- A worker that posts the document in one transaction holds the job's row until it has
    -- committed, and the statements after this one see what it has posted.
    SELECT q.state INTO _state FROM daybook.accounting_work_queue q WHERE q.org_id = _org AND q.document_id = _document FOR UPDATE;
    IF _state = 'leased'
       OR EXISTS (SELECT FROM daybook.impacts i WHERE i.org_id = _org AND i.document_id = _document)
       OR EXISTS (SELECT FROM daybook.posted_elsewhere e WHERE e.org_id = _org AND e.document_id = _document) THEN
        RETURN false;
    END IF;
    DELETE FROM daybook.accounting_work_queue q WHERE q.org_id = _org AND q.document_id = _document;
    DELETE FROM daybook.documents d WHERE d.org_id = _org AND d.id = _document;
    RETURN true;
END
$$;

-- Name: renew_async_operation(uuid, bigint); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.renew_async_operation(p_operation_id uuid, p_fence bigint DEFAULT NULL::bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE daybook.jobs j
       SET last_attempted_at = clock_timestamp() + daybook.async_operation_lease(), updated_at = clock_timestamp()
     WHERE j.id = p_operation_id::text AND j.state::text = 'leased' AND daybook.is_async_operation_claim(j.turn_id)
       AND j.fence = coalesce(p_fence, j.fence);
    RETURN FOUND;
END
$$;

-- Name: FUNCTION renew_async_operation(p_operation_id uuid, p_fence bigint); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.renew_async_operation(p_operation_id uuid, p_fence bigint) IS 'Has the lease of a claim last for 5 minutes from now; false: the job is not the claim''s any more';

-- Name: renew_jobs(text, text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.renew_jobs(worker text, job_ids text[]) RETURNS TABLE(job_id text, fence bigint, cancel_requested boolean)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    turn CONSTANT text := daybook.sql_turn(worker);
BEGIN
    -- A worker whose places are all taken does not claim. What claim_jobs does beside this, once a minute, goes before.
    UPDATE daybook.job_workers w SET last_seen = clock_timestamp()
     WHERE w.id = turn AND w.stopped_at IS NULL AND w.last_seen < clock_timestamp() - interval '2 minutes';
    -- What is locked is being completed. state::text: the index of stale leases is not walked for a few ids.
    UPDATE daybook.jobs j SET last_attempted_at = clock_timestamp()
     WHERE j.id = ANY (ARRAY(SELECT h.id FROM daybook.jobs h WHERE h.id = ANY (renew_jobs.job_ids) AND h.turn_id = turn AND h.state::text = 'leased'
                                AND h.last_attempted_at < clock_timestamp() - interval '1.5 seconds'
                              ORDER BY h.org_id, h.id FOR NO KEY UPDATE SKIP LOCKED));
    RETURN QUERY SELECT j.id, j.fence, j.cancel_requested FROM daybook.jobs j WHERE j.id = ANY (renew_jobs.job_ids) AND j.turn_id = turn AND j.state::text = 'leased';
END
$$;

-- Name: FUNCTION renew_jobs(worker text, job_ids text[]); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.renew_jobs(worker text, job_ids text[]) IS 'Has the leases of the jobs that a worker works last for 10 seconds from now, and returns which of them it holds; cancel_requested: end the attempt, by fail_job. What it holds beside them, as after a claim whose answer was lost, ends as a dead worker''s does';

-- Name: repost_accounting_job(text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.repost_accounting_job(org_id text, document_id text, OUT job_id text, OUT result text) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    -- The row's lock first: what posts the document holds it until its commit, so the statement
    -- after it sees that impact. An impact's epoch may be above the job's: activating an older rule
    -- set again raises it, and a job that was purged begins at 0.
    PERFORM 1 FROM daybook.accounting_work_queue q
      WHERE q.org_id = repost_accounting_job.org_id AND q.document_id = repost_accounting_job.document_id
        FOR NO KEY UPDATE;
    UPDATE daybook.accounting_work_queue q
       SET epoch = greatest(q.epoch, (SELECT max(i.epoch) FROM daybook.impacts i WHERE i.org_id = q.org_id AND i.document_id = q.document_id)) + 1
     WHERE q.org_id = repost_accounting_job.org_id AND q.document_id = repost_accounting_job.document_id;
    SELECT m.job_id, m.result INTO job_id, result
      FROM daybook.mark_accounting_job_pending(repost_accounting_job.org_id, repost_accounting_job.document_id) m;
END
$$;

-- Name: FUNCTION repost_accounting_job(org_id text, document_id text, OUT job_id text, OUT result text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.repost_accounting_job(org_id text, document_id text, OUT job_id text, OUT result text) IS 'Asks for a document to be reversed and posted anew, though neither it nor the rules changed. result: as mark_accounting_job_pending';

-- Name: require_table(text, oid); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.require_table(name text, table_id oid) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    IF to_regclass(name) IS DISTINCT FROM table_id THEN
        RAISE EXCEPTION 'the table % was replaced', name USING ERRCODE = 'DB030', HINT = 'verify the schema before it is used again';
    END IF;
END
$$;

-- Name: reset_stuck_async_operations(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.reset_stuck_async_operations() RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
    job   daybook.jobs;
    total integer := 0;
BEGIN
    -- Claims from before the clock was set back count from now on.
    UPDATE daybook.jobs j
       SET last_attempted_at = clock_timestamp() + daybook.async_operation_lease()
     WHERE j.id = ANY (ARRAY(
           SELECT x.id FROM daybook.jobs x
            WHERE x.state = 'leased' AND x.last_attempted_at > clock_timestamp() + interval '10 seconds' + daybook.async_operation_lease()
              AND daybook.is_async_operation_claim(x.turn_id)
              FOR NO KEY UPDATE SKIP LOCKED));
    FOR job IN
        SELECT * FROM daybook.jobs j
         WHERE j.state = 'leased' AND j.last_attempted_at < clock_timestamp() - interval '10 seconds' AND daybook.is_async_operation_claim(j.turn_id)
         ORDER BY j.org_id, j.id
           FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        PERFORM daybook.end_async_operation(
            job, 'lost', NULL, 'JOB_LOCK_TIMEOUT_RECLAIMED',
            'the worker ended while it worked on this job' ||
            CASE WHEN job.run_count >= daybook.async_operation_attempts(job) THEN ', for the last time that it may be tried' ELSE '' END, NULL);
        total := total + 1;
    END LOOP;
    RETURN total;
END
$$;

-- Name: FUNCTION reset_stuck_async_operations(); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.reset_stuck_async_operations() IS 'Ends claims that are older than 5 minutes: their jobs are due again, or dead letters after their last attempt. Workers of Daybook do it by themselves';

-- Name: restore_rows(regclass, text, jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.restore_rows(_table regclass, _first text, _rows jsonb) RETURNS SETOF text
    LANGUAGE plpgsql
    AS $_$
DECLARE
    columns text;
BEGIN
    SELECT string_agg(quote_ident(c.attname), ', ' ORDER BY c.attnum) INTO columns
      FROM pg_catalog.pg_attribute c
     WHERE c.attrelid = _table AND c.attnum > 0 AND NOT c.attisdropped AND c.attgenerated = '' AND _rows -> 0 ? c.attname;
    IF columns IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format(
        'INSERT INTO %1$s (%2$s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM jsonb_populate_recordset(NULL::%1$s, $1) ON CONFLICT DO NOTHING RETURNING %3$I::text',
        _table, columns, _first) USING _rows;
END
$_$;

-- Name: retry_accounting_jobs(text[], text[], double precision); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.retry_accounting_jobs(job_ids text[], states text[], delay_seconds double precision DEFAULT NULL::double precision) RETURNS integer
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

-- Name: retry_async_operation(uuid); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.retry_async_operation(p_operation_id uuid) RETURNS boolean
    LANGUAGE sql
    AS $$ SELECT r.result <> 'unchanged' FROM daybook.retry_job(p_operation_id::text, 'reset') r $$;

-- Name: FUNCTION retry_async_operation(p_operation_id uuid); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.retry_async_operation(p_operation_id uuid) IS 'retry_job as if the job had never been tried; false: it runs, or waits as another job with its payload does';

-- Name: retry_delay(text, integer, double precision, double precision, double precision); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.retry_delay(job_id text, attempt integer, base_seconds double precision DEFAULT 30, factor double precision DEFAULT 2, cap_seconds double precision DEFAULT 21600) RETURNS interval
    LANGUAGE plpgsql IMMUTABLE
    AS $$
DECLARE
    bytes  CONSTANT bytea := convert_to(job_id || '/' || attempt, 'UTF8');
    -- Within what neither a power nor an interval overflows at, and with the default for what is null: an
    -- attempt must end, whatever its policy, and its next one not begin at once.
    growth CONSTANT double precision := least(greatest(coalesce(factor, 2), 0.1), 1e9);
    steps  CONSTANT double precision := least(attempt - 1, floor(250 / log(greatest(growth, 10))));
    plain  CONSTANT double precision := least(least(greatest(coalesce(base_seconds, 30), 0), 1e9) * growth ^ steps, greatest(coalesce(cap_seconds, 21600), 0), 1e9);
    hash   numeric := 14695981039346656037;
    low    integer;
BEGIN
    FOR i IN 0 .. length(bytes) - 1 LOOP
        low := mod(hash, 256);
        hash := mod((hash - low + (low # get_byte(bytes, i))) * 1099511628211, 18446744073709551616);
    END LOOP;
    RETURN make_interval(secs => plain * (1 + 0.1 * (trunc(hash / 2048)::double precision / 4503599627370496 - 1)));
END
$$;

-- Name: FUNCTION retry_delay(job_id text, attempt integer, base_seconds double precision, factor double precision, cap_seconds double precision); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.retry_delay(job_id text, attempt integer, base_seconds double precision, factor double precision, cap_seconds double precision) IS 'The pause after a failed attempt: base_seconds × factor^(attempt - 1), cap_seconds at most, changed by up to 10 %, always the same for the same job and attempt';

-- Name: retry_due(text, double precision); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.retry_due(mode text, delay_seconds double precision) RETURNS timestamp with time zone
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

-- Name: retry_job(text, text, double precision); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.retry_job(INOUT job_id text, mode text DEFAULT 'now'::text, delay_seconds double precision DEFAULT NULL::double precision, OUT result text, OUT reason text) RETURNS record
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

-- Name: FUNCTION retry_job(INOUT job_id text, mode text, delay_seconds double precision, OUT result text, OUT reason text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.retry_job(INOUT job_id text, mode text, delay_seconds double precision, OUT result text, OUT reason text) IS 'Tries a job again, which waits for its turn and for other jobs as before: now (attempts stay counted), later (after delay_seconds, 300 if null) or reset (as if never tried: its steps are forgotten). result: requeued, rescheduled, coalesced or unchanged. reason: why it is unchanged';

-- Name: retry_jobs(text[], text[], text, double precision); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.retry_jobs(job_ids text[], states text[], mode text DEFAULT 'now'::text, delay_seconds double precision DEFAULT NULL::double precision) RETURNS integer
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

-- Name: FUNCTION retry_jobs(job_ids text[], states text[], mode text, delay_seconds double precision); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.retry_jobs(job_ids text[], states text[], mode text, delay_seconds double precision) IS 'retry_job for many: those in one of the states that no other transaction has locked, and whose queue there is';

-- Name: return_failed_batch(text, text, timestamp with time zone, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.return_failed_batch(org_id text, code text, INOUT up_to timestamp with time zone, batch integer, OUT returned integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_variable
DECLARE
    ids text[];
BEGIN
    -- The bounds and the order are those of one index (see ledgerdb.FailedDocuments).
    SELECT array_agg(f.id), min(f.updated_at) INTO ids, up_to
      FROM (SELECT q.id, q.updated_at
              FROM daybook.accounting_work_queue q
             WHERE q.org_id = org_id AND q.state = 'failed' AND q.last_error_code >= code AND q.last_error_code <= code AND q.updated_at <= up_to
             ORDER BY q.last_error_code, q.updated_at DESC, q.id
             LIMIT batch
               FOR NO KEY UPDATE SKIP LOCKED) f;
    UPDATE daybook.accounting_work_queue q
       SET state = 'pending', ready_at = clock_timestamp(), first_ready_at = clock_timestamp(), run_count = 0, not_ready_count = 0,
           generation = q.generation + 1, finished_at = NULL, updated_at = clock_timestamp()
     WHERE q.id = ANY (ids);
    GET DIAGNOSTICS returned = ROW_COUNT;
END
$$;

-- Name: return_failed_jobs(text, text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.return_failed_jobs(org_id text, codes text[]) RETURNS integer
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_variable
DECLARE
    room  integer := 1000;
    total integer := 0;
    done  record;
    asked record;
BEGIN
    FOR asked IN
        SELECT q.org_id, q.last_error_code AS code, count(*)::integer AS jobs, max(q.updated_at) AS up_to
          FROM daybook.accounting_work_queue q
         WHERE q.org_id = org_id AND q.state = 'failed' AND q.last_error_code = ANY (codes)
         GROUP BY q.org_id, q.last_error_code
         UNION ALL
        SELECT q.org_id, q.last_error_code, count(*), max(q.updated_at)
          FROM daybook.accounting_work_queue q
         WHERE org_id IS NULL AND q.state = 'failed' AND q.last_error_code = ANY (codes)
           AND NOT EXISTS (SELECT FROM daybook.organizations o WHERE o.id = q.org_id AND o.source IS NOT NULL)
         GROUP BY q.org_id, q.last_error_code
    LOOP
        SELECT b.up_to, b.returned INTO done FROM daybook.return_failed_batch(asked.org_id, asked.code, asked.up_to, room) b;
        IF done.returned < room THEN
            total := total + done.returned;
        ELSE
            INSERT INTO daybook.accounting_returns (org_id, code, up_to) VALUES (asked.org_id, asked.code, coalesce(done.up_to, asked.up_to));
            total := total + asked.jobs;
        END IF;
        room := room - done.returned;
    END LOOP;
    IF total > 0 THEN
        PERFORM daybook.wake_accounting_queue();
    END IF;
    RETURN total;
END
$$;

-- Name: return_missing_jobs(text[], smallint); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.return_missing_jobs(types text[], fleet smallint) RETURNS void
    LANGUAGE sql
    AS $_$
    SELECT daybook.retry_job(f.id, 'now')
      FROM (SELECT j.id FROM daybook.jobs j
             WHERE j.state = 'failed' AND j.last_error_code = 'HANDLER_MISSING' AND j.type = ANY ($1) AND j.fleet = $2
               AND (j.queue IS NULL OR EXISTS (SELECT FROM daybook.queues u WHERE u.name = j.queue))
             ORDER BY j.id
             LIMIT 1000
               FOR NO KEY UPDATE SKIP LOCKED) f
$_$;

-- Name: return_more_jobs(integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.return_more_jobs(batch integer DEFAULT 1000) RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
    asked daybook.accounting_returns;
    done  record;
BEGIN
    SELECT * INTO asked FROM daybook.accounting_returns r ORDER BY r.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    SELECT b.up_to, b.returned INTO done FROM daybook.return_failed_batch(asked.org_id, asked.code, asked.up_to, batch) b;
    IF done.returned < batch THEN
        DELETE FROM daybook.accounting_returns r WHERE r.id = asked.id;
    ELSE
        UPDATE daybook.accounting_returns r SET up_to = done.up_to WHERE r.id = asked.id;
    END IF;
    PERFORM daybook.wake_accounting_queue();
    RETURN done.returned + 1;
END
$$;

-- Name: FUNCTION return_more_jobs(batch integer); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.return_more_jobs(batch integer) IS 'Makes failed jobs pending again whose cause is gone, where the change that mended it left them to workers. Workers call it';

-- Name: see_groups_whole(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.see_groups_whole() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the isolation level is %: a group may not be seen whole', current_setting('transaction_isolation')
            USING ERRCODE = 'DB010', HINT = 'put documents together, or take them apart, in a transaction that is READ COMMITTED';
    END IF;
END
$$;

-- Name: set_default_hooks(text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.set_default_hooks(hooks text[], OUT changed boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    names CONSTANT text[] := ARRAY(SELECT DISTINCT n COLLATE "C" FROM unnest(set_default_hooks.hooks) AS n ORDER BY 1);
BEGIN
    PERFORM daybook.check_names(set_default_hooks.hooks, 'hook');
    changed := names <> (SELECT d.hooks FROM daybook.defaults d);
    IF changed THEN
        PERFORM daybook.lock_configuration('');
        UPDATE daybook.defaults d SET hooks = names;
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;

-- Name: FUNCTION set_default_hooks(hooks text[], OUT changed boolean); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.set_default_hooks(hooks text[], OUT changed boolean) IS 'Puts on record which hooks are called with the postings of organizations that name none';

-- Name: set_default_source(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.set_default_source(source text, OUT changed boolean, OUT returned integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    PERFORM daybook.check_names(ARRAY[set_default_source.source], 'source');
    returned := 0;
    changed := set_default_source.source <> (SELECT d.source FROM daybook.defaults d);
    IF changed THEN
        PERFORM daybook.lock_configuration('');
        UPDATE daybook.defaults d SET source = set_default_source.source;
        returned := daybook.return_failed_jobs(NULL, '{DOCUMENT_UNKNOWN,SOURCE_INVALID}');
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;

-- Name: FUNCTION set_default_source(source text, OUT changed boolean, OUT returned integer); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.set_default_source(source text, OUT changed boolean, OUT returned integer) IS 'Puts on record from which source the documents of organizations that name none are read';

-- Name: set_hooks(text, text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.set_hooks(org_id text, hooks text[], OUT changed boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    names CONSTANT text[] := CASE WHEN set_hooks.hooks IS NOT NULL THEN ARRAY(SELECT DISTINCT n COLLATE "C" FROM unnest(set_hooks.hooks) AS n ORDER BY 1) END;
BEGIN
    PERFORM daybook.check_organization(set_hooks.org_id), daybook.check_names(set_hooks.hooks, 'hook');
    changed := names IS DISTINCT FROM (SELECT o.hooks FROM daybook.organizations o WHERE o.id = set_hooks.org_id);
    IF changed THEN
        INSERT INTO daybook.organizations (id) VALUES (set_hooks.org_id) ON CONFLICT (id) DO NOTHING;
        PERFORM daybook.lock_configuration(set_hooks.org_id);
        UPDATE daybook.organizations o SET hooks = names, updated_at = clock_timestamp() WHERE o.id = set_hooks.org_id;
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;

-- Name: FUNCTION set_hooks(org_id text, hooks text[], OUT changed boolean); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.set_hooks(org_id text, hooks text[], OUT changed boolean) IS 'Puts on record which hooks are called with an organization''s postings; null: those of daybook.defaults; empty: none';

-- Name: set_job_limit(text, text, integer, integer, double precision, boolean, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.set_job_limit(type text DEFAULT NULL::text, by text DEFAULT ''::text, parallel integer DEFAULT NULL::integer, rate integer DEFAULT NULL::integer, rate_seconds double precision DEFAULT NULL::double precision, declared boolean DEFAULT false, queue text DEFAULT NULL::text) RETURNS boolean
    LANGUAGE plpgsql
    AS $_$
#variable_conflict use_column
DECLARE
    of  CONSTANT text := coalesce('queue/' || set_job_limit.queue, set_job_limit.type);
    per CONSTANT double precision := CASE WHEN set_job_limit.rate IS NOT NULL THEN coalesce(set_job_limit.rate_seconds, 1) END;
BEGIN
    IF num_nonnulls(set_job_limit.type, set_job_limit.queue) <> 1 THEN
        RAISE EXCEPTION 'a limit is of a type or of a queue' USING ERRCODE = 'DB010', HINT = 'give one of both';
    END IF;
    IF set_job_limit.type !~ '^[A-Za-z][A-Za-z0-9_.:-]{0,63}$' THEN
        RAISE EXCEPTION 'type must be a letter and then letters, digits, "_", ".", ":" or "-", 64 bytes at most' USING ERRCODE = 'DB010';
    END IF;
    IF set_job_limit.queue IS NOT NULL THEN
        PERFORM daybook.queue_fleet(set_job_limit.queue);
    END IF;
    IF (set_job_limit.by IN ('', 'org_id') OR set_job_limit.by ~ '^payload(\.[^.]+)+$' AND octet_length(set_job_limit.by) <= 255) IS NOT TRUE THEN
        RAISE EXCEPTION 'a limit cannot be by %', coalesce(quote_literal(set_job_limit.by), 'null')
            USING ERRCODE = 'DB010', HINT = 'take org_id, a member of the payload such as payload.account_id, or an empty text for the limit_key of each request';
    END IF;
    IF set_job_limit.parallel < 1 OR set_job_limit.rate < 1 OR per NOT BETWEEN 0.001 AND 31536000 OR set_job_limit.rate IS NULL AND set_job_limit.rate_seconds IS NOT NULL THEN
        RAISE EXCEPTION 'parallel and rate must be at least 1, or null, and a rate is a number of jobs in 0.001 to 31536000 seconds' USING ERRCODE = 'DB010';
    END IF;
    IF num_nonnulls(set_job_limit.parallel, set_job_limit.rate) = 0 THEN
        DELETE FROM daybook.job_limits l WHERE l.scope = of AND (l.declared OR NOT set_job_limit.declared);
    ELSE
        INSERT INTO daybook.job_limits AS l (scope, by, parallel, rate, rate_seconds, declared)
        VALUES (of, set_job_limit.by, set_job_limit.parallel, set_job_limit.rate, per, set_job_limit.declared)
        ON CONFLICT (scope) DO UPDATE
           SET by = excluded.by, parallel = excluded.parallel, rate = excluded.rate, rate_seconds = excluded.rate_seconds, declared = excluded.declared,
               updated_at = clock_timestamp()
         WHERE (l.declared OR NOT excluded.declared)
           AND (l.by, l.parallel, l.rate, l.rate_seconds, l.declared) IS DISTINCT FROM (excluded.by, excluded.parallel, excluded.rate, excluded.rate_seconds, excluded.declared);
    END IF;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO daybook.job_wait_checks (limit_scope, org_id, limit_key, limit_all) VALUES (of, '', '', true);
    PERFORM daybook.wake_job_queue();
    RETURN true;
END
$_$;

-- Name: FUNCTION set_job_limit(type text, by text, parallel integer, rate integer, rate_seconds double precision, declared boolean, queue text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.set_job_limit(type text, by text, parallel integer, rate integer, rate_seconds double precision, declared boolean, queue text) IS 'Limits the jobs of a type, or of a named queue, by key: parallel run at a time, rate attempts begin in rate_seconds; without both the limit goes';

-- Name: set_queue(text, text, integer, integer, double precision, integer, text, integer, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.set_queue(name text, fleet text DEFAULT NULL::text, max_parallel integer DEFAULT NULL::integer, rate integer DEFAULT NULL::integer, rate_seconds double precision DEFAULT NULL::double precision, rate_burst integer DEFAULT NULL::integer, owner text DEFAULT NULL::text, per_process integer DEFAULT NULL::integer, set_by text DEFAULT NULL::text) RETURNS boolean
    LANGUAGE plpgsql
    AS $_$
#variable_conflict use_column
DECLARE
    target CONSTANT smallint := daybook.fleet_of(set_queue.fleet);
    per    CONSTANT double precision := CASE WHEN set_queue.rate IS NOT NULL THEN coalesce(set_queue.rate_seconds, 1) END;
    asked  CONSTANT jsonb := jsonb_build_object('fleet', set_queue.fleet, 'max_parallel', set_queue.max_parallel, 'rate', set_queue.rate,
                                                'rate_seconds', per, 'rate_burst', set_queue.rate_burst, 'owner', set_queue.owner,
                                                'per_process', set_queue.per_process);
    made   daybook.queues;
BEGIN
    IF set_queue.name = 'default' THEN
        RAISE EXCEPTION 'default is where jobs are that are in no named queue: it has no settings'
            USING ERRCODE = 'DB010', HINT = 'enqueue in a queue of another name';
    END IF;
    IF set_queue.name IS NULL OR set_queue.name !~ '^[A-Za-z][A-Za-z0-9_.:-]{0,63}$' THEN
        RAISE EXCEPTION '% cannot be the name of a queue', coalesce(quote_literal(set_queue.name), 'null')
            USING ERRCODE = 'DB010', HINT = 'take a letter and then letters, digits, "_", ".", ":" or "-", 64 bytes at most';
    END IF;
    IF set_queue.max_parallel < 1 OR set_queue.per_process < 1 OR set_queue.rate < 1 OR set_queue.rate_burst < 1 THEN
        RAISE EXCEPTION 'max_parallel, per_process, rate and rate_burst must be at least 1, or null'
            USING ERRCODE = 'DB010', HINT = 'pause the queue if nothing of it is to be worked';
    END IF;
    IF per NOT BETWEEN 0.001 AND 31536000 OR set_queue.rate IS NULL AND num_nonnulls(set_queue.rate_seconds, set_queue.rate_burst) > 0 THEN
        RAISE EXCEPTION 'a rate is a number of jobs in 0.001 to 31536000 seconds, and rate_seconds and rate_burst belong to one' USING ERRCODE = 'DB010';
    END IF;
    IF octet_length(set_queue.owner) > 255 OR octet_length(set_queue.set_by) NOT BETWEEN 1 AND 255 THEN
        RAISE EXCEPTION 'owner may have 255 bytes, and set_by 1 to 255, or be null' USING ERRCODE = 'DB010';
    END IF;
    INSERT INTO daybook.queues AS u (name, fleet, max_parallel, rate, rate_seconds, rate_burst, owner, per_process, set_by, set_at)
    VALUES (set_queue.name, target, set_queue.max_parallel, set_queue.rate, per, set_queue.rate_burst, coalesce(set_queue.owner, ''), set_queue.per_process,
            set_queue.set_by, CASE WHEN set_queue.set_by IS NOT NULL THEN clock_timestamp() END)
    ON CONFLICT (name) DO UPDATE
       SET fleet = excluded.fleet, max_parallel = excluded.max_parallel, rate = excluded.rate, rate_seconds = excluded.rate_seconds,
           rate_burst = excluded.rate_burst, owner = excluded.owner, per_process = excluded.per_process, updated_at = clock_timestamp(),
           set_by = excluded.set_by, set_at = excluded.set_at,
           declared = CASE WHEN u.set_by IS NOT NULL THEN u.declared
                           WHEN excluded.set_by IS NOT NULL THEN daybook.queue_settings(u) END
     WHERE (excluded.set_by IS NOT NULL OR u.set_by IS NULL)
       AND (u.set_by IS DISTINCT FROM excluded.set_by OR (u.fleet, u.max_parallel, u.rate, u.rate_seconds, u.rate_burst, u.owner, u.per_process)
           IS DISTINCT FROM (excluded.fleet, excluded.max_parallel, excluded.rate, excluded.rate_seconds, excluded.rate_burst, excluded.owner,
                             excluded.per_process))
    RETURNING u.* INTO made;
    IF NOT FOUND THEN
        SELECT u.* INTO made FROM daybook.queues u WHERE u.name = set_queue.name;
        IF set_queue.set_by IS NULL AND made.set_by IS NOT NULL AND made.declared IS DISTINCT FROM asked THEN
            UPDATE daybook.queues u SET declared = asked WHERE u.name = made.name AND u.set_by IS NOT NULL;
            RAISE NOTICE '% has set the queue %: these settings are kept, and count when daybook.release_queue gives it back', made.set_by, made.name;
        END IF;
        RETURN false;
    END IF;
    IF NOT daybook.move_queue(made.name) THEN
        INSERT INTO daybook.job_wait_checks (queue) VALUES (made.name);
    END IF;
    PERFORM daybook.wake_job_queue(made.fleet);
    RETURN true;
END
$_$;

-- Name: FUNCTION set_queue(name text, fleet text, max_parallel integer, rate integer, rate_seconds double precision, rate_burst integer, owner text, per_process integer, set_by text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.set_queue(name text, fleet text, max_parallel integer, rate integer, rate_seconds double precision, rate_burst integer, owner text, per_process integer, set_by text) IS 'Makes a named queue, or gives it these settings: what is null is at its default. At most rate attempts begin in rate_seconds. What a person sets (set_by) counts until release_queue. Returns whether the settings that count were changed';

-- Name: set_source(text, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.set_source(org_id text, source text, OUT changed boolean, OUT returned integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
    PERFORM daybook.check_organization(set_source.org_id);
    IF set_source.source IS NOT NULL THEN
        PERFORM daybook.check_names(ARRAY[set_source.source], 'source');
    END IF;
    returned := 0;
    changed := set_source.source IS DISTINCT FROM (SELECT o.source FROM daybook.organizations o WHERE o.id = set_source.org_id);
    IF changed THEN
        INSERT INTO daybook.organizations (id) VALUES (set_source.org_id) ON CONFLICT (id) DO NOTHING;
        PERFORM daybook.lock_configuration(set_source.org_id);
        UPDATE daybook.organizations o SET source = set_source.source, updated_at = clock_timestamp() WHERE o.id = set_source.org_id;
        returned := daybook.return_failed_jobs(set_source.org_id, '{DOCUMENT_UNKNOWN,SOURCE_INVALID}');
        -- Also without any: jobs that no worker could lease may be workable now.
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;

-- Name: FUNCTION set_source(org_id text, source text, OUT changed boolean, OUT returned integer); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.set_source(org_id text, source text, OUT changed boolean, OUT returned integer) IS 'Puts on record which source an organization''s documents are read from; null: that of daybook.defaults. returned: failed jobs that are pending again';

-- Name: snooze_job(text, bigint, interval, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.snooze_job(job_id text, fence bigint, delay interval, reason text DEFAULT 'snoozed'::text) RETURNS text
    LANGUAGE plpgsql
    AS $$
DECLARE
    job CONSTANT daybook.jobs := daybook.held_job(snooze_job.job_id, snooze_job.fence);
BEGIN
    IF job.id IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM daybook.end_async_operation(job, CASE WHEN job.cancel_requested THEN 'cancelled' ELSE 'rescheduled' END::daybook.attempt_outcome, NULL, 'SNOOZED',
                                        coalesce(snooze_job.reason, 'snoozed'), least(greatest(snooze_job.delay, interval '0'), interval '100 years'));
    RETURN (SELECT j.state::text FROM daybook.jobs j WHERE j.id = job.id);
END
$$;

-- Name: FUNCTION snooze_job(job_id text, fence bigint, delay interval, reason text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.snooze_job(job_id text, fence bigint, delay interval, reason text) IS 'Puts a claimed job off for delay; no attempt is counted. Returns the job''s state; null: the claim is lost';

-- Name: sql_turn(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.sql_turn(worker text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$ SELECT '/sql/' || $1 $_$;

-- Name: stand_for_documents(text[], text[], text[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.stand_for_documents(org_ids text[], open_items text[], documents text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    bad record;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the isolation level is %: what is posted may not be seen', current_setting('transaction_isolation')
            USING ERRCODE = 'DB010', HINT = 'say which documents open items stand for in a transaction that is READ COMMITTED';
    END IF;
    SELECT u.id, u.item INTO bad
      FROM unnest(org_ids, open_items, documents) AS u (org, item, id)
      LEFT JOIN daybook.documents d ON d.org_id = u.org AND d.id = u.item AND d.deleted_at IS NULL
     WHERE d.id IS NULL OR u.item NOT LIKE 'opening:%' OR u.id IS NULL OR u.id = u.item
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% is no open item that can stand for document %', bad.item, bad.id USING ERRCODE = 'DB010';
    END IF;
    PERFORM daybook.lock_configuration(o.org) FROM (SELECT DISTINCT u AS org FROM unnest(org_ids) u ORDER BY 1) o;
    SELECT u.id INTO bad
      FROM unnest(org_ids, documents) AS u (org, id)
     WHERE EXISTS (SELECT FROM daybook.impacts i WHERE i.org_id = u.org AND i.document_id = u.id)
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'document % is posted here already: it would be open twice', bad.id
            USING ERRCODE = 'DB010', HINT = 'leave the line out';
    END IF;
    SELECT u.id, min(coalesce(p.open_item, u.item)) AS item INTO bad
      FROM unnest(org_ids, open_items, documents) AS u (org, item, id)
      LEFT JOIN daybook.posted_elsewhere p ON p.org_id = u.org AND p.document_id = u.id
     GROUP BY u.org, u.id
    HAVING count(*) > 1 OR bool_or(p.open_item <> u.item)
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'document % has the open item % already', bad.id, bad.item
            USING ERRCODE = 'DB010', HINT = 'leave the column document empty in all lines of a document but one';
    END IF;
    INSERT INTO daybook.posted_elsewhere AS p (org_id, document_id, document_version, next, posted_on, system, open_item)
    SELECT u.org, u.id, greatest(1, d.accounting_ready_version), 'wait', o.issue_date, 'opening', u.item
      FROM unnest(org_ids, open_items, documents) AS u (org, item, id)
      JOIN daybook.documents o ON o.org_id = u.org AND o.id = u.item
      LEFT JOIN daybook.documents d ON d.org_id = u.org AND d.id = u.id
        ON CONFLICT ON CONSTRAINT posted_elsewhere_pkey DO UPDATE
       SET open_item = excluded.open_item, updated_at = clock_timestamp()
     WHERE p.open_item IS NULL;
END
$$;

-- Name: FUNCTION stand_for_documents(org_ids text[], open_items text[], documents text[]); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.stand_for_documents(org_ids text[], open_items text[], documents text[]) IS 'Puts on record for which documents of another system imported open items stand, so that these are not posted again';

-- Name: start_job_worker(text, text[], text, integer[], integer[], double precision[], text, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.start_job_worker(worker text, types text[], fleet text DEFAULT NULL::text, versions integer[] DEFAULT NULL::integer[], max_attempts integer[] DEFAULT NULL::integer[], timeout_seconds double precision[] DEFAULT NULL::double precision[], owner text DEFAULT NULL::text, parallel integer DEFAULT 1) RETURNS void
    LANGUAGE plpgsql
    AS $_$
#variable_conflict use_column
DECLARE
    n    CONSTANT integer := cardinality(start_job_worker.types);
    here CONSTANT smallint := daybook.fleet_of(start_job_worker.fleet);
BEGIN
    IF worker IS NULL OR octet_length(worker) NOT BETWEEN 1 AND 200 THEN
        RAISE EXCEPTION 'worker must be 1 to 200 bytes' USING ERRCODE = 'DB010', HINT = 'take a name that no other process has: host, process id and a random part';
    END IF;
    IF coalesce(n, 0) = 0 OR EXISTS (SELECT FROM unnest(start_job_worker.types) t WHERE t IS NULL OR t !~ '^[A-Za-z][A-Za-z0-9_.:-]{0,63}$') THEN
        RAISE EXCEPTION 'types must be one or more types of jobs: a letter and then letters, digits, "_", ".", ":" or "-", 64 bytes at most' USING ERRCODE = 'DB010';
    END IF;
    IF coalesce(cardinality(start_job_worker.versions), n) <> n OR coalesce(cardinality(start_job_worker.max_attempts), n) <> n OR coalesce(cardinality(start_job_worker.timeout_seconds), n) <> n THEN
        RAISE EXCEPTION 'versions, max_attempts and timeout_seconds must have an element for each of types, or be null' USING ERRCODE = 'DB010';
    END IF;
    IF cardinality(daybook.encrypted_types(start_job_worker.types)) > 0 THEN
        RAISE EXCEPTION 'the payloads of % are encrypted, which a worker by SQL cannot read', array_to_string(daybook.encrypted_types(start_job_worker.types), ', ')
            USING ERRCODE = 'DB010', HINT = 'leave the type to workers in Go; if none of them encrypts it any more, delete its row of daybook.job_types';
    END IF;
    INSERT INTO daybook.job_workers AS w (id, name, fleet, types, versions)
    VALUES (daybook.sql_turn(start_job_worker.worker), start_job_worker.worker, here, start_job_worker.types, coalesce(start_job_worker.versions, '{}'))
    ON CONFLICT (id) DO UPDATE
       SET fleet = excluded.fleet, types = excluded.types, versions = excluded.versions, last_seen = clock_timestamp(), stopped_at = NULL;
    PERFORM daybook.note_job_types('jobs', start_job_worker.worker, start_job_worker.types, array_fill(''::text, ARRAY[n]),
                                   array_fill(coalesce(start_job_worker.owner, ''), ARRAY[n]),
                                   coalesce(start_job_worker.max_attempts, array_fill(0, ARRAY[n])),
                                   coalesce(start_job_worker.timeout_seconds, array_fill(0::double precision, ARRAY[n])),
                                   array_fill(start_job_worker.parallel, ARRAY[n]), array_fill(false, ARRAY[n]));
    PERFORM daybook.return_missing_jobs(start_job_worker.types, here);
END
$_$;

-- Name: FUNCTION start_job_worker(worker text, types text[], fleet text, versions integer[], max_attempts integer[], timeout_seconds double precision[], owner text, parallel integer); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.start_job_worker(worker text, types text[], fleet text, versions integer[], max_attempts integer[], timeout_seconds double precision[], owner text, parallel integer) IS 'Puts a worker that claims jobs by SQL on record, with the types that it has handlers for. Call it when the worker starts';

-- Name: stated_amount(jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.stated_amount(content jsonb) RETURNS numeric
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
SELECT coalesce(jsonb_path_query_first(content, '$.total ? (@.type() == "number" && @ != 0)'),
                jsonb_path_query_first(content, '$.payable ? (@.type() == "number" && @ != 0)'),
                jsonb_path_query_first(content, '$.amount ? (@.type() == "number" && @ != 0)'),
                (SELECT to_jsonb(sum(a.amount::numeric))
                   FROM jsonb_path_query(content, '$.journal.entries[*] ? (@.amount > 0 && !exists (@.currency)).amount') AS a (amount)))::numeric
$_$;

-- Name: FUNCTION stated_amount(content jsonb); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.stated_amount(content jsonb) IS 'The amount that a document states as a whole, in minor units: its total, what is payable or was paid, or the debits of its journal';

-- Name: stated_number(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.stated_number(stated text) RETURNS numeric
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$
    SELECT CASE WHEN stated ~ '^-?\d{1,30}(\.\d{1,30})?$' THEN stated::numeric END
$_$;

-- Name: stated_taxes(jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.stated_taxes(content jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT jsonb_agg(jsonb_build_object('category', x.category, 'code', x.code, 'rate', x.rate, 'base', x.base, 'amount', x.amount)
                     ORDER BY x.category COLLATE "C", x.code COLLATE "C", x.rate)
      FROM (SELECT coalesce(t ->> 'category', '') AS category, coalesce(t ->> 'code', '') AS code,
                   trim_scale(coalesce(daybook.stated_number(t ->> 'rate'), daybook.stated_number(t ->> 'rate_bp') / 100, 0)) AS rate,
                   sum(coalesce(daybook.stated_number(t ->> 'base'), 0)) AS base, sum(coalesce(daybook.stated_number(t ->> 'amount'), 0)) AS amount
              FROM jsonb_array_elements(CASE jsonb_typeof(content -> 'taxes') WHEN 'array' THEN content -> 'taxes' END) t
             GROUP BY 1, 2, 3) x
$$;

-- Name: states_amount(jsonb); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.states_amount(content jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
SELECT jsonb_path_exists(jsonb_strip_nulls(content), '$ ? (
    @.total != 0 || @.prepaid != 0 || @.payable != 0 || @.rounding != 0 || @.amount != 0 || @.fee != 0 || @.settled.amount != 0 ||
    @.lines[*].net != 0 || @.lines[*].cost != 0 || @.taxes[*].base != 0 || @.taxes[*].amount != 0)')
$_$;

-- Name: stop_job_worker(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.stop_job_worker(worker text) RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
    job   daybook.jobs;
    total integer := 0;
BEGIN
    UPDATE daybook.job_workers w SET stopped_at = clock_timestamp() WHERE w.id = daybook.sql_turn(stop_job_worker.worker);
    FOR job IN
        SELECT * FROM daybook.jobs j
         WHERE j.turn_id = daybook.sql_turn(stop_job_worker.worker) AND num_nulls(nullif(j.state, 'leased')) = 1
         ORDER BY j.org_id, j.id
           FOR NO KEY UPDATE SKIP LOCKED -- one that an application has locked keeps none of the others
    LOOP
        PERFORM daybook.end_async_operation(job, 'rescheduled', NULL, 'SNOOZED', 'its worker stopped before it was done', interval '0');
        total := total + 1;
    END LOOP;
    RETURN total;
END
$$;

-- Name: FUNCTION stop_job_worker(worker text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.stop_job_worker(worker text) IS 'Puts on record that a worker has stopped, gives back what it holds, uncounted, and returns how many jobs that were. What is locked, as by its completion, ends with its lease';

-- Name: tax_accounts(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.tax_accounts(org_id text) RETURNS text[]
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT coalesce(array_agg(a.code ORDER BY a.code), '{}') FROM daybook.accounts a WHERE a.org_id = tax_accounts.org_id AND a.role = 'tax'
$$;

-- Name: tell_of_ended_job(daybook.jobs, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.tell_of_ended_job(job daybook.jobs, ended_as text) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    sees CONSTANT boolean := current_setting('transaction_isolation') = 'read committed';
    left_over boolean := false;
BEGIN
    IF job.sequence IS NOT NULL AND ended_as <> 'failed'
       AND (NOT sees OR EXISTS (SELECT FROM daybook.job_sequences s WHERE s.org_id = job.org_id AND s.key = job.sequence AND s.holder = job.id))
       AND (NOT sees OR NOT daybook.check_sequence(job.org_id, job.sequence)) THEN
        INSERT INTO daybook.job_wait_checks (org_id, sequence) VALUES (job.org_id, job.sequence);
        left_over := true;
    END IF;
    IF (NOT sees OR EXISTS (SELECT FROM daybook.job_waits w WHERE w.awaits = job.id AND w.ended_as IS NULL))
       AND (NOT sees OR NOT daybook.tell_waiting_jobs(job.id, ended_as, 100)) THEN
        INSERT INTO daybook.job_wait_checks (awaits) VALUES (job.id);
        left_over := true;
    END IF;
    IF left_over THEN
        PERFORM daybook.wake_job_queue();
    END IF;
END
$$;

-- Name: tell_waiting_jobs(text, text, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.tell_waiting_jobs(ended text, ended_as text, batch integer) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_variable
DECLARE
    told     text[];
    go_on    text[];
BEGIN
    SELECT array_agg(x.id), array_agg(x.id) FILTER (WHERE x.any_end OR ended_as = 'completed') INTO told, go_on
      FROM (SELECT j.id, w.any_end
              FROM daybook.job_waits w
              JOIN daybook.jobs j ON j.id = w.job_id
             WHERE w.awaits = ended AND w.ended_as IS NULL AND daybook.ends_wait(w.any_end, ended_as)
             ORDER BY w.job_id
             LIMIT batch
               FOR NO KEY UPDATE OF j SKIP LOCKED) x;
    IF told IS NOT NULL THEN
        UPDATE daybook.job_waits w SET ended_as = ended_as WHERE w.awaits = ended AND w.job_id = ANY (told) AND w.any_end;
        DELETE FROM daybook.job_waits w WHERE w.awaits = ended AND w.job_id = ANY (told) AND NOT w.any_end;
        IF go_on IS NOT NULL THEN
            PERFORM daybook.release_jobs(go_on);
        END IF;
        UPDATE daybook.jobs j
           SET state = 'failed', ready_at = j.first_ready_at, finished_at = clock_timestamp(), updated_at = clock_timestamp(), last_error_code = 'AWAITED_CANCELLED',
               last_error = format('the job %s, for which it waited, was %s: retry this one to work it without that, or cancel it', ended, ended_as)
         WHERE j.id = ANY (told) AND (go_on IS NULL OR j.id <> ALL (go_on)) AND j.state::text = 'pending' AND j.ready_at = '9999-12-31 00:00:00+00';
    END IF;
    RETURN NOT EXISTS (SELECT FROM daybook.job_waits w WHERE w.awaits = ended AND w.ended_as IS NULL AND daybook.ends_wait(w.any_end, ended_as));
END
$$;

-- Name: try_use_configurations(text[]); Type: FUNCTION; Schema: daybook; Owner: -

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

-- Name: undo_import(bigint, text, integer, text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.undo_import(import_id bigint, after text DEFAULT ''::text, most integer DEFAULT 500, actor text DEFAULT SESSION_USER) RETURNS TABLE(document_id text, result text, code text, other_import bigint)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    i      daybook.imports;
    m      daybook.import_documents;
    d      daybook.documents;
    last   daybook.impacts;
    state  daybook.job_state;
    ids    text[];
    policy daybook.closed_period_policy;
    v      bigint;
    counts integer[] := '{0,0,0}';
BEGIN
    IF after IS NULL OR most IS NULL OR most NOT BETWEEN 1 AND 10000 OR coalesce(actor, '') = '' THEN
        RAISE EXCEPTION 'after and actor must not be null, nor actor empty, and most must be between 1 and 10000' USING ERRCODE = 'DB010';
    END IF;
    SELECT * INTO i FROM daybook.imports x WHERE x.id = undo_import.import_id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no import %', undo_import.import_id USING ERRCODE = 'DB015', HINT = 'list the imports: `daybook import list`';
    END IF;
    SELECT array_agg(x.document_id ORDER BY x.document_id) INTO ids
      FROM (SELECT y.document_id FROM daybook.import_documents y
             WHERE y.import_id = i.id AND y.document_id > after COLLATE "C" AND y.undone IS NULL
             ORDER BY y.document_id LIMIT most) x;
    PERFORM FROM unnest(ids) AS k (id) CROSS JOIN LATERAL (
                SELECT FROM daybook.documents x WHERE x.org_id = i.org_id AND x.id = k.id FOR UPDATE) locked;
    -- No period is closed between the look at it and the commit.
    PERFORM daybook.use_configuration(i.org_id);
    SELECT o.closed_period_policy INTO policy FROM daybook.organizations o WHERE o.id = i.org_id;

    FOREACH document_id IN ARRAY coalesce(ids, '{}') LOOP
        result := 'kept';
        code := NULL;
        other_import := NULL;
        SELECT * INTO m FROM daybook.import_documents x WHERE x.import_id = i.id AND x.document_id = undo_import.document_id;
        SELECT * INTO d FROM daybook.documents x WHERE x.org_id = i.org_id AND x.id = undo_import.document_id;
        -- Waits for the worker that posts it.
        SELECT q.state INTO state FROM daybook.accounting_work_queue q
         WHERE q.org_id = i.org_id AND q.document_id = undo_import.document_id FOR UPDATE;
        SELECT * INTO last FROM daybook.impacts x
         WHERE x.org_id = i.org_id AND x.document_id = undo_import.document_id ORDER BY x.seq DESC LIMIT 1;
        IF d.id IS NULL THEN
            code := 'DOCUMENT_NOT_FOUND';
        ELSIF d.deleted_at IS NOT NULL THEN
            code := 'DOCUMENT_DELETED';
        ELSIF d.import_id IS DISTINCT FROM i.id OR d.accounting_ready_version <> m.version OR d.updated_at IS DISTINCT FROM m.written_at THEN
            code := 'CHANGED_SINCE';
            other_import := nullif(d.import_id, i.id);
        ELSIF NOT m.created AND m.former IS NULL THEN
            code := 'FORMER_NOT_KEPT';
        -- What is posted of the version that the import wrote, or of a later one, would be reversed, and
        -- what was posted before would be posted again. A posting from before stays as it is, unless
        -- an attempt is about to replace it.
        ELSIF policy = 'fail' AND last.kind = 'post' AND (m.created OR last.document_version > (m.former ->> 'version')::bigint OR state = 'leased')
              AND EXISTS (SELECT FROM daybook.closed_spans(i.org_id) s
                            JOIN daybook.impacts x ON x.posting_date BETWEEN s.starts_on AND s.ends_on
                           WHERE x.org_id = i.org_id AND x.document_id = d.id
                             AND (x.seq = last.seq
                                  OR (m.former ->> 'ready')::boolean
                                     AND x.seq = (SELECT max(y.seq) FROM daybook.impacts y
                                                   WHERE y.org_id = i.org_id AND y.document_id = d.id AND y.kind = 'post'
                                                     AND y.document_version <= (m.former ->> 'version')::bigint))) THEN
            code := 'PERIOD_CLOSED';
        ELSIF NOT m.created THEN
            UPDATE daybook.documents x
               SET type = m.former ->> 'type', direction = m.former ->> 'direction', currency = m.former ->> 'currency',
                   issue_date = (m.former ->> 'issue_date')::date, value_date = (m.former ->> 'value_date')::date,
                   content = m.former -> 'content', import_id = (m.former ->> 'import_id')::bigint
             WHERE x.org_id = i.org_id AND x.id = d.id;
            IF (m.former ->> 'ready')::boolean THEN
                v := (SELECT x.version FROM daybook.mark_document_ready(i.org_id, d.id) x);
            ELSE
                v := (SELECT x.version FROM daybook.mark_document_not_ready(i.org_id, d.id) x);
            END IF;
            -- What the import before wrote is there again, so that it can be undone as well.
            UPDATE daybook.import_documents x
               SET version = v, written_at = (SELECT y.updated_at FROM daybook.documents y WHERE y.org_id = i.org_id AND y.id = d.id)
             WHERE x.import_id = (m.former ->> 'import_id')::bigint AND x.document_id = d.id AND x.version = (m.former ->> 'version')::bigint
               AND x.undone IS NULL;
            result := 'restored';
            counts[3] := counts[3] + 1;
        ELSIF daybook.remove_unposted_document(i.org_id, d.id) THEN
            v := m.version;
            result := 'removed';
            counts[1] := counts[1] + 1;
        ELSE
            v := (SELECT x.version FROM daybook.mark_document_deleted(i.org_id, d.id) x);
            result := 'reversed';
            counts[2] := counts[2] + 1;
        END IF;
        IF result <> 'kept' THEN
            UPDATE daybook.import_documents x SET undone = undo_import.result, version = v, former = NULL
             WHERE x.import_id = i.id AND x.document_id = undo_import.document_id;
        END IF;
        RETURN NEXT;
    END LOOP;

    UPDATE daybook.imports x
       SET undo_started_at = coalesce(x.undo_started_at, clock_timestamp()), undo_actor = coalesce(x.undo_actor, undo_import.actor),
           removed = x.removed + counts[1], reversed = x.reversed + counts[2], restored = x.restored + counts[3]
     WHERE x.id = i.id AND (x.undo_started_at IS NULL OR counts <> '{0,0,0}');
    IF coalesce(cardinality(ids), 0) < most THEN
        v := (SELECT count(*) FROM daybook.import_documents x WHERE x.import_id = i.id AND x.undone IS NULL);
        UPDATE daybook.imports x SET undo_ended_at = clock_timestamp(), kept = v
         WHERE x.id = i.id AND (x.undo_ended_at IS NULL OR x.kept <> v);
    END IF;
END
$$;

-- Name: FUNCTION undo_import(import_id bigint, after text, most integer, actor text); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.undo_import(import_id bigint, after text, most integer, actor text) IS 'Takes back the next documents of an import. result: removed, reversed (by a worker), restored, or kept (code says why). Call it until it returns fewer than most';

-- Name: unkept_parts(text, date, date); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.unkept_parts(org_id text, from_day date, to_day date) RETURNS TABLE(first_day date, last_day date)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    WITH spans AS (
        SELECT u.first_day, u.last_day FROM daybook.unkept_spans(unkept_parts.org_id, from_day, to_day) u
    ), cuts AS (
        SELECT s.first_day AS day, s.last_day FROM spans s
         UNION
        SELECT c.day, s.last_day FROM spans s JOIN daybook.closed_sum_spans k ON k.org_id = unkept_parts.org_id
         CROSS JOIN LATERAL (VALUES (k.starts_on), (k.ends_on + 1)) AS c (day)
         WHERE c.day > s.first_day AND c.day <= s.last_day
    )
    SELECT c.day, coalesce(lead(c.day) OVER (PARTITION BY c.last_day ORDER BY c.day) - 1, c.last_day) FROM cuts c
$$;

-- Name: unkept_spans(text, date, date); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.unkept_spans(org_id text, from_day date, to_day date) RETURNS TABLE(first_day date, last_day date)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    WITH kept AS (
        SELECT k.starts_on, k.ends_on FROM daybook.closed_sum_spans k
         WHERE k.org_id = unkept_spans.org_id AND k.starts_on >= from_day AND k.ends_on <= to_day
    )
    SELECT p.first_day, p.last_day
      FROM (SELECT coalesce(lag(kept.ends_on) OVER (ORDER BY kept.starts_on) + 1, from_day), kept.starts_on - 1 FROM kept
             UNION ALL
            SELECT coalesce(max(kept.ends_on) + 1, from_day), to_day FROM kept) AS p (first_day, last_day)
     WHERE p.first_day <= p.last_day
$$;

-- Name: unposted_documents(text, datemultirange, text[], date[]); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.unposted_documents(org_id text, days datemultirange, computed_ids text[] DEFAULT '{}'::text[], computed_days date[] DEFAULT '{}'::date[]) RETURNS TABLE(document_id text, date date, state daybook.job_state, code text, inside boolean)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
SELECT q.document_id, CASE WHEN r.day <@ unposted_documents.days THEN r.day ELSE coalesce(d.issue_date, i.document_date) END,
       q.state, coalesce(q.last_error_code, ''),
       -- null: no date is known.
       CASE WHEN d.issue_date IS NOT NULL OR i.posting_date IS NOT NULL
            THEN coalesce(d.issue_date <@ unposted_documents.days, false) OR coalesce(d.value_date <@ unposted_documents.days, false)
                 OR coalesce(i.document_date <@ unposted_documents.days, false) OR coalesce(i.posting_date <@ unposted_documents.days, false)
                 OR coalesce(r.day <@ unposted_documents.days, false) END
  FROM daybook.accounting_work_queue q
  LEFT JOIN daybook.documents d ON d.org_id = q.org_id AND d.id = q.document_id
  LEFT JOIN unnest(computed_ids, computed_days) AS r (id, day) ON r.id = q.document_id
  LEFT JOIN LATERAL (SELECT x.document_date, x.posting_date FROM daybook.impacts x
                      WHERE x.org_id = q.org_id AND x.document_id = q.document_id ORDER BY x.seq DESC LIMIT 1) i ON true
 WHERE q.org_id = unposted_documents.org_id AND q.state IN ('pending', 'leased', 'failed') AND NOT isempty(unposted_documents.days)
$$;

-- Name: FUNCTION unposted_documents(org_id text, days datemultirange, computed_ids text[], computed_days date[]); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.unposted_documents(org_id text, days datemultirange, computed_ids text[], computed_days date[]) IS 'Documents whose jobs failed or wait. inside: one of their dates is one of the days; null: no date is known of it';

-- Name: unreconcile(text, text[], bigint); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.unreconcile(org_id text, documents text[] DEFAULT NULL::text[], group_id bigint DEFAULT NULL::bigint) RETURNS SETOF text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    _org   CONSTANT text := unreconcile.org_id;
    ids    CONSTANT text[] := ARRAY(SELECT daybook.open_item_of(_org, u.id) FROM unnest(unreconcile.documents) AS u (id));
    groups bigint[];
BEGIN
    PERFORM daybook.see_groups_whole();
    IF (unreconcile.documents IS NULL) = (unreconcile.group_id IS NULL) THEN
        RAISE EXCEPTION 'give either documents or a group' USING ERRCODE = 'DB010';
    END IF;
    PERFORM pg_advisory_xact_lock(daybook.lock_class('reconciliations'), hashtext(_org));
    groups := ARRAY(SELECT DISTINCT r.group_id FROM daybook.reconciled r
                     WHERE r.org_id = _org AND (r.document_id = ANY (ids) OR r.group_id = unreconcile.group_id));
    RETURN QUERY
    DELETE FROM daybook.reconciled r
     WHERE r.org_id = _org AND r.group_id = ANY (groups) AND (r.group_id = unreconcile.group_id OR r.document_id = ANY (ids))
    RETURNING r.document_id;
    RETURN QUERY
    DELETE FROM daybook.reconciled r
     WHERE r.org_id = _org
       AND r.group_id IN (SELECT x.group_id FROM daybook.reconciled x WHERE x.org_id = _org AND x.group_id = ANY (groups) GROUP BY x.group_id HAVING count(*) = 1)
    RETURNING r.document_id;
END
$$;

-- Name: FUNCTION unreconcile(org_id text, documents text[], group_id bigint); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.unreconcile(org_id text, documents text[], group_id bigint) IS 'Takes documents out of their groups, or dissolves a group, and returns the documents that are in none any more';

-- Name: use_configuration(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.use_configuration(org_id text) RETURNS void
    LANGUAGE sql
    AS $$
    SELECT pg_advisory_xact_lock_shared(daybook.lock_class('configurations'), hashtext(use_configuration.org_id));
$$;

-- Name: vat_differences(text, date, date); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.vat_differences(org_id text, from_day date DEFAULT NULL::date, to_day date DEFAULT NULL::date) RETURNS TABLE(document_id text, currency text, stated numeric, posted numeric)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT r.document_id, r.currency, r.tax, r.posted
      FROM daybook.vat_report(vat_differences.org_id, from_day, to_day) r
     WHERE r.kind = 'document'
     ORDER BY abs(r.tax - r.posted) DESC, 1, 2
$$;

-- Name: FUNCTION vat_differences(org_id text, from_day date, to_day date); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.vat_differences(org_id text, from_day date, to_day date) IS 'Documents whose taxes, as they state them, are not what is posted to accounts with the role tax, in minor units; positive: owed';

-- Name: vat_report(text, date, date, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.vat_report(org_id text, from_day date DEFAULT NULL::date, to_day date DEFAULT NULL::date, differences integer DEFAULT NULL::integer) RETURNS TABLE(kind text, currency text, direction text, country text, category text, code text, rate numeric, account_code text, name text, documents bigint, base numeric, tax numeric, document_id text, posted numeric)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    WITH span AS (
        SELECT coalesce(from_day, '-infinity') AS first_day, coalesce(to_day, 'infinity') AS last_day,
               daybook.tax_accounts(vat_report.org_id) AS accounts, coalesce(differences, 1) > 0 AS by_document
    ), kept AS (
        SELECT k.starts_on, k.ends_on, k.tax_accounts = span.accounts AS same_accounts
          FROM span JOIN daybook.closed_sum_spans k ON k.starts_on >= span.first_day AND k.ends_on <= span.last_day
         WHERE k.org_id = vat_report.org_id
    ), parts AS (
        SELECT u.first_day, u.last_day, false AS kept FROM span CROSS JOIN LATERAL daybook.unkept_parts(vat_report.org_id, span.first_day, span.last_day) u
         UNION ALL
        SELECT kept.starts_on, kept.ends_on, true FROM kept CROSS JOIN span WHERE NOT kept.same_accounts AND span.by_document
    ), read AS MATERIALIZED (
        SELECT r.* FROM span CROSS JOIN parts p
         CROSS JOIN LATERAL daybook.read_taxes(vat_report.org_id, p.first_day, p.last_day, span.accounts, false, span.by_document) r
         WHERE r.kind = 'document' OR NOT p.kept
    ), taxes AS (
        SELECT k.currency, k.direction, k.country, k.category, k.code, k.rate, k.documents, k.base, k.tax
          FROM kept JOIN daybook.closed_tax_sums k ON k.org_id = vat_report.org_id AND k.starts_on = kept.starts_on
         UNION ALL
        SELECT r.currency, r.direction, r.country, r.category, r.code, r.rate, r.documents, r.base, r.tax FROM read r WHERE r.kind = 'stated'
    ), stated AS (
        SELECT t.currency, t.direction, t.country, t.category, t.code, t.rate, sum(t.documents)::bigint AS documents, sum(t.base) AS base, sum(t.tax) AS tax
          FROM taxes t GROUP BY 1, 2, 3, 4, 5, 6
        HAVING sum(t.base) <> 0 OR sum(t.tax) <> 0 OR sum(t.documents) <> 0
    ), sums AS (
        SELECT k.account_code, k.currency, k.credit - k.debit AS tax
          FROM kept JOIN daybook.closed_sums k ON k.org_id = vat_report.org_id AND k.starts_on = kept.starts_on
         UNION ALL
        SELECT r.account_code, r.currency, r.posted FROM read r WHERE r.kind = 'posted'
    ), posted AS (
        SELECT s.currency, a.code, a.name, sum(s.tax) AS tax
          FROM sums s JOIN daybook.accounts a ON a.org_id = vat_report.org_id AND a.code = s.account_code AND a.role = 'tax'
         GROUP BY 1, 2, 3
    ), totals AS (
        SELECT x.currency, sum(x.stated) AS stated, sum(x.posted) AS posted
          FROM (SELECT s.currency, CASE s.direction WHEN 'out' THEN s.tax ELSE -s.tax END AS stated, 0 AS posted FROM stated s
                 UNION ALL
                SELECT p.currency, 0, p.tax FROM posted p) x
         GROUP BY 1
    ), documents AS (
        SELECT x.document_id, x.currency, sum(x.stated) AS stated, sum(x.posted) AS posted
          FROM (SELECT k.document_id, k.currency, k.stated, k.posted
                  FROM span CROSS JOIN kept JOIN daybook.closed_tax_differences k ON k.org_id = vat_report.org_id AND k.starts_on = kept.starts_on
                 WHERE kept.same_accounts AND span.by_document
                 UNION ALL
                SELECT r.document_id, r.currency, r.tax, r.posted FROM read r WHERE r.kind = 'document') x
         GROUP BY 1, 2
        HAVING sum(x.stated) <> sum(x.posted)
         ORDER BY abs(sum(x.stated) - sum(x.posted)) DESC, 1, 2
         LIMIT differences
    )
    SELECT r.kind, r.currency, r.direction, r.country, r.category, r.code, r.rate, r.account_code, r.name, r.documents, r.base, r.tax, r.document_id, r.posted
      FROM (SELECT 1 AS part, 'stated' AS kind, s.currency, s.direction, s.country, s.category, s.code, s.rate, '' AS account_code, '' AS name, s.documents, s.base, s.tax,
                   '' AS document_id, NULL::numeric AS posted FROM stated s
             UNION ALL
            SELECT 2, 'stated_total', t.currency, '', '', '', '', NULL, '', 'Tax that documents state', NULL, NULL, t.stated, '', NULL FROM totals t
             UNION ALL
            SELECT 3, 'posted', p.currency, '', '', '', '', NULL, p.code, p.name, NULL, NULL, p.tax, '', NULL FROM posted p
             UNION ALL
            SELECT 4, 'posted_total', t.currency, '', '', '', '', NULL, '', 'Tax that is posted', NULL, NULL, t.posted, '', NULL FROM totals t
             UNION ALL
            SELECT 5, 'difference', t.currency, '', '', '', '', NULL, '', 'Difference', NULL, NULL, t.stated - t.posted, '', NULL FROM totals t
             UNION ALL
            SELECT 6, 'document', d.currency, '', '', '', '', NULL, '', '', NULL, NULL, d.stated, d.document_id, d.posted FROM documents d) r
     ORDER BY r.kind = 'document', CASE r.kind WHEN 'document' THEN abs(r.tax - r.posted) END DESC, r.document_id,
              r.currency, r.part, r.direction DESC, r.country, r.category, r.rate DESC NULLS LAST, r.code, r.account_code
$$;

-- Name: FUNCTION vat_report(org_id text, from_day date, to_day date, differences integer); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.vat_report(org_id text, from_day date, to_day date, differences integer) IS 'The rows of daybook.vat_summary and, as kind document, those of daybook.vat_differences, in one pass';

-- Name: vat_summary(text, date, date); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.vat_summary(org_id text, from_day date DEFAULT NULL::date, to_day date DEFAULT NULL::date) RETURNS TABLE(kind text, currency text, direction text, country text, category text, code text, rate numeric, account_code text, name text, documents bigint, base numeric, tax numeric)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT r.kind, r.currency, r.direction, r.country, r.category, r.code, r.rate, r.account_code, r.name, r.documents, r.base, r.tax
      FROM daybook.vat_report(vat_summary.org_id, from_day, to_day, 0) WITH ORDINALITY r
     ORDER BY r.ordinality
$$;

-- Name: FUNCTION vat_summary(org_id text, from_day date, to_day date); Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON FUNCTION daybook.vat_summary(org_id text, from_day date, to_day date) IS 'Taxes from one day to another: as documents state them by direction, country, category, code and rate, as they are posted to accounts with the role tax, and the difference';

-- Name: versioned_job_slot(text, text, integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.versioned_job_slot(type text, queue text, min_version integer) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $_$
BEGIN
    RETURN $1 || '/' || coalesce($2, '') || '/' || $3::text;
END
$_$;

-- Name: wake_accounting_queue(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.wake_accounting_queue() RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF daybook.must_wake(1, '-infinity') AND current_setting('daybook.notify', true) IS DISTINCT FROM 'off' THEN
        PERFORM pg_notify('daybook_accounting', '');
    END IF;
END
$$;

-- Name: wake_job_queue(integer); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.wake_job_queue(fleet integer DEFAULT NULL::integer) RETURNS void
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

-- Name: wake_task_queue(); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.wake_task_queue() RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF daybook.must_wake(3, '-infinity') AND current_setting('daybook.notify', true) IS DISTINCT FROM 'off' THEN
        PERFORM pg_notify('daybook_tasks', '');
    END IF;
END
$$;

-- Name: words_of(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.words_of(words text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT trim(both ' ' from regexp_replace(lower(words), '[^[:alnum:]]+', ' ', 'g'))
$$;

-- Name: work_bulk_batch(text); Type: FUNCTION; Schema: daybook; Owner: -

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

-- Name: yield_to_newer(text); Type: FUNCTION; Schema: daybook; Owner: -

CREATE FUNCTION daybook.yield_to_newer(job_id text) RETURNS void
    LANGUAGE sql
    AS $_$
    UPDATE daybook.jobs j
       SET state = 'cancelled', finished_at = clock_timestamp(), updated_at = clock_timestamp(), generation = j.generation + 1,
           last_error_code = 'REPLACED', last_error = format('job %s, with the same key and a newer payload, takes its place', w.job_id)
      FROM daybook.job_waits w
     WHERE j.id = $1 AND j.state::text = 'pending' AND w.awaits = j.id AND w.replaces AND w.ended_as IS NULL
       AND j.last_error_code IS DISTINCT FROM 'AWAITING_CALLBACK'
       AND NOT EXISTS (SELECT FROM daybook.job_waits o WHERE o.awaits = j.id AND o.ended_as IS NULL AND NOT o.replaces)
$_$;

-- Name: run_function(text, jsonb); Type: FUNCTION; Schema: internal; Owner: -

CREATE FUNCTION internal.run_function(function_name text, payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    AS $_$
DECLARE
    parts  text[];
    called pg_catalog.pg_proc;
    result jsonb;
BEGIN
    BEGIN
        parts := pg_catalog.parse_ident(function_name);
    EXCEPTION WHEN invalid_parameter_value THEN
        NULL; -- parts stays null
    END;
    IF pg_catalog.cardinality(parts) OPERATOR(pg_catalog.=) 2 IS NOT TRUE THEN
        RAISE EXCEPTION 'a function is named as schema.name, not %', coalesce(pg_catalog.quote_literal(function_name), 'null')
            USING ERRCODE = 'invalid_name';
    END IF;
    SELECT p.* INTO called
      FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
     WHERE n.nspname OPERATOR(pg_catalog.=) parts[1]::name AND p.proname OPERATOR(pg_catalog.=) parts[2]::name
       AND p.proargtypes::text OPERATOR(pg_catalog.=) ('jsonb'::pg_catalog.regtype::pg_catalog.oid)::text
       AND p.prorettype OPERATOR(pg_catalog.=) 'jsonb'::pg_catalog.regtype AND p.prokind OPERATOR(pg_catalog.=) 'f' AND NOT p.proretset;
    IF called.oid IS NULL THEN
        RAISE EXCEPTION 'there is no function %.%(jsonb) that returns jsonb', pg_catalog.quote_ident(parts[1]), pg_catalog.quote_ident(parts[2])
            USING ERRCODE = 'undefined_function', HINT = 'create it, or correct the task''s payload';
    END IF;
    IF NOT pg_catalog.pg_has_role(called.proowner, 'USAGE')
       AND NOT EXISTS (SELECT FROM pg_catalog.aclexplode(called.proacl) a
                        WHERE a.privilege_type OPERATOR(pg_catalog.=) 'EXECUTE' AND a.grantee OPERATOR(pg_catalog.<>) 0
                          AND pg_catalog.pg_has_role(a.grantee, 'USAGE')) THEN
        RAISE EXCEPTION 'function %.% is not granted to %', pg_catalog.quote_ident(parts[1]), pg_catalog.quote_ident(parts[2]), current_user
            USING ERRCODE = 'insufficient_privilege',
                  HINT = pg_catalog.format('GRANT EXECUTE ON FUNCTION %I.%I(jsonb) TO %I', parts[1], parts[2], current_user);
    END IF;
    EXECUTE pg_catalog.format('SELECT %I.%I($1)', parts[1], parts[2]) INTO result USING payload;
    RETURN result;
END
$_$;

-- Name: FUNCTION run_function(function_name text, payload jsonb); Type: COMMENT; Schema: internal; Owner: -

COMMENT ON FUNCTION internal.run_function(function_name text, payload jsonb) IS 'Calls the function that a task names, with the rights of the caller, who must have been granted it';

-- Name: run_functions(text, jsonb[], text[], interval); Type: FUNCTION; Schema: internal; Owner: -

CREATE FUNCTION internal.run_functions(function_name text, payloads jsonb[], traceparents text[], begins_for interval) RETURNS TABLE(result jsonb, undone_by text)
    LANGUAGE plpgsql
    AS $_$
DECLARE
    began CONSTANT timestamptz := pg_catalog.clock_timestamp();
    parts text[];
    call  text;
BEGIN
    FOR i IN 1 .. pg_catalog.cardinality(payloads) LOOP
        EXIT WHEN i OPERATOR(pg_catalog.>) 1 AND pg_catalog.clock_timestamp() OPERATOR(pg_catalog.>) (began OPERATOR(pg_catalog.+) begins_for);
        result := NULL;
        undone_by := NULL;
        BEGIN
            PERFORM pg_catalog.set_config('daybook.traceparent', traceparents[i], true);
            IF call IS NULL THEN
                result := internal.run_function(function_name, payloads[i]);
                -- It has checked the name and the grant.
                parts := pg_catalog.parse_ident(function_name);
                call := pg_catalog.format('SELECT %I.%I($1)', parts[1], parts[2]);
            ELSE
                EXECUTE call INTO result USING payloads[i];
            END IF;
            -- Undone, so that the constraints of the next call are deferred as they are declared.
            BEGIN
                SET CONSTRAINTS ALL IMMEDIATE;
                RAISE EXCEPTION USING ERRCODE = 'DB099';
            EXCEPTION WHEN SQLSTATE 'DB099' THEN
                NULL;
            END;
        EXCEPTION
            WHEN OTHERS OR query_canceled OR assert_failure THEN
                undone_by := SQLSTATE;
        END;
        RETURN NEXT;
        EXIT WHEN undone_by OPERATOR(pg_catalog.=) ANY (ARRAY['40001', '40P01', '55P03', '57014']);
    END LOOP;
END
$_$;

-- Name: FUNCTION run_functions(function_name text, payloads jsonb[], traceparents text[], begins_for interval); Type: COMMENT; Schema: internal; Owner: -

COMMENT ON FUNCTION internal.run_functions(function_name text, payloads jsonb[], traceparents text[], begins_for interval) IS 'Calls a function that tasks name for several of them, in one transaction; a call that fails is undone';

-- Name: begin_tasks(text, bigint, bigint[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.begin_tasks(_turn text, _fence bigint, _task_ids bigint[]) RETURNS TABLE(task_id bigint, begun boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    UPDATE queues.open_task o SET working = true
     WHERE o.task_id = ANY (ARRAY(SELECT x.task_id FROM queues.open_task x WHERE x.task_id = ANY (_task_ids) AND x.turn_id = _turn AND x.fence = _fence FOR UPDATE SKIP LOCKED))
    RETURNING o.task_id, true;
    RETURN QUERY
    SELECT o.task_id, false FROM queues.open_task o WHERE o.task_id = ANY (_task_ids) AND o.turn_id = _turn AND o.fence = _fence AND NOT o.working;
END
$$;

-- Name: claim_tasks(integer, text, text, bigint, text, boolean, boolean, boolean); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.claim_tasks(_limit integer, _type text, _turn text DEFAULT NULL::text, _fence bigint DEFAULT NULL::bigint, _worker text DEFAULT NULL::text, _detached boolean DEFAULT false, _working boolean DEFAULT false, _counted boolean DEFAULT false) RETURNS TABLE(task_id bigint, task_type text, payload jsonb, enqueued_at timestamp with time zone, scheduled_at timestamp with time zone, task_lease_id bigint, leased_at timestamp with time zone, expires_at timestamp with time zone, leases integer, reclaims integer, traceparent text)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    clock CONSTANT timestamptz := clock_timestamp();
    room  record;
    c     queues.task_cursor;
    early bigint[];
    ids   bigint[] := '{}';
    more  bigint[];
    to_at timestamptz := clock;
    to_id bigint := 9223372036854775807;
BEGIN
    IF _type IS NOT NULL THEN
        PERFORM queues.require_task_type(_type);
    END IF;
    -- Pauses and caps (chapter 18).
    SELECT r.* INTO room FROM queues.task_room(_type, _limit) r;
    IF room.most < 1 THEN
        RETURN;
    END IF;
    _limit := room.most;
    c := queues.last_cursor(room.scope);
    -- What is before the cursor comes first. Other transactions may hold some of it.
    early := ARRAY(SELECT b.task_id FROM queues.ready_before(c, _type, room.without, _limit + 1000) b WHERE b.scheduled_at <= clock);
    IF cardinality(early) > 0 THEN
        ids := ARRAY(SELECT o.task_id FROM queues.open_task o
                      WHERE o.task_id = ANY (early) AND coalesce(o.task_lease_id, 0) = 0
                      ORDER BY o.scheduled_at, o.task_id LIMIT _limit FOR UPDATE SKIP LOCKED);
    END IF;
    IF cardinality(ids) < _limit THEN
        IF _type IS NULL THEN
            more := ARRAY(SELECT o.task_id FROM queues.open_task o
                           WHERE o.leased_until IS NULL AND (o.scheduled_at, o.task_id) > (c.last_at, c.last_id) AND o.scheduled_at <= clock AND o.task_type <> ALL (room.without)
                           ORDER BY o.scheduled_at, o.task_id LIMIT _limit - cardinality(ids) FOR UPDATE SKIP LOCKED);
        ELSE
            more := ARRAY(SELECT o.task_id FROM queues.open_task o
                           WHERE num_nulls(o.leased_until) = 1 AND o.task_type = _type AND (o.scheduled_at, o.task_id) > (c.last_at, c.last_id) AND o.scheduled_at <= clock
                           ORDER BY o.scheduled_at, o.task_id LIMIT _limit - cardinality(ids) FOR UPDATE SKIP LOCKED);
        END IF;
        ids := ids || more;
    END IF;
    IF cardinality(room.capped) > 0 THEN
        ids := queues.within_caps(ids, room.capped, room.left_of);
    END IF;
    IF cardinality(ids) > 0 THEN
        -- The tasks are read here, by a snapshot that saw them become ready: that of a caller's
        -- statement may be older.
        RETURN QUERY
        WITH added AS (
            INSERT INTO queues.task_lease (task_id, leased_at, expires_at)
            SELECT i.id, clock, clock + interval '5 minutes' FROM unnest(ids) WITH ORDINALITY AS i (id, n) ORDER BY i.n
            RETURNING task_id, task_lease_id
        ), leased AS (
            UPDATE queues.open_task o
               SET task_lease_id = a.task_lease_id, leased_until = clock + interval '5 minutes', leases = o.leases + 1, arrived = pg_current_xact_id(),
                   turn_id = _turn, fence = _fence, worker = _worker, detached = _detached, working = _working, counted = _counted
              FROM added a
             WHERE o.task_id = ANY (ids) AND o.task_id = a.task_id
            RETURNING o.task_id, o.task_lease_id, o.leases, o.leased_until, o.reclaims, o.scheduled_at
        )
        SELECT t.task_id, t.task_type, t.payload, t.enqueued_at, t.scheduled_at, l.task_lease_id, clock, l.leased_until, l.leases, l.reclaims, t.traceparent::text
          FROM leased l JOIN queues.task t USING (task_id)
         ORDER BY l.scheduled_at, l.task_id;
    END IF;
    IF queues.cursor_is_old(c) THEN
        IF cardinality(ids) = _limit THEN
            SELECT t.scheduled_at, t.task_id INTO to_at, to_id FROM queues.open_task t WHERE t.task_id = ids[_limit];
        END IF;
        PERFORM queues.move_ready_cursor(c, _type, room.without, to_at, to_id);
    END IF;
END
$$;

-- Name: complete_task(bigint); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.complete_task(_task_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    DELETE FROM queues.open_task o WHERE o.task_id = _task_id;
    IF NOT FOUND AND NOT EXISTS (SELECT FROM queues.task t WHERE t.task_id = _task_id) THEN
        RAISE EXCEPTION 'there is no task %', coalesce(_task_id::text, 'null') USING ERRCODE = 'DB010', HINT = 'list the tasks in queues.task';
    END IF;
    INSERT INTO queues.task_completed (task_id) VALUES (_task_id) ON CONFLICT DO NOTHING;
END
$$;

-- Name: FUNCTION complete_task(_task_id bigint); Type: COMMENT; Schema: queues; Owner: -

COMMENT ON FUNCTION queues.complete_task(_task_id bigint) IS 'Says that a task is done with, whether it succeeded or failed; a second call does nothing';

-- Name: complete_tasks(bigint[], bigint[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.complete_tasks(_task_ids bigint[], _task_lease_ids bigint[] DEFAULT NULL::bigint[]) RETURNS SETOF bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
BEGIN
    IF cardinality(_task_lease_ids) <> cardinality(_task_ids) THEN
        RAISE EXCEPTION 'there must be as many leases as tasks, or null' USING ERRCODE = 'DB010';
    END IF;
    RETURN QUERY
    WITH held AS (
        SELECT o.task_id FROM unnest(_task_ids, _task_lease_ids) AS x (id, lease)
          JOIN queues.open_task o ON o.task_id = x.id AND (_task_lease_ids IS NULL OR o.task_lease_id = x.lease)
         WHERE o.task_id = ANY (_task_ids) ORDER BY o.task_id FOR UPDATE OF o
    ), closed AS (
        DELETE FROM queues.open_task o WHERE o.task_id = ANY (ARRAY(SELECT h.task_id FROM held h)) RETURNING o.task_id
    )
    INSERT INTO queues.task_completed AS t (task_id) SELECT c.task_id FROM closed c ON CONFLICT DO NOTHING RETURNING t.task_id;
END
$$;

-- Name: counted_tasks(text); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.counted_tasks(_type text) RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
    c CONSTANT queues.task_cursor := queues.last_cursor('@');
BEGIN
    RETURN (SELECT count(*) FROM queues.open_task o WHERE o.counted AND o.task_type = _type AND o.leased_until >= c.last_at)
         + (SELECT count(*) FROM queues.leased_before(c) b WHERE b.counted AND b.task_type = _type);
END
$$;

-- Name: task_cursor; Type: TABLE; Schema: queues; Owner: -

CREATE TABLE queues.task_cursor (
    scope text NOT NULL COLLATE pg_catalog."C",
    cursor_no bigint NOT NULL,
    made_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    server bigint DEFAULT (pg_control_system()).system_identifier NOT NULL,
    seen_to xid8 NOT NULL,
    unseen xid8[] NOT NULL,
    last_at timestamp with time zone NOT NULL,
    last_id bigint NOT NULL,
    passed bigint[] NOT NULL,
    leases bigint DEFAULT 0 NOT NULL
);

-- Name: COLUMN task_cursor.scope; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.task_cursor.scope IS '*: ready tasks, by (scheduled_at, task_id); the name of a type: those of it; ! and names: those of all other types; @: leases, by leased_until';

-- Name: COLUMN task_cursor.server; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.task_cursor.server IS 'The server whose transactions are counted';

-- Name: COLUMN task_cursor.unseen; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.task_cursor.unseen IS 'The transactions below seen_to that had not ended, and the one that made the row';

-- Name: COLUMN task_cursor.leases; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.task_cursor.leases IS 'The last task_lease_id that had been drawn: when another one has been drawn since, the cursor is worth moving';

-- Name: cursor_is_old(queues.task_cursor); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.cursor_is_old(c queues.task_cursor) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF c.made_at > clock_timestamp() - interval '100 milliseconds' AND c.made_at < clock_timestamp() THEN
        RETURN false;
    END IF;
    IF c.cursor_no = 0 OR c.leases <> queues.last_lease() THEN
        RETURN true;
    END IF;
    RETURN (SELECT o.arrived FROM queues.open_task o WHERE o.task_lease_id IS NULL AND o.arrived >= c.seen_to ORDER BY o.arrived LIMIT 1) IS NOT NULL;
END
$$;

-- Name: dequeue_available_tasks(integer, text[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.dequeue_available_tasks(_limit integer, _task_types text[] DEFAULT NULL::text[]) RETURNS TABLE(task_id bigint, task_type text, payload jsonb, enqueued_at timestamp with time zone, scheduled_at timestamp with time zone, task_lease_id bigint, leased_at timestamp with time zone, expires_at timestamp with time zone, attempt integer)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    kind text;
BEGIN
    IF _limit IS NULL OR _limit NOT BETWEEN 1 AND 10000 THEN
        RAISE EXCEPTION 'from 1 to 10000 tasks are leased at once, not %', _limit USING ERRCODE = 'DB010';
    END IF;
    PERFORM queues.require_task_type(x) FROM unnest(_task_types) AS x;
    PERFORM queues.reclaim_expired(clock_timestamp(), false);
    IF _task_types IS NULL THEN
        RETURN QUERY
        SELECT c.task_id, c.task_type, c.payload, c.enqueued_at, c.scheduled_at, c.task_lease_id, c.leased_at, c.expires_at, c.leases FROM queues.claim_tasks(_limit, NULL) c;
        RETURN;
    END IF;
    -- In the order of their names, so that two callers do not wait for each other.
    FOR kind IN SELECT DISTINCT x FROM unnest(_task_types) AS x ORDER BY x LOOP
        RETURN QUERY
        SELECT c.task_id, c.task_type, c.payload, c.enqueued_at, c.scheduled_at, c.task_lease_id, c.leased_at, c.expires_at, c.leases FROM queues.claim_tasks(_limit, kind) c;
    END LOOP;
END
$$;

-- Name: task; Type: TABLE; Schema: queues; Owner: -

CREATE TABLE queues.task (
    task_id bigint NOT NULL,
    task_type text NOT NULL COLLATE pg_catalog."C",
    payload jsonb NOT NULL,
    enqueued_at timestamp with time zone DEFAULT now() NOT NULL,
    scheduled_at timestamp with time zone DEFAULT now() NOT NULL,
    traceparent character varying(55) DEFAULT daybook.traceparent(),
    CONSTRAINT task_payload_is_object CHECK ((jsonb_typeof(payload) = 'object'::text)),
    CONSTRAINT task_time_is_readable CHECK (((scheduled_at >= '0001-01-01 00:00:00+00'::timestamp with time zone) AND (scheduled_at <= '9999-12-31 23:59:59+00'::timestamp with time zone))),
    CONSTRAINT task_type_is_name CHECK ((task_type ~ '^[a-z][a-z0-9_]{0,62}$'::text))
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');

-- Name: TABLE task; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON TABLE queues.task IS 'What is to be done. Append-only: queues.enqueue adds to it';

-- Name: COLUMN task.task_type; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.task.task_type IS 'db_function, email, sms, file_delete, or a type that the application gives its worker a processor for';

-- Name: COLUMN task.traceparent; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.task.traceparent IS 'The trace of what asked for the task, as W3C Trace Context writes it';

-- Name: dequeue_next_available_task(); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.dequeue_next_available_task() RETURNS queues.task
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    leased queues.task;
BEGIN
    PERFORM queues.reclaim_expired(clock_timestamp(), false);
    SELECT c.task_id, c.task_type, c.payload, c.enqueued_at, c.scheduled_at, c.traceparent INTO leased FROM queues.claim_tasks(1, NULL) c;
    RETURN leased;
END
$$;

-- Name: FUNCTION dequeue_next_available_task(); Type: COMMENT; Schema: queues; Owner: -

COMMENT ON FUNCTION queues.dequeue_next_available_task() IS 'Leases the first task that is due for five minutes, and returns it; all columns are null when there is none. Commit before you process it';

-- Name: end_tasks(text, bigint, bigint[], integer[], text[], text[], double precision[], boolean[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.end_tasks(_turn text, _fence bigint, _task_ids bigint[], _attempts integer[], _outcomes text[], _errors text[], _delays double precision[], _database boolean[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
DECLARE
    n integer;
BEGIN
    IF _outcomes IS NULL THEN
        WITH closed AS (
            DELETE FROM queues.open_task o USING unnest(_task_ids, _attempts) AS v (task_id, attempt)
             WHERE o.task_id = ANY (_task_ids) AND o.task_id = v.task_id AND o.turn_id = _turn AND o.fence = _fence AND o.leases = v.attempt
            RETURNING o.task_id
        )
        INSERT INTO queues.task_completed (task_id) SELECT c.task_id FROM closed c;
        GET DIAGNOSTICS n = ROW_COUNT;
    ELSE
        WITH held AS (
            SELECT v.* FROM unnest(_task_ids, _attempts, _outcomes, _errors, _delays, _database) AS v (task_id, attempt, outcome, error, delay, of_database)
              JOIN queues.open_task o ON o.task_id = v.task_id
             WHERE o.task_id = ANY (_task_ids) AND o.turn_id = _turn AND o.fence = _fence AND o.leases = v.attempt
             ORDER BY o.task_id FOR UPDATE OF o
        ), noted AS (
            INSERT INTO queues.error (task_id, error_message) SELECT h.task_id, h.error FROM held h WHERE h.error IS NOT NULL
        ), closed AS (
            DELETE FROM queues.open_task o USING held h WHERE o.task_id = ANY (_task_ids) AND o.task_id = h.task_id AND h.outcome IN ('completed', 'failed') RETURNING o.task_id
        ), completed AS (
            INSERT INTO queues.task_completed (task_id) SELECT c.task_id FROM closed c
        ), again AS (
            UPDATE queues.open_task o
               SET leased_until = NULL, task_lease_id = NULL, turn_id = NULL, fence = NULL, worker = NULL, detached = false, working = false, counted = false,
                   leases = CASE WHEN h.outcome = 'retried' THEN o.leases ELSE o.leases - 1 END, reclaims = 0,
                   put_off = CASE WHEN h.outcome = 'retried' THEN 0 ELSE o.put_off + h.of_database::integer END,
                   scheduled_at = CASE WHEN h.delay > 0 THEN clock_timestamp() + make_interval(secs => h.delay) ELSE least(o.scheduled_at, clock_timestamp()) END,
                   arrived = pg_current_xact_id()
              FROM held h
             WHERE o.task_id = ANY (_task_ids) AND o.task_id = h.task_id AND h.outcome NOT IN ('completed', 'failed')
        )
        SELECT count(*) INTO n FROM held;
    END IF;
    IF n < cardinality(_task_ids) THEN
        PERFORM daybook.lease_lost(cardinality(_task_ids), n);
    END IF;
END
$$;

-- Name: enqueue(text, jsonb, timestamp with time zone); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.enqueue(_task_type text, _payload jsonb, _scheduled_at timestamp with time zone DEFAULT now()) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    due CONSTANT timestamptz := coalesce(_scheduled_at, now());
BEGIN
    PERFORM queues.require_task_type(_task_type);
    IF jsonb_typeof(_payload) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION 'the payload must be a JSON object, not %', coalesce(jsonb_typeof(_payload), 'null') USING ERRCODE = 'DB021';
    END IF;
    IF octet_length(_payload::text) > 131072 THEN
        RAISE EXCEPTION 'the payload has % bytes and may have 131072', octet_length(_payload::text)
            USING ERRCODE = 'DB020', HINT = 'keep what is large elsewhere, and its name in the payload';
    END IF;
    IF due NOT BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59+00' THEN
        RAISE EXCEPTION 'scheduled_at must be between the years 1 and 9999, not %', due USING ERRCODE = 'DB010', HINT = 'enqueue the task when it is to be done';
    END IF;
    WITH added AS (
        INSERT INTO queues.task (task_type, payload, scheduled_at) VALUES (_task_type, _payload, due) RETURNING task_id
    )
    INSERT INTO queues.open_task (task_id, task_type, scheduled_at) SELECT a.task_id, _task_type, due FROM added a;
    IF daybook.must_wake(3, due) THEN
        PERFORM daybook.wake_task_queue();
    END IF;
END
$$;

-- Name: FUNCTION enqueue(_task_type text, _payload jsonb, _scheduled_at timestamp with time zone); Type: COMMENT; Schema: queues; Owner: -

COMMENT ON FUNCTION queues.enqueue(_task_type text, _payload jsonb, _scheduled_at timestamp with time zone) IS 'Asks for a task, in the transaction of the caller: a supervisor, a handler or a kickoff function';

-- Name: enqueue_tasks(text[], jsonb[], timestamp with time zone[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.enqueue_tasks(_task_types text[], _payloads jsonb[], _scheduled_ats timestamp with time zone[] DEFAULT NULL::timestamp with time zone[]) RETURNS TABLE(ordinal bigint, task_id bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
DECLARE
    wrong record;
    due   timestamptz;
BEGIN
    IF _task_types IS NULL OR cardinality(_payloads) IS DISTINCT FROM cardinality(_task_types)
       OR cardinality(_scheduled_ats) <> cardinality(_task_types) THEN
        RAISE EXCEPTION 'there must be as many payloads, and times if any, as types' USING ERRCODE = 'DB010';
    END IF;
    SELECT x.n, x.kind, jsonb_typeof(x.payload) AS shape, octet_length(x.payload::text) AS bytes, x.at INTO wrong
      FROM unnest(_task_types, _payloads, _scheduled_ats) WITH ORDINALITY AS x (kind, payload, at, n)
     WHERE (x.kind ~ '^[a-z][a-z0-9_]{0,62}$') IS NOT TRUE OR jsonb_typeof(x.payload) IS DISTINCT FROM 'object' OR octet_length(x.payload::text) > 131072
        OR x.at NOT BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59+00'
     ORDER BY x.n LIMIT 1;
    IF FOUND THEN
        IF wrong.shape IS DISTINCT FROM 'object' THEN
            RAISE EXCEPTION 'task %: the payload must be a JSON object, not %', wrong.n, coalesce(wrong.shape, 'null') USING ERRCODE = 'DB021';
        ELSIF wrong.bytes > 131072 THEN
            RAISE EXCEPTION 'task %: the payload has % bytes and may have 131072', wrong.n, wrong.bytes
                USING ERRCODE = 'DB020', HINT = 'keep what is large elsewhere, and its name in the payload';
        ELSIF wrong.at NOT BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59+00' THEN
            RAISE EXCEPTION 'task %: scheduled_at must be between the years 1 and 9999, not %', wrong.n, wrong.at
                USING ERRCODE = 'DB010', HINT = 'enqueue the task when it is to be done';
        END IF;
        PERFORM queues.require_task_type(wrong.kind);
    END IF;
    RETURN QUERY
    WITH added AS (
        INSERT INTO queues.task AS t (task_type, payload, scheduled_at)
        SELECT x.kind, x.payload, coalesce(x.at, now()) FROM unnest(_task_types, _payloads, _scheduled_ats) WITH ORDINALITY AS x (kind, payload, at, n) ORDER BY x.n
        RETURNING t.task_id, t.task_type, t.scheduled_at
    ), opened AS (
        INSERT INTO queues.open_task (task_id, task_type, scheduled_at) SELECT a.task_id, a.task_type, a.scheduled_at FROM added a
    )
    -- The ids are drawn in the order of the arrays.
    SELECT row_number() OVER (ORDER BY a.task_id), a.task_id FROM added a ORDER BY a.task_id;
    due := (SELECT min(coalesce(x.at, now())) FROM unnest(_task_types, _scheduled_ats) AS x (kind, at));
    IF daybook.must_wake(3, due) THEN
        PERFORM daybook.wake_task_queue();
    END IF;
END
$_$;

-- Name: FUNCTION enqueue_tasks(_task_types text[], _payloads jsonb[], _scheduled_ats timestamp with time zone[]); Type: COMMENT; Schema: queues; Owner: -

COMMENT ON FUNCTION queues.enqueue_tasks(_task_types text[], _payloads jsonb[], _scheduled_ats timestamp with time zone[]) IS 'queues.enqueue for many tasks in one statement; returns their ids';

-- Name: fail_task(bigint, text); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.fail_task(_task_id bigint, _error_message text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM queues.task t WHERE t.task_id = _task_id) THEN
        RAISE EXCEPTION 'there is no task %', coalesce(_task_id::text, 'null') USING ERRCODE = 'DB010', HINT = 'list the tasks in queues.task';
    END IF;
    INSERT INTO queues.error (task_id, error_message) VALUES (_task_id, coalesce(_error_message, ''));
END
$$;

-- Name: FUNCTION fail_task(_task_id bigint, _error_message text); Type: COMMENT; Schema: queues; Owner: -

COMMENT ON FUNCTION queues.fail_task(_task_id bigint, _error_message text) IS 'Notes what went wrong with a task. The task stays open until queues.complete_task';

-- Name: fail_tasks(bigint[], text[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.fail_tasks(_task_ids bigint[], _error_messages text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
BEGIN
    IF cardinality(_error_messages) IS DISTINCT FROM cardinality(_task_ids) THEN
        RAISE EXCEPTION 'there must be as many messages as tasks' USING ERRCODE = 'DB010';
    END IF;
    INSERT INTO queues.error (task_id, error_message)
    SELECT t.task_id, coalesce(x.message, '') FROM unnest(_task_ids, _error_messages) AS x (id, message) JOIN queues.task t ON t.task_id = x.id;
END
$$;

-- Name: forget_cursors(queues.task_cursor); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.forget_cursors(c queues.task_cursor) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    since CONSTANT bigint := CASE WHEN c.made_at < clock_timestamp() - interval '1 minute' OR random() < 0.01 THEN 0 ELSE c.cursor_no - 100 END;
BEGIN
    DELETE FROM queues.task_cursor d
     WHERE d.scope = c.scope AND d.cursor_no BETWEEN since AND c.cursor_no AND d.cursor_no IN (
        SELECT t.cursor_no FROM queues.task_cursor t
         WHERE t.scope = c.scope AND t.cursor_no BETWEEN since AND c.cursor_no
           FOR UPDATE SKIP LOCKED);
END
$$;

-- Name: give_back_tasks(bigint[], bigint[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.give_back_tasks(_task_ids bigint[], _task_lease_ids bigint[]) RETURNS SETOF bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
BEGIN
    RETURN QUERY
    WITH held AS (
        SELECT o.task_id FROM unnest(_task_ids, _task_lease_ids) AS x (id, lease) JOIN queues.open_task o ON o.task_id = x.id AND coalesce(o.task_lease_id, 0) = x.lease
         WHERE o.task_id = ANY (_task_ids) ORDER BY o.task_id FOR UPDATE OF o
    )
    UPDATE queues.open_task o
       SET leased_until = NULL, task_lease_id = NULL, turn_id = NULL, fence = NULL, worker = NULL, detached = false, working = false, counted = false,
           leases = greatest(o.leases - 1, 0), scheduled_at = least(o.scheduled_at, clock_timestamp()), arrived = pg_current_xact_id()
      FROM held h WHERE o.task_id = ANY (_task_ids) AND o.task_id = h.task_id
    RETURNING o.task_id;
    IF FOUND THEN
        PERFORM daybook.wake_task_queue();
    END IF;
END
$$;

-- Name: give_tasks_of_turn_back(text, bigint, bigint[], double precision); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.give_tasks_of_turn_back(_turn text, _fence bigint, _task_ids bigint[], _delay double precision) RETURNS TABLE(task_id bigint, task_type text, attempt integer)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH held AS (
        SELECT o.task_id, o.leases FROM queues.open_task o
         WHERE o.turn_id = _turn AND o.fence <= _fence AND (_task_ids IS NULL OR o.task_id = ANY (_task_ids))
         ORDER BY o.task_id + 0 FOR UPDATE SKIP LOCKED
    )
    UPDATE queues.open_task o
       SET leased_until = NULL, task_lease_id = NULL, turn_id = NULL, fence = NULL, worker = NULL, detached = false, working = false, counted = false,
           leases = greatest(o.leases - 1, 0), arrived = pg_current_xact_id(),
           scheduled_at = CASE WHEN _delay > 0 THEN clock_timestamp() + make_interval(secs => _delay) ELSE least(o.scheduled_at, clock_timestamp()) END
      FROM held h
     WHERE o.task_id = ANY (ARRAY(SELECT x.task_id FROM held x)) AND o.task_id = h.task_id
    RETURNING o.task_id, o.task_type, h.leases;
    IF FOUND THEN
        PERFORM daybook.wake_task_queue();
    END IF;
END
$$;

-- Name: grant_to_worker(); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.grant_to_worker() RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF to_regrole('worker_service_user') IS NULL THEN
        RETURN false;
    END IF;
    GRANT USAGE ON SCHEMA queues, internal TO worker_service_user;
    GRANT EXECUTE ON FUNCTION queues.dequeue_next_available_task(), queues.complete_task(bigint), queues.fail_task(bigint, text),
        internal.run_function(text, jsonb), internal.run_functions(text, jsonb[], text[], interval) TO worker_service_user;
    -- The same for many tasks at once, and what keeps the leases of a worker that lives.
    GRANT EXECUTE ON FUNCTION queues.dequeue_available_tasks(integer, text[]), queues.next_task_due(text[]), queues.renew_task_leases(bigint[], bigint[]),
        queues.give_back_tasks(bigint[], bigint[]), queues.complete_tasks(bigint[], bigint[]), queues.fail_tasks(bigint[], text[]) TO worker_service_user;
    -- What Daybook's worker asks (chapter 16).
    GRANT EXECUTE ON FUNCTION queues.require_table, queues.next_fence, queues.lease_tasks, queues.has_other_tasks, queues.tasks_of_turn,
        queues.turns_with_tasks, queues.renew_tasks_of_turn, queues.mark_tasks_waiting, queues.begin_tasks, queues.hand_tasks_over,
        queues.give_tasks_of_turn_back, queues.reclaim_tasks_of_turns, queues.reclaim_expired_tasks, queues.note_task_types, queues.lock_tasks, queues.end_tasks, queues.task_put_off
        TO worker_service_user;
    RETURN true;
END
$$;

-- Name: hand_tasks_over(text, bigint, text, boolean, bigint[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.hand_tasks_over(_turn text, _fence bigint, _to text, _detached boolean, _task_ids bigint[]) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    ids CONSTANT bigint[] := ARRAY(SELECT o.task_id FROM queues.open_task o
                                    WHERE o.task_id = ANY (_task_ids) AND o.turn_id IN (_turn, _to) AND o.fence = _fence ORDER BY o.task_id FOR UPDATE SKIP LOCKED);
    old bigint[];
BEGIN
    IF cardinality(ids) < cardinality(_task_ids) THEN
        RETURN false;
    END IF;
    UPDATE queues.open_task o SET turn_id = _to, detached = _detached WHERE o.task_id = ANY (ids);
    old := ARRAY(SELECT o.task_id FROM queues.open_task o WHERE o.task_id = ANY (ids) AND coalesce(o.leased_until, 'infinity') < clock_timestamp() + interval '150 seconds');
    IF cardinality(old) > 0 THEN
        PERFORM queues.prolong_tasks(old);
    END IF;
    RETURN true;
END
$$;

-- Name: has_other_tasks(text[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.has_other_tasks(_types text[]) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
BEGIN
    RETURN EXISTS (SELECT FROM daybook.job_types t
                    WHERE t.kind = 'tasks' AND t.last_seen > clock_timestamp() - interval '5 minutes' AND t.type <> ALL (_types) AND queues.is_type_due(t.type));
END
$$;

-- Name: is_type_due(text); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.is_type_due(_type text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    c CONSTANT queues.task_cursor := queues.last_cursor(_type);
    -- A time that the index can end at: behind it may be a million tasks.
    due CONSTANT timestamptz := clock_timestamp();
BEGIN
    RETURN (SELECT p.scope FROM queues.task_pause(_type) p) IS NOT NULL
       AND (EXISTS (SELECT FROM queues.open_task o
                     WHERE num_nulls(o.leased_until) = 1 AND o.task_type = _type AND (o.scheduled_at, o.task_id) > (c.last_at, c.last_id) AND o.scheduled_at <= due)
            OR EXISTS (SELECT FROM queues.ready_before(c, _type, '{}', 1) b WHERE b.scheduled_at <= due));
END
$$;

-- Name: last_cursor(text); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.last_cursor(_scope text) RETURNS queues.task_cursor
    LANGUAGE plpgsql
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    c queues.task_cursor;
BEGIN
    SELECT * INTO c FROM queues.task_cursor t WHERE t.scope = _scope ORDER BY t.cursor_no DESC LIMIT 1;
    IF c.server <> (pg_control_system()).system_identifier OR c.seen_to > pg_snapshot_xmax(pg_current_snapshot()) THEN
        DELETE FROM queues.task_cursor t WHERE t.scope = _scope;
        c := NULL;
    END IF;
    IF c.scope IS NULL THEN
        c := ROW(_scope, 0, '-infinity', 0, '18446744073709551615', '{0}', '-infinity', 0, '{}', 0);
    END IF;
    RETURN c;
END
$$;

-- Name: last_lease(); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.last_lease() RETURNS bigint
    LANGUAGE sql
    AS $$ SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('queues.task_lease', 'task_lease_id')::regclass), 0) $$;

-- Name: lease_tasks(text, bigint, text, boolean, boolean, integer, text[], integer[], integer[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.lease_tasks(_turn text, _fence bigint, _worker text, _detached boolean, _working boolean, _limit integer, _types text[], _rooms integer[], _everywhere integer[]) RETURNS TABLE(task_id bigint, task_type text, payload jsonb, enqueued_at timestamp with time zone, leased_at timestamp with time zone, attempt integer, reclaims integer, due double precision, "full" text[], ready_at timestamp with time zone, ended jsonb, traceparent text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
DECLARE
    n     CONSTANT integer := coalesce(cardinality(_types), 0);
    rooms integer[] := _rooms;
    dry   boolean[] := array_fill(false, ARRAY[n]);
    fulls text[] := '{}';
    rest  integer := _limit;
    asked integer;
    got   integer;
    soon  double precision;
    gone  jsonb;
BEGIN
    PERFORM queues.require_task_type(x) FROM unnest(_types) AS x;
    gone := (queues.reclaim_expired(clock_timestamp(), false)).ended;
    IF _types IS NULL THEN
        RETURN QUERY
        SELECT c.task_id, c.task_type, c.payload, c.enqueued_at, c.leased_at, c.leases, c.reclaims, NULL::double precision, NULL::text[], c.scheduled_at, NULL::jsonb, c.traceparent
          FROM queues.claim_tasks(_limit, NULL, _turn, _fence, _worker, _detached, _working, false) c;
        GET DIAGNOSTICS got = ROW_COUNT;
        rest := rest - got;
    END IF;
    -- Each type gets its part, and then those that have more get what the others left.
    FOR pass IN 1..2 LOOP
        FOR i IN 1..n LOOP
            CONTINUE WHEN rest <= 0 OR dry[i];
            asked := least(rooms[i], CASE pass WHEN 1 THEN (rest + n - i) / (n - i + 1) ELSE rest END);
            IF asked > 0 AND _everywhere[i] > 0 THEN
                -- One caller at a time counts a type: what it leases is counted by the next one.
                IF pg_try_advisory_xact_lock(daybook.lock_class('task type leases'), hashtext(_types[i])) THEN
                    asked := least(asked, _everywhere[i] - queues.counted_tasks(_types[i]));
                ELSE
                    asked := 0;
                END IF;
                IF asked <= 0 THEN
                    fulls := fulls || _types[i];
                END IF;
            END IF;
            IF asked <= 0 THEN
                dry[i] := true;
                CONTINUE;
            END IF;
            RETURN QUERY
            SELECT c.task_id, c.task_type, c.payload, c.enqueued_at, c.leased_at, c.leases, c.reclaims, NULL::double precision, NULL::text[], c.scheduled_at, NULL::jsonb, c.traceparent
              FROM queues.claim_tasks(asked, _types[i], _turn, _fence, _worker, _detached, _working, _everywhere[i] > 0) c;
            GET DIAGNOSTICS got = ROW_COUNT;
            rest := rest - got;
            rooms[i] := rooms[i] - got;
            dry[i] := got < asked OR rooms[i] = 0;
        END LOOP;
    END LOOP;
    IF rest = _limit THEN
        soon := extract(epoch FROM queues.next_task_due(
            CASE WHEN n > 0 THEN ARRAY(SELECT x.type FROM unnest(_types, _rooms) AS x (type, room) WHERE x.room > 0 AND x.type <> ALL (fulls)) END) - clock_timestamp());
    END IF;
    RETURN QUERY SELECT NULL::bigint, NULL::text, NULL::jsonb, NULL::timestamptz, NULL::timestamptz, NULL::integer, NULL::integer, soon, fulls, NULL::timestamptz, gone, NULL::text;
END
$$;

-- Name: leased_before(queues.task_cursor); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.leased_before(c queues.task_cursor) RETURNS TABLE(task_id bigint, leased_until timestamp with time zone, task_type text, counted boolean)
    LANGUAGE sql STABLE
    AS $$
    SELECT r.task_id, r.leased_until, r.task_type, r.counted
      FROM ((SELECT o.* FROM queues.open_task o WHERE o.task_lease_id IS NOT NULL AND o.arrived >= c.seen_to OFFSET 0)
            UNION ALL
            SELECT u.* FROM (SELECT o.* FROM queues.open_task o WHERE o.task_lease_id IS NOT NULL AND o.arrived = ANY (c.unseen) OFFSET 0) u
             WHERE u.arrived < c.seen_to
            UNION ALL
            SELECT p.* FROM (SELECT o.* FROM queues.open_task o WHERE o.task_id = ANY (c.passed || 0::bigint) OFFSET 0) p
             WHERE p.leased_until IS NOT NULL AND p.arrived < c.seen_to AND p.arrived <> ALL (c.unseen)) r
     WHERE r.leased_until < c.last_at
$$;

-- Name: limit_tasks(text, boolean, integer); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.limit_tasks(_task_type text, _paused boolean DEFAULT NULL::boolean, _cap integer DEFAULT NULL::integer, OUT changed boolean, OUT paused_at timestamp with time zone, OUT max_in_flight integer) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    before queues.task_limit;
BEGIN
    IF _task_type IS DISTINCT FROM '*' THEN
        PERFORM queues.require_task_type(_task_type);
    END IF;
    IF _cap < 0 THEN
        RAISE EXCEPTION 'a cap is 1 at least, not %; 0 removes it', _cap USING ERRCODE = 'DB010', HINT = 'pause the type to have none of its tasks handed out';
    END IF;
    -- The row is there and locked, whatever other transactions do to it.
    INSERT INTO queues.task_limit AS l (task_type) VALUES (_task_type)
        ON CONFLICT ON CONSTRAINT task_limit_pkey DO UPDATE SET task_type = excluded.task_type RETURNING l.* INTO before;
    paused_at := CASE WHEN _paused IS NULL THEN before.paused_at WHEN _paused THEN coalesce(before.paused_at, clock_timestamp()) END;
    max_in_flight := CASE WHEN _cap IS NULL THEN before.max_in_flight ELSE nullif(_cap, 0) END;
    changed := (paused_at, max_in_flight) IS DISTINCT FROM (before.paused_at, before.max_in_flight);
    IF paused_at IS NULL AND max_in_flight IS NULL THEN
        DELETE FROM queues.task_limit l WHERE l.task_type = _task_type;
    ELSIF changed THEN
        UPDATE queues.task_limit l SET paused_at = limit_tasks.paused_at, max_in_flight = limit_tasks.max_in_flight, updated_at = clock_timestamp() WHERE l.task_type = _task_type;
    END IF;
    IF changed THEN
        PERFORM daybook.wake_task_queue();
    END IF;
END
$$;

-- Name: FUNCTION limit_tasks(_task_type text, _paused boolean, _cap integer, OUT changed boolean, OUT paused_at timestamp with time zone, OUT max_in_flight integer); Type: COMMENT; Schema: queues; Owner: -

COMMENT ON FUNCTION queues.limit_tasks(_task_type text, _paused boolean, _cap integer, OUT changed boolean, OUT paused_at timestamp with time zone, OUT max_in_flight integer) IS 'Pauses, resumes or caps the tasks of a type, or all (*): no dequeue that begins after the commit hands out more';

-- Name: lock_tasks(text, bigint, bigint[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.lock_tasks(_turn text, _fence bigint, _task_ids bigint[]) RETURNS TABLE(task_id bigint, attempt integer)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT o.task_id, o.leases FROM queues.open_task o
     WHERE o.task_id = ANY (_task_ids) AND o.turn_id = _turn AND o.fence = _fence
     ORDER BY o.task_id FOR UPDATE SKIP LOCKED;
END
$$;

-- Name: lost_task_message(integer); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.lost_task_message(_attempt integer) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT 'the worker ended while it worked on this task, in attempt ' || _attempt || ', which was the last one: the task is completed' $$;

-- Name: mark_tasks_waiting(text, bigint, bigint[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.mark_tasks_waiting(_turn text, _fence bigint, _task_ids bigint[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
BEGIN
    UPDATE queues.open_task o SET working = false
     WHERE o.task_id = ANY (ARRAY(SELECT x.task_id FROM queues.open_task x WHERE x.task_id = ANY (_task_ids) AND x.turn_id = _turn AND x.fence = _fence FOR UPDATE SKIP LOCKED));
END
$$;

-- Name: most_task_attempts(); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.most_task_attempts() RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT 10 $$;

-- Name: move_lease_cursor(queues.task_cursor, timestamp with time zone); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.move_lease_cursor(c queues.task_cursor, _now timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO queues.task_cursor (scope, seen_to, unseen, last_at, last_id, leases, passed)
    SELECT c.scope, pg_snapshot_xmax(s.now), ARRAY(SELECT pg_snapshot_xip(s.now)) || pg_current_xact_id(),
           CASE WHEN cardinality(v.ids) > 64 THEN v.times[65] ELSE coalesce(f.first, 'infinity') END, 0,
           queues.last_lease(), coalesce(CASE WHEN cardinality(v.ids) > 64 THEN v.ids[1:64] ELSE v.ids END, '{}')
      FROM (SELECT pg_current_snapshot() AS now) s,
           (SELECT array_agg(x.task_id ORDER BY x.leased_until, x.task_id) AS ids, array_agg(x.leased_until ORDER BY x.leased_until, x.task_id) AS times
              FROM (SELECT u.* FROM (
                        (SELECT o.task_id, o.leased_until FROM queues.open_task o
                          WHERE o.leased_until IS NOT NULL AND o.leased_until >= c.last_at AND o.leased_until <= _now ORDER BY o.leased_until LIMIT 65)
                        UNION ALL
                        SELECT b.task_id, b.leased_until FROM queues.leased_before(c) b WHERE b.leased_until <= _now) u
                     ORDER BY u.leased_until, u.task_id LIMIT 65) x) v,
           (SELECT min(u.leased_until) AS first
              FROM ((SELECT o.leased_until FROM queues.open_task o
                      WHERE o.leased_until IS NOT NULL AND o.leased_until >= c.last_at AND o.leased_until > _now ORDER BY o.leased_until LIMIT 1)
                    UNION ALL
                    SELECT b.leased_until FROM queues.leased_before(c) b WHERE b.leased_until > _now) u) f;
    PERFORM queues.forget_cursors(c);
END
$$;

-- Name: move_ready_cursor(queues.task_cursor, text, text[], timestamp with time zone, bigint); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.move_ready_cursor(c queues.task_cursor, _type text, _without text[], _to_at timestamp with time zone, _to_id bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    to_at CONSTANT timestamptz := CASE WHEN (_to_at, _to_id) > (c.last_at, c.last_id) THEN _to_at ELSE c.last_at END;
    to_id CONSTANT bigint := CASE WHEN (_to_at, _to_id) > (c.last_at, c.last_id) THEN _to_id ELSE c.last_id END;
BEGIN
    -- One statement: its snapshot is the one that is noted.
    IF _type IS NULL THEN
        INSERT INTO queues.task_cursor (scope, seen_to, unseen, last_at, last_id, leases, passed)
        SELECT c.scope, pg_snapshot_xmax(s.now), ARRAY(SELECT pg_snapshot_xip(s.now)) || pg_current_xact_id(),
               CASE WHEN cardinality(v.ids) > 64 THEN v.times[64] ELSE to_at END, CASE WHEN cardinality(v.ids) > 64 THEN v.ids[64] ELSE to_id END,
               queues.last_lease(), coalesce(v.ids[1:64], '{}')
          FROM (SELECT pg_current_snapshot() AS now) s,
               (SELECT array_agg(x.task_id ORDER BY x.scheduled_at, x.task_id) AS ids, array_agg(x.scheduled_at ORDER BY x.scheduled_at, x.task_id) AS times
                  FROM (SELECT u.* FROM (
                            (SELECT o.task_id, o.scheduled_at FROM queues.open_task o
                              WHERE o.leased_until IS NULL AND (o.scheduled_at, o.task_id) > (c.last_at, c.last_id) AND o.scheduled_at <= to_at AND o.task_type <> ALL (_without)
                              ORDER BY o.scheduled_at, o.task_id LIMIT 65)
                            UNION ALL
                            SELECT b.task_id, b.scheduled_at FROM queues.ready_before(c, NULL, _without, 65) b) u
                         WHERE (u.scheduled_at, u.task_id) <= (to_at, to_id)
                         ORDER BY u.scheduled_at, u.task_id LIMIT 65) x) v;
    ELSE
        INSERT INTO queues.task_cursor (scope, seen_to, unseen, last_at, last_id, leases, passed)
        SELECT c.scope, pg_snapshot_xmax(s.now), ARRAY(SELECT pg_snapshot_xip(s.now)) || pg_current_xact_id(),
               CASE WHEN cardinality(v.ids) > 64 THEN v.times[64] ELSE to_at END, CASE WHEN cardinality(v.ids) > 64 THEN v.ids[64] ELSE to_id END,
               queues.last_lease(), coalesce(v.ids[1:64], '{}')
          FROM (SELECT pg_current_snapshot() AS now) s,
               (SELECT array_agg(x.task_id ORDER BY x.scheduled_at, x.task_id) AS ids, array_agg(x.scheduled_at ORDER BY x.scheduled_at, x.task_id) AS times
                  FROM (SELECT u.* FROM (
                            (SELECT o.task_id, o.scheduled_at FROM queues.open_task o
                              WHERE num_nulls(o.leased_until) = 1 AND o.task_type = _type AND (o.scheduled_at, o.task_id) > (c.last_at, c.last_id) AND o.scheduled_at <= to_at
                              ORDER BY o.scheduled_at, o.task_id LIMIT 65)
                            UNION ALL
                            SELECT b.task_id, b.scheduled_at FROM queues.ready_before(c, _type, '{}', 65) b) u
                         WHERE (u.scheduled_at, u.task_id) <= (to_at, to_id)
                         ORDER BY u.scheduled_at, u.task_id LIMIT 65) x) v;
    END IF;
    PERFORM queues.forget_cursors(c);
END
$$;

-- Name: next_fence(); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.next_fence() RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ SELECT nextval('daybook.fence_seq') $$;

-- Name: next_task_due(text[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.next_task_due(_task_types text[] DEFAULT NULL::text[]) RETURNS timestamp with time zone
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    c     queues.task_cursor := queues.last_cursor('@');
    kind  text;
    scope text;
    without text[];
    due   timestamptz;
    ready timestamptz;
BEGIN
    PERFORM queues.require_task_type(x) FROM unnest(_task_types) AS x;
    due := least((SELECT o.leased_until FROM queues.open_task o WHERE o.leased_until IS NOT NULL AND o.leased_until >= c.last_at ORDER BY o.leased_until LIMIT 1),
                 (SELECT min(b.leased_until) FROM queues.leased_before(c) b));
    FOREACH kind IN ARRAY coalesce(_task_types, ARRAY['*']) LOOP
        SELECT p.without, p.scope INTO without, scope FROM queues.task_pause(nullif(kind, '*')) p;
        CONTINUE WHEN scope IS NULL;
        c := queues.last_cursor(scope);
        IF kind = '*' THEN
            ready := (SELECT o.scheduled_at FROM queues.open_task o
                       WHERE o.leased_until IS NULL AND (o.scheduled_at, o.task_id) > (c.last_at, c.last_id) AND o.task_type <> ALL (without) ORDER BY o.scheduled_at, o.task_id LIMIT 1);
        ELSE
            ready := (SELECT o.scheduled_at FROM queues.open_task o
                       WHERE num_nulls(o.leased_until) = 1 AND o.task_type = kind AND (o.scheduled_at, o.task_id) > (c.last_at, c.last_id)
                       ORDER BY o.scheduled_at, o.task_id LIMIT 1);
        END IF;
        due := least(due, ready, (SELECT min(b.scheduled_at) FROM queues.ready_before(c, nullif(kind, '*'), without, 1) b));
    END LOOP;
    RETURN due;
END
$$;

-- Name: note_task_types(text, text[], text[], double precision[], integer[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.note_task_types(_worker text, _types text[], _owners text[], _timeouts double precision[], _parallel integer[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM queues.require_task_type(x) FROM unnest(_types) AS x;
    PERFORM daybook.note_job_types('tasks', _worker, _types, array_fill(''::text, ARRAY[cardinality(_types)]), _owners, array_fill(0, ARRAY[cardinality(_types)]),
        _timeouts, _parallel, array_fill(false, ARRAY[cardinality(_types)]));
END
$$;

-- Name: prolong_tasks(bigint[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.prolong_tasks(_task_ids bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    clock CONSTANT timestamptz := clock_timestamp();
BEGIN
    WITH renewed AS (
        UPDATE queues.open_task o SET leased_until = clock + interval '5 minutes', arrived = pg_current_xact_id()
         WHERE o.task_id = ANY (_task_ids)
        RETURNING o.task_id, o.leased_until, o.task_lease_id
    )
    INSERT INTO queues.task_lease (task_id, leased_at, expires_at, renews) SELECT r.task_id, clock, r.leased_until, r.task_lease_id FROM renewed r;
END
$$;

-- Name: ready_before(queues.task_cursor, text, text[], integer); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.ready_before(c queues.task_cursor, _type text, _without text[], _most integer) RETURNS TABLE(task_id bigint, scheduled_at timestamp with time zone)
    LANGUAGE sql STABLE
    AS $$
    SELECT r.task_id, r.scheduled_at
      FROM ((SELECT o.* FROM queues.open_task o WHERE o.task_lease_id IS NULL AND o.arrived >= c.seen_to OFFSET 0)
            UNION ALL
            SELECT u.* FROM (SELECT o.* FROM queues.open_task o WHERE o.task_lease_id IS NULL AND o.arrived = ANY (c.unseen) OFFSET 0) u
             WHERE u.arrived < c.seen_to
            UNION ALL
            SELECT p.* FROM (SELECT o.* FROM queues.open_task o WHERE o.task_id = ANY (c.passed || 0::bigint) OFFSET 0) p
             WHERE p.leased_until IS NULL AND p.arrived < c.seen_to AND p.arrived <> ALL (c.unseen)) r
     WHERE (r.scheduled_at, r.task_id) <= (c.last_at, c.last_id) AND (_type IS NULL OR r.task_type = _type) AND r.task_type <> ALL (_without)
     ORDER BY r.scheduled_at, r.task_id
     LIMIT _most
$$;

-- Name: rebuild_open_tasks(); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.rebuild_open_tasks() RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    n bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'open tasks are made anew in a transaction that is READ COMMITTED' USING ERRCODE = 'DB010', HINT = 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED';
    END IF;
    -- Each transaction that adds a task, leases or completes one writes its open row: what is read
    -- below is what such transactions left.
    LOCK TABLE queues.open_task, queues.task_cursor IN ACCESS EXCLUSIVE MODE;
    TRUNCATE queues.open_task, queues.task_cursor;
    INSERT INTO queues.open_task (task_id, task_type, scheduled_at, leases, task_lease_id, leased_until)
    -- A renewal keeps the claim that it renews, which is the last one: it ends when the last row
    -- says.
    SELECT t.task_id, t.task_type, t.scheduled_at, l.leases, l.task_lease_id, l.expires_at
      FROM queues.task t
     CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE x.renews IS NULL) AS leases, max(x.task_lease_id) FILTER (WHERE x.renews IS NULL) AS task_lease_id,
                                (array_agg(x.expires_at ORDER BY x.task_lease_id DESC))[1] AS expires_at
                           FROM queues.task_lease x WHERE x.task_id = t.task_id) l
     WHERE NOT EXISTS (SELECT FROM queues.task_completed c WHERE c.task_id = t.task_id);
    GET DIAGNOSTICS n = ROW_COUNT;
    IF daybook.must_wake(3, (SELECT min(coalesce(o.leased_until, o.scheduled_at)) FROM queues.open_task o)) THEN
        PERFORM daybook.wake_task_queue();
    END IF;
    RETURN n;
END
$$;

-- Name: FUNCTION rebuild_open_tasks(); Type: COMMENT; Schema: queues; Owner: -

COMMENT ON FUNCTION queues.rebuild_open_tasks() IS 'Makes queues.open_task anew from the facts, and returns how many tasks are open';

-- Name: reclaim_expired(timestamp with time zone, boolean); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.reclaim_expired(_now timestamp with time zone, _at_once boolean, OUT tasks integer, OUT lost integer, OUT failed integer, OUT ended jsonb) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
    c CONSTANT queues.task_cursor := queues.last_cursor('@');
    ids bigint[];
    last CONSTANT timestamptz := _now + interval '10 seconds';
BEGIN
    -- Leases from before the clock was set back count from now on, so that their holders can renew
    -- them.
    IF EXISTS (SELECT FROM queues.open_task o WHERE o.leased_until > _now + interval '310 seconds') THEN
        PERFORM queues.prolong_tasks(ARRAY(SELECT o.task_id FROM queues.open_task o WHERE o.leased_until > _now + interval '310 seconds' FOR UPDATE SKIP LOCKED));
    END IF;
    tasks := 0;
    lost := 0;
    failed := 0;
    ids := ARRAY(
        (SELECT o.task_id FROM queues.open_task o WHERE o.leased_until IS NOT NULL AND o.leased_until >= c.last_at AND o.leased_until <= _now
          ORDER BY o.leased_until LIMIT 1000)
        UNION ALL
        (SELECT b.task_id FROM queues.leased_before(c) b WHERE b.leased_until <= _now ORDER BY b.leased_until LIMIT 1000));
    IF cardinality(ids) > 0 AND NOT _at_once THEN
        WITH called AS (
            SELECT o.task_id FROM queues.open_task o
             WHERE o.task_id = ANY (ids) AND coalesce(o.leased_until, 'infinity') <= _now AND coalesce(o.turn_id, '') <> '' AND o.last_call IS DISTINCT FROM o.leased_until
               FOR UPDATE SKIP LOCKED
        ), given AS (
            UPDATE queues.open_task o SET leased_until = last, last_call = last, arrived = pg_current_xact_id()
              FROM called x WHERE o.task_id = ANY (ids) AND o.task_id = x.task_id
            RETURNING o.task_id, o.task_lease_id
        )
        INSERT INTO queues.task_lease (task_id, leased_at, expires_at, renews) SELECT g.task_id, _now, last, g.task_lease_id FROM given g;
    END IF;
    IF cardinality(ids) > 0 THEN
        WITH held AS (
            SELECT e.task_id, e.task_type, e.worker, e.turn_id, e.leases, e.turn_id IS NOT NULL AND NOT e.working AS waited, e.working, e.working AND e.leases >= queues.most_task_attempts() AS ends
              FROM queues.open_task e WHERE e.task_id = ANY (ids) AND coalesce(e.leased_until, 'infinity') <= _now FOR UPDATE SKIP LOCKED
        ), noted AS (
            INSERT INTO queues.error (task_id, error_message) SELECT h.task_id, queues.lost_task_message(h.leases) FROM held h WHERE h.ends
        ), closed AS (
            DELETE FROM queues.open_task o USING held h WHERE o.task_id = ANY (ids) AND o.task_id = h.task_id AND h.ends RETURNING o.task_id
        ), completed AS (
            INSERT INTO queues.task_completed (task_id) SELECT x.task_id FROM closed x ON CONFLICT DO NOTHING
        ), ready AS (
            UPDATE queues.open_task o
               SET leased_until = NULL, task_lease_id = NULL, turn_id = NULL, fence = NULL, worker = NULL, detached = false, working = false, counted = false,
                   leases = CASE WHEN h.waited THEN greatest(o.leases - 1, 0) ELSE o.leases END, scheduled_at = least(o.scheduled_at, _now),
                   reclaims = o.reclaims + h.working::integer, put_off = CASE WHEN h.waited THEN o.put_off ELSE 0 END, arrived = pg_current_xact_id()
              FROM held h
             WHERE o.task_id = ANY (ids) AND o.task_id = h.task_id AND NOT h.ends
        )
        SELECT count(*), count(*) FILTER (WHERE h.working), count(*) FILTER (WHERE h.ends),
               jsonb_agg(jsonb_build_object('id', h.task_id::text, 'type', h.task_type, 'attempt', h.leases, 'worker', coalesce(h.worker, ''),
                                            'turn', coalesce(h.turn_id, ''), 'lost', h.working, 'failed', h.ends))
          INTO tasks, lost, failed, ended
          FROM held h;
    END IF;
    IF queues.cursor_is_old(c) THEN
        PERFORM queues.move_lease_cursor(c, _now);
    END IF;
END
$$;

-- Name: reclaim_expired_tasks(boolean); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.reclaim_expired_tasks(_at_once boolean DEFAULT false, OUT tasks integer, OUT lost integer, OUT failed integer, OUT ended jsonb) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
BEGIN
    SELECT * INTO tasks, lost, failed, ended FROM queues.reclaim_expired(clock_timestamp(), _at_once);
    IF tasks > failed THEN
        PERFORM daybook.wake_task_queue();
    END IF;
END
$$;

-- Name: reclaim_tasks_of_turns(text, bigint, bigint, text, boolean, text[], boolean); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.reclaim_tasks_of_turns(_turn text, _fence bigint, _first_fence bigint, _worker text, _detached boolean, _from text[], _crashed boolean) RETURNS TABLE(task_id bigint, task_type text, payload jsonb, enqueued_at timestamp with time zone, leased_at timestamp with time zone, attempt integer, reclaims integer, lost boolean, failed boolean, ready_at timestamp with time zone, was_worker text, was_turn text, traceparent text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
DECLARE
    clock   CONSTANT timestamptz := clock_timestamp();
    ids     bigint[];
    charged bigint[];
    ending  bigint[];
    waiting bigint[];
    holders jsonb;
BEGIN
    ids := ARRAY(SELECT o.task_id FROM queues.open_task o WHERE o.turn_id = ANY (_from) AND o.fence < _fence ORDER BY o.task_id + 0 FOR UPDATE SKIP LOCKED);
    IF cardinality(ids) = 0 THEN
        RETURN;
    END IF;
    charged := ARRAY(SELECT o.task_id FROM queues.open_task o WHERE _crashed AND o.task_id = ANY (ids) AND o.working AND o.fence < _first_fence);
    IF cardinality(charged) > 0 THEN
        holders := (SELECT jsonb_object_agg(o.task_id, jsonb_build_array(o.worker, o.turn_id)) FROM queues.open_task o WHERE o.task_id = ANY (charged));
        ending := ARRAY(SELECT o.task_id FROM queues.open_task o WHERE o.task_id = ANY (charged) AND o.leases >= queues.most_task_attempts());
        RETURN QUERY
        WITH closed AS (
            DELETE FROM queues.open_task o WHERE o.task_id = ANY (ending) RETURNING o.task_id, o.task_type, o.leases, o.reclaims
        ), completed AS (
            INSERT INTO queues.task_completed (task_id) SELECT c.task_id FROM closed c ON CONFLICT DO NOTHING
        ), noted AS (
            INSERT INTO queues.error (task_id, error_message) SELECT c.task_id, queues.lost_task_message(c.leases) FROM closed c
        )
        SELECT c.task_id, c.task_type, NULL::jsonb, NULL::timestamptz, clock, c.leases, c.reclaims, true, true, NULL::timestamptz,
               holders -> c.task_id::text ->> 0, holders -> c.task_id::text ->> 1, NULL::text
          FROM closed c;
        WITH added AS (
            INSERT INTO queues.task_lease (task_id, leased_at, expires_at)
            SELECT x, clock, clock + interval '5 minutes' FROM unnest(charged) AS x WHERE x <> ALL (ending)
            RETURNING task_id, task_lease_id, expires_at
        )
        UPDATE queues.open_task o
           SET task_lease_id = a.task_lease_id, leased_until = a.expires_at, leases = o.leases + 1, put_off = 0, arrived = pg_current_xact_id()
          FROM added a
         WHERE o.task_id = ANY (charged) AND o.task_id = a.task_id;
    END IF;
    IF _crashed THEN
        waiting := ARRAY(SELECT x FROM unnest(ids) AS x WHERE x <> ALL (charged));
        PERFORM queues.prolong_tasks(waiting);
    END IF;
    RETURN QUERY
    WITH taken AS (
        UPDATE queues.open_task o
           SET turn_id = _turn, fence = _fence, worker = _worker, detached = _detached, working = true, reclaims = o.reclaims + _crashed::integer
         WHERE o.task_id = ANY (ids)
        RETURNING o.task_id, o.leases, o.reclaims, o.scheduled_at
    )
    SELECT t.task_id, t.task_type, t.payload, t.enqueued_at, clock, x.leases, x.reclaims, x.task_id = ANY (charged), false,
           x.scheduled_at, holders -> x.task_id::text ->> 0, holders -> x.task_id::text ->> 1, t.traceparent::text
      FROM taken x JOIN queues.task t USING (task_id)
     ORDER BY t.scheduled_at, t.task_id;
END
$$;

-- Name: refuse_change(); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('queues.removal', true) = pg_current_xact_id()::text THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'queues.% is append-only: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'DB004', HINT = 'add a fact instead; queues.remove_completed_tasks removes what is done and old';
END
$$;

-- Name: remove_completed_tasks(timestamp with time zone, integer); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.remove_completed_tasks(_completed_before timestamp with time zone, _limit integer DEFAULT 1000) RETURNS TABLE(task_id bigint, facts jsonb)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    ids bigint[];
BEGIN
    IF _completed_before IS NULL OR _completed_before > clock_timestamp() OR _limit IS NULL OR _limit NOT BETWEEN 1 AND 100000 THEN
        RAISE EXCEPTION 'tasks are removed that were completed before a time in the past, from 1 to 100000 at once' USING ERRCODE = 'DB010';
    END IF;
    -- Two callers remove different tasks: what they chose they hold until they end.
    ids := ARRAY(SELECT c.task_id FROM queues.task_completed c WHERE c.completed_at < _completed_before
                  ORDER BY c.completed_at LIMIT _limit FOR UPDATE SKIP LOCKED);
    RETURN QUERY
    SELECT t.task_id,
           to_jsonb(t) || jsonb_build_object(
               'completed_at', (SELECT c.completed_at FROM queues.task_completed c WHERE c.task_id = t.task_id),
               'leases', (SELECT coalesce(jsonb_agg(to_jsonb(l) - 'task_id' ORDER BY l.task_lease_id), '[]') FROM queues.task_lease l WHERE l.task_id = t.task_id),
               'errors', (SELECT coalesce(jsonb_agg(to_jsonb(e) - 'task_id' ORDER BY e.error_id), '[]') FROM queues.error e WHERE e.task_id = t.task_id))
      FROM queues.task t
     WHERE t.task_id = ANY (ids);
    PERFORM set_config('queues.removal', pg_current_xact_id()::text, true);
    DELETE FROM queues.error e WHERE e.task_id = ANY (ids);
    DELETE FROM queues.task_lease l WHERE l.task_id = ANY (ids);
    DELETE FROM queues.task t WHERE t.task_id = ANY (ids);
    DELETE FROM queues.task_completed c WHERE c.task_id = ANY (ids);
    PERFORM set_config('queues.removal', '', true);
END
$$;

-- Name: FUNCTION remove_completed_tasks(_completed_before timestamp with time zone, _limit integer); Type: COMMENT; Schema: queues; Owner: -

COMMENT ON FUNCTION queues.remove_completed_tasks(_completed_before timestamp with time zone, _limit integer) IS 'Retention: removes completed tasks and returns them with all their facts';

-- Name: renew_task_leases(bigint[], bigint[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.renew_task_leases(_task_ids bigint[], _task_lease_ids bigint[]) RETURNS TABLE(task_id bigint, expires_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    clock CONSTANT timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY
    WITH held AS (
        SELECT o.task_id FROM unnest(_task_ids, _task_lease_ids) AS x (id, lease) JOIN queues.open_task o ON o.task_id = x.id AND coalesce(o.task_lease_id, 0) = x.lease
         WHERE o.task_id = ANY (_task_ids) ORDER BY o.task_id FOR UPDATE OF o
    ), renewed AS (
        UPDATE queues.open_task o SET leased_until = clock + interval '5 minutes', arrived = pg_current_xact_id() FROM held h
         WHERE o.task_id = ANY (_task_ids) AND o.task_id = h.task_id
        RETURNING o.task_id, o.leased_until, o.task_lease_id
    ), added AS (
        INSERT INTO queues.task_lease (task_id, leased_at, expires_at, renews) SELECT r.task_id, clock, r.leased_until, r.task_lease_id FROM renewed r
    )
    SELECT r.task_id, r.leased_until FROM renewed r;
END
$$;

-- Name: renew_tasks_of_turn(text, bigint, bigint[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.renew_tasks_of_turn(_turn text, _fence bigint, _overdue bigint[]) RETURNS TABLE(task_id bigint, missed boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
DECLARE
    half CONSTANT timestamptz := clock_timestamp() + interval '150 seconds';
    ids  bigint[];
BEGIN
    ids := ARRAY(SELECT o.task_id FROM queues.open_task o
                  WHERE o.turn_id = _turn AND o.fence = _fence AND coalesce(o.leased_until, 'infinity') < half AND o.task_id <> ALL (_overdue)
                  ORDER BY o.task_id + 0 FOR UPDATE SKIP LOCKED);
    IF cardinality(ids) > 0 THEN
        PERFORM queues.prolong_tasks(ids);
    END IF;
    RETURN QUERY
    SELECT o.task_id, coalesce(o.leased_until, 'infinity') < half AND o.task_id <> ALL (_overdue) FROM queues.open_task o WHERE o.turn_id = _turn AND o.fence = _fence;
END
$$;

-- Name: require_table(text, oid); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.require_table(name text, table_id oid) RETURNS void
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM daybook.require_table(name, table_id);
END
$$;

-- Name: require_task_type(text); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.require_task_type(_task_type text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
BEGIN
    IF (_task_type ~ '^[a-z][a-z0-9_]{0,62}$') IS NOT TRUE THEN
        RAISE EXCEPTION 'the type of a task must be a small letter and then small letters, digits or "_", 63 at most, not %', coalesce(quote_literal(_task_type), 'null')
            USING ERRCODE = 'DB010', HINT = 'db_function, email, sms and file_delete are built in';
    END IF;
END
$_$;

-- Name: scope_without(text[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.scope_without(_types text[]) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT CASE WHEN cardinality(_types) <= 16 THEN '!' || array_to_string(_types, ',') ELSE '!#' || md5(array_to_string(_types, ',')) END $$;

-- Name: task_pause(text); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.task_pause(_type text, OUT without text[], OUT scope text) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    without := ARRAY(SELECT l.task_type FROM queues.task_limit l WHERE l.paused_at IS NOT NULL AND (_type IS NULL OR l.task_type IN ('*', _type)) ORDER BY l.task_type);
    IF cardinality(without) = 0 THEN
        scope := coalesce(_type, '*');
    ELSIF _type IS NULL AND '*' <> ALL (without) THEN
        scope := queues.scope_without(without);
    END IF;
END
$$;

-- Name: task_put_off(bigint, integer); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.task_put_off(_task_id bigint, _attempt integer) RETURNS integer
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ SELECT coalesce((SELECT o.put_off FROM queues.open_task o WHERE o.task_id = _task_id AND o.leases + (o.turn_id IS NULL)::integer = _attempt), 0) $$;

-- Name: task_room(text, integer); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.task_room(_type text, _limit integer, OUT most integer, OUT scope text, OUT without text[], OUT capped text[], OUT left_of bigint[]) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
    name  text;
    cap   queues.task_limit;
    space bigint;
BEGIN
    most := _limit;
    capped := '{}';
    left_of := '{}';
    SELECT p.without, p.scope INTO without, scope FROM queues.task_pause(_type) p;
    IF scope IS NULL THEN
        most := 0;
        RETURN;
    END IF;
    FOR name IN SELECT l.task_type FROM queues.task_limit l WHERE l.max_in_flight IS NOT NULL AND (_type IS NULL OR l.task_type IN ('*', _type)) ORDER BY l.task_type LOOP
        CONTINUE WHEN name = ANY (without);
        SELECT * INTO cap FROM queues.task_limit l WHERE l.task_type = name FOR NO KEY UPDATE SKIP LOCKED;
        space := CASE WHEN NOT FOUND THEN 0 ELSE greatest(cap.max_in_flight - queues.tasks_in_flight(name, cap.max_in_flight), 0) END;
        IF name IN ('*', _type) THEN
            most := least(most, space);
        ELSIF space = 0 THEN
            without := without || name;
        ELSE
            capped := capped || name;
            left_of := left_of || space;
        END IF;
    END LOOP;
    IF _type IS NULL AND cardinality(without) > 0 THEN
        scope := queues.scope_without(ARRAY(SELECT w FROM unnest(without) AS w ORDER BY w COLLATE "C"));
    END IF;
END
$$;

-- Name: tasks_in_flight(text, integer); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.tasks_in_flight(_type text, _most integer) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    c     CONSTANT queues.task_cursor := queues.last_cursor('@');
    clock CONSTANT timestamptz := clock_timestamp();
BEGIN
    RETURN (SELECT count(*) FROM (SELECT FROM queues.open_task o
                                   WHERE o.leased_until IS NOT NULL AND o.leased_until >= greatest(c.last_at, clock) AND (_type = '*' OR o.task_type = _type) LIMIT _most) x)
         + (SELECT count(*) FROM queues.leased_before(c) b WHERE b.leased_until >= clock AND (_type = '*' OR b.task_type = _type));
END
$$;

-- Name: tasks_of_turn(text, bigint); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.tasks_of_turn(_turn text, _fence bigint) RETURNS SETOF bigint
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$ SELECT o.task_id FROM queues.open_task o WHERE o.turn_id = _turn AND o.fence = _fence $$;

-- Name: turns_with_tasks(text[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.turns_with_tasks(_turns text[]) RETURNS SETOF text
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$ SELECT t FROM unnest(_turns) AS t WHERE EXISTS (SELECT FROM queues.open_task o WHERE o.turn_id = t) ORDER BY t COLLATE "C" $$;

-- Name: within_caps(bigint[], text[], bigint[]); Type: FUNCTION; Schema: queues; Owner: -

CREATE FUNCTION queues.within_caps(_ids bigint[], _capped text[], _left_of bigint[]) RETURNS bigint[]
    LANGUAGE sql STABLE
    AS $$
    SELECT coalesce(array_agg(r.id ORDER BY r.n), '{}')
      FROM (SELECT i.id, i.n, o.task_type, row_number() OVER (PARTITION BY o.task_type ORDER BY i.n) AS nth
              FROM unnest(_ids) WITH ORDINALITY AS i (id, n) JOIN queues.open_task o ON o.task_id = i.id WHERE o.task_id = ANY (_ids)) r
      LEFT JOIN unnest(_capped, _left_of) AS c (task_type, space) USING (task_type)
     WHERE c.space IS NULL OR r.nth <= c.space
$$;

-- Name: chained_hash(bytea); Type: AGGREGATE; Schema: daybook; Owner: -

CREATE AGGREGATE daybook.chained_hash(bytea) (
    SFUNC = daybook.chain_hash,
    STYPE = bytea,
    INITCOND = '\x0000000000000000000000000000000000000000000000000000000000000000'
);

-- Name: accounting_returns; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.accounting_returns (
    id bigint NOT NULL,
    org_id text NOT NULL COLLATE pg_catalog."C",
    code text NOT NULL,
    up_to timestamp with time zone NOT NULL
);

-- Name: TABLE accounting_returns; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.accounting_returns IS 'Failed jobs that workers make pending again, because the cause of their error is gone';

-- Name: COLUMN accounting_returns.up_to; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.accounting_returns.up_to IS 'When the last of them failed: they are returned in the order of that, the last ones first';

-- Name: accounting_returns_id_seq; Type: SEQUENCE; Schema: daybook; Owner: -

ALTER TABLE daybook.accounting_returns ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME daybook.accounting_returns_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: accounts; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.accounts (
    org_id text NOT NULL COLLATE pg_catalog."C",
    code text NOT NULL COLLATE pg_catalog."C",
    name text DEFAULT ''::text NOT NULL,
    type daybook.account_type NOT NULL,
    currencies text[] DEFAULT '{}'::text[] NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    role text DEFAULT ''::text NOT NULL,
    section text DEFAULT ''::text NOT NULL,
    CONSTRAINT accounts_code_check CHECK (((code <> ''::text) AND (octet_length(code) <= 64))),
    CONSTRAINT accounts_role_check CHECK ((role = ANY (ARRAY[''::text, 'receivable'::text, 'payable'::text, 'advance'::text, 'cash'::text, 'tax'::text, 'suspense'::text, 'rounding'::text, 'exchange'::text]))),
    CONSTRAINT accounts_section_check CHECK ((octet_length(section) <= 255))
);

-- Name: COLUMN accounts.currencies; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.accounts.currencies IS 'The currencies that may be posted to the account; empty: all';

-- Name: COLUMN accounts.role; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.accounts.role IS 'What the account is for beyond its type: receivable, payable and advance have open items, cash is money at hand, tax is in the VAT summary, suspense, rounding and exchange are looked at when a month is closed; empty: none of these';

-- Name: COLUMN accounts.section; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.accounts.section IS 'The heading in statements under which the account stands; empty: that of its type alone';

-- Name: actions; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.actions (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    via text NOT NULL,
    action text NOT NULL,
    token_id text COLLATE pg_catalog."C",
    actor text NOT NULL,
    db_role text DEFAULT SESSION_USER NOT NULL,
    org_id text COLLATE pg_catalog."C",
    subject text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    details jsonb DEFAULT '{}'::jsonb NOT NULL,
    outcome text NOT NULL,
    code text DEFAULT ''::text NOT NULL,
    CONSTRAINT actions_action_check CHECK ((action ~ '^[a-z][a-z0-9._-]{0,99}$'::text)),
    CONSTRAINT actions_check CHECK (((outcome = 'done'::text) = (code = ''::text))),
    CONSTRAINT actions_check1 CHECK (((via = 'cli'::text) = (token_id IS NULL))),
    CONSTRAINT actions_details_check CHECK ((jsonb_typeof(details) = 'object'::text)),
    CONSTRAINT actions_org_id_check CHECK (((org_id <> ''::text) AND (octet_length(org_id) <= 255))),
    CONSTRAINT actions_outcome_check CHECK ((outcome = ANY (ARRAY['done'::text, 'refused'::text, 'failed'::text]))),
    CONSTRAINT actions_subject_check CHECK ((octet_length(subject) <= 1000)),
    CONSTRAINT actions_via_check CHECK ((via = ANY (ARRAY['console'::text, 'api'::text, 'cli'::text])))
);

-- Name: COLUMN actions.action; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.actions.action IS 'What was done, such as jobs.retry';

-- Name: COLUMN actions.actor; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.actions.actor IS 'The token''s name as it was, or the user of the operating system that ran the command';

-- Name: COLUMN actions.db_role; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.actions.db_role IS 'The role of the database that wrote the row';

-- Name: COLUMN actions.org_id; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.actions.org_id IS 'The organization that it was about; null: several, or none';

-- Name: COLUMN actions.subject; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.actions.subject IS 'What it was about: a job''s id, a document''s, a type …';

-- Name: COLUMN actions.details; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.actions.details IS 'What was asked for, without secrets and payloads';

-- Name: COLUMN actions.outcome; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.actions.outcome IS 'refused: nothing was changed, because of what was asked for; failed: of something else';

-- Name: actions_id_seq; Type: SEQUENCE; Schema: daybook; Owner: -

ALTER TABLE daybook.actions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME daybook.actions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: adopted_rows; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.adopted_rows (
    legacy_table text NOT NULL,
    legacy_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    org_id text NOT NULL COLLATE pg_catalog."C",
    document_id text COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    version bigint,
    taken_state text NOT NULL,
    generation bigint DEFAULT 0 NOT NULL,
    legacy_row jsonb NOT NULL,
    problem text,
    adopted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT adopted_rows_kind_check CHECK ((kind = ANY (ARRAY['accounting'::text, 'jobs'::text])))
);

-- Name: TABLE adopted_rows; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.adopted_rows IS 'Rows of legacy queues that Daybook holds, as they were when they were adopted';

-- Name: COLUMN adopted_rows.legacy_table; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.adopted_rows.legacy_table IS 'The table with its schema, quoted where that is needed';

-- Name: COLUMN adopted_rows.taken_state; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.adopted_rows.taken_state IS 'The state that the row had; forwarded: it was inserted later, and went straight to Daybook';

-- Name: COLUMN adopted_rows.legacy_row; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.adopted_rows.legacy_row IS 'The row as it was, for daybook adopt … --undo';

-- Name: COLUMN adopted_rows.problem; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.adopted_rows.problem IS 'COMPLETED_LATE: the legacy worker completed the row after Daybook had adopted it, and what it posted is not known; null: none';

-- Name: api_tokens; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.api_tokens (
    id text DEFAULT daybook.new_id() NOT NULL COLLATE pg_catalog."C",
    org_id text COLLATE pg_catalog."C",
    name text NOT NULL,
    scopes text[] NOT NULL,
    hash bytea NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    types text[],
    requests_per_minute integer,
    jobs_per_minute integer,
    run_by_get boolean DEFAULT false NOT NULL,
    CONSTRAINT api_tokens_check CHECK (((NOT run_by_get) OR ('operate'::text = ANY (scopes)))),
    CONSTRAINT api_tokens_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT api_tokens_jobs_per_minute_check CHECK (((jobs_per_minute >= 1) AND (jobs_per_minute <= 1000000))),
    CONSTRAINT api_tokens_org_id_check CHECK (((org_id <> ''::text) AND (octet_length(org_id) <= 255))),
    CONSTRAINT api_tokens_requests_per_minute_check CHECK (((requests_per_minute >= 1) AND (requests_per_minute <= 1000000))),
    CONSTRAINT api_tokens_scopes_check CHECK (((cardinality(scopes) > 0) AND (scopes <@ ARRAY['read'::text, 'enqueue'::text, 'operate'::text, 'decrypt'::text]) AND (array_position(scopes, NULL::text) IS NULL))),
    CONSTRAINT api_tokens_types_check CHECK ((((cardinality(types) >= 1) AND (cardinality(types) <= 100)) AND (array_position(types, NULL::text) IS NULL)))
);

-- Name: COLUMN api_tokens.org_id; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.api_tokens.org_id IS 'The organization that it may reach; null: all';

-- Name: COLUMN api_tokens.types; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.api_tokens.types IS 'The types of background jobs that it may enqueue; null: all, but cleanup and db_function only with the scope operate';

-- Name: COLUMN api_tokens.requests_per_minute; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.api_tokens.requests_per_minute IS 'How many requests each server takes from it in a minute; null: no limit';

-- Name: COLUMN api_tokens.jobs_per_minute; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.api_tokens.jobs_per_minute IS 'How many jobs each server enqueues for it in a minute; null: no limit';

-- Name: COLUMN api_tokens.run_by_get; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.api_tokens.run_by_get IS 'GET /api/jobs/run works due jobs, as POST does';

-- Name: archives; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.archives (
    key text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    counts jsonb NOT NULL,
    lines integer NOT NULL,
    bytes bigint NOT NULL,
    sha256 bytea NOT NULL,
    org_ids text[] NOT NULL COLLATE pg_catalog."C",
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    archived_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    restored_at timestamp with time zone,
    erased_at timestamp with time zone,
    CONSTRAINT archives_bytes_check CHECK ((bytes > 0)),
    CONSTRAINT archives_counts_check CHECK ((jsonb_typeof(counts) = 'object'::text)),
    CONSTRAINT archives_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 255))),
    CONSTRAINT archives_kind_check CHECK ((kind = ANY (ARRAY['jobs'::text, 'attempts'::text]))),
    CONSTRAINT archives_lines_check CHECK ((lines > 0)),
    CONSTRAINT archives_sha256_check CHECK ((octet_length(sha256) = 32))
);

-- Name: TABLE archives; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.archives IS 'The files of the archive; a file that is not on record holds nothing that was removed';

-- Name: COLUMN archives.sha256; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.archives.sha256 IS 'Of the file as it is stored';

-- Name: COLUMN archives.first_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.archives.first_at IS 'When the first of what is in it ended, and last_at the last';

-- Name: COLUMN archives.restored_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.archives.restored_at IS 'When its rows were last brought back; null: never';

-- Name: COLUMN archives.erased_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.archives.erased_at IS 'An erasure replaced the file: it is to be deleted, and its row with it';

-- Name: attempt_log; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.attempt_log (
    id bigint NOT NULL,
    job_id text NOT NULL COLLATE pg_catalog."C",
    org_id text NOT NULL COLLATE pg_catalog."C",
    kind text DEFAULT 'accounting'::text NOT NULL,
    document_id text COLLATE pg_catalog."C",
    version bigint,
    type text COLLATE pg_catalog."C",
    attempt integer NOT NULL,
    outcome daybook.attempt_outcome NOT NULL,
    error_code text,
    error text,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    worker text DEFAULT ''::text NOT NULL,
    turn_id text NOT NULL COLLATE pg_catalog."C",
    fence bigint NOT NULL,
    workflow_run_id text DEFAULT ''::text NOT NULL,
    times integer DEFAULT 1 NOT NULL,
    first_started_at timestamp with time zone,
    CONSTRAINT attempt_log_attempt_check CHECK ((attempt > 0)),
    CONSTRAINT attempt_log_check CHECK (((outcome = ANY (ARRAY['retried'::daybook.attempt_outcome, 'failed'::daybook.attempt_outcome])) <= (error_code IS NOT NULL))),
    CONSTRAINT attempt_log_check1 CHECK (((times > 1) = (first_started_at IS NOT NULL))),
    CONSTRAINT attempt_log_times_check CHECK ((times > 0)),
    CONSTRAINT attempts_kind CHECK (
CASE kind
    WHEN 'accounting'::text THEN ((document_id IS NOT NULL) AND (version IS NOT NULL) AND (type IS NULL))
    WHEN 'jobs'::text THEN ((document_id IS NULL) AND (version IS NULL) AND (type IS NOT NULL))
    ELSE false
END)
);

-- Name: COLUMN attempt_log.times; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.attempt_log.times IS 'How many attempts the row stands for: rescheduled ones with the same number, version and error code are kept as one row, the last of them';

-- Name: COLUMN attempt_log.first_started_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.attempt_log.first_started_at IS 'When the first of several attempts began; null: it stands for one';

-- Name: job_links; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.job_links (
    job_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT job_links_id_check CHECK (((id <> ''::text) AND (octet_length(id) <= 255))),
    CONSTRAINT job_links_kind_check CHECK (((kind <> ''::text) AND (octet_length(kind) <= 64)))
);

-- Name: async_operations; Type: VIEW; Schema: daybook; Owner: -

CREATE VIEW daybook.async_operations AS
 SELECT j.id,
    j.type AS operation_type,
    j.payload,
    ( SELECT l.id
           FROM daybook.job_links l
          WHERE ((l.job_id = j.id) AND (l.kind = 'submission'::text))
          ORDER BY l.id
         LIMIT 1) AS submission_id,
    ( SELECT l.id
           FROM daybook.job_links l
          WHERE ((l.job_id = j.id) AND (l.kind = 'form'::text))
          ORDER BY l.id
         LIMIT 1) AS form_id,
    ( SELECT l.id
           FROM daybook.job_links l
          WHERE ((l.job_id = j.id) AND (l.kind = 'workspace'::text))
          ORDER BY l.id
         LIMIT 1) AS workspace_id,
        CASE j.state
            WHEN 'pending'::daybook.job_state THEN
            CASE
                WHEN (j.last_error_code IS NULL) THEN 'pending'::text
                ELSE 'failed'::text
            END
            WHEN 'leased'::daybook.job_state THEN 'processing'::text
            WHEN 'failed'::daybook.job_state THEN 'dead'::text
            ELSE (j.state)::text
        END AS status,
    j.run_count AS attempts,
    j.max_attempts,
    COALESCE(j.attempt_started_at, j.last_attempted_at) AS last_attempt_at,
        CASE j.state
            WHEN 'pending'::daybook.job_state THEN j.ready_at
            ELSE NULL::timestamp with time zone
        END AS next_retry_at,
        CASE j.state
            WHEN 'completed'::daybook.job_state THEN j.finished_at
            ELSE NULL::timestamp with time zone
        END AS completed_at,
    j.last_error,
    ( SELECT COALESCE(jsonb_agg(jsonb_build_object('error', a.error, 'error_code', a.error_code, 'timestamp', a.ended_at, 'attempt', a.attempt) ORDER BY a.id), '[]'::jsonb) AS "coalesce"
           FROM daybook.attempt_log a
          WHERE ((a.job_id = j.id) AND (a.outcome = ANY (ARRAY['retried'::daybook.attempt_outcome, 'failed'::daybook.attempt_outcome, 'lost'::daybook.attempt_outcome])))) AS error_history,
    j.result,
    j.created_at,
    j.updated_at
   FROM daybook.jobs j;

-- Name: VIEW async_operations; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON VIEW daybook.async_operations IS 'daybook.jobs under other names: failed is a job that waits to be tried again, dead one that will not be';

-- Name: async_operations_status; Type: VIEW; Schema: daybook; Owner: -

CREATE VIEW daybook.async_operations_status AS
 SELECT o.operation_type,
    o.status,
    count(*) AS count,
    min(o.created_at) AS oldest,
    max(o.created_at) AS newest,
    avg(o.attempts) AS avg_attempts
   FROM daybook.async_operations o
  GROUP BY o.operation_type, o.status;

-- Name: attempt_log_id_seq; Type: SEQUENCE; Schema: daybook; Owner: -

ALTER TABLE daybook.attempt_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME daybook.attempt_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: attempts; Type: VIEW; Schema: daybook; Owner: -

CREATE VIEW daybook.attempts AS
 SELECT attempt_log.id,
    attempt_log.job_id,
    attempt_log.org_id,
    attempt_log.kind,
    attempt_log.document_id,
    attempt_log.version,
    attempt_log.type,
    attempt_log.attempt,
    attempt_log.outcome,
    attempt_log.error_code,
    attempt_log.error,
    attempt_log.started_at,
    attempt_log.ended_at,
    attempt_log.worker,
    attempt_log.turn_id,
    attempt_log.fence,
    attempt_log.workflow_run_id,
    attempt_log.times,
    attempt_log.first_started_at
   FROM daybook.attempt_log
UNION ALL
 SELECT '9007199254740991'::bigint AS id,
    j.id AS job_id,
    j.org_id,
    'jobs'::text AS kind,
    (NULL::text COLLATE "C") AS document_id,
    NULL::bigint AS version,
    j.type,
    j.run_count AS attempt,
    'completed'::daybook.attempt_outcome AS outcome,
    j.last_error_code AS error_code,
    j.last_error AS error,
    j.completed_started_at AS started_at,
    j.finished_at AS ended_at,
    j.completed_by AS worker,
    j.completed_turn_id AS turn_id,
    j.completed_fence AS fence,
    split_part((j.completed_turn_id COLLATE "default"), '/'::text, 1) AS workflow_run_id,
    1 AS times,
    NULL::timestamp with time zone AS first_started_at
   FROM daybook.jobs j
  WHERE ((j.state = 'completed'::daybook.job_state) AND (j.completed_turn_id IS NOT NULL))
UNION ALL
 SELECT '9007199254740991'::bigint AS id,
    q.id AS job_id,
    q.org_id,
    'accounting'::text AS kind,
    q.document_id,
    q.version_hint AS version,
    (NULL::text COLLATE "C") AS type,
    q.run_count AS attempt,
    'completed'::daybook.attempt_outcome AS outcome,
    NULL::text AS error_code,
    NULL::text AS error,
    q.completed_started_at AS started_at,
    q.finished_at AS ended_at,
    q.completed_by AS worker,
    q.completed_turn_id AS turn_id,
    q.completed_fence AS fence,
    split_part((q.completed_turn_id COLLATE "default"), '/'::text, 1) AS workflow_run_id,
    1 AS times,
    NULL::timestamp with time zone AS first_started_at
   FROM daybook.accounting_work_queue q
  WHERE ((q.state = 'completed'::daybook.job_state) AND (q.completed_turn_id IS NOT NULL));

-- Name: VIEW attempts; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON VIEW daybook.attempts IS 'Every attempt at a job: those of attempt_log, and those that completed jobs, which the rows of the jobs keep';

-- Name: bulk_batches; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.bulk_batches (
    operation_id text NOT NULL COLLATE pg_catalog."C",
    n integer NOT NULL,
    job_ids text[] NOT NULL,
    generations bigint[]
);

-- Name: COLUMN bulk_batches.generations; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.bulk_batches.generations IS 'Of an edit: the generations that the jobs had when the patch was tried on them. One that has changed since is left alone';

-- Name: bulk_operations; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.bulk_operations (
    id text DEFAULT daybook.new_id() NOT NULL COLLATE pg_catalog."C",
    kind text DEFAULT 'jobs'::text NOT NULL,
    org_id text COLLATE pg_catalog."C",
    action text NOT NULL,
    mode text,
    delay_seconds double precision,
    patch jsonb,
    actor text,
    states text[] NOT NULL,
    matched integer DEFAULT 0 NOT NULL,
    changed integer DEFAULT 0 NOT NULL,
    left_alone integer DEFAULT 0 NOT NULL,
    left_open integer DEFAULT 0 NOT NULL,
    left_queue integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT bulk_operations_action_check CHECK ((action = ANY (ARRAY['retry'::text, 'cancel'::text, 'edit'::text]))),
    CONSTRAINT bulk_operations_check CHECK (((action = 'edit'::text) OR ((action = 'retry'::text) = (mode IS NOT NULL)))),
    CONSTRAINT bulk_operations_check1 CHECK ((((action = 'edit'::text) AND (finished_at IS NULL)) = (patch IS NOT NULL))),
    CONSTRAINT bulk_operations_check2 CHECK (((kind = 'jobs'::text) OR ((action = 'retry'::text) AND (mode = ANY (ARRAY['now'::text, 'later'::text]))))),
    CONSTRAINT bulk_operations_kind_check CHECK ((kind = ANY (ARRAY['jobs'::text, 'accounting'::text]))),
    CONSTRAINT bulk_operations_mode_check CHECK ((mode = ANY (ARRAY['now'::text, 'later'::text, 'reset'::text]))),
    CONSTRAINT bulk_operations_org_id_check CHECK (((org_id <> ''::text) AND (octet_length(org_id) <= 255)))
);

-- Name: COLUMN bulk_operations.org_id; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.bulk_operations.org_id IS 'The organization whose jobs are changed; null: all organizations';

-- Name: COLUMN bulk_operations.patch; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.bulk_operations.patch IS 'The JSON patch of an edit, until it is finished: it may hold what is to be erased';

-- Name: COLUMN bulk_operations.actor; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.bulk_operations.actor IS 'Who edits, for the jobs'' edits';

-- Name: COLUMN bulk_operations.left_open; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.bulk_operations.left_open IS 'Those of left_alone that are to be the only open job of their payload or schedule, while another one is open';

-- Name: COLUMN bulk_operations.left_queue; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.bulk_operations.left_queue IS 'Those of left_alone whose named queue was deleted';

-- Name: closed_dimension_sums; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.closed_dimension_sums (
    org_id text NOT NULL COLLATE pg_catalog."C",
    starts_on date NOT NULL,
    account_code text NOT NULL COLLATE pg_catalog."C",
    currency text NOT NULL,
    year_end boolean NOT NULL,
    dimensions jsonb NOT NULL,
    debit numeric NOT NULL,
    credit numeric NOT NULL
);

-- Name: TABLE closed_dimension_sums; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.closed_dimension_sums IS 'closed_sums of the entries that have dimensions, by all of these';

-- Name: closed_item_days; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.closed_item_days (
    org_id text NOT NULL COLLATE pg_catalog."C",
    last_day date NOT NULL,
    accounts text[] NOT NULL COLLATE pg_catalog."C",
    kept_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

-- Name: TABLE closed_item_days; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.closed_item_days IS 'Days at whose end, with all days before them closed, it is kept what is open';

-- Name: COLUMN closed_item_days.accounts; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closed_item_days.accounts IS 'The accounts that had open items: closed_items has those of these';

-- Name: closed_items; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.closed_items (
    org_id text NOT NULL COLLATE pg_catalog."C",
    last_day date NOT NULL,
    document_id text NOT NULL COLLATE pg_catalog."C",
    account_code text NOT NULL COLLATE pg_catalog."C",
    currency text NOT NULL,
    amount numeric NOT NULL
);

-- Name: TABLE closed_items; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.closed_items IS 'What documents that were open at the end of a closed day had posted until then, debits less credits, in minor units';

-- Name: closed_sum_spans; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.closed_sum_spans (
    org_id text NOT NULL COLLATE pg_catalog."C",
    starts_on date NOT NULL,
    ends_on date NOT NULL,
    tax_accounts text[] NOT NULL COLLATE pg_catalog."C",
    kept_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT closed_sum_spans_check CHECK ((starts_on <= ends_on))
);

-- Name: TABLE closed_sum_spans; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.closed_sum_spans IS 'Closed days whose sums are kept, so that a statement need not read their entries';

-- Name: COLUMN closed_sum_spans.tax_accounts; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closed_sum_spans.tax_accounts IS 'The accounts that had the role tax: closed_tax_differences holds for these';

-- Name: closed_sums; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.closed_sums (
    org_id text NOT NULL COLLATE pg_catalog."C",
    starts_on date NOT NULL,
    account_code text NOT NULL COLLATE pg_catalog."C",
    currency text NOT NULL,
    year_end boolean NOT NULL,
    debit numeric NOT NULL,
    credit numeric NOT NULL
);

-- Name: TABLE closed_sums; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.closed_sums IS 'What was posted to an account on closed days, in minor units';

-- Name: COLUMN closed_sums.year_end; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.closed_sums.year_end IS 'Posted by a year-end close: the income statement leaves it out';

-- Name: closed_tax_differences; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.closed_tax_differences (
    org_id text NOT NULL COLLATE pg_catalog."C",
    starts_on date NOT NULL,
    document_id text NOT NULL COLLATE pg_catalog."C",
    currency text NOT NULL,
    stated numeric NOT NULL,
    posted numeric NOT NULL
);

-- Name: TABLE closed_tax_differences; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.closed_tax_differences IS 'Documents of closed days that stated another tax than was posted, in minor units; positive: owed';

-- Name: closed_tax_sums; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.closed_tax_sums (
    org_id text NOT NULL COLLATE pg_catalog."C",
    starts_on date NOT NULL,
    currency text NOT NULL,
    direction text NOT NULL,
    country text NOT NULL,
    category text NOT NULL,
    code text NOT NULL,
    rate numeric NOT NULL,
    documents bigint NOT NULL,
    base numeric NOT NULL,
    tax numeric NOT NULL
);

-- Name: TABLE closed_tax_sums; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.closed_tax_sums IS 'What documents stated of taxes on closed days, in minor units';

-- Name: closed_taxes; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.closed_taxes (
    impact_id bigint NOT NULL,
    currency text NOT NULL,
    direction text NOT NULL,
    country text NOT NULL,
    category text NOT NULL,
    code text NOT NULL,
    rate numeric NOT NULL,
    base numeric NOT NULL,
    tax numeric NOT NULL
);

-- Name: TABLE closed_taxes; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.closed_taxes IS 'What documents stated of taxes when the days of their impacts were closed, in minor units';

-- Name: confirmations; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.confirmations (
    impact_id bigint NOT NULL,
    document_version bigint NOT NULL,
    rule_set_version bigint NOT NULL,
    job_id text NOT NULL COLLATE pg_catalog."C",
    attempt integer NOT NULL,
    workflow_run_id text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

-- Name: console_sessions; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.console_sessions (
    hash bytea NOT NULL,
    token_id text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT console_sessions_hash_check CHECK ((octet_length(hash) = 32))
);

-- Name: defaults; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.defaults (
    one boolean DEFAULT true NOT NULL,
    source text DEFAULT 'daybook'::text NOT NULL,
    hooks text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT defaults_hooks_check CHECK ((array_to_string(hooks, '/'::text, ' '::text) ~ '^([a-z0-9][a-z0-9_.-]{0,62}(/[a-z0-9][a-z0-9_.-]{0,62})*)?$'::text)),
    CONSTRAINT defaults_one_check CHECK (one),
    CONSTRAINT defaults_source_check CHECK ((source ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'::text))
);

-- Name: COLUMN defaults.source; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.defaults.source IS 'The source of organizations that name none; daybook is the table daybook.documents';

-- Name: depths; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.depths (
    seconds integer NOT NULL,
    at timestamp with time zone NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    due bigint NOT NULL,
    waiting bigint NOT NULL,
    leased bigint NOT NULL,
    failed bigint NOT NULL,
    oldest_due_seconds double precision NOT NULL,
    CONSTRAINT depths_seconds_check CHECK ((seconds = ANY (ARRAY[60, 600, 3600])))
)
WITH (fillfactor='50', autovacuum_vacuum_threshold='1000', autovacuum_analyze_threshold='1000');

-- Name: TABLE depths; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.depths IS 'The highest gauges of each minute, ten minutes and hour, kept for as long as daybook.history';

-- Name: COLUMN depths.oldest_due_seconds; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.depths.oldest_due_seconds IS 'For how long the oldest due job had been due; 0: none was';

-- Name: entries; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.entries (
    impact_id bigint NOT NULL,
    line_no integer NOT NULL,
    org_id text NOT NULL COLLATE pg_catalog."C",
    account_code text NOT NULL COLLATE pg_catalog."C",
    side daybook.entry_side NOT NULL,
    amount_minor bigint NOT NULL,
    currency text NOT NULL,
    rule_line_id text DEFAULT ''::text NOT NULL,
    document_line integer,
    dimensions jsonb,
    CONSTRAINT entries_amount_minor_check CHECK ((amount_minor > 0)),
    CONSTRAINT entries_currency_check CHECK ((length(currency) = 3)),
    CONSTRAINT entries_dimensions_check CHECK (((jsonb_typeof(dimensions) = 'object'::text) AND (dimensions <> '{}'::jsonb))),
    CONSTRAINT entries_line_no_check CHECK ((line_no > 0))
);

-- Name: COLUMN entries.amount_minor; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.entries.amount_minor IS 'In minor units of the currency (cents, whole yen)';

-- Name: COLUMN entries.dimensions; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.entries.dimensions IS 'What statements can be split by, such as {"cost_centre": "sales"}: a text for each key; null: nothing';

-- Name: erasures; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.erasures (
    id text DEFAULT daybook.new_id() NOT NULL COLLATE pg_catalog."C",
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    finished_at timestamp with time zone,
    actor text NOT NULL,
    db_role text DEFAULT SESSION_USER NOT NULL,
    org_id text NOT NULL COLLATE pg_catalog."C",
    scope text NOT NULL,
    link_kind text,
    scope_salt bytea NOT NULL,
    scope_hash bytea NOT NULL,
    ground text DEFAULT ''::text NOT NULL,
    counts jsonb DEFAULT '{}'::jsonb NOT NULL,
    kept jsonb DEFAULT '[]'::jsonb NOT NULL,
    open_jobs integer DEFAULT 0 NOT NULL,
    CONSTRAINT erasures_check CHECK (((scope = 'link'::text) = (link_kind IS NOT NULL))),
    CONSTRAINT erasures_counts_check CHECK ((jsonb_typeof(counts) = 'object'::text)),
    CONSTRAINT erasures_kept_check CHECK ((jsonb_typeof(kept) = 'array'::text)),
    CONSTRAINT erasures_org_id_check CHECK ((org_id <> ''::text)),
    CONSTRAINT erasures_scope_check CHECK ((scope = ANY (ARRAY['organization'::text, 'link'::text]))),
    CONSTRAINT erasures_scope_hash_check CHECK ((octet_length(scope_hash) = 32)),
    CONSTRAINT erasures_scope_salt_check CHECK ((octet_length(scope_salt) = 16))
);

-- Name: TABLE erasures; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.erasures IS 'The proof of what was erased, and of what was kept and why';

-- Name: COLUMN erasures.finished_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.erasures.finished_at IS 'Null: it runs, or ended before its end; erase again';

-- Name: COLUMN erasures.scope_hash; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.erasures.scope_hash IS 'SHA-256 of the salt, the organization, and the kind and id of the link, each but the salt with its length in bytes and a colon before it';

-- Name: COLUMN erasures.ground; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.erasures.ground IS 'What the operator gave as the reason';

-- Name: COLUMN erasures.counts; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.erasures.counts IS 'How many rows, by table, and files were erased';

-- Name: COLUMN erasures.kept; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.erasures.kept IS '[{"what", "count", "reason"}]: what was not erased';

-- Name: COLUMN erasures.open_jobs; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.erasures.open_jobs IS 'Jobs that were being worked at its end: erase again when they have ended';

-- Name: fence_seq; Type: SEQUENCE; Schema: daybook; Owner: -

CREATE SEQUENCE daybook.fence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

-- Name: SEQUENCE fence_seq; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON SEQUENCE daybook.fence_seq IS 'Fences of leases: an activity takes the next one when it starts; the holder of a lower one commits nothing';

-- Name: fleets; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.fleets (
    id smallint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT fleets_check CHECK (((id = 0) = (name = ''::text))),
    CONSTRAINT fleets_id_check CHECK ((id >= 0)),
    CONSTRAINT fleets_name_check CHECK ((name ~ '^([a-z0-9][a-z0-9_.-]{0,62})?$'::text))
);

-- Name: TABLE fleets; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.fleets IS 'Sets of programs that work the same queues: a worker belongs to one';

-- Name: COLUMN fleets.id; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.fleets.id IS '0 is the fleet without a name, which works the jobs that are in no named queue';

-- Name: gauges; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.gauges (
    kind text NOT NULL COLLATE pg_catalog."C",
    sampled_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    holder text NOT NULL,
    due bigint DEFAULT 0 NOT NULL,
    waiting bigint DEFAULT 0 NOT NULL,
    leased bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    stale_leases bigint DEFAULT 0 NOT NULL,
    unhandled bigint DEFAULT 0 NOT NULL,
    held_back bigint DEFAULT 0 NOT NULL,
    oldest_due_at timestamp with time zone,
    estimated text[] DEFAULT '{}'::text[] NOT NULL,
    figures jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT gauges_due_check CHECK ((due >= 0)),
    CONSTRAINT gauges_failed_check CHECK ((failed >= 0)),
    CONSTRAINT gauges_figures_check CHECK ((jsonb_typeof(figures) = 'object'::text)),
    CONSTRAINT gauges_held_back_check CHECK ((held_back >= 0)),
    CONSTRAINT gauges_kind_check CHECK ((kind <> ''::text)),
    CONSTRAINT gauges_leased_check CHECK ((leased >= 0)),
    CONSTRAINT gauges_stale_leases_check CHECK ((stale_leases >= 0)),
    CONSTRAINT gauges_unhandled_check CHECK ((unhandled >= 0)),
    CONSTRAINT gauges_waiting_check CHECK ((waiting >= 0))
)
WITH (fillfactor='50', autovacuum_vacuum_threshold='1000', autovacuum_analyze_threshold='1000');

-- Name: TABLE gauges; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.gauges IS 'How the queues stood when they were last sampled: one row a kind, and one of the whole database';

-- Name: COLUMN gauges.holder; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.gauges.holder IS 'The process that samples';

-- Name: COLUMN gauges.due; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.gauges.due IS 'Jobs that are pending and whose time has come; waiting: whose time lies ahead';

-- Name: COLUMN gauges.oldest_due_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.gauges.oldest_due_at IS 'Since when the oldest due job is due, those of paused organizations and types left out; null: none is due';

-- Name: COLUMN gauges.estimated; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.gauges.estimated IS 'Those of the columns due, waiting, leased and failed that are estimates: there were more rows than are counted';

-- Name: COLUMN gauges.figures; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.gauges.figures IS 'The same by type, dead letters by error code, and the state of the workflow';

-- Name: history; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.history (
    seconds integer NOT NULL,
    at timestamp with time zone NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    outcome text NOT NULL COLLATE pg_catalog."C",
    code text NOT NULL COLLATE pg_catalog."C",
    org_id text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    count bigint NOT NULL,
    waited_seconds double precision NOT NULL,
    took_seconds double precision NOT NULL,
    waited bigint[] NOT NULL,
    took bigint[] NOT NULL,
    CONSTRAINT history_count_check CHECK ((count >= 0)),
    CONSTRAINT history_seconds_check CHECK ((seconds = ANY (ARRAY[60, 600, 3600])))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.05', autovacuum_analyze_scale_factor='0.1');

-- Name: TABLE history; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.history IS 'What attempts came to, by the minute (kept for two days), by ten minutes (eight days) and by the hour (31 days)';

-- Name: COLUMN history.seconds; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.history.seconds IS 'How long a span the row stands for, from at on';

-- Name: COLUMN history.type; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.history.type IS 'The type of a job or task; empty for accounting; other: one of the types beyond the hundredth';

-- Name: COLUMN history.code; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.history.code IS 'The error code; empty: no error';

-- Name: COLUMN history.org_id; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.history.org_id IS 'The organization, where a worker is told to keep them apart (DAYBOOK_METRICS_ORGANIZATIONS); else empty';

-- Name: COLUMN history.waited_seconds; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.history.waited_seconds IS 'The sum of the times from when the jobs were first due until the attempts ended; waited: how many in each bucket';

-- Name: COLUMN history.took_seconds; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.history.took_seconds IS 'The sum of the times that the attempts took; took: how many in each bucket';

-- Name: impacts; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.impacts (
    id bigint NOT NULL,
    org_id text NOT NULL COLLATE pg_catalog."C",
    document_id text NOT NULL COLLATE pg_catalog."C",
    document_version bigint NOT NULL,
    seq integer NOT NULL,
    previous_seq integer GENERATED ALWAYS AS (NULLIF((seq - 1), 0)) STORED,
    kind daybook.impact_kind NOT NULL,
    rule_set_version bigint,
    rule_id text DEFAULT ''::text NOT NULL,
    epoch integer DEFAULT 0 NOT NULL,
    document_date date NOT NULL,
    posting_date date NOT NULL,
    entry_count integer NOT NULL,
    content_hash bytea,
    job_id text NOT NULL COLLATE pg_catalog."C",
    attempt integer NOT NULL,
    workflow_run_id text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    no_entries text DEFAULT ''::text NOT NULL,
    CONSTRAINT chain_alternates CHECK (((kind = 'post'::daybook.impact_kind) = ((seq % 2) = 1))),
    CONSTRAINT dates_are_bookable CHECK ((daybook.is_bookable(document_date) AND daybook.is_bookable(posting_date))),
    CONSTRAINT impacts_content_hash_check CHECK ((octet_length(content_hash) = 32)),
    CONSTRAINT impacts_entry_count_check CHECK ((entry_count >= 0)),
    CONSTRAINT impacts_epoch_check CHECK ((epoch >= 0)),
    CONSTRAINT impacts_no_entries_check CHECK ((no_entries = ANY (ARRAY[''::text, 'zero'::text, 'rule'::text, 'elsewhere'::text]))),
    CONSTRAINT impacts_seq_check CHECK ((seq > 0)),
    CONSTRAINT no_entries_without CHECK (((no_entries = ''::text) OR ((kind = 'post'::daybook.impact_kind) AND (entry_count = 0))))
);

-- Name: impact_id_seq; Type: SEQUENCE; Schema: daybook; Owner: -

CREATE SEQUENCE daybook.impact_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

-- Name: impact_id_seq; Type: SEQUENCE OWNED BY; Schema: daybook; Owner: -

ALTER SEQUENCE daybook.impact_id_seq OWNED BY daybook.impacts.id;

-- Name: import_documents; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.import_documents (
    import_id bigint NOT NULL,
    document_id text NOT NULL COLLATE pg_catalog."C",
    created boolean NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    written_at timestamp with time zone,
    former jsonb,
    undone text,
    CONSTRAINT import_documents_undone_check CHECK ((undone = ANY (ARRAY['removed'::text, 'reversed'::text, 'restored'::text])))
);

-- Name: TABLE import_documents; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.import_documents IS 'The documents that an import created or changed';

-- Name: COLUMN import_documents.version; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.import_documents.version IS 'The version that it wrote; of a document that was undone, the one that the undo wrote';

-- Name: COLUMN import_documents.written_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.import_documents.written_at IS 'documents.updated_at as it wrote it: another one is of a later change';

-- Name: COLUMN import_documents.former; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.import_documents.former IS 'What a document that it changed was before; null: it was created, restored, or what it was is not kept';

-- Name: imports; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.imports (
    id bigint NOT NULL,
    org_id text NOT NULL COLLATE pg_catalog."C",
    format text NOT NULL,
    files text DEFAULT ''::text NOT NULL,
    actor text NOT NULL,
    db_role text DEFAULT SESSION_USER NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    inserted bigint DEFAULT 0 NOT NULL,
    changed bigint DEFAULT 0 NOT NULL,
    unchanged bigint DEFAULT 0 NOT NULL,
    undo_started_at timestamp with time zone,
    undo_ended_at timestamp with time zone,
    undo_actor text,
    removed bigint DEFAULT 0 NOT NULL,
    reversed bigint DEFAULT 0 NOT NULL,
    restored bigint DEFAULT 0 NOT NULL,
    kept bigint DEFAULT 0 NOT NULL,
    CONSTRAINT imports_files_check CHECK ((octet_length(files) <= 1000)),
    CONSTRAINT imports_format_check CHECK ((format ~ '^[a-z][a-z0-9_-]{0,99}$'::text)),
    CONSTRAINT imports_org_id_check CHECK (((org_id <> ''::text) AND (octet_length(org_id) <= 255))),
    CONSTRAINT undo_ends_after_start CHECK (((undo_ended_at IS NULL) OR (undo_started_at IS NOT NULL))),
    CONSTRAINT undo_has_actor CHECK (((undo_started_at IS NULL) = (undo_actor IS NULL)))
);

-- Name: TABLE imports; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.imports IS 'What was imported for an organization, by whom, and what of it was taken back';

-- Name: COLUMN imports.files; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.imports.files IS 'The paths as they were given, shortened where they are long';

-- Name: COLUMN imports.actor; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.imports.actor IS 'The user of the operating system that ran the command, or the token''s name';

-- Name: COLUMN imports.ended_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.imports.ended_at IS 'Null: it runs, or was ended before its end; what it wrote stands, and can be undone';

-- Name: COLUMN imports.inserted; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.imports.inserted IS 'How many documents it made; with changed and unchanged it is counted when it ends';

-- Name: COLUMN imports.undo_ended_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.imports.undo_ended_at IS 'When the last undo that changed something came to its end; null: none did';

-- Name: COLUMN imports.kept; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.imports.kept IS 'How many documents that undo left as they are';

-- Name: imports_id_seq; Type: SEQUENCE; Schema: daybook; Owner: -

ALTER TABLE daybook.imports ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME daybook.imports_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: job_callbacks; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.job_callbacks (
    token_hash bytea NOT NULL,
    job_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    deadline timestamp with time zone NOT NULL,
    called_at timestamp with time zone,
    data jsonb,
    awaited boolean DEFAULT false NOT NULL,
    seen boolean DEFAULT false NOT NULL,
    CONSTRAINT job_callbacks_check CHECK (((called_at IS NULL) = (data IS NULL))),
    CONSTRAINT job_callbacks_check1 CHECK (((NOT seen) OR (called_at IS NOT NULL))),
    CONSTRAINT job_callbacks_name_check CHECK (((name <> ''::text) AND (octet_length(name) <= 64))),
    CONSTRAINT job_callbacks_token_hash_check CHECK ((octet_length(token_hash) = 32))
);

-- Name: COLUMN job_callbacks.name; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_callbacks.name IS 'What the handler calls it: a job may ask for several';

-- Name: COLUMN job_callbacks.awaited; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_callbacks.awaited IS 'Who asked for it has waited for it. An attempt that ended otherwise may not have given the token to another system';

-- Name: COLUMN job_callbacks.seen; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_callbacks.seen IS 'An attempt has read what came';

-- Name: job_deliveries; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.job_deliveries (
    job_id text NOT NULL COLLATE pg_catalog."C",
    channel text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL,
    attempt integer NOT NULL,
    generation bigint NOT NULL,
    reference text,
    error_code text,
    error text,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT job_deliveries_attempt_check CHECK ((attempt > 0)),
    CONSTRAINT job_deliveries_channel_check CHECK ((channel ~ '^[a-z][a-z0-9_]{0,31}$'::text)),
    CONSTRAINT job_deliveries_state_check CHECK ((state = ANY (ARRAY['sending'::text, 'sent'::text, 'failed'::text, 'refused'::text, 'unknown'::text])))
);

-- Name: COLUMN job_deliveries.state; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_deliveries.state IS 'sending: asked, no answer yet; sent; failed: not sent, the next attempt asks again; refused: not sent for good; unknown: perhaps sent, and not sent again';

-- Name: COLUMN job_deliveries.generation; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_deliveries.generation IS 'The job''s when the channel was asked: a later request to try the job again asks channels that refused anew';

-- Name: COLUMN job_deliveries.reference; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_deliveries.reference IS 'What the channel calls the message; while it is being asked, the mark of the call that asks';

-- Name: job_limit_rates; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.job_limit_rates (
    scope text NOT NULL COLLATE pg_catalog."C",
    org_id text NOT NULL COLLATE pg_catalog."C",
    limit_key text NOT NULL COLLATE pg_catalog."C",
    next_at timestamp with time zone NOT NULL,
    look_at timestamp with time zone NOT NULL
)
WITH (fillfactor='70', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_scale_factor='0.05');

-- Name: COLUMN job_limit_rates.next_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_limit_rates.next_at IS 'When the rate is whole again, if nothing more begins';

-- Name: COLUMN job_limit_rates.look_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_limit_rates.look_at IS 'When a worker looks at the key: to admit the next job, or to remove the row';

-- Name: job_sequences; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.job_sequences (
    org_id text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    holder text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT job_sequences_key_check CHECK (((key <> ''::text) AND (octet_length(key) <= 255))),
    CONSTRAINT job_sequences_org_id_check CHECK (((org_id <> ''::text) AND (octet_length(org_id) <= 255)))
);

-- Name: COLUMN job_sequences.holder; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_sequences.holder IS 'The job whose turn it is: the others of its sequence wait until it is completed, cancelled or removed';

-- Name: job_status; Type: VIEW; Schema: daybook; Owner: -

CREATE VIEW daybook.job_status AS
 SELECT j.type,
    j.state,
    count(*) AS count,
    min(j.created_at) AS oldest,
    max(j.created_at) AS newest,
    avg(j.run_count) AS average_attempts
   FROM daybook.jobs j
  GROUP BY j.type, j.state;

-- Name: VIEW job_status; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON VIEW daybook.job_status IS 'Background jobs by type and state';

-- Name: job_steps; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.job_steps (
    job_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    "position" integer NOT NULL,
    attempt integer NOT NULL,
    result jsonb NOT NULL,
    done boolean DEFAULT true NOT NULL,
    times integer DEFAULT 1 NOT NULL,
    started_at timestamp with time zone NOT NULL,
    kept_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT job_steps_attempt_check CHECK ((attempt > 0)),
    CONSTRAINT job_steps_name_check CHECK (((name <> ''::text) AND (octet_length(name) <= 64))),
    CONSTRAINT job_steps_position_check CHECK (("position" > 0)),
    CONSTRAINT job_steps_times_check CHECK ((times > 0))
);

-- Name: COLUMN job_steps."position"; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_steps."position" IS 'The how many-th step of its attempt it was, from 1';

-- Name: COLUMN job_steps.attempt; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_steps.attempt IS 'The attempt that has kept it, or the last one that has';

-- Name: COLUMN job_steps.done; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_steps.done IS 'False: a loop, which goes on from the result';

-- Name: COLUMN job_steps.times; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_steps.times IS 'How often it was kept: once, or once for each round of a loop';

-- Name: job_types; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.job_types (
    kind text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    alias_of text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    owner text DEFAULT ''::text NOT NULL,
    max_attempts integer DEFAULT 0 NOT NULL,
    timeout_seconds double precision DEFAULT 0 NOT NULL,
    parallel integer DEFAULT 0 NOT NULL,
    bulk boolean DEFAULT false NOT NULL,
    secrets text[] DEFAULT '{}'::text[] NOT NULL,
    encrypts boolean DEFAULT false NOT NULL,
    worker text NOT NULL,
    first_seen timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_seen timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT job_types_check CHECK (((kind = 'accounting'::text) = (type = ''::text))),
    CONSTRAINT job_types_kind_check CHECK ((kind = ANY (ARRAY['accounting'::text, 'jobs'::text, 'tasks'::text]))),
    CONSTRAINT job_types_max_attempts_check CHECK ((max_attempts >= 0)),
    CONSTRAINT job_types_parallel_check CHECK ((parallel >= 0)),
    CONSTRAINT job_types_timeout_seconds_check CHECK ((timeout_seconds >= (0)::double precision))
)
WITH (fillfactor='70', autovacuum_vacuum_threshold='1000', autovacuum_analyze_threshold='1000');

-- Name: TABLE job_types; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.job_types IS 'Types that workers have handlers for: each worker writes its own every minute; what no worker has written for 90 days is removed';

-- Name: COLUMN job_types.type; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_types.type IS 'As jobs are enqueued; empty for the kind accounting';

-- Name: COLUMN job_types.alias_of; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_types.alias_of IS 'The type whose handler works it, if this is another name of it; else empty';

-- Name: COLUMN job_types.owner; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_types.owner IS 'The team or contact responsible; empty: no worker has said';

-- Name: COLUMN job_types.max_attempts; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_types.max_attempts IS 'How many attempts a job has that says nothing else; 0: that is the kind''s rule';

-- Name: COLUMN job_types.parallel; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_types.parallel IS 'How many a worker works side by side, or how many share a call of a bulk handler';

-- Name: COLUMN job_types.secrets; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_types.secrets IS 'Members of payloads and results that are not shown to people';

-- Name: COLUMN job_types.encrypts; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_types.encrypts IS 'Its payloads have members that are encrypted: workers by SQL, which cannot decrypt, leave its jobs to those in Go';

-- Name: COLUMN job_types.worker; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_types.worker IS 'The worker that wrote the row last';

-- Name: job_wait_checks; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.job_wait_checks (
    id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    org_id text COLLATE pg_catalog."C",
    sequence text COLLATE pg_catalog."C",
    awaits text COLLATE pg_catalog."C",
    job_id text COLLATE pg_catalog."C",
    queue text COLLATE pg_catalog."C",
    limit_scope text COLLATE pg_catalog."C",
    limit_key text COLLATE pg_catalog."C",
    limit_all boolean DEFAULT false NOT NULL,
    CONSTRAINT job_wait_checks_check CHECK (((num_nonnulls(sequence, awaits, job_id, queue, limit_scope) = 1) AND ((num_nonnulls(sequence, limit_scope) = 0) = (org_id IS NULL)) AND ((limit_scope IS NULL) = (limit_key IS NULL))))
);

-- Name: job_wait_checks_id_seq; Type: SEQUENCE; Schema: daybook; Owner: -

ALTER TABLE daybook.job_wait_checks ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME daybook.job_wait_checks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: job_waits; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.job_waits (
    job_id text NOT NULL COLLATE pg_catalog."C",
    awaits text NOT NULL COLLATE pg_catalog."C",
    any_end boolean DEFAULT false NOT NULL,
    ended_as text,
    replaces boolean DEFAULT false NOT NULL,
    CONSTRAINT job_waits_awaits_check CHECK (((awaits <> ''::text) AND (octet_length(awaits) <= 255))),
    CONSTRAINT job_waits_check CHECK ((any_end OR (ended_as IS NULL))),
    CONSTRAINT job_waits_ended_as_check CHECK ((ended_as = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text, 'removed'::text])))
);

-- Name: COLUMN job_waits.awaits; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_waits.awaits IS 'The id of the other job. Unless any_end is set, the row goes when that job is completed, or has failed this one';

-- Name: COLUMN job_waits.any_end; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_waits.any_end IS 'The job goes on however the other one ends, also as a dead letter; ended_as then says how';

-- Name: COLUMN job_waits.replaces; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_waits.replaces IS 'The other one is cancelled when its attempt fails: this one does its work, with a newer payload (debounce_job)';

-- Name: job_workers; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.job_workers (
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    fleet smallint DEFAULT 0 NOT NULL,
    types text[] NOT NULL,
    versions integer[] DEFAULT '{}'::integer[] NOT NULL,
    first_seen timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_seen timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    stopped_at timestamp with time zone,
    unshared jsonb DEFAULT '{}'::jsonb NOT NULL
);

-- Name: TABLE job_workers; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.job_workers IS 'Each worker of background jobs writes every minute that it is alive, and its types; a row that is a day old is removed';

-- Name: COLUMN job_workers.versions; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_workers.versions IS 'The version of the handler of each of types; empty: each is 0';

-- Name: COLUMN job_workers.stopped_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_workers.stopped_at IS 'When the worker stopped; null: it runs, or has ended without saying so. For want of a handler jobs become dead letters five minutes later';

-- Name: COLUMN job_workers.unshared; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_workers.unshared IS 'The types whose jobs share no transactions in this process although their policy says so, with what a function of theirs did there';

-- Name: job_workflows; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.job_workflows (
    job_id text NOT NULL COLLATE pg_catalog."C",
    namespace text NOT NULL,
    asked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    grace_seconds double precision NOT NULL,
    due_at timestamp with time zone,
    cancelled_at timestamp with time zone,
    CONSTRAINT job_workflows_check CHECK (((cancelled_at IS NULL) OR (due_at IS NOT NULL))),
    CONSTRAINT job_workflows_grace_seconds_check CHECK ((grace_seconds >= (0)::double precision)),
    CONSTRAINT job_workflows_job_id_check CHECK (((job_id <> ''::text) AND (octet_length(job_id) <= 255))),
    CONSTRAINT job_workflows_namespace_check CHECK ((octet_length(namespace) <= 1000))
);

-- Name: TABLE job_workflows; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.job_workflows IS 'Workflows of Temporal that work jobs and have not ended; the id of each is daybook-job/ and the job''s id';

-- Name: COLUMN job_workflows.namespace; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_workflows.namespace IS 'Temporal''s: workers of another one leave the row alone';

-- Name: COLUMN job_workflows.asked_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_workflows.asked_at IS 'When the last attempt asked Temporal to start it';

-- Name: COLUMN job_workflows.grace_seconds; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_workflows.grace_seconds IS 'How long after the request to cancel it a workflow may run before it is terminated';

-- Name: COLUMN job_workflows.due_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_workflows.due_at IS 'When a worker sees to its end again, because its job has ended; null: no worker has found that';

-- Name: COLUMN job_workflows.cancelled_at; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.job_workflows.cancelled_at IS 'When Temporal was asked to cancel it';

-- Name: live_job_workers; Type: VIEW; Schema: daybook; Owner: -

CREATE VIEW daybook.live_job_workers AS
 SELECT w.id,
    w.name,
    w.fleet,
    w.types,
    w.versions,
    w.unshared
   FROM daybook.job_workers w
  WHERE ((w.stopped_at IS NULL) AND (w.last_seen > (statement_timestamp() - '00:05:00'::interval)));

-- Name: VIEW live_job_workers; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON VIEW daybook.live_job_workers IS 'Workers of background jobs that were heard of in the last five minutes and have not stopped, among them what claims operations by SQL (async-operations)';

-- Name: organization_rates; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.organization_rates (
    org_id text NOT NULL COLLATE pg_catalog."C",
    starts double precision NOT NULL,
    at timestamp with time zone NOT NULL
)
WITH (fillfactor='20', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_scale_factor='0');

-- Name: TABLE organization_rates; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.organization_rates IS 'How many attempts could begin at a time, of each organization with a rate that was leased from';

-- Name: periods; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.periods (
    org_id text NOT NULL COLLATE pg_catalog."C",
    starts_on date NOT NULL,
    ends_on date NOT NULL,
    state daybook.period_state DEFAULT 'open'::daybook.period_state NOT NULL,
    closed_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT dates_are_bookable CHECK ((daybook.is_bookable(starts_on) AND daybook.is_bookable(ends_on))),
    CONSTRAINT periods_check CHECK ((starts_on <= ends_on)),
    CONSTRAINT periods_check1 CHECK (((state = 'closed'::daybook.period_state) = (closed_at IS NOT NULL)))
);

-- Name: posted_elsewhere; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.posted_elsewhere (
    org_id text NOT NULL COLLATE pg_catalog."C",
    document_id text NOT NULL COLLATE pg_catalog."C",
    document_version bigint NOT NULL,
    next text NOT NULL,
    entries jsonb,
    posted_on date NOT NULL,
    system text NOT NULL,
    left_version bigint,
    open_item text COLLATE pg_catalog."C",
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT difference_has_entries CHECK (((next <> 'difference'::text) OR (entries IS NOT NULL))),
    CONSTRAINT posted_elsewhere_document_id_check CHECK (((octet_length(document_id) >= 1) AND (octet_length(document_id) <= 255))),
    CONSTRAINT posted_elsewhere_document_version_check CHECK ((document_version >= '-1'::integer)),
    CONSTRAINT posted_elsewhere_entries_check CHECK ((jsonb_typeof(entries) = 'array'::text)),
    CONSTRAINT posted_elsewhere_next_check CHECK ((next = ANY (ARRAY['difference'::text, 'wait'::text, 'full'::text]))),
    CONSTRAINT posted_elsewhere_org_id_check CHECK (((octet_length(org_id) >= 1) AND (octet_length(org_id) <= 255))),
    CONSTRAINT posted_elsewhere_posted_on_check CHECK (isfinite(posted_on)),
    CONSTRAINT posted_elsewhere_system_check CHECK ((system <> ''::text))
);

-- Name: TABLE posted_elsewhere; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.posted_elsewhere IS 'Documents that another system has posted, so that Daybook does not post them in full again';

-- Name: COLUMN posted_elsewhere.document_version; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.posted_elsewhere.document_version IS 'The newest version that is posted elsewhere: Daybook posts nothing for it';

-- Name: COLUMN posted_elsewhere.next; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.posted_elsewhere.next IS 'What a newer version does: post the difference, wait for a person (POSTED_ELSEWHERE), or post in full because the other system took its posting back';

-- Name: COLUMN posted_elsewhere.entries; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.posted_elsewhere.entries IS 'What is posted elsewhere: [{"account", "side", "amount", "currency"}], amounts in minor units; null: not known';

-- Name: COLUMN posted_elsewhere.posted_on; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.posted_elsewhere.posted_on IS 'The posting date of what is posted elsewhere';

-- Name: COLUMN posted_elsewhere.system; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.posted_elsewhere.system IS 'Where it is posted, such as the table that it was adopted from';

-- Name: COLUMN posted_elsewhere.left_version; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.posted_elsewhere.left_version IS 'Up to this version a person decided that Daybook posts nothing, also when the document is not ready or deleted; null: none';

-- Name: COLUMN posted_elsewhere.open_item; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.posted_elsewhere.open_item IS 'The document that stands for it here, with what was open of it (daybook import opening); null: none does';

-- Name: queue_rates; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.queue_rates (
    queue text NOT NULL COLLATE pg_catalog."C",
    starts double precision NOT NULL,
    at timestamp with time zone NOT NULL
)
WITH (fillfactor='20', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_scale_factor='0');

-- Name: TABLE queue_rates; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.queue_rates IS 'How many attempts could begin at a time, of each queue with a rate that was leased from';

-- Name: rates; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.rates (
    org_id text NOT NULL COLLATE pg_catalog."C",
    currency text NOT NULL,
    valid_on date NOT NULL,
    rate numeric NOT NULL,
    source text DEFAULT ''::text NOT NULL,
    actor text DEFAULT SESSION_USER NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT rates_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT rates_rate_check CHECK (((rate > (0)::numeric) AND (rate < '1000000000000'::numeric))),
    CONSTRAINT rates_source_check CHECK ((octet_length(source) <= 255)),
    CONSTRAINT rates_valid_on_check CHECK (daybook.is_bookable(valid_on))
);

-- Name: TABLE rates; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.rates IS 'What currencies were worth in an organization''s own one';

-- Name: COLUMN rates.rate; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.rates.rate IS 'Units of the own currency for one of this currency, such as 0.92 (EUR for one USD)';

-- Name: COLUMN rates.source; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.rates.source IS 'Where the rate is from, such as a central bank';

-- Name: reconciled; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.reconciled (
    org_id text NOT NULL COLLATE pg_catalog."C",
    document_id text NOT NULL COLLATE pg_catalog."C",
    group_id bigint NOT NULL,
    matched_by text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    actor text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT reconciled_document_id_check CHECK (((document_id <> ''::text) AND (octet_length(document_id) <= 255))),
    CONSTRAINT reconciled_matched_by_check CHECK ((matched_by = ANY (ARRAY['hand'::text, 'reference'::text, 'number'::text, 'amount'::text]))),
    CONSTRAINT reconciled_org_id_check CHECK (((org_id <> ''::text) AND (octet_length(org_id) <= 255))),
    CONSTRAINT reconciled_reason_check CHECK ((octet_length(reason) <= 1000))
);

-- Name: TABLE reconciled; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.reconciled IS 'The documents that are in a group: an invoice with its payments, credit notes, refunds and deposits';

-- Name: COLUMN reconciled.matched_by; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.reconciled.matched_by IS 'hand: a person; reference: a document refers to another; number: a payment names a document''s number, and the amount is equal; amount: the counterparty and the amount are equal';

-- Name: COLUMN reconciled.actor; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.reconciled.actor IS 'Who put the document into the group';

-- Name: reconciled_group_seq; Type: SEQUENCE; Schema: daybook; Owner: -

CREATE SEQUENCE daybook.reconciled_group_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

-- Name: reconciled_group_seq; Type: SEQUENCE OWNED BY; Schema: daybook; Owner: -

ALTER SEQUENCE daybook.reconciled_group_seq OWNED BY daybook.reconciled.group_id;

-- Name: replaced_taxes; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.replaced_taxes (
    impact_id bigint NOT NULL,
    confirmations bigint NOT NULL,
    type text NOT NULL,
    direction text NOT NULL,
    currency text NOT NULL,
    country text NOT NULL,
    taxes jsonb
);

-- Name: TABLE replaced_taxes; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON TABLE daybook.replaced_taxes IS 'What documents state of taxes as they are posted, where their content was replaced since';

-- Name: rule_sets; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.rule_sets (
    org_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    name text NOT NULL,
    source text NOT NULL,
    sha256 text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT rule_sets_sha256_check CHECK ((length(sha256) = 64)),
    CONSTRAINT rule_sets_version_check CHECK ((version > 0))
);

-- Name: schema_migrations; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.schema_migrations (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);

-- Name: schema_migrations_id_seq; Type: SEQUENCE; Schema: daybook; Owner: -

ALTER TABLE daybook.schema_migrations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME daybook.schema_migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: schema_texts; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.schema_texts (
    version bigint NOT NULL,
    sha256 text NOT NULL,
    breaks boolean DEFAULT true NOT NULL,
    objects text[]
);

-- Name: webhook_deliveries; Type: TABLE; Schema: daybook; Owner: -

CREATE TABLE daybook.webhook_deliveries (
    job_id text NOT NULL COLLATE pg_catalog."C",
    attempt integer NOT NULL,
    url text NOT NULL,
    status integer,
    ok boolean NOT NULL,
    error_code text,
    duration_ms integer NOT NULL,
    sent_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    org_id text COLLATE pg_catalog."C",
    CONSTRAINT webhook_deliveries_attempt_check CHECK ((attempt > 0)),
    CONSTRAINT webhook_deliveries_duration_ms_check CHECK ((duration_ms >= 0))
);

-- Name: COLUMN webhook_deliveries.url; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.webhook_deliveries.url IS 'Without query and credentials';

-- Name: COLUMN webhook_deliveries.status; Type: COMMENT; Schema: daybook; Owner: -

COMMENT ON COLUMN daybook.webhook_deliveries.status IS 'The answer''s HTTP status; null: none came';

-- Name: error; Type: TABLE; Schema: queues; Owner: -

CREATE TABLE queues.error (
    error_id bigint NOT NULL,
    task_id bigint NOT NULL,
    error_message text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

-- Name: TABLE error; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON TABLE queues.error IS 'What went wrong while tasks were processed. Append-only; it decides nothing';

-- Name: error_error_id_seq; Type: SEQUENCE; Schema: queues; Owner: -

ALTER TABLE queues.error ALTER COLUMN error_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queues.error_error_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: task_completed; Type: TABLE; Schema: queues; Owner: -

CREATE TABLE queues.task_completed (
    task_id bigint NOT NULL,
    completed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');

-- Name: TABLE task_completed; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON TABLE queues.task_completed IS 'Tasks that are done with, whether they succeeded or failed. Append-only';

-- Name: failed_tasks; Type: VIEW; Schema: queues; Owner: -

CREATE VIEW queues.failed_tasks AS
 SELECT e.task_id,
    t.task_type,
    t.payload,
    t.scheduled_at,
    ( SELECT count(*) AS count
           FROM queues.error x
          WHERE (x.task_id = e.task_id)) AS errors,
    e.error_id AS last_error_id,
    e.created_at AS last_error_at,
    e.error_message AS last_error,
    c.completed_at
   FROM ((queues.error e
     JOIN queues.task t ON ((t.task_id = e.task_id)))
     LEFT JOIN queues.task_completed c ON ((c.task_id = e.task_id)))
  WHERE (NOT (EXISTS ( SELECT
           FROM queues.error n
          WHERE ((n.task_id = e.task_id) AND (n.error_id > e.error_id)))));

-- Name: VIEW failed_tasks; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON VIEW queues.failed_tasks IS 'Tasks of which an error was noted. Whether the process behind one succeeded later, its own tables say';

-- Name: open_task; Type: TABLE; Schema: queues; Owner: -

CREATE TABLE queues.open_task (
    task_id bigint NOT NULL,
    task_type text NOT NULL COLLATE pg_catalog."C",
    scheduled_at timestamp with time zone NOT NULL,
    leases integer DEFAULT 0 NOT NULL,
    task_lease_id bigint,
    leased_until timestamp with time zone,
    arrived xid8 DEFAULT pg_current_xact_id() NOT NULL,
    turn_id text,
    fence bigint,
    worker text,
    detached boolean DEFAULT false NOT NULL,
    working boolean DEFAULT false NOT NULL,
    counted boolean DEFAULT false NOT NULL,
    reclaims integer DEFAULT 0 NOT NULL,
    put_off integer DEFAULT 0 NOT NULL,
    last_call timestamp with time zone,
    CONSTRAINT open_task_has_lease CHECK ((((task_lease_id IS NULL) = (leased_until IS NULL)) AND ((turn_id IS NULL) = (fence IS NULL)) AND ((turn_id IS NULL) OR (leased_until IS NOT NULL)) AND ((turn_id IS NOT NULL) OR (NOT (detached OR working OR counted))))),
    CONSTRAINT open_task_leases_check CHECK ((leases >= 0))
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='10000', autovacuum_vacuum_cost_delay='1', autovacuum_analyze_scale_factor='0.05', autovacuum_analyze_threshold='10000');

-- Name: TABLE open_task; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON TABLE queues.open_task IS 'One row for each task that is not completed; queues.rebuild_open_tasks makes it anew from the facts';

-- Name: COLUMN open_task.scheduled_at; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.open_task.scheduled_at IS 'When it is ready: the task''s scheduled_at, or later where it was put off';

-- Name: COLUMN open_task.leases; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.open_task.leases IS 'How often the task was handed out';

-- Name: COLUMN open_task.task_lease_id; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.open_task.task_lease_id IS 'The claim that holds it; null: it is ready, now or from scheduled_at on';

-- Name: COLUMN open_task.arrived; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.open_task.arrived IS 'The transaction that made it ready, or leased it';

-- Name: COLUMN open_task.turn_id; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.open_task.turn_id IS 'The turn of Daybook''s worker that holds the lease, under the fence; null: another client holds it, or it is ready';

-- Name: COLUMN open_task.working; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.open_task.working IS 'The worker works on it: the attempt counts as lost should the worker end';

-- Name: COLUMN open_task.counted; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.open_task.counted IS 'Its lease counts towards the limit of its type over all workers';

-- Name: COLUMN open_task.reclaims; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.open_task.reclaims IS 'How often a worker ended while it had the task; a suspect is worked alone';

-- Name: COLUMN open_task.put_off; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.open_task.put_off IS 'How often this attempt was put off because of the database';

-- Name: COLUMN open_task.last_call; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.open_task.last_call IS 'The end of a lease that had expired, and lasts some seconds more so that a worker that lives can renew it: it is equal to leased_until then';

-- Name: task_lease; Type: TABLE; Schema: queues; Owner: -

CREATE TABLE queues.task_lease (
    task_lease_id bigint NOT NULL,
    task_id bigint NOT NULL,
    leased_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    renews bigint,
    CONSTRAINT lease_ends_after_it_begins CHECK ((expires_at > leased_at))
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');

-- Name: TABLE task_lease; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON TABLE queues.task_lease IS 'Each time that a task was handed out, or its lease renewed. Append-only';

-- Name: COLUMN task_lease.renews; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.task_lease.renews IS 'The claim that this row renews, by its task_lease_id; null: the task was handed out';

-- Name: leased_tasks; Type: VIEW; Schema: queues; Owner: -

CREATE VIEW queues.leased_tasks AS
 SELECT o.task_id,
    t.task_type,
    t.payload,
    t.scheduled_at,
    o.task_lease_id,
    l.leased_at,
    o.leased_until AS expires_at,
    o.leases
   FROM ((queues.open_task o
     JOIN queues.task t USING (task_id))
     JOIN queues.task_lease l USING (task_lease_id))
  WHERE (o.leased_until > clock_timestamp());

-- Name: VIEW leased_tasks; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON VIEW queues.leased_tasks IS 'Tasks that a worker holds now';

-- Name: open_tasks; Type: VIEW; Schema: queues; Owner: -

CREATE VIEW queues.open_tasks AS
 SELECT o.task_id,
    t.task_type,
    t.payload,
    t.enqueued_at,
    o.scheduled_at,
        CASE
            WHEN (o.leased_until > clock_timestamp()) THEN 'leased'::text
            WHEN (o.scheduled_at > clock_timestamp()) THEN 'waiting'::text
            ELSE 'ready'::text
        END AS state,
    o.leases,
        CASE
            WHEN (o.leased_until > clock_timestamp()) THEN o.leased_until
            ELSE NULL::timestamp with time zone
        END AS leased_until,
    ( SELECT e.error_message
           FROM queues.error e
          WHERE (e.task_id = o.task_id)
          ORDER BY e.error_id DESC
         LIMIT 1) AS last_error
   FROM (queues.open_task o
     JOIN queues.task t USING (task_id));

-- Name: VIEW open_tasks; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON VIEW queues.open_tasks IS 'Tasks that are not completed: waiting for their time, ready, or leased';

-- Name: task_limit; Type: TABLE; Schema: queues; Owner: -

CREATE TABLE queues.task_limit (
    task_type text NOT NULL COLLATE pg_catalog."C",
    paused_at timestamp with time zone,
    max_in_flight integer,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT task_cap_is_positive CHECK ((max_in_flight >= 1)),
    CONSTRAINT task_limit_is_of_a_type CHECK (((task_type = '*'::text) OR (task_type ~ '^[a-z][a-z0-9_]{0,62}$'::text)))
);

-- Name: TABLE task_limit; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON TABLE queues.task_limit IS 'Pauses and caps of tasks: `daybook tasks pause`, `resume` and `cap`';

-- Name: COLUMN task_limit.task_type; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.task_limit.task_type IS 'The type; *: all tasks together';

-- Name: COLUMN task_limit.paused_at; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.task_limit.paused_at IS 'Since when no dequeue hands any of them out; null: it does';

-- Name: COLUMN task_limit.max_in_flight; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON COLUMN queues.task_limit.max_in_flight IS 'How many of them may be leased at a time; null: any number';

-- Name: stuck_tasks; Type: VIEW; Schema: queues; Owner: -

CREATE VIEW queues.stuck_tasks AS
 SELECT o.task_id,
    t.task_type,
    t.payload,
    t.scheduled_at,
    o.leases,
    o.leased_until,
        CASE
            WHEN (EXISTS ( SELECT
               FROM queues.task_limit l
              WHERE ((l.task_type = ANY (ARRAY['*'::text, o.task_type])) AND (l.paused_at IS NOT NULL)))) THEN 'due for five minutes, and paused'::text
            WHEN (o.leases >= 3) THEN 'handed out three times or more, and never completed: its worker ended each time'::text
            WHEN (o.leased_until <= clock_timestamp()) THEN 'its lease has expired, and no worker has reclaimed it'::text
            ELSE 'due for five minutes, and no worker has leased it'::text
        END AS reason,
    ( SELECT e.error_message
           FROM queues.error e
          WHERE (e.task_id = o.task_id)
          ORDER BY e.error_id DESC
         LIMIT 1) AS last_error
   FROM (queues.open_task o
     JOIN queues.task t USING (task_id))
  WHERE ((o.leases >= 3) OR (COALESCE(o.leased_until, o.scheduled_at) < (clock_timestamp() - '00:05:00'::interval)));

-- Name: VIEW stuck_tasks; Type: COMMENT; Schema: queues; Owner: -

COMMENT ON VIEW queues.stuck_tasks IS 'Open tasks that need a person: their workers end, or no worker leases them';

-- Name: task_cursor_cursor_no_seq; Type: SEQUENCE; Schema: queues; Owner: -

ALTER TABLE queues.task_cursor ALTER COLUMN cursor_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queues.task_cursor_cursor_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: task_lease_task_lease_id_seq; Type: SEQUENCE; Schema: queues; Owner: -

ALTER TABLE queues.task_lease ALTER COLUMN task_lease_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queues.task_lease_task_lease_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: task_task_id_seq; Type: SEQUENCE; Schema: queues; Owner: -

ALTER TABLE queues.task ALTER COLUMN task_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queues.task_task_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: accounting_returns accounting_returns_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.accounting_returns
    ADD CONSTRAINT accounting_returns_pkey PRIMARY KEY (id);

-- Name: accounting_work_queue accounting_work_queue_org_id_document_id_key; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.accounting_work_queue
    ADD CONSTRAINT accounting_work_queue_org_id_document_id_key UNIQUE (org_id, document_id);

-- Name: accounting_work_queue accounting_work_queue_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.accounting_work_queue
    ADD CONSTRAINT accounting_work_queue_pkey PRIMARY KEY (id) WITH (fillfactor='55');

-- Name: accounts accounts_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (org_id, code);

-- Name: actions actions_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.actions
    ADD CONSTRAINT actions_pkey PRIMARY KEY (id);

-- Name: adopted_rows adopted_rows_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.adopted_rows
    ADD CONSTRAINT adopted_rows_pkey PRIMARY KEY (legacy_table, legacy_id);

-- Name: api_tokens api_tokens_hash_key; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.api_tokens
    ADD CONSTRAINT api_tokens_hash_key UNIQUE (hash);

-- Name: api_tokens api_tokens_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.api_tokens
    ADD CONSTRAINT api_tokens_pkey PRIMARY KEY (id);

-- Name: archives archives_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.archives
    ADD CONSTRAINT archives_pkey PRIMARY KEY (key);

-- Name: attempt_log attempt_log_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.attempt_log
    ADD CONSTRAINT attempt_log_pkey PRIMARY KEY (job_id, id);

-- Name: bulk_batches bulk_batches_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.bulk_batches
    ADD CONSTRAINT bulk_batches_pkey PRIMARY KEY (operation_id, n);

-- Name: bulk_operations bulk_operations_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.bulk_operations
    ADD CONSTRAINT bulk_operations_pkey PRIMARY KEY (id);

-- Name: closed_item_days closed_item_days_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.closed_item_days
    ADD CONSTRAINT closed_item_days_pkey PRIMARY KEY (org_id, last_day);

-- Name: closed_items closed_items_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.closed_items
    ADD CONSTRAINT closed_items_pkey PRIMARY KEY (org_id, last_day, document_id, account_code, currency);

-- Name: closed_sum_spans closed_sum_spans_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.closed_sum_spans
    ADD CONSTRAINT closed_sum_spans_pkey PRIMARY KEY (org_id, starts_on);

-- Name: closed_sums closed_sums_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.closed_sums
    ADD CONSTRAINT closed_sums_pkey PRIMARY KEY (org_id, starts_on, account_code, currency, year_end);

-- Name: closed_tax_differences closed_tax_differences_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.closed_tax_differences
    ADD CONSTRAINT closed_tax_differences_pkey PRIMARY KEY (org_id, starts_on, document_id, currency);

-- Name: closings closings_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.closings
    ADD CONSTRAINT closings_pkey PRIMARY KEY (org_id, number);

-- Name: confirmations confirmations_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.confirmations
    ADD CONSTRAINT confirmations_pkey PRIMARY KEY (impact_id, document_version, rule_set_version);

-- Name: console_sessions console_sessions_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.console_sessions
    ADD CONSTRAINT console_sessions_pkey PRIMARY KEY (hash);

-- Name: defaults defaults_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.defaults
    ADD CONSTRAINT defaults_pkey PRIMARY KEY (one);

-- Name: depths depths_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.depths
    ADD CONSTRAINT depths_pkey PRIMARY KEY (seconds, at, kind);

-- Name: documents documents_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.documents
    ADD CONSTRAINT documents_pkey PRIMARY KEY (org_id, id);

-- Name: entries entries_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (impact_id, line_no);

-- Name: erasures erasures_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.erasures
    ADD CONSTRAINT erasures_pkey PRIMARY KEY (id);

-- Name: fleets fleets_name_key; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.fleets
    ADD CONSTRAINT fleets_name_key UNIQUE (name);

-- Name: fleets fleets_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.fleets
    ADD CONSTRAINT fleets_pkey PRIMARY KEY (id);

-- Name: gauges gauges_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.gauges
    ADD CONSTRAINT gauges_pkey PRIMARY KEY (kind);

-- Name: history history_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.history
    ADD CONSTRAINT history_pkey PRIMARY KEY (seconds, at, kind, type, outcome, code, org_id);

-- Name: impacts impacts_org_id_document_id_seq_key; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.impacts
    ADD CONSTRAINT impacts_org_id_document_id_seq_key UNIQUE (org_id, document_id, seq);

-- Name: impacts impacts_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.impacts
    ADD CONSTRAINT impacts_pkey PRIMARY KEY (id);

-- Name: import_documents import_documents_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.import_documents
    ADD CONSTRAINT import_documents_pkey PRIMARY KEY (import_id, document_id);

-- Name: imports imports_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.imports
    ADD CONSTRAINT imports_pkey PRIMARY KEY (id);

-- Name: job_callbacks job_callbacks_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.job_callbacks
    ADD CONSTRAINT job_callbacks_pkey PRIMARY KEY (token_hash);

-- Name: job_deliveries job_deliveries_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.job_deliveries
    ADD CONSTRAINT job_deliveries_pkey PRIMARY KEY (job_id, channel);

-- Name: job_limit_rates job_limit_rates_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.job_limit_rates
    ADD CONSTRAINT job_limit_rates_pkey PRIMARY KEY (scope, org_id, limit_key);

-- Name: job_limits job_limits_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.job_limits
    ADD CONSTRAINT job_limits_pkey PRIMARY KEY (scope);

-- Name: job_links job_links_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.job_links
    ADD CONSTRAINT job_links_pkey PRIMARY KEY (kind, id, job_id);

-- Name: job_sequences job_sequences_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.job_sequences
    ADD CONSTRAINT job_sequences_pkey PRIMARY KEY (org_id, key);

-- Name: job_steps job_steps_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.job_steps
    ADD CONSTRAINT job_steps_pkey PRIMARY KEY (job_id, name);

-- Name: job_types job_types_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.job_types
    ADD CONSTRAINT job_types_pkey PRIMARY KEY (kind, type);

-- Name: job_wait_checks job_wait_checks_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.job_wait_checks
    ADD CONSTRAINT job_wait_checks_pkey PRIMARY KEY (id);

-- Name: job_waits job_waits_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.job_waits
    ADD CONSTRAINT job_waits_pkey PRIMARY KEY (job_id, awaits);

-- Name: job_workers job_workers_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.job_workers
    ADD CONSTRAINT job_workers_pkey PRIMARY KEY (id);

-- Name: job_workflows job_workflows_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.job_workflows
    ADD CONSTRAINT job_workflows_pkey PRIMARY KEY (job_id);

-- Name: jobs jobs_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);

-- Name: organization_rates organization_rates_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.organization_rates
    ADD CONSTRAINT organization_rates_pkey PRIMARY KEY (org_id);

-- Name: organizations organizations_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.organizations
    ADD CONSTRAINT organizations_pkey PRIMARY KEY (id);

-- Name: periods periods_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.periods
    ADD CONSTRAINT periods_pkey PRIMARY KEY (org_id, starts_on);

-- Name: posted_elsewhere posted_elsewhere_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.posted_elsewhere
    ADD CONSTRAINT posted_elsewhere_pkey PRIMARY KEY (org_id, document_id);

-- Name: queue_rates queue_rates_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.queue_rates
    ADD CONSTRAINT queue_rates_pkey PRIMARY KEY (queue);

-- Name: queues queues_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (name);

-- Name: rates rates_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.rates
    ADD CONSTRAINT rates_pkey PRIMARY KEY (org_id, currency, valid_on);

-- Name: reconciled reconciled_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.reconciled
    ADD CONSTRAINT reconciled_pkey PRIMARY KEY (org_id, document_id);

-- Name: replaced_taxes replaced_taxes_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.replaced_taxes
    ADD CONSTRAINT replaced_taxes_pkey PRIMARY KEY (impact_id);

-- Name: rule_sets rule_sets_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.rule_sets
    ADD CONSTRAINT rule_sets_pkey PRIMARY KEY (org_id, version);

-- Name: schema_migrations schema_migrations_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (id);

-- Name: schema_texts schema_texts_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.schema_texts
    ADD CONSTRAINT schema_texts_pkey PRIMARY KEY (version);

-- Name: accounting_work_queue sound; Type: CHECK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE daybook.accounting_work_queue
    ADD CONSTRAINT sound CHECK (((completed_fence IS NOT NULL) OR daybook.is_sound_accounting_job(accounting_work_queue.*)));

-- Name: jobs sound; Type: CHECK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE daybook.jobs
    ADD CONSTRAINT sound CHECK (((completed_fence IS NOT NULL) OR daybook.is_sound_job(jobs.*)));

-- Name: webhook_deliveries webhook_deliveries_pkey; Type: CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (job_id, attempt);

-- Name: error error_pkey; Type: CONSTRAINT; Schema: queues; Owner: -

ALTER TABLE ONLY queues.error
    ADD CONSTRAINT error_pkey PRIMARY KEY (error_id);

-- Name: open_task open_task_pkey; Type: CONSTRAINT; Schema: queues; Owner: -

ALTER TABLE ONLY queues.open_task
    ADD CONSTRAINT open_task_pkey PRIMARY KEY (task_id);

-- Name: task_completed task_completed_pkey; Type: CONSTRAINT; Schema: queues; Owner: -

ALTER TABLE ONLY queues.task_completed
    ADD CONSTRAINT task_completed_pkey PRIMARY KEY (task_id);

-- Name: task_cursor task_cursor_pkey; Type: CONSTRAINT; Schema: queues; Owner: -

ALTER TABLE ONLY queues.task_cursor
    ADD CONSTRAINT task_cursor_pkey PRIMARY KEY (scope, cursor_no);

-- Name: task_lease task_lease_pkey; Type: CONSTRAINT; Schema: queues; Owner: -

ALTER TABLE ONLY queues.task_lease
    ADD CONSTRAINT task_lease_pkey PRIMARY KEY (task_lease_id);

-- Name: task_limit task_limit_pkey; Type: CONSTRAINT; Schema: queues; Owner: -

ALTER TABLE ONLY queues.task_limit
    ADD CONSTRAINT task_limit_pkey PRIMARY KEY (task_type);

-- Name: task task_pkey; Type: CONSTRAINT; Schema: queues; Owner: -

ALTER TABLE ONLY queues.task
    ADD CONSTRAINT task_pkey PRIMARY KEY (task_id);

-- Name: accounting_work_queue_capped; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX accounting_work_queue_capped ON daybook.accounting_work_queue USING btree (org_id) WHERE (capped AND (turn_id IS NOT NULL));

-- Name: accounting_work_queue_completed; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX accounting_work_queue_completed ON daybook.accounting_work_queue USING brin (finished_at) WITH (pages_per_range='32') WHERE (state = 'completed'::daybook.job_state);

-- Name: accounting_work_queue_due; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX accounting_work_queue_due ON daybook.accounting_work_queue USING btree (priority, org_id, ready_at, id) WHERE (state = 'pending'::daybook.job_state);

-- Name: accounting_work_queue_failed; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX accounting_work_queue_failed ON daybook.accounting_work_queue USING btree (updated_at DESC) WHERE (state = 'failed'::daybook.job_state);

-- Name: accounting_work_queue_failed_cause; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX accounting_work_queue_failed_cause ON daybook.accounting_work_queue USING btree (last_error_code, updated_at DESC, id) WHERE (state = 'failed'::daybook.job_state);

-- Name: accounting_work_queue_failed_code; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX accounting_work_queue_failed_code ON daybook.accounting_work_queue USING btree (org_id, last_error_code, updated_at DESC, id) WHERE (state = 'failed'::daybook.job_state);

-- Name: accounting_work_queue_ready; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX accounting_work_queue_ready ON daybook.accounting_work_queue USING btree (ready_at) WHERE (num_nulls(NULLIF(state, 'pending'::daybook.job_state)) = 1);

-- Name: accounting_work_queue_stale; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX accounting_work_queue_stale ON daybook.accounting_work_queue USING btree (last_attempted_at) WHERE (state = 'leased'::daybook.job_state);

-- Name: accounting_work_queue_turn; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX accounting_work_queue_turn ON daybook.accounting_work_queue USING btree (turn_id, last_attempted_at) WHERE (num_nulls(NULLIF(state, 'leased'::daybook.job_state)) = 1);

-- Name: actions_action; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX actions_action ON daybook.actions USING btree (action, id DESC);

-- Name: actions_org_id; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX actions_org_id ON daybook.actions USING btree (org_id, id DESC);

-- Name: actions_subject; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX actions_subject ON daybook.actions USING btree (subject, id DESC);

-- Name: adopted_rows_job_id; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX adopted_rows_job_id ON daybook.adopted_rows USING btree (job_id);

-- Name: archives_archived_at; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX archives_archived_at ON daybook.archives USING btree (archived_at, key);

-- Name: archives_org_ids; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX archives_org_ids ON daybook.archives USING gin (org_ids);

-- Name: bulk_operations_open; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX bulk_operations_open ON daybook.bulk_operations USING btree (updated_at) WHERE (finished_at IS NULL);

-- Name: closed_dimension_sums_span; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX closed_dimension_sums_span ON daybook.closed_dimension_sums USING btree (org_id, starts_on);

-- Name: closed_items_document; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX closed_items_document ON daybook.closed_items USING btree (org_id, document_id);

-- Name: closed_tax_sums_span; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX closed_tax_sums_span ON daybook.closed_tax_sums USING btree (org_id, starts_on);

-- Name: closed_taxes_impact; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX closed_taxes_impact ON daybook.closed_taxes USING btree (impact_id);

-- Name: console_sessions_expires_at; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX console_sessions_expires_at ON daybook.console_sessions USING btree (expires_at);

-- Name: console_sessions_token_id; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX console_sessions_token_id ON daybook.console_sessions USING btree (token_id);

-- Name: entries_account; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX entries_account ON daybook.entries USING btree (org_id, account_code, currency);

-- Name: erasures_org_id; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX erasures_org_id ON daybook.erasures USING btree (org_id, started_at DESC);

-- Name: impacts_date; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX impacts_date ON daybook.impacts USING btree (org_id, posting_date, id);

-- Name: impacts_once; Type: INDEX; Schema: daybook; Owner: -

CREATE UNIQUE INDEX impacts_once ON daybook.impacts USING btree (org_id, document_id, document_version, rule_set_version, epoch) WHERE ((kind = 'post'::daybook.impact_kind) AND (seq > 1));

-- Name: impacts_reversals; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX impacts_reversals ON daybook.impacts USING btree (org_id, posting_date) INCLUDE (document_id, seq, id) WHERE (kind = 'reverse'::daybook.impact_kind);

-- Name: impacts_without_entries; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX impacts_without_entries ON daybook.impacts USING btree (no_entries, org_id, id) WHERE ((kind = 'post'::daybook.impact_kind) AND (entry_count = 0));

-- Name: import_documents_former; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX import_documents_former ON daybook.import_documents USING btree (document_id) WHERE (former IS NOT NULL);

-- Name: imports_org_id; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX imports_org_id ON daybook.imports USING btree (org_id, id DESC);

-- Name: job_callbacks_job; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX job_callbacks_job ON daybook.job_callbacks USING btree (job_id, name);

-- Name: job_limit_rates_look; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX job_limit_rates_look ON daybook.job_limit_rates USING btree (look_at);

-- Name: job_links_job; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX job_links_job ON daybook.job_links USING btree (job_id);

-- Name: job_waits_awaits; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX job_waits_awaits ON daybook.job_waits USING btree (awaits, job_id) WHERE (ended_as IS NULL);

-- Name: jobs_capped; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX jobs_capped ON daybook.jobs USING btree (org_id) WHERE (capped AND (turn_id IS NOT NULL));

-- Name: jobs_counted; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX jobs_counted ON daybook.jobs USING btree (type) WHERE (counted AND (turn_id IS NOT NULL));

-- Name: jobs_due; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX jobs_due ON daybook.jobs USING btree (fleet, priority, org_id, daybook.job_slot(type, queue, min_version), ready_at, id) WHERE (state = 'pending'::daybook.job_state);

-- Name: jobs_failed; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX jobs_failed ON daybook.jobs USING btree (finished_at DESC, id) WHERE (state = 'failed'::daybook.job_state);

-- Name: jobs_failed_code; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX jobs_failed_code ON daybook.jobs USING btree (last_error_code, type, finished_at DESC, id) WHERE (state = 'failed'::daybook.job_state);

-- Name: jobs_failed_org; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX jobs_failed_org ON daybook.jobs USING btree (org_id, finished_at DESC, id) WHERE (state = 'failed'::daybook.job_state);

-- Name: jobs_finished; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX jobs_finished ON daybook.jobs USING btree (finished_at) WHERE (state = ANY (ARRAY['completed'::daybook.job_state, 'cancelled'::daybook.job_state]));

-- Name: jobs_key; Type: INDEX; Schema: daybook; Owner: -

CREATE UNIQUE INDEX jobs_key ON daybook.jobs USING btree (idempotency_key, org_id) WHERE (idempotency_key IS NOT NULL);

-- Name: jobs_limited; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX jobs_limited ON daybook.jobs USING btree (limit_scope, org_id, limit_key, fleet, priority, ready_at, id) WHERE ((limit_key IS NOT NULL) AND (finished_at IS NULL));

-- Name: jobs_queue; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX jobs_queue ON daybook.jobs USING btree (queue, state, fleet) WHERE (queue IS NOT NULL);

-- Name: jobs_ready; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX jobs_ready ON daybook.jobs USING btree (fleet, ready_at) WHERE (num_nulls(NULLIF(state, 'pending'::daybook.job_state)) = 1);

-- Name: jobs_sequence; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX jobs_sequence ON daybook.jobs USING btree (org_id, sequence, id) WHERE ((sequence IS NOT NULL) AND (state = ANY (ARRAY['pending'::daybook.job_state, 'leased'::daybook.job_state, 'failed'::daybook.job_state])));

-- Name: jobs_stale; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX jobs_stale ON daybook.jobs USING btree (last_attempted_at) WHERE (state = 'leased'::daybook.job_state);

-- Name: jobs_turn; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX jobs_turn ON daybook.jobs USING btree (turn_id, last_attempted_at) WHERE (num_nulls(NULLIF(state, 'leased'::daybook.job_state)) = 1);

-- Name: jobs_unique; Type: INDEX; Schema: daybook; Owner: -

CREATE UNIQUE INDEX jobs_unique ON daybook.jobs USING btree (org_id, unique_hash) WHERE ((unique_hash IS NOT NULL) AND (state = ANY (ARRAY['pending'::daybook.job_state, 'leased'::daybook.job_state])));

-- Name: organizations_capped; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX organizations_capped ON daybook.organizations USING btree (id) WHERE (max_in_flight IS NOT NULL);

-- Name: organizations_own; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX organizations_own ON daybook.organizations USING btree (id) WHERE ((source IS NOT NULL) OR (hooks IS NOT NULL));

-- Name: organizations_paused; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX organizations_paused ON daybook.organizations USING btree (id) WHERE (paused_at IS NOT NULL);

-- Name: posted_elsewhere_open_item; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX posted_elsewhere_open_item ON daybook.posted_elsewhere USING btree (org_id, open_item) WHERE (open_item IS NOT NULL);

-- Name: reconciled_group; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX reconciled_group ON daybook.reconciled USING btree (org_id, group_id);

-- Name: webhook_deliveries_org_id; Type: INDEX; Schema: daybook; Owner: -

CREATE INDEX webhook_deliveries_org_id ON daybook.webhook_deliveries USING btree (org_id);

-- Name: error_task; Type: INDEX; Schema: queues; Owner: -

CREATE INDEX error_task ON queues.error USING btree (task_id, error_id);

-- Name: open_task_counted; Type: INDEX; Schema: queues; Owner: -

CREATE INDEX open_task_counted ON queues.open_task USING btree (task_type, leased_until) WHERE counted;

-- Name: open_task_leased; Type: INDEX; Schema: queues; Owner: -

CREATE INDEX open_task_leased ON queues.open_task USING btree (leased_until) WHERE (leased_until IS NOT NULL);

-- Name: open_task_leased_arrived; Type: INDEX; Schema: queues; Owner: -

CREATE INDEX open_task_leased_arrived ON queues.open_task USING btree (arrived) WHERE (task_lease_id IS NOT NULL);

-- Name: open_task_ready; Type: INDEX; Schema: queues; Owner: -

CREATE INDEX open_task_ready ON queues.open_task USING btree (scheduled_at, task_id) WHERE (leased_until IS NULL);

-- Name: open_task_ready_arrived; Type: INDEX; Schema: queues; Owner: -

CREATE INDEX open_task_ready_arrived ON queues.open_task USING btree (arrived) WHERE (task_lease_id IS NULL);

-- Name: open_task_ready_type; Type: INDEX; Schema: queues; Owner: -

CREATE INDEX open_task_ready_type ON queues.open_task USING btree (task_type, scheduled_at, task_id) WHERE (num_nulls(leased_until) = 1);

-- Name: open_task_turn; Type: INDEX; Schema: queues; Owner: -

CREATE INDEX open_task_turn ON queues.open_task USING btree (turn_id) WHERE (turn_id IS NOT NULL);

-- Name: task_completed_at; Type: INDEX; Schema: queues; Owner: -

CREATE INDEX task_completed_at ON queues.task_completed USING btree (completed_at, task_id);

-- Name: task_lease_task; Type: INDEX; Schema: queues; Owner: -

CREATE INDEX task_lease_task ON queues.task_lease USING btree (task_id);

-- Name: accounts accounts_changed; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER accounts_changed AFTER INSERT OR DELETE OR UPDATE ON daybook.accounts FOR EACH ROW EXECUTE FUNCTION daybook.configuration_changed();

-- Name: actions actions_append_only; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER actions_append_only BEFORE DELETE OR TRUNCATE ON daybook.actions FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_change();

-- Name: actions actions_stay; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER actions_stay BEFORE UPDATE ON daybook.actions FOR EACH ROW EXECUTE FUNCTION daybook.refuse_change_of_action();

-- Name: api_tokens api_tokens_stay_revoked; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER api_tokens_stay_revoked BEFORE UPDATE ON daybook.api_tokens FOR EACH ROW WHEN (((old.revoked_at IS NOT NULL) AND (new.revoked_at IS DISTINCT FROM old.revoked_at))) EXECUTE FUNCTION daybook.keep_revoked();

-- Name: jobs awaited_changed; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER awaited_changed AFTER UPDATE ON daybook.jobs FOR EACH ROW WHEN (new.awaited) EXECUTE FUNCTION daybook.awaited_job_changed();

-- Name: jobs awaited_goes; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER awaited_goes AFTER DELETE ON daybook.jobs FOR EACH ROW WHEN ((old.awaited AND (old.state <> ALL (ARRAY['completed'::daybook.job_state, 'cancelled'::daybook.job_state])))) EXECUTE FUNCTION daybook.awaited_job_removed();

-- Name: closings closings_append_only; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER closings_append_only BEFORE DELETE OR TRUNCATE ON daybook.closings FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_change();

-- Name: closings closings_signed_once; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER closings_signed_once BEFORE UPDATE ON daybook.closings FOR EACH ROW EXECUTE FUNCTION daybook.check_closing_change();

-- Name: jobs completed_changed; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER completed_changed AFTER UPDATE ON daybook.jobs FOR EACH ROW WHEN ((old.completed_fence IS NOT NULL)) EXECUTE FUNCTION daybook.check_completed_job();

-- Name: jobs completed_inserted; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER completed_inserted AFTER INSERT ON daybook.jobs FOR EACH ROW WHEN ((new.completed_fence IS NOT NULL)) EXECUTE FUNCTION daybook.check_completed_job();

-- Name: confirmations confirmations_append_only; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER confirmations_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON daybook.confirmations FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_change();

-- Name: defaults defaults_stay; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER defaults_stay BEFORE DELETE OR TRUNCATE ON daybook.defaults FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_removal();

-- Name: documents documents_continue_versions; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER documents_continue_versions BEFORE INSERT ON daybook.documents FOR EACH ROW EXECUTE FUNCTION daybook.continue_versions();

-- Name: entries entries_append_only; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER entries_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON daybook.entries FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_change();

-- Name: entries entries_check; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER entries_check AFTER INSERT ON daybook.entries REFERENCING NEW TABLE AS new_entries FOR EACH STATEMENT EXECUTE FUNCTION daybook.check_entries();

-- Name: erasures erasures_keep; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER erasures_keep BEFORE UPDATE ON daybook.erasures FOR EACH ROW EXECUTE FUNCTION daybook.keep_erasure();

-- Name: erasures erasures_stay; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER erasures_stay BEFORE DELETE OR TRUNCATE ON daybook.erasures FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_removal();

-- Name: fleets fleets_stay; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER fleets_stay BEFORE DELETE OR TRUNCATE ON daybook.fleets FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_removal();

-- Name: impacts impacts_append_only; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER impacts_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON daybook.impacts FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_change();

-- Name: impacts impacts_check; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER impacts_check AFTER INSERT ON daybook.impacts REFERENCING NEW TABLE AS new_impacts FOR EACH STATEMENT EXECUTE FUNCTION daybook.check_impacts();

-- Name: accounting_work_queue kept_attempt_inserted; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER kept_attempt_inserted AFTER INSERT ON daybook.accounting_work_queue FOR EACH ROW WHEN ((new.completed_fence IS NOT NULL)) EXECUTE FUNCTION daybook.check_completed_accounting_job();

-- Name: accounting_work_queue kept_attempt_leaves; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER kept_attempt_leaves BEFORE UPDATE ON daybook.accounting_work_queue FOR EACH ROW WHEN ((old.completed_fence IS NOT NULL)) EXECUTE FUNCTION daybook.log_kept_attempt();

-- Name: accounting_work_queue kept_attempt_stays; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER kept_attempt_stays AFTER DELETE ON daybook.accounting_work_queue FOR EACH ROW WHEN ((old.completed_fence IS NOT NULL)) EXECUTE FUNCTION daybook.log_kept_attempt();

-- Name: documents open_item_deleted; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER open_item_deleted AFTER UPDATE OF deleted_at ON daybook.documents FOR EACH ROW WHEN (((old.deleted_at IS NULL) AND (new.deleted_at IS NOT NULL) AND (old.id ~~ 'opening:%'::text))) EXECUTE FUNCTION daybook.open_item_ends();

-- Name: documents open_item_removed; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER open_item_removed AFTER DELETE ON daybook.documents FOR EACH ROW WHEN ((old.id ~~ 'opening:%'::text)) EXECUTE FUNCTION daybook.open_item_ends();

-- Name: periods periods_changed; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER periods_changed AFTER INSERT OR DELETE OR UPDATE ON daybook.periods FOR EACH ROW EXECUTE FUNCTION daybook.configuration_changed();

-- Name: periods periods_check; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER periods_check BEFORE INSERT OR DELETE OR UPDATE ON daybook.periods FOR EACH ROW EXECUTE FUNCTION daybook.check_periods();

-- Name: periods periods_forget_sums; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER periods_forget_sums AFTER INSERT OR DELETE OR UPDATE ON daybook.periods FOR EACH ROW EXECUTE FUNCTION daybook.forget_sums_of_periods();

-- Name: periods periods_keep_sums; Type: TRIGGER; Schema: daybook; Owner: -

CREATE CONSTRAINT TRIGGER periods_keep_sums AFTER INSERT OR DELETE OR UPDATE ON daybook.periods DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION daybook.keep_sums_of_periods();

-- Name: periods periods_noted; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER periods_noted AFTER INSERT OR DELETE OR UPDATE ON daybook.periods FOR EACH ROW EXECUTE FUNCTION daybook.periods_noted();

-- Name: reconciled reconciled_changed; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER reconciled_changed AFTER UPDATE ON daybook.reconciled REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION daybook.keep_items_of_parted_groups();

-- Name: reconciled reconciled_deleted; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER reconciled_deleted AFTER DELETE ON daybook.reconciled REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION daybook.keep_items_of_parted_groups();

-- Name: documents taxes_removed; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER taxes_removed AFTER DELETE ON daybook.documents FOR EACH ROW EXECUTE FUNCTION daybook.keep_replaced_taxes();

-- Name: documents taxes_replaced; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER taxes_replaced AFTER UPDATE OF type, direction, currency, content ON daybook.documents FOR EACH ROW WHEN (((old.type IS DISTINCT FROM new.type) OR (old.direction IS DISTINCT FROM new.direction) OR (old.currency IS DISTINCT FROM new.currency) OR ((old.content -> 'taxes'::text) IS DISTINCT FROM (new.content -> 'taxes'::text)) OR ((old.content -> 'country'::text) IS DISTINCT FROM (new.content -> 'country'::text)))) EXECUTE FUNCTION daybook.keep_replaced_taxes();

-- Name: jobs waiting_goes; Type: TRIGGER; Schema: daybook; Owner: -

CREATE TRIGGER waiting_goes AFTER DELETE ON daybook.jobs REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION daybook.forget_waits();

-- Name: error error_append_only; Type: TRIGGER; Schema: queues; Owner: -

CREATE TRIGGER error_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON queues.error FOR EACH STATEMENT EXECUTE FUNCTION queues.refuse_change();

-- Name: task task_append_only; Type: TRIGGER; Schema: queues; Owner: -

CREATE TRIGGER task_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON queues.task FOR EACH STATEMENT EXECUTE FUNCTION queues.refuse_change();

-- Name: task_completed task_completed_append_only; Type: TRIGGER; Schema: queues; Owner: -

CREATE TRIGGER task_completed_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON queues.task_completed FOR EACH STATEMENT EXECUTE FUNCTION queues.refuse_change();

-- Name: task_lease task_lease_append_only; Type: TRIGGER; Schema: queues; Owner: -

CREATE TRIGGER task_lease_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON queues.task_lease FOR EACH STATEMENT EXECUTE FUNCTION queues.refuse_change();

-- Name: accounts accounts_org_id_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.accounts
    ADD CONSTRAINT accounts_org_id_fkey FOREIGN KEY (org_id) REFERENCES daybook.organizations(id);

-- Name: bulk_batches bulk_batches_operation_id_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.bulk_batches
    ADD CONSTRAINT bulk_batches_operation_id_fkey FOREIGN KEY (operation_id) REFERENCES daybook.bulk_operations(id) ON DELETE CASCADE;

-- Name: closed_dimension_sums closed_dimension_sums_org_id_starts_on_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.closed_dimension_sums
    ADD CONSTRAINT closed_dimension_sums_org_id_starts_on_fkey FOREIGN KEY (org_id, starts_on) REFERENCES daybook.closed_sum_spans(org_id, starts_on) ON DELETE CASCADE;

-- Name: closed_items closed_items_org_id_last_day_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.closed_items
    ADD CONSTRAINT closed_items_org_id_last_day_fkey FOREIGN KEY (org_id, last_day) REFERENCES daybook.closed_item_days(org_id, last_day) ON DELETE CASCADE;

-- Name: closed_sums closed_sums_org_id_starts_on_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.closed_sums
    ADD CONSTRAINT closed_sums_org_id_starts_on_fkey FOREIGN KEY (org_id, starts_on) REFERENCES daybook.closed_sum_spans(org_id, starts_on) ON DELETE CASCADE;

-- Name: closed_tax_differences closed_tax_differences_org_id_starts_on_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.closed_tax_differences
    ADD CONSTRAINT closed_tax_differences_org_id_starts_on_fkey FOREIGN KEY (org_id, starts_on) REFERENCES daybook.closed_sum_spans(org_id, starts_on) ON DELETE CASCADE;

-- Name: closed_tax_sums closed_tax_sums_org_id_starts_on_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.closed_tax_sums
    ADD CONSTRAINT closed_tax_sums_org_id_starts_on_fkey FOREIGN KEY (org_id, starts_on) REFERENCES daybook.closed_sum_spans(org_id, starts_on) ON DELETE CASCADE;

-- Name: confirmations confirmations_impact_id_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.confirmations
    ADD CONSTRAINT confirmations_impact_id_fkey FOREIGN KEY (impact_id) REFERENCES daybook.impacts(id);

-- Name: console_sessions console_sessions_token_id_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.console_sessions
    ADD CONSTRAINT console_sessions_token_id_fkey FOREIGN KEY (token_id) REFERENCES daybook.api_tokens(id) ON DELETE CASCADE;

-- Name: job_limits job_limits_queue_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.job_limits
    ADD CONSTRAINT job_limits_queue_fkey FOREIGN KEY (queue) REFERENCES daybook.queues(name) ON DELETE CASCADE;

-- Name: job_links job_links_job_id_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.job_links
    ADD CONSTRAINT job_links_job_id_fkey FOREIGN KEY (job_id) REFERENCES daybook.jobs(id) ON DELETE CASCADE;

-- Name: organization_rates organization_rates_org_id_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.organization_rates
    ADD CONSTRAINT organization_rates_org_id_fkey FOREIGN KEY (org_id) REFERENCES daybook.organizations(id) ON DELETE CASCADE;

-- Name: organizations organizations_id_active_rule_set_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.organizations
    ADD CONSTRAINT organizations_id_active_rule_set_fkey FOREIGN KEY (id, active_rule_set) REFERENCES daybook.rule_sets(org_id, version);

-- Name: periods periods_org_id_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.periods
    ADD CONSTRAINT periods_org_id_fkey FOREIGN KEY (org_id) REFERENCES daybook.organizations(id);

-- Name: queue_rates queue_rates_queue_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.queue_rates
    ADD CONSTRAINT queue_rates_queue_fkey FOREIGN KEY (queue) REFERENCES daybook.queues(name) ON DELETE CASCADE;

-- Name: queues queues_fleet_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.queues
    ADD CONSTRAINT queues_fleet_fkey FOREIGN KEY (fleet) REFERENCES daybook.fleets(id);

-- Name: rates rates_org_id_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.rates
    ADD CONSTRAINT rates_org_id_fkey FOREIGN KEY (org_id) REFERENCES daybook.organizations(id);

-- Name: rule_sets rule_sets_org_id_fkey; Type: FK CONSTRAINT; Schema: daybook; Owner: -

ALTER TABLE ONLY daybook.rule_sets
    ADD CONSTRAINT rule_sets_org_id_fkey FOREIGN KEY (org_id) REFERENCES daybook.organizations(id);
