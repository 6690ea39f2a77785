package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
)

// TestWarmSessionsHaveTheirPlans: half of the pool's sessions are open, and lease and complete by
// plans that they have; no row has changed.
func TestWarmSessionsHaveTheirPlans(t *testing.T) {
	t.Parallel()
	const planned = `
SELECT count(*) FROM pg_prepared_statements
 WHERE generic_plans > 0 AND (statement LIKE '%SET state = ''leased''%' OR statement LIKE '%SET state = ''completed''%' OR statement LIKE '%RETURNING q.state%')`
	for name, kind := range map[string]*store.Kind{"jobs": store.Jobs, "accounting": store.Accounting} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			config := b.Pool.Config()
			config.MaxConns, config.MinConns = 4, 0
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			require.NoError(t, err)
			defer pool.Close()
			require.NoError(t, store.NewQueue(pool, kind).Warm(t.Context()))
			require.EqualValues(t, 2, pool.Stat().TotalConns())
			for range 2 {
				conn, err := pool.Acquire(t.Context())
				require.NoError(t, err)
				defer conn.Release()
				var n int
				require.NoError(t, conn.QueryRow(t.Context(), planned).Scan(&n))
				assert.GreaterOrEqual(t, n, 2)
			}
		})
	}
}
