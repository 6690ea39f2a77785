package ledgerdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// ErrPeriodNotFound: no period of the organization begins on that day; list the periods.
var ErrPeriodNotFound = failure.New(failure.PeriodNotFound, "no such period")

// NoPeriod is ErrPeriodNotFound, with what to do.
func NoPeriod(org string, startsOn models.Date) error {
	return store.Refuse(ErrPeriodNotFound, fmt.Sprintf("organization %s has no period that begins on %s", org, startsOn),
		"`daybook periods list` shows those that it has, `daybook periods add` makes one")
}

const bumpConfig = `UPDATE daybook.organizations SET config_version = config_version + 1, updated_at = clock_timestamp() WHERE id = $1`

// Periods reads an organization's periods, oldest first.
func Periods(ctx context.Context, q store.Querier, org string) ([]models.Period, error) {
	const stmt = `
SELECT starts_on, ends_on, state, closed_at, created_at, updated_at FROM daybook.periods WHERE org_id = $1 ORDER BY starts_on`
	list, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (models.Period, error) {
		p := models.Period{OrgID: org}
		err := row.Scan(&p.StartsOn, &p.EndsOn, &p.State, &p.ClosedAt, &p.CreatedAt, &p.UpdatedAt)
		return p, err
	}, stmt, org)
	return list, store.Wrap("read periods", err)
}

// AddPeriods adds open periods, and returns those that were not there with the same days. One that
// overlaps another is refused with ErrInvalid.
func AddPeriods(ctx context.Context, tx pgx.Tx, org string,
	periods []models.Period,
) (added []models.Period, err error) {
	const stmt = `
INSERT INTO daybook.periods (org_id, starts_on, ends_on)
SELECT $1, $2::date, $3::date
 WHERE NOT EXISTS (SELECT FROM daybook.periods WHERE org_id = $1 AND starts_on = $2::date AND ends_on = $3::date)`
	if err := changeConfiguration(ctx, tx, org); err != nil {
		return nil, err
	}
	for _, p := range periods {
		if err := checkPeriod(p); err != nil {
			return nil, err
		}
		tag, err := tx.Exec(ctx, stmt, org, p.StartsOn.Time(), p.EndsOn.Time())
		if store.SQLState(err) == "23505" {
			return nil, store.Invalid("organization %s has a period that begins on %s already; `daybook periods list` "+
				"shows it", org, p.StartsOn)
		}
		if err != nil {
			return nil, store.Wrap("add the period", err)
		}
		if tag.RowsAffected() > 0 {
			added = append(added, models.Period{OrgID: org, StartsOn: p.StartsOn, EndsOn: p.EndsOn, State: models.PeriodOpen})
		}
	}
	return added, nil
}

func checkPeriod(p models.Period) error {
	if p.StartsOn.IsZero() || p.EndsOn.IsZero() {
		return store.Invalid("a period needs its first and its last day")
	}
	if err := cmp.Or(p.StartsOn.Check(), p.EndsOn.Check()); err != nil {
		return store.Invalid("a period cannot have the %v", err)
	}
	if p.EndsOn.Before(p.StartsOn) {
		return store.Invalid("a period from %s to %s ends before it starts", p.StartsOn, p.EndsOn)
	}
	return nil
}

// LockPeriods locks the rows of the organization's periods, before the configuration. A change in
// plain SQL has a row before its trigger waits for the configuration, and takes its other rows after
// that, in any order: so changes by programs take all rows first, and wait for one with none in hand,
// lest the two wait for each other.
func LockPeriods(ctx context.Context, tx pgx.Tx, org string) error {
	const wait = `SELECT FROM daybook.periods WHERE org_id = $1 AND starts_on = $2 FOR NO KEY UPDATE`
	for {
		taken, err := lockFreePeriods(ctx, tx, org)
		if err != nil || taken == nil {
			return store.Wrap("lock the periods", err)
		}
		waiting, err := tx.Begin(ctx)
		if err != nil {
			return store.Wrap("wait for a period", err)
		}
		_, err = waiting.Exec(ctx, wait, org, *taken)
		if err = errors.Join(err, waiting.Rollback(ctx)); err != nil {
			return store.Wrap("wait for a period", err)
		}
	}
}

// lockFreePeriods locks the rows of all periods, or none, and returns the first day of one that
// another transaction has.
func lockFreePeriods(ctx context.Context, tx pgx.Tx, org string) (taken *time.Time, err error) {
	const stmt = `
WITH free AS MATERIALIZED (
    SELECT starts_on FROM daybook.periods WHERE org_id = $1 FOR NO KEY UPDATE SKIP LOCKED
)
SELECT min(p.starts_on) FROM daybook.periods p
 WHERE p.org_id = $1 AND p.starts_on <> ALL (coalesce((SELECT array_agg(f.starts_on) FROM free f), '{}'))`
	locking, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	err = locking.QueryRow(ctx, stmt, org).Scan(&taken)
	if err != nil || taken != nil {
		return taken, errors.Join(err, locking.Rollback(ctx))
	}
	return nil, locking.Commit(ctx)
}

// ClosePeriod closes the period that begins on a day: from its commit on nothing is posted into it.
// Chunks that are posting for the organization are waited for. A second call changes nothing.
func ClosePeriod(ctx context.Context, tx pgx.Tx, org string, startsOn models.Date) error {
	const stmt = `
UPDATE daybook.periods SET state = 'closed', closed_at = clock_timestamp(), updated_at = clock_timestamp()
 WHERE org_id = $1 AND starts_on = $2 AND state <> 'closed'`
	_, err := setPeriod(ctx, tx, stmt, org, startsOn)
	return err
}

// OpenPeriod opens the period that begins on a day, and returns the jobs that had failed with
// PERIOD_CLOSED to pending.
func OpenPeriod(ctx context.Context, tx pgx.Tx, org string, startsOn models.Date) (Activated, error) {
	const stmt = `
UPDATE daybook.periods SET state = 'open', closed_at = NULL, updated_at = clock_timestamp()
 WHERE org_id = $1 AND starts_on = $2 AND state <> 'open'`
	changed, err := setPeriod(ctx, tx, stmt, org, startsOn)
	if err != nil {
		return Activated{}, err
	}
	n, err := store.ReturnFailed(ctx, tx, org, models.CodePeriodClosed)
	return Activated{Changed: changed, Returned: n}, err
}

// ClosedPeriodPolicy reads what documents of the organization do whose posting date lies in a
// closed period.
func ClosedPeriodPolicy(ctx context.Context, q store.Querier,
	org string,
) (policy models.ClosedPeriodPolicy, err error) {
	const stmt = `SELECT coalesce((SELECT closed_period_policy::text FROM daybook.organizations WHERE id = $1), 'fail')`
	err = q.QueryRow(ctx, stmt, org).Scan(&policy)
	return policy, store.Wrap("read the policy", err)
}

// SetClosedPeriodPolicy says what documents of the organization do whose posting date lies in a
// closed period. Jobs that had failed for it return to pending.
func SetClosedPeriodPolicy(ctx context.Context, tx pgx.Tx, org string,
	policy models.ClosedPeriodPolicy,
) (Activated, error) {
	const stmt = `UPDATE daybook.organizations SET closed_period_policy = $2 WHERE id = $1 AND closed_period_policy <> $2`
	if policy != models.PolicyFail && policy != models.PolicyFirstOpenDay {
		return Activated{}, store.Invalid("policy %q: want %s or %s", policy, models.PolicyFail, models.PolicyFirstOpenDay)
	}
	if err := changeConfiguration(ctx, tx, org); err != nil {
		return Activated{}, err
	}
	tag, err := tx.Exec(ctx, stmt, org, string(policy))
	if err != nil {
		return Activated{}, store.Wrap("set the policy", err)
	}
	n, err := store.ReturnFailed(ctx, tx, org, models.CodePeriodClosed)
	return Activated{Changed: tag.RowsAffected() > 0, Returned: n}, err
}

// setPeriod makes a change of the period that begins on a day; false: it was so already.
func setPeriod(ctx context.Context, tx pgx.Tx, stmt, org string, startsOn models.Date) (changed bool, err error) {
	const find = `SELECT EXISTS (SELECT FROM daybook.periods WHERE org_id = $1 AND starts_on = $2)`
	if startsOn.IsZero() {
		return false, store.Invalid("the first day of the period is missing")
	}
	if err := changeConfiguration(ctx, tx, org); err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, stmt, org, startsOn.Time())
	if err != nil {
		return false, store.Wrap("change the period", err)
	}
	found := tag.RowsAffected() > 0
	if !found {
		if err := tx.QueryRow(ctx, find, org, startsOn.Time()).Scan(&found); err != nil {
			return false, store.Wrap("look for the period", err)
		}
	}
	if !found {
		return false, NoPeriod(org, startsOn)
	}
	return tag.RowsAffected() > 0, nil
}

// changeConfiguration makes the organization known, holds its configuration, and raises its
// version.
func changeConfiguration(ctx context.Context, tx pgx.Tx, org string) error {
	if err := store.PutOrganization(ctx, tx, org, ""); err != nil {
		return err
	}
	if err := lockConfiguration(ctx, tx, org); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, bumpConfig, org)
	return store.Wrap("write organization "+org, err)
}
