-- Chapter 4: the ledger. Impacts, entries and confirmations are append-only, and checked when they
-- are inserted.
--
-- SQLSTATEs: DB001 to DB003 and DB006 (check_entries, check_impacts), DB005 nothing is posted on
-- that date any more: its period is closed, or a later one.

-- +goose Up
-- +goose StatementBegin

CREATE TYPE daybook.entry_side AS ENUM ('debit', 'credit');
CREATE TYPE daybook.impact_kind AS ENUM ('post', 'reverse');

CREATE TABLE daybook.impacts (
    id               bigint PRIMARY KEY,
    org_id           text COLLATE "C" NOT NULL,
    document_id      text COLLATE "C" NOT NULL,
    document_version bigint NOT NULL,
    -- The chain of a document: post, reverse, post … Its last impact is live when it posts.
    seq              integer NOT NULL CHECK (seq > 0),
    previous_seq     integer GENERATED ALWAYS AS (NULLIF(seq - 1, 0)) STORED,
    kind             daybook.impact_kind NOT NULL,
    rule_set_version bigint,
    rule_id          text NOT NULL DEFAULT '',
    epoch            integer NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    document_date    date NOT NULL,
    posting_date     date NOT NULL,
    entry_count      integer NOT NULL CHECK (entry_count >= 0),
    -- SHA-256 of what the rules made of the document, before periods are applied: a new version
    -- with the same hash posts nothing.
    content_hash     bytea CHECK (octet_length(content_hash) = 32),
    job_id           text COLLATE "C" NOT NULL,
    attempt          integer NOT NULL,
    workflow_run_id  text NOT NULL DEFAULT '',
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Why an impact that posts has no entry.
    no_entries       text NOT NULL DEFAULT '' CHECK (no_entries IN ('', 'zero', 'rule', 'elsewhere')),
    CONSTRAINT no_entries_without CHECK (no_entries = '' OR kind = 'post' AND entry_count = 0),
    CONSTRAINT chain_alternates CHECK ((kind = 'post') = (seq % 2 = 1)),
    CONSTRAINT dates_are_bookable CHECK (daybook.is_bookable(document_date) AND daybook.is_bookable(posting_date))
);
CREATE SEQUENCE daybook.impact_id_seq OWNED BY daybook.impacts.id;
-- Posting is idempotent. A document's first posting has no entry here, which saves nearly every
-- document one: check_impacts compares later ones with it.
CREATE UNIQUE INDEX impacts_once ON daybook.impacts (org_id, document_id, document_version, rule_set_version, epoch) WHERE kind = 'post' AND seq > 1;
-- Reports and exports of a span of days.
CREATE INDEX impacts_date ON daybook.impacts (org_id, posting_date, id);
-- The chain, after the index of days: both begin with the organization, and while the table is
-- empty they cost a search for a document the same. Then PostgreSQL takes the one that was made
-- last, and a session keeps that plan until the table is analyzed. With the other index it would
-- read all impacts of the organization.
ALTER TABLE daybook.impacts ADD UNIQUE (org_id, document_id, seq);
-- Documents that are posted without an entry, which are few.
CREATE INDEX impacts_without_entries ON daybook.impacts (no_entries, org_id, id) WHERE kind = 'post' AND entry_count = 0;
CREATE TRIGGER impacts_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON daybook.impacts
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_change();

-- Whether a document's content states an amount that is not zero: models.Content.Amounts says which
-- fields are amounts. Null is no amount, and in a path it is not equal to zero.
CREATE FUNCTION daybook.states_amount(content jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
SELECT jsonb_path_exists(jsonb_strip_nulls(content), '$ ? (
    @.total != 0 || @.prepaid != 0 || @.payable != 0 || @.rounding != 0 || @.amount != 0 || @.fee != 0 || @.settled.amount != 0 ||
    @.lines[*].net != 0 || @.lines[*].cost != 0 || @.taxes[*].base != 0 || @.taxes[*].amount != 0)')
$$;

-- A number that a document states; null: it is none. It never fails: content is written by
-- applications.
CREATE FUNCTION daybook.stated_number(stated text) RETURNS numeric
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN stated ~ '^-?\d{1,30}(\.\d{1,30})?$' THEN stated::numeric END
$$;

-- The amount that a document states as a whole, in minor units of its currency: its total, what is
-- payable, what was paid, or the debits of its journal; null: none.
CREATE FUNCTION daybook.stated_amount(content jsonb) RETURNS numeric
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
SELECT coalesce(jsonb_path_query_first(content, '$.total ? (@.type() == "number" && @ != 0)'),
                jsonb_path_query_first(content, '$.payable ? (@.type() == "number" && @ != 0)'),
                jsonb_path_query_first(content, '$.amount ? (@.type() == "number" && @ != 0)'),
                (SELECT to_jsonb(sum(a.amount::numeric))
                   FROM jsonb_path_query(content, '$.journal.entries[*] ? (@.amount > 0 && !exists (@.currency)).amount') AS a (amount)))::numeric
$$;
COMMENT ON FUNCTION daybook.stated_amount IS
    'The amount that a document states as a whole, in minor units: its total, what is payable or was paid, or the debits of its journal';

CREATE TABLE daybook.entries (
    impact_id     bigint NOT NULL,
    line_no       integer NOT NULL CHECK (line_no > 0),
    org_id        text COLLATE "C" NOT NULL,
    account_code  text COLLATE "C" NOT NULL,
    side          daybook.entry_side NOT NULL,
    amount_minor  bigint NOT NULL CHECK (amount_minor > 0),
    currency      text NOT NULL CHECK (length(currency) = 3),
    rule_line_id  text NOT NULL DEFAULT '',
    document_line integer,
    dimensions    jsonb CHECK (jsonb_typeof(dimensions) = 'object' AND dimensions <> '{}'),
    PRIMARY KEY (impact_id, line_no)
);
COMMENT ON COLUMN daybook.entries.dimensions IS
    'What statements can be split by, such as {"cost_centre": "sales"}: a text for each key; null: nothing';
COMMENT ON COLUMN daybook.entries.amount_minor IS 'In minor units of the currency (cents, whole yen)';
-- Balances, and the ledger of an account.
CREATE INDEX entries_account ON daybook.entries (org_id, account_code, currency);
CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON daybook.entries
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_change();

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

-- An impact and its entries are inserted by one statement (a WITH), at whose end both checks see
-- all rows. So an impact always has the entries that it announces, and can get no other later. The
-- checks run once for a statement, not once for a row.
--
-- SQLSTATEs: DB001 an impact does not balance, DB002 it has not the entries that it announces,
-- DB003 an account is unknown or does not take the currency, DB006 a reversal does not mirror the
-- impact before it.
CREATE FUNCTION daybook.check_entries() RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    bad record;
BEGIN
    -- One pass finds that nothing is wrong, as long as an impact has one currency; two more say
    -- what is wrong, and look at impacts of several currencies. The impact is looked up by its id
    -- alone: with more keys in the join the planner may prefer another index.
    IF EXISTS (SELECT 1
                 FROM (SELECT impact_id, org_id, currency, count(*) AS entries, max(line_no) AS last_line,
                              sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END) AS difference
                         FROM new_entries GROUP BY impact_id, org_id, currency) n
                 LEFT JOIN daybook.impacts i ON i.id = n.impact_id
                WHERE n.difference <> 0 OR i.entry_count IS DISTINCT FROM n.entries OR n.last_line <> n.entries OR i.org_id <> n.org_id) THEN
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
    END IF;

    -- All lines are compared with the present chart at once. Reversals are compared with what they
    -- mirror (check_impacts) and not with the chart; which lines belong to reversals is only read
    -- when a line does not fit the chart.
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

-- Whether an impact with entries has all of them is checked with the entries; here are those
-- without any.
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

    IF EXISTS (SELECT 1 FROM new_impacts n WHERE n.seq > 1) THEN
        -- Each impact is looked up by itself (OFFSET 0 keeps the join from being put another way):
        -- a plan that was made while the table was empty would read all of it. chain_has_no_gap is
        -- no foreign key: that would be a trigger's call for each first impact as well, which has
        -- none before it. Impacts are never changed or removed, so the one before needs no lock: it
        -- has to be visible here, which makes it committed or this transaction's own.
        SELECT n.id, n.seq
          INTO bad
          FROM new_impacts n
          LEFT JOIN LATERAL (SELECT x.seq FROM daybook.impacts x WHERE x.org_id = n.org_id AND x.document_id = n.document_id AND x.seq = n.previous_seq OFFSET 0) p ON true
         WHERE n.seq > 1 AND p.seq IS NULL
         LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'impact % is number % of its document''s chain, which has no number %', bad.id, bad.seq, bad.seq - 1
                USING ERRCODE = 'foreign_key_violation', SCHEMA = 'daybook', TABLE = 'impacts', CONSTRAINT = 'chain_has_no_gap',
                      HINT = 'the impacts of a document are numbered from 1 without a gap; insert them in that order';
        END IF;

        -- The rest of impacts_once. The chain has no gap, so the first posting is visible here.
        SELECT n.id, f.id AS posted
          INTO bad
          FROM new_impacts n
         CROSS JOIN LATERAL (SELECT * FROM daybook.impacts x WHERE x.org_id = n.org_id AND x.document_id = n.document_id AND x.seq = 1 OFFSET 0) f
         WHERE n.seq > 1 AND n.kind = 'post' AND f.document_version = n.document_version AND f.rule_set_version = n.rule_set_version AND f.epoch = n.epoch
         LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'impact % posts what impact % has posted: the same version, rule set and epoch of a document', bad.id, bad.posted
                USING ERRCODE = 'unique_violation', SCHEMA = 'daybook', TABLE = 'impacts', CONSTRAINT = 'impacts_once',
                      HINT = 'repost_accounting_job posts a version anew, in an epoch of its own';
        END IF;

        SELECT n.id, p.id AS mirrored
          INTO bad
          FROM new_impacts n
         CROSS JOIN LATERAL (SELECT * FROM daybook.impacts x WHERE x.org_id = n.org_id AND x.document_id = n.document_id AND x.seq = n.previous_seq OFFSET 0) p
         WHERE n.kind = 'reverse'
           AND (n.entry_count <> p.entry_count
                OR EXISTS (SELECT 1
                             FROM daybook.entries e
                             LEFT JOIN daybook.entries o ON o.impact_id = p.id AND o.line_no = e.line_no
                            WHERE e.impact_id = n.id
                              AND (o.side IS NOT DISTINCT FROM e.side
                                   OR (o.account_code, o.amount_minor, o.currency, o.rule_line_id, o.document_line, o.dimensions)
                                      IS DISTINCT FROM (e.account_code, e.amount_minor, e.currency, e.rule_line_id, e.document_line, e.dimensions))))
         LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'impact % does not mirror impact %', bad.id, bad.mirrored
                USING ERRCODE = 'DB006', HINT = 'a reversal has the lines of the impact before it, each on the opposite side';
        END IF;
    END IF;

    SELECT n.org_id, n.document_id, n.posting_date, s.starts_on, s.ends_on, s.in_period
      INTO bad
      FROM (SELECT DISTINCT x.org_id FROM new_impacts x) o
     CROSS JOIN LATERAL daybook.closed_spans(o.org_id) s
      JOIN new_impacts n ON n.org_id = o.org_id AND n.posting_date BETWEEN s.starts_on AND s.ends_on
     WHERE EXISTS (SELECT FROM daybook.periods p WHERE p.org_id = o.org_id AND p.state = 'closed')
     LIMIT 1;
    IF FOUND AND bad.in_period THEN
        RAISE EXCEPTION 'document % of organization % would be posted on %, in the closed period from % to %',
            bad.document_id, bad.org_id, bad.posting_date, bad.starts_on, bad.ends_on
            USING ERRCODE = 'DB005', HINT = 'open the period, or let the organization post on the first open day';
    ELSIF FOUND THEN
        RAISE EXCEPTION 'document % of organization % would be posted on %, in no period, before one that is closed or before the first open one',
            bad.document_id, bad.org_id, bad.posting_date
            USING ERRCODE = 'DB005', HINT = 'add an open period for the date, or let the organization post on the first open day';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER impacts_check AFTER INSERT ON daybook.impacts
    REFERENCING NEW TABLE AS new_impacts
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.check_impacts();

-- A document's version never decreases: a row that is inserted anew continues after the highest
-- version that the queue or the ledger knows of the document, so that a new request is newer than
-- everything that was done. INSERT … RETURNING returns the version.
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

-- +goose StatementEnd

-- +goose Down
DROP TRIGGER documents_continue_versions ON daybook.documents;
DROP FUNCTION daybook.continue_versions;
DROP TABLE daybook.confirmations, daybook.entries, daybook.impacts;
DROP FUNCTION daybook.check_impacts, daybook.check_entries, daybook.stated_amount, daybook.stated_number, daybook.states_amount;
DROP TYPE daybook.impact_kind, daybook.entry_side;
