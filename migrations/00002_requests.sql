-- What domain code may ask of the accounting queue. The Go package queue calls these functions, and so may any other
-- language: there is one truth about what each request does to each state (docs/states.md).
--
-- SQLSTATEs of our own: DB010 the request is invalid, DB011 there is no such job, DB012 the job is completed,
-- DB013 there is no such document, DB014 the document is deleted.

-- +goose Up
-- +goose StatementBegin

-- Wakes a waiting worker at commit, for what is due within a minute: who waits looks at least that often, and learns then when the next
-- job is due. NOTIFY takes a global lock at commit, so it is sent only while a worker waits: a
-- waiter holds the exclusive lock, and then the shared one is not to be had. PostgreSQL refuses PREPARE TRANSACTION after a
-- NOTIFY: a transaction that is to be prepared sets daybook.notify to off, and its work is found at the poll interval.
CREATE FUNCTION daybook.wake_accounting_queue() RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock_shared(1684109666, 1) AND current_setting('daybook.notify', true) IS DISTINCT FROM 'off' THEN
        PERFORM pg_notify('daybook_accounting', '');
    END IF;
END
$$;

CREATE FUNCTION daybook.check_accounting_request(
    org_id text, document_id text, version_hint bigint, priority integer, ready_at timestamptz DEFAULT NULL
) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF coalesce(org_id, '') = '' OR coalesce(document_id, '') = '' THEN
        RAISE EXCEPTION 'organization id and document id must not be empty' USING ERRCODE = 'DB010';
    END IF;
    IF octet_length(org_id) > 255 OR octet_length(document_id) > 255 THEN
        RAISE EXCEPTION 'organization id and document id must not be longer than 255 bytes' USING ERRCODE = 'DB010';
    END IF;
    IF version_hint IS NULL OR version_hint < 0 THEN
        RAISE EXCEPTION 'version must not be negative or null' USING ERRCODE = 'DB010';
    END IF;
    IF priority NOT BETWEEN 1 AND 3 THEN
        RAISE EXCEPTION 'priority must be 1 (high), 2 (normal) or 3 (low), not %', priority USING ERRCODE = 'DB010';
    END IF;
    IF ready_at > to_timestamp(253402300799) THEN
        RAISE EXCEPTION 'ready_at must not be infinity or after the year 9999' USING ERRCODE = 'DB010', HINT = 'enqueue the document when it is to be posted';
    END IF;
END
$$;

CREATE FUNCTION daybook.enqueue_accounting_job(
    org_id       text,
    document_id  text,
    version_hint bigint,
    ready_at     timestamptz DEFAULT NULL,
    priority     integer DEFAULT NULL,
    OUT job_id   text,
    OUT result   text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    version  CONSTANT bigint := enqueue_accounting_job.version_hint;
    prio     CONSTANT integer := coalesce(enqueue_accounting_job.priority, 2);
    due      timestamptz;
    job      daybook.accounting_work_queue;
BEGIN
    PERFORM daybook.check_accounting_request(enqueue_accounting_job.org_id, enqueue_accounting_job.document_id, version, prio,
                                             enqueue_accounting_job.ready_at);
    due := greatest(coalesce(enqueue_accounting_job.ready_at, '-infinity'), clock_timestamp());

    -- A purge may remove the row between the two statements: then the insert is tried again.
    LOOP
        INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, ready_at, first_ready_at, priority)
        VALUES (enqueue_accounting_job.org_id, enqueue_accounting_job.document_id, version, due, due, prio)
        ON CONFLICT (org_id, document_id) DO NOTHING
        RETURNING id INTO job_id;
        IF FOUND THEN
            result := 'enqueued';
            EXIT;
        END IF;

        SELECT * INTO job
          FROM daybook.accounting_work_queue q
         WHERE q.org_id = enqueue_accounting_job.org_id AND q.document_id = enqueue_accounting_job.document_id
           FOR NO KEY UPDATE;
        CONTINUE WHEN NOT FOUND;

        job_id := job.id;
        due := greatest(due, clock_timestamp());
        IF job.state = 'leased' AND (version > job.version_hint OR (version = job.version_hint AND job.cancel_requested)) THEN
            -- The running attempt goes on; its settlement sees that the generation moved and makes the job pending again.
            -- What was asked for before, since the job was leased, keeps its time when that is the earlier one.
            result := 'coalesced';
            UPDATE daybook.accounting_work_queue q
               SET version_hint = version, priority = least(q.priority, prio), generation = q.generation + 1,
                   ready_at = CASE WHEN q.generation = q.leased_generation OR q.cancel_requested THEN due ELSE least(q.ready_at, due) END,
                   cancel_requested = false, updated_at = clock_timestamp()
             WHERE q.id = job.id;
        ELSIF job.state = 'pending' AND version > job.version_hint THEN
            result := 'coalesced';
            due := greatest(least(job.ready_at, due), clock_timestamp());
            UPDATE daybook.accounting_work_queue q
               SET version_hint = version, ready_at = due, first_ready_at = due, priority = least(q.priority, prio), generation = q.generation + 1,
                   run_count = 0, not_ready_count = 0, takeovers = 0, last_error = NULL, last_error_code = NULL,
                   updated_at = clock_timestamp()
             WHERE q.id = job.id;
        ELSIF job.state IN ('completed', 'failed', 'cancelled')
              AND (version > job.version_hint OR (version = job.version_hint AND job.state = 'cancelled')) THEN
            result := 'requeued';
            UPDATE daybook.accounting_work_queue q
               SET state = 'pending', version_hint = version, ready_at = due, first_ready_at = due, priority = prio,
                   generation = q.generation + 1, run_count = 0, not_ready_count = 0, takeovers = 0,
                   last_error = NULL, last_error_code = NULL, finished_at = NULL, updated_at = clock_timestamp()
             WHERE q.id = job.id;
        ELSE
            result := 'unchanged';
            IF job.state = 'pending' AND version = job.version_hint AND prio < job.priority THEN
                -- In the order of its new priority it is the newest: a worker's mark may have passed the time that it had.
                UPDATE daybook.accounting_work_queue q
                   SET priority = prio, ready_at = greatest(q.ready_at, clock_timestamp()), updated_at = clock_timestamp()
                 WHERE q.id = job.id;
            END IF;
        END IF;
        EXIT;
    END LOOP;

    IF result <> 'unchanged' AND due <= clock_timestamp() + interval '1 minute' THEN
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;
COMMENT ON FUNCTION daybook.enqueue_accounting_job IS
    'Asks for a document version to be posted. result: enqueued, coalesced, requeued or unchanged';

-- What enqueue_accounting_jobs asks for, in the order of the keys. With bulk, a run of documents that have no job yet is one insert,
-- which fails if another transaction has made one of them since.
CREATE FUNCTION daybook.enqueue_accounting_runs(
    org_ids       text[],
    document_ids  text[],
    version_hints bigint[],
    ready_ats     timestamptz[],
    priorities    integer[],
    bulk          boolean
) RETURNS TABLE (ordinal integer, job_id text, result text)
    LANGUAGE plpgsql
    -- Rows are looked up by their keys, whatever the planner believes of the table's size.
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    run record;
    req record;
    -- Whether one of the rows that were inserted in bulk is due now.
    now_due boolean := false;
BEGIN
    FOR run IN
        WITH r AS (
            SELECT r.o COLLATE "C" AS o, r.d COLLATE "C" AS d, r.v, r.t, r.p, r.n::integer AS n,
                   NOT bulk OR q.id IS NOT NULL OR row_number() OVER (PARTITION BY r.o COLLATE "C", r.d COLLATE "C" ORDER BY r.n) > 1 AS known
              FROM unnest(org_ids, document_ids, version_hints, ready_ats, priorities) WITH ORDINALITY AS r (o, d, v, t, p, n)
              LEFT JOIN daybook.accounting_work_queue q ON q.org_id = r.o AND q.document_id = r.d
        ), placed AS (
            SELECT r.*, row_number() OVER (ORDER BY r.o, r.d, r.n) AS place,
                   row_number() OVER (ORDER BY r.o, r.d, r.n) - row_number() OVER (PARTITION BY r.known ORDER BY r.o, r.d, r.n) AS run
              FROM r
        )
        SELECT known, array_agg(o ORDER BY place) AS orgs, array_agg(d ORDER BY place) AS docs, array_agg(v ORDER BY place) AS versions,
               array_agg(t ORDER BY place) AS times, array_agg(p ORDER BY place) AS prios, array_agg(n ORDER BY place) AS ordinals
          FROM placed
         GROUP BY known, run
         ORDER BY min(place)
    LOOP
        IF NOT run.known THEN
            RETURN QUERY
            WITH r AS (
                SELECT daybook.new_id() AS id, r.o, r.d, r.v, greatest(coalesce(r.t, '-infinity'), clock_timestamp()) AS due, coalesce(r.p, 2)::smallint AS p, r.n, r.place
                  FROM unnest(run.orgs, run.docs, run.versions, run.times, run.prios, run.ordinals) WITH ORDINALITY AS r (o, d, v, t, p, n, place)
            ), ins AS (
                INSERT INTO daybook.accounting_work_queue (id, org_id, document_id, version_hint, ready_at, first_ready_at, priority)
                SELECT r.id, r.o, r.d, r.v, r.due, r.due, r.p FROM r ORDER BY r.place
            )
            SELECT r.n, r.id, 'enqueued'::text FROM r;
            now_due := now_due OR EXISTS (SELECT 1 FROM unnest(run.times) AS r (t) WHERE t IS NULL OR t <= clock_timestamp() + interval '1 minute');
        ELSE
            FOR req IN
                SELECT * FROM unnest(run.orgs, run.docs, run.versions, run.times, run.prios, run.ordinals) AS r (o, d, v, t, p, n)
            LOOP
                ordinal := req.n;
                SELECT e.job_id, e.result INTO job_id, result
                  FROM daybook.enqueue_accounting_job(req.o, req.d, req.v, req.t, req.p) e;
                RETURN NEXT;
            END LOOP;
        END IF;
    END LOOP;
    IF now_due THEN
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;

-- Many requests at once. They are made in the order (organization, document) of bytes, so that two callers who both keep to it
-- cannot deadlock. ready_ats and priorities may be null (now, normal) or as long as the others. ordinal is the position in the
-- arrays, from 1.
CREATE FUNCTION daybook.enqueue_accounting_jobs(
    org_ids       text[],
    document_ids  text[],
    version_hints bigint[],
    ready_ats     timestamptz[] DEFAULT NULL,
    priorities    integer[] DEFAULT NULL
) RETURNS TABLE (ordinal integer, job_id text, result text)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    total CONSTANT integer := cardinality(org_ids);
    bad   record;
BEGIN
    IF cardinality(document_ids) IS DISTINCT FROM total OR cardinality(version_hints) IS DISTINCT FROM total
       OR coalesce(cardinality(ready_ats), total) IS DISTINCT FROM total
       OR coalesce(cardinality(priorities), total) IS DISTINCT FROM total THEN
        RAISE EXCEPTION 'org_ids, document_ids, version_hints, ready_ats and priorities must be equally long' USING ERRCODE = 'DB010';
    END IF;
    -- The set as a whole is looked at once; only a set with a bad row pays for finding out which.
    IF EXISTS (SELECT 1
                 FROM unnest(org_ids, document_ids, version_hints, priorities, ready_ats) AS r (o, d, v, p, t)
                WHERE coalesce(o, '') = '' OR coalesce(d, '') = '' OR octet_length(o) > 255 OR octet_length(d) > 255
                   OR v IS NULL OR v < 0 OR p NOT BETWEEN 1 AND 3 OR t > to_timestamp(253402300799)) THEN
        FOR bad IN SELECT * FROM unnest(org_ids, document_ids, version_hints, priorities, ready_ats) AS r (o, d, v, p, t) LOOP
            PERFORM daybook.check_accounting_request(bad.o, bad.d, bad.v, bad.p, bad.t);
        END LOOP;
    END IF;

    -- In bulk, unless another transaction enqueues one of the new documents meanwhile: then all are made one by one.
    BEGIN
        RETURN QUERY SELECT * FROM daybook.enqueue_accounting_runs(org_ids, document_ids, version_hints, ready_ats, priorities, true);
    EXCEPTION WHEN unique_violation THEN
        RETURN QUERY SELECT * FROM daybook.enqueue_accounting_runs(org_ids, document_ids, version_hints, ready_ats, priorities, false);
    END;
END
$$;

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
           cancel_requested = false,
           run_count        = CASE WHEN q.state = 'leased' OR (q.state = 'pending' AND NOT newer) THEN q.run_count ELSE 0 END,
           not_ready_count  = 0,
           last_error       = CASE WHEN q.state IN ('leased', 'pending') AND NOT newer THEN q.last_error END,
           last_error_code  = CASE WHEN q.state IN ('leased', 'pending') AND NOT newer THEN q.last_error_code END,
           finished_at      = NULL,
           updated_at       = clock_timestamp()
     WHERE q.id = job.id;
    IF delay_seconds <= 60 THEN
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;
COMMENT ON FUNCTION daybook.mark_accounting_job_pending IS
    'Asks for one more attempt after a delay. result: rescheduled (was pending), requeued, or coalesced (again after the running attempt)';

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
               SET state = 'cancelled', generation = q.generation + 1, takeovers = 0,
                   finished_at = clock_timestamp(), updated_at = clock_timestamp()
             WHERE q.id = job.id;
    END CASE;
END
$$;
COMMENT ON FUNCTION daybook.cancel_accounting_job IS
    'Asks that a document not be posted. result: cancelled, cancelling (after the running attempt, which commits nothing) or unchanged';

-- The three ways in which a document's readiness changes. Each raises the version and enqueues it in the same statement.
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
    -- Deleting twice is one deletion.
    UPDATE daybook.documents d
       SET accounting_ready_version = d.accounting_ready_version + CASE WHEN d.deleted_at IS NULL THEN 1 ELSE 0 END,
           deleted_at = coalesce(d.deleted_at, clock_timestamp()), updated_at = clock_timestamp()
     WHERE d.org_id = mark_document_deleted.org_id AND d.id = mark_document_deleted.document_id
    RETURNING d.accounting_ready_version INTO version;
    IF NOT FOUND THEN
        -- A row that was removed already is deleted as well, if the caller says so: its job knows the version.
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
    -- On record beside the job, so that the row may be removed before a worker has looked at it.
    UPDATE daybook.accounting_work_queue q
       SET deleted_version = mark_document_deleted.version
     WHERE q.id = mark_document_deleted.job_id AND q.version_hint = mark_document_deleted.version
       AND q.deleted_version IS DISTINCT FROM mark_document_deleted.version;
END
$$;

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.mark_document_deleted, daybook.mark_document_not_ready, daybook.mark_document_ready;
DROP FUNCTION daybook.cancel_accounting_job, daybook.mark_accounting_job_pending;
DROP FUNCTION daybook.enqueue_accounting_jobs, daybook.enqueue_accounting_runs, daybook.enqueue_accounting_job, daybook.check_accounting_request, daybook.wake_accounting_queue;
