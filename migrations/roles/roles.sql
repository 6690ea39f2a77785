-- Roles for the programs and people that work with Daybook, without a password, which the
-- administrator gives them. Applied by `daybook migrate up --roles`, again and again without harm.
--
-- People (daybook_reader, daybook_operator) find Daybook's tables first, without the schema's name:
-- the operators' queries work as they are printed. Programs (daybook_domain, daybook_worker,
-- daybook_server) find the application's own first: its `documents` is never taken for Daybook's. A
-- search path that an administrator gave a role in this database is left as it is.
--
-- Roles belong to the server. From PostgreSQL 16 on, only a role that has the ADMIN OPTION on them
-- may change them, which the one that makes them gets: another database's owner needs it as well.
-- What is as it should be is not changed, so that a call that has nothing to change needs none.
--
-- No role may change or remove what is posted, and only the worker may add to it. No role may
-- change what an attempt in the log came to, and only the worker says what completed a job; it
-- removes what is old (the job type cleanup).

DO $$
DECLARE
    name text;
    path text;
BEGIN
    FOREACH name IN ARRAY ARRAY['daybook_reader', 'daybook_operator', 'daybook_domain', 'daybook_worker', 'daybook_server'] LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = name) THEN
                EXECUTE format('CREATE ROLE %I LOGIN', name);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL; -- another transaction made it meanwhile
        END;
        path := CASE WHEN name IN ('daybook_reader', 'daybook_operator') THEN 'daybook, public' ELSE 'public, daybook' END;
        IF NOT EXISTS (
               SELECT FROM pg_catalog.pg_db_role_setting s CROSS JOIN LATERAL unnest(s.setconfig) c
                WHERE s.setrole = to_regrole(name) AND s.setdatabase = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
                  AND (c = 'search_path=' || path
                       OR c LIKE 'search_path=%' AND c NOT IN ('search_path=daybook, public', 'search_path=public, daybook'))) THEN
            EXECUTE format('ALTER ROLE %I IN DATABASE %I SET search_path = %s', name, current_database(), path);
        END IF;
    END LOOP;
END
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA daybook FROM PUBLIC, daybook_reader, daybook_operator, daybook_domain, daybook_worker, daybook_server;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA daybook FROM PUBLIC, daybook_reader, daybook_operator, daybook_domain, daybook_worker, daybook_server;
GRANT USAGE ON SCHEMA daybook TO daybook_reader, daybook_operator, daybook_domain, daybook_worker, daybook_server;
GRANT SELECT ON ALL TABLES IN SCHEMA daybook TO daybook_reader, daybook_operator, daybook_domain, daybook_worker, daybook_server;

-- Which tokens there are is no secret; the hash that a token is known by is for the server alone.
REVOKE SELECT ON daybook.api_tokens FROM daybook_reader, daybook_operator, daybook_domain, daybook_worker;
GRANT SELECT (id, org_id, name, scopes, types, requests_per_minute, jobs_per_minute, run_by_get, created_at, last_used_at, revoked_at) ON daybook.api_tokens TO daybook_reader, daybook_operator, daybook_domain, daybook_worker;

-- The same holds for the hash of a callback's token: the roles that may answer a callback look for
-- it.
REVOKE SELECT ON daybook.job_callbacks FROM daybook_reader;
GRANT SELECT (job_id, name, deadline, created_at, called_at, data, awaited, seen) ON daybook.job_callbacks TO daybook_reader;

-- Domain code writes documents and asks for work.
GRANT INSERT, UPDATE ON daybook.documents TO daybook_domain;
-- An import is on record with its documents. Who undoes it removes documents that were never posted
-- by a function that makes sure of that.
GRANT INSERT (org_id, format, files, actor), UPDATE (ended_at, inserted, changed, unchanged) ON daybook.imports TO daybook_domain;
GRANT INSERT, UPDATE (created, former, version, written_at) ON daybook.import_documents TO daybook_domain;
GRANT UPDATE ON daybook.imports, daybook.import_documents TO daybook_operator, daybook_server;
GRANT EXECUTE ON FUNCTION daybook.remove_unposted_document TO daybook_operator, daybook_server;
-- Which documents belong together: people say so, and jobs of workers find it out.
GRANT INSERT, UPDATE, DELETE ON daybook.reconciled TO daybook_operator, daybook_worker, daybook_server;
GRANT INSERT, UPDATE, DELETE ON daybook.rates TO daybook_operator, daybook_server;
GRANT USAGE ON SEQUENCE daybook.reconciled_group_seq TO daybook_operator, daybook_worker, daybook_server;
-- All columns of a job except those that say which attempt completed it.
GRANT INSERT (
    id, created_at, updated_at, org_id, document_id, version_hint, ready_at, state, run_count, last_attempted_at, last_error, last_error_code, priority,
    first_ready_at, finished_at, generation, epoch, cancel_requested, deleted_version, not_ready_count, turn_id, fence, leased_generation, worker,
    attempt_started_at, working, detached, reclaims, capped, traceparent
), UPDATE (
    id, created_at, updated_at, org_id, document_id, version_hint, ready_at, state, run_count, last_attempted_at, last_error, last_error_code, priority,
    first_ready_at, finished_at, generation, epoch, cancel_requested, deleted_version, not_ready_count, turn_id, fence, leased_generation, worker,
    attempt_started_at, working, detached, reclaims, capped, traceparent
) ON daybook.accounting_work_queue TO daybook_domain;
GRANT INSERT (
    id, created_at, updated_at, org_id, type, payload, input_hash, idempotency_key, unique_hash, priority, fleet, state, ready_at, first_ready_at, run_count,
    max_attempts, last_attempted_at, last_error, last_error_code, result, progress, finished_at, generation, cancel_requested, turn_id, fence, leased_generation, worker,
    attempt_started_at, working, detached, reclaims, capped, counted, traceparent, queue, sequence, awaited, edits, min_version, debounce_key, limit_key, limit_scope
), UPDATE (
    id, created_at, updated_at, org_id, type, payload, input_hash, idempotency_key, unique_hash, priority, fleet, state, ready_at, first_ready_at, run_count,
    max_attempts, last_attempted_at, last_error, last_error_code, result, progress, finished_at, generation, cancel_requested, turn_id, fence, leased_generation, worker,
    attempt_started_at, working, detached, reclaims, capped, counted, traceparent, queue, sequence, awaited, edits, min_version, debounce_key, limit_key, limit_scope
) ON daybook.jobs TO daybook_domain;
GRANT INSERT ON daybook.job_links TO daybook_domain;
-- What its jobs wait for; who cancels a job releases what waits for it.
GRANT INSERT, UPDATE, DELETE ON daybook.job_waits, daybook.job_sequences, daybook.job_wait_checks, daybook.job_callbacks, daybook.job_steps TO daybook_domain, daybook_worker;
-- The limits of types and queues by key, and what is left of their rates.
GRANT INSERT, UPDATE, DELETE ON daybook.job_limits, daybook.job_limit_rates TO daybook_domain, daybook_worker;
-- A change that mends the cause of errors puts on record which failed jobs workers are to make
-- pending again.
GRANT INSERT, UPDATE, DELETE ON daybook.accounting_returns TO daybook_domain, daybook_worker;
-- A worker keeps the record of open workflows, and cancels those whose jobs have ended.
GRANT INSERT, UPDATE, DELETE ON daybook.job_workflows TO daybook_worker;
-- It makes the named queues that it enqueues in. A worker makes the record of its fleet, and counts
-- what begins of a queue with a rate.
GRANT INSERT, UPDATE ON daybook.queues TO daybook_domain;
GRANT INSERT ON daybook.fleets TO daybook_domain, daybook_worker;
GRANT INSERT, UPDATE ON daybook.queue_rates TO daybook_worker;
-- Programs that claim jobs by SQL count what begins of an organization with a rate, too.
GRANT INSERT, UPDATE ON daybook.organization_rates TO daybook_domain, daybook_worker;
GRANT DELETE ON daybook.queues TO daybook_operator, daybook_server;
-- It sets the source and the hooks of its organizations; the defaults are the owner's to set.
GRANT INSERT (id, name), UPDATE (name, source, hooks, updated_at) ON daybook.organizations TO daybook_domain;

-- A person decides about what another system has posted; what it has posted is recorded by the
-- owner (daybook adopt), or with the open items that stand for it.
GRANT EXECUTE ON FUNCTION daybook.stand_for_documents TO daybook_domain;
GRANT UPDATE (next, entries, document_version, left_version, updated_at) ON daybook.posted_elsewhere TO daybook_domain;

-- The worker leases and completes, posts and logs. Its handlers ask for more work, and clean up
-- what is finished.
GRANT UPDATE ON daybook.documents, daybook.accounting_work_queue TO daybook_worker;
GRANT INSERT, UPDATE, DELETE ON daybook.jobs TO daybook_worker;
GRANT INSERT ON daybook.job_links TO daybook_worker;
GRANT INSERT, UPDATE, DELETE ON daybook.webhook_deliveries, daybook.job_deliveries, daybook.job_workers, daybook.job_types TO daybook_worker;
GRANT EXECUTE ON FUNCTION daybook.note_job_types TO daybook_worker;
GRANT INSERT, DELETE ON daybook.attempt_log TO daybook_worker;
-- An attempt that comes to the same as the one before it shares its row; what an attempt came to
-- stays.
GRANT UPDATE (times, first_started_at, error, started_at, ended_at, worker, turn_id, fence, workflow_run_id) ON daybook.attempt_log TO daybook_worker;
GRANT INSERT ON daybook.impacts, daybook.entries, daybook.confirmations TO daybook_worker;
GRANT USAGE ON SEQUENCE daybook.fence_seq, daybook.impact_id_seq TO daybook_worker;
-- What it cleans up may go to an archive. Archives are restored, and what is erased is erased, by
-- the owner.
GRANT INSERT ON daybook.archives TO daybook_worker;
-- Daybook's own figures: no statement decides anything by them.
GRANT INSERT, UPDATE, DELETE ON daybook.gauges, daybook.history, daybook.depths TO daybook_worker;

-- An operator does what domain code does, and changes how organizations are worked and what they
-- post by: rules, accounts and periods. So does the server, whose console has the same for holders
-- of a token with the scope operate. An operator alone makes tokens.
GRANT INSERT, UPDATE ON daybook.accounts, daybook.periods TO daybook_operator, daybook_server;
GRANT INSERT ON daybook.rule_sets TO daybook_operator, daybook_server;
-- The database itself writes what is closed and opened; who closes may sign it.
GRANT UPDATE (signature, key_id) ON daybook.closings TO daybook_operator, daybook_server;
GRANT INSERT (currency), UPDATE ON daybook.organizations TO daybook_operator, daybook_server;
GRANT INSERT, UPDATE (revoked_at) ON daybook.api_tokens TO daybook_operator;
GRANT INSERT, UPDATE, DELETE ON daybook.bulk_operations, daybook.bulk_batches TO daybook_operator;
GRANT USAGE ON SEQUENCE daybook.fence_seq TO daybook_operator;

-- The server of the HTTP API does what both do, for holders of a token.
DO $$
BEGIN
    IF NOT pg_has_role('daybook_operator', 'daybook_domain', 'MEMBER') THEN
        GRANT daybook_domain TO daybook_operator;
    END IF;
    IF NOT (pg_has_role('daybook_server', 'daybook_domain', 'MEMBER') AND pg_has_role('daybook_server', 'daybook_worker', 'MEMBER')) THEN
        GRANT daybook_domain, daybook_worker TO daybook_server;
    END IF;
EXCEPTION WHEN unique_violation THEN
    NULL; -- another transaction did it meanwhile
END
$$;
GRANT UPDATE (last_used_at) ON daybook.api_tokens TO daybook_server;
-- Who is signed in to the web console is the server's alone.
REVOKE SELECT ON daybook.console_sessions FROM daybook_reader, daybook_operator, daybook_domain, daybook_worker;
GRANT INSERT, DELETE ON daybook.console_sessions TO daybook_server;
-- The log of actions: each role that may change something may add to it under its own name; no role
-- changes it.
GRANT INSERT (via, action, token_id, actor, org_id, subject, details, outcome, code) ON daybook.actions TO daybook_operator, daybook_domain, daybook_worker, daybook_server;
-- The console revokes tokens, for holders of a token with the scope operate.
GRANT UPDATE (revoked_at) ON daybook.api_tokens TO daybook_server;
GRANT INSERT, UPDATE, DELETE ON daybook.bulk_operations, daybook.bulk_batches TO daybook_server;

-- Tasks (schema queues): all of them read them. Domain code enqueues them. The worker moves what is
-- completed and old to an archive, and works tasks as a member of worker_service_user, which has
-- what that takes. Only operators, and the server for the console, may pause and cap them.
GRANT USAGE ON SCHEMA queues TO daybook_reader, daybook_operator, daybook_domain, daybook_worker, daybook_server;
REVOKE ALL ON queues.task, queues.task_lease, queues.task_completed, queues.error, queues.open_task, queues.task_cursor, queues.task_limit
    FROM PUBLIC, daybook_reader, daybook_operator, daybook_domain, daybook_worker, daybook_server;
GRANT SELECT ON queues.task, queues.task_lease, queues.task_completed, queues.error, queues.open_task, queues.task_cursor, queues.task_limit,
    queues.open_tasks, queues.leased_tasks, queues.stuck_tasks, queues.failed_tasks TO daybook_reader, daybook_operator, daybook_domain, daybook_worker, daybook_server;
GRANT EXECUTE ON FUNCTION queues.enqueue, queues.enqueue_tasks TO daybook_domain;
GRANT EXECUTE ON FUNCTION queues.remove_completed_tasks, queues.reclaim_expired_tasks TO daybook_worker;
GRANT EXECUTE ON FUNCTION queues.limit_tasks TO daybook_operator, daybook_server;
GRANT EXECUTE ON FUNCTION queues.remove_completed_tasks, queues.reclaim_expired_tasks TO daybook_operator;
-- The migration makes that role, unless its owner may not create roles.
DO $$
BEGIN
    IF to_regrole('worker_service_user') IS NULL THEN
        CREATE ROLE worker_service_user LOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL; -- another transaction made it meanwhile
END
$$;
SELECT queues.grant_to_worker();
DO $$
BEGIN
    IF NOT pg_has_role('daybook_worker', 'worker_service_user', 'MEMBER') THEN
        GRANT worker_service_user TO daybook_worker;
    END IF;
EXCEPTION WHEN unique_violation THEN
    NULL; -- another transaction did it meanwhile
END
$$;
