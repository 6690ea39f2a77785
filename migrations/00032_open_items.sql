-- Chapter 32: open items: what each document has on accounts of receivables, payables and advances,
-- which documents belong together, and what is open of them.
--
-- SQLSTATEs: DB010 the request is invalid, DB013 a document has no item.

-- +goose Up
-- +goose StatementBegin

-- Which documents belong together. What a group comes to is computed from the entries, on any day.
CREATE TABLE daybook.reconciled (
    org_id      text COLLATE "C" NOT NULL CHECK (org_id <> '' AND octet_length(org_id) <= 255),
    document_id text COLLATE "C" NOT NULL CHECK (document_id <> '' AND octet_length(document_id) <= 255),
    group_id    bigint NOT NULL,
    matched_by  text NOT NULL CHECK (matched_by IN ('hand', 'reference', 'number', 'amount')),
    reason      text NOT NULL DEFAULT '' CHECK (octet_length(reason) <= 1000),
    actor       text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (org_id, document_id)
);
CREATE INDEX reconciled_group ON daybook.reconciled (org_id, group_id);
CREATE SEQUENCE daybook.reconciled_group_seq OWNED BY daybook.reconciled.group_id;
COMMENT ON TABLE daybook.reconciled IS
    'The documents that are in a group: an invoice with its payments, credit notes, refunds and deposits';
COMMENT ON COLUMN daybook.reconciled.matched_by IS
    'hand: a person; reference: a document refers to another; number: a payment names a document''s number, and the amount is equal; amount: the counterparty and the amount are equal';
COMMENT ON COLUMN daybook.reconciled.actor IS 'Who put the document into the group';

-- What is open at the end of closed days, so that what is open later need not read what was posted
-- until then. A row is kept of each document that is open then by itself, or is in a group that is.
-- Of the documents of a group, and of each that is in none, the rows add up to what was posted until
-- then, whatever was put together since. Only the functions of this chapter write them.
CREATE TABLE daybook.closed_item_days (
    org_id   text COLLATE "C" NOT NULL,
    last_day date NOT NULL,
    accounts text[] COLLATE "C" NOT NULL,
    kept_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (org_id, last_day)
);
COMMENT ON TABLE daybook.closed_item_days IS 'Days at whose end, with all days before them closed, it is kept what is open';
COMMENT ON COLUMN daybook.closed_item_days.accounts IS 'The accounts that had open items: closed_items has those of these';

CREATE TABLE daybook.closed_items (
    org_id       text COLLATE "C" NOT NULL,
    last_day     date NOT NULL,
    document_id  text COLLATE "C" NOT NULL,
    account_code text COLLATE "C" NOT NULL,
    currency     text NOT NULL,
    amount       numeric NOT NULL,
    PRIMARY KEY (org_id, last_day, document_id, account_code, currency),
    FOREIGN KEY (org_id, last_day) REFERENCES daybook.closed_item_days ON DELETE CASCADE
);
CREATE INDEX closed_items_document ON daybook.closed_items (org_id, document_id);
COMMENT ON TABLE daybook.closed_items IS 'What documents that were open at the end of a closed day had posted until then, debits less credits, in minor units';

-- What a currency was worth in the organization's own one. A day without a rate has that of the
-- latest day before it.
CREATE TABLE daybook.rates (
    org_id     text COLLATE "C" NOT NULL REFERENCES daybook.organizations (id),
    currency   text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    valid_on   date NOT NULL CHECK (daybook.is_bookable(valid_on)),
    rate       numeric NOT NULL CHECK (rate > 0 AND rate < 1e12),
    source     text NOT NULL DEFAULT '' CHECK (octet_length(source) <= 255),
    actor      text NOT NULL DEFAULT session_user,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (org_id, currency, valid_on)
);
COMMENT ON TABLE daybook.rates IS 'What currencies were worth in an organization''s own one';
COMMENT ON COLUMN daybook.rates.rate IS 'Units of the own currency for one of this currency, such as 0.92 (EUR for one USD)';
COMMENT ON COLUMN daybook.rates.source IS 'Where the rate is from, such as a central bank';

-- How many decimal digits the minor unit of a currency has: models.MinorDigits says the same.
CREATE FUNCTION daybook.minor_digits(currency text) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN currency = ANY ('{BIF,CLP,DJF,GNF,ISK,JPY,KMF,KRW,PYG,RWF,UGX,UYI,VND,VUV,XAF,XOF,XPF,ADP,BEF,BYB,BYR,ESP,GRD,ITL,LUF,MGF,PTE,ROL,TPE,TRL}') THEN 0
                WHEN currency = ANY ('{BHD,IQD,JOD,KWD,LYD,OMR,TND}') THEN 3
                WHEN currency = ANY ('{CLF,UYW}') THEN 4
                ELSE 2 END
$$;

-- A text YYYY-MM-DD as a date; null: it is none. It never fails: content is written by applications.
CREATE FUNCTION daybook.day_of(day text) RETURNS date
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN day ~ '^(19|2\d)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$'
                THEN make_date(left(day, 4)::integer, substr(day, 6, 2)::integer, 1) + right(day, 2)::integer - 1 END
$$;

-- The document that has what is open of a document: an open item of another system that stands for
-- it, or itself.
CREATE FUNCTION daybook.open_item_of(org_id text, document_id text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce((SELECT p.open_item FROM daybook.posted_elsewhere p WHERE p.org_id = $1 AND p.document_id = $2 AND p.next <> 'full'), $2)
$$;

-- Puts on record for which documents of another system imported open items stand: three lists of one
-- length. Of such a document nothing is posted when it is imported later. It runs with the rights of
-- the schema's owner, because no role may say otherwise what another system has posted.
--
-- It takes the configuration of each organization for itself. So nothing is posted meanwhile of a
-- document that is not on record yet, and two items do not come to stand for one document: there may
-- be no row yet that either could lock.
--
-- Locks: the configuration (exclusive). The caller has the rows of documents before it, and jobs after
-- it.
CREATE FUNCTION daybook.stand_for_documents(org_ids text[], open_items text[], documents text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bad record;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the isolation level is %: what is posted may not be seen', current_setting('transaction_isolation')
            USING ERRCODE = 'DB010', HINT = 'say which documents open items stand for in a transaction that is READ COMMITTED';
    END IF;
    SELECT u.id, u.item INTO bad
      FROM unnest(org_ids, open_items, documents) AS u (org, item, id)
      LEFT JOIN daybook.documents d ON d.org_id = u.org AND d.id = u.item AND d.deleted_at IS NULL
     WHERE d.id IS NULL OR u.item NOT LIKE 'opening:%' OR u.id IS NULL OR u.id = u.item
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% is no open item that can stand for document %', bad.item, bad.id USING ERRCODE = 'DB010';
    END IF;
    PERFORM daybook.lock_configuration(o.org) FROM (SELECT DISTINCT u AS org FROM unnest(org_ids) u ORDER BY 1) o;
    SELECT u.id INTO bad
      FROM unnest(org_ids, documents) AS u (org, id)
     WHERE EXISTS (SELECT FROM daybook.impacts i WHERE i.org_id = u.org AND i.document_id = u.id)
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'document % is posted here already: it would be open twice', bad.id
            USING ERRCODE = 'DB010', HINT = 'leave the line out';
    END IF;
    SELECT u.id, min(coalesce(p.open_item, u.item)) AS item INTO bad
      FROM unnest(org_ids, open_items, documents) AS u (org, item, id)
      LEFT JOIN daybook.posted_elsewhere p ON p.org_id = u.org AND p.document_id = u.id
     GROUP BY u.org, u.id
    HAVING count(*) > 1 OR bool_or(p.open_item <> u.item)
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'document % has the open item % already', bad.id, bad.item
            USING ERRCODE = 'DB010', HINT = 'leave the column document empty in all lines of a document but one';
    END IF;
    INSERT INTO daybook.posted_elsewhere AS p (org_id, document_id, document_version, next, posted_on, system, open_item)
    SELECT u.org, u.id, greatest(1, d.accounting_ready_version), 'wait', o.issue_date, 'opening', u.item
      FROM unnest(org_ids, open_items, documents) AS u (org, item, id)
      JOIN daybook.documents o ON o.org_id = u.org AND o.id = u.item
      LEFT JOIN daybook.documents d ON d.org_id = u.org AND d.id = u.id
        ON CONFLICT ON CONSTRAINT posted_elsewhere_pkey DO UPDATE
       SET open_item = excluded.open_item, updated_at = clock_timestamp()
     WHERE p.open_item IS NULL;
END
$$;
REVOKE ALL ON FUNCTION daybook.stand_for_documents FROM PUBLIC;
COMMENT ON FUNCTION daybook.stand_for_documents IS
    'Puts on record for which documents of another system imported open items stand, so that these are not posted again';

-- An open item that is deleted or removed stands for no document any more.
CREATE FUNCTION daybook.open_item_ends() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM daybook.posted_elsewhere p WHERE p.org_id = OLD.org_id AND p.open_item = OLD.id AND p.system = 'opening';
    UPDATE daybook.posted_elsewhere p SET open_item = NULL, updated_at = clock_timestamp() WHERE p.org_id = OLD.org_id AND p.open_item = OLD.id;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION daybook.open_item_ends FROM PUBLIC;
CREATE TRIGGER open_item_removed AFTER DELETE ON daybook.documents
    FOR EACH ROW WHEN (OLD.id LIKE 'opening:%') EXECUTE FUNCTION daybook.open_item_ends();
CREATE TRIGGER open_item_deleted AFTER UPDATE OF deleted_at ON daybook.documents
    FOR EACH ROW WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL AND OLD.id LIKE 'opening:%') EXECUTE FUNCTION daybook.open_item_ends();

-- The codes of the accounts that have open items.
CREATE FUNCTION daybook.item_accounts(org_id text) RETURNS text[]
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(array_agg(a.code ORDER BY a.code), '{}') FROM daybook.accounts a
     WHERE a.org_id = item_accounts.org_id AND a.role IN ('receivable', 'payable', 'advance')
$$;

-- What is not zero of each group, and of each document that is in none, by what was posted until a day
-- (null: all). Of closed days, the items that are kept are read. Impacts that were made one after the
-- other have ids beside each other: the bounds of the ids let PostgreSQL read their entries as one
-- range. Without more memory than its default the sums of a million documents would go through files,
-- and without amounts of one type no more than one process would add them up.
CREATE FUNCTION daybook.open_units(org_id text, until date, accounts text[])
    RETURNS TABLE (group_id bigint, document_id text, account_code text, currency text, amount numeric)
    LANGUAGE plpgsql STABLE ROWS 10000 SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_custom_plan SET jit = off SET random_page_cost = 1.1 SET work_mem = '64MB'
AS $$
#variable_conflict use_column
DECLARE
    _org   CONSTANT text := open_units.org_id;
    _until CONSTANT date := coalesce(open_units.until, 'infinity');
    _kept  CONSTANT date := coalesce((SELECT max(k.last_day) FROM daybook.closed_item_days k
                                       WHERE k.org_id = _org AND k.last_day <= _until AND k.accounts @> open_units.accounts), '-infinity');
    _first bigint;
    _last  bigint;
BEGIN
    SELECT min(i.id + 0), max(i.id + 0) INTO _first, _last
      FROM daybook.impacts i WHERE i.org_id = _org AND i.posting_date > _kept AND i.posting_date <= _until;
    RETURN QUERY
    SELECT r.group_id, CASE WHEN r.group_id IS NULL THEN x.document_id END, x.account_code, x.currency, sum(x.amount)
      FROM (SELECT k.document_id, k.account_code, k.currency, k.amount
              FROM daybook.closed_items k WHERE k.org_id = _org AND k.last_day = _kept AND k.account_code = ANY (accounts)
             UNION ALL
            SELECT i.document_id, e.account_code, e.currency, (CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)::numeric
              FROM daybook.impacts i
              JOIN daybook.entries e ON e.impact_id = i.id AND e.impact_id BETWEEN _first AND _last AND e.account_code = ANY (accounts)
             WHERE i.org_id = _org AND i.posting_date > _kept AND i.posting_date <= _until) x
      LEFT JOIN daybook.reconciled r ON r.org_id = _org AND r.document_id = x.document_id
     GROUP BY 1, 2, 3, 4
    HAVING sum(x.amount) <> 0;
END
$$;

-- The items of an organization, or of some documents alone, by what was posted until a day (null:
-- all), with what is open of each. In a group, credits pay debits, the oldest first. The day of an
-- item is the document's in its last impact until then: what was posted under another date and
-- reversed does not count.
--
-- Most documents of an organization are in groups of which nothing is open. So amounts are added up by
-- group first, and only of groups that are open by document.
CREATE FUNCTION daybook.item_amounts(org_id text, until date, documents text[])
    RETURNS TABLE (document_id text, account_code text, currency text, day date, amount numeric, open_amount numeric, group_id bigint)
    LANGUAGE plpgsql STABLE ROWS 10000 SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_custom_plan SET jit = off SET random_page_cost = 1.1 SET work_mem = '64MB'
AS $$
#variable_conflict use_column
DECLARE
    _org      CONSTANT text := item_amounts.org_id;
    _until    CONSTANT date := coalesce(item_amounts.until, 'infinity');
    _accounts CONSTANT text[] := daybook.item_accounts(_org);
BEGIN
    RETURN QUERY
    WITH units AS MATERIALIZED (
        SELECT u.* FROM daybook.open_units(_org, _until, _accounts) u WHERE documents IS NULL
    ), members AS (
        SELECT d.id FROM unnest(documents) AS d (id)
         UNION
        SELECT r.document_id FROM units u JOIN daybook.reconciled r ON r.org_id = _org AND r.group_id = u.group_id
    ), items AS MATERIALIZED (
        SELECT r.group_id, m.id AS document_id, e.account_code, e.currency, date '1900-01-01' + (max(ARRAY[i.seq, i.document_date - date '1900-01-01']))[2] AS day,
               sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) AS amount
          FROM members m
         CROSS JOIN LATERAL (SELECT * FROM daybook.impacts x WHERE x.org_id = _org AND x.document_id = m.id AND x.posting_date <= _until OFFSET 0) i
          JOIN daybook.entries e ON e.impact_id = i.id AND e.account_code = ANY (_accounts)
          LEFT JOIN daybook.reconciled r ON r.org_id = _org AND r.document_id = m.id
         GROUP BY r.group_id, m.id, e.account_code, e.currency
        HAVING sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) <> 0
    ), shared AS (
        SELECT s.*, sum(greatest(s.amount, 0)) OVER whole AS debits, sum(greatest(-s.amount, 0)) OVER whole AS credits,
               coalesce(sum(abs(s.amount)) OVER (PARTITION BY s.group_id, s.account_code, s.currency, sign(s.amount)
                   ORDER BY s.day, s.document_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS older
          FROM items s
         WHERE s.group_id IS NOT NULL
        WINDOW whole AS (PARTITION BY s.group_id, s.account_code, s.currency)
    )
    SELECT s.document_id, s.account_code, s.currency, s.day, s.amount,
           CASE WHEN s.amount > 0 THEN s.amount - greatest(0, least(s.amount, s.credits - s.older))
                ELSE s.amount + greatest(0, least(-s.amount, s.debits - s.older)) END, s.group_id
      FROM shared s
     UNION ALL
    SELECT s.document_id, s.account_code, s.currency, s.day, s.amount, s.amount, NULL FROM items s WHERE s.group_id IS NULL
     UNION ALL
    SELECT u.document_id, u.account_code, u.currency, NULL, u.amount, u.amount, NULL FROM units u WHERE u.group_id IS NULL;
END
$$;

-- item_amounts with what their documents say. closed: those of which nothing is open as well.
CREATE FUNCTION daybook.items_until(org_id text, until date, documents text[], closed boolean)
    RETURNS TABLE (
        document_id text, account_code text, currency text, role text, type text, direction text, number text, counterparty text,
        issue_date date, due_date date, amount numeric, open_amount numeric, group_id bigint
    )
    LANGUAGE sql STABLE ROWS 10000 SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
SELECT o.document_id, o.account_code, o.currency, a.role, coalesce(d.type, ''), coalesce(d.direction, ''), coalesce(d.content ->> 'number', ''),
       coalesce(nullif(d.content ->> 'counterparty', ''),
           CASE WHEN o.group_id IS NOT NULL THEN
               (SELECT min(nullif(x.content ->> 'counterparty', '')) FROM daybook.reconciled r JOIN daybook.documents x ON x.org_id = r.org_id AND x.id = r.document_id
                 WHERE r.org_id = items_until.org_id AND r.group_id = o.group_id) END, ''),
       coalesce(d.issue_date, o.day, (SELECT i.document_date FROM daybook.impacts i
                                       WHERE i.org_id = items_until.org_id AND i.document_id = o.document_id AND (i.posting_date > items_until.until) IS NOT TRUE
                                       ORDER BY i.seq DESC LIMIT 1)),
       daybook.day_of(d.content ->> 'due_date'), o.amount, o.open_amount, o.group_id
  FROM daybook.item_amounts(items_until.org_id, items_until.until, documents) o
  JOIN daybook.accounts a ON a.org_id = items_until.org_id AND a.code = o.account_code
  LEFT JOIN LATERAL (SELECT * FROM daybook.documents x WHERE x.org_id = items_until.org_id AND x.id = o.document_id OFFSET 0) d ON true
 WHERE closed OR o.open_amount <> 0
$$;
COMMENT ON FUNCTION daybook.items_until IS
    'The items until a day (null: all) of an organization, or of some documents, and what is open of each: debits less credits, in minor units';

-- What is open on a day: of each document, account and currency, by what was posted until then
-- (null: all). The open amounts add up to the accounts' balances on that day.
CREATE FUNCTION daybook.open_items(org_id text, on_day date DEFAULT NULL)
    RETURNS TABLE (
        document_id text, account_code text, currency text, role text, type text, direction text, number text, counterparty text,
        issue_date date, due_date date, amount numeric, open_amount numeric, group_id bigint
    )
    LANGUAGE sql STABLE ROWS 100000 SET search_path = pg_catalog, pg_temp
AS $$
    SELECT * FROM daybook.items_until(open_items.org_id, open_items.on_day, NULL, false)
$$;
COMMENT ON FUNCTION daybook.open_items IS
    'What is open on a day (null: of all that is posted) of each document on accounts of receivables, payables and advances: debits less credits, in minor units';

-- The items of a document and of those in its group, also those of which nothing is open.
CREATE FUNCTION daybook.items_of_document(org_id text, of_document text, until date DEFAULT NULL)
    RETURNS TABLE (
        document_id text, account_code text, currency text, role text, type text, direction text, number text, counterparty text,
        issue_date date, due_date date, amount numeric, open_amount numeric, group_id bigint
    )
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT * FROM daybook.items_until($1, $3, (
        SELECT coalesce(array_agg(g.document_id), ARRAY[daybook.open_item_of($1, $2)])
          FROM daybook.reconciled r JOIN daybook.reconciled g ON g.org_id = r.org_id AND g.group_id = r.group_id
         WHERE r.org_id = $1 AND r.document_id = daybook.open_item_of($1, $2)), true)
$$;
COMMENT ON FUNCTION daybook.items_of_document IS 'The items of a document and of those in its group, also those of which nothing is open';

-- Groups change one after the other. A transaction of a stricter isolation level may not see what the
-- one before it did to a group, and would tear it apart.
CREATE FUNCTION daybook.see_groups_whole() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the isolation level is %: a group may not be seen whole', current_setting('transaction_isolation')
            USING ERRCODE = 'DB010', HINT = 'put documents together, or take them apart, in a transaction that is READ COMMITTED';
    END IF;
END
$$;

-- Keeps what is open on the last day until which all days are closed, and removes what is kept of
-- later days, which are open. The caller holds the organization's configuration, so nothing is posted
-- on these days before they are opened. An organization that puts nothing together has all its
-- documents kept each time: so the thirteen latest days are enough.
CREATE FUNCTION daybook.keep_closed_items(org_id text, closed_days datemultirange) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _org      CONSTANT text := keep_closed_items.org_id;
    _accounts CONSTANT text[] := daybook.item_accounts(_org);
    _last     CONSTANT date := (SELECT upper(r) - 1 FROM unnest(closed_days) AS r WHERE lower(r) <= date '1900-01-01');
BEGIN
    PERFORM pg_advisory_xact_lock(daybook.lock_class('reconciliations'), hashtext(_org));
    DELETE FROM daybook.closed_item_days k
     WHERE k.org_id = _org AND (_last IS NULL OR k.last_day > _last OR k.last_day = _last AND NOT k.accounts @> _accounts);
    IF _last IS NULL OR EXISTS (SELECT FROM daybook.closed_item_days k WHERE k.org_id = _org AND k.last_day = _last) THEN
        RETURN;
    END IF;
    -- In one statement, which does not see the day as one that is kept.
    WITH day AS (
        INSERT INTO daybook.closed_item_days (org_id, last_day, accounts) VALUES (_org, _last, _accounts)
    )
    INSERT INTO daybook.closed_items (org_id, last_day, document_id, account_code, currency, amount)
    SELECT _org, _last, i.document_id, i.account_code, i.currency, i.amount FROM daybook.item_amounts(_org, _last, NULL) i;
    DELETE FROM daybook.closed_item_days k
     WHERE k.org_id = _org
       AND k.last_day <= (SELECT x.last_day FROM daybook.closed_item_days x WHERE x.org_id = _org ORDER BY x.last_day DESC OFFSET 13 LIMIT 1);
END
$$;
REVOKE ALL ON FUNCTION daybook.keep_closed_items FROM PUBLIC;

-- Documents that leave a group come back: what each of them, and of those that stay, had on closed
-- days is kept anew. It runs with the rights of the schema's owner, because no role may write that
-- otherwise. Groups that move into another one as a whole change no sum.
CREATE FUNCTION daybook.keep_items_of_parted_groups() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    parted record;
BEGIN
    FOR parted IN
        SELECT m.org_id, array_agg(m.document_id) AS documents
          FROM (SELECT o.org_id, o.group_id, o.document_id FROM old_rows o
                 UNION
                SELECT r.org_id, r.group_id, r.document_id FROM old_rows o JOIN daybook.reconciled r ON r.org_id = o.org_id AND r.group_id = o.group_id) m
          LEFT JOIN daybook.reconciled r ON r.org_id = m.org_id AND r.document_id = m.document_id
         GROUP BY m.org_id, m.group_id
        HAVING count(r.group_id) < count(*) OR min(r.group_id) <> max(r.group_id)
         ORDER BY m.org_id
    LOOP
        PERFORM daybook.see_groups_whole();
        PERFORM pg_advisory_xact_lock(daybook.lock_class('reconciliations'), hashtext(parted.org_id));
        DELETE FROM daybook.closed_items k WHERE k.org_id = parted.org_id AND k.document_id = ANY (parted.documents);
        INSERT INTO daybook.closed_items (org_id, last_day, document_id, account_code, currency, amount)
        SELECT k.org_id, k.last_day, i.document_id, e.account_code, e.currency, sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)
          FROM unnest(parted.documents) AS d (id)
         CROSS JOIN LATERAL (SELECT * FROM daybook.impacts x WHERE x.org_id = parted.org_id AND x.document_id = d.id OFFSET 0) i
          JOIN daybook.entries e ON e.impact_id = i.id
          JOIN daybook.closed_item_days k ON k.org_id = parted.org_id AND k.last_day >= i.posting_date AND e.account_code = ANY (k.accounts)
         GROUP BY 1, 2, 3, 4, 5
        HAVING sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) <> 0;
    END LOOP;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION daybook.keep_items_of_parted_groups FROM PUBLIC; -- the right to make it a trigger of any table
CREATE TRIGGER reconciled_deleted AFTER DELETE ON daybook.reconciled
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION daybook.keep_items_of_parted_groups();
CREATE TRIGGER reconciled_changed AFTER UPDATE ON daybook.reconciled
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION daybook.keep_items_of_parted_groups();

-- Puts documents into one group, and returns its number. The groups that they were in become one
-- group, with all their documents. Each must have something posted, now or before, on an account
-- with open items.
CREATE FUNCTION daybook.reconcile(
    org_id     text,
    documents  text[],
    reason     text DEFAULT '',
    matched_by text DEFAULT 'hand',
    actor      text DEFAULT session_user
) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _org   CONSTANT text := reconcile.org_id;
    ids    text[];
    groups bigint[];
    target bigint;
    bad    text;
BEGIN
    PERFORM daybook.see_groups_whole();
    ids := ARRAY(SELECT DISTINCT daybook.open_item_of(_org, u.id) FROM unnest(documents) AS u (id) WHERE u.id IS NOT NULL ORDER BY 1);
    IF cardinality(ids) < 2 OR reconcile.reason IS NULL OR octet_length(reconcile.reason) > 1000 OR coalesce(reconcile.actor, '') = '' THEN
        RAISE EXCEPTION 'a group takes two documents at least, a reason of at most 1000 bytes, and who puts them together' USING ERRCODE = 'DB010';
    END IF;
    PERFORM pg_advisory_xact_lock(daybook.lock_class('reconciliations'), hashtext(_org));
    SELECT u.id INTO bad FROM unnest(ids) AS u (id)
     WHERE NOT EXISTS (SELECT FROM daybook.impacts i JOIN daybook.entries e ON e.impact_id = i.id
                         JOIN daybook.accounts a ON a.org_id = _org AND a.code = e.account_code AND a.role IN ('receivable', 'payable', 'advance')
                        WHERE i.org_id = _org AND i.document_id = u.id)
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'document % of organization % has nothing on an account with open items', bad, _org
            USING ERRCODE = 'DB013', HINT = 'wait until it is posted; accounts have open items by their role: receivable, payable or advance';
    END IF;
    groups := ARRAY(SELECT DISTINCT r.group_id FROM daybook.reconciled r WHERE r.org_id = _org AND r.document_id = ANY (ids) ORDER BY 1);
    target := coalesce(groups[1], nextval('daybook.reconciled_group_seq'));
    UPDATE daybook.reconciled r SET group_id = target WHERE r.org_id = _org AND r.group_id = ANY (groups[2:]);
    INSERT INTO daybook.reconciled AS r (org_id, document_id, group_id, matched_by, reason, actor)
    SELECT _org, u.id, target, reconcile.matched_by, reconcile.reason, reconcile.actor FROM unnest(ids) AS u (id)
        ON CONFLICT ON CONSTRAINT reconciled_pkey DO NOTHING;
    RETURN target;
END
$$;
COMMENT ON FUNCTION daybook.reconcile IS
    'Puts documents, and the groups that they are in, into one group, and returns its number';

-- Takes documents out of their groups, or dissolves a group, and returns the documents that are in
-- none any more. One that would be alone in its group leaves it, too.
CREATE FUNCTION daybook.unreconcile(org_id text, documents text[] DEFAULT NULL, group_id bigint DEFAULT NULL) RETURNS SETOF text
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _org   CONSTANT text := unreconcile.org_id;
    ids    CONSTANT text[] := ARRAY(SELECT daybook.open_item_of(_org, u.id) FROM unnest(unreconcile.documents) AS u (id));
    groups bigint[];
BEGIN
    PERFORM daybook.see_groups_whole();
    IF (unreconcile.documents IS NULL) = (unreconcile.group_id IS NULL) THEN
        RAISE EXCEPTION 'give either documents or a group' USING ERRCODE = 'DB010';
    END IF;
    PERFORM pg_advisory_xact_lock(daybook.lock_class('reconciliations'), hashtext(_org));
    groups := ARRAY(SELECT DISTINCT r.group_id FROM daybook.reconciled r
                     WHERE r.org_id = _org AND (r.document_id = ANY (ids) OR r.group_id = unreconcile.group_id));
    RETURN QUERY
    DELETE FROM daybook.reconciled r
     WHERE r.org_id = _org AND r.group_id = ANY (groups) AND (r.group_id = unreconcile.group_id OR r.document_id = ANY (ids))
    RETURNING r.document_id;
    RETURN QUERY
    DELETE FROM daybook.reconciled r
     WHERE r.org_id = _org
       AND r.group_id IN (SELECT x.group_id FROM daybook.reconciled x WHERE x.org_id = _org AND x.group_id = ANY (groups) GROUP BY x.group_id HAVING count(*) = 1)
    RETURNING r.document_id;
END
$$;
COMMENT ON FUNCTION daybook.unreconcile IS
    'Takes documents out of their groups, or dissolves a group, and returns the documents that are in none any more';

-- The words of a text, in small letters, in a row: what is no letter and no digit stands between
-- words. A number is in a text as a whole when its words are.
CREATE FUNCTION daybook.words_of(words text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT trim(both ' ' from regexp_replace(lower(words), '[^[:alnum:]]+', ' ', 'g'))
$$;

-- Puts two documents, and the groups that they are in, into one group, and returns its number. The
-- caller has the lock.
CREATE FUNCTION daybook.link_documents(org_id text, one text, other text, matched_by text, actor text) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    a bigint := (SELECT r.group_id FROM daybook.reconciled r WHERE r.org_id = link_documents.org_id AND r.document_id = one);
    b bigint := (SELECT r.group_id FROM daybook.reconciled r WHERE r.org_id = link_documents.org_id AND r.document_id = other);
    target bigint := coalesce(least(a, b), nextval('daybook.reconciled_group_seq'));
BEGIN
    IF a <> b THEN
        UPDATE daybook.reconciled r SET group_id = target WHERE r.org_id = link_documents.org_id AND r.group_id = greatest(a, b);
    END IF;
    INSERT INTO daybook.reconciled (org_id, document_id, group_id, matched_by, actor)
    SELECT link_documents.org_id, u.id, target, link_documents.matched_by, link_documents.actor
      FROM unnest(ARRAY[one, other]) AS u (id)
        ON CONFLICT ON CONSTRAINT reconciled_pkey DO NOTHING;
    RETURN target;
END
$$;

-- Documents whose open items belong together by a rule:
--
--   reference  the one refers to the number or the id of the other, on the same account in the same
--              currency; the counterparty is the same, or one of them names none. A number that
--              several documents have is no reference, unless one alone is of the counterparty
--   number     the texts of a movement of money name the number of the other as a whole, and the
--              amount is equal: of all that is open, one of each fits
--   amount     the counterparty is the same and the amount equal: of all that is open, one of each
--              fits
--
-- What is in a group already counts with what is open of it. A counterparty that was erased is none.
CREATE FUNCTION daybook.matching_items(org_id text, rule text)
    RETURNS TABLE (document_id text, other_id text, account_code text, currency text, amount numeric)
    LANGUAGE plpgsql STABLE ROWS 10000 SET search_path = pg_catalog, pg_temp SET work_mem = '64MB' SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    _org CONSTANT text := matching_items.org_id;
BEGIN
    IF rule = 'amount' THEN
        RETURN QUERY
        SELECT min(o.document_id) FILTER (WHERE o.open_amount < 0), min(o.document_id) FILTER (WHERE o.open_amount > 0),
               o.account_code, o.currency, abs(o.open_amount)
          FROM daybook.open_items(_org) o
         WHERE o.counterparty NOT IN ('', '[erased]')
         GROUP BY o.account_code, o.currency, o.counterparty, abs(o.open_amount)
        HAVING count(*) = 2 AND sum(o.open_amount) = 0;
    ELSIF rule = 'number' THEN
        RETURN QUERY
        WITH open AS MATERIALIZED (
            SELECT * FROM daybook.open_items(_org)
        ), texts AS MATERIALIZED (
            SELECT o.document_id, o.account_code, o.currency, o.open_amount,
                   string_to_array(daybook.words_of(concat_ws(' / ', d.content ->> 'number', d.content -> 'attributes' ->> 'text',
                       d.content -> 'attributes' ->> 'reference', d.content -> 'attributes' ->> 'end_to_end')), ' ') AS words
              FROM open o JOIN daybook.documents d ON d.org_id = _org AND d.id = o.document_id
             WHERE o.type NOT IN ('invoice', 'credit_note')
        ), named AS (
            SELECT t.document_id, t.account_code, t.currency, t.open_amount, array_to_string(t.words[f.n:f.n + k.n], ' ') AS number
              FROM texts t
             CROSS JOIN LATERAL generate_series(1, least(cardinality(t.words), 100)) AS f (n)
             CROSS JOIN generate_series(0, 4) AS k (n)
             WHERE f.n + k.n <= cardinality(t.words)
        ), numbers AS MATERIALIZED (
            SELECT o.document_id, o.account_code, o.currency, o.open_amount, daybook.words_of(o.number) AS number
              FROM open o WHERE o.type IN ('invoice', 'credit_note', 'journal') AND octet_length(o.number) >= 3
        ), found AS (
            SELECT DISTINCT n.document_id, o.document_id AS other_id, n.account_code, n.currency, abs(n.open_amount) AS amount
              FROM named n
              JOIN numbers o ON o.account_code = n.account_code AND o.currency = n.currency AND o.open_amount = -n.open_amount
               AND o.number = n.number AND o.document_id <> n.document_id
             WHERE octet_length(n.number) >= 3
        ), pairs AS (
            SELECT f.*, count(*) OVER (PARTITION BY f.document_id, f.account_code, f.currency) AS others,
                   count(*) OVER (PARTITION BY f.other_id, f.account_code, f.currency) AS ones
              FROM found f
        )
        SELECT p.document_id, p.other_id, p.account_code, p.currency, p.amount FROM pairs p WHERE p.others = 1 AND p.ones = 1;
    ELSIF rule = 'reference' THEN
        RETURN QUERY
        WITH refers AS MATERIALIZED (
            SELECT DISTINCT o.document_id, o.account_code, o.currency, abs(o.open_amount) AS amount, CASE o.counterparty WHEN '[erased]' THEN '' ELSE o.counterparty END AS counterparty,
                   o.group_id, r.name
              FROM daybook.open_items(_org) o
              JOIN daybook.documents d ON d.org_id = _org AND d.id = o.document_id
             CROSS JOIN LATERAL jsonb_array_elements_text(CASE jsonb_typeof(d.content -> 'refers_to') WHEN 'array' THEN d.content -> 'refers_to' ELSE '[]' END) AS r (name)
             WHERE d.content ? 'refers_to' AND r.name <> ''
        ), found AS (
            SELECT r.*, d.id AS other_id, true AS by_id, d.content ->> 'counterparty' AS party
              FROM refers r JOIN daybook.documents d ON d.org_id = _org AND d.id = r.name
             UNION ALL
            SELECT r.*, d.id, true, d.content ->> 'counterparty'
              FROM refers r JOIN daybook.posted_elsewhere p ON p.org_id = _org AND p.document_id = r.name AND p.next <> 'full'
              JOIN daybook.documents d ON d.org_id = _org AND d.id = p.open_item
             UNION ALL
            SELECT r.*, d.id, false, d.content ->> 'counterparty'
              FROM refers r JOIN daybook.documents d ON d.org_id = _org AND d.content ->> 'number' = r.name
        ), fitting AS (
            SELECT f.*, count(*) FILTER (WHERE NOT f.by_id) OVER (PARTITION BY f.document_id, f.account_code, f.currency, f.name) AS of_number
              FROM found f
             WHERE f.other_id <> f.document_id AND (f.by_id OR f.party = f.counterparty OR coalesce(f.party, '') IN ('', '[erased]') OR f.counterparty = '')
               AND EXISTS (SELECT FROM daybook.impacts i JOIN daybook.entries e ON e.impact_id = i.id
                            WHERE i.org_id = _org AND i.document_id = f.other_id AND e.account_code = f.account_code AND e.currency = f.currency)
        )
        SELECT DISTINCT f.document_id, f.other_id, f.account_code, f.currency, f.amount
          FROM fitting f
          LEFT JOIN daybook.reconciled r ON r.org_id = _org AND r.document_id = f.other_id
         WHERE (f.by_id OR f.of_number = 1) AND (f.group_id = r.group_id) IS NOT TRUE;
    ELSE
        RAISE EXCEPTION 'rule % is not known', rule USING ERRCODE = 'DB010', HINT = 'the rules are reference, number and amount';
    END IF;
END
$$;

-- Puts documents together whose open items belong together by rules, one rule after the other, and
-- returns them. amount is what was open of the first one.
CREATE FUNCTION daybook.match_open_items(
    org_id text,
    rules  text[] DEFAULT '{reference,number,amount}',
    actor  text DEFAULT session_user
) RETURNS TABLE (document_id text, other_id text, matched_by text, group_id bigint, account_code text, currency text, amount numeric)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM daybook.see_groups_whole();
    IF coalesce(match_open_items.actor, '') = '' THEN
        RAISE EXCEPTION 'who matches them is missing' USING ERRCODE = 'DB010';
    END IF;
    PERFORM pg_advisory_xact_lock(daybook.lock_class('reconciliations'), hashtext(match_open_items.org_id));
    FOREACH matched_by IN ARRAY coalesce(rules, '{}') LOOP
        -- Nearly all pairs are of two documents that are in no group and no other pair: their groups
        -- are made at once.
        FOR document_id, other_id, account_code, currency, amount, group_id IN
            WITH pairs AS MATERIALIZED (
                SELECT row_number() OVER () AS n, m.* FROM daybook.matching_items(match_open_items.org_id, match_open_items.matched_by) m
            ), ends AS (
                SELECT p.n, p.document_id AS id FROM pairs p UNION ALL SELECT p.n, p.other_id FROM pairs p
            ), shared AS (
                SELECT e.n, count(*) OVER (PARTITION BY e.id) > 1 OR r.document_id IS NOT NULL AS shared
                  FROM ends e
                  LEFT JOIN daybook.reconciled r ON r.org_id = match_open_items.org_id AND r.document_id = e.id
            ), alone AS MATERIALIZED (
                SELECT a.n, nextval('daybook.reconciled_group_seq') AS group_id
                  FROM (SELECT s.n FROM shared s GROUP BY s.n HAVING NOT bool_or(s.shared)) a
            ), made AS (
                INSERT INTO daybook.reconciled (org_id, document_id, group_id, matched_by, actor)
                SELECT match_open_items.org_id, e.id, a.group_id, match_open_items.matched_by, match_open_items.actor
                  FROM alone a JOIN ends e ON e.n = a.n
            )
            SELECT p.document_id, p.other_id, p.account_code, p.currency, p.amount, a.group_id
              FROM pairs p LEFT JOIN alone a ON a.n = p.n ORDER BY 1, 2, 3, 4
        LOOP
            IF group_id IS NULL THEN
                group_id := daybook.link_documents(match_open_items.org_id, match_open_items.document_id, match_open_items.other_id,
                    match_open_items.matched_by, match_open_items.actor);
            END IF;
            RETURN NEXT;
        END LOOP;
    END LOOP;
END
$$;
COMMENT ON FUNCTION daybook.match_open_items IS
    'Puts documents together whose open items belong together by the rules reference, number and amount, in the order given, and returns them';

-- The same as the function of a job of the type db_function, for the job's organization. The
-- argument is null, or has rules, a list.
CREATE FUNCTION daybook.match_open_items_job(argument jsonb) RETURNS jsonb
    LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    SELECT jsonb_build_object('matched', count(*))
      FROM daybook.match_open_items(current_setting('daybook.org_id'),
               coalesce((SELECT array_agg(r) FROM jsonb_array_elements_text(argument -> 'rules') r), '{reference,number,amount}'), 'a scheduled job')
$$;
COMMENT ON FUNCTION daybook.match_open_items_job IS 'match_open_items as a function of jobs of the type db_function';

-- What is open on a day, by counterparty, account and currency, and how long it has been due: by
-- the due date, or the issue date of a document that has none.
CREATE FUNCTION daybook.ageing(org_id text, on_day date)
    RETURNS TABLE (
        counterparty text, account_code text, role text, currency text, items bigint, open_amount numeric,
        not_due numeric, due_30 numeric, due_60 numeric, due_90 numeric, due_longer numeric
    )
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT o.counterparty, o.account_code, min(o.role), o.currency, count(*), sum(o.open_amount),
           coalesce(sum(o.open_amount) FILTER (WHERE d.days <= 0), 0), coalesce(sum(o.open_amount) FILTER (WHERE d.days BETWEEN 1 AND 30), 0),
           coalesce(sum(o.open_amount) FILTER (WHERE d.days BETWEEN 31 AND 60), 0), coalesce(sum(o.open_amount) FILTER (WHERE d.days BETWEEN 61 AND 90), 0),
           coalesce(sum(o.open_amount) FILTER (WHERE d.days > 90), 0)
      FROM daybook.open_items(ageing.org_id, ageing.on_day) o
     CROSS JOIN LATERAL (SELECT ageing.on_day - coalesce(o.due_date, o.issue_date) AS days) d
     GROUP BY o.counterparty, o.account_code, o.currency
$$;
COMMENT ON FUNCTION daybook.ageing IS
    'What is open on a day by counterparty, account and currency: not due yet, and due for up to 30, 60 and 90 days, and longer';

-- What a counterparty's documents, and those without a counterparty that are in a group with them,
-- have on accounts with open items: a row without a document is the balance before the first day,
-- the others are impacts in the order of their posting dates with the balance after each, and what
-- is open of the document on the last day (null: by all that is posted).
--
-- Of a document without a counterparty in a group of several, a counterparty has the part that pays
-- what is its own, the oldest first; what is left is of the one whose name is the first, as in
-- items_until. Each impact of the document is divided by these parts.
CREATE FUNCTION daybook.counterparty_statement(org_id text, counterparty text, from_day date, to_day date)
    RETURNS TABLE (
        posting_date date, impact_id bigint, document_id text, type text, number text, issue_date date, due_date date,
        account_code text, currency text, amount numeric, balance numeric, open_amount numeric
    )
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _org   CONSTANT text := counterparty_statement.org_id;
    _party CONSTANT text := counterparty_statement.counterparty;
    own    text[];
    shared text[];
BEGIN
    own := ARRAY(SELECT d.id FROM daybook.documents d WHERE d.org_id = _org AND d.content ->> 'counterparty' = _party);
    shared := ARRAY(
        SELECT DISTINCT g.document_id
          FROM unnest(own) AS k (id)
          JOIN daybook.reconciled r ON r.org_id = _org AND r.document_id = k.id
          JOIN daybook.reconciled g ON g.org_id = _org AND g.group_id = r.group_id AND g.document_id <> ALL (own)
          LEFT JOIN daybook.documents d ON d.org_id = _org AND d.id = g.document_id
         WHERE coalesce(d.content ->> 'counterparty', '') = '');
    RETURN QUERY
    WITH items AS MATERIALIZED (
        SELECT o.*, nullif(d.content ->> 'counterparty', '') AS party,
               sum(abs(o.amount)) OVER (PARTITION BY o.group_id, o.account_code, o.currency, sign(o.amount)
                                            ORDER BY o.day, o.document_id COLLATE "C") AS upto
          FROM daybook.item_amounts(_org, to_day, ARRAY(
                   SELECT unnest(own || shared) AS id
                    UNION SELECT g.document_id FROM daybook.reconciled r JOIN daybook.reconciled g ON g.org_id = _org AND g.group_id = r.group_id
                           WHERE r.org_id = _org AND r.document_id = ANY (own || shared))) o
          LEFT JOIN daybook.documents d ON d.org_id = _org AND d.id = o.document_id
    ), rest AS MATERIALIZED (
        SELECT r.document_id,
               (SELECT coalesce(min(nullif(x.content ->> 'counterparty', '')), '')
                  FROM daybook.reconciled g JOIN daybook.documents x ON x.org_id = _org AND x.id = g.document_id
                 WHERE g.org_id = _org AND g.group_id = r.group_id) = _party AS is_own
          FROM daybook.reconciled r WHERE r.org_id = _org AND r.document_id = ANY (shared)
    ), paid AS (
        SELECT u.document_id, u.account_code, u.currency, u.amount, x.party = _party AS is_own,
               sign(u.amount) * greatest(0, least(u.upto, x.upto) - greatest(u.upto - abs(u.amount), x.upto - abs(x.amount))) AS part
          FROM items u
          LEFT JOIN items x ON x.group_id = u.group_id AND x.account_code = u.account_code AND x.currency = u.currency
                           AND sign(x.amount) = -sign(u.amount) AND x.party IS NOT NULL
         WHERE u.document_id = ANY (shared)
    ), parts AS MATERIALIZED (
        SELECT p.document_id, p.account_code, p.currency, p.amount,
               CASE WHEN r.is_own THEN p.amount - coalesce(sum(p.part) FILTER (WHERE NOT p.is_own), 0)
                    ELSE coalesce(sum(p.part) FILTER (WHERE p.is_own), 0) END AS part
          FROM paid p JOIN rest r ON r.document_id = p.document_id
         GROUP BY p.document_id, p.account_code, p.currency, p.amount, r.is_own
    ), posted AS (
        SELECT i.posting_date, i.id, i.document_id, e.account_code, e.currency,
               sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) AS amount
          FROM unnest(own || shared) AS k (id)
         CROSS JOIN LATERAL (SELECT * FROM daybook.impacts x WHERE x.org_id = _org AND x.document_id = k.id OFFSET 0) i
          JOIN daybook.entries e ON e.impact_id = i.id
          JOIN daybook.accounts a ON a.org_id = _org AND a.code = e.account_code AND a.role IN ('receivable', 'payable', 'advance')
         WHERE (i.posting_date > to_day) IS NOT TRUE
         GROUP BY i.posting_date, i.id, i.document_id, e.account_code, e.currency
    ), moves AS (
        SELECT p.posting_date, p.id, p.document_id, p.account_code, p.currency,
               CASE WHEN r.document_id IS NULL THEN p.amount
                    WHEN s.amount IS NULL THEN CASE WHEN r.is_own THEN p.amount ELSE 0 END -- nothing is left of it
                    ELSE div(sum(p.amount) OVER so_far * s.part, s.amount) - div((sum(p.amount) OVER so_far - p.amount) * s.part, s.amount) END AS amount
          FROM posted p
          LEFT JOIN rest r ON r.document_id = p.document_id
          LEFT JOIN parts s ON s.document_id = p.document_id AND s.account_code = p.account_code AND s.currency = p.currency
        WINDOW so_far AS (PARTITION BY p.document_id, p.account_code, p.currency ORDER BY p.posting_date, p.id)
    ), lines AS (
        SELECT m.* FROM moves m WHERE (m.posting_date < from_day) IS NOT TRUE AND m.amount <> 0
         UNION ALL
        SELECT NULL, NULL, NULL, m.account_code, m.currency, sum(m.amount) FROM moves m
         WHERE m.posting_date < from_day AND m.amount <> 0
         GROUP BY m.account_code, m.currency
    )
    SELECT l.posting_date, l.id, l.document_id, d.type, d.content ->> 'number', d.issue_date, daybook.day_of(d.content ->> 'due_date'),
           l.account_code, l.currency, l.amount,
           sum(l.amount) OVER (PARTITION BY l.account_code, l.currency ORDER BY l.posting_date NULLS FIRST, l.id),
           CASE WHEN r.is_own IS FALSE THEN 0 ELSE coalesce(o.open_amount, 0) END
      FROM lines l
      LEFT JOIN daybook.documents d ON d.org_id = _org AND d.id = l.document_id
      LEFT JOIN rest r ON r.document_id = l.document_id
      LEFT JOIN items o ON o.document_id = l.document_id AND o.account_code = l.account_code AND o.currency = l.currency
     ORDER BY l.account_code, l.currency, l.posting_date NULLS FIRST, l.id;
END
$$;
COMMENT ON FUNCTION daybook.counterparty_statement IS
    'What a counterparty''s documents have posted on accounts with open items in a span of days, with the balance before and after each; debits less credits, in minor units';

-- What the parts of items in other currencies that pay each other in a group have won (positive) or
-- lost in the organization's own currency, by what was posted until a day (null: all): the oldest
-- first, the amount times what the rate of the credit's day is above that of the debit's day. The
-- difference is null where a rate is missing. Without an own currency there is no row.
CREATE FUNCTION daybook.exchange_differences(org_id text, until date)
    RETURNS TABLE (
        group_id bigint, account_code text, currency text, debit_document text, credit_document text, debit_day date, credit_day date,
        amount numeric, debit_rate numeric, credit_rate numeric, own_currency text, difference numeric
    )
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
WITH own AS (
    SELECT o.currency FROM daybook.organizations o WHERE o.id = exchange_differences.org_id AND o.currency IS NOT NULL
), items AS MATERIALIZED (
    SELECT r.group_id, r.document_id, e.account_code, e.currency, date '1900-01-01' + (max(ARRAY[i.seq, i.document_date - date '1900-01-01']))[2] AS day,
           sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) AS amount
      FROM own
      JOIN daybook.accounts a ON a.org_id = exchange_differences.org_id AND a.role IN ('receivable', 'payable', 'advance')
      JOIN daybook.entries e ON e.org_id = exchange_differences.org_id AND e.account_code = a.code AND e.currency <> own.currency
      JOIN daybook.impacts i ON i.id = e.impact_id AND i.posting_date <= coalesce(exchange_differences.until, date 'infinity')
      JOIN daybook.reconciled r ON r.org_id = exchange_differences.org_id AND r.document_id = i.document_id
     GROUP BY r.group_id, r.document_id, e.account_code, e.currency
    HAVING sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) <> 0
), spans AS MATERIALIZED (
    SELECT i.*, sum(abs(i.amount)) OVER (PARTITION BY i.group_id, i.account_code, i.currency, sign(i.amount) ORDER BY i.day, i.document_id) AS upto
      FROM items i
), pairs AS (
    SELECT d.group_id, d.account_code, d.currency, d.document_id AS debit_document, c.document_id AS credit_document, d.day AS debit_day, c.day AS credit_day,
           least(d.upto, c.upto) - greatest(d.upto - d.amount, c.upto + c.amount) AS amount
      FROM spans d
      JOIN spans c ON c.group_id = d.group_id AND c.account_code = d.account_code AND c.currency = d.currency AND c.amount < 0
     WHERE d.amount > 0 AND least(d.upto, c.upto) > greatest(d.upto - d.amount, c.upto + c.amount)
)
SELECT p.group_id, p.account_code, p.currency, p.debit_document, p.credit_document, p.debit_day, p.credit_day, p.amount, d.rate, c.rate, own.currency,
       round(p.amount * (c.rate - d.rate) * 10::numeric ^ (daybook.minor_digits(own.currency) - daybook.minor_digits(p.currency)))
  FROM pairs p
 CROSS JOIN own
  LEFT JOIN LATERAL (SELECT x.rate FROM daybook.rates x WHERE x.org_id = exchange_differences.org_id AND x.currency = p.currency AND x.valid_on <= p.debit_day
                      ORDER BY x.valid_on DESC LIMIT 1) d ON true
  LEFT JOIN LATERAL (SELECT x.rate FROM daybook.rates x WHERE x.org_id = exchange_differences.org_id AND x.currency = p.currency AND x.valid_on <= p.credit_day
                      ORDER BY x.valid_on DESC LIMIT 1) c ON true
$$;
COMMENT ON FUNCTION daybook.exchange_differences IS
    'What was won or lost by rates where items in other currencies pay each other in a group until a day (null: all), in minor units of the own currency';

-- What stands on the adjustment account of exchange differences until a day, in minor units of the
-- own currency, debits less credits: what is posted until then, and the journals of exchange
-- differences of these days that are posted later, or not yet. A deleted journal counts for nothing,
-- whether a worker has reversed it or not.
CREATE FUNCTION daybook.exchange_booked(org_id text, adjustment text, until date) RETURNS numeric
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce((
               SELECT sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)
                 FROM daybook.entries e
                 JOIN daybook.impacts i ON i.id = e.impact_id
                 JOIN daybook.organizations o ON o.id = e.org_id
                WHERE e.org_id = exchange_booked.org_id AND e.account_code = adjustment AND e.currency = o.currency
                  AND (i.posting_date <= until OR i.document_date <= until AND i.document_id LIKE 'exchange:%')
                  AND NOT EXISTS (SELECT FROM daybook.documents d WHERE d.org_id = i.org_id AND d.id = i.document_id AND d.deleted_at IS NOT NULL)), 0)
         + coalesce((
               SELECT sum(daybook.stated_number(j ->> 'amount'))
                 FROM daybook.documents d
                CROSS JOIN LATERAL jsonb_path_query(d.content, '$.journal.entries[*]') AS j
                WHERE d.org_id = exchange_booked.org_id AND d.id >= 'exchange:' AND d.id < 'exchange;' AND d.deleted_at IS NULL AND d.issue_date <= until
                  AND j ->> 'account' = adjustment
                  AND NOT EXISTS (SELECT FROM daybook.impacts i WHERE i.org_id = d.org_id AND i.document_id = d.id)), 0)
$$;
COMMENT ON FUNCTION daybook.exchange_booked IS
    'What stands on the adjustment account of exchange differences until a day, with the journals that are not posted yet';

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.exchange_booked, daybook.exchange_differences;
DROP FUNCTION daybook.counterparty_statement, daybook.ageing;
DROP FUNCTION daybook.match_open_items_job, daybook.match_open_items, daybook.matching_items, daybook.link_documents, daybook.words_of;
DROP FUNCTION daybook.unreconcile, daybook.reconcile;
DROP TRIGGER reconciled_changed ON daybook.reconciled;
DROP TRIGGER reconciled_deleted ON daybook.reconciled;
DROP FUNCTION daybook.keep_items_of_parted_groups, daybook.keep_closed_items;
DROP FUNCTION daybook.see_groups_whole, daybook.items_of_document, daybook.open_items, daybook.items_until, daybook.item_amounts,
    daybook.open_units, daybook.item_accounts;
DROP TRIGGER open_item_deleted ON daybook.documents;
DROP TRIGGER open_item_removed ON daybook.documents;
DROP FUNCTION daybook.open_item_ends, daybook.stand_for_documents, daybook.open_item_of;
DROP TABLE daybook.rates, daybook.closed_items, daybook.closed_item_days, daybook.reconciled;
DROP FUNCTION daybook.day_of, daybook.minor_digits;
