package ledgerdb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// OrganizationsOf lists the organizations of a source that have a job or an impact, in the order of
// their ids; org empty: all.
func OrganizationsOf(ctx context.Context, q store.Querier, source, org string) ([]string, error) {
	const stmt = `
SELECT k.org_id
  FROM (SELECT org_id FROM daybook.accounting_work_queue WHERE $2 = '' OR org_id = $2
         UNION
        SELECT org_id FROM daybook.impacts WHERE $2 = '' OR org_id = $2) k
  LEFT JOIN daybook.organizations o ON o.id = k.org_id
 WHERE coalesce(o.source, (SELECT d.source FROM daybook.defaults d WHERE d.one)) = $1
 ORDER BY k.org_id`
	orgs, err := store.Collect(ctx, q, pgx.RowTo[string], stmt, source, org)
	return orgs, store.Wrap("list the organizations of a source", err)
}

// DocumentsOf lists up to limit documents of an organization, behind the one that is named, that
// have a job or an impact.
func DocumentsOf(ctx context.Context, q store.Querier, org, after string, limit int) ([]DocumentKey, error) {
	const stmt = `
(SELECT document_id FROM daybook.accounting_work_queue WHERE org_id = $1 AND document_id > $2 ORDER BY document_id LIMIT $3)
 UNION
(SELECT document_id FROM daybook.impacts WHERE org_id = $1 AND document_id > $2 AND seq = 1 ORDER BY document_id LIMIT $3)
 ORDER BY document_id LIMIT $3`
	keys, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (k DocumentKey, err error) {
		k.OrgID = org
		err = row.Scan(&k.ID)
		return k, err
	}, stmt, org, after, limit)
	return keys, store.Wrap("list documents", err)
}

// DocumentPosting is how a document stands in the ledger and in the queue.
type DocumentPosting struct {
	// LiveID and LiveVersion are the live impact's; nil: the document is not posted. ConfirmedVersion
	// is the newest version that it was confirmed for.
	LiveID, LiveVersion, ConfirmedVersion *int64
	// JobState and JobVersion are its job's; "": it has none.
	JobState   string
	JobVersion int64
	// ElsewhereVersion is the newest version that another system has posted; nil: none, or it was
	// taken back. LiveRetracts says that the live impact takes back what is posted there.
	ElsewhereVersion *int64
	LiveRetracts     bool
	// Bare says that the live impact has no entry, and that neither its rule nor another system's
	// posting is the reason.
	Bare bool
}

// Postings reads how documents stand. The answers are in the keys' order.
func Postings(ctx context.Context, q store.Querier, keys []DocumentKey) ([]DocumentPosting, error) {
	const stmt = `
SELECT live.id, live.document_version, (SELECT max(c.document_version) FROM daybook.confirmations c WHERE c.impact_id = live.id),
       coalesce(j.state::text, ''), coalesce(j.version_hint, 0), p.document_version, p.document_version IS NOT NULL AND live.id IS NOT NULL AND live.rule_set_version IS NULL,
       live.id IS NOT NULL AND live.entry_count = 0 AND live.no_entries IN ('', 'zero') AND p.document_version IS NULL
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org_id, id, n)
  LEFT JOIN daybook.accounting_work_queue j ON j.org_id = k.org_id AND j.document_id = k.id
  LEFT JOIN LATERAL (
        SELECT i.id, i.kind, i.document_version, i.rule_set_version, i.entry_count, i.no_entries FROM daybook.impacts i
         WHERE i.org_id = k.org_id AND i.document_id = k.id
         ORDER BY i.seq DESC LIMIT 1) live ON live.kind = 'post'
  LEFT JOIN daybook.posted_elsewhere p ON p.org_id = k.org_id AND p.document_id = k.id AND p.next <> 'full'
 ORDER BY k.n`
	orgs, ids := splitKeys(keys)
	postings, err := store.Collect(ctx, q, pgx.RowToStructByPos[DocumentPosting], stmt, orgs, ids)
	return postings, store.Wrap("read postings", err)
}
