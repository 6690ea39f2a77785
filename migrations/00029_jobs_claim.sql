-- Chapter 29: claiming background jobs by SQL, for workers in languages other than Go.
--
-- A claim holds a job as a worker of Daybook does: under a turn ('/sql/' and the worker's name), a
-- fence, and a lease of 10 seconds that renew_jobs prolongs. So workers of Daybook reclaim what a
-- dead one leaves, and claim_jobs does where no other runs. Pauses, and caps, limits
-- and rates of organizations and named queues are counted as internal/store counts them, under the
-- same locks.
--
-- SQLSTATEs: DB010 the request is invalid, DB031 the job is not the caller's any more.

-- +goose Up
-- +goose StatementBegin

-- The turn of what a worker claims by SQL.
CREATE FUNCTION daybook.sql_turn(worker text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT '/sql/' || $1 $$;

-- Those of types that are encrypted, as workers in Go have put on record.
CREATE FUNCTION daybook.encrypted_types(types text[]) RETURNS text[]
    LANGUAGE sql STABLE
AS $$ SELECT ARRAY(SELECT t.type FROM daybook.job_types t WHERE t.kind = 'jobs' AND t.encrypts AND t.type = ANY ($1) ORDER BY t.type) $$;

-- Puts a worker and its types on record, and has the dead letters return that lacked it. What is
-- null is 0 for each type: version 0, attempts as the kind says (3).
CREATE FUNCTION daybook.start_job_worker(
    worker          text,
    types           text[],
    fleet           text DEFAULT NULL,
    versions        integer[] DEFAULT NULL,
    max_attempts    integer[] DEFAULT NULL,
    timeout_seconds double precision[] DEFAULT NULL,
    owner           text DEFAULT NULL,
    parallel        integer DEFAULT 1
) RETURNS void
    LANGUAGE plpgsql
AS $$
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
$$;
COMMENT ON FUNCTION daybook.start_job_worker IS
    'Puts a worker that claims jobs by SQL on record, with the types that it has handlers for. Call it when the worker starts';

-- Makes up to 1000 dead letters pending again that failed because no worker had a handler.
CREATE FUNCTION daybook.return_missing_jobs(types text[], fleet smallint) RETURNS void
    LANGUAGE sql
AS $$
    SELECT daybook.retry_job(f.id, 'now')
      FROM (SELECT j.id FROM daybook.jobs j
             WHERE j.state = 'failed' AND j.last_error_code = 'HANDLER_MISSING' AND j.type = ANY ($1) AND j.fleet = $2
               AND (j.queue IS NULL OR EXISTS (SELECT FROM daybook.queues u WHERE u.name = j.queue))
             ORDER BY j.id
             LIMIT 1000
               FOR NO KEY UPDATE SKIP LOCKED) f
$$;

-- What divides the pending jobs of a priority (jobs_due) and that a worker may work: its type is
-- among types, and asks for no later version. One probe of the index each, also for those that are
-- left out.
CREATE FUNCTION daybook.job_partitions(fleet smallint, priority smallint, types text[], versions integer[])
    RETURNS TABLE (org_id text, slot text)
    LANGUAGE sql STABLE ROWS 10
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
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
$$;

-- How many jobs of an organization (all null: it has no settings) and a named queue (null: of none) may be leased now, most at
-- most. It counts under the locks under which workers do, which it tries and does not wait for: the
-- transaction holds them until it ends.
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

-- How many attempts at jobs of a queue with a rate may begin now.
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

-- Leases up to most due jobs of a partition, and counts them towards the rates of their organization
-- and their queue.
CREATE FUNCTION daybook.claim_of_partition(fleet smallint, priority smallint, org_id text, slot text, worker text,
    fence bigint, most integer) RETURNS text[]
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
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

CREATE FUNCTION daybook.claim_jobs(worker text, most integer DEFAULT 1) RETURNS TABLE (
    job_id text, org_id text, type text, payload jsonb, attempt integer, max_attempts integer, fence bigint,
    idempotency_key text, priority integer, queue text, enqueued_at timestamptz, traceparent text, steps integer)
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
COMMENT ON FUNCTION daybook.claim_jobs IS
    'Leases up to most due jobs of the types of a worker (start_job_worker) for 10 seconds: commit, and call renew_jobs every second or two. Priority first, then organizations in turn, then the longest due; pauses, caps and rates of organizations, limits by key, and limits and rates of named queues are kept';

CREATE FUNCTION daybook.renew_jobs(worker text, job_ids text[]) RETURNS TABLE (job_id text, fence bigint, cancel_requested boolean)
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
COMMENT ON FUNCTION daybook.renew_jobs IS
    'Has the leases of the jobs that a worker works last for 10 seconds from now, and returns which of them it holds; cancel_requested: end the attempt, by fail_job. What it holds beside them, as after a claim whose answer was lost, ends as a dead worker''s does';

-- Locks a job that a claim by SQL holds. An empty row: the claim holds it no more.
CREATE FUNCTION daybook.held_job(job_id text, fence bigint) RETURNS daybook.jobs
    LANGUAGE sql
AS $$
    SELECT j FROM daybook.jobs j
     WHERE j.id = $1 AND j.state::text = 'leased' AND starts_with(j.turn_id, '/sql/') AND j.fence = $2
       FOR NO KEY UPDATE
$$;

-- Keeps a step of a job that the caller has locked. A step that is there already
-- is replaced by the next round of its loop alone; with again also by itself, when an answer was
-- lost. False: it is not replaced. internal/store and keep_step call it.
CREATE FUNCTION daybook.put_step(job_id text, awaited boolean, name text, place integer, attempt integer, result jsonb,
    done boolean, round integer, took_seconds double precision, again boolean) RETURNS boolean
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

-- Raises DB010 when a step of a job cannot be kept, with the error code of the job as the detail. The
-- limits are package models'. Up to 16 results of 1 MB need not be counted.
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

CREATE FUNCTION daybook.keep_step(job_id text, fence bigint, name text, result jsonb, done boolean DEFAULT true,
    round integer DEFAULT 1, place integer DEFAULT 1, took_seconds double precision DEFAULT 0, again boolean DEFAULT false) RETURNS void
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
COMMENT ON FUNCTION daybook.keep_step IS
    'Keeps the result of a step of a claimed job (daybook.job_steps has what is kept), alone or in the transaction that writes its effects. round: from 1, of a loop, which goes on unless done. again: the answer of a call before may be lost. DB031, which undoes that, when the claim is lost or the round is there; DB010 with STEP_INVALID or STEP_NOT_STORED as its detail when it cannot be kept';

CREATE FUNCTION daybook.complete_job(job_id text, fence bigint, result jsonb DEFAULT NULL, unstored text DEFAULT NULL)
    RETURNS void
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
COMMENT ON FUNCTION daybook.complete_job IS
    'Completes a claimed job, with a result, in the transaction that writes its effects. unstored: why it leaves no result. DB031, which undoes that, when the claim is lost or the job is to be cancelled';

CREATE FUNCTION daybook.fail_job(job_id text, fence bigint, code text, error text, delay interval DEFAULT NULL,
    final boolean DEFAULT false, base_seconds double precision DEFAULT 30, factor double precision DEFAULT 2,
    cap_seconds double precision DEFAULT 21600) RETURNS text
    LANGUAGE plpgsql
AS $$
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
$$;
COMMENT ON FUNCTION daybook.fail_job IS
    'Ends the attempt at a claimed job as failed: due again after delay (null: as retry_delay says of base_seconds, factor and cap_seconds), a dead letter after the last attempt, with final, or by a final code; JOB_CANCELLED cancels it. Returns the job''s state; null: the claim is lost';

CREATE FUNCTION daybook.snooze_job(job_id text, fence bigint, delay interval, reason text DEFAULT 'snoozed') RETURNS text
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
COMMENT ON FUNCTION daybook.snooze_job IS
    'Puts a claimed job off for delay; no attempt is counted. Returns the job''s state; null: the claim is lost';

-- The pause after an attempt: base_seconds × factor^(attempt-1), cap_seconds at most, changed by up to a
-- tenth, as package jobs has it: by the FNV-1a hash of job and attempt.
CREATE FUNCTION daybook.retry_delay(job_id text, attempt integer, base_seconds double precision DEFAULT 30,
    factor double precision DEFAULT 2, cap_seconds double precision DEFAULT 21600) RETURNS interval
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
COMMENT ON FUNCTION daybook.retry_delay IS
    'The pause after a failed attempt: base_seconds × factor^(attempt - 1), cap_seconds at most, changed by up to 10 %, always the same for the same job and attempt';

-- Ends claims by SQL that had not been renewed for 20 seconds when the caller was last seen (its
-- last_seen), if that is ten seconds ago: what it has itself seen counts, so that after an outage, or
-- when the clock was set forward, holders have ten seconds to renew what they hold. Workers of Daybook,
-- which watch a lease before they end it, are earlier.
CREATE FUNCTION daybook.reclaim_claimed_jobs(seen timestamptz) RETURNS integer
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
COMMENT ON FUNCTION daybook.reclaim_claimed_jobs IS
    'Ends claims by SQL that had not been renewed for 20 seconds at a time, ten seconds ago or longer, when the caller saw the database: their jobs are due again, or dead letters after their last attempt. claim_jobs calls it';

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
COMMENT ON FUNCTION daybook.stop_job_worker IS
    'Puts on record that a worker has stopped, gives back what it holds, uncounted, and returns how many jobs that were. What is locked, as by its completion, ends with its lease';

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.stop_job_worker, daybook.reclaim_claimed_jobs, daybook.retry_delay, daybook.snooze_job,
    daybook.fail_job, daybook.complete_job, daybook.keep_step, daybook.check_step, daybook.put_step, daybook.held_job, daybook.renew_jobs, daybook.claim_jobs,
    daybook.claim_of_partition, daybook.queue_starts, daybook.claim_room, daybook.job_partitions,
    daybook.return_missing_jobs, daybook.start_job_worker, daybook.encrypted_types, daybook.sql_turn;
