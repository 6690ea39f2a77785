package store

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/hosts"
)

// Address names a database for people: its servers and its name, and nothing else of its address.
func Address(config *pgx.ConnConfig) string {
	return strings.Join(hosts.Names(config), ",") + "/" + config.Database
}

// schemaVersionLimit bounds SchemaVersion: another session may have locked the table.
const schemaVersionLimit = 2 * time.Second

// SchemaVersion is the number of the newest migration that the database has.
func SchemaVersion(ctx context.Context, q Querier) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, schemaVersionLimit)
	defer cancel()
	const stmt = `SELECT max(version_id) FROM daybook.schema_migrations WHERE is_applied`
	return value[int64](ctx, q, "read the schema's version", stmt)
}
