package store_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
)

// TestPlansByKeyAreNotCompiled: a scan that is switched off counts as so expensive that PostgreSQL
// compiles the plan, for a second or two, also where the table has one row and no other way to it.
func TestPlansByKeyAreNotCompiled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	plan := func() string {
		rows, err := tx.Query(t.Context(), `EXPLAIN (ANALYZE) SELECT (SELECT d.source FROM daybook.defaults d)`)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return strings.Join(lines, "\n")
	}
	show := func() (jit string) {
		require.NoError(t, tx.QueryRow(t.Context(), `SHOW jit`).Scan(&jit))
		return jit
	}
	before := show()
	require.NoError(t, store.PlanByKey(t.Context(), tx))
	assert.Equal(t, "off", show())
	assert.NotContains(t, plan(), "JIT")
	require.NoError(t, store.PlanFreely(t.Context(), tx))
	assert.Equal(t, before, show(), "an application's own statements are compiled as its session has it")
}
