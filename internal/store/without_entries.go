package store

import (
	"context"

	"github.com/daybook-dev/daybook/models"
)

// mostWithoutEntries is how many impacts of a reason WithoutEntries looks at.
const mostWithoutEntries = 10000

// WithoutEntries counts the documents that are posted without an entry, by why; those of a reason
// that are more than 10,000 are not all counted. org is the organization; empty: all.
func WithoutEntries(ctx context.Context, q Querier, org string) (map[models.NoEntries]int64, error) {
	const stmt = `
SELECT r.reason, n.live
  FROM unnest($3::text[]) AS r (reason)
 CROSS JOIN LATERAL (
        SELECT count(*) AS live
          FROM (SELECT i.org_id, i.document_id, i.seq FROM daybook.impacts i
                 WHERE i.kind = 'post' AND i.entry_count = 0 AND i.no_entries = r.reason AND ($1 = '' OR i.org_id = $1)
                 LIMIT $2) i
         WHERE NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.seq = i.seq + 1)) n
 WHERE n.live > 0`
	reasons := []string{string(models.NoEntriesZero), string(models.NoEntriesRule), string(models.NoEntriesElsewhere)}
	counts, err := Pairs[models.NoEntries, int64](ctx, q, stmt, org, mostWithoutEntries, reasons)
	return counts, Wrap("count documents without entries", err)
}
