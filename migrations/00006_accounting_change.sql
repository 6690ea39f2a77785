-- Chapter 6: further requests to the accounting queue: to try a document again, to post it anew, to
-- cancel its job; and the three functions that change a document's readiness.
--
-- SQLSTATEs: DB010 the request is invalid, DB011 there is no such job, DB012 the job is completed,
-- DB013 there is no such document, DB014 the document is deleted.

-- +goose Up
-- +goose StatementBegin

CREATE FUNCTION daybook.mark_accounting_job_pending(
    org_id        text,
    document_id   text,
    version_hint  bigint DEFAULT NULL,
    delay_seconds double precision DEFAULT 0,
    OUT job_id    text,
    OUT result    text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    job   daybook.accounting_work_queue;
    newer boolean;
    due   timestamptz;
BEGIN
    PERFORM daybook.check_accounting_request(mark_accounting_job_pending.org_id, mark_accounting_job_pending.document_id,
                                             coalesce(mark_accounting_job_pending.version_hint, 0), 2);
    IF delay_seconds IS NULL OR NOT delay_seconds BETWEEN 0 AND 3.2e9 THEN
        RAISE EXCEPTION 'delay must be between 0 seconds and 100 years, not % seconds', delay_seconds USING ERRCODE = 'DB010';
    END IF;
    SELECT * INTO job
      FROM daybook.accounting_work_queue q
     WHERE q.org_id = mark_accounting_job_pending.org_id AND q.document_id = mark_accounting_job_pending.document_id
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no accounting job for document % of organization %', mark_accounting_job_pending.document_id, mark_accounting_job_pending.org_id
            USING ERRCODE = 'DB011', HINT = 'enqueue the document first';
    END IF;

    due := clock_timestamp() + make_interval(secs => delay_seconds);
    newer := coalesce(mark_accounting_job_pending.version_hint, 0) > job.version_hint;
    job_id := job.id;
    result := CASE job.state WHEN 'leased' THEN 'coalesced' WHEN 'pending' THEN 'rescheduled' ELSE 'requeued' END;
    UPDATE daybook.accounting_work_queue q
       SET state            = CASE WHEN q.state = 'leased' THEN q.state ELSE 'pending' END,
           version_hint     = CASE WHEN newer THEN mark_accounting_job_pending.version_hint ELSE q.version_hint END,
           ready_at         = due,
           first_ready_at   = CASE WHEN q.state = 'leased' THEN q.first_ready_at ELSE due END,
           generation       = q.generation + 1,
           traceparent      = coalesce(daybook.traceparent(), q.traceparent),
           cancel_requested = false,
           run_count        = CASE WHEN q.state = 'leased' OR (q.state = 'pending' AND NOT newer) THEN q.run_count ELSE 0 END,
           not_ready_count  = 0,
           last_error       = CASE WHEN q.state IN ('leased', 'pending') AND NOT newer THEN q.last_error END,
           last_error_code  = CASE WHEN q.state IN ('leased', 'pending') AND NOT newer THEN q.last_error_code END,
           finished_at      = NULL,
           updated_at       = clock_timestamp()
     WHERE q.id = job.id;
    IF daybook.must_wake(1, due) THEN
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;
COMMENT ON FUNCTION daybook.mark_accounting_job_pending IS
    'Asks for one more attempt after a delay. result: rescheduled (was pending), requeued, or coalesced (again after the running attempt)';

CREATE FUNCTION daybook.repost_accounting_job(
    org_id      text,
    document_id text,
    OUT job_id  text,
    OUT result  text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    -- The row's lock first: what posts the document holds it until its commit, so the statement
    -- after it sees that impact. An impact's epoch may be above the job's: activating an older rule
    -- set again raises it, and a job that was purged begins at 0.
    PERFORM 1 FROM daybook.accounting_work_queue q
      WHERE q.org_id = repost_accounting_job.org_id AND q.document_id = repost_accounting_job.document_id
        FOR NO KEY UPDATE;
    UPDATE daybook.accounting_work_queue q
       SET epoch = greatest(q.epoch, (SELECT max(i.epoch) FROM daybook.impacts i WHERE i.org_id = q.org_id AND i.document_id = q.document_id)) + 1
     WHERE q.org_id = repost_accounting_job.org_id AND q.document_id = repost_accounting_job.document_id;
    SELECT m.job_id, m.result INTO job_id, result
      FROM daybook.mark_accounting_job_pending(repost_accounting_job.org_id, repost_accounting_job.document_id) m;
END
$$;
COMMENT ON FUNCTION daybook.repost_accounting_job IS
    'Asks for a document to be reversed and posted anew, though neither it nor the rules changed. result: as mark_accounting_job_pending';

CREATE FUNCTION daybook.cancel_accounting_job(
    org_id      text,
    document_id text,
    OUT job_id  text,
    OUT result  text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    job daybook.accounting_work_queue;
BEGIN
    PERFORM daybook.check_accounting_request(cancel_accounting_job.org_id, cancel_accounting_job.document_id, 0, 2);
    SELECT * INTO job
      FROM daybook.accounting_work_queue q
     WHERE q.org_id = cancel_accounting_job.org_id AND q.document_id = cancel_accounting_job.document_id
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no accounting job for document % of organization %', cancel_accounting_job.document_id, cancel_accounting_job.org_id
            USING ERRCODE = 'DB011';
    END IF;

    job_id := job.id;
    CASE job.state
        WHEN 'completed' THEN
            RAISE EXCEPTION 'the accounting job for document % of organization % is completed', job.document_id, job.org_id
                USING ERRCODE = 'DB012', HINT = 'mark the document not ready or deleted to take its posting back';
        WHEN 'cancelled' THEN
            result := 'unchanged';
        WHEN 'leased' THEN
            result := 'cancelling';
            UPDATE daybook.accounting_work_queue q
               SET cancel_requested = true, generation = q.generation + 1, updated_at = clock_timestamp()
             WHERE q.id = job.id;
        ELSE
            result := 'cancelled';
            UPDATE daybook.accounting_work_queue q
               SET state = 'cancelled', generation = q.generation + 1, reclaims = 0,
                   finished_at = clock_timestamp(), updated_at = clock_timestamp()
             WHERE q.id = job.id;
    END CASE;
END
$$;
COMMENT ON FUNCTION daybook.cancel_accounting_job IS
    'Asks that a document not be posted. result: cancelled, cancelling (after the running attempt, which commits nothing) or unchanged';

-- The functions that change a document's readiness. Each raises the version and enqueues it in the
-- same statement.
CREATE FUNCTION daybook.mark_document_ready(
    org_id      text,
    document_id text,
    priority    integer DEFAULT NULL,
    OUT version bigint,
    OUT job_id  text,
    OUT result  text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    deleted boolean;
BEGIN
    PERFORM daybook.check_accounting_request(mark_document_ready.org_id, mark_document_ready.document_id, 0, coalesce(mark_document_ready.priority, 2));
    UPDATE daybook.documents d
       SET accounting_ready_at = clock_timestamp(), accounting_ready_version = d.accounting_ready_version + 1, updated_at = clock_timestamp()
     WHERE d.org_id = mark_document_ready.org_id AND d.id = mark_document_ready.document_id
    RETURNING d.accounting_ready_version, d.deleted_at IS NOT NULL INTO version, deleted;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'organization % has no document %', mark_document_ready.org_id, mark_document_ready.document_id
            USING ERRCODE = 'DB013', HINT = 'write the document in the same transaction before it is marked ready';
    END IF;
    IF deleted THEN
        RAISE EXCEPTION 'document % of organization % is deleted', mark_document_ready.document_id, mark_document_ready.org_id
            USING ERRCODE = 'DB014', HINT = 'set deleted_at to null before the document is marked ready';
    END IF;
    SELECT e.job_id, e.result INTO job_id, result
      FROM daybook.enqueue_accounting_job(mark_document_ready.org_id, mark_document_ready.document_id, version, NULL, mark_document_ready.priority) e;
END
$$;

CREATE FUNCTION daybook.mark_document_not_ready(
    org_id      text,
    document_id text,
    OUT version bigint,
    OUT job_id  text,
    OUT result  text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM daybook.check_accounting_request(mark_document_not_ready.org_id, mark_document_not_ready.document_id, 0, 2);
    UPDATE daybook.documents d
       SET accounting_ready_at = NULL, accounting_ready_version = d.accounting_ready_version + 1, updated_at = clock_timestamp()
     WHERE d.org_id = mark_document_not_ready.org_id AND d.id = mark_document_not_ready.document_id
    RETURNING d.accounting_ready_version INTO version;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'organization % has no document %', mark_document_not_ready.org_id, mark_document_not_ready.document_id
            USING ERRCODE = 'DB013';
    END IF;
    SELECT e.job_id, e.result INTO job_id, result
      FROM daybook.enqueue_accounting_job(mark_document_not_ready.org_id, mark_document_not_ready.document_id, version) e;
END
$$;

CREATE FUNCTION daybook.mark_document_deleted(
    org_id      text,
    document_id text,
    OUT version bigint,
    OUT job_id  text,
    OUT result  text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM daybook.check_accounting_request(mark_document_deleted.org_id, mark_document_deleted.document_id, 0, 2);
    -- A second deletion changes nothing.
    UPDATE daybook.documents d
       SET accounting_ready_version = d.accounting_ready_version + CASE WHEN d.deleted_at IS NULL THEN 1 ELSE 0 END,
           deleted_at = coalesce(d.deleted_at, clock_timestamp()), updated_at = CASE WHEN d.deleted_at IS NULL THEN clock_timestamp() ELSE d.updated_at END
     WHERE d.org_id = mark_document_deleted.org_id AND d.id = mark_document_deleted.document_id
    RETURNING d.accounting_ready_version INTO version;
    IF NOT FOUND THEN
        -- The row may have been removed already: then the job knows the version.
        SELECT q.version_hint + CASE WHEN q.deleted_version = q.version_hint THEN 0 ELSE 1 END INTO version
          FROM daybook.accounting_work_queue q
         WHERE q.org_id = mark_document_deleted.org_id AND q.document_id = mark_document_deleted.document_id
           FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'organization % has no document %', mark_document_deleted.org_id, mark_document_deleted.document_id
                USING ERRCODE = 'DB013';
        END IF;
    END IF;
    SELECT e.job_id, e.result INTO job_id, result
      FROM daybook.enqueue_accounting_job(mark_document_deleted.org_id, mark_document_deleted.document_id, version) e;
    -- Recorded in the job, so that the row may be removed before a worker has read it.
    UPDATE daybook.accounting_work_queue q
       SET deleted_version = mark_document_deleted.version
     WHERE q.id = mark_document_deleted.job_id AND q.version_hint = mark_document_deleted.version
       AND q.deleted_version IS DISTINCT FROM mark_document_deleted.version;
END
$$;

-- Failed jobs are pending again when the cause of their error is gone: the rules, an account, a
-- closed period, the source. The change that mends the cause returns the first of them; the others
-- are on record here, and workers return them, a batch a transaction. So such a change holds few
-- rows, and the configuration only for a moment, however many jobs have failed for it.
CREATE TABLE daybook.accounting_returns (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id text COLLATE "C" NOT NULL,
    code   text NOT NULL,
    up_to  timestamptz NOT NULL
);
COMMENT ON TABLE daybook.accounting_returns IS
    'Failed jobs that workers make pending again, because the cause of their error is gone';
COMMENT ON COLUMN daybook.accounting_returns.up_to IS
    'When the last of them failed: they are returned in the order of that, the last ones first';

-- Makes up to batch of an organization's jobs that failed with a code, the last ones of those up to
-- a time, pending again, their attempts reset. Afterwards up_to is when the last of them failed. A
-- row that another transaction is changing is left to it: it is not failed any more.
CREATE FUNCTION daybook.return_failed_batch(org_id text, code text, INOUT up_to timestamptz, batch integer,
    OUT returned integer)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    ids text[];
BEGIN
    -- The bounds and the order are those of one index (see ledgerdb.FailedDocuments).
    SELECT array_agg(f.id), min(f.updated_at) INTO ids, up_to
      FROM (SELECT q.id, q.updated_at
              FROM daybook.accounting_work_queue q
             WHERE q.org_id = org_id AND q.state = 'failed' AND q.last_error_code >= code AND q.last_error_code <= code AND q.updated_at <= up_to
             ORDER BY q.last_error_code, q.updated_at DESC, q.id
             LIMIT batch
               FOR NO KEY UPDATE SKIP LOCKED) f;
    UPDATE daybook.accounting_work_queue q
       SET state = 'pending', ready_at = clock_timestamp(), first_ready_at = clock_timestamp(), run_count = 0, not_ready_count = 0,
           generation = q.generation + 1, finished_at = NULL, updated_at = clock_timestamp()
     WHERE q.id = ANY (ids);
    GET DIAGNOSTICS returned = ROW_COUNT;
END
$$;

-- Returns the jobs of an organization that failed with one of the codes: 1,000 at once, the others
-- by way of return_more_jobs. Null: those of the organizations that name no source. Returns how
-- many are pending again, or will be.
CREATE FUNCTION daybook.return_failed_jobs(org_id text, codes text[]) RETURNS integer
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    room  integer := 1000;
    total integer := 0;
    done  record;
    asked record;
BEGIN
    FOR asked IN
        SELECT q.org_id, q.last_error_code AS code, count(*)::integer AS jobs, max(q.updated_at) AS up_to
          FROM daybook.accounting_work_queue q
         WHERE q.org_id = org_id AND q.state = 'failed' AND q.last_error_code = ANY (codes)
         GROUP BY q.org_id, q.last_error_code
         UNION ALL
        SELECT q.org_id, q.last_error_code, count(*), max(q.updated_at)
          FROM daybook.accounting_work_queue q
         WHERE org_id IS NULL AND q.state = 'failed' AND q.last_error_code = ANY (codes)
           AND NOT EXISTS (SELECT FROM daybook.organizations o WHERE o.id = q.org_id AND o.source IS NOT NULL)
         GROUP BY q.org_id, q.last_error_code
    LOOP
        SELECT b.up_to, b.returned INTO done FROM daybook.return_failed_batch(asked.org_id, asked.code, asked.up_to, room) b;
        IF done.returned < room THEN
            total := total + done.returned;
        ELSE
            INSERT INTO daybook.accounting_returns (org_id, code, up_to) VALUES (asked.org_id, asked.code, coalesce(done.up_to, asked.up_to));
            total := total + asked.jobs;
        END IF;
        room := room - done.returned;
    END LOOP;
    IF total > 0 THEN
        PERFORM daybook.wake_accounting_queue();
    END IF;
    RETURN total;
END
$$;

-- Returns up to batch jobs of what is on record. Returns how much was done; 0: nothing is left, or
-- another transaction does it. Workers call it.
CREATE FUNCTION daybook.return_more_jobs(batch integer DEFAULT 1000) RETURNS integer
    LANGUAGE plpgsql
AS $$
DECLARE
    asked daybook.accounting_returns;
    done  record;
BEGIN
    SELECT * INTO asked FROM daybook.accounting_returns r ORDER BY r.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    SELECT b.up_to, b.returned INTO done FROM daybook.return_failed_batch(asked.org_id, asked.code, asked.up_to, batch) b;
    IF done.returned < batch THEN
        DELETE FROM daybook.accounting_returns r WHERE r.id = asked.id;
    ELSE
        UPDATE daybook.accounting_returns r SET up_to = done.up_to WHERE r.id = asked.id;
    END IF;
    PERFORM daybook.wake_accounting_queue();
    RETURN done.returned + 1;
END
$$;
COMMENT ON FUNCTION daybook.return_more_jobs IS
    'Makes failed jobs pending again whose cause is gone, where the change that mended it left them to workers. '
    'Workers call it';

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.return_more_jobs, daybook.return_failed_jobs, daybook.return_failed_batch;
DROP TABLE daybook.accounting_returns;
DROP FUNCTION daybook.mark_document_deleted, daybook.mark_document_not_ready, daybook.mark_document_ready;
DROP FUNCTION daybook.cancel_accounting_job, daybook.repost_accounting_job, daybook.mark_accounting_job_pending;
