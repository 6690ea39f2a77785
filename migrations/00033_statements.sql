-- Chapter 33: statements: the balance sheet, the income statement, the statement of cash and the VAT
-- summary, the sums of closed days that they add up, and the year-end close.
--
-- SQLSTATEs: DB010 the request is invalid, DB016 the day is closed, DB017 no entry has that dimension.

-- +goose Up
-- +goose StatementBegin

-- Closed days whose sums are kept: the spans of daybook.closed_spans. They are made when days are
-- closed, at the latest when the transaction commits, and removed when one of their days opens. Only the functions of this chapter write them.
CREATE TABLE daybook.closed_sum_spans (
    org_id       text COLLATE "C" NOT NULL,
    starts_on    date NOT NULL,
    ends_on      date NOT NULL,
    tax_accounts text[] COLLATE "C" NOT NULL,
    kept_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (org_id, starts_on),
    CHECK (starts_on <= ends_on)
);
COMMENT ON TABLE daybook.closed_sum_spans IS 'Closed days whose sums are kept, so that a statement need not read their entries';
COMMENT ON COLUMN daybook.closed_sum_spans.tax_accounts IS 'The accounts that had the role tax: closed_tax_differences holds for these';

CREATE TABLE daybook.closed_sums (
    org_id       text COLLATE "C" NOT NULL,
    starts_on    date NOT NULL,
    account_code text COLLATE "C" NOT NULL,
    currency     text NOT NULL,
    year_end     boolean NOT NULL,
    debit        numeric NOT NULL,
    credit       numeric NOT NULL,
    PRIMARY KEY (org_id, starts_on, account_code, currency, year_end),
    FOREIGN KEY (org_id, starts_on) REFERENCES daybook.closed_sum_spans ON DELETE CASCADE
);
COMMENT ON TABLE daybook.closed_sums IS 'What was posted to an account on closed days, in minor units';
COMMENT ON COLUMN daybook.closed_sums.year_end IS 'Posted by a year-end close: the income statement leaves it out';

-- Entries without a dimension are not in it: they are what is left of closed_sums.
CREATE TABLE daybook.closed_dimension_sums (
    org_id       text COLLATE "C" NOT NULL,
    starts_on    date NOT NULL,
    account_code text COLLATE "C" NOT NULL,
    currency     text NOT NULL,
    year_end     boolean NOT NULL,
    dimensions   jsonb NOT NULL,
    debit        numeric NOT NULL,
    credit       numeric NOT NULL,
    FOREIGN KEY (org_id, starts_on) REFERENCES daybook.closed_sum_spans ON DELETE CASCADE
);
CREATE INDEX closed_dimension_sums_span ON daybook.closed_dimension_sums (org_id, starts_on);
COMMENT ON TABLE daybook.closed_dimension_sums IS 'closed_sums of the entries that have dimensions, by all of these';

-- What documents stated of taxes, by impact, when the days on which they are posted were closed. A
-- row stays when its impact is reversed later: it says what the reversal takes back.
CREATE TABLE daybook.closed_taxes (
    impact_id bigint NOT NULL,
    currency  text NOT NULL,
    direction text NOT NULL,
    country   text NOT NULL,
    category  text NOT NULL,
    code      text NOT NULL,
    rate      numeric NOT NULL,
    base      numeric NOT NULL,
    tax       numeric NOT NULL
);
CREATE INDEX closed_taxes_impact ON daybook.closed_taxes (impact_id);
COMMENT ON TABLE daybook.closed_taxes IS 'What documents stated of taxes when the days of their impacts were closed, in minor units';

-- What documents state of taxes as they are posted, by live impact, where another content has replaced
-- that since. A row counts while its impact has as many confirmations: with one more, a later content
-- is what is posted.
CREATE TABLE daybook.replaced_taxes (
    impact_id     bigint PRIMARY KEY,
    confirmations bigint NOT NULL,
    type          text NOT NULL,
    direction     text NOT NULL,
    currency      text NOT NULL,
    country       text NOT NULL,
    taxes         jsonb
);
COMMENT ON TABLE daybook.replaced_taxes IS 'What documents state of taxes as they are posted, where their content was replaced since';

-- What the content of a document states of taxes, as daybook.replaced_taxes keeps it: what
-- daybook.read_taxes makes of it, so that the same taxes in other words are the same.
CREATE FUNCTION daybook.stated_taxes(content jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT jsonb_agg(jsonb_build_object('category', x.category, 'code', x.code, 'rate', x.rate, 'base', x.base, 'amount', x.amount)
                     ORDER BY x.category COLLATE "C", x.code COLLATE "C", x.rate)
      FROM (SELECT coalesce(t ->> 'category', '') AS category, coalesce(t ->> 'code', '') AS code,
                   trim_scale(coalesce(daybook.stated_number(t ->> 'rate'), daybook.stated_number(t ->> 'rate_bp') / 100, 0)) AS rate,
                   sum(coalesce(daybook.stated_number(t ->> 'base'), 0)) AS base, sum(coalesce(daybook.stated_number(t ->> 'amount'), 0)) AS amount
              FROM jsonb_array_elements(CASE jsonb_typeof(content -> 'taxes') WHEN 'array' THEN content -> 'taxes' END) t
             GROUP BY 1, 2, 3) x
$$;

-- Keeps what a posted document states when that is replaced, or its row removed: the first time, as a
-- later content was never posted. The document's row lock keeps workers from posting it meanwhile. It
-- runs with the rights of the schema's owner, because domain code writes documents and no taxes.
CREATE FUNCTION daybook.keep_replaced_taxes() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    last daybook.impacts;
BEGIN
    SELECT * INTO last FROM daybook.impacts i WHERE i.org_id = OLD.org_id AND i.document_id = OLD.id ORDER BY i.seq DESC LIMIT 1;
    IF last.kind = 'post' AND last.entry_count > 0 THEN
        INSERT INTO daybook.replaced_taxes AS k (impact_id, confirmations, type, direction, currency, country, taxes)
        SELECT last.id, (SELECT count(*) FROM daybook.confirmations c WHERE c.impact_id = last.id), OLD.type, OLD.direction, OLD.currency, coalesce(OLD.content ->> 'country', ''),
               daybook.stated_taxes(OLD.content)
            ON CONFLICT (impact_id) DO UPDATE
           SET confirmations = excluded.confirmations, type = excluded.type, direction = excluded.direction, currency = excluded.currency,
               country = excluded.country, taxes = excluded.taxes
         WHERE k.confirmations <> excluded.confirmations;
    END IF;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION daybook.keep_replaced_taxes FROM PUBLIC;
-- Of these columns alone: posting a document does not read the condition. Compared as a row they
-- would be nested, and flat when a dump is restored: the audit would find another trigger.
CREATE TRIGGER taxes_replaced AFTER UPDATE OF type, direction, currency, content ON daybook.documents
    FOR EACH ROW WHEN (OLD.type IS DISTINCT FROM NEW.type OR OLD.direction IS DISTINCT FROM NEW.direction OR OLD.currency IS DISTINCT FROM NEW.currency
                       OR OLD.content -> 'taxes' IS DISTINCT FROM NEW.content -> 'taxes' OR OLD.content -> 'country' IS DISTINCT FROM NEW.content -> 'country')
    EXECUTE FUNCTION daybook.keep_replaced_taxes();
CREATE TRIGGER taxes_removed AFTER DELETE ON daybook.documents
    FOR EACH ROW EXECUTE FUNCTION daybook.keep_replaced_taxes();

CREATE TABLE daybook.closed_tax_sums (
    org_id    text COLLATE "C" NOT NULL,
    starts_on date NOT NULL,
    currency  text NOT NULL,
    direction text NOT NULL,
    country   text NOT NULL,
    category  text NOT NULL,
    code      text NOT NULL,
    rate      numeric NOT NULL,
    documents bigint NOT NULL,
    base      numeric NOT NULL,
    tax       numeric NOT NULL,
    FOREIGN KEY (org_id, starts_on) REFERENCES daybook.closed_sum_spans ON DELETE CASCADE
);
CREATE INDEX closed_tax_sums_span ON daybook.closed_tax_sums (org_id, starts_on);
COMMENT ON TABLE daybook.closed_tax_sums IS 'What documents stated of taxes on closed days, in minor units';

CREATE TABLE daybook.closed_tax_differences (
    org_id      text COLLATE "C" NOT NULL,
    starts_on   date NOT NULL,
    document_id text COLLATE "C" NOT NULL,
    currency    text NOT NULL,
    stated      numeric NOT NULL,
    posted      numeric NOT NULL,
    PRIMARY KEY (org_id, starts_on, document_id, currency),
    FOREIGN KEY (org_id, starts_on) REFERENCES daybook.closed_sum_spans ON DELETE CASCADE
);
COMMENT ON TABLE daybook.closed_tax_differences IS 'Documents of closed days that stated another tax than was posted, in minor units; positive: owed';

-- The days from one to another whose sums are not kept, as spans without a gap between kept ones.
CREATE FUNCTION daybook.unkept_spans(org_id text, from_day date, to_day date)
    RETURNS TABLE (first_day date, last_day date)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH kept AS (
        SELECT k.starts_on, k.ends_on FROM daybook.closed_sum_spans k
         WHERE k.org_id = unkept_spans.org_id AND k.starts_on >= from_day AND k.ends_on <= to_day
    )
    SELECT p.first_day, p.last_day
      FROM (SELECT coalesce(lag(kept.ends_on) OVER (ORDER BY kept.starts_on) + 1, from_day), kept.starts_on - 1 FROM kept
             UNION ALL
            SELECT coalesce(max(kept.ends_on) + 1, from_day), to_day FROM kept) AS p (first_day, last_day)
     WHERE p.first_day <= p.last_day
$$;

-- What was posted on days from one to another, from the entries alone; by their dimensions, or by
-- none (null). Each call is planned for its days. Impacts that were made one after the other have ids
-- beside each other: then their entries are read as one range, and else looked up by impact. The
-- bounds of the ids are those of sums, lest PostgreSQL looks for them from the ends of the table.
CREATE FUNCTION daybook.entry_sums(org_id text, from_day date, to_day date, by_dimensions boolean)
    RETURNS TABLE (account_code text, currency text, year_end boolean, dimensions jsonb, debit numeric, credit numeric)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_custom_plan SET jit = off SET random_page_cost = 1.1 SET work_mem = '64MB' SET enable_sort = off SET enable_nestloop = on
AS $$
#variable_conflict use_column
DECLARE
    _first bigint;
    _last  bigint;
    _n     bigint;
BEGIN
    SELECT min(i.id + 0), max(i.id + 0), count(*) INTO _first, _last, _n
      FROM daybook.impacts i WHERE i.org_id = entry_sums.org_id AND i.posting_date BETWEEN from_day AND to_day;
    IF _n = 0 THEN
        RETURN;
    END IF;
    IF _last - _first < 4 * _n THEN
        PERFORM set_config('enable_nestloop', 'off', true);
    END IF;
    RETURN QUERY
    SELECT e.account_code, e.currency, e.rule_line_id = 'year-end', CASE WHEN by_dimensions THEN e.dimensions END,
           coalesce(sum(e.amount_minor) FILTER (WHERE e.side = 'debit'), 0),
           coalesce(sum(e.amount_minor) FILTER (WHERE e.side = 'credit'), 0)
      FROM daybook.impacts i
      JOIN daybook.entries e ON e.impact_id = i.id
     WHERE i.org_id = entry_sums.org_id AND i.posting_date BETWEEN from_day AND to_day AND e.impact_id BETWEEN _first AND _last
     GROUP BY 1, 2, 3, 4;
END
$$;

-- What was posted to each account from one day to another, debits and credits in minor units, by all
-- dimensions of the entries, or by none (null); one account may have several rows with the same. Closed
-- days are read from the sums that are kept of them.
CREATE FUNCTION daybook.dimension_sums(org_id text, from_day date, to_day date, by_dimensions boolean)
    RETURNS TABLE (account_code text, currency text, year_end boolean, dimensions jsonb, debit numeric, credit numeric)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH span AS (
        SELECT coalesce(from_day, '-infinity') AS first_day, coalesce(to_day, 'infinity') AS last_day
    ), kept AS (
        SELECT k.starts_on FROM span
          JOIN daybook.closed_sum_spans k ON k.starts_on >= span.first_day AND k.ends_on <= span.last_day
         WHERE k.org_id = dimension_sums.org_id
    )
    SELECT k.account_code, k.currency, k.year_end, NULL::jsonb, k.debit, k.credit
      FROM kept JOIN daybook.closed_sums k ON k.org_id = dimension_sums.org_id AND k.starts_on = kept.starts_on
     UNION ALL
    -- What has dimensions is moved from the entries that have none.
    SELECT k.account_code, k.currency, k.year_end, moved.dimensions, moved.sign * k.debit, moved.sign * k.credit
      FROM kept JOIN daybook.closed_dimension_sums k ON k.org_id = dimension_sums.org_id AND k.starts_on = kept.starts_on
     CROSS JOIN LATERAL (VALUES (k.dimensions, 1), (NULL, -1)) AS moved (dimensions, sign)
     WHERE by_dimensions
     UNION ALL
    SELECT e.account_code, e.currency, e.year_end, e.dimensions, e.debit, e.credit
      FROM span CROSS JOIN LATERAL daybook.unkept_spans(dimension_sums.org_id, span.first_day, span.last_day) u
     CROSS JOIN LATERAL daybook.entry_sums(dimension_sums.org_id, u.first_day, u.last_day, by_dimensions) e
$$;

-- Refuses the key of a dimension that no entry of an organization has, and says which they have. Kept
-- sums answer first: most keys are there, or in one of the first entries.
CREATE FUNCTION daybook.check_dimension(org_id text, key text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _org  CONSTANT text := check_dimension.org_id;
    known text;
BEGIN
    IF EXISTS (SELECT FROM daybook.closed_dimension_sums k WHERE k.org_id = _org AND k.dimensions ? key) THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM daybook.entries e WHERE e.org_id = _org AND e.dimensions ? key) THEN
        RETURN;
    END IF;
    SELECT string_agg(DISTINCT k.key, ', ' ORDER BY k.key) INTO known
      FROM daybook.dimension_sums(_org, NULL, NULL, true) s CROSS JOIN LATERAL jsonb_object_keys(s.dimensions) AS k (key);
    RAISE EXCEPTION 'no entry of organization % has the dimension %', _org, key
        USING ERRCODE = 'DB017', HINT = coalesce('those that they have: ' || known, 'they have none: documents state them, or rules');
END
$$;

-- What was posted to each account from one day to another, debits and credits in minor units; null:
-- from the beginning, or to the end. by_key splits the sums by the values of a dimension (value is
-- empty where an entry has none), where_key and where_value select the entries with a value of one
-- (an empty value: those without). A key that no entry of the organization has is refused.
CREATE FUNCTION daybook.account_sums(
    org_id      text,
    from_day    date DEFAULT NULL,
    to_day      date DEFAULT NULL,
    by_key      text DEFAULT NULL,
    where_key   text DEFAULT NULL,
    where_value text DEFAULT NULL
) RETURNS TABLE (account_code text, currency text, year_end boolean, value text, debit numeric, credit numeric)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM daybook.check_dimension(account_sums.org_id, k.key)
       FROM unnest(ARRAY[account_sums.by_key, account_sums.where_key]) AS k (key) WHERE k.key IS NOT NULL;
    RETURN QUERY
    SELECT s.account_code, s.currency, s.year_end, coalesce(s.dimensions ->> by_key, ''), sum(s.debit), sum(s.credit)
      FROM daybook.dimension_sums(account_sums.org_id, from_day, to_day, by_key IS NOT NULL OR where_key IS NOT NULL) s
     WHERE where_key IS NULL OR coalesce(s.dimensions ->> where_key, '') = coalesce(where_value, '')
     GROUP BY 1, 2, 3, 4
    -- An account to which only entries were posted that are counted elsewhere.
    HAVING sum(s.debit) <> 0 OR sum(s.credit) <> 0;
END
$$;
COMMENT ON FUNCTION daybook.account_sums IS
    'What was posted to each account from one day to another, in minor units, also by the values of a dimension; closed days from the sums that are kept';

-- A line of a statement: account (one account), section (the total of a heading), total (of a type,
-- or of liabilities and equity), result (income less expense) or earlier_result. Amounts are in
-- minor units, and positive on the side that the type grows on. Lines are in order by currency and
-- place, whose order is that of bytes.
CREATE TYPE daybook.statement_line AS (
    place        text,
    kind         text,
    currency     text,
    type         text,
    section      text,
    account_code text,
    name         text,
    value        text,
    amount       numeric
);

-- Adds to lines of accounts, and of results, the totals of their sections and types.
CREATE FUNCTION daybook.add_statement_totals(org_id text, lines daybook.statement_line[])
    RETURNS SETOF daybook.statement_line
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH chart AS (
        SELECT a.code, a.type::text, a.section, a.name,
               min(a.code) OVER (PARTITION BY a.type, a.section) AS section_code
          FROM daybook.accounts a WHERE a.org_id = add_statement_totals.org_id
    ), placed AS (
        SELECT l.kind, l.currency, coalesce(l.type, c.type, 'asset') AS type, coalesce(c.section, l.section, '') AS section, l.account_code,
               coalesce(c.name, l.name, '') AS name, l.value, l.amount,
               CASE coalesce(l.type, c.type, 'asset') WHEN 'asset' THEN '1' WHEN 'liability' THEN '2' WHEN 'equity' THEN '3' WHEN 'income' THEN '4' ELSE '5' END AS part,
               coalesce(c.section_code, CASE WHEN l.kind = 'account' THEN '' ELSE '~' || l.kind END) AS section_code
          FROM unnest(lines) l LEFT JOIN chart c ON c.code = l.account_code
    )
    SELECT p.part || ' ' || p.section_code || E'\x01' || p.account_code, p.kind, p.currency, p.type, p.section, p.account_code, p.name, p.value, p.amount
      FROM placed p
     WHERE p.amount <> 0
     UNION ALL
    SELECT p.part || ' ' || p.section_code || E'\x02', 'section', p.currency, p.type, p.section, '', 'Total ' || p.section, p.value, sum(p.amount)
      FROM placed p
     WHERE p.section <> ''
     GROUP BY p.part, p.section_code, p.currency, p.type, p.section, p.value
     UNION ALL
    SELECT p.part || '~', 'total', p.currency, p.type, '', '',
           'Total ' || CASE p.type WHEN 'asset' THEN 'assets' WHEN 'liability' THEN 'liabilities' WHEN 'expense' THEN 'expenses' ELSE p.type END, p.value, sum(p.amount)
      FROM placed p
     GROUP BY p.part, p.currency, p.type, p.value
$$;

-- What an organization has, owes and owns at the end of a day. Income less expense that no year-end
-- close has moved to equity is a line of equity, so that both sides are equal.
CREATE FUNCTION daybook.balance_sheet(
    org_id      text,
    on_day      date DEFAULT NULL,
    by_key      text DEFAULT NULL,
    where_key   text DEFAULT NULL,
    where_value text DEFAULT NULL
) RETURNS SETOF daybook.statement_line
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH sums AS (
        SELECT coalesce(a.type::text, 'asset') AS type, s.account_code, s.currency, s.value, sum(s.debit - s.credit) AS amount
          FROM daybook.account_sums(balance_sheet.org_id, NULL, on_day, by_key, where_key, where_value) s
          LEFT JOIN daybook.accounts a ON a.org_id = balance_sheet.org_id AND a.code = s.account_code
         GROUP BY 1, 2, 3, 4
    ), results AS (
        SELECT s.currency, s.value, -sum(s.amount) AS amount FROM sums s WHERE s.type IN ('income', 'expense') GROUP BY 1, 2
    ), earlier AS (
        SELECT s.currency, s.value, sum(s.credit - s.debit) AS amount
          FROM daybook.account_sums(balance_sheet.org_id, NULL, date_trunc('year', coalesce(on_day, current_date))::date - 1, by_key, where_key, where_value) s
          JOIN daybook.accounts a ON a.org_id = balance_sheet.org_id AND a.code = s.account_code AND a.type IN ('income', 'expense')
         GROUP BY 1, 2
    ), lines AS (
        SELECT (NULL, 'account', s.currency, s.type, '', s.account_code, '', s.value, CASE s.type WHEN 'asset' THEN s.amount ELSE -s.amount END)::daybook.statement_line AS line
          FROM sums s WHERE s.type NOT IN ('income', 'expense')
         UNION ALL
        SELECT (NULL, 'earlier_result', e.currency, 'equity', '', '', 'Result of earlier years', e.value, e.amount)::daybook.statement_line FROM earlier e
         UNION ALL
        SELECT (NULL, 'result', r.currency, 'equity', '', '', 'Result of the year', r.value, r.amount - coalesce(e.amount, 0))::daybook.statement_line
          FROM results r LEFT JOIN earlier e USING (currency, value)
    ), totals AS (
        SELECT t.* FROM daybook.add_statement_totals(balance_sheet.org_id, (SELECT array_agg(l.line) FROM lines l)) t
    )
    SELECT x.*
      FROM (SELECT * FROM totals
             UNION ALL
            SELECT '3~~', 'total', t.currency, '', '', '', 'Total liabilities and equity', t.value, sum(t.amount)
              FROM totals t WHERE t.kind = 'total' AND t.type IN ('liability', 'equity')
             GROUP BY t.currency, t.value) x
     ORDER BY x.currency, x.place COLLATE "C", x.value COLLATE "C"
$$;
COMMENT ON FUNCTION daybook.balance_sheet IS
    'Assets, liabilities and equity at the end of a day (null: of all that is posted), with totals and the result that no year-end close has moved';

-- What an organization earned and spent from one day to another, without what year-end closes moved.
CREATE FUNCTION daybook.income_statement(
    org_id      text,
    from_day    date DEFAULT NULL,
    to_day      date DEFAULT NULL,
    by_key      text DEFAULT NULL,
    where_key   text DEFAULT NULL,
    where_value text DEFAULT NULL
) RETURNS SETOF daybook.statement_line
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH lines AS (
        SELECT (NULL, 'account', s.currency, a.type::text, '', s.account_code, '', s.value,
                CASE a.type WHEN 'income' THEN s.credit - s.debit ELSE s.debit - s.credit END)::daybook.statement_line AS line
          FROM daybook.account_sums(income_statement.org_id, from_day, to_day, by_key, where_key, where_value) s
          JOIN daybook.accounts a ON a.org_id = income_statement.org_id AND a.code = s.account_code AND a.type IN ('income', 'expense')
         WHERE NOT s.year_end
    ), totals AS (
        SELECT t.* FROM daybook.add_statement_totals(income_statement.org_id, (SELECT array_agg(l.line) FROM lines l)) t
    )
    SELECT x.*
      FROM (SELECT * FROM totals
             UNION ALL
            SELECT '5~~', 'result', t.currency, '', '', '', 'Result', t.value, sum(CASE t.type WHEN 'income' THEN t.amount ELSE -t.amount END)
              FROM totals t WHERE t.kind = 'total'
             GROUP BY t.currency, t.value) x
     ORDER BY x.currency, x.place COLLATE "C", x.value COLLATE "C"
$$;
COMMENT ON FUNCTION daybook.income_statement IS
    'Income and expense from one day to another, with totals and the result; what year-end closes moved is left out';

-- The money at hand (accounts with the role cash): before, what came in and went out, after.
CREATE FUNCTION daybook.cash_statement(org_id text, from_day date DEFAULT NULL, to_day date DEFAULT NULL)
    RETURNS TABLE (kind text, currency text, account_code text, name text, opening numeric, paid_in numeric, paid_out numeric, closing numeric)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH sums AS (
        SELECT s.currency, s.account_code, s.debit - s.credit AS opening, 0 AS paid_in, 0 AS paid_out
          FROM daybook.account_sums(cash_statement.org_id, NULL, from_day - 1) s WHERE from_day IS NOT NULL
         UNION ALL
        SELECT s.currency, s.account_code, 0, s.debit, s.credit FROM daybook.account_sums(cash_statement.org_id, from_day, to_day) s
    )
    SELECT CASE grouping(a.code) WHEN 0 THEN 'account' ELSE 'total' END, s.currency, coalesce(a.code, ''),
           CASE grouping(a.code) WHEN 0 THEN min(a.name) ELSE 'Total' END, sum(s.opening), sum(s.paid_in), sum(s.paid_out), sum(s.opening + s.paid_in - s.paid_out)
      FROM sums s
      JOIN daybook.accounts a ON a.org_id = cash_statement.org_id AND a.code = s.account_code AND a.role = 'cash'
     GROUP BY GROUPING SETS ((s.currency, a.code), (s.currency))
     ORDER BY s.currency, grouping(a.code), a.code
$$;
COMMENT ON FUNCTION daybook.cash_statement IS
    'What the accounts with the role cash had before a day, what came in and went out until another, and what they had then';

-- The codes of the accounts with the role tax.
CREATE FUNCTION daybook.tax_accounts(org_id text) RETURNS text[]
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(array_agg(a.code ORDER BY a.code), '{}') FROM daybook.accounts a WHERE a.org_id = tax_accounts.org_id AND a.role = 'tax'
$$;

-- What reversals take back. An impact that posts is live when it has none.
CREATE INDEX impacts_reversals ON daybook.impacts (org_id, posting_date) INCLUDE (document_id, seq, id) WHERE kind = 'reverse';

-- The taxes of impacts on days from one to another, which are days of one kept span or of none. kind
-- says what a row is:
--
--   impact    what a document states as it is posted, by live impact; if by_impact: then no day is kept
--   stated    what is stated: by documents as they are posted, or, of closed days, as they were at the
--             closing, less what reversals took back of that
--   posted    what is posted to one of the accounts, credits less debits
--   document  a document of which tax (stated, positive: owed) is not what is posted; if by_document
--
-- What mirrors a posting of another system states nothing: it is a part of what the document states,
-- or takes that back. A credit note or refund takes back, whose amounts are positive. direction says whose tax it is: out,
-- that of sales, or in, that of purchases; for a payment it is that of the money, so the other one.
--
-- All comes from one pass over impacts, documents and entries. The bounds of ids let PostgreSQL read
-- documents and entries that were made one after the other as a range. A document's list of taxes
-- mostly has one member: only longer ones are grouped.
CREATE FUNCTION daybook.read_taxes(org_id text, from_day date, to_day date, accounts text[], by_impact boolean, by_document boolean)
    RETURNS TABLE (kind text, impact_id bigint, document_id text, account_code text, currency text, direction text, country text, category text, code text,
                   rate numeric, documents bigint, base numeric, tax numeric, posted numeric)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_custom_plan SET jit = off SET random_page_cost = 1.1 SET work_mem = '64MB' SET enable_sort = off
AS $$
#variable_conflict use_column
DECLARE
    _org   CONSTANT text := read_taxes.org_id;
    _kept  CONSTANT boolean := NOT by_impact AND EXISTS (SELECT FROM daybook.closed_sum_spans k WHERE k.org_id = _org AND from_day BETWEEN k.starts_on AND k.ends_on);
    _elsewhere CONSTANT boolean := EXISTS (SELECT FROM daybook.posted_elsewhere p WHERE p.org_id = _org);
    _first bigint;
    _last  bigint;
    _n     bigint;
    _first_document text;
    _last_document  text;
    _dense boolean;
BEGIN
    SELECT min(i.id + 0), max(i.id + 0), min(i.document_id), max(i.document_id), count(*) INTO _first, _last, _first_document, _last_document, _n
      FROM daybook.impacts i WHERE i.org_id = _org AND i.posting_date BETWEEN from_day AND to_day;
    IF _n = 0 THEN
        RETURN;
    END IF;
    _dense := _last - _first < 4 * _n;
    RETURN QUERY
    WITH reversals AS NOT MATERIALIZED (
        SELECT r.id, r.document_id, r.seq, r.posting_date FROM daybook.impacts r WHERE r.org_id = _org AND r.kind = 'reverse'
    ), span AS MATERIALIZED (
        SELECT i.id, i.document_id, i.kind = 'post' AND i.entry_count > 0 AND r.seq IS NULL
                   AND NOT (_elsewhere AND EXISTS (SELECT FROM daybook.posted_elsewhere p JOIN daybook.entries e ON e.impact_id = i.id AND e.rule_line_id = 'posted-elsewhere'
                                                    WHERE p.org_id = _org AND p.document_id = i.document_id)) AS live,
               r.seq IS NOT NULL AS reversed
          FROM daybook.impacts i LEFT JOIN reversals r ON r.document_id = i.document_id AND r.seq = i.seq + 1
         WHERE i.org_id = _org AND i.posting_date BETWEEN from_day AND to_day
    ), replaced AS MATERIALIZED (
        SELECT i.id, i.document_id, k.type, k.direction, k.currency, k.country, k.taxes
          FROM span i JOIN daybook.replaced_taxes k ON k.impact_id = i.id AND k.impact_id BETWEEN _first AND _last
         WHERE NOT _kept AND i.live AND k.confirmations = (SELECT count(*) FROM daybook.confirmations c WHERE c.impact_id = i.id)
    ), contents AS NOT MATERIALIZED (
        SELECT i.id, i.document_id, d.type, d.direction, d.currency, d.content ->> 'country' AS country, d.content -> 'taxes' AS taxes
          FROM span i JOIN daybook.documents d ON d.org_id = _org AND d.id = i.document_id AND d.id BETWEEN _first_document AND _last_document
         WHERE NOT _kept AND i.live AND NOT EXISTS (SELECT FROM replaced r WHERE r.id = i.id)
         UNION ALL
        SELECT r.* FROM replaced r
    ), live AS MATERIALIZED (
        SELECT c.id, c.document_id, c.currency, CASE WHEN c.type <> 'payment' THEN c.direction WHEN c.direction = 'in' THEN 'out' ELSE 'in' END AS direction,
               CASE WHEN c.type IN ('credit_note', 'refund') THEN -1 ELSE 1 END AS sign, coalesce(c.country, '') AS country, c.taxes
          FROM contents c
    ), members AS NOT MATERIALIZED (
        SELECT l.id, l.document_id, l.currency, l.direction, l.country, l.sign, l.taxes -> 0 AS t, true AS single
          FROM live l
         WHERE CASE jsonb_typeof(l.taxes) WHEN 'array' THEN jsonb_array_length(l.taxes) = 1 END
         UNION ALL
        SELECT l.id, l.document_id, l.currency, l.direction, l.country, l.sign, jsonb_array_elements(l.taxes), false
          FROM live l
         WHERE CASE jsonb_typeof(l.taxes) WHEN 'array' THEN jsonb_array_length(l.taxes) > 1 END
    ), taxes AS NOT MATERIALIZED (
        SELECT m.id, m.document_id, m.currency, m.direction, m.country, m.single, coalesce(m.t ->> 'category', '') AS category, coalesce(m.t ->> 'code', '') AS code,
               trim_scale(coalesce(daybook.stated_number(m.t ->> 'rate'), daybook.stated_number(m.t ->> 'rate_bp') / 100, 0)) AS rate,
               m.sign * coalesce(daybook.stated_number(m.t ->> 'base'), 0) AS base, m.sign * coalesce(daybook.stated_number(m.t ->> 'amount'), 0) AS tax
          FROM members m
    ), stated AS MATERIALIZED (
        SELECT true AS live, t.id, t.document_id, t.currency, t.direction, t.country, t.category, t.code, t.rate, 1 AS documents, t.base, t.tax
          FROM taxes t WHERE t.single
         UNION ALL
        SELECT true, t.id, t.document_id, t.currency, t.direction, t.country, t.category, t.code, t.rate, 1, sum(t.base), sum(t.tax)
          FROM taxes t WHERE NOT t.single GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
         UNION ALL
        SELECT false, i.id, i.document_id, k.currency, k.direction, k.country, k.category, k.code, k.rate, 1, k.base, k.tax
          FROM span i JOIN daybook.closed_taxes k ON k.impact_id = i.id AND k.impact_id BETWEEN _first AND _last
         WHERE _kept
         UNION ALL
        SELECT false, i.id, i.document_id, k.currency, k.direction, k.country, k.category, k.code, k.rate, 1, k.base, k.tax
          -- Few are reversed, which PostgreSQL cannot know: each is looked up.
          FROM span i CROSS JOIN LATERAL (SELECT * FROM daybook.closed_taxes x WHERE x.impact_id = i.id OFFSET 0) k
         WHERE NOT _kept AND i.reversed
         UNION ALL
        SELECT false, r.id, r.document_id, k.currency, k.direction, k.country, k.category, k.code, k.rate, -1, -k.base, -k.tax
          FROM reversals r
          JOIN daybook.impacts p ON p.org_id = _org AND p.document_id = r.document_id AND p.seq = r.seq - 1
          JOIN daybook.closed_taxes k ON k.impact_id = p.id
         WHERE r.posting_date BETWEEN from_day AND to_day
    ), lines AS MATERIALIZED (
        SELECT e.impact_id, e.account_code, e.currency, CASE e.side WHEN 'credit' THEN e.amount_minor ELSE -e.amount_minor END AS amount
          FROM daybook.entries e WHERE _dense AND e.impact_id BETWEEN _first AND _last AND e.account_code = ANY (accounts)
    ), posted AS MATERIALIZED (
        SELECT i.document_id, l.account_code, l.currency, l.amount FROM lines l JOIN span i ON i.id = l.impact_id
         UNION ALL
        SELECT i.document_id, e.account_code, e.currency, CASE e.side WHEN 'credit' THEN e.amount_minor ELSE -e.amount_minor END
          FROM span i JOIN daybook.entries e ON e.impact_id = i.id
         WHERE NOT _dense AND e.account_code = ANY (accounts)
    )
    SELECT 'impact', s.id, s.document_id, '', s.currency, s.direction, s.country, s.category, s.code, s.rate, 1::bigint, s.base, s.tax, NULL::numeric
      FROM stated s WHERE by_impact AND s.live
     UNION ALL
    SELECT 'stated', NULL, '', '', s.currency, s.direction, s.country, s.category, s.code, s.rate, sum(s.documents), sum(s.base), sum(s.tax), NULL
      FROM stated s
     GROUP BY s.currency, s.direction, s.country, s.category, s.code, s.rate
     UNION ALL
    SELECT 'posted', NULL, '', p.account_code, p.currency, '', '', '', '', NULL, NULL, NULL, NULL, sum(p.amount)
      FROM posted p GROUP BY p.account_code, p.currency
     UNION ALL
    SELECT 'document', NULL, x.document_id, '', x.currency, '', '', '', '', NULL, NULL, NULL, sum(x.stated), sum(x.posted)
      FROM (SELECT s.document_id, s.currency, CASE s.direction WHEN 'out' THEN s.tax ELSE -s.tax END AS stated, 0 AS posted FROM stated s
             UNION ALL
            SELECT p.document_id, p.currency, 0, p.amount FROM posted p) x
     WHERE by_document
     GROUP BY x.document_id, x.currency
    HAVING sum(x.stated) <> sum(x.posted);
END
$$;

-- The days from one to another as spans that are kept or not, each of one kept span at most. These
-- are days whose taxes are not read from sums.
CREATE FUNCTION daybook.unkept_parts(org_id text, from_day date, to_day date)
    RETURNS TABLE (first_day date, last_day date)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH spans AS (
        SELECT u.first_day, u.last_day FROM daybook.unkept_spans(unkept_parts.org_id, from_day, to_day) u
    ), cuts AS (
        SELECT s.first_day AS day, s.last_day FROM spans s
         UNION
        SELECT c.day, s.last_day FROM spans s JOIN daybook.closed_sum_spans k ON k.org_id = unkept_parts.org_id
         CROSS JOIN LATERAL (VALUES (k.starts_on), (k.ends_on + 1)) AS c (day)
         WHERE c.day > s.first_day AND c.day <= s.last_day
    )
    SELECT c.day, coalesce(lead(c.day) OVER (PARTITION BY c.last_day ORDER BY c.day) - 1, c.last_day) FROM cuts c
$$;

-- Taxes from one day to another, in minor units, in one pass: the rows of daybook.vat_summary, and so
-- many of daybook.vat_differences (null: all) behind them, as kind document, whose tax is what the
-- document states.
CREATE FUNCTION daybook.vat_report(org_id text, from_day date DEFAULT NULL, to_day date DEFAULT NULL, differences integer DEFAULT NULL)
    RETURNS TABLE (kind text, currency text, direction text, country text, category text, code text, rate numeric,
                   account_code text, name text, documents bigint, base numeric, tax numeric, document_id text, posted numeric)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH span AS (
        SELECT coalesce(from_day, '-infinity') AS first_day, coalesce(to_day, 'infinity') AS last_day,
               daybook.tax_accounts(vat_report.org_id) AS accounts, coalesce(differences, 1) > 0 AS by_document
    ), kept AS (
        SELECT k.starts_on, k.ends_on, k.tax_accounts = span.accounts AS same_accounts
          FROM span JOIN daybook.closed_sum_spans k ON k.starts_on >= span.first_day AND k.ends_on <= span.last_day
         WHERE k.org_id = vat_report.org_id
    ), parts AS (
        SELECT u.first_day, u.last_day, false AS kept FROM span CROSS JOIN LATERAL daybook.unkept_parts(vat_report.org_id, span.first_day, span.last_day) u
         UNION ALL
        SELECT kept.starts_on, kept.ends_on, true FROM kept CROSS JOIN span WHERE NOT kept.same_accounts AND span.by_document
    ), read AS MATERIALIZED (
        SELECT r.* FROM span CROSS JOIN parts p
         CROSS JOIN LATERAL daybook.read_taxes(vat_report.org_id, p.first_day, p.last_day, span.accounts, false, span.by_document) r
         WHERE r.kind = 'document' OR NOT p.kept
    ), taxes AS (
        SELECT k.currency, k.direction, k.country, k.category, k.code, k.rate, k.documents, k.base, k.tax
          FROM kept JOIN daybook.closed_tax_sums k ON k.org_id = vat_report.org_id AND k.starts_on = kept.starts_on
         UNION ALL
        SELECT r.currency, r.direction, r.country, r.category, r.code, r.rate, r.documents, r.base, r.tax FROM read r WHERE r.kind = 'stated'
    ), stated AS (
        SELECT t.currency, t.direction, t.country, t.category, t.code, t.rate, sum(t.documents)::bigint AS documents, sum(t.base) AS base, sum(t.tax) AS tax
          FROM taxes t GROUP BY 1, 2, 3, 4, 5, 6
        HAVING sum(t.base) <> 0 OR sum(t.tax) <> 0 OR sum(t.documents) <> 0
    ), sums AS (
        SELECT k.account_code, k.currency, k.credit - k.debit AS tax
          FROM kept JOIN daybook.closed_sums k ON k.org_id = vat_report.org_id AND k.starts_on = kept.starts_on
         UNION ALL
        SELECT r.account_code, r.currency, r.posted FROM read r WHERE r.kind = 'posted'
    ), posted AS (
        SELECT s.currency, a.code, a.name, sum(s.tax) AS tax
          FROM sums s JOIN daybook.accounts a ON a.org_id = vat_report.org_id AND a.code = s.account_code AND a.role = 'tax'
         GROUP BY 1, 2, 3
    ), totals AS (
        SELECT x.currency, sum(x.stated) AS stated, sum(x.posted) AS posted
          FROM (SELECT s.currency, CASE s.direction WHEN 'out' THEN s.tax ELSE -s.tax END AS stated, 0 AS posted FROM stated s
                 UNION ALL
                SELECT p.currency, 0, p.tax FROM posted p) x
         GROUP BY 1
    ), documents AS (
        SELECT x.document_id, x.currency, sum(x.stated) AS stated, sum(x.posted) AS posted
          FROM (SELECT k.document_id, k.currency, k.stated, k.posted
                  FROM span CROSS JOIN kept JOIN daybook.closed_tax_differences k ON k.org_id = vat_report.org_id AND k.starts_on = kept.starts_on
                 WHERE kept.same_accounts AND span.by_document
                 UNION ALL
                SELECT r.document_id, r.currency, r.tax, r.posted FROM read r WHERE r.kind = 'document') x
         GROUP BY 1, 2
        HAVING sum(x.stated) <> sum(x.posted)
         ORDER BY abs(sum(x.stated) - sum(x.posted)) DESC, 1, 2
         LIMIT differences
    )
    SELECT r.kind, r.currency, r.direction, r.country, r.category, r.code, r.rate, r.account_code, r.name, r.documents, r.base, r.tax, r.document_id, r.posted
      FROM (SELECT 1 AS part, 'stated' AS kind, s.currency, s.direction, s.country, s.category, s.code, s.rate, '' AS account_code, '' AS name, s.documents, s.base, s.tax,
                   '' AS document_id, NULL::numeric AS posted FROM stated s
             UNION ALL
            SELECT 2, 'stated_total', t.currency, '', '', '', '', NULL, '', 'Tax that documents state', NULL, NULL, t.stated, '', NULL FROM totals t
             UNION ALL
            SELECT 3, 'posted', p.currency, '', '', '', '', NULL, p.code, p.name, NULL, NULL, p.tax, '', NULL FROM posted p
             UNION ALL
            SELECT 4, 'posted_total', t.currency, '', '', '', '', NULL, '', 'Tax that is posted', NULL, NULL, t.posted, '', NULL FROM totals t
             UNION ALL
            SELECT 5, 'difference', t.currency, '', '', '', '', NULL, '', 'Difference', NULL, NULL, t.stated - t.posted, '', NULL FROM totals t
             UNION ALL
            SELECT 6, 'document', d.currency, '', '', '', '', NULL, '', '', NULL, NULL, d.stated, d.document_id, d.posted FROM documents d) r
     ORDER BY r.kind = 'document', CASE r.kind WHEN 'document' THEN abs(r.tax - r.posted) END DESC, r.document_id,
              r.currency, r.part, r.direction DESC, r.country, r.category, r.rate DESC NULLS LAST, r.code, r.account_code
$$;
COMMENT ON FUNCTION daybook.vat_report IS
    'The rows of daybook.vat_summary and, as kind document, those of daybook.vat_differences, in one pass';

-- Documents whose taxes from one day to another, as they state them, are not what is posted to
-- accounts with the role tax: the greatest differences first. Positive amounts are owed.
CREATE FUNCTION daybook.vat_differences(org_id text, from_day date DEFAULT NULL, to_day date DEFAULT NULL)
    RETURNS TABLE (document_id text, currency text, stated numeric, posted numeric)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT r.document_id, r.currency, r.tax, r.posted
      FROM daybook.vat_report(vat_differences.org_id, from_day, to_day) r
     WHERE r.kind = 'document'
     ORDER BY abs(r.tax - r.posted) DESC, 1, 2
$$;
COMMENT ON FUNCTION daybook.vat_differences IS
    'Documents whose taxes, as they state them, are not what is posted to accounts with the role tax, in minor units; positive: owed';

-- Taxes from one day to another, in minor units. kind says what a row is:
--
--   stated        what documents state, by whose tax it is (direction out: of sales, in: of purchases),
--                 country, category, code and rate; the tax of either direction is positive
--   stated_total  what is owed by that: that of sales less that of purchases
--   posted        what is posted to an account with the role tax: credits less debits
--   posted_total  the sum of these
--   difference    stated_total less posted_total; daybook.vat_differences says which documents cause it
CREATE FUNCTION daybook.vat_summary(org_id text, from_day date DEFAULT NULL, to_day date DEFAULT NULL)
    RETURNS TABLE (kind text, currency text, direction text, country text, category text, code text, rate numeric,
                   account_code text, name text, documents bigint, base numeric, tax numeric)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT r.kind, r.currency, r.direction, r.country, r.category, r.code, r.rate, r.account_code, r.name, r.documents, r.base, r.tax
      FROM daybook.vat_report(vat_summary.org_id, from_day, to_day, 0) WITH ORDINALITY r
     ORDER BY r.ordinality
$$;
COMMENT ON FUNCTION daybook.vat_summary IS
    'Taxes from one day to another: as documents state them by direction, country, category, code and rate, as they are posted to accounts with the role tax, and the difference';

-- Writes the journal that moves what an organization earned and spent in a calendar year to an
-- account of equity, each by its dimensions, on the year's last day, and marks it ready: a worker posts it. It is the document
-- year-end:YEAR. Called again it writes what has changed since. undo deletes the document, and a worker
-- reverses what is posted of it. result: written, unchanged, deleted, or nothing (there is nothing to
-- move, or to undo); moved: the result of the year that is moved, by currency, in minor units.
--
-- Locks: the document's row, the configuration (shared), the document's job.
CREATE FUNCTION daybook.close_year(
    org_id       text,
    year         integer,
    to_account   text,
    actor        text DEFAULT session_user,
    undo         boolean DEFAULT false,
    OUT document_id text,
    OUT version  bigint,
    OUT result   text,
    OUT moved    jsonb
)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _org     CONSTANT text := close_year.org_id;
    _id      CONSTANT text := 'year-end:' || close_year.year;
    _first   date;
    _last    date;
    _entries jsonb;
    _content jsonb;
    d        daybook.documents;
BEGIN
    document_id := _id;
    moved := '[]';
    IF year IS NULL OR year NOT BETWEEN 1900 AND 2999 OR coalesce(actor, '') = '' THEN
        RAISE EXCEPTION 'the year must be between 1900 and 2999, and the actor not empty' USING ERRCODE = 'DB010';
    END IF;
    _first := make_date(year, 1, 1);
    _last := make_date(year, 12, 31);
    SELECT * INTO d FROM daybook.documents x WHERE x.org_id = _org AND x.id = _id FOR UPDATE;
    version := d.accounting_ready_version;
    PERFORM daybook.use_configuration(_org);
    IF d.id IS NOT NULL AND d.deleted_at IS NULL AND d.content #> '{journal,year_end}' IS DISTINCT FROM 'true' THEN
        RAISE EXCEPTION 'document % of organization % is no year-end close', _id, _org
            USING ERRCODE = 'DB010', HINT = 'the id is that of the year-end close: give the document another one';
    END IF;
    IF undo AND (d.id IS NULL OR d.deleted_at IS NOT NULL) THEN
        result := 'nothing';
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM daybook.closed_spans(_org) s WHERE _last BETWEEN s.starts_on AND s.ends_on) THEN
        RAISE EXCEPTION 'the %, on which the year-end close of % stands, is closed', to_char(_last, 'YYYY-MM-DD'), year
            USING ERRCODE = 'DB016', HINT = 'open its period, close the year or undo that, have it posted, and close the period again';
    END IF;
    IF undo THEN
        version := (SELECT x.version FROM daybook.mark_document_deleted(_org, _id) x);
        result := 'deleted';
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM daybook.accounts a WHERE a.org_id = _org AND a.code = to_account AND a.type = 'equity') THEN
        RAISE EXCEPTION 'organization % has no account % of the type equity', _org, coalesce(to_account, '')
            USING ERRCODE = 'DB010', HINT = 'name one of the chart: `daybook accounts list`';
    END IF;

    WITH sums AS (
        SELECT s.account_code, s.currency, s.dimensions, sum(s.credit - s.debit) AS amount
          FROM daybook.dimension_sums(_org, _first, _last, true) s
          JOIN daybook.accounts a ON a.org_id = _org AND a.code = s.account_code AND a.type IN ('income', 'expense')
         WHERE NOT s.year_end
         GROUP BY 1, 2, 3
        HAVING sum(s.credit - s.debit) <> 0
    ), results AS (
        SELECT s.currency, s.dimensions, sum(s.amount) AS amount FROM sums s GROUP BY 1, 2
    ), entries AS (
        SELECT 1 AS part, s.account_code, s.currency, s.dimensions, s.amount FROM sums s
         UNION ALL
        SELECT 2, to_account, r.currency, r.dimensions, -r.amount FROM results r WHERE r.amount <> 0
    )
    SELECT (SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object('account', e.account_code, 'amount', e.amount, 'currency', e.currency, 'dimensions', e.dimensions))
                             ORDER BY e.currency, e.part, e.account_code, e.dimensions NULLS FIRST) FROM entries e),
           (SELECT coalesce(jsonb_agg(jsonb_build_object('currency', r.currency, 'amount', r.amount::text) ORDER BY r.currency), '[]')
              FROM (SELECT x.currency, sum(x.amount) AS amount FROM results x GROUP BY 1) r)
      INTO _entries, moved;
    IF _entries IS NULL THEN
        result := 'nothing';
        IF d.id IS NOT NULL AND d.deleted_at IS NULL THEN
            version := (SELECT x.version FROM daybook.mark_document_deleted(_org, _id) x);
            result := 'deleted';
        END IF;
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM jsonb_array_elements(_entries) e WHERE abs((e ->> 'amount')::numeric) > 9223372036854775807) THEN
        RAISE EXCEPTION 'the result of % is more than a journal can state', year USING ERRCODE = 'DB010', HINT = 'close it by journals of parts of it';
    END IF;
    _content := jsonb_build_object('number', _id, 'source', 'year-end', 'journal', jsonb_build_object(
        'reason', format('Year-end close of %s to account %s', year, to_account), 'by', actor, 'year_end', true, 'entries', _entries));
    IF d.deleted_at IS NULL AND d.accounting_ready_at IS NOT NULL
       AND d.content -> 'journal' -> 'entries' = _entries AND d.content -> 'journal' ->> 'reason' = _content -> 'journal' ->> 'reason' THEN
        result := 'unchanged';
        RETURN;
    END IF;
    INSERT INTO daybook.documents AS x (org_id, id, type, direction, currency, issue_date, content)
    VALUES (_org, _id, 'journal', 'out', _entries -> 0 ->> 'currency', _last, _content)
    ON CONFLICT (org_id, id) DO UPDATE
       SET content = excluded.content, currency = excluded.currency, issue_date = excluded.issue_date, deleted_at = NULL, updated_at = clock_timestamp();
    version := (SELECT x.version FROM daybook.mark_document_ready(_org, _id) x);
    result := 'written';
END
$$;
COMMENT ON FUNCTION daybook.close_year IS
    'Writes the journal that moves a year''s income and expense to an account of equity, or deletes it (undo); a worker posts or reverses it';

-- Removes the sums of days that are not closed any more, or closed as parts of other spans.
CREATE FUNCTION daybook.forget_closed_sums(org_id text) RETURNS void
    LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    DELETE FROM daybook.closed_sum_spans k
     WHERE k.org_id = forget_closed_sums.org_id
       AND NOT EXISTS (SELECT FROM daybook.closed_spans(forget_closed_sums.org_id) s WHERE s.starts_on = k.starts_on AND s.ends_on = k.ends_on);
$$;
REVOKE ALL ON FUNCTION daybook.forget_closed_sums FROM PUBLIC;

-- Keeps the sums of closed days that are not kept yet. The caller holds the organization's
-- configuration, and each statement must see all that is committed: nothing is posted on these days
-- before they are opened.
CREATE FUNCTION daybook.keep_closed_sums(org_id text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    _org CONSTANT text := keep_closed_sums.org_id;
    span record;
BEGIN
    FOR span IN
        SELECT s.starts_on, s.ends_on FROM daybook.closed_spans(_org) s
         WHERE NOT EXISTS (SELECT FROM daybook.closed_sum_spans k WHERE k.org_id = _org AND k.starts_on = s.starts_on)
         ORDER BY s.starts_on
    LOOP
        INSERT INTO daybook.closed_sum_spans (org_id, starts_on, ends_on, tax_accounts)
        VALUES (_org, span.starts_on, span.ends_on, daybook.tax_accounts(_org));
        WITH sums AS MATERIALIZED (
            SELECT * FROM daybook.entry_sums(_org, span.starts_on, span.ends_on, true)
        ), dimensions AS (
            INSERT INTO daybook.closed_dimension_sums (org_id, starts_on, account_code, currency, year_end, dimensions, debit, credit)
            SELECT _org, span.starts_on, s.account_code, s.currency, s.year_end, s.dimensions, s.debit, s.credit
              FROM sums s WHERE s.dimensions IS NOT NULL
        )
        INSERT INTO daybook.closed_sums (org_id, starts_on, account_code, currency, year_end, debit, credit)
        SELECT _org, span.starts_on, s.account_code, s.currency, s.year_end, sum(s.debit), sum(s.credit)
          FROM sums s GROUP BY s.account_code, s.currency, s.year_end;

        -- What an impact stated that is live is kept anew, and what one stated that is not stays.
        DELETE FROM daybook.closed_taxes t USING daybook.impacts i
         WHERE t.impact_id = i.id AND i.org_id = _org AND i.posting_date BETWEEN span.starts_on AND span.ends_on
           AND NOT EXISTS (SELECT FROM daybook.impacts x WHERE x.org_id = _org AND x.document_id = i.document_id AND x.seq = i.seq + 1);
        WITH read AS MATERIALIZED (
            SELECT * FROM daybook.read_taxes(_org, span.starts_on, span.ends_on, daybook.tax_accounts(_org), true, true)
        ), taxes AS (
            INSERT INTO daybook.closed_taxes (impact_id, currency, direction, country, category, code, rate, base, tax)
            SELECT r.impact_id, r.currency, r.direction, r.country, r.category, r.code, r.rate, r.base, r.tax
              FROM read r WHERE r.kind = 'impact'
        ), sums AS (
            INSERT INTO daybook.closed_tax_sums (org_id, starts_on, currency, direction, country, category, code, rate, documents, base, tax)
            SELECT _org, span.starts_on, r.currency, r.direction, r.country, r.category, r.code, r.rate, r.documents, r.base, r.tax
              FROM read r WHERE r.kind = 'stated'
        )
        INSERT INTO daybook.closed_tax_differences (org_id, starts_on, document_id, currency, stated, posted)
        SELECT _org, span.starts_on, r.document_id, r.currency, r.tax, r.posted
          FROM read r WHERE r.kind = 'document';
    END LOOP;
END
$$;
REVOKE ALL ON FUNCTION daybook.keep_closed_sums FROM PUBLIC;

-- A change of periods forgets at once what is not closed any more, and keeps what is closed when its
-- transaction commits. The chain of closings refuses one with a stricter isolation level, which may
-- not see what was posted before it got the organization's lock. They run with the rights of the schema's owner, because no role may write these sums otherwise.
CREATE FUNCTION daybook.forget_sums_of_periods() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM daybook.forget_closed_sums(CASE TG_OP WHEN 'DELETE' THEN OLD.org_id ELSE NEW.org_id END);
    RETURN NULL;
END
$$;
CREATE FUNCTION daybook.keep_sums_of_periods() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM daybook.keep_closed_sums(CASE TG_OP WHEN 'DELETE' THEN OLD.org_id ELSE NEW.org_id END);
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION daybook.forget_sums_of_periods, daybook.keep_sums_of_periods FROM PUBLIC; -- the right to make them triggers of any table
CREATE TRIGGER periods_forget_sums AFTER INSERT OR UPDATE OR DELETE ON daybook.periods
    FOR EACH ROW EXECUTE FUNCTION daybook.forget_sums_of_periods();
CREATE CONSTRAINT TRIGGER periods_keep_sums AFTER INSERT OR UPDATE OR DELETE ON daybook.periods
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION daybook.keep_sums_of_periods();

-- +goose StatementEnd

-- +goose Down
DROP TRIGGER periods_forget_sums ON daybook.periods;
DROP TRIGGER periods_keep_sums ON daybook.periods;
DROP FUNCTION daybook.forget_sums_of_periods, daybook.keep_sums_of_periods, daybook.keep_closed_sums, daybook.forget_closed_sums;
DROP FUNCTION daybook.close_year, daybook.vat_summary, daybook.vat_differences, daybook.vat_report, daybook.unkept_parts, daybook.read_taxes, daybook.tax_accounts;
DROP INDEX daybook.impacts_reversals;
DROP FUNCTION daybook.cash_statement, daybook.income_statement, daybook.balance_sheet, daybook.add_statement_totals;
DROP TYPE daybook.statement_line;
DROP FUNCTION daybook.account_sums, daybook.check_dimension, daybook.dimension_sums, daybook.entry_sums, daybook.unkept_spans;
DROP TRIGGER taxes_replaced ON daybook.documents;
DROP TRIGGER taxes_removed ON daybook.documents;
DROP FUNCTION daybook.keep_replaced_taxes, daybook.stated_taxes;
DROP TABLE daybook.replaced_taxes, daybook.closed_tax_differences, daybook.closed_tax_sums, daybook.closed_taxes, daybook.closed_dimension_sums, daybook.closed_sums, daybook.closed_sum_spans;
