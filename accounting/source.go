package accounting

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// SourceDaybook is the name of the source that every worker of Daybook's ledger reads: the table daybook.documents.
const SourceDaybook = "daybook"

// Source reads documents where an application keeps them in tables of its own. Both methods run in the transaction that posts, for
// documents of those organizations alone whose source on record it is.
type Source interface {
	// LockAndRead locks the documents that it can get without waiting (FOR NO KEY UPDATE SKIP LOCKED), and answers for
	// each key in order: the document as it is now, or that another transaction holds it, or that it was deleted, or that there
	// is nothing known of it. Only Deleted reverses what is posted; Unknown fails the job with DOCUMENT_UNKNOWN and changes
	// nothing else.
	LockAndRead(ctx context.Context, tx pgx.Tx, keys []Key) ([]Found, error)
	// SetPosted is told for each key whether an impact of the document is live now.
	SetPosted(ctx context.Context, tx pgx.Tx, keys []Key, live []bool) error
}

// Sources are document sources by name. Which source an organization's documents are read from is on record in the database
// (queue.SetSource, queue.SetDefaultSource).
type Sources map[string]Source

// Key names a document.
type Key struct{ OrgID, ID string }

// State is what a source says of a key. The zero value is no answer, and an error.
type State int

const (
	// Here: the document is in Document, locked until the transaction ends.
	Here State = iota + 1
	// Locked: another transaction holds the document. It is asked for again shortly.
	Locked
	// Deleted: the document was deleted. Its job is cancelled, and what is posted of it is reversed. A source says so only
	// of what it knows to be deleted.
	Deleted
	// Unknown: the source knows nothing of the document. Its job fails with DOCUMENT_UNKNOWN, and the ledger stays as it is.
	Unknown
	// Later: the documents before it are as much as one transaction should hold in memory. It is asked for again at once;
	// the first key of a call cannot be put off.
	Later
)

// Found is what a source found under a key.
type Found struct {
	// State is the answer.
	State State
	// Document is set when the document is here. It may be set for a deleted one, for its DeletedAt and for what is told after the
	// posting. A document whose DeletedAt is set is deleted.
	Document *models.Document
	// Err says why a document that is here could not be decoded: its job fails with DOCUMENT_INVALID.
	Err error
}
