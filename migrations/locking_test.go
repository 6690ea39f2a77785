package migrations_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/migrations"
)

// eventually waits until a query of one truth value says yes.
func eventually(t *testing.T, db *pgtest.DB, query string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var yes bool
		return assert.NoError(t, db.Pool.QueryRow(t.Context(), query).Scan(&yes)) && yes
	}, pgtest.Patience, 10*time.Millisecond)
}

// waitsForMigration says whether a session waits for the migration lock.
const waitsForMigration = `
SELECT EXISTS (SELECT FROM pg_stat_activity
 WHERE datname = current_database() AND (query LIKE 'SELECT pg_try_advisory_lock%' OR wait_event = 'advisory'))`

// A call that waits for another one holds up no index that the other makes beside workers.
func TestUpBesideOneThatMakesAnIndex(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(migrations.Chapters, context.Context, string) error{
		"migrate":   migrations.Chapters.Up,
		"take back": migrations.Chapters.Down,
		"give rights": func(_ migrations.Chapters, ctx context.Context, address string) error {
			return migrations.Roles(ctx, address)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			tx, err := db.Pool.Begin(t.Context()) // for which an index on its table waits
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), `LOCK TABLE daybook.imports IN ROW EXCLUSIVE MODE`)
			require.NoError(t, err)
			newer := migrations.Shipped(map[string]string{"00099_later.sql": `-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS daybook.imports_later;
CREATE INDEX CONCURRENTLY imports_later ON daybook.imports (org_id);
-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS daybook.imports_later;
`})
			ended := make(chan error, 2)
			go func() { ended <- newer.Up(t.Context(), db.URL) }()
			eventually(t, db, `SELECT EXISTS (SELECT FROM pg_stat_activity
 WHERE datname = current_database() AND query LIKE 'CREATE INDEX%' AND wait_event_type = 'Lock')`)
			go func() { ended <- call(newer, t.Context(), db.URL) }()
			eventually(t, db, waitsForMigration)

			require.NoError(t, tx.Rollback(t.Context()))
			require.NoError(t, <-ended)
			require.NoError(t, <-ended)
		})
	}
}
