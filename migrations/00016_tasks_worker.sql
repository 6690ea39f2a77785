-- Chapter 16: what Daybook's worker asks of tasks, by functions alone: its role reads no table.
-- docs/decisions/0009-tasks.md says why. A task that the worker has leased is held by one turn,
-- under its fence: both stand in queues.open_task. A function that is given another turn or another
-- fence changes nothing, unless it says otherwise. Rows that another transaction holds are skipped.
-- The facts are those of any client. A task that a later activity of a crashed turn works again has
-- a lease of its own.

-- +goose Up
-- +goose StatementBegin

-- As daybook.require_table and the fences of schema daybook, of which the worker's role has
-- nothing.
CREATE FUNCTION queues.require_table(name text, table_id oid) RETURNS void
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM daybook.require_table(name, table_id);
END
$$;

CREATE FUNCTION queues.next_fence() RETURNS bigint
    LANGUAGE sql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$ SELECT nextval('daybook.fence_seq') $$;

-- Leases up to _limit ready tasks to a turn, types in turn: of each of _types as many as _rooms
-- says, and no more than _everywhere over all workers (0: any number). Null types: of every type,
-- in the order (scheduled_at, task_id). The last row has no task. full: the types of which as many
-- are leased as may be. ended: the leases that have expired (queues.reclaim_expired). due: when
-- nothing was leased, in how many seconds to ask again (null: nothing is open; not above 0: a
-- transaction or a cap holds it back).
CREATE FUNCTION queues.lease_tasks(
    _turn text, _fence bigint, _worker text, _detached boolean, _working boolean, _limit integer,
    _types text[], _rooms integer[], _everywhere integer[])
    RETURNS TABLE (task_id bigint, task_type text, payload jsonb, enqueued_at timestamptz, leased_at timestamptz,
    attempt integer, reclaims integer,
                   due double precision, "full" text[], ready_at timestamptz, ended jsonb, traceparent text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET enable_bitmapscan = off
    SET jit = off SET plan_cache_mode = force_generic_plan
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

-- Whether tasks are due of types that are not among these, and not paused, and that another worker
-- has a processor for: one that has reported its types (chapter 20) in the last five minutes.
CREATE FUNCTION queues.has_other_tasks(_types text[]) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
    SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    RETURN EXISTS (SELECT FROM daybook.job_types t
                    WHERE t.kind = 'tasks' AND t.last_seen > clock_timestamp() - interval '5 minutes' AND t.type <> ALL (_types) AND queues.is_type_due(t.type));
END
$$;

CREATE FUNCTION queues.tasks_of_turn(_turn text, _fence bigint) RETURNS SETOF bigint
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$ SELECT o.task_id FROM queues.open_task o WHERE o.turn_id = _turn AND o.fence = _fence $$;

CREATE FUNCTION queues.turns_with_tasks(_turns text[]) RETURNS SETOF text
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$ SELECT t FROM unnest(_turns) AS t WHERE EXISTS (SELECT FROM queues.open_task o WHERE o.turn_id = t) ORDER BY t COLLATE "C" $$;

-- Gives the tasks a lease of five minutes from now on, by a fact that renews their claim. The
-- caller has them locked.
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

-- Renews what the turn holds, except _overdue, where half of the five minutes is over, and returns
-- all. missed: another transaction holds it.
CREATE FUNCTION queues.renew_tasks_of_turn(_turn text, _fence bigint, _overdue bigint[])
    RETURNS TABLE (task_id bigint, missed boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
    SET plan_cache_mode = force_generic_plan
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

-- Says that leased tasks are not being worked yet, or are now. begun: it is worked now, else
-- another transaction holds it.
CREATE FUNCTION queues.mark_tasks_waiting(_turn text, _fence bigint, _task_ids bigint[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
AS $$
BEGIN
    UPDATE queues.open_task o SET working = false
     WHERE o.task_id = ANY (ARRAY(SELECT x.task_id FROM queues.open_task x WHERE x.task_id = ANY (_task_ids) AND x.turn_id = _turn AND x.fence = _fence FOR UPDATE SKIP LOCKED));
END
$$;

CREATE FUNCTION queues.begin_tasks(_turn text, _fence bigint, _task_ids bigint[])
    RETURNS TABLE (task_id bigint, begun boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
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

-- Makes all of these tasks those of another turn, under the same fence, or says false and changes
-- nothing. What was handed over already counts as such.
CREATE FUNCTION queues.hand_tasks_over(_turn text, _fence bigint, _to text, _detached boolean, _task_ids bigint[])
    RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
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

-- Makes tasks (null: all) of the turn, of this fence or a lower one, ready after so many seconds,
-- uncounted, and returns them. Workers that wait are woken.
CREATE FUNCTION queues.give_tasks_of_turn_back(_turn text, _fence bigint, _task_ids bigint[], _delay double precision)
    RETURNS TABLE (task_id bigint, task_type text, attempt integer)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
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

-- Makes the turn's own what the named turns hold under a lower fence, and returns it. After a crash
-- what was being worked under a fence below _first_fence is lost: the task is handed out anew, or
-- completed, with what happened in queues.error, when that was its last attempt (failed).
CREATE FUNCTION queues.reclaim_tasks_of_turns(_turn text, _fence bigint, _first_fence bigint, _worker text,
    _detached boolean, _from text[], _crashed boolean)
    RETURNS TABLE (task_id bigint, task_type text, payload jsonb, enqueued_at timestamptz, leased_at timestamptz,
    attempt integer, reclaims integer, lost boolean, failed boolean,
                   ready_at timestamptz, was_worker text, was_turn text, traceparent text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
    SET plan_cache_mode = force_generic_plan
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

-- Ends the leases that have expired, as each dequeue does, or without the ten seconds that a worker
-- has to renew them (_at_once): how many; lost: those that were being worked; failed: of these the
-- last attempts.
CREATE FUNCTION queues.reclaim_expired_tasks(_at_once boolean DEFAULT false, OUT tasks integer, OUT lost integer,
    OUT failed integer, OUT ended jsonb)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
AS $$
BEGIN
    SELECT * INTO tasks, lost, failed, ended FROM queues.reclaim_expired(clock_timestamp(), _at_once);
    IF tasks > failed THEN
        PERFORM daybook.wake_task_queue();
    END IF;
END
$$;

-- Puts the types on record that a worker has processors for (chapter 20).
CREATE FUNCTION queues.note_task_types(_worker text, _types text[], _owners text[], _timeouts double precision[],
    _parallel integer[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM queues.require_task_type(x) FROM unnest(_types) AS x;
    PERFORM daybook.note_job_types('tasks', _worker, _types, array_fill(''::text, ARRAY[cardinality(_types)]), _owners, array_fill(0, ARRAY[cardinality(_types)]),
        _timeouts, _parallel, array_fill(false, ARRAY[cardinality(_types)]));
END
$$;

-- Locks those of the tasks that the turn holds until the transaction ends.
CREATE FUNCTION queues.lock_tasks(_turn text, _fence bigint, _task_ids bigint[])
    RETURNS TABLE (task_id bigint, attempt integer)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT o.task_id, o.leases FROM queues.open_task o
     WHERE o.task_id = ANY (_task_ids) AND o.turn_id = _turn AND o.fence = _fence
     ORDER BY o.task_id FOR UPDATE SKIP LOCKED;
END
$$;

-- Ends attempts: all of them, or it fails with DB031 when one of the tasks is not the turn's, or in
-- another attempt. completed and failed complete the task; what else there is makes it ready again
-- after a delay. An error is noted. Null outcomes: all are completed.
CREATE FUNCTION queues.end_tasks(
    _turn text, _fence bigint, _task_ids bigint[], _attempts integer[], _outcomes text[], _errors text[],
    _delays double precision[], _database boolean[])
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
    SET plan_cache_mode = force_generic_plan
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

-- How often this attempt at a task was put off because of the database.
CREATE FUNCTION queues.task_put_off(_task_id bigint, _attempt integer) RETURNS integer
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$ SELECT coalesce((SELECT o.put_off FROM queues.open_task o WHERE o.task_id = _task_id AND o.leases + (o.turn_id IS NULL)::integer = _attempt), 0) $$;

REVOKE ALL ON FUNCTION queues.require_table, queues.next_fence, queues.lease_tasks, queues.has_other_tasks,
    queues.tasks_of_turn, queues.turns_with_tasks,
    queues.prolong_tasks, queues.renew_tasks_of_turn, queues.mark_tasks_waiting, queues.begin_tasks,
    queues.hand_tasks_over, queues.give_tasks_of_turn_back,
    queues.reclaim_tasks_of_turns, queues.reclaim_expired_tasks, queues.note_task_types, queues.lock_tasks,
    queues.end_tasks, queues.task_put_off FROM PUBLIC;

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION queues.task_put_off, queues.end_tasks, queues.lock_tasks, queues.note_task_types,
    queues.reclaim_expired_tasks, queues.reclaim_tasks_of_turns, queues.give_tasks_of_turn_back;
DROP FUNCTION queues.hand_tasks_over, queues.begin_tasks, queues.mark_tasks_waiting, queues.renew_tasks_of_turn,
    queues.prolong_tasks, queues.turns_with_tasks;
DROP FUNCTION queues.tasks_of_turn, queues.has_other_tasks, queues.lease_tasks, queues.next_fence, queues.require_table;
