-- Chapter 14: where the work begins in queues.open_task. docs/decisions/0009-tasks.md says why
-- nothing here is slower with more history.
--
-- Each function reads the front of an order from a cursor on. Three places together hold all that
-- is in the order: the index from the cursor on; what arrived since the cursor's snapshot; and the
-- few tasks that the cursor passed and names.
--
-- Each condition leaves one index that bounds the scan, so that no statistics lead to a walk over
-- what is gone: each index has its own words for ready and leased, OFFSET 0 keeps other conditions
-- out of a scan, and coalesce(task_lease_id, 0) says of a row that was found by its id whether it
-- is leased. Rows that are joined by their ids are compared with all of these as well (task_id =
-- ANY (ids)), and what a turn holds is put in the order task_id + 0, which no index has: while the
-- table seems empty either would begin with a walk over all of it. A position within a type is
-- compared without the type, by (scheduled_at, task_id): beside task_type = … a comparison of all
-- three columns would not be where the scan begins.
--
-- A list of ids that is compared is never empty: with = ANY of an empty list the planner takes any
-- partial index to be enough, and walks one where the table seems empty. No task has the id 0.

-- +goose Up
-- +goose StatementBegin

-- The last cursor of a scope; one that hides nothing when there is none. A cursor of another
-- server, which came with a dump, counts that server's transactions, and means nothing here.
CREATE FUNCTION queues.last_cursor(_scope text) RETURNS queues.task_cursor
    LANGUAGE plpgsql
    -- A bitmap of the scope would hold every cursor that was removed since the oldest snapshot.
    SET enable_bitmapscan = off
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

-- The tasks before the cursor that are ready all the same: what the cursor names, and what arrived
-- since. _type null: of every type but those of _without.
CREATE FUNCTION queues.ready_before(c queues.task_cursor, _type text, _without text[], _most integer)
    RETURNS TABLE (task_id bigint, scheduled_at timestamptz)
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

-- Notes how far the order of ready tasks is gone, at most up to (_to_at, _to_id): after a dequeue
-- that got what it asked for the last task that it got, else everything that is due. A cursor names
-- 64 tasks, which other transactions hold; it goes no further than the last of these.
CREATE FUNCTION queues.move_ready_cursor(c queues.task_cursor, _type text, _without text[], _to_at timestamptz,
    _to_id bigint) RETURNS void
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

-- Removes the cursor that a transaction has moved, and earlier ones of its scope. What another
-- transaction removes is left to it. The window of 100 numbers holds what was made at about the
-- same time, and few dead rows. What commits later, or was left by a transaction that rolled back,
-- is found by a walk over the whole scope: for one cursor in 100, and for each that is a minute
-- old, as those of scopes that rarely move are.
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

-- The last task_lease_id that was drawn, also by a transaction that has not ended.
CREATE FUNCTION queues.last_lease() RETURNS bigint
    LANGUAGE sql
AS $$ SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('queues.task_lease', 'task_lease_id')::regclass), 0) $$;

-- Whether the cursor is worth moving: a tenth of a second after it was made, when something was
-- leased or has arrived since. The sequence says that something was leased: the rows may be gone by
-- now, and a search for one would walk through dead rows in every call.
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

-- The leases that end before the cursor: what the cursor names, and what was leased since.
CREATE FUNCTION queues.leased_before(c queues.task_cursor)
    RETURNS TABLE (task_id bigint, leased_until timestamptz, task_type text, counted boolean)
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

-- Notes where the leases begin. Those that have expired and that other transactions hold are named,
-- 64 at most; the cursor is the first of all others, which may end in the future: then the next
-- lease to expire is found without a walk.
CREATE FUNCTION queues.move_lease_cursor(c queues.task_cursor, _now timestamptz) RETURNS void
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

REVOKE ALL ON FUNCTION queues.last_cursor, queues.ready_before, queues.move_ready_cursor, queues.forget_cursors,
    queues.last_lease, queues.cursor_is_old,
    queues.leased_before, queues.move_lease_cursor FROM PUBLIC;

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION queues.move_lease_cursor, queues.leased_before, queues.cursor_is_old, queues.last_lease,
    queues.forget_cursors, queues.move_ready_cursor, queues.ready_before;
DROP FUNCTION queues.last_cursor;
