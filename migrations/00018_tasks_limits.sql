-- Chapter 18: what operations do with tasks: enqueue many at once, pause and cap them.

-- +goose Up
-- +goose StatementBegin

-- As queues.enqueue, for many tasks. Returns their ids in the order of the arrays. What is wrong is
-- named by its place, from 1. No times: all are due now; a time that is null: this one is.
CREATE FUNCTION queues.enqueue_tasks(_task_types text[], _payloads jsonb[], _scheduled_ats timestamptz[] DEFAULT NULL)
    RETURNS TABLE (ordinal bigint, task_id bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
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
$$;
COMMENT ON FUNCTION queues.enqueue_tasks IS 'queues.enqueue for many tasks in one statement; returns their ids';

-- The types that a dequeue leaves out because they are paused, and the scope of its cursor; no
-- scope: all that it asks for is paused. _type null: it asks for tasks of every type. A cursor that
-- leaves types out is one of an order of its own (decision 9).
CREATE FUNCTION queues.task_pause(_type text, OUT without text[], OUT scope text)
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

-- The scope of the cursor of all tasks but those of some types, which are sorted.
CREATE FUNCTION queues.scope_without(_types text[]) RETURNS text
    LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN cardinality(_types) <= 16 THEN '!' || array_to_string(_types, ',') ELSE '!#' || md5(array_to_string(_types, ',')) END $$;

-- What a dequeue may take: how many tasks at most, which types it leaves out, and how many are left
-- of the caps of others. A cap's row is locked, so that two dequeues do not both take what is left.
-- One that is locked by another transaction has nothing left: no dequeue waits for another one.
CREATE FUNCTION queues.task_room(_type text, _limit integer, OUT most integer, OUT scope text, OUT without text[],
    OUT capped text[], OUT left_of bigint[])
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

-- How many tasks of a type, or of all (*), are leased now; it counts little further than _most.
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

-- How many leases count towards the limit of a type over all workers.
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

-- Those of the tasks, in their order, that the caps leave room for.
CREATE FUNCTION queues.within_caps(_ids bigint[], _capped text[], _left_of bigint[]) RETURNS bigint[]
    LANGUAGE sql STABLE
AS $$
    SELECT coalesce(array_agg(r.id ORDER BY r.n), '{}')
      FROM (SELECT i.id, i.n, o.task_type, row_number() OVER (PARTITION BY o.task_type ORDER BY i.n) AS nth
              FROM unnest(_ids) WITH ORDINALITY AS i (id, n) JOIN queues.open_task o ON o.task_id = i.id WHERE o.task_id = ANY (_ids)) r
      LEFT JOIN unnest(_capped, _left_of) AS c (task_type, space) USING (task_type)
     WHERE c.space IS NULL OR r.nth <= c.space
$$;

-- Pauses or resumes a type (*: all tasks), or sets its cap. _cap 0: none. What is not given stays
-- as it is. changed: false when it was so already. A row that limits nothing any more is removed.
-- Workers that wait for tasks are woken: there may be more to do now.
CREATE FUNCTION queues.limit_tasks(_task_type text, _paused boolean DEFAULT NULL, _cap integer DEFAULT NULL,
    OUT changed boolean, OUT paused_at timestamptz, OUT max_in_flight integer)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
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
COMMENT ON FUNCTION queues.limit_tasks IS
    'Pauses, resumes or caps the tasks of a type, or all (*): no dequeue that begins after the commit hands out more';

REVOKE ALL ON FUNCTION queues.enqueue_tasks, queues.task_pause, queues.scope_without, queues.task_room,
    queues.tasks_in_flight, queues.counted_tasks, queues.within_caps, queues.limit_tasks FROM PUBLIC;

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION queues.limit_tasks, queues.within_caps, queues.counted_tasks, queues.tasks_in_flight, queues.task_room,
    queues.scope_without, queues.task_pause, queues.enqueue_tasks;
