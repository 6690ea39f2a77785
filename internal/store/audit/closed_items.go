package audit

// auditClosedItems compares what is kept of open items on closed days with the entries: of the documents
// of a group, and of one that is in none, what is kept of a day less what is kept of the day before it
// is what was posted after that. Days are found first, each once, so that the impacts are joined by
// their day.
const auditClosedItems = `
WITH kept_days AS (
    SELECT k.org_id, a.code, k.last_day, lag(k.last_day) OVER w AS day_before, lead(k.last_day) OVER w AS day_after
      FROM daybook.closed_item_days k CROSS JOIN LATERAL unnest(k.accounts) AS a (code)
     WHERE $1 = '' OR k.org_id = $1
    WINDOW w AS (PARTITION BY k.org_id, a.code ORDER BY k.last_day)
), days AS (
    SELECT DISTINCT i.org_id, i.posting_date FROM daybook.impacts i WHERE $1 = '' OR i.org_id = $1
), posting_days AS (
    SELECT k.org_id, k.code, k.last_day, d.posting_date
      FROM kept_days k JOIN days d ON d.org_id = k.org_id AND d.posting_date <= k.last_day AND d.posting_date > coalesce(k.day_before, '-infinity')
), amounts AS (
    SELECT k.org_id, k.last_day, k.document_id, k.account_code, k.currency, k.amount AS kept, 0 AS posted
      FROM daybook.closed_items k WHERE $1 = '' OR k.org_id = $1
     UNION ALL
    SELECT k.org_id, d.day_after, k.document_id, k.account_code, k.currency, -k.amount, 0
      FROM kept_days d JOIN daybook.closed_items k ON k.org_id = d.org_id AND k.last_day = d.last_day AND k.account_code = d.code
     WHERE d.day_after IS NOT NULL
     UNION ALL
    SELECT d.org_id, d.last_day, i.document_id, e.account_code, e.currency, 0, CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END
      FROM posting_days d
      JOIN daybook.impacts i ON i.org_id = d.org_id AND i.posting_date = d.posting_date
      JOIN daybook.entries e ON e.impact_id = i.id AND e.account_code = d.code
), wrong AS (
    SELECT a.org_id, a.last_day, min(a.document_id) AS document_id, a.account_code,
           format('what is kept as open on %s of document %s and its group on account %s in %s is %s more than what is kept of the day before, and %s is posted: %s',
                  a.last_day, min(a.document_id), a.account_code, a.currency, sum(a.kept), sum(a.posted), 'open the last closed period and close it again') AS detail
      FROM amounts a
      LEFT JOIN daybook.reconciled r ON r.org_id = a.org_id AND r.document_id = a.document_id
     GROUP BY a.org_id, a.last_day, r.group_id, CASE WHEN r.group_id IS NULL THEN a.document_id END, a.account_code, a.currency
    HAVING sum(a.kept) <> sum(a.posted)
     UNION ALL
    SELECT k.org_id, k.last_day, NULL, '', format('it is kept what is open on %s, and not all days until then are closed', k.last_day)
      FROM daybook.closed_item_days k
     WHERE ($1 = '' OR k.org_id = $1) AND NOT daterange('1900-01-01', k.last_day, '[]') <@ daybook.closed_days(k.org_id)
)
SELECT count(*) OVER (), w.org_id, w.document_id, NULL::bigint, w.detail FROM wrong w ORDER BY w.org_id, w.last_day, w.document_id, w.account_code LIMIT $2`
