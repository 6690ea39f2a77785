package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestImportLeavesWhatDomainCodeLeaves imports documents at random, again and again, beside domain
// code that writes and marks them one by one in another database: the documents and the queue are
// the same after each round, also where documents were deleted or taken back meanwhile.
func TestImportLeavesWhatDomainCodeLeaves(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	byImport, byHand := setup(t), setup(t)
	for round := range 5 {
		docs := randomDocuments(random)
		var lines []string
		for _, d := range docs {
			content, err := json.Marshal(d.Content)
			require.NoError(t, err)
			lines = append(lines, fmt.Sprintf(
				`{"org_id": %q, "id": %q, "type": %q, "direction": "out", "currency": "EUR", "issue_date": "2026-03-14", "content": %s}`,
				d.OrgID, d.ID, d.Type, content))
		}
		result, _ := byImport.imported(lines...)
		var counted books.ImportResult
		for _, d := range docs {
			switch byHand.putOne(&d) {
			case ledgerdb.PutInserted:
				counted.Inserted++
			case ledgerdb.PutChanged:
				counted.Changed++
			case ledgerdb.PutUnchanged:
				counted.Unchanged++
			}
		}
		assert.Empty(t, result.Failed)
		assert.Equal(t, []int{counted.Inserted, counted.Changed, counted.Unchanged},
			[]int{result.Inserted, result.Changed, result.Unchanged}, "seed %d, round %d", seed, round)
		require.Equal(t, byHand.written(), byImport.written(), "seed %d, round %d", seed, round)

		gone, back := docs[random.IntN(len(docs))], docs[random.IntN(len(docs))]
		for _, b := range []*bundle{byImport, byHand} {
			b.inTx(func(ctx context.Context, tx pgx.Tx) error {
				if _, err := queue.MarkDocumentNotReady(ctx, tx, queue.Document{OrgID: back.OrgID, ID: back.ID}); err != nil {
					return err
				}
				_, err := queue.MarkDocumentDeleted(ctx, tx, queue.Document{OrgID: gone.OrgID, ID: gone.ID})
				return err
			})
		}
	}
}

// randomDocuments returns some of 300 documents of three organizations, each in one of three
// versions.
func randomDocuments(random *rand.Rand) []models.Document {
	var docs []models.Document
	for _, n := range random.Perm(300)[:50+random.IntN(200)] {
		d := models.Document{
			OrgID: fmt.Sprintf("org_%d", n%3), ID: fmt.Sprintf("d-%d", n), Type: models.DocumentInvoice,
			Direction: models.DirectionOut, Currency: "EUR", IssueDate: models.NewDate(2026, 3, 14),
		}
		net := int64(100 + random.IntN(3))
		d.Content.Payable = net
		for range n % 4 {
			d.Content.Lines = append(d.Content.Lines, models.Line{Kind: "item", Description: "Ä <&> \"x\"", Net: net})
		}
		docs = append(docs, d)
	}
	return docs
}

func (b *bundle) inTx(f func(ctx context.Context, tx pgx.Tx) error) {
	b.t.Helper()
	require.NoError(b.t, store.Begin(b.t.Context(), b.Pool, func(tx pgx.Tx) error { return f(b.t.Context(), tx) }))
}

// putOne writes a document and marks it ready, unless it is there already.
func (b *bundle) putOne(d *models.Document) (put ledgerdb.PutResult) {
	b.t.Helper()
	b.inTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		if put, err = ledgerdb.PutDocument(ctx, tx, d); err != nil || put == ledgerdb.PutUnchanged {
			return err
		}
		_, err = queue.MarkDocumentReady(ctx, tx, queue.Document{OrgID: d.OrgID, ID: d.ID})
		return err
	})
	return put
}

// written returns the documents with their jobs, without what tells the time.
func (b *bundle) written() []string {
	b.t.Helper()
	const q = `
SELECT concat_ws(' ', d.org_id, d.id, d.type, d.direction, d.currency, d.issue_date, d.value_date, d.content, d.accounting_ready_at IS NOT NULL,
                 d.accounting_ready_version, d.deleted_at IS NOT NULL, d.updated_at >= d.created_at,
                 q.version_hint, q.state, q.priority, q.generation, q.epoch, q.deleted_version, q.ready_at = q.first_ready_at)
  FROM daybook.documents d LEFT JOIN daybook.accounting_work_queue q ON q.org_id = d.org_id AND q.document_id = d.id
 ORDER BY d.org_id, d.id`
	rows, err := b.Pool.Query(b.t.Context(), q)
	require.NoError(b.t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	return all
}
