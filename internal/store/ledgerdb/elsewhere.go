package ledgerdb

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/failure"
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
	// Left is the version up to which a person decided that Daybook posts nothing; nil: no such
	// decision.
	Left *int64
}

// ReadElsewhere reads what another system has posted of each document, nil where that is nothing.
// The answers are in the keys' order.
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

// ErrNotPostedElsewhere: no other system has posted the document, as far as is on record.
var ErrNotPostedElsewhere = failure.New(failure.DocumentNotFound, "the document is not posted elsewhere")

// DecideElsewhere decides what Daybook posts of a document that another system has posted:
// difference, full or nothing. The document's job is tried again. A document without a job
// (store.ErrJobNotFound), or that is not posted elsewhere (ErrNotPostedElsewhere), does not end the
// caller's transaction; a decision that the document does not allow (store.ErrInvalid) does.
func DecideElsewhere(ctx context.Context, q store.Querier, org, document, post string) (store.Requested, error) {
	const stmt = `
WITH job AS MATERIALIZED (
    SELECT q.org_id, q.document_id FROM daybook.accounting_work_queue q WHERE q.org_id = $1 AND q.document_id = $2 FOR NO KEY UPDATE
), known AS MATERIALIZED (
    SELECT j.org_id, j.document_id
      FROM job j JOIN daybook.posted_elsewhere p ON p.org_id = j.org_id AND p.document_id = j.document_id
)
SELECT d.job_id, d.result FROM known k CROSS JOIN LATERAL daybook.decide_posted_elsewhere(k.org_id, k.document_id, $3) d
UNION ALL
SELECT '', 'no job' WHERE NOT EXISTS (SELECT FROM job)
UNION ALL
SELECT '', 'not elsewhere' WHERE EXISTS (SELECT FROM job) AND NOT EXISTS (SELECT FROM known)`
	var r store.Requested
	if err := q.QueryRow(ctx, stmt, org, document, post).Scan(&r.JobID, &r.Result); err != nil {
		return store.Requested{}, store.Wrap("decide", err)
	}
	switch r.Result {
	case "no job":
		return store.Requested{}, store.NoAccountingJob(org, document)
	case "not elsewhere":
		return store.Requested{},
			store.Refuse(ErrNotPostedElsewhere,
				fmt.Sprintf("document %s of organization %s is not posted elsewhere", document, org),
				"retry its job as that of any other document")
	}
	return r, nil
}

// StandsFor says that an imported open item stands for a document of another system.
type StandsFor struct{ OrgID, OpenItem, DocumentID string }

// StandForDocuments puts on record for which documents open items stand: they are not posted when
// they are imported later. A document that is posted already, or has another open item, is refused
// (store.ErrInvalid), which ends the caller's transaction.
func StandForDocuments(ctx context.Context, tx pgx.Tx, of []StandsFor) error {
	if len(of) == 0 {
		return nil
	}
	var orgs, items, documents []string
	for _, s := range of {
		orgs, items, documents = append(orgs, s.OrgID), append(items, s.OpenItem), append(documents, s.DocumentID)
	}
	_, err := tx.Exec(ctx, `SELECT daybook.stand_for_documents($1, $2, $3)`, orgs, items, documents)
	return store.Wrap("say which documents the open items stand for", err)
}
