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

-- As in 00003, for less: a sum of bigint is numeric already, and an impact's entries are complete if it has any (that is
-- checked with the entries).
CREATE OR REPLACE FUNCTION daybook.check_entries() RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    bad record;
BEGIN
    SELECT n.impact_id, n.currency, sum(CASE n.side WHEN 'debit' THEN n.amount_minor ELSE -n.amount_minor END) AS difference
      INTO bad
      FROM new_entries n
     GROUP BY n.impact_id, n.currency
    HAVING sum(CASE n.side WHEN 'debit' THEN n.amount_minor ELSE -n.amount_minor END) <> 0
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'impact % does not balance: debits exceed credits by % minor units of %', bad.impact_id, bad.difference, bad.currency
            USING ERRCODE = 'DB001', HINT = 'insert all entries of an impact in one statement, debits equal to credits per currency';
    END IF;

    -- The impact is looked up by its id alone: with more keys in the join the planner may prefer another index.
    -- Numbered from 1 to entry_count, its entries leave the primary key no room for later ones.
    SELECT n.impact_id, n.entries, n.last_line, CASE WHEN i.org_id = n.org_id AND i.org_id = n.last_org_id THEN i.entry_count END AS entry_count
      INTO bad
      FROM (SELECT impact_id, min(org_id) AS org_id, max(org_id) AS last_org_id, count(*) AS entries, max(line_no) AS last_line
              FROM new_entries GROUP BY impact_id) n
      LEFT JOIN daybook.impacts i ON i.id = n.impact_id
     WHERE i.entry_count IS DISTINCT FROM n.entries OR n.last_line <> n.entries OR i.org_id <> n.org_id OR i.org_id <> n.last_org_id
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'impact % was to have % entries and gets %, numbered up to %', bad.impact_id, coalesce(bad.entry_count::text, 'no'), bad.entries, bad.last_line
            USING ERRCODE = 'DB002', HINT = 'insert all entries of an impact in one statement, beside the impact; none can be added later';
    END IF;

    SELECT n.org_id, n.account_code, n.currency, a.code IS NOT NULL AS known
      INTO bad
      FROM (SELECT DISTINCT org_id, account_code, currency FROM new_entries) n
      LEFT JOIN daybook.accounts a ON a.org_id = n.org_id AND a.code = n.account_code
     WHERE a.code IS NULL OR (a.currencies <> '{}' AND n.currency <> ALL (a.currencies))
     LIMIT 1;
    IF FOUND AND bad.known THEN
        RAISE EXCEPTION 'account % of organization % does not take %', bad.account_code, bad.org_id, bad.currency
            USING ERRCODE = 'DB003', HINT = 'add the currency to the account, or post to another one';
    ELSIF FOUND THEN
        RAISE EXCEPTION 'organization % has no account %', bad.org_id, bad.account_code
            USING ERRCODE = 'DB003', HINT = 'add the account to the chart of accounts';
    END IF;
    RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION daybook.check_impacts() RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    bad record;
BEGIN
    SELECT n.id, n.entry_count
      INTO bad
      FROM new_impacts n
     WHERE n.entry_count > 0 AND NOT EXISTS (SELECT 1 FROM daybook.entries e WHERE e.impact_id = n.id)
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'impact % was to have % entries and gets none', bad.id, bad.entry_count
            USING ERRCODE = 'DB002', HINT = 'insert an impact and all its entries in one statement';
    END IF;

    SELECT n.org_id, n.document_id, n.posting_date, p.starts_on, p.ends_on
      INTO bad
      FROM new_impacts n
      JOIN daybook.periods p ON p.org_id = n.org_id AND n.posting_date BETWEEN p.starts_on AND p.ends_on
     WHERE p.state = 'closed'
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'document % of organization % would be posted on %, in the closed period from % to %',
            bad.document_id, bad.org_id, bad.posting_date, bad.starts_on, bad.ends_on
            USING ERRCODE = 'DB005', HINT = 'open the period, or let the organization post on the first open day';
    END IF;
    RETURN NULL;
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
