package books

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// ErrUnposted: the period cannot be closed without CloseOptions.Force, or not be added, because
// documents with a date that would be closed are not posted. The error is an *UnpostedError, which
// names them.
var ErrUnposted = failure.New(failure.UnpostedDocuments, "documents are not posted")

// UnpostedError is ErrUnposted, with the documents.
type UnpostedError struct {
	// Period is the one that was to be closed. If it is open, it is the first that was to be added:
	// the days in no period before it would be closed.
	Period models.Period
	models.Unposted
}

// Error names the documents, at most models.MaxUnpostedDocuments.
func (e *UnpostedError) Error() string {
	var b strings.Builder
	doing, remedy := "closing",
		"Have them posted first, or force the closing (--force); then they are handled by the policy for closed periods"
	if e.Period.State == models.PeriodOpen {
		doing, remedy = "adding",
			"It closes the days in no period before it. Add a period for those days first, or have the documents posted"
	}
	fmt.Fprintf(&b, "%s the period from %s to %s would shut out %s", doing, e.Period.StartsOn, e.Period.EndsOn,
		e.Unposted.String())
	for i, d := range e.Documents {
		fmt.Fprintf(&b, "%s %s of %s (%s", map[bool]string{true: ":", false: ","}[i == 0], d.DocumentID, d.Date, d.State)
		if d.Code != "" {
			fmt.Fprintf(&b, ", %s", d.Code)
		}
		b.WriteByte(')')
	}
	if more := e.Failed + e.Waiting - int64(len(e.Documents)); more > 0 {
		fmt.Fprintf(&b, ", and %d more", more)
	}
	b.WriteString(". " + remedy)
	return b.String()
}

// Unwrap makes it ErrUnposted.
func (e *UnpostedError) Unwrap() error { return ErrUnposted }

// shutOut is ledgerdb.ShutOut with the dates that the organization's rules compute.
func shutOut(ctx context.Context, tx pgx.Tx, org string, change func(ledgerdb.ComputedDates) error,
) (models.Unposted, error) {
	return ledgerdb.ShutOut(ctx, tx, org, func() (ledgerdb.ComputedDates, error) { return computedDates(ctx, tx, org) },
		change)
}

// computedDates are the dates that the rules compute for documents whose jobs failed or wait.
func computedDates(ctx context.Context, tx pgx.Tx, org string) (ledgerdb.ComputedDates, error) {
	var computed ledgerdb.ComputedDates
	trial, err := ledger.NewTrial(ctx, tx, org)
	if err != nil || !trial.ComputesDates() {
		return computed, err
	}
	ids, err := ledgerdb.UnfinishedDocuments(ctx, tx, org)
	if err != nil {
		return computed, err
	}
	err = ledgerdb.ReadDocuments(ctx, tx, org, ids, func(d *models.Document, invalid error) error {
		if invalid == nil { // else there is nothing to compute a date of
			if day, ok := trial.ComputedDate(d); ok {
				computed.IDs, computed.Days = append(computed.IDs, d.ID), append(computed.Days, day)
			}
		}
		return nil
	})
	return computed, err
}
