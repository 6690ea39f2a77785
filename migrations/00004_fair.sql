-- Fairness, pause and caps: the lease goes from organization to organization, each from where it ended last.

-- +goose Up
-- +goose StatementBegin

ALTER TABLE daybook.organizations
    ADD COLUMN paused_at     timestamptz,
    ADD COLUMN max_in_flight integer CHECK (max_in_flight > 0);
COMMENT ON COLUMN daybook.organizations.paused_at IS 'Since when nothing of it is leased; null: it is not paused';
COMMENT ON COLUMN daybook.organizations.max_in_flight IS 'How many of its jobs may be leased at a time, over all workers; null: any number';

-- Whether the lease counts towards its organization's cap; only such leases are indexed by organization.
ALTER TABLE daybook.accounting_work_queue
    ADD COLUMN capped boolean NOT NULL DEFAULT false;
CREATE INDEX accounting_work_queue_capped ON daybook.accounting_work_queue (org_id) WHERE state = 'leased' AND capped;

-- The lease query: one range a priority and organization, oldest first.
DROP INDEX daybook.accounting_work_queue_due;
CREATE INDEX accounting_work_queue_due ON daybook.accounting_work_queue (priority, org_id, ready_at, id) WHERE state = 'pending';

-- One index on attempts instead of two: they are read by job.
ALTER TABLE daybook.attempts DROP CONSTRAINT attempts_pkey;
DROP INDEX daybook.attempts_job;
ALTER TABLE daybook.attempts ADD PRIMARY KEY (job_id, id);

-- Room for a document's and a job's next version on the same page: then the update of a document touches no index.
ALTER TABLE daybook.documents SET (fillfactor = 85);
ALTER TABLE daybook.accounting_work_queue SET (fillfactor = 75);

-- A row of the queue is updated twice a job, which leaves two dead ones: the server's default would wait until a fifth of
-- the table is dead. Documents are updated once a posting. What is append-only is vacuumed for its visibility map alone.
ALTER TABLE daybook.accounting_work_queue SET (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 1,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 10000);
ALTER TABLE daybook.documents SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 1);

CREATE OR REPLACE FUNCTION daybook.enqueue_accounting_job(
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

    IF result <> 'unchanged' AND due <= clock_timestamp() THEN
        PERFORM daybook.wake_accounting_queue();
    END IF;
END
$$;
-- +goose StatementEnd

-- +goose Down
-- The functions stay as they are: they work with either schema.
ALTER TABLE daybook.documents RESET (fillfactor);
ALTER TABLE daybook.accounting_work_queue RESET (fillfactor);
ALTER TABLE daybook.attempts DROP CONSTRAINT attempts_pkey, ADD PRIMARY KEY (id);
CREATE INDEX attempts_job ON daybook.attempts (job_id, id);
ALTER TABLE daybook.documents RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_delay);
ALTER TABLE daybook.accounting_work_queue RESET (
    autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_delay,
    autovacuum_analyze_scale_factor, autovacuum_analyze_threshold);
DROP INDEX daybook.accounting_work_queue_due;
CREATE INDEX accounting_work_queue_due ON daybook.accounting_work_queue (priority, ready_at, id) WHERE state = 'pending';
DROP INDEX daybook.accounting_work_queue_capped;
ALTER TABLE daybook.accounting_work_queue DROP COLUMN capped;
ALTER TABLE daybook.organizations DROP COLUMN max_in_flight, DROP COLUMN paused_at;
