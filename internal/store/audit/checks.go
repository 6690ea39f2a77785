package audit

import "github.com/daybook-dev/daybook/internal/store"

// auditChecks are the checks in the order in which they are reported.
var auditChecks = []store.Check{
	{
		Kind: "document_not_posted",
		Rule: "a ready document has one live impact of its version, or confirmed for it, or an open job, or a failed one",
		Stmt: auditNotPosted,
	},
	{Kind: "amount_not_posted", Rule: "a document that states an amount has entries, unless its rule posts nothing or " +
		"another system has posted the same, or an open job, or a failed one", Stmt: auditAmounts},
	{
		Kind: "retracted_document_posted",
		Rule: "a document that is deleted or not ready has no live impact, or an open job", Stmt: auditRetracted,
	},
	{
		Kind: "impact_of_unknown_document",
		Rule: "what is posted is of a document that its source knows, or knows to be deleted", Stmt: auditUnknown,
	},
	{Kind: "document_behind_its_posting", Rule: "what is posted is of the document as it is: of no newer version, and " +
		"not from before it was written anew or changed unmarked", Stmt: auditBehind},
	{
		Kind: "unbalanced_organization", Rule: "debits equal credits in each organization and currency",
		Stmt: auditOrganizations,
	},
	{Kind: "unbalanced_impact", Rule: "debits equal credits in each impact and currency", Stmt: auditImpacts},
	{Kind: "entry_count", Rule: "an impact has as many entries as it announces, numbered from 1, of its own " +
		"organization; an entry has an impact", Stmt: auditEntryCount},
	{
		Kind: "reversal_not_mirror", Rule: "a reversal has the lines of the impact before it, each on the opposite side",
		Stmt: auditMirror,
	},
	{
		Kind: "broken_chain", Rule: "a document's impacts are numbered from 1 without a gap: post, reverse, post …",
		Stmt: auditChain,
	},
	{
		Kind: "closed_sums_differ",
		Rule: "the sums that are kept of closed days are those of their entries and documents", Stmt: auditClosedSums,
	},
	{
		Kind: "closed_items_differ",
		Rule: "what is kept of open items on closed days adds up to what was posted until then", Stmt: auditClosedItems,
	},
	{
		Kind: "closing_hash_differs",
		Rule: "what was closed is as it was when it was closed, nothing was posted there since, and closings form a chain of " +
			"hashes", Stmt: auditClosings,
	},
	{
		Kind: "confirmation_of_no_posting",
		Rule: "a confirmation is of an impact that posts, and of no older version than the impact's",
		Stmt: auditConfirmations,
	},
	{Kind: "unknown_account", Rule: "the accounts of entries are in the organization's chart", Stmt: auditAccounts},
	{Kind: "unknown_rule_set", Rule: "the rule sets of impacts are kept", Stmt: auditRuleSets},
}

// auditWarnings are the checks of what need not be wrong: a person looks at it.
var auditWarnings = []store.Check{
	{
		Kind: "number_twice", Rule: "a number of a counterparty is on one document of a type and direction",
		Stmt: auditNumbers,
	},
}

const auditAmounts = `
SELECT count(*) OVER (), i.org_id, i.document_id, i.id,
       format('version %s is posted by rule %s without an entry, and the document states an amount: mend the rules or the document, then ' ||
              '` + "`daybook accounting repost`" +
	` posts it, or says why it cannot be posted', i.document_version, i.rule_id)
  FROM daybook.impacts i
  JOIN daybook.documents d ON d.org_id = i.org_id AND d.id = i.document_id
 WHERE i.kind = 'post' AND i.entry_count = 0 AND i.no_entries IN ('', 'zero') AND ($1 = '' OR i.org_id = $1)
   AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.previous_seq = i.seq)
   AND d.accounting_ready_at IS NOT NULL AND d.deleted_at IS NULL
   AND (d.accounting_ready_version = i.document_version
        OR EXISTS (SELECT 1 FROM daybook.confirmations c WHERE c.impact_id = i.id AND c.document_version = d.accounting_ready_version))
   AND NOT EXISTS (SELECT 1 FROM daybook.posted_elsewhere p WHERE p.org_id = i.org_id AND p.document_id = i.document_id)
   AND NOT EXISTS (SELECT 1 FROM daybook.accounting_work_queue q
                    WHERE q.org_id = i.org_id AND q.document_id = i.document_id AND q.state IN ('pending', 'leased', 'failed'))
   AND daybook.states_amount(d.content)
 ORDER BY i.org_id, i.document_id
 LIMIT $2`

const auditNumbers = `
SELECT count(*) OVER (), d.org_id, min(d.id), NULL::bigint,
       format('%s %s of %s has the number %s, and so %s: %s', d.direction, d.type, coalesce(nullif(d.content->>'counterparty', ''), 'a counterparty without a name'),
              d.content->>'number', CASE WHEN count(*) = 2 THEN 'has 1 other' ELSE format('have %s others', count(*) - 1) END,
              array_to_string((array_agg(d.id ORDER BY d.id))[2:6], ', '))
  FROM daybook.documents d
 WHERE d.content->>'number' <> '' AND d.deleted_at IS NULL AND ($1 = '' OR d.org_id = $1)
 GROUP BY d.org_id, d.type, d.direction, d.content->>'number', nullif(d.content->>'counterparty', '')
HAVING count(*) > 1
 ORDER BY d.org_id, min(d.id)
 LIMIT $2`

// Materialized, so that the limit does not talk the planner out of reading everything in bulk.
const auditNotPosted = `
WITH live AS (
    SELECT i.org_id, i.document_id, i.id, i.document_version
      FROM daybook.impacts i
     WHERE i.kind = 'post' AND ($1 = '' OR i.org_id = $1)
       AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.previous_seq = i.seq)
), wrong AS MATERIALIZED (
SELECT d.org_id, d.id, l.id AS impact_id,
       format('version %s is ready and %s; %s', d.accounting_ready_version,
              CASE WHEN l.id IS NULL THEN 'nothing is posted' ELSE format('version %s is posted', l.document_version) END,
              CASE WHEN j.id IS NULL THEN 'there is no job' ELSE format('its job for version %s is %s', j.version_hint, j.state) END)
  FROM daybook.documents d
  LEFT JOIN live l ON l.org_id = d.org_id AND l.document_id = d.id
  LEFT JOIN daybook.accounting_work_queue j ON j.org_id = d.org_id AND j.document_id = d.id
  LEFT JOIN daybook.organizations o ON o.id = d.org_id
 WHERE d.accounting_ready_at IS NOT NULL AND d.deleted_at IS NULL AND ($1 = '' OR d.org_id = $1)
   AND coalesce(o.source, (SELECT s.source FROM daybook.defaults s)) = 'daybook'
   AND l.document_version IS DISTINCT FROM d.accounting_ready_version
   AND (j.state IN ('completed', 'cancelled') OR j.state = 'failed' AND j.version_hint < d.accounting_ready_version) IS NOT FALSE
   AND NOT EXISTS (SELECT 1 FROM daybook.confirmations c WHERE c.impact_id = l.id AND c.document_version = d.accounting_ready_version)
   AND NOT (l.id IS NULL AND EXISTS (SELECT 1 FROM daybook.posted_elsewhere p
                                      WHERE p.org_id = d.org_id AND p.document_id = d.id AND p.next <> 'full' AND p.document_version >= d.accounting_ready_version))
)
SELECT count(*) OVER (), w.* FROM wrong w ORDER BY w.org_id, w.id LIMIT $2`

const auditRetracted = `
SELECT count(*) OVER (), d.org_id, d.id, i.id,
       format('version %s is %s and version %s is posted; %s', d.accounting_ready_version,
              CASE WHEN d.deleted_at IS NULL THEN 'not ready' ELSE 'deleted' END, i.document_version,
              CASE WHEN j.id IS NULL THEN 'there is no job' ELSE format('its job for version %s is %s', j.version_hint, j.state) END)
  FROM daybook.documents d
  JOIN daybook.impacts i ON i.org_id = d.org_id AND i.document_id = d.id AND i.kind = 'post'
  LEFT JOIN daybook.accounting_work_queue j ON j.org_id = d.org_id AND j.document_id = d.id
  LEFT JOIN daybook.organizations o ON o.id = d.org_id
 WHERE (d.accounting_ready_at IS NULL OR d.deleted_at IS NOT NULL) AND ($1 = '' OR d.org_id = $1)
   AND coalesce(o.source, (SELECT s.source FROM daybook.defaults s)) = 'daybook'
   AND (j.state IN ('pending', 'leased')) IS NOT TRUE
   AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.previous_seq = i.seq)
   -- An impact of no rule set takes back what another system has posted.
   AND NOT (i.rule_set_version IS NULL AND EXISTS (SELECT 1 FROM daybook.posted_elsewhere p WHERE p.org_id = d.org_id AND p.document_id = d.id))
 ORDER BY d.org_id, d.id
 LIMIT $2`

// What a version was posted or confirmed for is compared with the row by time: its transaction held
// the row, so a change of the row is either before both, or after.
const auditBehind = `
WITH posted AS (
    SELECT i.org_id, i.document_id, i.id, greatest(i.document_version, c.document_version) AS version, greatest(i.created_at, c.created_at) AS at
      FROM daybook.impacts i
      LEFT JOIN (SELECT DISTINCT ON (impact_id) impact_id, document_version, created_at
                   FROM daybook.confirmations ORDER BY impact_id, document_version DESC, created_at DESC) c ON c.impact_id = i.id
     WHERE i.kind = 'post' AND ($1 = '' OR i.org_id = $1)
       AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.previous_seq = i.seq)
), wrong AS MATERIALIZED (
SELECT d.org_id, d.id, p.id AS impact_id,
       CASE WHEN p.version > d.accounting_ready_version
            THEN format('version %s is posted, and the document is at version %s', p.version, d.accounting_ready_version)
            WHEN d.created_at > p.at
            THEN format('the document was written anew at %s, and version %s was posted before', d.created_at, p.version)
            ELSE format('the document was changed at %s without being marked ready, and version %s was posted before', d.updated_at, p.version) END
  FROM daybook.documents d
  JOIN posted p ON p.org_id = d.org_id AND p.document_id = d.id
  LEFT JOIN daybook.organizations o ON o.id = d.org_id
 WHERE coalesce(o.source, (SELECT s.source FROM daybook.defaults s)) = 'daybook'
   AND (p.version > d.accounting_ready_version
        OR p.version = d.accounting_ready_version AND greatest(d.created_at, d.updated_at) > p.at)
)
SELECT count(*) OVER (), w.* FROM wrong w ORDER BY w.org_id, w.id LIMIT $2`

const auditOrganizations = `
SELECT count(*) OVER (), org_id, NULL::text, NULL::bigint,
       format('debits exceed credits by %s minor units of %s',
              sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END), currency)
  FROM daybook.entries
 WHERE $1 = '' OR org_id = $1
 GROUP BY org_id, currency
HAVING sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END) <> 0
 ORDER BY org_id, currency
 LIMIT $2`

const auditImpacts = `
SELECT count(*) OVER (), coalesce(i.org_id, e.org_id), i.document_id, e.impact_id,
       format('debits exceed credits by %s minor units of %s', e.difference, e.currency)
  FROM (SELECT impact_id, currency, min(org_id) AS org_id, sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END) AS difference
          FROM daybook.entries
         WHERE $1 = '' OR org_id = $1
         GROUP BY impact_id, currency
        HAVING sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END) <> 0) e
  LEFT JOIN daybook.impacts i ON i.id = e.impact_id
 ORDER BY e.impact_id, e.currency
 LIMIT $2`

const auditEntryCount = `
SELECT count(*) OVER (), coalesce(i.org_id, e.org_id), i.document_id, coalesce(i.id, e.impact_id),
       CASE WHEN i.id IS NULL THEN format('%s entries of an impact that does not exist', e.entries)
            WHEN e.org_id <> i.org_id OR e.last_org_id <> i.org_id THEN 'its entries are of another organization'
            ELSE format('%s entries announced, %s found, numbered up to %s', i.entry_count, coalesce(e.entries, 0), coalesce(e.last_line, 0)) END
  FROM (SELECT impact_id, count(*) AS entries, max(line_no) AS last_line, min(org_id) AS org_id, max(org_id) AS last_org_id
          FROM daybook.entries
         WHERE $1 = '' OR org_id = $1
         GROUP BY impact_id) e
  FULL JOIN (SELECT id, org_id, document_id, entry_count FROM daybook.impacts WHERE $1 = '' OR org_id = $1) i ON i.id = e.impact_id
 WHERE i.id IS NULL OR coalesce(e.entries, 0) <> i.entry_count OR e.last_line <> e.entries OR e.org_id <> i.org_id OR e.last_org_id <> i.org_id
 ORDER BY coalesce(i.id, e.impact_id)
 LIMIT $2`

// Each line of a reversal cancels one of the impact before it; what is left is wrong.
const auditMirror = `
WITH pairs AS (
    SELECT r.id, r.org_id, r.document_id, p.id AS mirrored
      FROM daybook.impacts r
      JOIN daybook.impacts p ON p.org_id = r.org_id AND p.document_id = r.document_id AND p.seq = r.previous_seq
     WHERE r.kind = 'reverse' AND ($1 = '' OR r.org_id = $1)
), lines AS (
    SELECT pairs.id, e.line_no, e.org_id, e.account_code, e.side, e.amount_minor, e.currency, e.rule_line_id, e.document_line, e.dimensions, 1 AS one
      FROM pairs JOIN daybook.entries e ON e.impact_id = pairs.id AND ($1 = '' OR e.org_id = $1)
     UNION ALL
    SELECT pairs.id, e.line_no, e.org_id, e.account_code, CASE e.side WHEN 'debit' THEN 'credit' ELSE 'debit' END::daybook.entry_side,
           e.amount_minor, e.currency, e.rule_line_id, e.document_line, e.dimensions, -1
      FROM pairs JOIN daybook.entries e ON e.impact_id = pairs.mirrored AND ($1 = '' OR e.org_id = $1)
), odd AS (
    SELECT DISTINCT id
      FROM (SELECT id FROM lines
             GROUP BY id, line_no, org_id, account_code, side, amount_minor, currency, rule_line_id, document_line, dimensions
            HAVING sum(one) <> 0) l
)
SELECT count(*) OVER (), pairs.org_id, pairs.document_id, pairs.id, format('it does not mirror impact %s', pairs.mirrored)
  FROM odd JOIN pairs ON pairs.id = odd.id
 ORDER BY pairs.id
 LIMIT $2`

const auditChain = `
SELECT count(*) OVER (), org_id, document_id, max(id),
       'the chain is ' || string_agg(format('%s %s', seq, kind), ', ' ORDER BY seq)
  FROM daybook.impacts
 WHERE $1 = '' OR org_id = $1
 GROUP BY org_id, document_id
HAVING min(seq) <> 1 OR max(seq) <> count(*) OR bool_or((kind = 'post') <> (seq % 2 = 1))
 ORDER BY org_id, document_id
 LIMIT $2`

const auditClosings = `
SELECT count(*) OVER (), d.organization, i.document_id, d.impact_id, d.detail
  FROM daybook.closing_differences($1) d
  LEFT JOIN daybook.impacts i ON i.id = d.impact_id
 ORDER BY d.organization, d.number, d.impact_id
 LIMIT $2`

const auditConfirmations = `
SELECT count(*) OVER (), i.org_id, i.document_id, c.impact_id,
       CASE WHEN i.id IS NULL THEN format('version %s is confirmed by an impact that does not exist', c.document_version)
            WHEN i.kind <> 'post' THEN format('version %s is confirmed by a reversal', c.document_version)
            ELSE format('version %s is confirmed by an impact of version %s', c.document_version, i.document_version) END
  FROM daybook.confirmations c
  LEFT JOIN daybook.impacts i ON i.id = c.impact_id
 WHERE (i.id IS NULL OR i.kind <> 'post' OR c.document_version < i.document_version) AND ($1 = '' OR i.org_id IS NULL OR i.org_id = $1)
 ORDER BY c.impact_id, c.document_version
 LIMIT $2`

const auditAccounts = `
SELECT count(*) OVER (), e.org_id, NULL::text, e.impact_id,
       format('%s entries are to account %s, which the chart does not have; the first is in this impact', e.entries, e.account_code)
  FROM (SELECT org_id, account_code, count(*) AS entries, min(impact_id) AS impact_id
          FROM daybook.entries
         WHERE $1 = '' OR org_id = $1
         GROUP BY org_id, account_code) e
 WHERE NOT EXISTS (SELECT 1 FROM daybook.accounts a WHERE a.org_id = e.org_id AND a.code = e.account_code)
 ORDER BY e.org_id, e.account_code
 LIMIT $2`

const auditRuleSets = `
SELECT count(*) OVER (), i.org_id, NULL::text, i.id,
       format('%s impacts are of rule set version %s, which is not kept; the first is this one', i.impacts, i.rule_set_version)
  FROM (SELECT org_id, rule_set_version, count(*) AS impacts, min(id) AS id
          FROM daybook.impacts
         WHERE rule_set_version IS NOT NULL AND ($1 = '' OR org_id = $1)
         GROUP BY org_id, rule_set_version) i
 WHERE NOT EXISTS (SELECT 1 FROM daybook.rule_sets s WHERE s.org_id = i.org_id AND s.version = i.rule_set_version)
 ORDER BY i.org_id, i.rule_set_version
 LIMIT $2`
