package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

// TestEndedSessionsAreNoticed without a statement.
func TestEndedSessionsAreNoticed(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pool, err := poolOf(t.Context(), db.URL, 1)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(conn.Release)
	require.False(t, hasEnded(conn.Conn()))
	require.NoError(t, conn.Ping(t.Context()), "the look leaves the connection as it is")
	_, err = db.Pool.Exec(t.Context(), `SELECT pg_terminate_backend($1)`, conn.Conn().PgConn().PID())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return hasEnded(conn.Conn()) }, 10*time.Second, 10*time.Millisecond)
}

// TestTextsAreUTF8 whatever the database's sessions have by default.
func TestTextsAreUTF8(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(), `ALTER DATABASE `+b.Name+` SET client_encoding = 'LATIN1'`)
	require.NoError(t, err)
	b.ok("jobs", "enqueue", "--create", "report.daily", "--org", "org_1", "--key", "é")
	require.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE idempotency_key = U&'\00E9'`))
}
