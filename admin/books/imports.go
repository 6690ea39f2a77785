package books

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// ImportsOptions says which imports to list; the zero value lists the latest 100 of all
// organizations.
type ImportsOptions struct {
	// OrgID is the organization; empty: all.
	OrgID string
	// Before leaves out the imports from this id on; 0: none.
	Before int64
	// Limit is how many are listed at most; default 100.
	Limit int
}

// Imports lists imports, the latest first.
func Imports(ctx context.Context, db DB, o ImportsOptions) ([]models.Import, error) {
	if err := check(db); err != nil {
		return nil, err
	}
	return ledgerdb.Imports(ctx, db, ledgerdb.ImportQuery{OrgID: o.OrgID, Before: o.Before, Limit: o.Limit})
}

// UndoOptions says how to undo an import. The zero value undoes all of it.
type UndoOptions struct {
	// OrgID is the organization that the import must be of; empty: any.
	OrgID string
	// After leaves out the documents up to this id: Undone.Next of the call before.
	After string
	// Limit is how many documents it looks at, at most; 0: all.
	Limit int
	// DryRun changes nothing, and says what would be done.
	DryRun bool
}

// Undone is what an undo did.
type Undone struct {
	// Import is the import after it.
	Import models.Import
	// Removed, Reversed and Restored count what this call has undone, as models.UndoResult says.
	Removed, Reversed, Restored int64
	// Kept are the documents that were left as they are, and why.
	Kept []models.UndoneDocument
	// Failing are those that were restored and cannot be posted, as rules, accounts and periods are:
	// UndoneDocument.Fails says why. Their jobs fail until that is mended.
	Failing []models.UndoneDocument
	// Next is where the next call goes on; empty: this one came to the end.
	Next string
}

// undoBatch is how many documents a transaction undoes.
const undoBatch = 500

// errDryRun rolls back the transaction of a dry run.
var errDryRun = failure.New(failure.Internal, "a dry run")

// UndoImport takes back what an import wrote. A document that it made is removed, if nothing of it
// was ever posted, and otherwise deleted, as by queue.MarkDocumentDeleted: workers reverse what is
// posted of it. A document that it changed gets its former content again, in a new version. One
// that was changed since is left alone, and so is one that is posted in a closed period where the
// organization's policy is models.PolicyFail; Undone.Kept says which and why. An import that still
// runs writes nothing more.
//
// It commits after each 500 documents. What an undo that was ended before its end, or a Limit, left
// is undone by the next call; a call that finds nothing left changes nothing.
//
// With an error it returns what it has done until then. Errors: ErrImportNotFound, ErrInvalid.
func UndoImport(ctx context.Context, db DB, id int64, o UndoOptions) (Undone, error) {
	var u Undone
	if err := check(db); err != nil {
		return u, err
	}
	if o.Limit < 0 || !store.ValidText(o.After) {
		return u, store.Refuse(ErrInvalid, "the limit is negative, or the document's id no text", "")
	}
	if err := u.read(ctx, db, id, o.OrgID); err != nil {
		return u, err
	}
	after, left := o.After, o.Limit
	for {
		most := undoBatch
		if o.Limit > 0 {
			most = min(most, left)
		}
		some, err := undoBatchOf(ctx, db, &u.Import, after, most, o.DryRun)
		if err != nil {
			return u, err
		}
		u.add(some)
		left -= len(some)
		if len(some) < most {
			break
		}
		after = some[len(some)-1].ID
		if o.Limit > 0 && left == 0 {
			u.Next = after
			break
		}
	}
	return u, u.read(ctx, db, id, o.OrgID)
}

// undoBatchOf undoes the next documents in a transaction.
func undoBatchOf(ctx context.Context, db DB, i *models.Import, after string, most int, dry bool,
) (some []models.UndoneDocument, err error) {
	err = store.Begin(ctx, db, func(tx pgx.Tx) (err error) {
		if some, err = ledgerdb.UndoImport(ctx, tx, i.ID, after, most, actions.By(ctx)); err != nil {
			return err
		}
		if err = tryRestored(ctx, tx, i.OrgID, some); err == nil && dry {
			err = errDryRun
		}
		return err
	})
	if dry && errors.Is(err, errDryRun) {
		err = nil
	}
	return some, err
}

// tryRestored finds out which of the documents that were restored cannot be posted.
func tryRestored(ctx context.Context, tx pgx.Tx, org string, some []models.UndoneDocument) error {
	type restored struct {
		*models.UndoneDocument
		last *ledgerdb.LastImpact
	}
	var rest []restored
	var impacts []ledgerdb.ImpactKey
	for n := range some {
		if some[n].Result == models.UndoRestored {
			rest = append(rest, restored{&some[n], nil})
			impacts = append(impacts, ledgerdb.ImpactKey{DocumentKey: ledgerdb.DocumentKey{OrgID: org, ID: some[n].ID}})
		}
	}
	if len(rest) == 0 {
		return nil
	}
	trial, err := ledger.NewTrial(ctx, tx, org)
	if err != nil {
		return err
	}
	last, err := ledgerdb.LastImpacts(ctx, tx, impacts)
	if err != nil {
		return err
	}
	for n := range rest {
		rest[n].last = last[n]
	}
	// The locks are the undo's, so that none is missing; what is too much at a time is read later.
	for len(rest) > 0 {
		var keys []ledgerdb.DocumentKey
		for _, d := range rest {
			keys = append(keys, ledgerdb.DocumentKey{OrgID: org, ID: d.ID})
		}
		found, _, err := ledgerdb.LockDocuments(ctx, tx, keys)
		if err != nil {
			return err
		}
		var later []restored
		for n, f := range found {
			switch {
			case f.State == ledgerdb.DocumentLater:
				later = append(later, rest[n])
			case f.State != ledgerdb.DocumentHere || f.Document.AccountingReadyAt == nil:
			case f.Err != nil:
				rest[n].Fails = models.Errorf(models.CodeDocumentInvalid, "%v", f.Err)
			default:
				rest[n].Fails = trial.Refused(rest[n].last, f.Document)
			}
		}
		rest = later
	}
	return nil
}

// add counts what became of documents.
func (u *Undone) add(some []models.UndoneDocument) {
	for _, d := range some {
		switch d.Result {
		case models.UndoRemoved:
			u.Removed++
		case models.UndoReversed:
			u.Reversed++
		case models.UndoRestored:
			u.Restored++
			if d.Fails != nil {
				u.Failing = append(u.Failing, d)
			}
		default:
			u.Kept = append(u.Kept, d)
		}
	}
}

// read reads the import.
func (u *Undone) read(ctx context.Context, db DB, id int64, org string) error {
	list, err := ledgerdb.Imports(ctx, db, ledgerdb.ImportQuery{OrgID: org, ID: id, Limit: 1})
	if err == nil && (len(list) == 0 || id <= 0) {
		return store.Refuse(ErrImportNotFound, fmt.Sprintf("there is no import %d", id),
			"list the imports: `daybook import list`")
	}
	if err == nil {
		u.Import = list[0]
	}
	return err
}
