-- Chapter 15: claiming tasks and ending the claim, one by one for any client and many at once for a
-- worker.

-- +goose Up
-- +goose StatementBegin

-- After so many attempts that ended with their worker, a task is completed: it ends its worker each
-- time.
CREATE FUNCTION queues.most_task_attempts() RETURNS integer
    LANGUAGE sql IMMUTABLE
AS $$ SELECT 10 $$;

-- What is noted of the last attempt, when it has ended with its worker.
CREATE FUNCTION queues.lost_task_message(_attempt integer) RETURNS text
    LANGUAGE sql IMMUTABLE
AS $$ SELECT 'the worker ended while it worked on this task, in attempt ' || _attempt || ', which was the last one: the task is completed' $$;

-- Makes tasks ready again whose leases have expired, 1,000 at once. Each goes back to its place in
-- the order. What Daybook's worker was working on is lost; what it had not begun does not count as
-- handed out. What Daybook's worker has not renewed in time ends ten seconds later, unless
-- _at_once: the database was unavailable or its clock was set forward, and a worker that lives
-- renews its lease in that time. tasks: how many leases ended; lost: how many of them were being
-- worked; failed: how many of these were the last attempt; ended: each of them, for those that
-- observe the worker; null: none.
CREATE FUNCTION queues.reclaim_expired(_now timestamptz, _at_once boolean, OUT tasks integer, OUT lost integer,
    OUT failed integer, OUT ended jsonb)
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

-- Leases up to _limit ready tasks of one type, null: of every type, for five minutes, in the order
-- (scheduled_at, task_id). What other transactions hold is passed over. _turn and what follows it
-- are those of Daybook's worker (chapter 16).
CREATE FUNCTION queues.claim_tasks(
    _limit integer, _type text, _turn text DEFAULT NULL, _fence bigint DEFAULT NULL, _worker text DEFAULT NULL,
    _detached boolean DEFAULT false,
    _working boolean DEFAULT false, _counted boolean DEFAULT false)
    RETURNS TABLE (task_id bigint, task_type text, payload jsonb, enqueued_at timestamptz, scheduled_at timestamptz,
                   task_lease_id bigint, leased_at timestamptz, expires_at timestamptz, leases integer,
                   reclaims integer, traceparent text)
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

CREATE FUNCTION queues.dequeue_next_available_task() RETURNS queues.task
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
AS $$
DECLARE
    leased queues.task;
BEGIN
    PERFORM queues.reclaim_expired(clock_timestamp(), false);
    SELECT c.task_id, c.task_type, c.payload, c.enqueued_at, c.scheduled_at, c.traceparent INTO leased FROM queues.claim_tasks(1, NULL) c;
    RETURN leased;
END
$$;
COMMENT ON FUNCTION queues.dequeue_next_available_task IS
    'Leases the first task that is due for five minutes, and returns it; all columns are null when there is none. Commit before you process it';

-- As dequeue_next_available_task, for many tasks. With types only the tasks of these, up to _limit
-- of each: waiting tasks of other types are not read. attempt is 1 when a task is handed out for
-- the first time.
CREATE FUNCTION queues.dequeue_available_tasks(_limit integer, _task_types text[] DEFAULT NULL) RETURNS TABLE (
    task_id bigint, task_type text, payload jsonb, enqueued_at timestamptz, scheduled_at timestamptz,
    task_lease_id bigint, leased_at timestamptz, expires_at timestamptz, attempt integer)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
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

-- When the next task falls due, or the next lease expires, whichever is first; null: nothing is
-- open. A time in the past: now, or as soon as another transaction ends that holds the task, or its
-- type is no longer at its cap. What is paused is not due.
CREATE FUNCTION queues.next_task_due(_task_types text[] DEFAULT NULL) RETURNS timestamptz
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
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

-- Whether tasks of a type are due, and it is not paused.
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

-- Gives tasks a new lease of five minutes where the caller still has the one that it names. The
-- claim keeps its id.
CREATE FUNCTION queues.renew_task_leases(_task_ids bigint[], _task_lease_ids bigint[])
    RETURNS TABLE (task_id bigint, expires_at timestamptz)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
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

-- Makes tasks ready again before their leases expire, where the caller still has the one that it
-- names, and returns which. Their leases stay on record as they were; the tasks do not count as
-- handed out. A worker that waits is woken: they were due.
CREATE FUNCTION queues.give_back_tasks(_task_ids bigint[], _task_lease_ids bigint[]) RETURNS SETOF bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
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

CREATE FUNCTION queues.complete_task(_task_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM queues.open_task o WHERE o.task_id = _task_id;
    IF NOT FOUND AND NOT EXISTS (SELECT FROM queues.task t WHERE t.task_id = _task_id) THEN
        RAISE EXCEPTION 'there is no task %', coalesce(_task_id::text, 'null') USING ERRCODE = 'DB010', HINT = 'list the tasks in queues.task';
    END IF;
    INSERT INTO queues.task_completed (task_id) VALUES (_task_id) ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION queues.complete_task IS
    'Says that a task is done with, whether it succeeded or failed; a second call does nothing';

-- Completes tasks, and returns those that were open until then. With _task_lease_ids only those of
-- which the caller still has the lease that it names.
CREATE FUNCTION queues.complete_tasks(_task_ids bigint[], _task_lease_ids bigint[] DEFAULT NULL) RETURNS SETOF bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
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

CREATE FUNCTION queues.fail_task(_task_id bigint, _error_message text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM queues.task t WHERE t.task_id = _task_id) THEN
        RAISE EXCEPTION 'there is no task %', coalesce(_task_id::text, 'null') USING ERRCODE = 'DB010', HINT = 'list the tasks in queues.task';
    END IF;
    INSERT INTO queues.error (task_id, error_message) VALUES (_task_id, coalesce(_error_message, ''));
END
$$;
COMMENT ON FUNCTION queues.fail_task IS
    'Notes what went wrong with a task. The task stays open until queues.complete_task';

CREATE FUNCTION queues.fail_tasks(_task_ids bigint[], _error_messages text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET jit = off
AS $$
BEGIN
    IF cardinality(_error_messages) IS DISTINCT FROM cardinality(_task_ids) THEN
        RAISE EXCEPTION 'there must be as many messages as tasks' USING ERRCODE = 'DB010';
    END IF;
    INSERT INTO queues.error (task_id, error_message)
    SELECT t.task_id, coalesce(x.message, '') FROM unnest(_task_ids, _error_messages) AS x (id, message) JOIN queues.task t ON t.task_id = x.id;
END
$$;

REVOKE ALL ON FUNCTION queues.most_task_attempts, queues.lost_task_message, queues.reclaim_expired, queues.claim_tasks,
    queues.dequeue_next_available_task, queues.dequeue_available_tasks, queues.next_task_due, queues.is_type_due,
    queues.renew_task_leases, queues.give_back_tasks, queues.complete_task, queues.complete_tasks, queues.fail_task,
    queues.fail_tasks FROM PUBLIC;

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION queues.fail_tasks, queues.fail_task, queues.complete_tasks, queues.complete_task, queues.give_back_tasks,
    queues.renew_task_leases;
DROP FUNCTION queues.is_type_due, queues.next_task_due, queues.dequeue_available_tasks,
    queues.dequeue_next_available_task, queues.claim_tasks, queues.reclaim_expired;
DROP FUNCTION queues.lost_task_message, queues.most_task_attempts;
