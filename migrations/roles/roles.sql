-- Roles for the three who work with Daybook, without a password, which the administrator gives them. Applied by
-- `daybook migrate up --roles`, again and again without harm. Their search path finds Daybook's tables without the schema's
-- name, so that the operators' queries work as they are printed; the application's own roles keep theirs.
--
-- Nobody may change or remove what is posted or logged, and only the worker may add to it.

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['daybook_reader', 'daybook_domain', 'daybook_worker'] LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = name) THEN
                EXECUTE format('CREATE ROLE %I LOGIN', name);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL; -- somebody else made it meanwhile
        END;
        EXECUTE format('ALTER ROLE %I IN DATABASE %I SET search_path = daybook, public', name, current_database());
    END LOOP;
END
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA daybook FROM PUBLIC, daybook_reader, daybook_domain, daybook_worker;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA daybook FROM PUBLIC, daybook_reader, daybook_domain, daybook_worker;
GRANT USAGE ON SCHEMA daybook TO daybook_reader, daybook_domain, daybook_worker;
GRANT SELECT ON ALL TABLES IN SCHEMA daybook TO daybook_reader, daybook_domain, daybook_worker;

-- Domain code writes documents and asks for work.
GRANT INSERT, UPDATE ON daybook.documents, daybook.accounting_work_queue TO daybook_domain;

-- The worker leases and settles, posts and logs.
GRANT UPDATE ON daybook.documents, daybook.accounting_work_queue TO daybook_worker;
GRANT INSERT ON daybook.attempts, daybook.impacts, daybook.entries, daybook.confirmations TO daybook_worker;
GRANT USAGE ON SEQUENCE daybook.fence_seq, daybook.impact_id_seq TO daybook_worker;
