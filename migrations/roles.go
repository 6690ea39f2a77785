package migrations

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store/direct"
	"github.com/daybook-dev/daybook/internal/store/hosts"
	"github.com/daybook-dev/daybook/models/locks"
)

// ErrNoAdminOption means that Daybook's roles are there, made by another role of the server, and
// that the role which is to change them may not.
var ErrNoAdminOption = failure.New(failure.RoleLacksRight,
	"Daybook's roles belong to the whole server, and another role made them, without the ADMIN OPTION for")

//go:embed roles/roles.sql
var rolesSQL string

// Roles makes the roles daybook_reader, daybook_operator, daybook_domain, daybook_worker and
// daybook_server, with what each may do in this database and a search path: people find Daybook's
// tables first, programs those of the application. They have no password: give each one. A second
// call does no harm. The address's role must own the schema and be allowed to create roles
// (ErrMayNotCreateRoles). It returns ErrNoAdminOption where another role made them and the server is
// PostgreSQL 16 or newer.
//
// It changes nothing where a newer build has migrated the schema: what this one does not know, it
// would take from the roles.
func Roles(ctx context.Context, databaseURL string) error {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return fmt.Errorf("database address: %w", err)
	}
	config.AfterConnect = direct.Require
	conn, err := hosts.Connect(ctx, config)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, ownSettings); err != nil {
		return fmt.Errorf("set the session: %w", err)
	}
	// Beside it none migrates and none grants.
	if err := takeLock(ctx, func(got *bool) error {
		return conn.QueryRow(ctx, tryLock, int64(locks.Migrations)).Scan(got)
	}); err != nil {
		return err
	}
	applied, err := appliedVersions(ctx, conn)
	if err != nil {
		return err
	}
	newest, err := Newest()
	if err != nil {
		return err
	}
	if len(applied) > 0 && applied[len(applied)-1] > newest {
		return nil
	}
	if _, err := conn.Exec(ctx, rolesSQL); err != nil { // one transaction
		return fmt.Errorf("make the roles: %w", explainRefusal(ctx, conn, err))
	}
	return nil
}

// explainRefusal returns ErrMayNotCreateRoles or ErrNoAdminOption, with what to do, in place of
// PostgreSQL's refusal to make or change roles. Where neither is the reason, it returns err.
func explainRefusal(ctx context.Context, db Querier, err error) error {
	const stmt = `
SELECT coalesce(string_agg(quote_ident(rolname), ', ' ORDER BY rolname), ''), quote_ident(current_user)
  FROM pg_roles
 WHERE current_setting('server_version_num')::int >= 160000 AND NOT pg_has_role(oid, 'MEMBER WITH ADMIN OPTION')
   AND (rolname IN ('daybook_reader', 'daybook_operator', 'daybook_domain', 'daybook_worker', 'daybook_server')
        OR rolname = 'worker_service_user' AND pg_has_role(to_regrole('daybook_worker')::oid, oid, 'MEMBER') IS NOT TRUE)`
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || refused.Code != "42501" {
		return err
	}
	var roles, user string
	if mayNot := explainMissing(ctx, db, refused); mayNot != nil {
		return mayNot
	}
	if asked := db.QueryRow(ctx, stmt).Scan(&roles, &user); asked != nil || roles == "" {
		return err
	}
	return fmt.Errorf("%w %s (%s). Run as a superuser, or as the role that made them: GRANT %s TO %s WITH ADMIN OPTION. "+
		"Then run the command again", ErrNoAdminOption, user, refused.Message, roles, user)
}
