package store

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Address names a database for people: its servers and its name, and nothing else of its address.
func Address(config *pgx.ConnConfig) string {
	at := func(host string, port uint16) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }
	servers := []string{at(config.Host, config.Port)}
	for _, f := range config.Fallbacks {
		// A server may stand there a second time, without TLS.
		if server := at(f.Host, f.Port); !slices.Contains(servers, server) {
			servers = append(servers, server)
		}
	}
	return strings.Join(servers, ",") + "/" + config.Database
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
