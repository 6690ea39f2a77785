package books

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// AgeingOptions says what an ageing is of. The zero value is that of today.
type AgeingOptions struct {
	// On is the day: what was posted until then counts; none: today, in UTC.
	On models.Date
}

// Ageing lists what is open on a day by counterparty, account and currency, in that order, and how
// long it has been due.
//
// Errors: ErrOrganizationNotFound.
func Ageing(ctx context.Context, db DB, org string, o AgeingOptions) ([]models.Aged, error) {
	if err := readable(ctx, db, org); err != nil {
		return nil, err
	}
	on := o.On
	if on.IsZero() {
		on = models.NewDate(time.Now().UTC().Date())
	}
	return ledgerdb.Ageing(ctx, db, org, on)
}

// CounterpartyOptions says what a counterparty's statement is of.
type CounterpartyOptions struct {
	// Counterparty is the name that its documents have; required. Documents without one that are in a
	// group with them are of it as well.
	Counterparty string
	// From and To are posting dates: what was posted before From makes up the first balance. None:
	// from the beginning, to the end.
	From, To models.Date
}

// CounterpartyStatement lists what a counterparty's documents have posted on accounts of
// receivables, payables and advances, by account and currency, in the order of posting dates.
//
// Errors: ErrInvalid, ErrOrganizationNotFound.
func CounterpartyStatement(ctx context.Context, db DB, org string, o CounterpartyOptions) ([]models.CounterpartyLine, error) {
	if o.Counterparty == "" || !store.ValidText(o.Counterparty) {
		return nil, store.Invalid("name the counterparty")
	}
	if !o.From.IsZero() && !o.To.IsZero() && o.To.Before(o.From) {
		return nil, store.Invalid("the last day %s is before the first, %s", o.To, o.From)
	}
	if err := readable(ctx, db, org); err != nil {
		return nil, err
	}
	return ledgerdb.CounterpartyStatement(ctx, db, org, o.Counterparty, o.From, o.To)
}
