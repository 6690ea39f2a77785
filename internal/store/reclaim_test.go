package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
)

// expire makes the leases of a turn look as if they had not been renewed.
func (b *bundle) expire(turn store.Turn) {
	b.t.Helper()
	b.exec(`UPDATE daybook.accounting_work_queue SET last_attempted_at = clock_timestamp() - interval '1 hour' WHERE turn_id = $1 AND state = 'leased'`, turn.ID)
}

// checkUntil checks again and again, as the engine does, until done says so.
func (b *bundle) checkUntil(r *store.Reclaimer, done func(store.Reclaimed) bool) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		got, _, err := r.Check(b.t.Context())
		return assert.NoError(b.t, err) && done(got)
	}, time.Minute, 200*time.Millisecond)
}

// TestExpiredLeasesAreReclaimedAfterAWhile: not at once, because the holder may be about to renew them; one that is renewed meanwhile,
// and one whose row a transaction holds locked, stay.
func TestExpiredLeasesAreReclaimedAfterAWhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("a", 2, 3)
	gone, renews, locked := b.turn("run/0/1"), b.turn("run/0/2"), b.turn("run/0/3")
	for _, turn := range []store.Turn{gone, renews, locked} {
		require.Len(t, b.lease(turn, 1), 1)
		b.expire(turn)
	}
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT 1 FROM daybook.accounting_work_queue WHERE turn_id = $1 FOR UPDATE`, locked.ID)
	require.NoError(t, err)
	r := b.store.NewReclaimer()
	got, _, err := r.Check(t.Context())
	require.NoError(t, err)
	assert.Zero(t, got.Jobs, "its holder has time to renew it")
	held, err := b.store.Renew(t.Context(), renews, []string{}, 0)
	require.NoError(t, err)
	require.Len(t, held.Held, 1)

	b.checkUntil(r, func(got store.Reclaimed) bool {
		// Not begun, so not charged.
		assert.Zero(t, got.Lost)
		if got.Jobs == 0 {
			_, err := b.store.Renew(t.Context(), renews, []string{}, 0)
			require.NoError(t, err)
		}
		return got.Jobs == 1
	})
	left, err := b.store.TurnsWithLeases(t.Context(), []string{gone.ID, renews.ID, locked.ID})
	require.NoError(t, err)
	assert.Equal(t, []string{renews.ID, locked.ID}, left)
	// Its holder has not had the time to renew since the row was unlocked.
	require.NoError(t, tx.Rollback(t.Context()))
	got, _, err = r.Check(t.Context())
	require.NoError(t, err)
	assert.Zero(t, got.Jobs)
}

// TestSlowChecksAlsoReclaim: on a busy server each check is slow. The pause after one must not be so long that the next one has
// forgotten what was seen.
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

// TestReclaimedJobKeepsItsPlace: it is worked before what was enqueued after it, and alone if it killed its worker.
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
	assert.Equal(t, 1, next[0].Takeovers)
	assert.Equal(t, 1, next[0].Attempt)
}

// TestOutageGivesHoldersTime: a Reclaimer that was cut off like the holders begins anew to watch what has expired meanwhile.
func TestOutageGivesHoldersTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("a", 2, 1)
	turn := b.turn("run/0/1")
	b.lease(turn, 1)
	b.expire(turn)
	r := b.store.NewReclaimer()
	began := time.Now()
	b.checkUntil(r, func(got store.Reclaimed) bool {
		require.Zero(t, got.Jobs)
		return time.Since(began) > 3*time.Second
	})
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := r.Check(cut)
	require.Error(t, err)
	restored := time.Now()
	b.checkUntil(r, func(got store.Reclaimed) bool { return got.Jobs == 1 })
	assert.GreaterOrEqual(t, time.Since(restored), 4*time.Second)
}

// TestChecksThatCannotReadEverythingReclaim: while an old snapshot keeps so many dead rows that no check can look at everything in time,
// what expires is reclaimed all the same.
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
