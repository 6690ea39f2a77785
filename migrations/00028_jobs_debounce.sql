-- Chapter 28: debounced jobs. Requests with one key are gathered in one waiting job, whose payload
-- and time each of them changes.
--
-- A payload changes only until the first attempt: an attempt may have passed the job's id on as the
-- key of its call to another system, under which other input must not be sent. What is asked for
-- later is a job of its own, which begins when the earlier one has ended.
--
-- The order of locks: a request locks one key, which is its entry in the index jobs_unique and then
-- the row of the open job. Of all locks that enqueuing takes, enqueue_jobs takes these last, in the
-- order of organization, type and key. So callers that make one call in a transaction do not
-- deadlock.
--
-- SQLSTATEs: those of chapter 9.

-- +goose Up
-- +goose StatementBegin

-- By which the open job of a key is found. No type and no key of skip_while_open begins the text
-- that is hashed for them with a carriage return.
CREATE FUNCTION daybook.job_debounce_hash(type text, key text) RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT sha256(convert_to(E'\r' || $1 || E'\n' || $2, 'UTF8'))
$$;

-- Raises DB010 unless debounce is {"key": …, "wait_seconds": …}, perhaps with max_wait_seconds, keep
-- and merge.
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

-- A time of debounce in seconds; null: there is none, or it is out of range. The cases keep the
-- planner from casting what is no such number.
CREATE FUNCTION daybook.debounce_seconds(debounce jsonb, member text) RETURNS double precision
    LANGUAGE sql IMMUTABLE
AS $$
    SELECT CASE WHEN jsonb_typeof($1 -> $2) = 'number'
                THEN CASE WHEN ($1 -> $2)::numeric BETWEEN 0 AND 3.2e9 THEN ($1 -> $2)::double precision END END
$$;

-- Whether debounce passes check_debounce; null or false: it may not. One expression, so that the
-- planner can inline it.
CREATE FUNCTION daybook.is_plain_debounce(debounce jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE
AS $$
    SELECT $1 - '{key,wait_seconds,max_wait_seconds}'::text[] = '{}' AND jsonb_typeof($1 -> 'key') = 'string'
           AND octet_length($1 ->> 'key') BETWEEN 1 AND 255
           AND daybook.debounce_seconds($1, 'wait_seconds') <= CASE WHEN $1 ? 'max_wait_seconds' THEN daybook.debounce_seconds($1, 'max_wait_seconds') ELSE 3.2e9 END
$$;

-- The function that merges payloads, as it is written in a statement; null for null. Raises DB010
-- when there is none.
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

-- The payload that two requests make together. merger is of merge_function; null: the members of
-- both, the newer ones first.
CREATE FUNCTION daybook.merge_payloads(older jsonb, newer jsonb, merger text) RETURNS jsonb
    LANGUAGE plpgsql
AS $$
DECLARE
    merged jsonb := older || newer;
BEGIN
    IF merger IS NOT NULL THEN
        EXECUTE 'SELECT ' || merger || '($1, $2)' INTO merged USING older, newer;
    END IF;
    PERFORM daybook.check_job_payload(merged, merged::text);
    RETURN merged;
END
$$;

-- When a waiting job is due after a further request: after wait, but not later than longest after
-- its first request. When that is over, it is due as soon as it was.
CREATE FUNCTION daybook.debounced_until(first_asked timestamptz, due timestamptz, wait double precision, longest double precision)
    RETURNS timestamptz
    LANGUAGE sql VOLATILE
AS $$
    SELECT CASE WHEN first_asked + make_interval(secs => longest) <= clock_timestamp() THEN least(due, clock_timestamp())
                ELSE least(clock_timestamp() + make_interval(secs => wait), first_asked + make_interval(secs => longest)) END
$$;

-- Asks for a job that waits for further requests with its key: what enqueue_job does with debounce.
-- No other part of a request is combined with it. Duplicate: a waiting job has taken the request
-- in. A job that existed before keeps its queue, its attempts and its links, and gets the higher
-- priority; with another payload it gets the limit and the key of that. result:
--   enqueued     a new job was made; it follows the one that has begun, if there is one
--   replaced     the job that waits has the new or the merged payload, and its time anew
--   rescheduled  the job that waits has kept its payload, and has its time anew
--   unchanged    the job waits for its next attempt, which has the payload that is to be kept
CREATE FUNCTION daybook.debounce_job(
    org_id        text,
    type          text,
    payload       jsonb,
    debounce      jsonb,
    priority      integer DEFAULT NULL,
    max_attempts  integer DEFAULT NULL,
    links         jsonb DEFAULT NULL,
    queue         text DEFAULT NULL,
    limit_key     text DEFAULT NULL,
    OUT job_id    text,
    OUT duplicate boolean,
    OUT result    text
)
    LANGUAGE plpgsql
AS $$
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
$$;
COMMENT ON FUNCTION daybook.debounce_job IS
    'Asks for a background job that waits for further requests with its key: enqueue_job with debounce';

-- The requests of enqueue_jobs that are debounced, in the order of the locks. Where all say no more
-- than a key and its times, and no type has a limit, those for new keys are made at once; a key that has a job is locked in
-- its place. The others are made one by one, by enqueue_job's rules.
CREATE FUNCTION daybook.debounce_jobs(
    org_ids          text[],
    types            text[],
    payloads         jsonb[],
    debounces        jsonb[],
    idempotency_keys text[],
    ready_ats        timestamptz[],
    priorities       integer[],
    max_attempts     integer[],
    links            jsonb[],
    unique_payloads  boolean[],
    queues           text[],
    sequences        text[],
    afters           jsonb[],
    min_versions     integer[],
    limit_keys       text[]
) RETURNS TABLE (ordinal integer, job_id text, duplicate boolean, result text)
    LANGUAGE plpgsql
AS $$
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
$$;

-- Cancels a pending job whose place a newer one takes, unless another job or a callback is to come
-- of it as well. What waits for it is released by that.
CREATE FUNCTION daybook.yield_to_newer(job_id text) RETURNS void
    LANGUAGE sql
AS $$
    UPDATE daybook.jobs j
       SET state = 'cancelled', finished_at = clock_timestamp(), updated_at = clock_timestamp(), generation = j.generation + 1,
           last_error_code = 'REPLACED', last_error = format('job %s, with the same key and a newer payload, takes its place', w.job_id)
      FROM daybook.job_waits w
     WHERE j.id = $1 AND j.state::text = 'pending' AND w.awaits = j.id AND w.replaces AND w.ended_as IS NULL
       AND j.last_error_code IS DISTINCT FROM 'AWAITING_CALLBACK'
       AND NOT EXISTS (SELECT FROM daybook.job_waits o WHERE o.awaits = j.id AND o.ended_as IS NULL AND NOT o.replaces)
$$;

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.yield_to_newer, daybook.debounce_jobs, daybook.debounce_job, daybook.debounced_until, daybook.merge_payloads, daybook.merge_function,
    daybook.is_plain_debounce, daybook.debounce_seconds, daybook.check_debounce, daybook.job_debounce_hash;
