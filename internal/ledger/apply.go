package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/posting"
)

// ErrRulesChanged: another rule set was activated since the caller looked; look again.
var ErrRulesChanged = failure.New(failure.RulesChanged, "the organization posts by other rules now")

// Change is what a change of an organization's configuration led to, for programs.
type Change struct {
	OrgID   string `json:"org_id"`
	Version int64  `json:"version,omitempty"`
	// Changed is false when everything was so already.
	Changed bool `json:"changed"`
	// Returned counts the failed jobs that are pending again.
	Returned int `json:"returned"`
	// MissingAccounts are those that the rules can post to and the chart lacks.
	MissingAccounts []string `json:"missing_accounts,omitempty"`
}

// RulesRequest says by which rules an organization is to post.
type RulesRequest struct {
	OrgID string
	// StoreOnly: the version is stored and not activated.
	StoreOnly bool
	// Expected is the version that the caller saw active, 0 for none; with another one ErrRulesChanged is returned. nil: any.
	Expected *int64
}

// ApplyRules stores a source that compiles as an organization's next version and activates it. Jobs that had failed for the rules before
// are pending again. The same source applied again changes nothing.
func ApplyRules(ctx context.Context, db store.Beginner, r RulesRequest, source []byte) (Change, *posting.RuleSet, error) {
	rules, err := posting.Compile(source)
	if err != nil {
		return Change{}, nil, err
	}
	c := Change{OrgID: r.OrgID}
	err = store.Begin(ctx, db, func(tx pgx.Tx) error {
		if err := r.check(ctx, tx); err != nil {
			return err
		}
		stored, err := ledgerdb.PutRuleSet(ctx, tx, r.OrgID, rules.Name(), string(source))
		if err != nil {
			return err
		}
		c.Version, c.Changed = stored.Version, stored.Added
		if !r.StoreOnly {
			if err := c.activate(ctx, tx); err != nil {
				return err
			}
		}
		if c.MissingAccounts, err = MissingAccounts(ctx, tx, r.OrgID, rules); err != nil {
			return err
		}
		return c.note(ctx, tx, rules)
	})
	return c, rules, err
}

// ActivateRules makes a stored version the one that an organization posts by. Jobs that had failed for the rules before are pending again.
// What was stored by another version of the program need not be what this one understands: such a version is refused.
func ActivateRules(ctx context.Context, db store.Beginner, r RulesRequest, set models.RuleSet) (Change, *posting.RuleSet, error) {
	rules, err := posting.Compile([]byte(set.Source))
	if err != nil {
		return Change{}, nil, fmt.Errorf("version %d cannot be used: %w", set.Version, err)
	}
	c := Change{OrgID: r.OrgID, Version: set.Version}
	err = store.Begin(ctx, db, func(tx pgx.Tx) error {
		if err := r.check(ctx, tx); err != nil {
			return err
		}
		if err := c.activate(ctx, tx); err != nil {
			return err
		}
		if c.MissingAccounts, err = MissingAccounts(ctx, tx, r.OrgID, rules); err != nil {
			return err
		}
		return c.note(ctx, tx, rules)
	})
	return c, rules, err
}

// activate makes the change's version the one that the organization posts by.
func (c *Change) activate(ctx context.Context, tx pgx.Tx) error {
	done, err := ledgerdb.ActivateRuleSet(ctx, tx, c.OrgID, c.Version)
	c.Changed, c.Returned = done.Changed, done.Returned
	return err
}

// note writes the change into the log of actions, if the context has an action: in the transaction of the change.
func (c Change) note(ctx context.Context, tx pgx.Tx, rules *posting.RuleSet) error {
	return actions.Note(ctx, tx, c.OrgID, "", map[string]any{"name": rules.Name(), "version": c.Version, "changed": c.Changed, "returned": c.Returned})
}

// check compares the active version with the expected one, and keeps it from changing.
func (r RulesRequest) check(ctx context.Context, tx pgx.Tx) error {
	if r.Expected == nil {
		return nil
	}
	active, err := ledgerdb.LockActiveRuleSet(ctx, tx, r.OrgID)
	if err != nil {
		return err
	}
	if active == nil {
		active = new(int64)
	}
	if *active != *r.Expected {
		return fmt.Errorf("%w: version %d, not %d; preview the change again", ErrRulesChanged, *active, *r.Expected)
	}
	return nil
}

// MissingAccounts returns the accounts that the rules can post to and the organization's chart lacks.
func MissingAccounts(ctx context.Context, q store.Querier, org string, rules *posting.RuleSet) ([]string, error) {
	codes, err := ledgerdb.AccountCodes(ctx, q, org)
	return slices.DeleteFunc(rules.Accounts(), func(code string) bool { return slices.Contains(codes, code) }), err
}
