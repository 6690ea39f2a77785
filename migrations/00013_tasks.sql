-- Chapter 13: tasks: business processes that are supervised in SQL. What became of a task is
-- recorded as facts, which are only ever added: when it was handed out, what went wrong, that it is
-- completed. Beside the facts stands one row for each task that is not completed.
--
-- The schemas queues and internal may be the application's as well: what is in them besides stays.
--
-- SQLSTATEs: DB004 a fact may not be changed, DB010 the request is invalid, DB020 the payload is
-- too large, DB021 the payload is no object.

-- +goose Up
-- +goose StatementBegin

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['queues', 'internal'] LOOP
        IF to_regnamespace(name) IS NULL THEN
            EXECUTE format('CREATE SCHEMA %I', name);
            EXECUTE format('COMMENT ON SCHEMA %I IS %L', name, 'Made by Daybook');
        END IF;
    END LOOP;
END
$$;

CREATE TABLE queues.task (
    task_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_type    text COLLATE "C" NOT NULL CONSTRAINT task_type_is_name CHECK (task_type ~ '^[a-z][a-z0-9_]{0,62}$'),
    payload      jsonb NOT NULL CONSTRAINT task_payload_is_object CHECK (jsonb_typeof(payload) = 'object'),
    enqueued_at  timestamptz NOT NULL DEFAULT now(),
    scheduled_at timestamptz NOT NULL DEFAULT now()
        CONSTRAINT task_time_is_readable CHECK (scheduled_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59+00'),
    traceparent  varchar(55) DEFAULT daybook.traceparent()
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
COMMENT ON TABLE queues.task IS 'What is to be done. Append-only: queues.enqueue adds to it';
COMMENT ON COLUMN queues.task.traceparent IS 'The trace of what asked for the task, as W3C Trace Context writes it';
COMMENT ON COLUMN queues.task.task_type IS
    'db_function, email, sms, file_delete, or a type that the application gives its worker a processor for';

CREATE TABLE queues.task_lease (
    task_lease_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id       bigint NOT NULL,
    leased_at     timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL,
    renews        bigint,
    CONSTRAINT lease_ends_after_it_begins CHECK (expires_at > leased_at)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
COMMENT ON TABLE queues.task_lease IS 'Each time that a task was handed out, or its lease renewed. Append-only';
COMMENT ON COLUMN queues.task_lease.renews IS
    'The claim that this row renews, by its task_lease_id; null: the task was handed out';
CREATE INDEX task_lease_task ON queues.task_lease (task_id);

CREATE TABLE queues.task_completed (
    task_id      bigint PRIMARY KEY,
    completed_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
COMMENT ON TABLE queues.task_completed IS 'Tasks that are done with, whether they succeeded or failed. Append-only';
-- Retention, and lists of what was completed last.
CREATE INDEX task_completed_at ON queues.task_completed (completed_at, task_id);

CREATE TABLE queues.error (
    error_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id       bigint NOT NULL,
    error_message text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE queues.error IS 'What went wrong while tasks were processed. Append-only; it decides nothing';
CREATE INDEX error_task ON queues.error (task_id, error_id);

-- No role changes facts, not even the owner or a superuser. The one way out is
-- queues.remove_completed_tasks, which sets queues.removal to its transaction: then rows may be
-- deleted, and still not be updated or truncated.
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
CREATE TRIGGER task_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON queues.task
    FOR EACH STATEMENT EXECUTE FUNCTION queues.refuse_change();
CREATE TRIGGER task_lease_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON queues.task_lease
    FOR EACH STATEMENT EXECUTE FUNCTION queues.refuse_change();
CREATE TRIGGER task_completed_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON queues.task_completed
    FOR EACH STATEMENT EXECUTE FUNCTION queues.refuse_change();
CREATE TRIGGER error_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON queues.error
    FOR EACH STATEMENT EXECUTE FUNCTION queues.refuse_change();

-- The tasks that are not completed. It says nothing that the facts do not say, and is what tasks
-- are claimed by: a row is ready, or leased until a time. It is as large as the work that is left,
-- whatever the history's size.
CREATE TABLE queues.open_task (
    task_id       bigint PRIMARY KEY,
    task_type     text COLLATE "C" NOT NULL,
    scheduled_at  timestamptz NOT NULL,
    leases        integer NOT NULL DEFAULT 0 CHECK (leases >= 0),
    task_lease_id bigint,
    leased_until  timestamptz,
    arrived       xid8 NOT NULL DEFAULT pg_current_xact_id(),
    turn_id       text,
    fence         bigint,
    worker        text,
    detached      boolean NOT NULL DEFAULT false,
    working       boolean NOT NULL DEFAULT false,
    counted       boolean NOT NULL DEFAULT false,
    reclaims      integer NOT NULL DEFAULT 0,
    put_off       integer NOT NULL DEFAULT 0,
    last_call     timestamptz,
    CONSTRAINT open_task_has_lease CHECK ((task_lease_id IS NULL) = (leased_until IS NULL)
        AND (turn_id IS NULL) = (fence IS NULL) AND (turn_id IS NULL OR leased_until IS NOT NULL) AND (turn_id IS NOT NULL OR NOT (detached OR working OR counted)))
) WITH (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 1,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 10000);
COMMENT ON TABLE queues.open_task IS
    'One row for each task that is not completed; queues.rebuild_open_tasks makes it anew from the facts';
COMMENT ON COLUMN queues.open_task.scheduled_at IS
    'When it is ready: the task''s scheduled_at, or later where it was put off';
COMMENT ON COLUMN queues.open_task.leases IS 'How often the task was handed out';
COMMENT ON COLUMN queues.open_task.task_lease_id IS
    'The claim that holds it; null: it is ready, now or from scheduled_at on';
COMMENT ON COLUMN queues.open_task.arrived IS 'The transaction that made it ready, or leased it';
COMMENT ON COLUMN queues.open_task.turn_id IS
    'The turn of Daybook''s worker that holds the lease, under the fence; null: another client holds it, or it is '
    'ready';
COMMENT ON COLUMN queues.open_task.working IS
    'The worker works on it: the attempt counts as lost should the worker end';
COMMENT ON COLUMN queues.open_task.counted IS 'Its lease counts towards the limit of its type over all workers';
COMMENT ON COLUMN queues.open_task.reclaims IS
    'How often a worker ended while it had the task; a suspect is worked alone';
COMMENT ON COLUMN queues.open_task.put_off IS 'How often this attempt was put off because of the database';
COMMENT ON COLUMN queues.open_task.last_call IS
    'The end of a lease that had expired, and lasts some seconds more so that a worker that lives can renew it: it '
    'is equal to leased_until then';
-- Each index has a condition of its own, which says ready or leased in other words: a statement
-- names the one that it means, and no other index can serve it, whatever the statistics are. In a
-- table that is nearly empty all of them look alike, even with a million dead rows.
--
-- Ready tasks in their order: all, and those of a type.
CREATE INDEX open_task_ready ON queues.open_task (scheduled_at, task_id) WHERE leased_until IS NULL;
CREATE INDEX open_task_ready_type ON queues.open_task (task_type, scheduled_at, task_id)
    WHERE num_nulls(leased_until) = 1;
-- Leases in the order in which they expire.
CREATE INDEX open_task_leased ON queues.open_task (leased_until) WHERE leased_until IS NOT NULL;
-- What a turn of the worker holds, and the leases that count towards a limit.
CREATE INDEX open_task_turn ON queues.open_task (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX open_task_counted ON queues.open_task (task_type, leased_until) WHERE counted;
-- What arrived since a cursor was noted.
CREATE INDEX open_task_ready_arrived ON queues.open_task (arrived) WHERE task_lease_id IS NULL;
CREATE INDEX open_task_leased_arrived ON queues.open_task (arrived) WHERE task_lease_id IS NOT NULL;

-- What is known of the front of an order, so that a scan begins after the rows that are gone
-- (decision 9). A row says: everything that the snapshot (seen_to, unseen) saw up to (last_at,
-- last_id) is gone from the order, except the tasks in passed. That stays true, so rows are never
-- changed, and any of them may be used; the last is the best. What the snapshot did not see is
-- found by open_task.arrived.
CREATE TABLE queues.task_cursor (
    scope     text COLLATE "C" NOT NULL,
    cursor_no bigint GENERATED ALWAYS AS IDENTITY,
    made_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    server    bigint NOT NULL DEFAULT ((pg_control_system()).system_identifier),
    seen_to   xid8 NOT NULL,
    unseen    xid8[] NOT NULL,
    last_at   timestamptz NOT NULL,
    last_id   bigint NOT NULL,
    passed    bigint[] NOT NULL,
    leases    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, cursor_no)
);
COMMENT ON COLUMN queues.task_cursor.scope IS
    '*: ready tasks, by (scheduled_at, task_id); the name of a type: those of it; ! and names: those of all other '
    'types; @: leases, by leased_until';
COMMENT ON COLUMN queues.task_cursor.server IS 'The server whose transactions are counted';
COMMENT ON COLUMN queues.task_cursor.unseen IS
    'The transactions below seen_to that had not ended, and the one that made the row';
COMMENT ON COLUMN queues.task_cursor.leases IS
    'The last task_lease_id that had been drawn: when another one has been drawn since, the cursor is worth moving';

-- What holds tasks back: a pause, or a cap, of a type or of all tasks together (*). Chapter 18 says
-- how a dequeue takes it into account.
CREATE TABLE queues.task_limit (
    task_type     text COLLATE "C" PRIMARY KEY CONSTRAINT task_limit_is_of_a_type CHECK (task_type = '*' OR task_type ~ '^[a-z][a-z0-9_]{0,62}$'),
    paused_at     timestamptz,
    max_in_flight integer CONSTRAINT task_cap_is_positive CHECK (max_in_flight >= 1),
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE queues.task_limit IS 'Pauses and caps of tasks: `daybook tasks pause`, `resume` and `cap`';
COMMENT ON COLUMN queues.task_limit.task_type IS 'The type; *: all tasks together';
COMMENT ON COLUMN queues.task_limit.paused_at IS 'Since when no dequeue hands any of them out; null: it does';
COMMENT ON COLUMN queues.task_limit.max_in_flight IS 'How many of them may be leased at a time; null: any number';

-- As wake_job_queue: a worker that waits for tasks holds the exclusive lock of queue 3.
CREATE FUNCTION daybook.wake_task_queue() RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    IF daybook.must_wake(3, '-infinity') AND current_setting('daybook.notify', true) IS DISTINCT FROM 'off' THEN
        PERFORM pg_notify('daybook_tasks', '');
    END IF;
END
$$;

-- Fails unless a type may be one, as the table of tasks has it. What is not a name cannot be the
-- scope of a cursor for ready tasks either (decision 9).
CREATE FUNCTION queues.require_task_type(_task_type text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF (_task_type ~ '^[a-z][a-z0-9_]{0,62}$') IS NOT TRUE THEN
        RAISE EXCEPTION 'the type of a task must be a small letter and then small letters, digits or "_", 63 at most, not %', coalesce(quote_literal(_task_type), 'null')
            USING ERRCODE = 'DB010', HINT = 'db_function, email, sms and file_delete are built in';
    END IF;
END
$$;

-- The functions that write are security definer, so that no caller needs a right to the tables, and
-- PUBLIC may call none of them.
CREATE FUNCTION queues.enqueue(_task_type text, _payload jsonb, _scheduled_at timestamptz DEFAULT now()) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
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
COMMENT ON FUNCTION queues.enqueue IS
    'Asks for a task, in the transaction of the caller: a supervisor, a handler or a kickoff function';

-- What an owner calls who has added tasks without queues.enqueue, or has restored a dump into
-- another server. Others wait meanwhile.
CREATE FUNCTION queues.rebuild_open_tasks() RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
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
COMMENT ON FUNCTION queues.rebuild_open_tasks IS
    'Makes queues.open_task anew from the facts, and returns how many tasks are open';

-- Removes tasks, the oldest first, that were completed before a time, with all their facts, and
-- returns them for an archive, which the caller writes in the same transaction.
CREATE FUNCTION queues.remove_completed_tasks(_completed_before timestamptz, _limit integer DEFAULT 1000)
    RETURNS TABLE (task_id bigint, facts jsonb)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
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
COMMENT ON FUNCTION queues.remove_completed_tasks IS
    'Retention: removes completed tasks and returns them with all their facts';

REVOKE ALL ON FUNCTION queues.require_task_type, queues.enqueue, queues.rebuild_open_tasks,
    queues.remove_completed_tasks, daybook.wake_task_queue FROM PUBLIC;

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION queues.remove_completed_tasks, queues.rebuild_open_tasks, queues.enqueue, queues.require_task_type,
    daybook.wake_task_queue;
DROP TABLE queues.task_limit, queues.task_cursor, queues.open_task, queues.error, queues.task_completed,
    queues.task_lease, queues.task;
DROP FUNCTION queues.refuse_change;
-- +goose StatementBegin
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['queues', 'internal'] LOOP
        CONTINUE WHEN obj_description(to_regnamespace(name), 'pg_namespace') IS DISTINCT FROM 'Made by Daybook';
        BEGIN
            EXECUTE format('DROP SCHEMA %I', name);
        EXCEPTION WHEN dependent_objects_still_exist THEN
            NULL; -- the application uses it
        END;
    END LOOP;
END
$$;
-- +goose StatementEnd
