package pgtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestEachTestHasItsOwnMigratedDatabase(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			require.NoError(t, migrations.Verify(t.Context(), db.Pool))
			_, err := db.Pool.Exec(t.Context(), `CREATE TABLE only_here ()`)
			require.NoError(t, err)
			var path string
			require.NoError(t, db.Pool.QueryRow(t.Context(), `SHOW search_path`).Scan(&path))
			require.Equal(t, "daybook, public", path)
		})
	}
}

func TestEmptyDatabaseHasNoSchema(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	require.ErrorIs(t, migrations.Verify(t.Context(), db.Pool), migrations.ErrPending)
}

func TestDatabaseIsDroppedAfterItsTest(t *testing.T) {
	var name string
	t.Run("its test", func(t *testing.T) { name = pgtest.New(t).Name })
	var exists bool
	const q = `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`
	require.NoError(t, pgtest.NewEmpty(t).Pool.QueryRow(t.Context(), q, name).Scan(&exists))
	require.False(t, exists)
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		pgtest.New(b)
	}
}
