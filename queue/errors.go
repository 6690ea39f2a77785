package queue

import (
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/direct"
)

// Errors that a request can lead to; compare with errors.Is.
var (
	// ErrEmptyID: an organization or document id is empty.
	ErrEmptyID = failure.New(failure.Invalid, "organization id and document id must not be empty")
	// ErrIDTooLong: an id is longer than MaxIDBytes.
	ErrIDTooLong = failure.New(failure.Invalid, "organization id and document id must not be longer than 255 bytes")
	// ErrNegativeVersion: a version is negative.
	ErrNegativeVersion = failure.New(failure.Invalid, "version must not be negative")
	// ErrInvalidPriority: a priority is none of High, Normal and Low.
	ErrInvalidPriority = failure.New(failure.Invalid, "priority must be queue.High, queue.Normal or queue.Low")
	// ErrNegativeDelay: a delay is negative.
	ErrNegativeDelay = failure.New(failure.Invalid, "delay must not be negative")
	// ErrInvalidText: a text is not UTF-8, or has the character NUL, which PostgreSQL cannot hold;
	// the error names which.
	ErrInvalidText = store.ErrInvalidText
	// ErrInvalidTime: a time is before the year 1 or after the year 9999.
	ErrInvalidTime = failure.New(failure.Invalid, "the time must be between the years 1 and 9999")
	// ErrDocumentID: a document id is none that DocumentID returns for a key of the type.
	ErrDocumentID = failure.New(failure.Invalid, "this is no document id of a row of a table")
	// ErrNoTransaction: a transaction is needed and a plain handle was given.
	ErrNoTransaction = failure.New(failure.Misuse, "a transaction is needed")
	// ErrDryRun: the GORM handle is that of a dry run, which writes nothing, so nothing was done.
	ErrDryRun = failure.New(failure.Misuse, "nothing was done: the GORM handle is that of a dry run (DryRun, ToSQL); "+
		"in a hook return nil when tx.DryRun is set")
	// ErrNoQuerier: a request was given nothing to run on.
	ErrNoQuerier = failure.New(failure.Misuse,
		"the Querier is nil: pass your transaction (a pgx.Tx, or queue.SQL or queue.GORM of one)")
	// ErrNoFunction: ListenEvents was given no function.
	ErrNoFunction = failure.New(failure.Misuse, "the function is nil: pass the one that is to be called with each event")
	// ErrNotMigrated: the database lacks Daybook's schema: run `daybook migrate up`.
	ErrNotMigrated = store.ErrNotMigrated
	// ErrDirectAddressNeeded: ListenEvents, a worker or a migration was given an address that leads
	// through a pooler in transaction mode: give it one of PostgreSQL itself (docs/scaling.md).
	ErrDirectAddressNeeded = direct.ErrNeeded
	// ErrInTransaction: WaitAccountingJob or WaitJob was given a transaction; pass the pool, after
	// the transaction's commit.
	ErrInTransaction = failure.New(failure.Misuse,
		"a transaction cannot wait for what is worked after its commit: pass the pool, after the commit")

	// ErrJobNotFound: there is no job for the document, so enqueue it first; or none with the id.
	ErrJobNotFound = store.ErrJobNotFound
	// ErrJobCompleted: the job is completed and cannot be cancelled.
	ErrJobCompleted = store.ErrJobCompleted
	// ErrDocumentNotFound: there is no such document in daybook.documents.
	ErrDocumentNotFound = store.ErrDocumentNotFound
	// ErrDocumentDeleted: the document is deleted and cannot be marked ready.
	ErrDocumentDeleted = store.ErrDocumentDeleted
	// ErrInvalid: the request is invalid, for instance by a name that a source cannot have.
	ErrInvalid = store.ErrInvalid
)
