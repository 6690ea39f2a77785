package books

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// ApplyOptions say how a rule set becomes the one that an organization posts by. The zero value
// activates it, whatever is active now.
type ApplyOptions struct {
	// Create is that of AccountsOptions.
	Create bool
	// StoreOnly stores the version and does not activate it: ActivateRules does.
	StoreOnly bool
	// Expected is the version that the caller saw active, 0 for none; with another one
	// ErrRulesChanged is returned. nil: any.
	Expected *int64
}

// ApplyRules stores a source, the YAML of a rule set, as an organization's next version and
// activates it. Jobs that had failed for the rules before are pending again; what is posted already
// stays as it is. A source that the active version or the newest one has already is not stored
// again, so that a program can apply its rules at each start.
//
// Errors: *posting.CompileError, ErrOrganizationNotFound, ErrRulesChanged.
func ApplyRules(ctx context.Context, db DB, org string, source []byte, o ApplyOptions) (Change, error) {
	rules, err := posting.Compile(source)
	if err != nil {
		return Change{}, err
	}
	c := Change{OrgID: org, Name: rules.Name()}
	err = change(ctx, db, org, o.Create, func(tx pgx.Tx) error {
		if err := expect(ctx, tx, org, o.Expected); err != nil {
			return err
		}
		stored, err := ledgerdb.PutRuleSet(ctx, tx, org, rules.Name(), string(source))
		if err != nil {
			return err
		}
		c.Version, c.Changed = stored.Version, stored.Added
		if !o.StoreOnly {
			if err := c.activate(ctx, tx); err != nil {
				return err
			}
		}
		return c.finish(ctx, tx, rules)
	})
	return c, err
}

// ActivateOptions say how a stored version becomes the one that an organization posts by. The zero
// value activates it, whatever is active now.
type ActivateOptions struct {
	// Expected is that of ApplyOptions.
	Expected *int64
}

// ActivateRules makes a stored version the one that an organization posts by. Jobs that had failed
// for the rules before are pending again; what is posted already stays as it is. What was stored by
// another version of the program need not be what this one understands: such a version is refused.
//
// Errors: ErrNoRuleSet, *posting.CompileError, ErrOrganizationNotFound, ErrRulesChanged.
func ActivateRules(ctx context.Context, db DB, org string, version int64, o ActivateOptions) (Change, error) {
	c := Change{OrgID: org, Version: version}
	err := change(ctx, db, org, false, func(tx pgx.Tx) error {
		set, err := ledgerdb.RuleSet(ctx, tx, org, version)
		if err != nil {
			return err
		}
		rules, err := posting.Compile([]byte(set.Source))
		if err != nil {
			return fmt.Errorf("version %d cannot be used: %w", version, err)
		}
		c.Name = rules.Name()
		if err := expect(ctx, tx, org, o.Expected); err != nil {
			return err
		}
		if err := c.activate(ctx, tx); err != nil {
			return err
		}
		return c.finish(ctx, tx, rules)
	})
	return c, err
}

// activate makes the change's version the one that the organization posts by.
func (c *Change) activate(ctx context.Context, tx pgx.Tx) error {
	done, err := ledgerdb.ActivateRuleSet(ctx, tx, c.OrgID, c.Version)
	c.Changed, c.Returned = done.Changed, done.Returned
	return err
}

// finish compares the rules with the chart, and writes the change into the log of actions, if the
// context has an action.
func (c *Change) finish(ctx context.Context, tx pgx.Tx, rules *posting.RuleSet) (err error) {
	if c.MissingAccounts, err = missingAccounts(ctx, tx, c.OrgID, rules); err != nil {
		return err
	}
	return actions.Note(ctx, tx, c.OrgID, "",
		map[string]any{"name": c.Name, "version": c.Version, "changed": c.Changed, "returned": c.Returned})
}

// expect compares the active version with the expected one, and keeps it from changing.
func expect(ctx context.Context, tx pgx.Tx, org string, expected *int64) error {
	if expected == nil {
		return nil
	}
	active, err := ledgerdb.LockActiveRuleSet(ctx, tx, org)
	if err != nil {
		return err
	}
	if active == nil {
		active = new(int64)
	}
	if *active != *expected {
		return fmt.Errorf("%w: version %d, not %d; preview the change again", ErrRulesChanged, *active, *expected)
	}
	return nil
}

// MissingAccounts returns the accounts that rules can post to and the organization's chart lacks:
// what `daybook rules check --org` says.
//
// Errors: ErrOrganizationNotFound.
func MissingAccounts(ctx context.Context, db DB, org string, rules *posting.RuleSet) ([]string, error) {
	if err := readable(ctx, db, org); err != nil {
		return nil, err
	}
	return missingAccounts(ctx, db, org, rules)
}

func missingAccounts(ctx context.Context, q store.Querier, org string, rules *posting.RuleSet) ([]string, error) {
	codes, err := ledgerdb.AccountCodes(ctx, q, org)
	return slices.DeleteFunc(rules.Accounts(), func(code string) bool { return slices.Contains(codes, code) }), err
}

// RuleSetVersion is a version of an organization's rules.
type RuleSetVersion struct {
	models.RuleSet
	// Active: the organization posts by it.
	Active bool `json:"active"`
}

// RuleSets lists the versions of an organization's rules without their sources, the newest first.
// Errors: ErrOrganizationNotFound.
func RuleSets(ctx context.Context, db DB, org string) ([]RuleSetVersion, error) {
	if err := readable(ctx, db, org); err != nil {
		return nil, err
	}
	sets, active, err := ledgerdb.RuleSets(ctx, db, org)
	versions := make([]RuleSetVersion, len(sets))
	for i, s := range sets {
		versions[i] = RuleSetVersion{RuleSet: s, Active: s.Version == active}
	}
	return versions, err
}

// RuleSet reads a version of an organization's rules, with its source; version 0: the one that is
// active.
//
// Errors: ErrNoRuleSet, ErrOrganizationNotFound.
func RuleSet(ctx context.Context, db DB, org string, version int64) (models.RuleSet, error) {
	if err := readable(ctx, db, org); err != nil {
		return models.RuleSet{}, err
	}
	if version == 0 {
		return ledgerdb.ActiveRuleSet(ctx, db, org)
	}
	return ledgerdb.RuleSet(ctx, db, org, version)
}
