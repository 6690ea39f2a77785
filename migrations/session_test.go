package migrations_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/models/locks"
)

// TestMigrationsUseNoDefaultOfTheDatabase that would have them call functions of others, compile
// functions otherwise, change texts, or wait for each other in vain.
func TestMigrationsUseNoDefaultOfTheDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	admin := connect(t, db.URL)
	_, err := admin.Exec(t.Context(), `
CREATE SCHEMA decoy;
CREATE FUNCTION decoy.format(text, text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''a decoy was called''; END';
CREATE FUNCTION decoy.format(text, text, text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''a decoy was called''; END'`)
	require.NoError(t, err)
	for _, s := range []string{
		`search_path = decoy, public`, `lock_timeout = '50ms'`, `statement_timeout = '1s'`, `plpgsql.extra_errors = 'all'`,
		`client_encoding = 'LATIN1'`,
	} {
		_, err := admin.Exec(t.Context(), `ALTER DATABASE `+db.Name+` SET `+s)
		require.NoError(t, err)
	}
	_, err = admin.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, locks.Migrations)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- migrations.Up(t.Context(), db.URL) }()
	const waiting = `SELECT EXISTS (SELECT FROM pg_stat_activity
 WHERE datname = current_database() AND query LIKE 'SELECT pg_try_advisory_lock%' AND backend_start < clock_timestamp() - interval '1.2 s')`
	require.Eventually(t, func() bool {
		var waits bool
		return assert.NoError(t, admin.QueryRow(t.Context(), waiting).Scan(&waits)) && (waits || len(done) > 0)
	}, pgtest.Patience, 50*time.Millisecond)
	_, err = admin.Exec(t.Context(), `SELECT pg_advisory_unlock_all()`)
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.NoError(t, migrations.Roles(t.Context(), db.URL))
	const comment = `SELECT col_description('daybook.actions'::regclass, attnum) FROM pg_attribute WHERE attrelid = 'daybook.actions'::regclass AND attname = 'subject'`
	var subject string
	require.NoError(t, admin.QueryRow(t.Context(), comment).Scan(&subject)) // in a session that began before
	assert.Contains(t, subject, "a type …")
}

// connect opens a session that keeps the settings with which it begins.
func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}
