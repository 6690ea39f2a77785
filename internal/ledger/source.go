package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Key names a document.
type Key = store.DocumentKey

// Found is what a DocumentSource found under a key.
type Found = store.FoundDocument

// DocumentSource reads documents where an application keeps them. Both methods run in the transaction that posts.
type DocumentSource interface {
	// LockAndRead locks the documents that it can get without waiting (FOR NO KEY UPDATE SKIP LOCKED), and answers for
	// each key in order: the document as it is now, or that it is locked by somebody else, or that there is none.
	LockAndRead(ctx context.Context, tx pgx.Tx, keys []Key) ([]Found, error)
	// SetPosted is told for each key whether an impact of the document is live now.
	SetPosted(ctx context.Context, tx pgx.Tx, keys []Key, live []bool) error
}

// ownDocuments is daybook.documents.
type ownDocuments struct{}

// LockAndRead implements DocumentSource.
func (ownDocuments) LockAndRead(ctx context.Context, tx pgx.Tx, keys []Key) ([]Found, error) {
	return store.LockDocuments(ctx, tx, keys)
}

// SetPosted implements DocumentSource.
func (ownDocuments) SetPosted(ctx context.Context, tx pgx.Tx, keys []Key, live []bool) error {
	return store.SetImpactCreated(ctx, tx, keys, live)
}
