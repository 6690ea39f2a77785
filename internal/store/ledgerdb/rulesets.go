package ledgerdb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// ErrNoRuleSet: the organization has no active rule set; apply one.
var ErrNoRuleSet = failure.New(failure.NoRuleSet, "no active rule set")

// StoredRuleSet is what storing a rule set led to.
type StoredRuleSet struct {
	// Version is the version that has the source.
	Version int64
	// Active reports whether the organization posts by it already.
	Active bool
	// Added is false when the version was there already.
	Added bool
}

// PutRuleSet stores source as the organization's next rule set version without activating it. A
// source that the active version or the newest one has already is not stored again. An organization
// that Daybook does not know yet is made known.
func PutRuleSet(ctx context.Context, tx pgx.Tx, org, name, source string) (StoredRuleSet, error) {
	// An active version comes before the newest one, where both have the source.
	const find = `
SELECT r.version, r.version IS NOT DISTINCT FROM o.active_rule_set
  FROM daybook.organizations o
  JOIN daybook.rule_sets r ON r.org_id = o.id
 WHERE o.id = $1 AND r.sha256 = $2
   AND (r.version = o.active_rule_set OR r.version = (SELECT max(version) FROM daybook.rule_sets WHERE org_id = $1))
 ORDER BY 2 DESC
 LIMIT 1`
	const insert = `
INSERT INTO daybook.rule_sets (org_id, version, name, source, sha256)
SELECT $1, coalesce(max(version), 0) + 1, $2, $3, $4 FROM daybook.rule_sets WHERE org_id = $1
RETURNING version`
	if err := store.PutOrganization(ctx, tx, org, ""); err != nil {
		return StoredRuleSet{}, err
	}
	if _, err := LockActiveRuleSet(ctx, tx, org); err != nil {
		return StoredRuleSet{}, err
	}
	sum := sha256.Sum256([]byte(source))
	hash := hex.EncodeToString(sum[:])
	var s StoredRuleSet
	err := tx.QueryRow(ctx, find, org, hash).Scan(&s.Version, &s.Active)
	if errors.Is(err, pgx.ErrNoRows) {
		s.Added = true
		err = tx.QueryRow(ctx, insert, org, name, source, hash).Scan(&s.Version)
	}
	return s, store.Wrap("store the rule set", err)
}

// ActivateRuleSet makes a stored version the one that the organization posts by, and returns the
// jobs that had failed for their rules or accounts to pending. A job that is failing under the
// version before fails before the activation or sees it: see UseConfigurations. The version that is
// active already changes nothing. Errors: ErrOrganizationNotFound, ErrNoRuleSet.
func ActivateRuleSet(ctx context.Context, tx pgx.Tx, org string, version int64) (Activated, error) {
	const exists = `SELECT EXISTS (SELECT 1 FROM daybook.rule_sets WHERE org_id = $1 AND version = $2)`
	const activate = `
UPDATE daybook.organizations SET active_rule_set = $2, config_version = config_version + 1, updated_at = clock_timestamp() WHERE id = $1`

	active, err := LockActiveRuleSet(ctx, tx, org)
	if err != nil {
		return Activated{}, err
	}
	if active != nil && *active == version {
		return Activated{Version: version}, nil
	}
	var found bool
	if err := tx.QueryRow(ctx, exists, org, version).Scan(&found); err != nil {
		return Activated{}, store.Wrap("read the rule set", err)
	}
	if !found {
		return Activated{}, NoRuleSet(org, version)
	}
	if _, err := tx.Exec(ctx, activate, org, version); err != nil {
		return Activated{}, store.Wrap("activate the rule set", err)
	}
	a := Activated{Version: version, Changed: true}
	a.Returned, err = store.ReturnFailed(ctx, tx, org, CodesOfRules()...)
	return a, err
}

// CodesOfRules are the errors whose jobs are pending again when a rule set is activated.
func CodesOfRules() []models.ErrorCode {
	return []models.ErrorCode{
		models.CodeNoMatchingRule, models.CodeAmbiguousRule, models.CodeUnknownAccount, models.CodeAmountNotRead,
		models.CodeAmountMissing, models.CodeTotalsDiffer,
	}
}

// ApplyRuleSet stores source as the organization's next rule set version, unless the active or the
// newest version has it already, and activates it as ActivateRuleSet does.
func ApplyRuleSet(ctx context.Context, tx pgx.Tx, org, name, source string) (Activated, error) {
	s, err := PutRuleSet(ctx, tx, org, name, source)
	if err != nil {
		return Activated{}, err
	}
	return ActivateRuleSet(ctx, tx, org, s.Version)
}

// LockActiveRuleSet returns the organization's active version, nil for none, and keeps it from
// changing until the transaction ends.
func LockActiveRuleSet(ctx context.Context, tx pgx.Tx, org string) (*int64, error) {
	if err := lockConfiguration(ctx, tx, org); err != nil {
		return nil, err
	}
	var version *int64
	err := tx.QueryRow(ctx, `SELECT active_rule_set FROM daybook.organizations WHERE id = $1`, org).Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, store.NoOrganization(org)
	}
	return version, store.Wrap("read the active rule set", err)
}

// NoRuleSet says that a version is missing, with the sentinel of there being none.
func NoRuleSet(org string, version int64) error {
	return store.Refuse(ErrNoRuleSet, fmt.Sprintf("organization %s has no rule set version %d", org, version),
		"`daybook rules list` shows those that it has")
}

// RuleSets reads the versions of an organization's rules without their sources, the newest first,
// and says which one is active; 0: none.
func RuleSets(ctx context.Context, q store.Querier, org string) (sets []models.RuleSet, active int64, err error) {
	const stmt = `SELECT version, name, '' AS source, sha256, created_at FROM daybook.rule_sets WHERE org_id = $1 ORDER BY version DESC`
	const read = `SELECT coalesce((SELECT active_rule_set FROM daybook.organizations WHERE id = $1), 0)`
	if err := q.QueryRow(ctx, read, org).Scan(&active); err != nil {
		return nil, 0, store.Wrap("read the active rule set", err)
	}
	sets, err = store.Collect(ctx, q, scanRuleSet(org), stmt, org)
	return sets, active, store.Wrap("list rule sets", err)
}

// RuleSet reads a version of an organization's rules; ErrNoRuleSet when there is none.
func RuleSet(ctx context.Context, q store.Querier, org string, version int64) (models.RuleSet, error) {
	const stmt = `SELECT version, name, source, sha256, created_at FROM daybook.rule_sets WHERE org_id = $1 AND version = $2`
	return oneRuleSet(ctx, q, org, "read the rule set", NoRuleSet(org, version), stmt, org, version)
}

// ActiveRuleSet reads the rule set that an organization posts by; ErrNoRuleSet when there is none.
func ActiveRuleSet(ctx context.Context, q store.Querier, org string) (models.RuleSet, error) {
	const stmt = `
SELECT r.version, r.name, r.source, r.sha256, r.created_at
  FROM daybook.organizations o
  JOIN daybook.rule_sets r ON r.org_id = o.id AND r.version = o.active_rule_set
 WHERE o.id = $1`
	return oneRuleSet(ctx, q, org, "read the active rule set", fmt.Errorf("%w: organization %s", ErrNoRuleSet, org), stmt,
		org)
}

// oneRuleSet reads the rule set that a statement finds, or returns missing.
func oneRuleSet(ctx context.Context, q store.Querier, org, doing string, missing error, stmt string,
	args ...any,
) (models.RuleSet, error) {
	sets, err := store.Collect(ctx, q, scanRuleSet(org), stmt, args...)
	if err != nil || len(sets) == 0 {
		return models.RuleSet{}, cmp.Or(store.Wrap(doing, err), missing)
	}
	return sets[0], nil
}

func scanRuleSet(org string) pgx.RowToFunc[models.RuleSet] {
	return func(row pgx.CollectableRow) (models.RuleSet, error) {
		s := models.RuleSet{OrgID: org}
		err := row.Scan(&s.Version, &s.Name, &s.Source, &s.SHA256, &s.CreatedAt)
		return s, err
	}
}
