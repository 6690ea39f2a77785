package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// expire makes the leases of a turn look as if they had not been renewed.
func (b *bundle) expire(turn store.Turn) {
	b.t.Helper()
	b.exec(`UPDATE daybook.accounting_work_queue SET last_attempted_at = clock_timestamp() - interval '1 hour' WHERE turn_id = $1 AND state = 'leased'`, turn.ID)
}

// TestSlowChecksAlsoReclaim: on a busy server each check is slow. The pause after one must not be
// so long that the next one has forgotten what was seen.
func TestSlowChecksAlsoReclaim(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("a", 2, 1)
	gone := b.turn("run/0/1")
	require.Len(t, b.lease(gone, 1), 1)
	b.expire(gone)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE daybook.accounting_work_queue`)
	require.NoError(t, err)
	pauses := make(chan time.Duration, 1)
	go func() {
		_, pause, err := b.store.NewReclaimer().Check(t.Context())
		assert.NoError(t, err)
		pauses <- pause
	}()
	b.awaitsLock()
	_, err = tx.Exec(t.Context(), `SELECT pg_sleep(0.1)`)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
	assert.LessOrEqual(t, <-pauses, time.Second)
}

// TestChecksWithoutLeases: while nothing is leased a process checks seldom, and still in time for
// what is leased right after a check by a worker that is killed at once.
func TestChecksWithoutLeases(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("a", 2, 1)
	r := b.store.NewReclaimer()
	_, first, err := r.Check(t.Context())
	require.NoError(t, err)
	assert.Less(t, first, 3*time.Second, "workers that start together know each other soon")
	_, pause, err := r.Check(t.Context())
	require.NoError(t, err)
	assert.Greater(t, pause, 7*time.Second)
	assert.Less(t, pause+store.ReclaimPatience+store.SlowWatchPause, 15*time.Second)

	require.Len(t, b.lease(b.turn("run/0/1"), 1), 1)
	_, leased, err := r.Check(t.Context())
	require.NoError(t, err)
	assert.LessOrEqual(t, leased, 5*time.Second, "what is leased is watched in time")
	b.exec(`UPDATE daybook.accounting_work_queue SET last_attempted_at = clock_timestamp() - $1::interval WHERE state = 'leased'`, pause)
	_, watched, err := r.Check(t.Context())
	require.NoError(t, err)
	assert.LessOrEqual(t, watched, store.SlowWatchPause)
}

// manyLeases is how many leases the tests have expire together: more than are ended in one
// transaction.
const manyLeases = 12_000

// expireMany has leases of workers that died together expire.
func (b *bundle) expireMany() {
	b.t.Helper()
	b.exec(`
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, turn_id, fence, worker, run_count, leased_generation, attempt_started_at, last_attempted_at)
SELECT 'org_' || i % 10, 'doc_' || i, 1, 'leased', 'run/0/' || i % 20, 1, 'gone', 1, 0, clock_timestamp(), clock_timestamp() - interval '30 seconds' FROM generate_series(1, $1) AS i`, manyLeases)
}

// TestManyLeasesEndTogether: all leases that expired together are watched together, and end in as
// many checks as their number needs.
func TestManyLeasesEndTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.expireMany()
	r := b.store.NewReclaimer()
	ended, checks := 0, 0
	for began := time.Now(); ended < manyLeases && time.Since(began) < pgtest.Patience; {
		got, pause, err := r.Check(t.Context())
		require.NoError(t, err)
		if ended += got.Jobs; ended > 0 {
			checks++
		}
		time.Sleep(pause)
	}
	assert.Equal(t, manyLeases, ended)
	assert.LessOrEqual(t, checks, 4)
}

// TestReclaimExpiredEndsAll: one call, of an operator, ends all leases that have expired.
func TestReclaimExpiredEndsAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.expireMany()
	got, err := b.store.ReclaimExpired(t.Context())
	require.NoError(t, err)
	assert.Equal(t, manyLeases, got.Jobs)
}

// TestReclaimedJobKeepsItsPlace: it is worked before what was enqueued after it, and alone if it
// killed its worker.
func TestReclaimedJobKeepsItsPlace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("a", 2, 3)
	gone := b.turn("run/0/1")
	first := b.lease(gone, 1)
	b.expire(gone)

	got, err := b.store.ReclaimExpired(t.Context())
	require.NoError(t, err)
	assert.Equal(t, store.Reclaimed{Jobs: 1}, got)
	next := b.lease(b.turn("run/0/2"), 1)
	require.Len(t, next, 1)
	assert.Equal(t, first[0].ID, next[0].ID)
	assert.Equal(t, 1, next[0].Reclaims)
	assert.Equal(t, 1, next[0].Attempt)
}

// TestChecksThatCannotReadEverythingReclaim: while an old snapshot keeps so many dead rows that no
// check can look at everything in time, what expires is reclaimed all the same.
func TestChecksThatCannotReadEverythingReclaim(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("a", 2, 1)
	gone := b.turn("run/0/1")
	require.Len(t, b.lease(gone, 1), 1)
	b.exec(`UPDATE daybook.accounting_work_queue SET last_attempted_at = clock_timestamp() - interval '30 seconds' WHERE state = 'leased'`)
	r := b.store.NewReclaimer()
	require.Eventually(t, func() bool {
		r.HurryFull(time.Nanosecond)
		got, _, err := r.Check(t.Context())
		return err == nil && got.Jobs == 1
	}, time.Minute, 200*time.Millisecond)
}
