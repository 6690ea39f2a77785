-- Chapter 30: limits by key. Of the jobs of one scope, organization and key, so many run at a time,
-- or begin in a time, over all workers. A scope is a type, or queue/NAME: all types of a named queue.
-- A job has one limit: its queue's, if that gives it a key, or else its type's (limit_of). It is
-- decided when the job is enqueued.
--
-- A job with a limit_key that is open is in one of three places, which its fleet tells:
--   -1       it comes to its time: at ready_at a worker looks at it (pass_limits)
--   -2       its time has come, and it stands in its key's line
--   0 and on it has been admitted: picks see it, and it holds one of its key's places until its
--            attempt has ended
-- So picks know nothing of limits, a key that is full holds up no other job, and a key without open
-- jobs has no row anywhere. A job that is to be tried again goes to -1 and is admitted anew.
--
-- Places change hands in two ways, and neither lets more run than the limit allows:
--   one transaction at a time gives out free places (pass_limits, under an advisory lock that is
--   only tried for). It counts the places that are taken after it has the lock
--   what frees a place passes it on to the first of the line, in the same transaction: where that
--   is not seen yet, the place still counts as taken
-- A key whose line is not empty is found again. Either a job was admitted from now on, whose end
-- sees the line; or all that hold a place were locked when the line was read, and end later; or the
-- key is on record for a worker (job_wait_checks). No statement here waits for a lock, so limits
-- take part in no deadlock. Enqueuing does neither.
--
-- SQLSTATEs: DB010 the request is invalid, DB023 there is no such queue.

-- +goose Up
-- +goose StatementBegin

CREATE TABLE daybook.job_limits (
    scope        text COLLATE "C" PRIMARY KEY CHECK (scope ~ '^(queue/)?[A-Za-z][A-Za-z0-9_.:-]{0,63}$'),
    queue        text COLLATE "C" GENERATED ALWAYS AS (CASE WHEN starts_with(scope, 'queue/') THEN substr(scope, 7) END) STORED
                     REFERENCES daybook.queues (name) ON DELETE CASCADE,
    by           text NOT NULL DEFAULT '' CHECK (by IN ('', 'org_id') OR by ~ '^payload(\.[^.]+)+$' AND octet_length(by) <= 255),
    parallel     integer CHECK (parallel > 0),
    rate         integer CHECK (rate > 0),
    rate_seconds double precision CHECK (rate_seconds BETWEEN 0.001 AND 31536000),
    declared     boolean NOT NULL DEFAULT false,
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (num_nonnulls(parallel, rate) > 0 AND (rate IS NULL) = (rate_seconds IS NULL))
);
COMMENT ON TABLE daybook.job_limits IS 'Limits by key of types of background jobs, and of named queues';
COMMENT ON COLUMN daybook.job_limits.scope IS 'A type, or queue/ and the name of a queue';
COMMENT ON COLUMN daybook.job_limits.by IS
    'What the key of a job is that was enqueued without one: org_id, or a member of its payload such as payload.account_id; empty: such a job has no key, and no limit';
COMMENT ON COLUMN daybook.job_limits.parallel IS 'How many jobs of a key run at a time, over all workers; null: any number';
COMMENT ON COLUMN daybook.job_limits.rate IS 'How many attempts of a key begin in rate_seconds, over all workers; null: any number';
COMMENT ON COLUMN daybook.job_limits.declared IS
    'Programs set it: workers that of a type, as the policy of its handler says; otherwise a person, whose limit they leave alone';

-- What is left of a key's rate; a key that is at rest has no row.
CREATE TABLE daybook.job_limit_rates (
    scope     text COLLATE "C" NOT NULL,
    org_id    text COLLATE "C" NOT NULL,
    limit_key text COLLATE "C" NOT NULL,
    next_at   timestamptz NOT NULL,
    look_at   timestamptz NOT NULL,
    PRIMARY KEY (scope, org_id, limit_key)
) WITH (fillfactor = 70, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05);
COMMENT ON COLUMN daybook.job_limit_rates.next_at IS 'When the rate is whole again, if nothing more begins';
COMMENT ON COLUMN daybook.job_limit_rates.look_at IS 'When a worker looks at the key: to admit the next job, or to remove the row';
CREATE INDEX job_limit_rates_look ON daybook.job_limit_rates (look_at);

-- The open jobs of a key: those that were admitted, and its line in its order. A job that is not
-- finished is open.
CREATE INDEX jobs_limited ON daybook.jobs (limit_scope, org_id, limit_key, fleet, priority, ready_at, id) WHERE limit_key IS NOT NULL AND finished_at IS NULL;

-- The key that a limit gives a job which is enqueued without one; null: it has none. What is too long
-- is hashed.
CREATE FUNCTION daybook.limit_key(l daybook.job_limits, org_id text, payload jsonb) RETURNS text
    LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN octet_length(k.key) > 255 THEN encode(sha256(convert_to(k.key, 'UTF8')), 'hex') ELSE nullif(k.key, '') END
      FROM (SELECT CASE $1.by WHEN '' THEN NULL WHEN 'org_id' THEN $2 ELSE $3 #>> string_to_array(substr($1.by, 9), '.') END AS key) k
$$;

-- The scope and the key of a job's limit; null: it has none. limit_key is the one that it was
-- enqueued with. Called where one of both has a limit, or there is such a key.
CREATE FUNCTION daybook.limit_of(type text, queue text, org_id text, payload jsonb, limit_key text) RETURNS text[]
    LANGUAGE sql STABLE
AS $$
    SELECT ARRAY[x.scope, x.key]
      FROM (SELECT l.scope, coalesce($5, daybook.limit_key(l, $3, $4)) AS key, l.queue FROM daybook.job_limits l WHERE l.scope IN ($1, 'queue/' || $2)
             UNION ALL
            SELECT $1, $5, NULL) x
     WHERE x.key IS NOT NULL
     ORDER BY x.queue NULLS LAST
     LIMIT 1
$$;

-- Gives a job that is not worked another limit and key (null: none), whose line it joins.
CREATE FUNCTION daybook.change_limit(job_id text, limit_of text[]) RETURNS void
    LANGUAGE sql
AS $$
    UPDATE daybook.jobs j
       SET limit_scope = $2[1], limit_key = $2[2], awaited = j.awaited OR $2 IS NOT NULL,
           ready_at = CASE WHEN j.state = 'pending' AND $2 IS NOT NULL THEN greatest(j.ready_at, clock_timestamp()) ELSE j.ready_at END,
           fleet = CASE WHEN $2 IS NULL THEN coalesce((SELECT u.fleet FROM daybook.queues u WHERE u.name = j.queue), 0) ELSE -1 END
     WHERE j.id = $1 AND (j.limit_scope, j.limit_key) IS DISTINCT FROM ($2[1], $2[2])
$$;

-- The places of a key that are taken: its jobs that were admitted and have not ended.
CREATE FUNCTION daybook.limited_places(scope text, org_id text, key text) RETURNS SETOF daybook.jobs
    LANGUAGE sql STABLE
AS $$
    SELECT j.* FROM daybook.jobs j WHERE j.limit_scope = $1 AND j.org_id = $2 AND j.limit_key = $3 AND j.finished_at IS NULL AND j.fleet >= 0
$$;

-- Whether this transaction may give out free places. Another isolation level does not see what was
-- committed before the lock was taken.
CREATE FUNCTION daybook.may_admit() RETURNS boolean
    LANGUAGE sql VOLATILE
AS $$
    SELECT CASE WHEN current_setting('transaction_isolation') = 'read committed' THEN pg_try_advisory_xact_lock(daybook.lock_class('job limits'), 0) ELSE false END
$$;

-- Admits jobs of a key's line, as many as its limit allows. Returns false when that has to be tried
-- again: another transaction gives out places, or has locked a job of the key or what is left of its
-- rate, or there are more than are admitted at once.
--
-- A rate is a bucket that fills evenly. What it allows within the next 250 ms is admitted now, and
-- due at its time. What has been admitted and has not begun is bounded by that too: so a worker
-- that was slow to begin does not begin more at once later. What a bucket lacks is no more than both
-- make together: where it is, the rate was raised since, or the clock was set back.
CREATE FUNCTION daybook.admit_limited(scope text, org_id text, key text) RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
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

-- Locks the jobs that hold the places of a key, but for those that are locked: they may be about to
-- end.
CREATE FUNCTION daybook.lock_limited_places(scope text, org_id text, key text) RETURNS SETOF text
    LANGUAGE sql
AS $$
    SELECT j.id FROM daybook.jobs j WHERE j.limit_scope = $1 AND j.org_id = $2 AND j.limit_key = $3 AND j.finished_at IS NULL AND j.fleet >= 0
       FOR NO KEY UPDATE SKIP LOCKED
$$;

-- Puts on record when a key's rate is whole again, and when a worker is to look at it: for the next
-- job of its line (null: there is none, or it waits for the end of another), or to remove the row. The
-- caller has locked the row, if there is one.
CREATE FUNCTION daybook.note_limit_rate(scope text, org_id text, key text, next_at timestamptz, look_at timestamptz) RETURNS void
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

-- Admits jobs of up to batch keys of a scope, beyond one key, because its limit has changed; the
-- keys after those are put on record. Returns true.
CREATE FUNCTION daybook.admit_all_limited(scope text, org_id text, key text, batch integer) RETURNS boolean
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

-- Admits those of the jobs, whose rows the caller has locked and which come to their time, that a
-- free place of their key waits for, and has the others join its line. Returns the keys to admit
-- jobs of: those with a rate, and those whose place may have become free meanwhile.
--
-- The jobs of a key stay together, and are joined to nothing: without statistics of what it makes
-- itself, PostgreSQL compares each of 500 jobs with each of 500 keys, which took half of the time.
CREATE FUNCTION daybook.join_limits(ids text[]) RETURNS TABLE (scope text, org_id text, limit_key text)
    LANGUAGE sql
    SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
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

-- Has up to batch jobs whose time has come begin or join the lines of their keys, from a time on
-- (null: in the last minute), and admits what the limits allow, also where a rate allows the next
-- job since then. Returns what check_waits does.
CREATE FUNCTION daybook.pass_limits(batch integer, since timestamptz, OUT decided integer, OUT again integer, OUT left_from timestamptz)
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
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

-- Takes in a change of a job that has a key, or its removal (became is null): what is to be tried
-- again, or at another time, is admitted anew, and a place that became free goes to the first of the
-- line. A rate is left to pass_limits.
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

-- Gives a place that the transaction has freed to the first of the key's line. Returns false when
-- that is for pass_limits: the limit has changed, is a rate as well, or all of the line is locked.
CREATE FUNCTION daybook.pass_on_place(scope text, org_id text, key text) RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
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

-- Limits the jobs of a type, or of a named queue, by key: of the jobs of one organization and key,
-- parallel run at a time, and rate attempts begin in rate_seconds (null: 1). by: what the key of a
-- job is that is enqueued without a limit_key: org_id, a member of its payload such as
-- payload.account_id, or empty: such a job has none. Without parallel and rate the limit goes. It
-- holds for what is enqueued from now on, and the new numbers for what waits for it. declared: a
-- program sets it, and leaves a person's alone. Returns whether something changed. DB023 when there
-- is no such queue.
CREATE FUNCTION daybook.set_job_limit(type text DEFAULT NULL, by text DEFAULT '', parallel integer DEFAULT NULL, rate integer DEFAULT NULL,
    rate_seconds double precision DEFAULT NULL, declared boolean DEFAULT false, queue text DEFAULT NULL) RETURNS boolean
    LANGUAGE plpgsql
AS $$
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
$$;
COMMENT ON FUNCTION daybook.set_job_limit IS
    'Limits the jobs of a type, or of a named queue, by key: parallel run at a time, rate attempts begin in rate_seconds; without both the limit goes';

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.set_job_limit, daybook.pass_on_place, daybook.limited_job_changed, daybook.pass_limits, daybook.join_limits,
    daybook.admit_all_limited, daybook.note_limit_rate, daybook.lock_limited_places, daybook.admit_limited, daybook.may_admit,
    daybook.limited_places, daybook.change_limit, daybook.limit_of, daybook.limit_key;
DROP INDEX daybook.jobs_limited;
DROP TABLE daybook.job_limit_rates, daybook.job_limits;
