package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/failure"
)

// ErrOrganizationNotFound: the database has nothing of the organization: no configuration, no document and no job.
var ErrOrganizationNotFound = failure.New(failure.OrganizationNotFound, "no such organization")

// NoOrganization is ErrOrganizationNotFound for an organization.
func NoOrganization(id string) error {
	return fmt.Errorf("%w: %s; it is known from its first rules, account, document or job on", ErrOrganizationNotFound, id)
}

// PutOrganization makes an organization known, or renames it; an empty name leaves the name alone. It locks the row only
// when it changes it: a worker that holds a document may wait for its organization.
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
	return value[string](ctx, q, "read the organization's name", `SELECT coalesce((SELECT name FROM daybook.organizations WHERE id = $1), '')`, id)
}
