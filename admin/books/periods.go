package books

import (
	"context"
	"crypto"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/days"
	"github.com/daybook-dev/daybook/models"
)

// Month is the period of a month, to add, close or open.
func Month(year int, month time.Month) models.Period { return days.OfMonth(year, month) }

// Year are the periods of the twelve months of a year.
func Year(year int) []models.Period {
	months := make([]models.Period, 0, 12)
	for m := time.January; m <= time.December; m++ {
		months = append(months, Month(year, m))
	}
	return months
}

// Periods lists an organization's periods, the oldest first. A date in no period is open, unless it
// lies before a closed period, or between the last closed one and the first open one after it.
// Errors: ErrOrganizationNotFound.
func Periods(ctx context.Context, db DB, org string) ([]models.Period, error) {
	if err := readable(ctx, db, org); err != nil {
		return nil, err
	}
	periods, err := ledgerdb.Periods(ctx, db, org)
	if periods == nil {
		periods = []models.Period{}
	}
	return periods, err
}

// AddPeriodsOptions says how to add periods. The zero value signs nothing.
type AddPeriodsOptions struct {
	// Key signs the closings of days in no period that the added ones lead to, as CloseOptions.Key
	// does; nil: they are not signed.
	Key crypto.Signer
}

// AddPeriods adds open periods, of which only StartsOn and EndsOn count, and returns them. One that
// is there with the same days stays as it is, open or closed, and is not returned: a second call
// changes nothing. One that overlaps another, ends before it starts, or has a date that
// models.Date.Check refuses, refuses all. Jobs that had failed with PERIOD_CLOSED are pending
// again: a day that was closed because it was in no period may be open now.
//
// The first open period after a closed one closes the days between them. Where documents with such
// a date failed or wait, it is refused with an *UnpostedError: add a period for those days first,
// or in the same call.
//
// Errors: ErrUnposted, ErrInvalid, ErrClosingKey, ErrOrganizationNotFound.
func AddPeriods(ctx context.Context, db DB, org string, periods []models.Period, o AddPeriodsOptions) (
	added []models.Period, err error,
) {
	if len(periods) == 0 {
		return nil, store.Refuse(ErrInvalid, "there is no period to add", "")
	}
	if _, err := models.ClosingPublicKey(o.Key); err != nil {
		return nil, err
	}
	err = change(ctx, db, org, false, func(tx pgx.Tx) (err error) {
		var closings []models.Closing
		unposted, err := shutOut(ctx, tx, org, func(rules ledgerdb.ComputedDates) (err error) {
			closings, err = noteClosings(ctx, tx, org, rules, func() (err error) {
				added, err = ledgerdb.AddPeriods(ctx, tx, org, periods)
				return err
			})
			return err
		})
		if err != nil {
			return err
		}
		if unposted.Failed+unposted.Waiting > 0 {
			return &UnpostedError{Period: added[0], Unposted: unposted}
		}
		for i := range closings {
			if err := signClosing(ctx, tx, &closings[i], o.Key); err != nil {
				return err
			}
		}
		returned := 0
		if len(added) > 0 {
			if returned, err = store.ReturnFailed(ctx, tx, org, models.CodePeriodClosed); err != nil {
				return err
			}
		}
		span := days.Name(periods[0].StartsOn, periods[len(periods)-1].EndsOn)
		return actions.Note(ctx, tx, org, span, map[string]any{"periods": len(added), "returned": returned})
	})
	return added, err
}

// PeriodChange is a period after its change.
type PeriodChange struct {
	models.Period
	// Changed is false when it was so already.
	Changed bool `json:"changed"`
	// Returned counts the failed jobs that are pending again.
	Returned int `json:"returned"`
	// Unposted is what the closing shut out, and how many documents Daybook knows no date of.
	Unposted *models.Unposted `json:"unposted,omitempty"`
	// Open is what was open when it was closed: ClosingList.
	Open []models.ClosingItem `json:"open,omitempty"`
	// Closing is the row of the chain of closings that was written; nil: nothing was changed.
	Closing *models.Closing `json:"closing,omitempty"`
}

// CloseOptions says how to close a period. The zero value refuses to shut out what is not posted.
type CloseOptions struct {
	// Force closes it although documents with a date that is closed are not posted.
	Force bool
	// Key signs the closing, unless it is nil; the database does not have it. It is an
	// ed25519.PrivateKey, or one in hardware or in a service, whose Public is an ed25519.PublicKey. It
	// signs before the commit: while it takes long, documents of the organization wait.
	Key crypto.Signer
}

// ClosePeriod closes the period that begins on p.StartsOn: nothing is posted into it until it is
// opened, nor on days before it that are in no open period. p.EndsOn, unless it is zero, must be
// its last day. The change waits for what is being posted for the organization.
// SetClosedPeriodPolicy says what happens to documents with such a date. A second call changes
// nothing.
//
// Where documents with such a date failed or wait, it is refused with an *UnpostedError, unless
// CloseOptions.Force is set. Dates that the rules compute count as well. Documents of which Daybook
// knows no date are counted in PeriodChange.Unposted, and do not refuse it.
//
// Errors: ErrUnposted, ErrPeriodNotFound, ErrInvalid, ErrClosingKey, ErrOrganizationNotFound.
func ClosePeriod(ctx context.Context, db DB, org string, p models.Period, o CloseOptions) (PeriodChange, error) {
	var c PeriodChange
	if _, err := models.ClosingPublicKey(o.Key); err != nil {
		return c, err
	}
	err := change(ctx, db, org, false, func(tx pgx.Tx) (err error) {
		if err := ledgerdb.LockPeriods(ctx, tx, org); err != nil {
			return err
		}
		unposted, err := shutOut(ctx, tx, org, func(rules ledgerdb.ComputedDates) error {
			return closePeriod(ctx, tx, org, p, rules, &c)
		})
		if err != nil {
			return err
		}
		shut := unposted.Failed + unposted.Waiting
		if shut > 0 && !o.Force {
			return &UnpostedError{Period: c.Period, Unposted: unposted}
		}
		if shut+unposted.UnknownDates > 0 {
			c.Unposted = &unposted
		}
		if err := signClosing(ctx, tx, c.Closing, o.Key); err != nil {
			return err
		}
		return actions.Note(ctx, tx, org, c.StartsOn.String(),
			map[string]any{"changed": c.Changed, "forced": o.Force, "unposted": shut, "closing": c.number()})
	})
	if err != nil {
		return PeriodChange{}, err
	}
	return c, nil
}

// closePeriod closes a period, and says what was open.
func closePeriod(ctx context.Context, tx pgx.Tx, org string, p models.Period, rules ledgerdb.ComputedDates,
	c *PeriodChange,
) (err error) {
	if c.Period, err = periodOf(ctx, tx, org, p); err != nil || c.State == models.PeriodClosed {
		return err
	}
	if err = noteClosing(ctx, tx, org, c, rules, func() (err error) {
		if err = ledgerdb.ClosePeriod(ctx, tx, org, p.StartsOn); err != nil {
			return err
		}
		c.Changed = true
		c.Period, err = periodOf(ctx, tx, org, p)
		return err
	}); err != nil {
		return err
	}
	if c.Closing == nil {
		return nil
	}
	return store.Wrap("read what was open", json.Unmarshal(c.Closing.List, &c.Open))
}

// OpenOptions says how to open a period. It has no field yet.
type OpenOptions struct{}

// OpenPeriod opens the period that begins on p.StartsOn, and p.EndsOn, unless it is zero, must be
// its last day. Jobs that had failed because it was closed are pending again. A second call changes
// nothing.
//
// Errors: ErrPeriodNotFound, ErrInvalid, ErrOrganizationNotFound.
func OpenPeriod(ctx context.Context, db DB, org string, p models.Period, _ OpenOptions) (PeriodChange, error) {
	var c PeriodChange
	err := change(ctx, db, org, false, func(tx pgx.Tx) error {
		if err := ledgerdb.LockPeriods(ctx, tx, org); err != nil {
			return err
		}
		err := noteClosing(ctx, tx, org, &c, ledgerdb.ComputedDates{}, func() error {
			done, err := ledgerdb.OpenPeriod(ctx, tx, org, p.StartsOn)
			if err != nil {
				return err
			}
			c.Changed, c.Returned = done.Changed, done.Returned
			c.Period, err = periodOf(ctx, tx, org, p)
			return err
		})
		if err != nil {
			return err
		}
		return actions.Note(ctx, tx, org, c.StartsOn.String(),
			map[string]any{"changed": c.Changed, "returned": c.Returned, "closing": c.number()})
	})
	return c, err
}

// periodOf reads the period that is meant.
func periodOf(ctx context.Context, tx pgx.Tx, org string, meant models.Period) (models.Period, error) {
	if meant.StartsOn.IsZero() {
		return models.Period{}, store.Invalid("the first day of the period is missing")
	}
	periods, err := ledgerdb.Periods(ctx, tx, org)
	if err != nil {
		return models.Period{}, err
	}
	for _, p := range periods {
		if p.StartsOn != meant.StartsOn {
			continue
		}
		if !meant.EndsOn.IsZero() && p.EndsOn != meant.EndsOn {
			return p, store.Refuse(ErrInvalid,
				fmt.Sprintf("the period that begins on %s ends on %s, not on %s", p.StartsOn, p.EndsOn, meant.EndsOn),
				"name it by its first day alone (--from)")
		}
		return p, nil
	}
	return models.Period{}, ledgerdb.NoPeriod(org, meant.StartsOn)
}

// ClosedPeriodPolicy reads what documents of an organization do whose posting date lies in a closed
// period. Errors: ErrOrganizationNotFound.
func ClosedPeriodPolicy(ctx context.Context, db DB, org string) (models.ClosedPeriodPolicy, error) {
	if err := readable(ctx, db, org); err != nil {
		return "", err
	}
	return ledgerdb.ClosedPeriodPolicy(ctx, db, org)
}

// SetClosedPeriodPolicy says what documents of an organization do whose posting date lies in a
// closed period: they fail with PERIOD_CLOSED until it is opened (models.PolicyFail, the default),
// or are posted on the first open day after it (models.PolicyFirstOpenDay). Jobs that had failed
// for it are pending again.
//
// Errors: ErrInvalid, ErrOrganizationNotFound.
func SetClosedPeriodPolicy(ctx context.Context, db DB, org string, policy models.ClosedPeriodPolicy) (Change, error) {
	c := Change{OrgID: org}
	err := change(ctx, db, org, false, func(tx pgx.Tx) error {
		done, err := ledgerdb.SetClosedPeriodPolicy(ctx, tx, org, policy)
		if err != nil {
			return err
		}
		c.Changed, c.Returned = done.Changed, done.Returned
		return actions.Note(ctx, tx, org, string(policy), map[string]any{"changed": c.Changed, "returned": c.Returned})
	})
	return c, err
}
