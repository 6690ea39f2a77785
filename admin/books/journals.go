package books

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// Journal is a journal entry as a person writes it.
type Journal struct {
	// ID is that of its document, "journal:" is put before one that does not begin so. The same id
	// again is the same journal. Empty: it gets an id of its own.
	ID string
	// Date is the day on which it is posted.
	Date models.Date
	// Number and Counterparty are what the document has under these names; both may be empty.
	Number, Counterparty string
	// Currency is that of the entries that name none; empty: that of the first entry, or else the
	// organization's own.
	Currency string
	// Dimensions are those of all entries.
	Dimensions models.Dimensions
	// Reason is why it is posted, By who wrote it. Both are required.
	Reason, By string
	// Entries balance in each currency.
	Entries []models.JournalEntry
}

// JournalChange is what PutJournal or DeleteJournal led to.
type JournalChange struct {
	OrgID string
	// DocumentID is the journal's, Version the one that is to be posted or taken back.
	DocumentID string
	Version    int64
	// Changed is false when everything was so already.
	Changed bool
	// JobID is the job that posts it, or takes it back; empty: nothing was changed.
	JobID string
	// PostingDate is the day on which it will be posted, as books stand: the first open day after its
	// date, if that is closed and the organization's policy says so. Zero for a deletion.
	PostingDate models.Date
}

// PutJournal writes a journal as a document, which a worker posts as it is: no rule is asked. Under
// an id that is known it replaces the journal there: what was posted of it is reversed, and the new
// one posted. What could not be posted is refused and nothing written: the error wraps a
// *models.JobError that says why, such as UNBALANCED, UNKNOWN_ACCOUNT or PERIOD_CLOSED.
//
// Errors: ErrJournal, ErrPeriodClosed, ErrInvalid, ErrOrganizationNotFound.
func PutJournal(ctx context.Context, db DB, org string, j Journal) (JournalChange, error) {
	c := JournalChange{OrgID: org}
	err := change(ctx, db, org, false, func(tx pgx.Tx) error {
		d, err := newJournal(ctx, tx, org, &j)
		if err != nil {
			return err
		}
		c.DocumentID = d.ID
		switch known, err := ledgerdb.LockJournal(ctx, tx, org, d.ID); {
		case err != nil:
			return err
		case known.Found && !known.Journal:
			return store.Refuse(ErrJournal, "document "+d.ID+" is no journal", "give another id, or none")
		case known.Deleted:
			return store.Refuse(ErrJournal, "journal "+d.ID+" was deleted", "give another id, or none")
		}
		// No period is closed between the look at it and the commit.
		if err = ledgerdb.UseConfiguration(ctx, tx, org); err != nil {
			return err
		}
		if c.PostingDate, err = dayOf(ctx, tx, d); err != nil {
			return err
		}
		text, err := json.Marshal(d.Content)
		if err != nil {
			return err
		}
		puts, err := ledgerdb.PutDocuments(ctx, tx, []ledgerdb.NewDocument{{Document: d, Text: string(text)}}, true)
		if err != nil {
			return err
		}
		if puts[0].Result != ledgerdb.PutUnchanged {
			c.Changed, c.Version = true, puts[0].Version
			r, err := store.EnqueueAccountingJob(ctx, tx, org, d.ID, c.Version, nil, models.PriorityNormal)
			if err != nil {
				return err
			}
			c.JobID = r.JobID
		}
		return actions.Note(ctx, tx, org, d.ID, map[string]any{"changed": c.Changed, "entries": len(j.Entries), "reason": j.Reason})
	})
	return c, err
}

// CheckJournal returns the day on which a journal would be posted, and writes nothing.
//
// Errors: those of PutJournal.
func CheckJournal(ctx context.Context, db DB, org string, j Journal) (day models.Date, err error) {
	err = change(ctx, db, org, false, func(tx pgx.Tx) error {
		d, err := newJournal(ctx, tx, org, &j)
		if err == nil {
			day, err = dayOf(ctx, tx, d)
		}
		return err
	})
	return day, err
}

// ownDocuments refuses an organization whose documents are in another source than daybook.documents:
// what is written there would be posted by no worker.
func ownDocuments(ctx context.Context, tx pgx.Tx, org string) error {
	needs, err := store.NeedsOf(ctx, tx, []string{org})
	if err != nil {
		return err
	}
	if source := needs[org].Source; source != store.SourceDaybook {
		return store.Refuse(ErrJournal, "the organization's documents are those of the source "+source,
			"write the journal as a document there")
	}
	return nil
}

// newJournal makes the document of a journal, with an id.
func newJournal(ctx context.Context, tx pgx.Tx, org string, j *Journal) (*models.Document, error) {
	if err := ownDocuments(ctx, tx, org); err != nil {
		return nil, err
	}
	if j.Currency == "" && len(j.Entries) > 0 && j.Entries[0].Currency == "" {
		var err error
		if j.Currency, _, err = ledgerdb.OwnCurrency(ctx, tx, org); err != nil {
			return nil, err
		}
	}
	d, err := j.document(org)
	if err == nil && d.ID == "" {
		d.ID, err = ledgerdb.NewJournalID(ctx, tx)
	}
	return d, err
}

// dayOf is the day on which the document of a journal would be posted. One that could not be posted
// is refused with ErrPeriodClosed or ErrJournal.
func dayOf(ctx context.Context, tx pgx.Tx, d *models.Document) (models.Date, error) {
	trial, err := ledger.NewTrial(ctx, tx, d.OrgID)
	if err != nil {
		return models.Date{}, err
	}
	_, day, refused := trial.Evaluate(d)
	switch {
	case refused == nil:
		return day, nil
	case refused.Code == models.CodePeriodClosed:
		return day, fmt.Errorf("%w: %w", ErrPeriodClosed, refused)
	}
	return day, fmt.Errorf("%w: %w", ErrJournal, refused)
}

// document is the journal as a document.
func (j *Journal) document(org string) (*models.Document, error) {
	d := &models.Document{
		OrgID: org, ID: j.ID, Type: models.DocumentJournal, Direction: models.DirectionOut, IssueDate: j.Date,
		Currency: j.Currency,
		Content: models.Content{
			Number: j.Number, Counterparty: j.Counterparty, Dimensions: j.Dimensions, Source: "journal",
			Journal: &models.Journal{Reason: j.Reason, By: j.By, Entries: j.Entries},
		},
	}
	if d.ID != "" && !strings.HasPrefix(d.ID, ledgerdb.JournalPrefix) {
		d.ID = ledgerdb.JournalPrefix + d.ID
	}
	if d.Currency == "" && len(j.Entries) > 0 {
		d.Currency = j.Entries[0].Currency
	}
	texts := []string{d.ID, j.Number, j.Counterparty, j.Reason, j.By}
	for _, e := range j.Entries {
		texts = append(texts, e.Account, e.Note)
	}
	for _, text := range texts {
		if !store.ValidText(text) {
			return nil, store.Invalid("%.40q is not UTF-8, or has the character NUL", text)
		}
	}
	switch {
	case len(d.ID) > maxJournalID:
		return nil, store.Invalid("the id has more than %d bytes", maxJournalID)
	case j.Date.IsZero():
		return nil, store.Invalid("the journal has no date")
	}
	if err := models.CheckCurrency(d.Currency, j.Date); err != nil {
		return nil, store.Invalid("currency: %v", err)
	}
	return d, nil
}

// maxJournalID is how long a document's id may be, in bytes.
const maxJournalID = 255

// DeleteJournal deletes a journal: a worker reverses what is posted of it. One that is deleted
// already stays so. The id may be that of any document with a journal, also of one that was
// imported. That of a year-end close is refused while its day is closed, as by CloseYear.
//
// Errors: ErrJournalNotFound, ErrPeriodClosed, ErrOrganizationNotFound.
func DeleteJournal(ctx context.Context, db DB, org, id string) (JournalChange, error) {
	c := JournalChange{OrgID: org, DocumentID: id}
	err := change(ctx, db, org, false, func(tx pgx.Tx) error {
		known, err := ledgerdb.LockJournal(ctx, tx, org, id)
		if err != nil {
			return err
		}
		if !known.Found || !known.Journal {
			return store.Refuse(ErrJournalNotFound, fmt.Sprintf("organization %s has no journal %s", org, id),
				"list the journals: `daybook journal list`")
		}
		if !known.Deleted {
			if err := yearIsOpen(ctx, tx, org, known); err != nil {
				return err
			}
			m, err := store.MarkDocumentDeleted(ctx, tx, org, id)
			if err != nil {
				return err
			}
			c.Changed, c.Version, c.JobID = true, m.Version, m.JobID
		}
		return actions.Note(ctx, tx, org, id, map[string]any{"changed": c.Changed})
	})
	return c, err
}

// yearIsOpen refuses a year-end close whose day is closed: it would be reversed on a later day, in
// another year.
func yearIsOpen(ctx context.Context, tx pgx.Tx, org string, j ledgerdb.KnownJournal) error {
	if !j.YearEnd {
		return nil
	}
	if err := ledgerdb.UseConfiguration(ctx, tx, org); err != nil {
		return err
	}
	closed, err := ledgerdb.ClosedSpans(ctx, tx, []string{org})
	if err != nil {
		return err
	}
	if ledgerdb.ClosedOn(closed[org], j.Date) == nil {
		return nil
	}
	return store.Refuse(ErrPeriodClosed, fmt.Sprintf("the %s, on which the year-end close stands, is closed", j.Date),
		"open its period, delete it, have it posted, and close the period again")
}

// JournalsOptions say which journals to list; the zero value lists the latest 100.
type JournalsOptions struct {
	// Before leaves out the journals from this id on; empty: none.
	Before string
	// Limit is how many are listed at most; default 100.
	Limit int
}

// Journals lists the journals that PutJournal has written, deleted ones too, the latest first: in the
// reverse order of their ids.
//
// Errors: ErrInvalid, ErrOrganizationNotFound.
func Journals(ctx context.Context, db DB, org string, o JournalsOptions) ([]models.Document, error) {
	if err := readable(ctx, db, org); err != nil {
		return nil, err
	}
	if o.Limit < 0 || !store.ValidText(o.Before) {
		return nil, store.Refuse(ErrInvalid, "the limit is negative, or the id no text", "")
	}
	return ledgerdb.Journals(ctx, db, ledgerdb.JournalQuery{OrgID: org, Before: o.Before, Limit: o.Limit})
}
