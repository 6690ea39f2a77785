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

// While a migration that is taken back waits for the lock of a table, others go on reading and
// writing it.
func TestDownHoldsNothingUpWhileItWaits(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	newer := migrations.Shipped(map[string]string{"00099_later.sql": expand})
	require.NoError(t, newer.Up(t.Context(), db.URL))
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM daybook.jobs`)
	require.NoError(t, err)

	done := make(chan error, 1)
	go func() { done <- newer.Down(t.Context(), db.URL) }()
	const waits = `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'daybook.jobs'::regclass AND NOT granted)`
	eventually(t, db, waits)
	within, cancel := context.WithTimeout(t.Context(), pgtest.Patience)
	defer cancel()
	_, err = db.Pool.Exec(within, `SELECT FROM daybook.jobs`)
	require.NoError(t, err, "answers although the transaction that it waits for is open")
	require.Empty(t, done)

	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-done)
	require.NoError(t, migrations.Verify(t.Context(), db.Pool))
	require.ErrorIs(t, newer.Verify(t.Context(), db.Pool), migrations.ErrPending)
}

// Rows that are committed while it waits are not deleted unless it was told to.
func TestDownLooksForDataAgain(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM daybook.periods`)
	require.NoError(t, err)

	within, cancel := context.WithTimeout(t.Context(), pgtest.Patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- migrations.Down(within, db.URL, migrations.DownOptions{}) }()
	eventually(t, db, `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'daybook.periods'::regclass AND NOT granted)`)
	change(t, db, `INSERT INTO daybook.organizations (id) VALUES ('acme')`)
	require.ErrorIs(t, <-done, migrations.ErrHasData)
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, migrations.Verify(t.Context(), db.Pool), "nothing was taken back")
}
