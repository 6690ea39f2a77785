package engine_test

import (
	"maps"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestPlansMadeOnSmallTablesStayGood makes every statement's plan while the tables are tiny,
// freshly vacuumed and analyzed, when a scan is cheapest. Then the tables grow. Nothing may scan
// them.
func TestPlansMadeOnSmallTablesStayGood(t *testing.T) {
	t.Parallel()
	b := setup(t)
	config := b.Pool.Config()
	config.MaxConns = 1 // one session, so that its plans are the ones that are used again
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	e := engine.New(store.New(pool), ledger.New(nil), engine.Options{})
	t.Cleanup(e.Close)
	work := func(n int) {
		_, err := e.Lease(t.Context(), turn(n), 50, nil)
		require.NoError(t, err)
		_, err = e.Process(t.Context(), engine.TurnRequest{Turn: turn(n), Batch: 50, Length: pgtest.Patience})
		require.NoError(t, err)
	}
	for n := range 8 {
		fixture.Ready(t, b.Pool, fixture.Invoice(org, "warm", int64(1000+n)))
		b.exec(`VACUUM ANALYZE daybook.accounting_work_queue, daybook.documents, daybook.impacts, daybook.entries, daybook.accounts`)
		work(n)
	}
	fixture.ManyReady(t, b.Pool, org, "inv-", 2000)
	before := b.rowsScanned()

	work(100)

	require.Equal(t, 2001, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed'`))
	pool.Close() // a session hands in its statistics when it ends
	for table, scanned := range b.rowsScanned() {
		// The count above scans the queue once.
		assert.LessOrEqual(t, scanned-before[table], int64(2*2001), "rows of %s read by scans", table)
	}
}

// rowsScanned returns how many rows were read by sequential scans, per table. Sessions hand in what
// they have read a moment after they have ended, so it reads until that has come.
func (b *bundle) rowsScanned() map[string]int64 {
	b.t.Helper()
	b.Pool.Reset()
	var last map[string]int64
	require.Eventually(b.t, func() bool {
		before := last
		last = b.readScans()
		return maps.Equal(before, last)
	}, pgtest.Patience, 500*time.Millisecond)
	return last
}

func (b *bundle) readScans() map[string]int64 {
	rows, err := b.Pool.Query(b.t.Context(),
		`SELECT relname, seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'daybook'`)
	require.NoError(b.t, err)
	out := map[string]int64{}
	var table string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&table, &n}, func() error {
		out[table] = n
		return nil
	})
	require.NoError(b.t, err)
	return out
}
