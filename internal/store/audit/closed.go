package audit

// auditClosedSums compares the sums that are kept of closed days with the entries of these days, and
// the taxes with those of each impact and with the entries. Days are found first, each once, so that
// the impacts are joined by their day. What is kept of an impact is compared with its document only
// while that is as it was posted; what mirrors a posting of another system states nothing.
const auditClosedSums = `
WITH days AS (
    SELECT DISTINCT i.org_id, i.posting_date FROM daybook.impacts i WHERE $1 = '' OR i.org_id = $1
), kept_days AS (
    SELECT d.org_id, d.posting_date, k.starts_on, k.ends_on, k.tax_accounts
      FROM daybook.closed_sum_spans k JOIN days d ON d.org_id = k.org_id AND d.posting_date BETWEEN k.starts_on AND k.ends_on
), posted AS MATERIALIZED (
    SELECT k.org_id, k.starts_on, e.account_code, e.currency, e.rule_line_id = 'year-end' AS year_end, e.dimensions,
           coalesce(sum(e.amount_minor) FILTER (WHERE e.side = 'debit'), 0) AS debit, coalesce(sum(e.amount_minor) FILTER (WHERE e.side = 'credit'), 0) AS credit
      FROM kept_days k
      JOIN daybook.impacts i ON i.org_id = k.org_id AND i.posting_date = k.posting_date
      JOIN daybook.entries e ON e.impact_id = i.id
     GROUP BY 1, 2, 3, 4, 5, 6
), sums AS (
    SELECT p.org_id, p.starts_on, p.account_code, p.currency, p.year_end, '{}'::jsonb AS dimensions, sum(p.debit) AS debit, sum(p.credit) AS credit
      FROM posted p GROUP BY 1, 2, 3, 4, 5
     UNION ALL
    SELECT p.org_id, p.starts_on, p.account_code, p.currency, p.year_end, p.dimensions, p.debit, p.credit FROM posted p WHERE p.dimensions IS NOT NULL
), kept AS (
    SELECT k.org_id, k.starts_on, k.account_code, k.currency, k.year_end, '{}'::jsonb AS dimensions, k.debit, k.credit
      FROM daybook.closed_sums k WHERE $1 = '' OR k.org_id = $1
     UNION ALL
    SELECT k.org_id, k.starts_on, k.account_code, k.currency, k.year_end, k.dimensions, k.debit, k.credit
      FROM daybook.closed_dimension_sums k WHERE $1 = '' OR k.org_id = $1
), impacts AS MATERIALIZED (
    SELECT k.org_id, k.starts_on, k.tax_accounts, i.id, i.document_id, i.document_version, i.seq, i.kind, i.entry_count, i.created_at
      FROM kept_days k JOIN daybook.impacts i ON i.org_id = k.org_id AND i.posting_date = k.posting_date
), stated AS MATERIALIZED (
    SELECT i.org_id, i.starts_on, i.document_id, t.currency, t.direction, t.country, t.category, t.code, t.rate, 1 AS documents, t.base, t.tax
      FROM impacts i JOIN daybook.closed_taxes t ON t.impact_id = i.id
     UNION ALL
    SELECT r.org_id, r.starts_on, r.document_id, t.currency, t.direction, t.country, t.category, t.code, t.rate, -1, -t.base, -t.tax
      FROM impacts r
      JOIN daybook.impacts p ON p.org_id = r.org_id AND p.document_id = r.document_id AND p.seq = r.seq - 1
      JOIN daybook.closed_taxes t ON t.impact_id = p.id
     WHERE r.kind = 'reverse'
), tax_sums AS (
    SELECT x.org_id, x.starts_on, x.currency, sum(x.tax) AS difference
      FROM (SELECT s.org_id, s.starts_on, s.currency, s.direction, s.country, s.category, s.code, s.rate, s.documents, s.base, s.tax FROM stated s
             UNION ALL
            SELECT k.org_id, k.starts_on, k.currency, k.direction, k.country, k.category, k.code, k.rate, -k.documents, -k.base, -k.tax
              FROM daybook.closed_tax_sums k WHERE $1 = '' OR k.org_id = $1) x
     GROUP BY x.org_id, x.starts_on, x.currency, x.direction, x.country, x.category, x.code, x.rate
    HAVING sum(x.documents) <> 0 OR sum(x.base) <> 0 OR sum(x.tax) <> 0
), differing AS (
    SELECT x.org_id, x.starts_on, x.document_id, x.currency, sum(x.stated) AS stated, sum(x.posted) AS posted
      FROM (SELECT s.org_id, s.starts_on, s.document_id, s.currency, CASE s.direction WHEN 'out' THEN s.tax ELSE -s.tax END AS stated, 0 AS posted FROM stated s
             UNION ALL
            SELECT i.org_id, i.starts_on, i.document_id, e.currency, 0, CASE e.side WHEN 'credit' THEN e.amount_minor ELSE -e.amount_minor END
              FROM impacts i JOIN daybook.entries e ON e.impact_id = i.id
             WHERE e.account_code = ANY (i.tax_accounts)) x
     GROUP BY 1, 2, 3, 4
    HAVING sum(x.stated) <> sum(x.posted)
), unchanged AS MATERIALIZED (
    SELECT i.org_id, i.starts_on, i.id, i.document_id, d.currency, d.type, d.direction, d.content -> 'taxes' AS taxes
      FROM impacts i JOIN daybook.documents d ON d.org_id = i.org_id AND d.id = i.document_id
     WHERE i.kind = 'post' AND i.entry_count > 0 AND d.accounting_ready_version = i.document_version AND greatest(d.created_at, d.updated_at) <= i.created_at
       AND NOT EXISTS (SELECT FROM daybook.posted_elsewhere p JOIN daybook.entries e ON e.impact_id = i.id AND e.rule_line_id = 'posted-elsewhere'
                        WHERE p.org_id = i.org_id AND p.document_id = i.document_id)
       AND NOT EXISTS (SELECT FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.previous_seq = i.seq)
       AND NOT EXISTS (SELECT FROM daybook.replaced_taxes k
                        WHERE k.impact_id = i.id AND k.confirmations = (SELECT count(*) FROM daybook.confirmations c WHERE c.impact_id = i.id))
), changed AS (
    SELECT x.org_id, x.starts_on, x.document_id
      FROM (SELECT u.org_id, u.starts_on, u.document_id, u.currency, u.type <> 'payment' AND u.direction = 'out' OR u.type = 'payment' AND u.direction <> 'out' AS sales,
                   coalesce(daybook.stated_number(t.value ->> 'base'), 0) * s.sign AS base,
                   coalesce(daybook.stated_number(t.value ->> 'amount'), 0) * s.sign AS tax
              FROM unchanged u
             CROSS JOIN LATERAL (SELECT CASE WHEN u.type IN ('credit_note', 'refund') THEN -1 ELSE 1 END) AS s (sign)
             CROSS JOIN LATERAL jsonb_array_elements(CASE jsonb_typeof(u.taxes) WHEN 'array' THEN u.taxes END) t
             UNION ALL
            SELECT u.org_id, u.starts_on, u.document_id, t.currency, t.direction = 'out', -t.base, -t.tax
              FROM unchanged u JOIN daybook.closed_taxes t ON t.impact_id = u.id) x
     GROUP BY x.org_id, x.starts_on, x.document_id, x.currency, x.sales
    HAVING sum(x.base) <> 0 OR sum(x.tax) <> 0
), wrong AS (
    SELECT coalesce(k.org_id, s.org_id) AS org_id, coalesce(k.starts_on, s.starts_on) AS starts_on, coalesce(k.account_code, s.account_code) AS account_code,
           format('of the closed days from %s on, %s of account %s in %s (%s) are kept and %s are posted: open their period and close it again',
                  coalesce(k.starts_on, s.starts_on), coalesce(k.debit - k.credit, 0), coalesce(k.account_code, s.account_code), coalesce(k.currency, s.currency),
                  coalesce(k.dimensions, s.dimensions), coalesce(s.debit - s.credit, 0)) AS detail
      FROM kept k
      FULL JOIN sums s ON s.org_id = k.org_id AND s.starts_on = k.starts_on AND s.account_code = k.account_code AND s.currency = k.currency
                      AND s.year_end = k.year_end AND s.dimensions = k.dimensions
     WHERE (k.debit, k.credit) IS DISTINCT FROM (s.debit, s.credit)
     UNION ALL
    SELECT k.org_id, k.starts_on, '', format('sums are kept of the days from %s to %s, which are not closed', k.starts_on, k.ends_on)
      FROM daybook.closed_sum_spans k
     WHERE ($1 = '' OR k.org_id = $1)
       AND NOT EXISTS (SELECT FROM daybook.closed_spans(k.org_id) c WHERE c.starts_on = k.starts_on AND c.ends_on = k.ends_on)
     UNION ALL
    SELECT t.org_id, t.starts_on, '', format('of the closed days from %s on, taxes in %s are kept that differ by %s from those of their documents: %s',
                  t.starts_on, t.currency, t.difference, 'open their period and close it again')
      FROM tax_sums t
     UNION ALL
    SELECT coalesce(k.org_id, d.org_id), coalesce(k.starts_on, d.starts_on), '',
           format('of the closed days from %s on, it is kept that document %s states %s more tax in %s than is posted, and it is %s: open their period and close it again',
                  coalesce(k.starts_on, d.starts_on), coalesce(k.document_id, d.document_id), coalesce(k.stated - k.posted, 0),
                  coalesce(k.currency, d.currency), coalesce(d.stated - d.posted, 0))
      FROM (SELECT * FROM daybook.closed_tax_differences x WHERE $1 = '' OR x.org_id = $1) k
      FULL JOIN differing d ON d.org_id = k.org_id AND d.starts_on = k.starts_on AND d.document_id = k.document_id AND d.currency = k.currency
     WHERE (k.stated, k.posted) IS DISTINCT FROM (d.stated, d.posted)
     UNION ALL
    SELECT DISTINCT c.org_id, c.starts_on, '', format('of the closed days from %s on, the taxes that are kept of document %s are not those that it states: %s',
                  c.starts_on, c.document_id, 'open their period and close it again')
      FROM changed c
)
SELECT count(*) OVER (), w.org_id, NULL::text, NULL::bigint, w.detail FROM wrong w ORDER BY w.org_id, w.starts_on, w.account_code LIMIT $2`
