package store

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
)

// Limits are the pause and the cap of an organization.
type Limits struct {
	// Changed is false when the request changed nothing.
	Changed bool `json:"changed"`
	// Added says that Daybook did not know the organization before.
	Added bool `json:"added,omitempty"`
	// PausedAt is since when none of its jobs is leased; nil: it is not paused.
	PausedAt *time.Time `json:"paused_at,omitempty"`
	// MaxInFlight is how many of its jobs may be leased at a time; nil: any number.
	MaxInFlight *int `json:"max_in_flight,omitempty"`
}

// PauseOrganization ends the leasing of an organization's jobs: no lease that begins after its commit takes one. What is leased
// already is finished. Pausing twice keeps the time of the first.
//
// Like ResumeOrganization and CapOrganization it makes an organization known that Daybook does not know, which may have jobs
// all the same; it waits for no chunk, only for a transaction that is changing the same row; and it returns ErrInvalid for an id
// that is empty or longer than 255 bytes.
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

// CapOrganization bounds how many of an organization's jobs are leased at a time, over all workers: after its commit no
// lease takes more than is left of the cap. Jobs that were leased while there was no cap do not count. Jobs above a lowered cap
// are finished. nil removes the cap. A cap below 1 is refused with ErrInvalid: pause the organization instead.
func CapOrganization(ctx context.Context, tx pgx.Tx, org string, most *int) (Limits, error) {
	const stmt = `
UPDATE daybook.organizations SET max_in_flight = $2, updated_at = clock_timestamp() WHERE id = $1 AND max_in_flight IS DISTINCT FROM $2`
	if most != nil && (*most < 1 || *most > math.MaxInt32) {
		return Limits{}, fmt.Errorf("a cap of %d jobs: want 1 to %d, or pause the organization: %w", *most, math.MaxInt32, ErrInvalid)
	}
	f, err := changeLimits(ctx, tx, org, stmt, org, most)
	if err != nil || !f.Changed {
		return f, err
	}
	// A lowered cap wakes for nothing, once.
	return f, wakeQueues(ctx, tx)
}

// changeLimits makes the organization known, runs the statement, and reads what came of it.
func changeLimits(ctx context.Context, tx pgx.Tx, org, stmt string, args ...any) (Limits, error) {
	const read = `SELECT paused_at, max_in_flight FROM daybook.organizations WHERE id = $1`
	var f Limits
	if org == "" || len(org) > maxIDBytes {
		return f, fmt.Errorf("an organization's id must have 1 to %d bytes: %w", maxIDBytes, ErrInvalid)
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
	err = tx.QueryRow(ctx, read, org).Scan(&f.PausedAt, &f.MaxInFlight)
	return f, Wrap("read organization "+org, err)
}

// maxIDBytes is the limit of the schema's checks.
const maxIDBytes = 255

// PausedOrganization is an organization whose jobs are not leased.
type PausedOrganization struct {
	OrgID    string    `json:"org_id"`
	PausedAt time.Time `json:"paused_at"`
}

// PausedOrganizations lists the paused ones in the order of their ids: all, or the one with that id, or none.
func PausedOrganizations(ctx context.Context, q Querier, org string) ([]PausedOrganization, error) {
	const stmt = `
SELECT id, paused_at FROM daybook.organizations WHERE paused_at IS NOT NULL AND ($1 = '' OR id = $1) ORDER BY id`
	list, err := Collect(ctx, q, pgx.RowToStructByPos[PausedOrganization], stmt, org)
	return list, Wrap("list paused organizations", err)
}
