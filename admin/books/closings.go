package books

import (
	"cmp"
	"context"
	"crypto"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// ClosingOptions say which closings to list. The zero value: all of them.
type ClosingOptions struct {
	// After is the number of a closing: those behind it are listed.
	After int
	// Limit is how many are listed at most; 0: all.
	Limit int
}

// Closings lists an organization's closings and openings of periods, the oldest first. Each has the
// hash of the impacts that it closed or opened, and of the one before it: `daybook audit` finds what
// was changed since.
//
// Errors: ErrOrganizationNotFound.
func Closings(ctx context.Context, db DB, org string, o ClosingOptions) ([]models.Closing, error) {
	if err := readable(ctx, db, org); err != nil {
		return nil, err
	}
	return ledgerdb.Closings(ctx, db, org, o.After, o.Limit)
}

// ClosingList is what is to be done before the period that begins on p.StartsOn is closed; of a
// closed period, what is open now. Nothing is changed. p.EndsOn, unless it is zero, must be its last
// day.
//
// Errors: ErrPeriodNotFound, ErrInvalid, ErrOrganizationNotFound.
func ClosingList(ctx context.Context, db DB, org string, p models.Period) (models.Period, []models.ClosingItem, error) {
	if err := check(db); err != nil {
		return models.Period{}, nil, err
	}
	var list []models.ClosingItem
	err := store.ReadSnapshot(ctx, db, func(tx pgx.Tx) (err error) {
		if err = known(ctx, tx, org); err != nil {
			return err
		}
		if p, err = periodOf(ctx, tx, org, p); err != nil {
			return err
		}
		rules, err := computedDates(ctx, tx, org)
		if err != nil {
			return err
		}
		list, err = ledgerdb.ClosingList(ctx, tx, org, p.StartsOn, rules)
		return err
	})
	return p, list, store.Wrap("read the closing list", err)
}

// AdjustmentOptions say which adjustments to list. The zero value: the first 1,000 impacts.
type AdjustmentOptions struct {
	// After is the id of an impact: those behind it are listed.
	After int64
	// Limit is how many impacts are listed at most. Default 1,000.
	Limit int
}

// Adjustments lists what was posted of the period that begins on p.StartsOn after it was first
// closed, in the order of impact ids: on a later day, because the policy for closed periods says so,
// or on the period's days while it was open again. There is a row for each impact and currency. next
// is what AdjustmentOptions.After is for the rest; 0: there is none.
//
// Errors: ErrPeriodNotFound, ErrInvalid, ErrOrganizationNotFound.
func Adjustments(ctx context.Context, db DB, org string, p models.Period, o AdjustmentOptions) (
	list []models.Adjustment, next int64, err error,
) {
	if err := check(db); err != nil {
		return nil, 0, err
	}
	most := cmp.Or(max(o.Limit, 0), 1000)
	err = store.ReadSnapshot(ctx, db, func(tx pgx.Tx) (err error) {
		if err = known(ctx, tx, org); err != nil {
			return err
		}
		if p, err = periodOf(ctx, tx, org, p); err != nil {
			return err
		}
		list, err = ledgerdb.Adjustments(ctx, tx, org, p.StartsOn, o.After, most+1)
		return err
	})
	impacts := 0
	for i := range list {
		if i == 0 || list[i].ImpactID != list[i-1].ImpactID {
			if impacts++; impacts > most {
				return list[:i], list[i-1].ImpactID, nil
			}
		}
	}
	return list, 0, err
}

// closer is who closes or opens; empty: the role of the database.
func closer(ctx context.Context) string {
	if !actions.Begun(ctx) {
		return ""
	}
	return actions.By(ctx)
}

// noteClosing makes a change of a period, and finds the row of the chain that the database wrote of
// it.
func noteClosing(ctx context.Context, tx pgx.Tx, org string, c *PeriodChange, rules ledgerdb.ComputedDates,
	f func() error,
) error {
	written, err := noteClosings(ctx, tx, org, rules, f)
	if err == nil && len(written) > 0 {
		c.Closing = &written[len(written)-1]
	}
	return err
}

// noteClosings makes a change of periods, and finds the rows of the chain that the database wrote of
// it, the oldest first.
func noteClosings(ctx context.Context, tx pgx.Tx, org string, rules ledgerdb.ComputedDates, f func() error) (
	[]models.Closing, error,
) {
	before, err := ledgerdb.LastClosing(ctx, tx, org)
	if err != nil {
		return nil, err
	}
	if err := ledgerdb.Closed(ctx, tx, closer(ctx), rules, f); err != nil {
		return nil, err
	}
	return ledgerdb.Closings(ctx, tx, org, before, 0)
}

// signClosing signs a row of the chain that closes; an opening needs no signature. Without a row or a
// key it does nothing.
func signClosing(ctx context.Context, tx pgx.Tx, c *models.Closing, key crypto.Signer) error {
	if c == nil || c.Action != models.ActionClosed {
		return nil
	}
	if err := c.Sign(key); err != nil || c.Signature == nil {
		return err
	}
	return ledgerdb.SignClosing(ctx, tx, c)
}

// number is the closing's; 0: nothing was changed.
func (c *PeriodChange) number() int {
	if c.Closing == nil {
		return 0
	}
	return c.Closing.Number
}
