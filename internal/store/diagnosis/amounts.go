package diagnosis

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// NotPosted are documents that are completed without an entry although they state an amount.
type NotPosted struct {
	Count int64
	// Since is when the first of them was posted. OrgID and DocumentID name one.
	Since             *time.Time
	OrgID, DocumentID string
}

// AmountsNotPosted looks for them among those of which it is not on record why they have no entry.
// It looks at Most of these at most.
func AmountsNotPosted(ctx context.Context, q store.Querier, org string) (n NotPosted, err error) {
	const stmt = `
WITH bare AS MATERIALIZED (
    SELECT i.org_id, i.document_id, i.seq, i.document_version, i.created_at
      FROM daybook.impacts i
     WHERE i.kind = 'post' AND i.entry_count = 0 AND i.no_entries = '' AND ($1 = '' OR i.org_id = $1)
     ORDER BY i.org_id, i.id
     LIMIT $2
), wrong AS MATERIALIZED (
    SELECT b.*
      FROM bare b
     CROSS JOIN LATERAL (SELECT * FROM daybook.documents x WHERE x.org_id = b.org_id AND x.id = b.document_id LIMIT 1) d
     WHERE d.accounting_ready_at IS NOT NULL AND d.deleted_at IS NULL AND d.accounting_ready_version = b.document_version AND daybook.states_amount(d.content)
       AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = b.org_id AND x.document_id = b.document_id AND x.seq = b.seq + 1)
       AND NOT EXISTS (SELECT 1 FROM daybook.accounting_work_queue q
                        WHERE q.org_id = b.org_id AND q.document_id = b.document_id AND q.state IN ('pending', 'leased', 'failed'))
       AND NOT EXISTS (SELECT 1 FROM daybook.posted_elsewhere p WHERE p.org_id = b.org_id AND p.document_id = b.document_id)
)
SELECT count(*), min(created_at), coalesce((array_agg(org_id ORDER BY created_at))[1], ''), coalesce((array_agg(document_id ORDER BY created_at))[1], '')
  FROM wrong`
	err = q.QueryRow(ctx, stmt, org, Most).Scan(&n.Count, &n.Since, &n.OrgID, &n.DocumentID)
	return n, store.Wrap("look for amounts that are not posted", err)
}
