package accounting

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// SourceDaybook is the name of the source that every worker of Daybook's ledger reads: the table
// daybook.documents.
const SourceDaybook = "daybook"

// Source reads the documents of an application that keeps them in tables of its own. Both methods
// run in the transaction that posts, and only for organizations that have this source on record.
type Source interface {
	// LockAndRead locks the documents that it can lock without waiting (FOR NO KEY UPDATE SKIP
	// LOCKED), and answers for each key in order: the document as it is now, or that another
	// transaction holds it, or that it was deleted, or that the source does not know it. Only Deleted
	// reverses what is posted; Unknown fails the job with DOCUMENT_UNKNOWN and changes nothing else.
	LockAndRead(ctx context.Context, tx pgx.Tx, keys []Key) ([]Found, error)
	// SetPosted is told for each key whether an impact of the document is live now.
	SetPosted(ctx context.Context, tx pgx.Tx, keys []Key, live []bool) error
}

// Checker is what a Source may be besides. A worker asks it when it starts, and a test before it
// posts: an error ends both, so that a misspelt column is found before a document is read. A source
// of package source is one.
type Checker interface {
	// Check says whether the source's statements can be made, and return what they must. It runs in a
	// transaction that is undone.
	Check(ctx context.Context, tx pgx.Tx) error
}

// Sources are document sources by name. The database has on record from which source an
// organization's documents are read (queue.SetSource, queue.SetDefaultSource).
type Sources map[string]Source

// Key names a document.
type Key struct{ OrgID, ID string }

// State is a source's answer for a key. The zero value is not an answer: the source's call fails.
type State int

const (
	// Here: the document is in Document, locked until the transaction ends.
	Here State = iota + 1
	// Locked: another transaction holds the document. It is asked for again shortly.
	Locked
	// Deleted: the document was deleted. Its job is cancelled, and what is posted of it is reversed.
	// A source must give this answer only for a document that it knows to be deleted.
	Deleted
	// Unknown: the source does not know the document. Its job fails with DOCUMENT_UNKNOWN, and the
	// ledger stays as it is.
	Unknown
	// Later: the documents before it are as much as one transaction should hold in memory. The engine
	// asks for it again at once. It cannot be the answer for the first key of a call.
	Later
)

// Found is what a source found under a key.
type Found struct {
	// State is the answer.
	State State
	// Document is set when State is Here. It may be set when State is Deleted, for its DeletedAt and
	// for the hooks. A document whose DeletedAt is set is deleted.
	Document *models.Document
	// Err says why a document could not be decoded although State is Here: its job fails with
	// DOCUMENT_INVALID.
	Err error
}
