package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/failure"
)

// ErrOrganizationNotFound: the database has nothing of the organization: no configuration, no
// document and no job.
var ErrOrganizationNotFound = failure.New(failure.OrganizationNotFound, "no such organization")

// NoOrganization is ErrOrganizationNotFound for an organization.
func NoOrganization(id string) error {
	return fmt.Errorf("%w: %s; it is known from its first rules, account, document or job on", ErrOrganizationNotFound,
		id)
}

// PutOrganization makes an organization known, or renames it; an empty name leaves the name alone.
// It locks the row only when it changes it: a worker that holds a document may wait for its
// organization.
func PutOrganization(ctx context.Context, tx pgx.Tx, id, name string) error {
	const rename = `UPDATE daybook.organizations SET name = $2, updated_at = clock_timestamp() WHERE id = $1 AND $2 <> '' AND name <> $2`
	if _, err := addOrganization(ctx, tx, id, name); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, rename, id, name)
	return Wrap("write organization "+id, err)
}

// addOrganization makes an organization known, and reports whether it was not.
func addOrganization(ctx context.Context, tx pgx.Tx, id, name string) (bool, error) {
	const stmt = `INSERT INTO daybook.organizations (id, name) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`
	tag, err := tx.Exec(ctx, stmt, id, name)
	return tag.RowsAffected() > 0, Wrap("write organization "+id, err)
}

// OrganizationName reads what an organization is called; empty: it has no name, or is not known.
func OrganizationName(ctx context.Context, q Querier, id string) (string, error) {
	return value[string](ctx, q, "read the organization's name",
		`SELECT coalesce((SELECT name FROM daybook.organizations WHERE id = $1), '')`, id)
}

// NeedsSet is the result of a change of an organization's needs, or of the defaults.
type NeedsSet struct {
	// Changed is false when the request changed nothing.
	Changed bool `json:"changed"`
	// Returned counts the jobs that are pending again: they had failed because the source before did
	// not know their documents.
	Returned int `json:"returned"`
}

// SetSource puts on record from which source an organization's documents are read; empty: the
// default.
func SetSource(ctx context.Context, q Querier, org, source string) (NeedsSet, error) {
	return setNeeds(ctx, q, "set the source of organization "+org,
		`SELECT changed, returned FROM daybook.set_source($1, nullif($2, ''))`, org, source)
}

// SetHooks puts on record which hooks are called with an organization's postings; nil: the default,
// empty: none.
func SetHooks(ctx context.Context, q Querier, org string, hooks []string) (NeedsSet, error) {
	return setNeeds(ctx, q, "set the hooks of organization "+org, `SELECT changed, 0 FROM daybook.set_hooks($1, $2)`, org,
		hooks)
}

// SetDefaultSource puts on record from which source the documents of organizations that name none
// are read.
func SetDefaultSource(ctx context.Context, q Querier, source string) (NeedsSet, error) {
	return setNeeds(ctx, q, "set the default source", `SELECT changed, returned FROM daybook.set_default_source($1)`,
		source)
}

// SetDefaultHooks puts on record which hooks are called with the postings of organizations that
// name none.
func SetDefaultHooks(ctx context.Context, q Querier, hooks []string) (NeedsSet, error) {
	return setNeeds(ctx, q, "set the default hooks", `SELECT changed, 0 FROM daybook.set_default_hooks($1)`, hooks)
}

func setNeeds(ctx context.Context, q Querier, doing, stmt string, values ...any) (NeedsSet, error) {
	var s NeedsSet
	err := q.QueryRow(ctx, stmt, values...).Scan(&s.Changed, &s.Returned)
	return s, Wrap(doing, err)
}

// Limits are the pause, the cap and the rate of an organization.
type Limits struct {
	// Changed is false when the request changed nothing.
	Changed bool `json:"changed"`
	// Added says that Daybook did not know the organization before.
	Added bool `json:"added,omitempty"`
	// PausedAt is since when none of its jobs is leased; nil: it is not paused.
	PausedAt *time.Time `json:"paused_at,omitempty"`
	// MaxInFlight is how many of its jobs may be leased at a time; nil: any number.
	MaxInFlight *int `json:"max_in_flight,omitempty"`
	// Rate is how many attempts of its background jobs may begin in RateSeconds; nil: any number.
	Rate        *int     `json:"rate,omitempty"`
	RateSeconds *float64 `json:"rate_seconds,omitempty"`
}

// PauseOrganization ends the leasing of an organization's jobs: no lease that begins after its
// commit takes one. What is leased already is finished. Pausing twice keeps the time of the first.
//
// Like ResumeOrganization, CapOrganization and RateOrganization it makes an organization known that Daybook does not
// know, which may have jobs all the same; it waits for no chunk, only for a transaction that is
// changing the same row; and it returns ErrInvalid for an id that is empty or longer than 255
// bytes.
func PauseOrganization(ctx context.Context, tx pgx.Tx, org string) (Limits, error) {
	const stmt = `
UPDATE daybook.organizations SET paused_at = clock_timestamp(), updated_at = clock_timestamp() WHERE id = $1 AND paused_at IS NULL`
	return changeLimits(ctx, tx, org, stmt, org)
}

// ResumeOrganization ends a pause. Waiting workers look for the organization's due jobs at once.
func ResumeOrganization(ctx context.Context, tx pgx.Tx, org string) (Limits, error) {
	const stmt = `
UPDATE daybook.organizations SET paused_at = NULL, updated_at = clock_timestamp() WHERE id = $1 AND paused_at IS NOT NULL`
	f, err := changeLimits(ctx, tx, org, stmt, org)
	if err != nil || !f.Changed {
		return f, err
	}
	return f, wakeQueues(ctx, tx)
}

// CapOrganization bounds how many of an organization's jobs are leased at a time, over all workers:
// after its commit no lease takes more than is left of the cap. Jobs that were leased while there
// was no cap do not count. Jobs above a lowered cap are finished. nil removes the cap. A cap below
// 1 is refused with ErrInvalid: pause the organization instead.
func CapOrganization(ctx context.Context, tx pgx.Tx, org string, most *int) (Limits, error) {
	const stmt = `
UPDATE daybook.organizations SET max_in_flight = $2, updated_at = clock_timestamp() WHERE id = $1 AND max_in_flight IS DISTINCT FROM $2`
	if most != nil && (*most < 1 || *most > math.MaxInt32) {
		return Limits{}, Invalid("a cap of %d jobs: want 1 to %d, or pause the organization", *most, math.MaxInt32)
	}
	f, err := changeLimits(ctx, tx, org, stmt, org, most)
	if err != nil || !f.Changed {
		return f, err
	}
	// A lowered cap wakes for nothing, once.
	return f, wakeQueues(ctx, tx)
}

// RateOrganization bounds how many attempts of an organization's background jobs begin, over all
// workers: so many in so many seconds, 0.001 to 31536000. At once may begin what it allows in 50 ms,
// at least one. An attempt that is given back unworked counts. rate 0
// removes the rate, and seconds 0 mean 1. Anything else is refused with ErrInvalid.
func RateOrganization(ctx context.Context, tx pgx.Tx, org string, rate int, seconds float64) (Limits, error) {
	const stmt = `
UPDATE daybook.organizations SET rate = nullif($2::integer, 0), rate_seconds = nullif($3::float8, 0), updated_at = clock_timestamp()
 WHERE id = $1 AND (rate, rate_seconds) IS DISTINCT FROM (nullif($2::integer, 0), nullif($3::float8, 0))`
	if rate > 0 {
		seconds = cmp.Or(seconds, 1)
	}
	if rate < 0 || rate > math.MaxInt32 || rate > 0 && !(seconds >= 0.001 && seconds <= 31536000) || rate == 0 && seconds != 0 {
		return Limits{}, Invalid("a rate of %d attempts in %v seconds: want 1 to %d in 0.001 to 31536000 seconds, or 0 for "+
			"none", rate, seconds, math.MaxInt32)
	}
	f, err := changeLimits(ctx, tx, org, stmt, org, rate, seconds)
	if err != nil || !f.Changed {
		return f, err
	}
	return f, wakeQueues(ctx, tx)
}

// changeLimits makes the organization known, runs the statement, and reads what came of it.
func changeLimits(ctx context.Context, tx pgx.Tx, org, stmt string, args ...any) (Limits, error) {
	const read = `SELECT paused_at, max_in_flight, rate, rate_seconds FROM daybook.organizations WHERE id = $1`
	var f Limits
	if org == "" || len(org) > maxIDBytes {
		return f, Invalid("an organization's id must have 1 to %d bytes", maxIDBytes)
	}
	var err error
	if f.Added, err = addOrganization(ctx, tx, org, ""); err != nil {
		return f, err
	}
	tag, err := tx.Exec(ctx, stmt, args...)
	if err != nil {
		return f, Wrap("write organization "+org, err)
	}
	f.Changed = tag.RowsAffected() > 0
	err = tx.QueryRow(ctx, read, org).Scan(&f.PausedAt, &f.MaxInFlight, &f.Rate, &f.RateSeconds)
	return f, Wrap("read organization "+org, err)
}

// maxIDBytes is the limit of the schema's checks.
const maxIDBytes = 255

// PausedOrganization is an organization whose jobs are not leased.
type PausedOrganization struct {
	OrgID    string    `json:"org_id"`
	PausedAt time.Time `json:"paused_at"`
}

// PausedOrganizations lists the paused ones in the order of their ids: all, or the one with that
// id, or none.
func PausedOrganizations(ctx context.Context, q Querier, org string) ([]PausedOrganization, error) {
	const stmt = `
SELECT id, paused_at FROM daybook.organizations WHERE paused_at IS NOT NULL AND ($1 = '' OR id = $1) ORDER BY id`
	list, err := Collect(ctx, q, pgx.RowToStructByPos[PausedOrganization], stmt, org)
	return list, Wrap("list paused organizations", err)
}
