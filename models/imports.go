package models

import "time"

// Import is one row of daybook.imports: what was imported for an organization, and what of it was
// taken back.
type Import struct {
	ID    int64
	OrgID string
	// Format is what was read: csv, gobl, ubl, cii, facturx, ndjson.
	Format string
	// Files are the paths as they were given, shortened where they are long.
	Files string
	// Actor is who imported.
	Actor     string
	StartedAt time.Time
	// EndedAt is nil while it runs, and when it was ended before its end: what it wrote stands, and
	// can be undone.
	EndedAt *time.Time
	// Inserted, Changed and Unchanged count its documents, when it has ended.
	Inserted, Changed, Unchanged int64

	// UndoStartedAt is when it was first undone, by UndoActor; nil: never. UndoEndedAt is when the
	// last undo that changed something came to its end.
	UndoStartedAt, UndoEndedAt *time.Time
	UndoActor                  string
	// Removed, Reversed and Restored count what was undone, Kept what was left as it is.
	Removed, Reversed, Restored, Kept int64
}

// UndoResult says what the undo of an import did with a document.
type UndoResult string

// The results.
const (
	// UndoRemoved: the import made it, and nothing of it was posted: it is gone, and its job.
	UndoRemoved UndoResult = "removed"
	// UndoReversed: the import made it: it is deleted, and a worker reverses what is posted of it.
	UndoReversed UndoResult = "reversed"
	// UndoRestored: the import changed it: it is as it was before, in a new version.
	UndoRestored UndoResult = "restored"
	// UndoKept: it is left as it is.
	UndoKept UndoResult = "kept"
)

// KeptCode says why the undo of an import left a document as it is.
type KeptCode string

// The reasons.
const (
	// KeptNotFound: its row is gone.
	KeptNotFound KeptCode = "DOCUMENT_NOT_FOUND"
	// KeptDeleted: it was deleted since.
	KeptDeleted KeptCode = "DOCUMENT_DELETED"
	// KeptChanged: it was changed since, by another import or otherwise.
	KeptChanged KeptCode = "CHANGED_SINCE"
	// KeptFormerUnknown: the import changed it, and what it was before is not kept: it was changed by
	// another program at the same time, or erased.
	KeptFormerUnknown KeptCode = "FORMER_NOT_KEPT"
	// KeptClosed: it is posted in a closed period, and the organization's policy is fail. Open the
	// period, or let the organization post on the first open day.
	KeptClosed KeptCode = "PERIOD_CLOSED"
)

// UndoneDocument is a document that the undo of an import came to.
type UndoneDocument struct {
	ID     string
	Result UndoResult
	// Code is why it was kept; empty: it was not.
	Code KeptCode
	// OtherImport is the import that changed it since; 0: none, or it was not kept for that.
	OtherImport int64
	// Fails is why what was restored cannot be posted, as rules, accounts and periods are; nil: it can,
	// or nothing was restored.
	Fails *JobError
}
