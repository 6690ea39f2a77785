-- Chapter 34: closing a month: the list that is worked off before, and the chain of closings, by
-- which a later change of what was closed is found.
--
-- SQLSTATEs: DB004 closings are append-only, DB010 the transaction's isolation level is not READ
-- COMMITTED.

-- +goose Up
-- +goose StatementBegin

-- One row for each closing of a period, and each opening.
CREATE TABLE daybook.closings (
    org_id         text COLLATE "C" NOT NULL,
    number         integer NOT NULL CHECK (number > 0),
    action         text NOT NULL CHECK (action IN ('closed', 'opened')),
    starts_on      date NOT NULL,
    ends_on        date NOT NULL,
    days           datemultirange NOT NULL CHECK (NOT isempty(days)),
    closed_days    datemultirange NOT NULL,
    closed_by      text NOT NULL CHECK (octet_length(closed_by) <= 1000),
    db_role        text NOT NULL,
    created_at     timestamptz NOT NULL,
    impacts        bigint NOT NULL,
    entries        bigint NOT NULL,
    last_impact_id bigint NOT NULL,
    impacts_hash   bytea NOT NULL CHECK (octet_length(impacts_hash) = 32),
    previous_hash  bytea,
    hash           bytea NOT NULL CHECK (octet_length(hash) = 32),
    list           jsonb,
    signature      bytea CHECK (octet_length(signature) = 64),
    key_id         text CHECK (key_id ~ '^[0-9a-f]{32}$'),
    PRIMARY KEY (org_id, number),
    CONSTRAINT first_has_none_before CHECK ((number = 1) = (previous_hash IS NULL)),
    CONSTRAINT signature_has_key CHECK ((signature IS NULL) = (key_id IS NULL))
);
COMMENT ON TABLE daybook.closings IS
    'Closings and openings of periods, each with the hash of what it closed or opened and of the row before it. Append-only';
COMMENT ON COLUMN daybook.closings.number IS 'From 1 in each organization, without a gap';
COMMENT ON COLUMN daybook.closings.starts_on IS 'The period''s first day; of days in no period, the first of them';
COMMENT ON COLUMN daybook.closings.days IS 'The days that it closed or opened: those of the period, and those in no period that go with it';
COMMENT ON COLUMN daybook.closings.closed_days IS 'All days that are closed after it';
COMMENT ON COLUMN daybook.closings.closed_by IS 'The setting daybook.actor of its transaction; without one, the role that logged in';
COMMENT ON COLUMN daybook.closings.impacts IS 'How many impacts the days had';
COMMENT ON COLUMN daybook.closings.last_impact_id IS 'No impact that was made before it has a higher id, and none that was made after it has one as low';
COMMENT ON COLUMN daybook.closings.impacts_hash IS 'daybook.hash_impacts of the days, up to last_impact_id';
COMMENT ON COLUMN daybook.closings.previous_hash IS 'The hash of the row before it';
COMMENT ON COLUMN daybook.closings.hash IS 'daybook.closing_hash of the row';
COMMENT ON COLUMN daybook.closings.list IS 'What was open when it was closed: daybook.closing_list; null: it was opened';
COMMENT ON COLUMN daybook.closings.signature IS 'Ed25519, of the text "daybook closing " and the hash in hexadecimal; null: not signed';
COMMENT ON COLUMN daybook.closings.key_id IS 'Of the key that signed: the first 16 bytes of the SHA-256 of the public key (DER), in hexadecimal';

CREATE FUNCTION daybook.check_closing_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    unsigned daybook.closings := NEW;
BEGIN
    unsigned.signature := NULL;
    unsigned.key_id := NULL;
    IF OLD.signature IS NULL AND unsigned IS NOT DISTINCT FROM OLD THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'daybook.closings is append-only: UPDATE refused'
        USING ERRCODE = 'DB004', HINT = 'a row that has no signature may get one; nothing else changes';
END
$$;
CREATE TRIGGER closings_signed_once BEFORE UPDATE ON daybook.closings
    FOR EACH ROW EXECUTE FUNCTION daybook.check_closing_change();
CREATE TRIGGER closings_append_only BEFORE DELETE OR TRUNCATE ON daybook.closings
    FOR EACH STATEMENT EXECUTE FUNCTION daybook.refuse_change();

-- The hash of a list of hashes: each one is hashed with what the ones before it came to, so it needs
-- the memory of one.
CREATE FUNCTION daybook.chain_hash(chained bytea, next bytea) RETURNS bytea
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
BEGIN
    RETURN sha256(chained || next);
END
$$;
CREATE AGGREGATE daybook.chained_hash (bytea) (
    SFUNC = daybook.chain_hash, STYPE = bytea,
    INITCOND = '\x0000000000000000000000000000000000000000000000000000000000000000'
);

-- The hash of all impacts of an organization with a posting date in the days and an id up to
-- last_impact_id, in the order of their ids. Each impact is hashed with its entries, as PostgreSQL
-- writes a row as a text, in which no two rows are the same; the settings that such a text depends
-- on are set here. A million impacts take some ten seconds, and the memory of a sort.
CREATE FUNCTION daybook.hash_impacts(org_id text, days datemultirange, last_impact_id bigint,
    OUT impacts bigint, OUT entries bigint, OUT hash bytea)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, YMD' SET bytea_output = 'hex'
    SET jit = off SET random_page_cost = 1.1
AS $$
SELECT count(*), coalesce(sum(h.entries), 0)::bigint, daybook.chained_hash(h.hash ORDER BY h.id)
  FROM (SELECT i.id, e.entries,
               sha256(convert_to(ROW(i.id, i.org_id, i.document_id, i.document_version, i.seq, i.kind, i.rule_set_version, i.rule_id, i.epoch,
                                     i.document_date, i.posting_date, i.entry_count, i.content_hash, i.job_id, i.attempt, i.workflow_run_id,
                                     i.created_at, i.no_entries)::text || e.lines, 'UTF8')) AS hash
          FROM unnest(hash_impacts.days) AS span
         -- OFFSET 0: lest the entries of all impacts are read before those of other days are left out.
         CROSS JOIN LATERAL (
               SELECT * FROM daybook.impacts x
                WHERE x.org_id = hash_impacts.org_id AND x.posting_date >= lower(span) AND x.posting_date < upper(span)
                  AND x.id <= hash_impacts.last_impact_id OFFSET 0) i
         CROSS JOIN LATERAL (
               SELECT count(*) AS entries,
                      coalesce(string_agg(ROW(x.line_no, x.org_id, x.account_code, x.side, x.amount_minor, x.currency, x.rule_line_id, x.document_line,
                                              x.dimensions)::text, '' ORDER BY x.line_no), '') AS lines
                 FROM daybook.entries x WHERE x.impact_id = i.id) e) h
$$;
COMMENT ON FUNCTION daybook.hash_impacts IS
    'The hash of all impacts of an organization with a posting date in the days and an id up to last_impact_id, with their entries';

-- The hash of a closing: of all that it says, and so of what it closed and of all closings before.
CREATE FUNCTION daybook.closing_hash(c daybook.closings) RETURNS bytea
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, YMD' SET bytea_output = 'hex'
AS $$
SELECT sha256(convert_to(ROW(c.org_id, c.number, c.action, c.starts_on, c.ends_on, c.days, c.closed_days, c.closed_by, c.db_role, c.created_at,
                             c.impacts, c.entries, c.last_impact_id, c.impacts_hash, c.previous_hash, c.list)::text, 'UTF8'))
$$;

CREATE FUNCTION daybook.closed_days(org_id text) RETURNS datemultirange
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
SELECT coalesce(range_agg(daterange(s.starts_on, s.ends_on, '[]')), '{}') FROM daybook.closed_spans(closed_days.org_id) s
$$;
COMMENT ON FUNCTION daybook.closed_days IS 'The days of daybook.closed_spans';

-- The days that the closing of a period closes beside those that are closed: its own, and those in
-- no period before it, or up to the first open period after it. Of a closed period, those that its
-- last closing closed and that are closed. Null: no period begins on that day.
CREATE FUNCTION daybook.days_to_close(org_id text, starts_on date) RETURNS datemultirange
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
WITH p AS (
    SELECT x.* FROM daybook.periods x WHERE x.org_id = days_to_close.org_id AND x.starts_on = days_to_close.starts_on
), last AS (
    SELECT x.starts_on, x.ends_on
      FROM daybook.periods x CROSS JOIN p
     WHERE x.org_id = p.org_id AND (x.state = 'closed' OR x.starts_on = p.starts_on)
     ORDER BY x.starts_on DESC LIMIT 1
)
SELECT CASE p.state
       WHEN 'open' THEN
           datemultirange(daterange('1900-01-01', coalesce(
               (SELECT min(x.starts_on) FROM daybook.periods x WHERE x.org_id = p.org_id AND x.starts_on > last.starts_on), last.ends_on + 1)))
           - coalesce((SELECT range_agg(daterange(x.starts_on, x.ends_on, '[]')) FROM daybook.periods x
                        WHERE x.org_id = p.org_id AND x.state = 'open' AND x.starts_on <> p.starts_on), '{}')
           - daybook.closed_days(p.org_id)
       ELSE
           (datemultirange(daterange(p.starts_on, p.ends_on, '[]'))
            + coalesce((SELECT c.days FROM daybook.closings c
                         WHERE c.org_id = p.org_id AND c.starts_on = p.starts_on AND c.action = 'closed' ORDER BY c.number DESC LIMIT 1), '{}'))
           * daybook.closed_days(p.org_id)
       END
  FROM p CROSS JOIN last
$$;
COMMENT ON FUNCTION daybook.days_to_close IS
    'The days that the closing of the period that begins on that day closes, or has closed: its own, and those in no period that go with it';

-- The documents of an organization whose jobs failed or wait, and whether one of their dates is one
-- of the days: the issue date, the value date, the dates of the present posting, and the posting
-- date that a rule computes, which a program passes in computed_ids and computed_days.
CREATE FUNCTION daybook.unposted_documents(org_id text, days datemultirange, computed_ids text[] DEFAULT '{}', computed_days date[] DEFAULT '{}')
    RETURNS TABLE (document_id text, date date, state daybook.job_state, code text, inside boolean)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
SELECT q.document_id, CASE WHEN r.day <@ unposted_documents.days THEN r.day ELSE coalesce(d.issue_date, i.document_date) END,
       q.state, coalesce(q.last_error_code, ''),
       -- null: no date is known.
       CASE WHEN d.issue_date IS NOT NULL OR i.posting_date IS NOT NULL
            THEN coalesce(d.issue_date <@ unposted_documents.days, false) OR coalesce(d.value_date <@ unposted_documents.days, false)
                 OR coalesce(i.document_date <@ unposted_documents.days, false) OR coalesce(i.posting_date <@ unposted_documents.days, false)
                 OR coalesce(r.day <@ unposted_documents.days, false) END
  FROM daybook.accounting_work_queue q
  LEFT JOIN daybook.documents d ON d.org_id = q.org_id AND d.id = q.document_id
  LEFT JOIN unnest(computed_ids, computed_days) AS r (id, day) ON r.id = q.document_id
  LEFT JOIN LATERAL (SELECT x.document_date, x.posting_date FROM daybook.impacts x
                      WHERE x.org_id = q.org_id AND x.document_id = q.document_id ORDER BY x.seq DESC LIMIT 1) i ON true
 WHERE q.org_id = unposted_documents.org_id AND q.state IN ('pending', 'leased', 'failed') AND NOT isempty(unposted_documents.days)
$$;
COMMENT ON FUNCTION daybook.unposted_documents IS
    'Documents whose jobs failed or wait. inside: one of their dates is one of the days; null: no date is known of it';

-- What is open when days are closed, of a period from starts_on to ends_on, in this order:
--
--   UNPOSTED_FAILED   documents with a date that would be closed whose jobs failed
--   UNPOSTED_WAITING  such documents whose jobs wait, or run
--   OPEN_BEFORE       open periods before it
--   UNDATED           documents that are not posted, and of which Daybook knows no date
--   SUSPENSE          an account with that role has a balance on the last day: amount, debits less credits
--   ROUNDING          the same
--   UNRECONCILED      payments and credit notes of which something is open on the last day: credits on an
--                     account with the role receivable, debits on one with the role payable
--   EXCHANGE          differences of exchange rates that are realised until the last day and not booked;
--                     amount: in the own currency, positive: won
--   RATES             such differences of which a rate is missing; examples are currencies
--   TAX               documents of the period whose taxes are not what is posted of them; amount: what
--                     they state less what is posted, positive: owed
--
-- required: it has to be done before the month is closed. A program that evaluates rules passes the
-- posting dates that they compute.
CREATE FUNCTION daybook.open_at_closing(org_id text, starts_on date, ends_on date, days datemultirange, computed_ids text[], computed_days date[])
    RETURNS TABLE (code text, required boolean, count bigint, account text, currency text, amount numeric, examples text[], what_to_do text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
WITH unposted AS MATERIALIZED (
    SELECT * FROM daybook.unposted_documents(open_at_closing.org_id, open_at_closing.days, computed_ids, computed_days)
), open AS (
    SELECT p.starts_on FROM daybook.periods p
     WHERE p.org_id = open_at_closing.org_id AND p.state = 'open' AND p.starts_on < open_at_closing.starts_on
), balances AS (
    SELECT a.role, a.code, b.currency, sum(b.debit - b.credit) AS amount
      FROM daybook.accounts a
      JOIN daybook.account_sums(open_at_closing.org_id, NULL, open_at_closing.ends_on) b ON b.account_code = a.code
     WHERE a.org_id = open_at_closing.org_id AND a.role IN ('suspense', 'rounding')
     GROUP BY a.role, a.code, b.currency
    HAVING sum(b.debit - b.credit) <> 0
), unreconciled AS (
    SELECT i.account_code, i.currency, count(*) AS count, sum(i.open_amount) AS amount,
           (array_agg(i.document_id ORDER BY i.issue_date, i.document_id))[:20] AS examples
      FROM daybook.open_items(open_at_closing.org_id, open_at_closing.ends_on) i
     WHERE CASE i.role WHEN 'receivable' THEN i.open_amount < 0 WHEN 'payable' THEN i.open_amount > 0 END
     GROUP BY i.account_code, i.currency
), taxes AS (
    SELECT t.currency, count(*) AS count, sum(t.stated - t.posted) AS amount,
           (array_agg(t.document_id ORDER BY abs(t.stated - t.posted) DESC, t.document_id))[:20] AS examples
      FROM daybook.vat_differences(open_at_closing.org_id, open_at_closing.starts_on, open_at_closing.ends_on) t
     WHERE EXISTS (SELECT FROM daybook.accounts a WHERE a.org_id = open_at_closing.org_id AND a.role = 'tax')
     GROUP BY t.currency
), exchange AS (
    SELECT o.currency, count(x.difference) AS count, count(x.amount) FILTER (WHERE x.difference IS NULL) AS missing, o.exchange_accounts[1] AS account,
           coalesce(sum(x.difference), 0)
               - coalesce(daybook.exchange_booked(open_at_closing.org_id, o.exchange_accounts[1], open_at_closing.ends_on), 0) AS amount,
           (array_agg(x.credit_document ORDER BY x.credit_day DESC, x.credit_document) FILTER (WHERE x.difference IS NOT NULL))[:20] AS examples,
           (array_agg(DISTINCT x.currency) FILTER (WHERE x.amount IS NOT NULL AND x.difference IS NULL))[:20] AS currencies
      FROM daybook.organizations o
      LEFT JOIN LATERAL daybook.exchange_differences(o.id, open_at_closing.ends_on) x ON true
     WHERE o.id = open_at_closing.org_id AND o.currency IS NOT NULL
     GROUP BY o.currency, o.exchange_accounts
), list (code, required, count, account, currency, amount, examples) AS (
    SELECT CASE u.state WHEN 'failed' THEN 'UNPOSTED_FAILED' ELSE 'UNPOSTED_WAITING' END, true, count(*), NULL, NULL, NULL::numeric,
           (array_agg(u.document_id ORDER BY u.date, u.document_id))[:20]
      FROM (SELECT document_id, date, CASE state WHEN 'failed' THEN 'failed' ELSE 'waiting' END AS state FROM unposted WHERE inside) u
     GROUP BY u.state
     UNION ALL
    SELECT 'OPEN_BEFORE', true, count(*), NULL, NULL, NULL, (array_agg(to_char(o.starts_on, 'YYYY-MM-DD') ORDER BY o.starts_on))[:20]
      FROM open o
    HAVING count(*) > 0
     UNION ALL
    SELECT 'UNDATED', false, count(*), NULL, NULL, NULL, (array_agg(u.document_id ORDER BY u.document_id))[:20]
      FROM unposted u WHERE u.inside IS NULL
    HAVING count(*) > 0
     UNION ALL
    SELECT upper(b.role), false, 1, b.code, b.currency, b.amount, '{}'
      FROM balances b
     UNION ALL
    SELECT 'UNRECONCILED', false, u.count, u.account_code, u.currency, u.amount, u.examples
      FROM unreconciled u
     UNION ALL
    SELECT 'EXCHANGE', false, x.count, x.account, x.currency, x.amount, x.examples
      FROM exchange x WHERE x.amount <> 0
     UNION ALL
    SELECT 'RATES', false, x.missing, NULL, NULL, NULL, x.currencies
      FROM exchange x WHERE x.missing > 0
     UNION ALL
    SELECT 'TAX', false, t.count, NULL, t.currency, t.amount, t.examples
      FROM taxes t
)
SELECT l.code, l.required, l.count, l.account, l.currency, l.amount, l.examples, t.what_to_do
  FROM list l
  LEFT JOIN (VALUES (1, 'UNPOSTED_FAILED', 'Mend what each failed for: a worker tries it again'),
                    (2, 'UNPOSTED_WAITING', 'Wait until the workers have posted them'),
                    (3, 'OPEN_BEFORE', 'Close them first'),
                    (4, 'UNDATED', 'Have them posted if they belong to the period'),
                    (5, 'SUSPENSE', 'Find out where the amounts belong, and post them there'),
                    (6, 'ROUNDING', 'Check that it is as small as roundings are'),
                    (7, 'UNRECONCILED', 'Put them together with what they pay or correct, or leave them open'),
                    (8, 'EXCHANGE', 'Book them until the last day'),
                    (9, 'RATES', 'Add the rates'),
                    (10, 'TAX', 'Compare what they state with what is posted, and mend the documents or the rules')) AS t (place, code, what_to_do) ON t.code = l.code
 ORDER BY t.place, l.account, l.currency
$$;

-- The list that is worked off before the period that begins on a day is closed: daybook.open_at_closing.
-- Of a closed period, it is what is open now.
CREATE FUNCTION daybook.closing_list(org_id text, starts_on date, computed_ids text[] DEFAULT '{}', computed_days date[] DEFAULT '{}')
    RETURNS TABLE (code text, required boolean, count bigint, account text, currency text, amount numeric, examples text[], what_to_do text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
SELECT l.*
  FROM daybook.periods p
 CROSS JOIN LATERAL daybook.open_at_closing(p.org_id, p.starts_on, p.ends_on, daybook.days_to_close(p.org_id, p.starts_on), computed_ids, computed_days) l
 WHERE p.org_id = closing_list.org_id AND p.starts_on = closing_list.starts_on
$$;
COMMENT ON FUNCTION daybook.closing_list IS
    'What is to be done before the period that begins on that day is closed; required: it has to be';

-- Writes a row of closings for each period that was closed or opened since the last one, and for
-- days in no period that were. It compares the days that are closed now with those that the last row
-- has, so it need not be told what was changed, and is right for a change in plain SQL, too. The
-- days up to a period's last go with it; those that are left with the last period.
CREATE FUNCTION daybook.note_closings(org_id text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _org    CONSTANT text := note_closings.org_id;
    _now    CONSTANT datemultirange := daybook.closed_days(_org);
    _actor  CONSTANT text := coalesce(nullif(current_setting('daybook.actor', true), ''), session_user::text);
    -- The posting dates that rules compute, by document.
    _dates  CONSTANT jsonb := coalesce(nullif(current_setting('daybook.computed_dates', true), '')::jsonb, '{}');
    c       daybook.closings;
    changed datemultirange;
    span    record;
    want    daybook.period_state;
BEGIN
    SELECT * INTO c FROM daybook.closings x WHERE x.org_id = _org ORDER BY x.number DESC LIMIT 1;
    IF coalesce(c.closed_days, '{}') = _now THEN
        RETURN;
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the isolation level is %: what was posted before the closing may not be seen', current_setting('transaction_isolation')
            USING ERRCODE = 'DB010', HINT = 'close and open periods in a transaction that is READ COMMITTED';
    END IF;
    PERFORM daybook.keep_closed_sums(_org); -- the lists read them
    FOREACH want IN ARRAY ARRAY['open', 'closed']::daybook.period_state[] LOOP
        changed := CASE want WHEN 'open' THEN coalesce(c.closed_days, '{}') - _now ELSE _now - coalesce(c.closed_days, '{}') END;
        FOR span IN
            SELECT p.starts_on, p.ends_on, lead(p.starts_on) OVER (ORDER BY p.starts_on) IS NULL AS last
              FROM daybook.periods p
             WHERE p.org_id = _org AND p.state = want AND daterange(p.starts_on, p.ends_on, '[]') && changed
             UNION ALL
            SELECT lower(changed), upper(changed) - 1, true
             WHERE NOT isempty(changed)
               AND NOT EXISTS (SELECT FROM daybook.periods p
                                WHERE p.org_id = _org AND p.state = want AND daterange(p.starts_on, p.ends_on, '[]') && changed)
             ORDER BY 1
        LOOP
            c.org_id := _org;
            c.number := coalesce(c.number, 0) + 1;
            c.action := CASE want WHEN 'open' THEN 'opened' ELSE 'closed' END;
            c.starts_on := span.starts_on;
            c.ends_on := span.ends_on;
            c.days := changed * datemultirange(CASE WHEN span.last THEN daterange(NULL, NULL) ELSE daterange(NULL, span.ends_on, '[]') END);
            changed := changed - c.days;
            c.closed_days := CASE want WHEN 'open' THEN c.closed_days - c.days ELSE coalesce(c.closed_days, '{}') + c.days END;
            c.closed_by := _actor;
            c.db_role := session_user;
            c.created_at := clock_timestamp();
            -- A sequence that was never used has the value that comes next.
            SELECT s.last_value - CASE WHEN s.is_called THEN 0 ELSE 1 END INTO c.last_impact_id FROM daybook.impact_id_seq s;
            SELECT h.impacts, h.entries, h.hash INTO c.impacts, c.entries, c.impacts_hash FROM daybook.hash_impacts(_org, c.days, c.last_impact_id) h;
            PERFORM daybook.keep_closed_items(_org, c.closed_days);
            c.list := NULL;
            IF want = 'closed' THEN
                SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                           'code', l.code, 'required', l.required, 'count', l.count, 'account', l.account, 'currency', l.currency, 'amount_minor', l.amount,
                           'examples', nullif(l.examples, '{}'), 'what_to_do', l.what_to_do))), '[]') INTO c.list
                  FROM (SELECT array_agg(d.key) AS ids, array_agg(d.value::date) AS days FROM jsonb_each_text(_dates) d) computed
                 CROSS JOIN LATERAL daybook.open_at_closing(_org, c.starts_on, c.ends_on, c.days, coalesce(computed.ids, '{}'), coalesce(computed.days, '{}')) l;
            END IF;
            c.previous_hash := c.hash;
            c.signature := NULL;
            c.key_id := NULL;
            c.hash := daybook.closing_hash(c);
            INSERT INTO daybook.closings SELECT c.*;
        END LOOP;
    END LOOP;
END
$$;
REVOKE ALL ON FUNCTION daybook.note_closings FROM PUBLIC;

CREATE FUNCTION daybook.periods_noted() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM daybook.note_closings(CASE WHEN TG_OP = 'DELETE' THEN OLD.org_id ELSE NEW.org_id END);
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION daybook.periods_noted FROM PUBLIC; -- the right to make it a trigger of any table
CREATE TRIGGER periods_noted AFTER INSERT OR UPDATE OR DELETE ON daybook.periods
    FOR EACH ROW EXECUTE FUNCTION daybook.periods_noted();

-- What was changed of closings, or of what they closed. An empty organization: all of them.
CREATE FUNCTION daybook.closing_differences(org_id text)
    RETURNS TABLE (organization text, number integer, impact_id bigint, detail text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET "DateStyle" = 'ISO, YMD'
AS $$
WITH c AS MATERIALIZED (
    SELECT x.org_id, x.number, x.action, x.starts_on, x.ends_on, x.days, x.closed_days, x.impacts, x.entries, x.last_impact_id, x.impacts_hash,
           x.previous_hash, x.hash, daybook.closing_hash(x) AS hash_now,
           lag(x.hash) OVER w AS hash_before, coalesce(lag(x.number) OVER w, 0) AS number_before, lead(x.number) OVER w IS NULL AS last,
           -- The days that it closed and that were not opened since.
           x.days - coalesce((SELECT range_agg(r) FROM daybook.closings o CROSS JOIN LATERAL unnest(o.days) AS r
                               WHERE o.org_id = x.org_id AND o.number > x.number AND o.action = 'opened'), '{}') AS days_now
      FROM daybook.closings x
     WHERE closing_differences.org_id = '' OR x.org_id = closing_differences.org_id
    WINDOW w AS (PARTITION BY x.org_id ORDER BY x.number)
)
SELECT c.org_id, c.number, NULL::bigint, format('closing %s is not as it was written', c.number)
  FROM c WHERE c.hash <> c.hash_now
 UNION ALL
SELECT c.org_id, c.number, NULL, format('closing %s does not continue closing %s', c.number, c.number_before)
  FROM c WHERE c.number <> c.number_before + 1 OR c.previous_hash IS DISTINCT FROM c.hash_before
 UNION ALL
SELECT c.org_id, c.number, NULL,
       format('what was %s from %s to %s (closing %s) was changed: %s impacts and %s entries then, %s and %s now%s', c.action, c.starts_on, c.ends_on,
              c.number, c.impacts, c.entries, h.impacts, h.entries,
              CASE WHEN (h.impacts, h.entries) = (c.impacts, c.entries) THEN ', with other contents' ELSE '' END)
  FROM c CROSS JOIN LATERAL daybook.hash_impacts(c.org_id, c.days, c.last_impact_id) h
 WHERE (h.impacts, h.entries, h.hash) IS DISTINCT FROM (c.impacts, c.entries, c.impacts_hash)
 UNION ALL
SELECT c.org_id, c.number, i.id, format('posted on %s after closing %s', i.posting_date, c.number)
  FROM c
 CROSS JOIN LATERAL unnest(c.days_now) AS span
  JOIN daybook.impacts i ON i.org_id = c.org_id AND i.posting_date >= lower(span) AND i.posting_date < upper(span) AND i.id > c.last_impact_id
 WHERE c.action = 'closed'
 UNION ALL
SELECT o.id, c.number, NULL, format('the days that are closed are %s, and those of the last closing are %s', daybook.closed_days(o.id), coalesce(c.closed_days, '{}'))
  FROM (SELECT DISTINCT p.org_id AS id FROM daybook.periods p WHERE p.state = 'closed' AND (closing_differences.org_id = '' OR p.org_id = closing_differences.org_id)
         UNION SELECT c.org_id FROM c) o
  LEFT JOIN c ON c.org_id = o.id AND c.last
 WHERE daybook.closed_days(o.id) <> coalesce(c.closed_days, '{}')
 ORDER BY 1, 2, 3
$$;
COMMENT ON FUNCTION daybook.closing_differences IS
    'What of closings, or of what they closed, is not as it was; empty: nothing. An empty organization: all. It reads all closed impacts';

-- What was posted of a period after it was first closed, in the order of impact ids, behind one of
-- them, at most so many impacts; a row for each impact and currency, with what it debits:
--
--   opened_again  it stands on the period's days, which were open again
--   later_day     it stands on the first day that was open after its document's date, or after the
--                 posting that it reverses, as that lay in the period; or it reverses what stands there
--                 so; or its document is posted behind such an impact
--
-- A rule that gives a document the first open day as its date is not told from the policy.
CREATE FUNCTION daybook.closing_adjustments(org_id text, starts_on date, after bigint DEFAULT 0, most integer DEFAULT 1000)
    RETURNS TABLE (impact_id bigint, document_id text, kind daybook.impact_kind, reason text, document_date date, posting_date date,
                   created_at timestamptz, currency text, amount numeric)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
WITH first AS MATERIALIZED (
    SELECT min(c.number) AS number, min(c.last_impact_id) AS last_impact_id, range_agg(d) AS days
      FROM daybook.closings c CROSS JOIN LATERAL unnest(c.days) AS d
     WHERE c.org_id = closing_adjustments.org_id AND c.starts_on = closing_adjustments.starts_on AND c.action = 'closed'
), first_open AS MATERIALIZED (
    SELECT DISTINCT upper(d) AS day
      FROM first JOIN daybook.closings c ON c.org_id = closing_adjustments.org_id AND c.number >= first.number
     CROSS JOIN LATERAL unnest(c.closed_days) AS d
), later AS MATERIALIZED (
    SELECT i.id, i.kind, i.document_id, i.seq
      FROM first CROSS JOIN first_open o
      JOIN daybook.impacts i ON i.org_id = closing_adjustments.org_id AND i.posting_date = o.day AND i.id > first.last_impact_id
      LEFT JOIN daybook.impacts r ON i.kind = 'reverse' AND r.org_id = i.org_id AND r.document_id = i.document_id AND r.seq = i.previous_seq
     CROSS JOIN LATERAL (SELECT coalesce(r.posting_date, i.document_date) AS day) due
     CROSS JOIN LATERAL (SELECT c.closed_days FROM daybook.closings c
                          WHERE c.org_id = i.org_id AND c.last_impact_id < i.id ORDER BY c.number DESC LIMIT 1) at
     WHERE due.day <@ first.days AND NOT i.posting_date <@ first.days
       AND EXISTS (SELECT FROM unnest(at.closed_days) AS d WHERE due.day <@ d AND upper(d) = i.posting_date)
), behind AS MATERIALIZED (
    -- A document that was posted or reversed on a later day is not posted before that any more, though
    -- its own day be open again.
    SELECT i.id, i.kind, i.document_id, i.seq
      FROM first
     CROSS JOIN (SELECT l.document_id, min(l.seq) AS seq FROM later l GROUP BY l.document_id) r
      JOIN daybook.impacts i ON i.org_id = closing_adjustments.org_id AND i.document_id = r.document_id AND i.seq > r.seq
     WHERE i.kind = 'post' AND i.document_date <@ first.days AND NOT i.posting_date <@ first.days
), moved AS MATERIALIZED (
    SELECT * FROM later UNION SELECT * FROM behind
), found AS MATERIALIZED (
    SELECT i.id, 'opened_again' AS reason
      FROM first CROSS JOIN LATERAL unnest(first.days) AS d
      JOIN daybook.impacts i
        ON i.org_id = closing_adjustments.org_id AND i.posting_date >= lower(d) AND i.posting_date < upper(d) AND i.id > first.last_impact_id
     UNION ALL
    SELECT l.id, 'later_day' FROM moved l
     UNION
    SELECT r.id, 'later_day'
      FROM moved l
      JOIN daybook.impacts r ON r.org_id = closing_adjustments.org_id AND r.document_id = l.document_id AND r.kind = 'reverse' AND r.previous_seq = l.seq
     WHERE l.kind = 'post'
)
SELECT i.id, i.document_id, i.kind, f.reason, i.document_date, i.posting_date, i.created_at, e.currency, e.amount
  FROM (SELECT x.id, x.reason FROM found x WHERE x.id > closing_adjustments.after ORDER BY x.id LIMIT closing_adjustments.most) f
  JOIN daybook.impacts i ON i.id = f.id
  LEFT JOIN LATERAL (SELECT x.currency, sum(x.amount_minor) AS amount FROM daybook.entries x
                      WHERE x.impact_id = i.id AND x.side = 'debit' GROUP BY x.currency) e ON true
 ORDER BY i.id, e.currency
$$;
COMMENT ON FUNCTION daybook.closing_adjustments IS
    'What was posted of the period that begins on that day after it was first closed: on its days while they were open again, or on a later day';

-- What is closed already begins the chain.
SELECT daybook.note_closings(o.id) FROM daybook.organizations o
 WHERE EXISTS (SELECT FROM daybook.periods p WHERE p.org_id = o.id AND p.state = 'closed');

-- +goose StatementEnd

-- +goose Down
DROP TRIGGER periods_noted ON daybook.periods;
DROP FUNCTION daybook.closing_adjustments, daybook.closing_differences, daybook.periods_noted, daybook.note_closings, daybook.closing_list, daybook.open_at_closing,
    daybook.unposted_documents, daybook.days_to_close, daybook.closed_days, daybook.hash_impacts;
DROP AGGREGATE daybook.chained_hash (bytea);
DROP FUNCTION daybook.chain_hash;
DROP FUNCTION daybook.closing_hash;
DROP TABLE daybook.closings;
DROP FUNCTION daybook.check_closing_change;
