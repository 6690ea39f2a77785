package answers

import (
	"time"

	"github.com/daybook-dev/daybook/models"
)

// Import is what was imported for an organization.
type Import struct {
	ID        int64       `json:"id"`
	OrgID     string      `json:"orgId"`
	Format    string      `json:"format" doc:"What was read, such as csv or ubl"`
	Files     string      `json:"files,omitempty" doc:"The paths as they were given"`
	Actor     string      `json:"actor" doc:"Who imported"`
	StartedAt time.Time   `json:"startedAt"`
	EndedAt   *time.Time  `json:"endedAt,omitempty" doc:"Absent: it runs, or its process died; what it wrote stands, and can be undone"`
	Inserted  int64       `json:"inserted" doc:"How many documents it made; the counts are there when it has ended"`
	Changed   int64       `json:"changed"`
	Unchanged int64       `json:"unchanged"`
	Undo      *ImportUndo `json:"undo,omitempty" doc:"Absent: it was never undone"`
}

// ImportUndo is what was taken back of an import.
type ImportUndo struct {
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty" doc:"Absent: it runs, or was interrupted; undo again"`
	Actor     string     `json:"actor"`
	UndoCounts
	Kept int64 `json:"kept" doc:"How many documents were left as they are"`
}

// UndoCounts count the documents that were undone.
type UndoCounts struct {
	Removed  int64 `json:"removed" doc:"Documents that the import made and that were never posted: they are gone"`
	Reversed int64 `json:"reversed" doc:"Documents that the import made: they are deleted, and a worker reverses what is posted of them"`
	Restored int64 `json:"restored" doc:"Documents that the import changed: they are as they were before, in a new version"`
}

// ImportOf makes the answer of an import.
func ImportOf(i *models.Import) Import {
	out := Import{
		ID: i.ID, OrgID: i.OrgID, Format: i.Format, Files: i.Files, Actor: i.Actor, StartedAt: i.StartedAt, EndedAt: i.EndedAt,
		Inserted: i.Inserted, Changed: i.Changed, Unchanged: i.Unchanged,
	}
	if i.UndoStartedAt != nil {
		out.Undo = &ImportUndo{
			StartedAt: *i.UndoStartedAt, EndedAt: i.UndoEndedAt, Actor: i.UndoActor,
			UndoCounts: UndoCounts{i.Removed, i.Reversed, i.Restored}, Kept: i.Kept,
		}
	}
	return out
}

// ImportList is a page of imports.
type ImportList struct {
	Imports    []Import `json:"imports"`
	NextCursor string   `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
}

// ImportListOf makes the answer of a page of imports.
func ImportListOf(list []models.Import, next string) ImportList {
	return ImportList{Imports: List(list, ImportOf), NextCursor: next}
}

// KeptDocument is a document that an undo left as it is.
type KeptDocument struct {
	ID          string `json:"id"`
	Code        string `json:"code" enum:"DOCUMENT_NOT_FOUND,DOCUMENT_DELETED,CHANGED_SINCE,FORMER_NOT_KEPT,PERIOD_CLOSED" doc:"Why"`
	OtherImport int64  `json:"otherImport,omitempty" doc:"The import that changed it since"`
}

// FailingDocument is a document whose job will fail.
type FailingDocument struct {
	ID      string `json:"id"`
	Code    string `json:"code" doc:"Why"`
	Message string `json:"message"`
}

// Undone is what an undo did.
type Undone struct {
	Import Import `json:"import"`
	UndoCounts
	Kept       []KeptDocument    `json:"kept"`
	Failing    []FailingDocument `json:"failing,omitempty" doc:"Documents that are restored and cannot be posted, as rules, accounts and periods are"`
	DryRun     bool              `json:"dryRun,omitempty"`
	NextCursor string            `json:"nextCursor,omitempty" doc:"For the request that goes on; absent: this one came to the end"`
}

// UndoneOf makes the answer of an undo.
func UndoneOf(i *models.Import, removed, reversed, restored int64, kept, failing []models.UndoneDocument, next string, dry bool,
) Undone {
	out := Undone{
		Import: ImportOf(i), UndoCounts: UndoCounts{removed, reversed, restored}, DryRun: dry, NextCursor: next,
		Kept: List(kept, func(d *models.UndoneDocument) KeptDocument {
			return KeptDocument{ID: d.ID, Code: string(d.Code), OtherImport: d.OtherImport}
		}),
	}
	for _, d := range failing {
		out.Failing = append(out.Failing, FailingDocument{ID: d.ID, Code: string(d.Fails.Code), Message: Text(&d.Fails.Message)})
	}
	return out
}
