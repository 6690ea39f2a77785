package migrations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/daybook-dev/daybook/failure"
)

// ErrMayNotCreateRoles means that Daybook's roles are not there, or not as they should be, and that
// the role which is to make them may not.
var ErrMayNotCreateRoles = failure.New(failure.RoleLacksRight, "may not make Daybook's roles")

// explainMissing returns ErrMayNotCreateRoles, with what to do, where PostgreSQL refused to create or
// change a role because the session's role may do neither; otherwise nil.
func explainMissing(ctx context.Context, db Querier, refused *pgconn.PgError) error {
	const stmt = `SELECT quote_ident(rolname) FROM pg_roles WHERE rolname = current_user AND NOT (rolcreaterole OR rolsuper)`
	// The functions of PostgreSQL that refuse it: the words are in the server's language.
	if refused.Routine != "CreateRole" && refused.Routine != "AlterRoleSet" {
		return nil
	}
	var user string
	_ = db.QueryRow(ctx, stmt).Scan(&user) // no row: it may, and was refused for another reason
	if user == "" {
		return nil
	}
	return fmt.Errorf("role %s %w (%s). As a superuser, run `daybook migrate up --roles`, or ALTER ROLE %s CREATEROLE "+
		"and run it as %s again", user, ErrMayNotCreateRoles, refused.Message, user, user)
}
