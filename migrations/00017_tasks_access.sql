-- Chapter 17: who may do what with tasks, the runner of functions that tasks name, and tasks to
-- look at.

-- +goose Up
-- +goose StatementBegin

-- Calls the function that a task names, as the caller: function_name is schema.name, its argument
-- and its result are jsonb. The caller must own the function or have been granted it; what PUBLIC
-- may call, PostgreSQL's own functions above all, is not enough.
CREATE FUNCTION internal.run_function(function_name text, payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY INVOKER
AS $$
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
$$;
COMMENT ON FUNCTION internal.run_function IS
    'Calls the function that a task names, with the rights of the caller, who must have been granted it';

-- Calls a function as run_function does, once for each payload, one after another, and begins no call
-- after so long: what has no row was not called. A call that raises an error, or leaves what a
-- deferred constraint refuses, is undone; after an error that may be a neighbour's doing, or that of
-- the limits, it begins no other.
CREATE FUNCTION internal.run_functions(function_name text, payloads jsonb[], traceparents text[], begins_for interval)
    RETURNS TABLE (result jsonb, undone_by text)
    LANGUAGE plpgsql SECURITY INVOKER
AS $$
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
$$;
COMMENT ON FUNCTION internal.run_functions IS
    'Calls a function that tasks name for several of them, in one transaction; a call that fails is undone';

CREATE VIEW queues.open_tasks AS
-- Times are those of the open row, so that the first of many are found without reading the others'
-- tasks.
SELECT o.task_id, t.task_type, t.payload, t.enqueued_at, o.scheduled_at,
       CASE WHEN o.leased_until > clock_timestamp() THEN 'leased' WHEN o.scheduled_at > clock_timestamp() THEN 'waiting' ELSE 'ready' END AS state,
       o.leases, CASE WHEN o.leased_until > clock_timestamp() THEN o.leased_until END AS leased_until,
       (SELECT e.error_message FROM queues.error e
       WHERE e.task_id = o.task_id ORDER BY e.error_id DESC LIMIT 1) AS last_error
  FROM queues.open_task o JOIN queues.task t USING (task_id);
COMMENT ON VIEW queues.open_tasks IS 'Tasks that are not completed: waiting for their time, ready, or leased';

CREATE VIEW queues.leased_tasks AS
SELECT o.task_id, t.task_type, t.payload, t.scheduled_at, o.task_lease_id, l.leased_at, o.leased_until AS expires_at,
    o.leases
  FROM queues.open_task o JOIN queues.task t USING (task_id) JOIN queues.task_lease l USING (task_lease_id)
 WHERE o.leased_until > clock_timestamp();
COMMENT ON VIEW queues.leased_tasks IS 'Tasks that a worker holds now';

CREATE VIEW queues.stuck_tasks AS
SELECT o.task_id, t.task_type, t.payload, t.scheduled_at, o.leases, o.leased_until,
       CASE WHEN EXISTS (SELECT FROM queues.task_limit l WHERE l.task_type IN ('*', o.task_type) AND l.paused_at IS NOT NULL) THEN 'due for five minutes, and paused'
            WHEN o.leases >= 3 THEN 'handed out three times or more, and never completed: its worker ended each time'
            WHEN o.leased_until <= clock_timestamp() THEN 'its lease has expired, and no worker has reclaimed it'
            ELSE 'due for five minutes, and no worker has leased it' END AS reason,
       (SELECT e.error_message FROM queues.error e
       WHERE e.task_id = o.task_id ORDER BY e.error_id DESC LIMIT 1) AS last_error
  FROM queues.open_task o JOIN queues.task t USING (task_id)
 WHERE o.leases >= 3 OR coalesce(o.leased_until, o.scheduled_at) < clock_timestamp() - interval '5 minutes';
COMMENT ON VIEW queues.stuck_tasks IS 'Open tasks that need a person: their workers end, or no worker leases them';

-- One row a task: its last error. The latest come first by ORDER BY last_error_id DESC, which reads
-- no more than it shows.
CREATE VIEW queues.failed_tasks AS
SELECT e.task_id, t.task_type, t.payload, t.scheduled_at,
       (SELECT count(*) FROM queues.error x WHERE x.task_id = e.task_id) AS errors,
       e.error_id AS last_error_id, e.created_at AS last_error_at, e.error_message AS last_error, c.completed_at
  FROM queues.error e
  JOIN queues.task t ON t.task_id = e.task_id
  LEFT JOIN queues.task_completed c ON c.task_id = e.task_id
 WHERE NOT EXISTS (SELECT FROM queues.error n WHERE n.task_id = e.task_id AND n.error_id > e.error_id);
COMMENT ON VIEW queues.failed_tasks IS
    'Tasks of which an error was noted. Whether the process behind one succeeded later, its own tables say';

-- Grants worker_service_user what the worker needs: to lease tasks, to end them, and to call what
-- it was granted. No table, and not queues.enqueue: supervisors and handlers ask for tasks, with
-- the rights of their owner. Says false when there is no such role. A second call does no harm.
CREATE FUNCTION queues.grant_to_worker() RETURNS boolean
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
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
REVOKE ALL ON FUNCTION internal.run_function, internal.run_functions, queues.grant_to_worker FROM PUBLIC;

-- A role belongs to the whole server: it may be there, another database may make it at this moment,
-- and taking this migration back leaves it.
DO $$
BEGIN
    IF to_regrole('worker_service_user') IS NULL THEN
        CREATE ROLE worker_service_user LOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN
        NULL; -- another transaction made it meanwhile
    WHEN insufficient_privilege THEN
        RAISE WARNING 'role worker_service_user was not made: % may not create roles', current_user
            USING HINT = 'have an administrator run CREATE ROLE worker_service_user LOGIN, and then SELECT queues.grant_to_worker()';
END
$$;
SELECT queues.grant_to_worker();

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION queues.grant_to_worker;
DROP VIEW queues.failed_tasks, queues.stuck_tasks, queues.leased_tasks, queues.open_tasks;
DROP FUNCTION internal.run_functions, internal.run_function;
-- The role stays: others may use it. What the chapters before made, it may not use any more.
-- +goose StatementBegin
DO $$
DECLARE
    name text;
BEGIN
    IF to_regrole('worker_service_user') IS NULL THEN
        RETURN;
    END IF;
    REVOKE ALL ON FUNCTION queues.dequeue_next_available_task(), queues.complete_task(bigint), queues.fail_task(bigint, text),
        queues.dequeue_available_tasks(integer, text[]), queues.next_task_due(text[]), queues.renew_task_leases(bigint[], bigint[]),
        queues.give_back_tasks(bigint[], bigint[]), queues.complete_tasks(bigint[], bigint[]), queues.fail_tasks(bigint[], text[]),
        queues.require_table, queues.next_fence, queues.lease_tasks, queues.has_other_tasks, queues.tasks_of_turn,
        queues.turns_with_tasks, queues.renew_tasks_of_turn, queues.mark_tasks_waiting, queues.begin_tasks, queues.hand_tasks_over,
        queues.give_tasks_of_turn_back, queues.reclaim_tasks_of_turns, queues.reclaim_expired_tasks, queues.note_task_types, queues.lock_tasks, queues.end_tasks, queues.task_put_off
        FROM worker_service_user;
    FOREACH name IN ARRAY ARRAY['queues', 'internal'] LOOP
        IF obj_description(to_regnamespace(name), 'pg_namespace') = 'Made by Daybook' THEN
            EXECUTE format('REVOKE USAGE ON SCHEMA %I FROM worker_service_user', name);
        END IF;
    END LOOP;
END
$$;
-- +goose StatementEnd
