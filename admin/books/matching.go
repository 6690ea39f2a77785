package books

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// MatchRules are the rules by which MatchOpenItems finds documents that belong together, in the
// order in which it applies them.
var MatchRules = []models.MatchedBy{models.MatchedByReference, models.MatchedByNumber, models.MatchedByAmount}

// MatchOptions says how to match open items. The zero value applies all rules.
type MatchOptions struct {
	// Rules are those to apply, in their order; none: MatchRules.
	Rules []models.MatchedBy
	// DryRun changes nothing, and says what would be matched.
	DryRun bool
}

// MatchOpenItems puts documents together whose open items belong together: one refers to the other;
// a payment's texts name the other's number, and the amount is equal; the counterparty and the
// amount are equal, and no other item fits. It returns them in the order of the rules. Nothing is
// posted.
//
// Errors: ErrInvalid, ErrOrganizationNotFound.
func MatchOpenItems(ctx context.Context, db DB, org string, o MatchOptions) (list []models.Match, err error) {
	rules := o.Rules
	if len(rules) == 0 {
		rules = MatchRules
	}
	for _, r := range rules {
		if !slices.Contains(MatchRules, r) {
			return nil, store.Invalid("there is no rule %q: the rules are reference, number and amount", r)
		}
	}
	err = change(ctx, db, org, false, func(tx pgx.Tx) error {
		if list, err = ledgerdb.MatchOpenItems(ctx, tx, org, rules, actions.By(ctx)); err != nil {
			return err
		}
		if o.DryRun {
			return errDryRun
		}
		return actions.Note(ctx, tx, org, "", map[string]any{"rules": rules, "matched": len(list)})
	})
	if o.DryRun && errors.Is(err, errDryRun) {
		err = nil
		for i := range list {
			list[i].GroupID = 0 // it was rolled back
		}
	}
	return list, err
}
