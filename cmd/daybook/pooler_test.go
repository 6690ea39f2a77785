package main

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// behindPooler is a bundle whose commands come through PgBouncer in transaction mode, and the
// address past it.
func behindPooler(t *testing.T, db *pgtest.DB) (b *bundle, past string) {
	t.Helper()
	through := *db.Database
	through.URL = db.Pooler(t, pgtest.PoolTransactions)
	return &bundle{&pgtest.DB{Database: &through}, t}, db.URL
}

// left is what the sessions of a pooler have that clients before have left in them.
const left = `SELECT concat_ws(' ', current_setting('statement_timeout'), current_setting('lock_timeout'),
       current_setting('idle_session_timeout'), current_setting('default_transaction_isolation'),
       (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'),
       (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_listening_channels()))`

// Commands leave no setting, lock or prepared statement in a session that the pooler gives to
// another client next, and work as they do without it.
func TestCommandsBehindAPoolerLeaveNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const settings = "1min 30s 1h serializable"
	_, err := db.Pool.Exec(t.Context(), `DO $$ BEGIN
EXECUTE format('ALTER DATABASE %I SET statement_timeout = ''1min''', current_database());
EXECUTE format('ALTER DATABASE %I SET lock_timeout = ''30s''', current_database());
EXECUTE format('ALTER DATABASE %I SET idle_session_timeout = ''1h''', current_database());
EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''serializable''', current_database()); END $$`)
	require.NoError(t, err)
	b, _ := behindPooler(t, db)
	conn, err := pgx.Connect(t.Context(), b.URL)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	clean := func(after ...string) {
		t.Helper()
		var txs []string // of each of the pooler's sessions
		for range 3 {
			var found string
			other, err := pgx.Connect(t.Context(), b.URL)
			require.NoError(t, err)
			defer func() { _ = other.Close(t.Context()) }()
			tx, err := other.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(t.Context()) }()
			require.NoError(t, tx.QueryRow(t.Context(), left, pgx.QueryExecModeSimpleProtocol).Scan(&found))
			txs = append(txs, found)
		}
		want := settings + " 0 0 0"
		assert.Equal(t, []string{want, want, want}, txs, "after %v", after)
	}
	for _, args := range [][]string{
		{"status"},
		{"organizations", "set-source", "acme", "daybook", "--create"},
		{"migrate", "status"},
		{"jobs", "list"},
		{"leases"},
		{"queues", "create", "bank"},
		{"periods", "add", "--org", "acme", "--month", "2026-03", "--create"},
	} {
		for range 2 { // what one connection has prepared another one does not look for
			r := b.run(args...)
			assert.NotContains(t, r.err, "SQLSTATE", args)
		}
		clean(args...)
	}
	for _, args := range [][]string{
		{"migrate", "up"}, {"migrate", "up", "--roles"}, {"migrate", "down"}, {"migrate", "dump"}, {"worker"},
	} {
		r := b.run(args...)
		assert.Equal(t, failure.ExitUsage, r.exit, args)
		assert.Contains(t, r.err, "set DAYBOOK_DATABASE_DIRECT_URL", args)
		clean(args...)
	}
}

func TestBehindAPooler(t *testing.T) {
	t.Parallel()
	b, past := behindPooler(t, pgtest.NewEmpty(t))
	b.ok("migrate", "up", "--database-direct-url", past)

	found := b.findings(health.DirectAddressNeeded)
	require.Len(t, found, 1)
	assert.Contains(t, found[0].Todo, "DAYBOOK_DATABASE_DIRECT_URL")
	assert.Empty(t, b.findings(health.DirectAddressNeeded, "--database-direct-url", past))
	assert.Contains(t, b.findings(health.DirectAddressNeeded, "--database-direct-url", b.URL)[0].Says,
		"The direct address")
	other := b.findings(health.DirectAddressNeeded, "--database-direct-url", pgtest.NewEmpty(t).URL)
	require.Len(t, other, 1)
	assert.Contains(t, other[0].Says, "names another database")
}

func TestWorkerBehindAPooler(t *testing.T) {
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	inNamespace(t, server, namespace)
	b, past := behindPooler(t, pgtest.New(t))
	r := worksSample(t, b, server, namespace, "--database-direct-url", past)
	assert.NotContains(t, r.err, "SQLSTATE")
	assert.NotContains(t, r.err, "no connection on which work is announced")
}
