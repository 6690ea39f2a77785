package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/daybook-dev/daybook/models"
)

// DocumentFilter says which documents to list. OrgID is required; the zero value of each other field means any.
type DocumentFilter struct {
	OrgID string
	Type  models.DocumentType
	// After leaves out the documents up to this id.
	After string
	// Limit is how many are listed at most; default DefaultLimit.
	Limit int
}

// Documents lists an organization's documents in the order of their ids, without their contents.
func (l *Listing) Documents(ctx context.Context, f DocumentFilter) ([]models.Document, error) {
	q := l.db.WithContext(ctx).Omit("content").Where("org_id = ? AND id > ?", f.OrgID, f.After).Order("id").Limit(cmp.Or(f.Limit, DefaultLimit))
	return find[models.Document]("list documents", where(q, "type = ?", f.Type))
}

// Document reads a document, or returns ErrDocumentNotFound.
func (l *Listing) Document(ctx context.Context, org, id string) (models.Document, error) {
	return one[models.Document]("read the document", l.db.WithContext(ctx).Where("org_id = ? AND id = ?", org, id),
		fmt.Errorf("%w: organization %s has no document %s", ErrDocumentNotFound, org, id))
}

// EntryPlace is where a list of entries goes on: after this line.
type EntryPlace struct {
	ImpactID int64
	LineNo   int
}

// EntriesAfter lists entries in the order of Entries, from a place on.
func (l *Listing) EntriesAfter(ctx context.Context, f EntryFilter, after EntryPlace) ([]EntryLine, error) {
	q := l.entries(ctx, f).Where("(e.impact_id < ? OR (e.impact_id = ? AND e.line_no > ?))", after.ImpactID, after.ImpactID, after.LineNo)
	return find[EntryLine]("list entries", q)
}
