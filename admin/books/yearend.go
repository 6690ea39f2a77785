package books

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// CloseYearOptions says how to close a year.
type CloseYearOptions struct {
	// To is the account of equity that the year's result is moved to; required unless Undo is set.
	To string
	// Undo takes the close back.
	Undo bool
}

// CloseYear writes the journal that moves an organization's income and expense of a calendar year to
// an account of equity, each currency by itself: the document year-end:YEAR, dated on the last day. A
// worker posts it; the income statement leaves it out. A second call writes what has changed since,
// and changes nothing otherwise. With Undo the document is deleted, and a worker reverses what is
// posted of it.
//
// Errors: ErrInvalid (the account is not one of equity), ErrPeriodClosed (the last day is), ErrJournal (the
// organization's documents are in another source), ErrOrganizationNotFound.
func CloseYear(ctx context.Context, db DB, org string, year int, o CloseYearOptions) (models.YearEnd, error) {
	var done models.YearEnd
	if !store.ValidText(o.To) {
		return done, store.Refuse(ErrInvalid, "the account is no text", "")
	}
	err := change(ctx, db, org, false, func(tx pgx.Tx) (err error) {
		if err = ownDocuments(ctx, tx, org); err != nil {
			return err
		}
		if done, err = ledgerdb.CloseYear(ctx, tx, org, year, o.To, actions.By(ctx), o.Undo); err != nil {
			return err
		}
		return actions.Note(ctx, tx, org, done.DocumentID, map[string]any{"result": done.Result, "to": o.To})
	})
	return done, err
}
