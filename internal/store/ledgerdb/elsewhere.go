package ledgerdb

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Elsewhere is what another system has posted of a document.
type Elsewhere struct {
	Version int64
	Next    models.NextPosting
	// Entries are nil when they are not known.
	Entries  []models.EntryElsewhere
	PostedOn models.Date
	System   string
	// Left is the version up to which a person decided that Daybook posts nothing; nil: no such decision.
	Left *int64
}

// ReadElsewhere reads what another system has posted of each document, nil where that is nothing. The answers are in the keys' order.
func ReadElsewhere(ctx context.Context, tx pgx.Tx, keys []DocumentKey) ([]*Elsewhere, error) {
	const stmt = `
SELECT k.n, p.document_version, p.next, p.entries, p.posted_on, p.system, p.left_version
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org_id, id, n)
  JOIN daybook.posted_elsewhere p ON p.org_id = k.org_id AND p.document_id = k.id`
	orgs, ids := splitKeys(keys)
	out := make([]*Elsewhere, len(keys))
	_, err := store.Collect(ctx, tx, func(row pgx.CollectableRow) (n int, err error) {
		e := &Elsewhere{}
		var entries []byte
		if err = row.Scan(&n, &e.Version, &e.Next, &entries, &e.PostedOn, &e.System, &e.Left); err != nil {
			return n, err
		}
		if entries != nil {
			if err = json.Unmarshal(entries, &e.Entries); err != nil {
				return n, fmt.Errorf("the entries elsewhere of document %s: %w", ids[n-1], err)
			}
		}
		out[n-1] = e
		return n, nil
	}, stmt, orgs, ids)
	return out, store.Wrap("read what is posted elsewhere", err)
}

// DecideElsewhere decides what Daybook posts of a document that another system has posted: difference, full or nothing. The document's job is
// tried again.
func DecideElsewhere(ctx context.Context, q store.Querier, org, document, post string) (store.Requested, error) {
	var r store.Requested
	err := q.QueryRow(ctx, `SELECT job_id, result FROM daybook.decide_posted_elsewhere($1, $2, $3)`, org, document, post).Scan(&r.JobID, &r.Result)
	return r, store.Wrap("decide", err)
}
