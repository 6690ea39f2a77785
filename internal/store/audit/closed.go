package audit

// auditClosedSums compares the sums that are kept of closed days with the entries of these days.
// Days are found first, each once, so that the impacts are joined by their day.
const auditClosedSums = `
WITH days AS (
    SELECT DISTINCT i.org_id, i.posting_date FROM daybook.impacts i WHERE $1 = '' OR i.org_id = $1
), kept_days AS (
    SELECT d.org_id, d.posting_date, k.starts_on, k.ends_on
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
)
SELECT count(*) OVER (), w.org_id, NULL::text, NULL::bigint, w.detail FROM wrong w ORDER BY w.org_id, w.starts_on, w.account_code LIMIT $2`
