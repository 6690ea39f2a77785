-- Chapter 30: limits by key. Of the jobs of one type, organization and key, so many run at a time,
-- or begin in a time, over all workers.
--
-- A job with a limit_key that is open is in one of three places, which its fleet tells:
--   -1       it comes to its time: at ready_at a worker looks at it (pass_limits)
--   -2       its time has come, and it stands in its key's line
--   0 and on it has been admitted: picks see it, and it holds one of its key's places until its
--            attempt has ended
-- So picks know nothing of limits, a key that is full holds up no other job, and a key without open
-- jobs has no row anywhere. A job that is to be tried again goes to -1 and is admitted anew.
--
-- Jobs of a key are admitted under an advisory lock of the key, and counted after it was taken: so
-- there are never more than the limit allows. The lock is only tried for. Whatever frees a place,
-- or adds to a line, admits the next job in the same transaction, or puts that on record for a
-- worker (job_wait_checks). So limits, too, take part in no deadlock. Enqueuing does neither.
--
-- SQLSTATEs: DB010 the request is invalid.

-- +goose Up
-- +goose StatementBegin

CREATE TABLE daybook.job_limits (
    type         text COLLATE "C" PRIMARY KEY CHECK (type ~ '^[A-Za-z][A-Za-z0-9_.:-]{0,63}$'),
    by           text NOT NULL DEFAULT '' CHECK (by IN ('', 'org_id') OR by ~ '^payload(\.[^.]+)+$' AND octet_length(by) <= 255),
    parallel     integer CHECK (parallel > 0),
    rate         integer CHECK (rate > 0),
    rate_seconds double precision CHECK (rate_seconds BETWEEN 0.001 AND 31536000),
    declared     boolean NOT NULL DEFAULT false,
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (num_nonnulls(parallel, rate) > 0 AND (rate IS NULL) = (rate_seconds IS NULL))
);
COMMENT ON TABLE daybook.job_limits IS 'Limits by key of types of background jobs';
COMMENT ON COLUMN daybook.job_limits.by IS
    'What the key of a job is that was enqueued without one: org_id, or a member of its payload such as payload.account_id; empty: such a job has no key, and no limit';
COMMENT ON COLUMN daybook.job_limits.parallel IS 'How many jobs of a key run at a time, over all workers; null: any number';
COMMENT ON COLUMN daybook.job_limits.rate IS 'How many attempts of a key begin in rate_seconds, over all workers; null: any number';
COMMENT ON COLUMN daybook.job_limits.declared IS
    'Workers set it, as the policy of the type''s handler says; otherwise a person, whose limit they leave alone';

-- What is left of a key's rate; a key that is at rest has no row.
CREATE TABLE daybook.job_limit_rates (
    type      text COLLATE "C" NOT NULL,
    org_id    text COLLATE "C" NOT NULL,
    limit_key text COLLATE "C" NOT NULL,
    next_at   timestamptz NOT NULL,
    look_at   timestamptz NOT NULL,
    PRIMARY KEY (type, org_id, limit_key)
) WITH (fillfactor = 70, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05);
COMMENT ON COLUMN daybook.job_limit_rates.next_at IS 'When the rate is whole again, if nothing more begins';
COMMENT ON COLUMN daybook.job_limit_rates.look_at IS 'When a worker looks at the key: to admit the next job, or to remove the row';
CREATE INDEX job_limit_rates_look ON daybook.job_limit_rates (look_at);

-- The open jobs of a key: those that were admitted, and its line in its order. A job that is not
-- finished is open.
CREATE INDEX jobs_limited ON daybook.jobs (type, org_id, limit_key, fleet, priority, ready_at, id) WHERE limit_key IS NOT NULL AND finished_at IS NULL;

-- The key of a job that is enqueued without one, by its type's limit; null: it has none. What is too
-- long is hashed. One expression, so that the planner can inline it.
CREATE FUNCTION daybook.limit_key_of(type text, org_id text, payload jsonb) RETURNS text
    LANGUAGE sql STABLE
AS $$
    SELECT (SELECT CASE WHEN octet_length(k.key) > 255 THEN encode(sha256(convert_to(k.key, 'UTF8')), 'hex') ELSE nullif(k.key, '') END
              FROM daybook.job_limits l
             CROSS JOIN LATERAL (SELECT CASE l.by WHEN '' THEN NULL WHEN 'org_id' THEN $2 ELSE $3 #>> string_to_array(substr(l.by, 9), '.') END) AS k (key)
             WHERE l.type = $1)
$$;

-- Gives a job that is not worked another key (null: none), whose line it joins.
CREATE FUNCTION daybook.change_limit_key(job_id text, key text) RETURNS void
    LANGUAGE sql
AS $$
    UPDATE daybook.jobs j
       SET limit_key = $2, awaited = j.awaited OR $2 IS NOT NULL,
           fleet = CASE WHEN $2 IS NULL THEN coalesce((SELECT u.fleet FROM daybook.queues u WHERE u.name = j.queue), 0) ELSE -1 END
     WHERE j.id = $1 AND j.limit_key IS DISTINCT FROM $2
$$;

-- Admits jobs of a key's line, as many as its limit allows. Returns false when that has to be tried
-- again: another transaction decides about the key or has locked a job of it, or there are more
-- than are admitted at once.
--
-- A rate is a bucket that fills evenly. What it allows within the next 250 ms is admitted now, and
-- due at its time. What has been admitted and has not begun is bounded by that too: so a worker
-- that was slow to begin does not begin more at once later.
CREATE FUNCTION daybook.admit_limited(type text, org_id text, key text) RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    most  CONSTANT integer := 200;
    ahead CONSTANT double precision := 0.25;
    found daybook.job_limits;
    room  integer := most;
    held  integer;
    begun integer;
    -- Of a rate: seconds from one beginning to the next, how many may begin at once, when the bucket
    -- is full, and how many it allows.
    step  double precision;
    burst integer;
    base  timestamptz;
    allowed integer;
    due   timestamptz;
    n     integer;
    line  boolean;
    at    CONSTANT timestamptz := clock_timestamp();
BEGIN
    -- Another isolation level does not see what was committed before the lock was taken.
    IF current_setting('transaction_isolation') <> 'read committed'
       OR NOT pg_try_advisory_xact_lock(daybook.lock_class('job limits'), hashtext(admit_limited.type || '/' || admit_limited.org_id || '/' || admit_limited.key)) THEN
        RETURN false;
    END IF;
    SELECT l.* INTO found FROM daybook.job_limits l WHERE l.type = admit_limited.type;
    IF found.type IS NOT NULL THEN
        SELECT count(*), count(*) FILTER (WHERE j.turn_id IS NOT NULL) INTO held, begun
          FROM daybook.jobs j
         WHERE j.type = admit_limited.type AND j.org_id = admit_limited.org_id AND j.limit_key = admit_limited.key AND j.finished_at IS NULL AND j.fleet >= 0;
        room := least(room, found.parallel - held);
    END IF;
    IF found.rate IS NOT NULL THEN
        step := found.rate_seconds / found.rate;
        burst := greatest(1, least(most, floor(0.05 / step)));
        base := greatest(at, (SELECT r.next_at FROM daybook.job_limit_rates r
                               WHERE r.type = admit_limited.type AND r.org_id = admit_limited.org_id AND r.limit_key = admit_limited.key));
        allowed := greatest(0, least(most, floor((ahead - extract(epoch FROM base - at)) / step + burst)));
        room := least(room, allowed, greatest(burst, least(most, ceil(ahead / step))) - (held - begun));
    END IF;
    WITH next AS MATERIALIZED (
        SELECT x.id, row_number() OVER () AS nth
          FROM (SELECT j.id
                  FROM daybook.jobs j
                 WHERE j.type = admit_limited.type AND j.org_id = admit_limited.org_id AND j.limit_key = admit_limited.key AND j.finished_at IS NULL AND j.fleet = -2
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
        RETURNING j.ready_at
    )
    SELECT count(*), min(a.ready_at) INTO n, due FROM admitted a;
    IF n > 0 THEN
        PERFORM daybook.wake_job_queue();
    END IF;
    line := (found.rate IS NOT NULL OR room > 0)
            AND EXISTS (SELECT FROM daybook.jobs j
                         WHERE j.type = admit_limited.type AND j.org_id = admit_limited.org_id AND j.limit_key = admit_limited.key AND j.finished_at IS NULL AND j.fleet = -2);
    IF found.rate IS NOT NULL THEN
        PERFORM daybook.note_limit_rate(admit_limited.type, admit_limited.org_id, admit_limited.key, base + make_interval(secs => n * step),
                                        CASE WHEN line AND n >= allowed THEN base + make_interval(secs => (n + 1 - burst) * step - ahead) END);
    END IF;
    RETURN NOT (line AND n < room OR line AND room = most AND n = room);
END
$$;

-- Puts on record when a key's rate is whole again, and when a worker is to look at it: for the next
-- job of its line (null: there is none, or it waits for the end of another), or to remove the row.
CREATE FUNCTION daybook.note_limit_rate(type text, org_id text, key text, next_at timestamptz, look_at timestamptz) RETURNS void
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    IF note_limit_rate.look_at IS NULL AND note_limit_rate.next_at <= clock_timestamp() THEN
        DELETE FROM daybook.job_limit_rates r WHERE r.type = note_limit_rate.type AND r.org_id = note_limit_rate.org_id AND r.limit_key = note_limit_rate.key;
        RETURN;
    END IF;
    INSERT INTO daybook.job_limit_rates AS r (type, org_id, limit_key, next_at, look_at)
    VALUES (note_limit_rate.type, note_limit_rate.org_id, note_limit_rate.key, note_limit_rate.next_at,
            greatest(coalesce(note_limit_rate.look_at, note_limit_rate.next_at), clock_timestamp() + interval '10 ms'))
    ON CONFLICT (type, org_id, limit_key) DO UPDATE SET next_at = excluded.next_at, look_at = excluded.look_at
     WHERE (r.next_at, r.look_at) IS DISTINCT FROM (excluded.next_at, excluded.look_at);
END
$$;

-- Admits jobs of up to batch keys of a type, beyond one key, because its limit has changed; the
-- keys after those are put on record. Returns true.
CREATE FUNCTION daybook.admit_all_limited(type text, org_id text, key text, batch integer) RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    o text := admit_all_limited.org_id;
    k text := admit_all_limited.key;
BEGIN
    FOR i IN 1..batch LOOP
        SELECT j.org_id, j.limit_key INTO o, k
          FROM daybook.jobs j
         WHERE j.type = admit_all_limited.type AND (j.org_id, j.limit_key) > (o, k) AND j.limit_key IS NOT NULL AND j.finished_at IS NULL
         ORDER BY j.org_id, j.limit_key
         LIMIT 1;
        IF NOT FOUND THEN
            RETURN true;
        END IF;
        IF NOT daybook.admit_limited(admit_all_limited.type, o, k) THEN
            INSERT INTO daybook.job_wait_checks (limit_type, org_id, limit_key) VALUES (admit_all_limited.type, o, k);
        END IF;
    END LOOP;
    INSERT INTO daybook.job_wait_checks (limit_type, org_id, limit_key, limit_all) VALUES (admit_all_limited.type, o, k, true);
    RETURN true;
END
$$;

-- Has up to batch jobs join the lines of their keys whose time has come, from a time on (null: in
-- the last minute), and admits what the limits allow, also where a rate allows the next job. Returns what check_waits does.
CREATE FUNCTION daybook.pass_limits(batch integer, since timestamptz, OUT decided integer, OUT again integer, OUT left_from timestamptz)
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
DECLARE
    asked record;
    ids   text[];
BEGIN
    decided := 0;
    again := 0;
    SELECT array_agg(x.id), max(x.ready_at) INTO ids, left_from
      FROM (SELECT j.id, j.ready_at
              FROM daybook.jobs j
             WHERE j.fleet = -1 AND num_nulls(nullif(j.state, 'pending')) = 1 AND j.ready_at > coalesce(since, statement_timestamp() - interval '1 minute')
               AND j.ready_at <= clock_timestamp()
             ORDER BY j.ready_at
             LIMIT batch
               FOR NO KEY UPDATE SKIP LOCKED) x;
    IF coalesce(cardinality(ids), 0) < batch THEN
        left_from := NULL;
    END IF;
    FOR asked IN
        WITH joined AS (
            UPDATE daybook.jobs j SET fleet = -2 WHERE j.id = ANY (ids) AND j.fleet = -1 AND j.state::text = 'pending'
            RETURNING j.type, j.org_id, j.limit_key
        )
        SELECT o.type, o.org_id, o.limit_key, bool_or(o.joined) AS joined
          FROM (SELECT *, true AS joined FROM joined
                 UNION ALL
                (SELECT r.type, r.org_id, r.limit_key, false FROM daybook.job_limit_rates r WHERE r.look_at <= clock_timestamp() ORDER BY r.look_at LIMIT batch)) o
         GROUP BY o.type, o.org_id, o.limit_key
    LOOP
        IF NOT asked.joined THEN
            -- Its type may have no rate any more.
            DELETE FROM daybook.job_limit_rates r
             WHERE r.type = asked.type AND r.org_id = asked.org_id AND r.limit_key = asked.limit_key
               AND NOT EXISTS (SELECT FROM daybook.job_limits l WHERE l.type = asked.type AND l.rate IS NOT NULL);
        END IF;
        IF daybook.admit_limited(asked.type, asked.org_id, asked.limit_key) THEN
            decided := decided + 1;
            CONTINUE;
        END IF;
        again := again + 1;
        IF asked.joined THEN
            INSERT INTO daybook.job_wait_checks (limit_type, org_id, limit_key) VALUES (asked.type, asked.org_id, asked.limit_key);
        END IF;
    END LOOP;
END
$$;

-- Takes in a change of a job that has a key, or its removal (became is null).
CREATE FUNCTION daybook.limited_job_changed(was daybook.jobs, became daybook.jobs) RETURNS void
    LANGUAGE plpgsql
AS $$
DECLARE
    held CONSTANT boolean := was.fleet >= 0 AND was.finished_at IS NULL;
    holds boolean := coalesce(became.fleet >= 0 AND became.finished_at IS NULL AND became.limit_key = was.limit_key, false);
BEGIN
    -- What is to be tried again, or at another time, is admitted anew.
    IF became.limit_key IS NOT NULL AND became.state = 'pending' AND became.fleet <> -1 AND became.fleet = was.fleet AND (was.state <> 'pending' OR became.ready_at <> was.ready_at) THEN
        UPDATE daybook.jobs j SET fleet = -1 WHERE j.id = became.id;
        holds := false;
    END IF;
    IF held AND (NOT holds OR was.turn_id IS NULL AND became.turn_id IS NOT NULL AND EXISTS (SELECT FROM daybook.job_limits l WHERE l.type = was.type AND l.rate IS NOT NULL))
       AND NOT daybook.admit_limited(was.type, was.org_id, was.limit_key) THEN
        INSERT INTO daybook.job_wait_checks (limit_type, org_id, limit_key) VALUES (was.type, was.org_id, was.limit_key);
        PERFORM daybook.wake_job_queue();
    END IF;
END
$$;

-- Limits the jobs of a type by key: of the jobs of one organization and key, parallel run at a
-- time, and rate attempts begin in rate_seconds (null: 1). by: what the key of a job is that is
-- enqueued without a limit_key: org_id, a member of its payload such as payload.account_id, or
-- empty: such a job has no limit. Without parallel and rate the limit goes. It holds for what is
-- enqueued with or by a key from now on, and the new numbers for what waits. declared: a worker
-- sets it, and leaves a person's alone. Returns whether something changed.
CREATE FUNCTION daybook.set_job_limit(type text, by text DEFAULT '', parallel integer DEFAULT NULL, rate integer DEFAULT NULL,
    rate_seconds double precision DEFAULT NULL, declared boolean DEFAULT false) RETURNS boolean
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    per CONSTANT double precision := CASE WHEN set_job_limit.rate IS NOT NULL THEN coalesce(set_job_limit.rate_seconds, 1) END;
BEGIN
    IF (set_job_limit.type ~ '^[A-Za-z][A-Za-z0-9_.:-]{0,63}$') IS NOT TRUE THEN
        RAISE EXCEPTION 'type must be a letter and then letters, digits, "_", ".", ":" or "-", 64 bytes at most' USING ERRCODE = 'DB010';
    END IF;
    IF (set_job_limit.by IN ('', 'org_id') OR set_job_limit.by ~ '^payload(\.[^.]+)+$' AND octet_length(set_job_limit.by) <= 255) IS NOT TRUE THEN
        RAISE EXCEPTION 'a limit cannot be by %', coalesce(quote_literal(set_job_limit.by), 'null')
            USING ERRCODE = 'DB010', HINT = 'take org_id, a member of the payload such as payload.account_id, or an empty text for the limit_key of each request';
    END IF;
    IF set_job_limit.parallel < 1 OR set_job_limit.rate < 1 OR per NOT BETWEEN 0.001 AND 31536000 OR set_job_limit.rate IS NULL AND set_job_limit.rate_seconds IS NOT NULL THEN
        RAISE EXCEPTION 'parallel and rate must be at least 1, or null, and a rate is a number of jobs in 0.001 to 31536000 seconds' USING ERRCODE = 'DB010';
    END IF;
    IF num_nonnulls(set_job_limit.parallel, set_job_limit.rate) = 0 THEN
        DELETE FROM daybook.job_limits l WHERE l.type = set_job_limit.type AND (l.declared OR NOT set_job_limit.declared);
    ELSE
        INSERT INTO daybook.job_limits AS l (type, by, parallel, rate, rate_seconds, declared)
        VALUES (set_job_limit.type, set_job_limit.by, set_job_limit.parallel, set_job_limit.rate, per, set_job_limit.declared)
        ON CONFLICT (type) DO UPDATE
           SET by = excluded.by, parallel = excluded.parallel, rate = excluded.rate, rate_seconds = excluded.rate_seconds, declared = excluded.declared,
               updated_at = clock_timestamp()
         WHERE (l.declared OR NOT excluded.declared)
           AND (l.by, l.parallel, l.rate, l.rate_seconds, l.declared) IS DISTINCT FROM (excluded.by, excluded.parallel, excluded.rate, excluded.rate_seconds, excluded.declared);
    END IF;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO daybook.job_wait_checks (limit_type, org_id, limit_key, limit_all) VALUES (set_job_limit.type, '', '', true);
    PERFORM daybook.wake_job_queue();
    RETURN true;
END
$$;
COMMENT ON FUNCTION daybook.set_job_limit IS
    'Limits the jobs of a type by key: parallel run at a time, rate attempts begin in rate_seconds; without both the limit goes';

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.set_job_limit, daybook.limited_job_changed, daybook.pass_limits, daybook.admit_all_limited, daybook.note_limit_rate,
    daybook.admit_limited, daybook.change_limit_key, daybook.limit_key_of;
DROP INDEX daybook.jobs_limited;
DROP TABLE daybook.job_limit_rates, daybook.job_limits;
