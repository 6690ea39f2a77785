package ledgerdb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// NumberTwice is a number that several documents of a counterparty have.
type NumberTwice struct {
	OrgID        string              `json:"org_id"`
	Type         models.DocumentType `json:"type"`
	Direction    models.Direction    `json:"direction"`
	Counterparty string              `json:"counterparty,omitempty"`
	Number       string              `json:"number"`
	// Documents are the first ids, at most ten of Count.
	Documents []string `json:"documents"`
	Count     int64    `json:"count"`
}

// NumbersTwice lists the numbers that several documents of an organization, type, direction and
// counterparty have, one of which was written since a moment: at most limit, and how many there
// are. It reads all documents of the organizations, and ends after five seconds with SQLSTATE
// 57014.
func NumbersTwice(ctx context.Context, tx pgx.Tx, orgs []string, since time.Time, limit int) (list []NumberTwice,
	all int64, err error,
) {
	const stmt = `
SELECT count(*) OVER (), d.org_id, d.type, d.direction, coalesce(d.content->>'counterparty', ''), d.content->>'number',
       (array_agg(d.id ORDER BY d.id))[1:10], count(*)
  FROM daybook.documents d
 WHERE d.org_id = ANY ($1) AND d.content->>'number' <> '' AND d.deleted_at IS NULL
 GROUP BY d.org_id, d.type, d.direction, coalesce(d.content->>'counterparty', ''), d.content->>'number'
HAVING count(*) > 1 AND max(d.updated_at) >= $2
 ORDER BY d.org_id, min(d.id)
 LIMIT $3`
	if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = '5s'`); err != nil {
		return nil, 0, err
	}
	list, err = store.Collect(ctx, tx, func(row pgx.CollectableRow) (n NumberTwice, err error) {
		err = row.Scan(&all, &n.OrgID, &n.Type, &n.Direction, &n.Counterparty, &n.Number, &n.Documents, &n.Count)
		return n, err
	}, stmt, orgs, since, limit)
	return list, all, store.Wrap("look for numbers that are there twice", err)
}
