package migrations

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store/direct"
	"github.com/daybook-dev/daybook/models/locks"
)

//go:embed roles/roles.sql
var rolesSQL string

// Roles makes the roles daybook_reader, daybook_operator, daybook_domain, daybook_worker and
// daybook_server, with what each may do in this database and a search path: people find Daybook's
// tables first, programs those of the application. They have no password: give each one. A second
// call does no harm. The address's role must own the schema and be allowed to create roles.
func Roles(ctx context.Context, databaseURL string) error {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return fmt.Errorf("database address: %w", err)
	}
	config.MaxConns, config.AfterConnect = 1, direct.Require
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer pool.Close()
	// It is one transaction, beside which none migrates and none grants.
	if _, err := pool.Exec(ctx,
		fmt.Sprintf("%s;\nSELECT pg_advisory_xact_lock(%d);\n", ownSettings, locks.Migrations)+rolesSQL); err != nil {
		return fmt.Errorf("make the roles: %w", err)
	}
	return nil
}
