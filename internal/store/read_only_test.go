package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
)

// TestReadOnlySessionIsLeft: a session that only reads fails one statement. The pool would hand it
// out for each of the next ones.
func TestReadOnlySessionIsLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, _ := b.oneConnection()
	pool := s.Pool()
	const write = `INSERT INTO queues.task (task_type, payload) VALUES ('email', '{}')`
	for name, call := range map[string]func() error{
		"a transaction of the worker": func() error {
			return s.InTx(t.Context(), func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), write)
				return err
			})
		},
		"a transaction": func() error {
			return store.Begin(t.Context(), pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), write)
				return err
			})
		},
		"a fence": func() error {
			_, err := s.NextFence(t.Context())
			return err
		},
		"a batch": func() error {
			_, err := store.NewTaskQueue(pool).NextFence(t.Context())
			return err
		},
	} {
		_, err := pool.Exec(t.Context(), `SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY`)
		require.NoError(t, err, name)
		require.Equal(t, "25006", store.SQLState(call()), name)
		assert.NoError(t, call(), name)
	}
}
