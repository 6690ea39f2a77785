-- Chapter 24: moving in: rows that were adopted from a legacy queue, and documents that another
-- system has posted.
--
-- SQLSTATEs: DB010 the decision is invalid, DB011 there is no such job, DB013 no such document is
-- posted elsewhere.

-- +goose Up
-- +goose StatementBegin

-- What another system has posted of a document. The ledger reads it before it posts: see
-- daybook.decide_posted_elsewhere.
CREATE TABLE daybook.posted_elsewhere (
    org_id           text COLLATE "C" NOT NULL CHECK (octet_length(org_id) BETWEEN 1 AND 255),
    document_id      text COLLATE "C" NOT NULL CHECK (octet_length(document_id) BETWEEN 1 AND 255),
    -- -1: some version below 0, for a document whose version 0 is still to be posted.
    document_version bigint NOT NULL CHECK (document_version >= -1),
    next             text NOT NULL CHECK (next IN ('difference', 'wait', 'full')),
    entries          jsonb CHECK (jsonb_typeof(entries) = 'array'),
    posted_on        date NOT NULL CHECK (isfinite(posted_on)),
    system           text NOT NULL CHECK (system <> ''),
    left_version  bigint,
    open_item        text COLLATE "C",
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (org_id, document_id),
    CONSTRAINT difference_has_entries CHECK (next <> 'difference' OR entries IS NOT NULL)
);
COMMENT ON TABLE daybook.posted_elsewhere IS
    'Documents that another system has posted, so that Daybook does not post them in full again';
COMMENT ON COLUMN daybook.posted_elsewhere.document_version IS
    'The newest version that is posted elsewhere: Daybook posts nothing for it';
COMMENT ON COLUMN daybook.posted_elsewhere.next IS
    'What a newer version does: post the difference, wait for a person (POSTED_ELSEWHERE), or post in full because the other system took its posting back';
COMMENT ON COLUMN daybook.posted_elsewhere.entries IS
    'What is posted elsewhere: [{"account", "side", "amount", "currency"}], amounts in minor units; null: not known';
COMMENT ON COLUMN daybook.posted_elsewhere.posted_on IS 'The posting date of what is posted elsewhere';
COMMENT ON COLUMN daybook.posted_elsewhere.system IS 'Where it is posted, such as the table that it was adopted from';
COMMENT ON COLUMN daybook.posted_elsewhere.left_version IS
    'Up to this version a person decided that Daybook posts nothing, also when the document is not ready or deleted; null: none';
COMMENT ON COLUMN daybook.posted_elsewhere.open_item IS
    'The document that stands for it here, with what was open of it (daybook import opening); null: none does';
CREATE INDEX posted_elsewhere_open_item ON daybook.posted_elsewhere (org_id, open_item) WHERE open_item IS NOT NULL;

-- Rows of legacy queues that Daybook holds. Each is held by Daybook from the transaction that
-- inserts its row here, and by the legacy queue again from the one that deletes it.
CREATE TABLE daybook.adopted_rows (
    legacy_table text NOT NULL,
    legacy_id    text COLLATE "C" NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('accounting', 'jobs')),
    org_id       text COLLATE "C" NOT NULL,
    document_id  text COLLATE "C",
    job_id       text COLLATE "C" NOT NULL,
    version      bigint,
    taken_state  text NOT NULL,
    -- What the job's row was right after: a generation that has grown says that it was asked for
    -- since.
    generation   bigint NOT NULL DEFAULT 0,
    legacy_row   jsonb NOT NULL,
    problem      text,
    adopted_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (legacy_table, legacy_id)
);
CREATE INDEX adopted_rows_job_id ON daybook.adopted_rows (job_id);
COMMENT ON TABLE daybook.adopted_rows IS
    'Rows of legacy queues that Daybook holds, as they were when they were adopted';
COMMENT ON COLUMN daybook.adopted_rows.legacy_table IS 'The table with its schema, quoted where that is needed';
COMMENT ON COLUMN daybook.adopted_rows.taken_state IS
    'The state that the row had; forwarded: it was inserted later, and went straight to Daybook';
COMMENT ON COLUMN daybook.adopted_rows.legacy_row IS 'The row as it was, for daybook adopt … --undo';
COMMENT ON COLUMN daybook.adopted_rows.problem IS
    'COMPLETED_LATE: the legacy worker completed the row after Daybook had adopted it, and what it posted is not '
    'known; null: none';

-- A person's decision about a document that is posted elsewhere: difference, full or nothing. The
-- document's job is tried again.
CREATE FUNCTION daybook.decide_posted_elsewhere(
    org_id      text,
    document_id text,
    post        text,
    OUT version bigint,
    OUT job_id  text,
    OUT result  text
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    job   daybook.accounting_work_queue;
    known daybook.posted_elsewhere;
BEGIN
    IF (post IN ('difference', 'full', 'nothing')) IS NOT TRUE THEN
        RAISE EXCEPTION '"%" is no decision', post USING ERRCODE = 'DB010', HINT = 'decide difference, full or nothing';
    END IF;
    -- The job's row first: what posts the document holds it until its commit.
    SELECT * INTO job FROM daybook.accounting_work_queue q
     WHERE q.org_id = decide_posted_elsewhere.org_id AND q.document_id = decide_posted_elsewhere.document_id
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no accounting job for document % of organization %', decide_posted_elsewhere.document_id, decide_posted_elsewhere.org_id
            USING ERRCODE = 'DB011', HINT = 'enqueue the document first';
    END IF;
    SELECT * INTO known FROM daybook.posted_elsewhere p
     WHERE p.org_id = decide_posted_elsewhere.org_id AND p.document_id = decide_posted_elsewhere.document_id
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'document % of organization % is not posted elsewhere', decide_posted_elsewhere.document_id, decide_posted_elsewhere.org_id
            USING ERRCODE = 'DB013', HINT = 'retry its job as that of any other document';
    END IF;
    IF post = 'difference' AND known.entries IS NULL THEN
        RAISE EXCEPTION 'the entries of document % of organization % that are posted elsewhere are not known', job.document_id, job.org_id
            USING ERRCODE = 'DB010', HINT = 'record them by `daybook adopt accounting-queue --entries VIEW --apply`, or decide full or nothing';
    END IF;
    IF post = 'nothing' AND EXISTS (SELECT 1 FROM daybook.impacts i WHERE i.org_id = job.org_id AND i.document_id = job.document_id) THEN
        RAISE EXCEPTION 'Daybook has posted document % of organization % already', job.document_id, job.org_id
            USING ERRCODE = 'DB010', HINT = 'decide difference or full, so that both ledgers together hold it once';
    END IF;

    version := job.version_hint;
    UPDATE daybook.posted_elsewhere p
       SET next             = CASE post WHEN 'nothing' THEN 'wait' ELSE post END,
           -- What the other system has posted of this version is for a person to say again.
           entries          = CASE WHEN post = 'nothing' AND job.version_hint > p.document_version THEN NULL ELSE p.entries END,
           document_version = CASE WHEN post = 'nothing' THEN greatest(p.document_version, job.version_hint) ELSE p.document_version END,
           left_version  = CASE WHEN post = 'nothing' THEN job.version_hint END,
           updated_at       = clock_timestamp()
     WHERE p.org_id = job.org_id AND p.document_id = job.document_id;
    IF post = 'nothing' THEN
        SELECT m.job_id, m.result INTO job_id, result FROM daybook.mark_accounting_job_pending(job.org_id, job.document_id) m;
    ELSE
        -- A new epoch, so that a version which Daybook has looked at before is posted by the
        -- decision.
        SELECT m.job_id, m.result INTO job_id, result FROM daybook.repost_accounting_job(job.org_id, job.document_id) m;
    END IF;
END
$$;
COMMENT ON FUNCTION daybook.decide_posted_elsewhere IS
    'Decides what a document that is posted elsewhere does: difference posts what is missing, full posts all of it, nothing leaves this version to the other system';

-- The trigger that `daybook adopt accounting-queue` puts on a legacy queue. A row that Daybook
-- holds and that old code asks for again goes to Daybook, in the transaction of that code; with the
-- argument forward also a row that is new. It runs with the rights of the schema's owner, so that
-- old code needs none of its own. Columns are read through JSON, because a legacy table may lack
-- some.
CREATE FUNCTION daybook.forward_accounting_request() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    here    CONSTANT text := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
    wanted  CONSTANT jsonb := to_jsonb(NEW);
    org     CONSTANT text := wanted ->> 'org_id';
    doc     CONSTANT text := wanted ->> 'document_id';
    version CONSTANT bigint := wanted ->> 'version_hint';
    due     timestamptz;
    job     text;
    answer  text;
    taken   daybook.adopted_rows;
BEGIN
    SELECT * INTO taken FROM daybook.adopted_rows a WHERE a.legacy_table = here AND a.legacy_id = wanted ->> 'id';
    IF NOT FOUND AND (TG_OP = 'UPDATE' OR TG_ARGV[0] IS DISTINCT FROM 'forward') THEN
        RETURN NULL;
    END IF;

    IF wanted ->> 'state' = 'completed' THEN
        -- The legacy worker ended an attempt that counted as abandoned: that it posted is on record
        -- in its own transaction. A row that was asked for again meanwhile may name a later version
        -- than the one that it posted.
        IF taken.taken_state IN ('leased', 'pending') THEN
            PERFORM 1 FROM daybook.accounting_work_queue q WHERE q.org_id = org AND q.document_id = doc FOR NO KEY UPDATE;
            INSERT INTO daybook.posted_elsewhere AS p (org_id, document_id, document_version, next, posted_on, system)
            VALUES (org, doc, CASE taken.taken_state WHEN 'leased' THEN version ELSE version - 1 END, 'wait', CURRENT_DATE, here)
            ON CONFLICT (org_id, document_id) DO UPDATE
               SET document_version = greatest(p.document_version, excluded.document_version), next = 'wait', entries = NULL, updated_at = clock_timestamp();
            UPDATE daybook.adopted_rows a SET problem = 'COMPLETED_LATE' WHERE a.legacy_table = here AND a.legacy_id = taken.legacy_id;
        END IF;
        RETURN NULL;
    END IF;

    -- A time without a zone is UTC.
    due := CASE WHEN wanted ->> 'ready_at' ~ '(Z|[+-][0-9]{2}(:?[0-9]{2})?)$' THEN (wanted ->> 'ready_at')::timestamptz
                ELSE (wanted ->> 'ready_at')::timestamp AT TIME ZONE 'UTC' END;
    SELECT e.job_id, e.result INTO job, answer FROM daybook.enqueue_accounting_job(org, doc, version, due) e;
    IF answer = 'unchanged' AND EXISTS (SELECT 1 FROM daybook.accounting_work_queue q WHERE q.id = job AND q.state = 'failed' AND q.version_hint = version) THEN
        -- Old code that resets a failed row asks for one more attempt at it.
        PERFORM daybook.mark_accounting_job_pending(org, doc, version, greatest(extract(epoch FROM due - clock_timestamp()), 0)::double precision);
    END IF;
    IF taken.legacy_id IS NULL THEN
        INSERT INTO daybook.adopted_rows (legacy_table, legacy_id, kind, org_id, document_id, job_id, version, taken_state, legacy_row)
        VALUES (here, wanted ->> 'id', 'accounting', org, doc, job, version, 'forwarded', wanted);
    END IF;
    EXECUTE format('UPDATE %I.%I SET state = ''cancelled''%s WHERE id = $1.id', TG_TABLE_SCHEMA, TG_TABLE_NAME,
                   CASE WHEN wanted ? 'last_error' THEN ', last_error = ''held by Daybook''' ELSE '' END) USING NEW;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION daybook.forward_accounting_request FROM PUBLIC;
COMMENT ON FUNCTION daybook.forward_accounting_request IS
    'Hands requests of old code for documents that Daybook holds on to it; a trigger of legacy queues';

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.forward_accounting_request;
DROP FUNCTION daybook.decide_posted_elsewhere;
DROP TABLE daybook.adopted_rows, daybook.posted_elsewhere;
