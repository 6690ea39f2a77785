-- Chapter 6: further requests to the accounting queue: to try a document again, to post it anew, to cancel its job; and the three
-- functions that change a document's readiness.
--
-- SQLSTATEs: DB010 the request is invalid, DB011 there is no such job, DB012 the job is completed, DB013 there is no such document,
-- DB014 the document is deleted.

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
    -- The row's lock first: what posts the document holds it until its commit, so the statement after it sees that impact. An
    -- impact's epoch may be above the job's: activating an older rule set again raises it, and a job that was purged begins at 0.
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

-- The functions that change a document's readiness. Each raises the version and enqueues it in the same statement.
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

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.mark_document_deleted, daybook.mark_document_not_ready, daybook.mark_document_ready;
DROP FUNCTION daybook.cancel_accounting_job, daybook.repost_accounting_job, daybook.mark_accounting_job_pending;
