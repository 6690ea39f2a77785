package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// besides is how many jobs of each sort lie beside those that are worked.
const besides = 20_000

// jobPages returns how many pages of the jobs and of their indexes f reads.
func (b *bundle) jobPages(pool *pgxpool.Pool, f func()) int64 {
	b.t.Helper()
	return b.pagesOf("daybook.jobs", pool, f)
}

// pagesOf returns how many pages of a table and of its indexes f reads. A session hands in its
// statistics when it ends: all end before and after f.
func (b *bundle) pagesOf(table string, pool *pgxpool.Pool, f func()) (n int64) {
	b.t.Helper()
	const sessions = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`
	const q = `
SELECT heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read FROM pg_statio_user_tables WHERE relid = $1::text::regclass`
	count := func() (n int64) {
		pool.Reset()
		b.Pool.Reset()
		conn, err := pgx.Connect(b.t.Context(), b.URL)
		require.NoError(b.t, err)
		defer func() { _ = conn.Close(context.WithoutCancel(b.t.Context())) }()
		require.Eventually(b.t, func() bool {
			var others int
			require.NoError(b.t, conn.QueryRow(b.t.Context(), sessions).Scan(&others))
			return others == 0
		}, pgtest.Patience, 5*time.Millisecond)
		require.NoError(b.t, conn.QueryRow(b.t.Context(), q, table).Scan(&n))
		return n
	}
	fixture.NeedStatistics(b.t, b.Pool)
	before := count()
	f()
	return count() - before
}

// TestPagesBesideOtherQueues: what is asked for jobs without a queue reads as many pages, and finds
// the same jobs, beside long queues that are full or paused, jobs of another fleet, and jobs that
// wait.
func TestPagesBesideOtherQueues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`ALTER TABLE daybook.jobs SET (autovacuum_enabled = false)`)
	b.setQueue(store.NamedQueue{Name: "full", MaxParallel: 1})
	b.setQueue(store.NamedQueue{Name: "paused"})
	b.setQueue(store.NamedQueue{Name: "foreign", Fleet: "shop"})
	_, err := store.PauseQueue(t.Context(), b.Pool, "paused", true)
	require.NoError(t, err)
	for _, queue := range []string{"full", "paused", "foreign"} {
		b.inQueue("o", queue, 1)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), b.Pool.Config())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	measure := func() map[string]int64 {
		s, room, turn := store.NewQueue(pool, store.Jobs), newQueues(), b.turn("run/0/1")
		// Everything is read once, and the full queue is found to be full.
		leaseAll(t, s, turn, room, 10)
		require.NoError(t, s.Partitions().ReadAll(t.Context(), room))
		pages := map[string]int64{}
		pages["scans"] = b.jobPages(pool, func() { require.NoError(t, s.Partitions().ReadAll(t.Context(), room)) })
		for _, call := range []string{"a pick", "a pick behind a scan", "a lease"} {
			b.inQueue("a", "", 3)
			b.inQueue("o", "", 3)
			pages[call] = b.jobPages(pool, func() {
				if call == "a lease" {
					assert.Equal(t, map[string]int{"": 6}, leaseAll(t, s, turn, room, 10))
					return
				}
				pick, err := s.PickTypes(t.Context(), 10, func(string) bool { return true }, room)
				require.NoError(t, err)
				assert.ErrorIs(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
					jobs, err := pick.Lock(t.Context(), tx)
					require.NoError(t, err)
					assert.Len(t, jobs, 6, call)
					return context.Canceled
				}), context.Canceled)
				pick.Undo()
			})
			b.exec(`UPDATE daybook.jobs SET state = 'completed', finished_at = clock_timestamp(), turn_id = NULL, fence = NULL, leased_generation = NULL, attempt_started_at = NULL,
			               worker = NULL, working = false, detached = false WHERE queue IS NULL AND state IN ('pending', 'leased') AND ready_at < '9999-01-01'`)
		}
		room.open()
		pages["a lease that tries the full queue"] = b.jobPages(pool,
			func() { assert.Empty(t, leaseAll(t, s, turn, room, 10)) })
		return pages
	}
	few := measure()
	for _, queue := range []string{"full", "paused", "foreign"} {
		b.exec(`INSERT INTO daybook.jobs (org_id, type, payload, ready_at, first_ready_at, priority, queue, fleet)
SELECT 'o', 'noop', '{}', at, at, 2, $1, daybook.queue_fleet($1) FROM generate_series(1, $2::int) i, LATERAL (SELECT clock_timestamp() - interval '1 hour' AS at) x`, queue, besides)
	}
	b.exec(fmt.Sprintf(`INSERT INTO daybook.jobs (org_id, type, payload, ready_at, first_ready_at, priority, sequence, awaited)
SELECT 'o', 'noop', '{}', '9999-12-31 00:00:00+00', clock_timestamp(), 2, 'one', true FROM generate_series(1, %d)`,
		besides/4))
	for call, n := range measure() {
		t.Logf("%s: %d pages, then %d", call, few[call], n)
		assert.LessOrEqual(t, n, few[call]+few[call]/2+60, call)
	}
}
