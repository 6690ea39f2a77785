-- Chapter 5: enqueuing accounting jobs. The Go package queue calls these functions, and programs in
-- other languages may too. docs/states.md says what a request does to a job in each state.
--
-- SQLSTATE: DB010 the request is invalid.

-- +goose Up
-- +goose StatementBegin

-- Raises DB010 when a request is invalid. A null priority or ready_at is valid.
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
    IF ready_at > '9999-12-31 23:59:59+00' THEN
        RAISE EXCEPTION 'ready_at must not be infinity or after the year 9999' USING ERRCODE = 'DB010', HINT = 'enqueue the document when it is to be posted';
    END IF;
END
$$;

-- Reports whether a request is invalid; only then is check_accounting_request called, which says
-- why. One expression, so that the planner can inline it.
CREATE FUNCTION daybook.accounting_request_in_doubt(
    org_id text, document_id text, version_hint bigint, priority integer, ready_at timestamptz
) RETURNS boolean
    LANGUAGE sql IMMUTABLE
AS $$
    SELECT (octet_length(org_id) BETWEEN 1 AND 255 AND octet_length(document_id) BETWEEN 1 AND 255 AND version_hint >= 0
            AND (priority IS NULL OR priority BETWEEN 1 AND 3) AND (ready_at IS NULL OR ready_at <= '9999-12-31 23:59:59+00')) IS NOT TRUE
$$;

-- ready_at: null or in the past is now. priority: null is 2 (normal). A version below the job's
-- changes nothing.
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
    due      timestamptz := greatest(coalesce(enqueue_accounting_job.ready_at, '-infinity'), clock_timestamp());
    job      daybook.accounting_work_queue;
BEGIN
    IF daybook.accounting_request_in_doubt(enqueue_accounting_job.org_id, enqueue_accounting_job.document_id, version, prio, enqueue_accounting_job.ready_at) THEN
        PERFORM daybook.check_accounting_request(enqueue_accounting_job.org_id, enqueue_accounting_job.document_id, version, prio,
                                                 enqueue_accounting_job.ready_at);
    END IF;

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
            -- The running attempt goes on; its completion sees that the generation has grown and
            -- makes the job pending again. Of several requests since the job was leased, the
            -- earliest time counts.
            result := 'coalesced';
            UPDATE daybook.accounting_work_queue q
               SET version_hint = version, priority = least(q.priority, prio), generation = q.generation + 1,
                   ready_at = CASE WHEN q.generation = q.leased_generation OR q.cancel_requested THEN due ELSE least(q.ready_at, due) END,
                   traceparent = coalesce(daybook.traceparent(), q.traceparent), cancel_requested = false, updated_at = clock_timestamp()
             WHERE q.id = job.id;
        ELSIF job.state = 'pending' AND version > job.version_hint THEN
            result := 'coalesced';
            due := greatest(least(job.ready_at, due), clock_timestamp());
            UPDATE daybook.accounting_work_queue q
               SET version_hint = version, ready_at = due, first_ready_at = due, priority = least(q.priority, prio), generation = q.generation + 1,
                   run_count = 0, not_ready_count = 0, reclaims = 0, last_error = NULL, last_error_code = NULL,
                   traceparent = coalesce(daybook.traceparent(), q.traceparent), updated_at = clock_timestamp()
             WHERE q.id = job.id;
        ELSIF job.state IN ('completed', 'failed', 'cancelled')
              AND (version > job.version_hint OR (version = job.version_hint AND job.state = 'cancelled')) THEN
            result := 'requeued';
            UPDATE daybook.accounting_work_queue q
               SET state = 'pending', version_hint = version, ready_at = due, first_ready_at = due, priority = prio,
                   generation = q.generation + 1, run_count = 0, not_ready_count = 0, reclaims = 0,
                   last_error = NULL, last_error_code = NULL, finished_at = NULL, traceparent = daybook.traceparent(), updated_at = clock_timestamp()
             WHERE q.id = job.id;
        ELSE
            result := 'unchanged';
            IF job.state = 'pending' AND version = job.version_hint AND prio < job.priority THEN
                -- A worker's cursor of the new priority may have passed the job's time already: the
                -- time of this request is ahead of it.
                UPDATE daybook.accounting_work_queue q
                   SET priority = prio, ready_at = greatest(q.ready_at, clock_timestamp()), updated_at = clock_timestamp()
                 WHERE q.id = job.id;
            END IF;
        END IF;
        EXIT;
    END LOOP;

    IF result <> 'unchanged' AND daybook.must_wake(1, due) THEN
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;
COMMENT ON FUNCTION daybook.enqueue_accounting_job IS
    'Asks for a document version to be posted. result: enqueued, coalesced, requeued or unchanged';

-- Makes the requests of enqueue_accounting_jobs in the order of their keys. With bulk, neighbours
-- in that order that have no job yet are one INSERT, which raises unique_violation if another
-- transaction has enqueued one of them since.
CREATE FUNCTION daybook.enqueue_accounting_runs(
    org_ids       text[],
    document_ids  text[],
    version_hints bigint[],
    ready_ats     timestamptz[],
    priorities    integer[],
    bulk          boolean
) RETURNS TABLE (ordinal integer, job_id text, result text)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    run record;
    req record;
    -- The earliest time of the rows that were inserted in bulk.
    first_due timestamptz := 'infinity';
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
            first_due := least(first_due, (SELECT min(coalesce(t, '-infinity')) FROM unnest(run.times) AS t));
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
    IF daybook.must_wake(1, first_due) THEN
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;

-- Many requests at once. They are made in the order (organization, document) of bytes, so that two
-- callers that both keep to it cannot deadlock. ready_ats and priorities may be null (now, normal)
-- or as long as the others. ordinal is the position in the arrays, from 1.
CREATE FUNCTION daybook.enqueue_accounting_jobs(
    org_ids       text[],
    document_ids  text[],
    version_hints bigint[],
    ready_ats     timestamptz[] DEFAULT NULL,
    priorities    integer[] DEFAULT NULL
) RETURNS TABLE (ordinal integer, job_id text, result text)
    LANGUAGE plpgsql
    -- Rows are found by their keys, also when the planner takes the table for a small one. JIT is
    -- off: compiling takes longer than running.
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    total CONSTANT integer := coalesce(cardinality(org_ids), 0);
    made  record;
    bad   record;
BEGIN
    IF coalesce(cardinality(document_ids), 0) <> total OR coalesce(cardinality(version_hints), 0) <> total
       OR coalesce(cardinality(ready_ats), total) <> total OR coalesce(cardinality(priorities), total) <> total THEN
        RAISE EXCEPTION 'org_ids, document_ids, version_hints, ready_ats and priorities must be equally long' USING ERRCODE = 'DB010';
    END IF;
    -- One statement checks all requests. Only when one is invalid does the loop look for it, and
    -- raise its error.
    IF EXISTS (SELECT FROM (SELECT unnest(org_ids) AS o, unnest(document_ids) AS d, unnest(version_hints) AS v, unnest(priorities) AS p, unnest(ready_ats) AS t) r
                WHERE daybook.accounting_request_in_doubt(r.o, r.d, r.v, r.p, r.t)) THEN
        FOR bad IN SELECT * FROM unnest(org_ids, document_ids, version_hints, priorities, ready_ats) AS r (o, d, v, p, t) LOOP
            PERFORM daybook.check_accounting_request(bad.o, bad.d, bad.v, bad.p, bad.t);
        END LOOP;
    END IF;

    -- If no document has a job yet, all are one INSERT. It fails if a document is named twice, or
    -- another transaction enqueues one meanwhile.
    IF NOT EXISTS (SELECT FROM (SELECT unnest(org_ids) AS o, unnest(document_ids) AS d OFFSET 0) r
                     JOIN daybook.accounting_work_queue q ON q.org_id = r.o AND q.document_id = r.d) THEN
        -- Sorted before they get their ids, so that ids grow in the order of insertion.
        SELECT array_agg(r.n) AS ordinals, daybook.new_ids(total) AS ids, array_agg(r.o) AS orgs, array_agg(r.d) AS documents,
               array_agg(r.v) AS versions, array_agg(r.t) AS times, array_agg(r.p) AS priorities
          INTO made
          FROM (SELECT x.*
                  FROM (SELECT generate_series(1, total) AS n, unnest(org_ids) AS o, unnest(document_ids) AS d, unnest(version_hints) AS v,
                               unnest(ready_ats) AS t, unnest(priorities) AS p) x
                 ORDER BY x.o COLLATE "C", x.d COLLATE "C") r;
        BEGIN
            INSERT INTO daybook.accounting_work_queue (id, org_id, document_id, version_hint, ready_at, first_ready_at, priority)
            SELECT r.id, r.o, r.d, r.v, r.due, r.due, r.p
              FROM (SELECT x.*, greatest(coalesce(x.t, '-infinity'), clock_timestamp()) AS due, coalesce(x.priority, 2) AS p
                      FROM (SELECT unnest(made.ids) AS id, unnest(made.orgs) AS o, unnest(made.documents) AS d, unnest(made.versions) AS v,
                                   unnest(made.times) AS t, unnest(made.priorities) AS priority) x
                    OFFSET 0) r;
            IF total > 0 AND daybook.must_wake(1, coalesce((SELECT min(coalesce(t, '-infinity')) FROM unnest(ready_ats) AS t), '-infinity')) THEN
                PERFORM daybook.wake_accounting_queue();
            END IF;
            RETURN QUERY SELECT unnest(made.ordinals), unnest(made.ids), 'enqueued'::text;
            RETURN;
        EXCEPTION WHEN unique_violation THEN
            NULL;
        END;
    END IF;

    -- Otherwise documents without a job are inserted in runs. If another transaction enqueues one
    -- of them meanwhile, all are made one by one.
    BEGIN
        RETURN QUERY SELECT * FROM daybook.enqueue_accounting_runs(org_ids, document_ids, version_hints, ready_ats, priorities, true);
    EXCEPTION WHEN unique_violation THEN
        RETURN QUERY SELECT * FROM daybook.enqueue_accounting_runs(org_ids, document_ids, version_hints, ready_ats, priorities, false);
    END;
END
$$;

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.enqueue_accounting_jobs, daybook.enqueue_accounting_runs, daybook.enqueue_accounting_job,
    daybook.accounting_request_in_doubt, daybook.check_accounting_request;
