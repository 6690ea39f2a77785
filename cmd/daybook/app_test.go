package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/pgtest"
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
