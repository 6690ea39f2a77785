package direct_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store/direct"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func TestPooled(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	t.Run("PostgreSQL itself", func(t *testing.T) {
		t.Parallel()
		assert.NoError(t, direct.Require(t.Context(), connect(t, db.URL)))
	})
	t.Run("a pooler that keeps sessions", func(t *testing.T) {
		t.Parallel()
		assert.NoError(t, direct.Require(t.Context(), connect(t, db.Pooler(t, pgtest.PoolSessions))))
	})
	t.Run("a pooler that gives sessions to others", func(t *testing.T) {
		t.Parallel()
		address := db.Pooler(t, pgtest.PoolTransactions)
		assert.ErrorIs(t, direct.Require(t.Context(), connect(t, address)), direct.ErrNeeded)

		busy := connect(t, address) // one of the sessions is not free
		tx, err := busy.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = tx.Rollback(t.Context()) }()
		assert.ErrorIs(t, direct.Require(t.Context(), connect(t, address)), direct.ErrNeeded)
	})
}
