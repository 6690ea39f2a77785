-- Versions, epochs, confirmations, periods: what makes the ledger one that an auditor accepts.
--
-- SQLSTATEs of our own, besides those of 00001 and 00002: DB001 to DB003 and DB006 (check_entries), DB005 the posting date lies in
-- a closed period.

-- +goose Up
-- +goose StatementBegin

ALTER TABLE daybook.accounts
    ADD COLUMN currencies text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN daybook.accounts.currencies IS 'The currencies that may be posted to the account; empty: all';

CREATE TYPE daybook.closed_period_policy AS ENUM ('fail', 'first_open_day');
ALTER TABLE daybook.organizations
    ADD COLUMN closed_period_policy daybook.closed_period_policy NOT NULL DEFAULT 'fail';
COMMENT ON COLUMN daybook.organizations.closed_period_policy IS
    'What a document does whose posting date lies in a closed period: fail with PERIOD_CLOSED, or post on the first open day after it';

-- Spans of posting dates. A date in no period is open.
CREATE TYPE daybook.period_state AS ENUM ('open', 'closed');
CREATE TABLE daybook.periods (
    org_id     text COLLATE "C" NOT NULL REFERENCES daybook.organizations (id),
    starts_on  date NOT NULL,
    ends_on    date NOT NULL,
    state      daybook.period_state NOT NULL DEFAULT 'open',
    -- When it was closed last; null: it is open.
    closed_at  timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (org_id, starts_on),
    CHECK (starts_on <= ends_on),
    CHECK ((state = 'closed') = (closed_at IS NOT NULL))
);

-- An organization's configuration (rules, accounts, periods) is changed under its exclusive lock and used under its shared
-- one. Advisory locks queue fairly: what waits to change it is not overtaken by what uses it.
--
-- A transaction that posts for 500 organizations must not take 500 places in the server's lock table. So organizations share 64 locks,
-- and only one whose shared lock is not to be had is locked by itself: its neighbours do not notice a change. Posting never waits for
-- these locks; changes take the shared lock first, so they cannot lock each other out.
CREATE FUNCTION daybook.lock_configuration(org_id text) RETURNS void
    LANGUAGE sql
AS $$
    SELECT pg_advisory_xact_lock(1684109670, hashtext(lock_configuration.org_id) & 63);
    SELECT pg_advisory_xact_lock(1684109667, hashtext(lock_configuration.org_id));
$$;
COMMENT ON FUNCTION daybook.lock_configuration IS
    'Waits until no transaction posts for the organization, and keeps posting and other changes of its configuration out until the end of the transaction';

-- Returns those of the organizations that may be posted for until the transaction ends. Of those that have to be locked by themselves it
-- takes 64: the others come later.
CREATE FUNCTION daybook.try_use_configurations(org_ids text[]) RETURNS SETOF text
    LANGUAGE plpgsql
AS $$
DECLARE
    shared integer[];
BEGIN
    SELECT array_agg(s.lock) INTO shared
      FROM (SELECT DISTINCT hashtext(o) & 63 AS lock FROM unnest(org_ids) AS o) s
     WHERE pg_try_advisory_xact_lock_shared(1684109670, s.lock);
    RETURN QUERY
    SELECT o FROM unnest(org_ids) AS o WHERE (hashtext(o) & 63) = ANY (shared)
     UNION ALL
    SELECT own.o
      FROM (SELECT o FROM unnest(org_ids) AS o WHERE ((hashtext(o) & 63) = ANY (shared)) IS NOT TRUE LIMIT 64) own
     WHERE pg_try_advisory_xact_lock_shared(1684109667, hashtext(own.o));
END
$$;

-- Periods of an organization do not overlap. Changes hold its lock, so this sees all of them.
CREATE FUNCTION daybook.check_periods() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM daybook.periods p
                WHERE p.org_id = NEW.org_id AND p.starts_on <> NEW.starts_on
                  AND p.starts_on <= NEW.ends_on AND p.ends_on >= NEW.starts_on) THEN
        RAISE EXCEPTION 'the period from % to % overlaps another one of organization %', NEW.starts_on, NEW.ends_on, NEW.org_id
            USING ERRCODE = 'DB010', HINT = 'list the periods, and give one that begins after the last ends';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER periods_check BEFORE INSERT OR UPDATE ON daybook.periods
    FOR EACH ROW EXECUTE FUNCTION daybook.check_periods();

-- What is cached of an organization's chart is cached under its config_version, so that accounts may be changed by SQL too.
CREATE FUNCTION daybook.account_changed() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE daybook.organizations o
       SET config_version = o.config_version + 1, updated_at = clock_timestamp()
     WHERE o.id = CASE WHEN TG_OP = 'DELETE' THEN OLD.org_id ELSE NEW.org_id END;
    RETURN NULL;
END
$$;
CREATE TRIGGER accounts_changed AFTER INSERT OR UPDATE OR DELETE ON daybook.accounts
    FOR EACH ROW EXECUTE FUNCTION daybook.account_changed();

ALTER TABLE daybook.documents ADD CONSTRAINT dates_are_days CHECK (isfinite(issue_date) AND isfinite(value_date));

-- A deliberate repost under unchanged versions is a new epoch.
ALTER TABLE daybook.accounting_work_queue ADD COLUMN epoch integer NOT NULL DEFAULT 0 CHECK (epoch >= 0);
COMMENT ON COLUMN daybook.accounting_work_queue.epoch IS
    'The document is posted anew if the epoch of its live impact is lower; each deliberate repost (repost_accounting_job) sets it above all of them';

ALTER TABLE daybook.impacts
    ADD COLUMN epoch integer NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    -- SHA-256 of what the rules made of the document, before periods: a new version with the same hash posts nothing.
    ADD COLUMN content_hash bytea CHECK (octet_length(content_hash) = 32);
CREATE UNIQUE INDEX impacts_once ON daybook.impacts (org_id, document_id, document_version, rule_set_version, epoch) WHERE kind = 'post';
CREATE INDEX impacts_date ON daybook.impacts (org_id, posting_date, id);

-- A later version, or rule set, under which the live impact stands unchanged. Append-only.
CREATE TABLE daybook.confirmations (
    impact_id        bigint NOT NULL REFERENCES daybook.impacts (id),
    document_version bigint NOT NULL,
    rule_set_version bigint NOT NULL,
    job_id           text COLLATE "C" NOT NULL,
    attempt          integer NOT NULL,
    workflow_run_id  text NOT NULL DEFAULT '',
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (impact_id, document_version, rule_set_version)
);
CREATE TRIGGER confirmations_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON daybook.confirmations
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_change();

-- Impacts and their entries are inserted by one statement (a WITH), at whose end both checks see all of it. So no impact
-- is ever without an entry that it announces, and none can get another later. One call a statement, not one a line.
--
-- SQLSTATEs: DB001 an impact does not balance, DB002 it has not the entries that it announces, DB003 an account is unknown or does
-- not take the currency, DB006 a reversal does not mirror the impact before it.
CREATE FUNCTION daybook.check_entries() RETURNS trigger
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

    -- The chart is looked at as it is now, for all lines at once. A reversal is held to what it mirrors (check_impacts), not to the
    -- chart: only a set with a bad line pays for finding out which lines reverse.
    IF EXISTS (SELECT 1
                 FROM (SELECT DISTINCT org_id, account_code, currency FROM new_entries) n
                 LEFT JOIN daybook.accounts a ON a.org_id = n.org_id AND a.code = n.account_code
                WHERE a.code IS NULL OR (a.currencies <> '{}' AND n.currency <> ALL (a.currencies))) THEN
        SELECT n.org_id, n.account_code, n.currency, a.code IS NOT NULL AS known
          INTO bad
          FROM new_entries n
          JOIN daybook.impacts i ON i.id = n.impact_id AND i.kind = 'post'
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
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER entries_check AFTER INSERT ON daybook.entries
    REFERENCING NEW TABLE AS new_entries
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.check_entries();

-- An impact's entries are complete if it has any: that is checked with the entries.
CREATE FUNCTION daybook.check_impacts() RETURNS trigger
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

    IF EXISTS (SELECT 1 FROM new_impacts n WHERE n.kind = 'reverse') THEN
        SELECT n.id, p.id AS mirrored
          INTO bad
          FROM new_impacts n
          JOIN daybook.impacts p ON p.org_id = n.org_id AND p.document_id = n.document_id AND p.seq = n.seq - 1
         WHERE n.kind = 'reverse'
           AND (n.entry_count <> p.entry_count
                OR EXISTS (SELECT 1
                             FROM daybook.entries e
                             LEFT JOIN daybook.entries o ON o.impact_id = p.id AND o.line_no = e.line_no
                            WHERE e.impact_id = n.id
                              AND (o.side IS NOT DISTINCT FROM e.side
                                   OR (o.account_code, o.amount_minor, o.currency, o.rule_line_id, o.document_line)
                                      IS DISTINCT FROM (e.account_code, e.amount_minor, e.currency, e.rule_line_id, e.document_line))))
         LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'impact % does not mirror impact %', bad.id, bad.mirrored
                USING ERRCODE = 'DB006', HINT = 'a reversal has the lines of the impact before it, each on the opposite side';
        END IF;
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
CREATE TRIGGER impacts_check AFTER INSERT ON daybook.impacts
    REFERENCING NEW TABLE AS new_impacts
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.check_impacts();

-- Versions never go back, whatever happens to a document's row: one that is inserted anew goes on after the highest version that
-- the queue or the ledger knows of the document, so that what is asked of it is newer than what was done. INSERT … RETURNING tells
-- the version.
CREATE FUNCTION daybook.continue_versions() RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    known bigint;
BEGIN
    SELECT greatest(
               (SELECT q.version_hint FROM daybook.accounting_work_queue q WHERE q.org_id = NEW.org_id AND q.document_id = NEW.id),
               (SELECT max(greatest(i.document_version, (SELECT max(c.document_version) FROM daybook.confirmations c WHERE c.impact_id = i.id)))
                  FROM daybook.impacts i WHERE i.org_id = NEW.org_id AND i.document_id = NEW.id))
      INTO known;
    IF known >= NEW.accounting_ready_version THEN
        NEW.accounting_ready_version := known + 1;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER documents_continue_versions BEFORE INSERT ON daybook.documents
    FOR EACH ROW EXECUTE FUNCTION daybook.continue_versions();

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

-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DROP FUNCTION daybook.repost_accounting_job;
DROP TRIGGER documents_continue_versions ON daybook.documents;
DROP TRIGGER impacts_check ON daybook.impacts;
DROP TRIGGER entries_check ON daybook.entries;
DROP FUNCTION daybook.continue_versions, daybook.check_impacts, daybook.check_entries;
DROP TABLE daybook.confirmations;
DROP INDEX daybook.impacts_once, daybook.impacts_date;
ALTER TABLE daybook.impacts DROP COLUMN epoch, DROP COLUMN content_hash;
ALTER TABLE daybook.accounting_work_queue DROP COLUMN epoch;
DROP TABLE daybook.periods;
DROP FUNCTION daybook.check_periods, daybook.lock_configuration, daybook.try_use_configurations;
ALTER TABLE daybook.documents DROP CONSTRAINT dates_are_days;
DROP TRIGGER accounts_changed ON daybook.accounts;
DROP FUNCTION daybook.account_changed;
ALTER TABLE daybook.organizations DROP COLUMN closed_period_policy;
ALTER TABLE daybook.accounts DROP COLUMN currencies;
DROP TYPE daybook.period_state, daybook.closed_period_policy;
-- +goose StatementEnd
