package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestHoldThatEndsBeforeItsJobsAreLeftAlone: a transaction that takes longer than the organization
// is held back hides none of the jobs that it leaves alone.
func TestHoldThatEndsBeforeItsJobsAreLeftAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.later(3000, 1)
	b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, ready_at) VALUES ('zzz', 'old', 1, clock_timestamp() - interval '1 hour')`)
	var pick *store.Pick
	require.Eventually(t, func() bool {
		var err error
		pick, err = b.store.Pick(t.Context(), 10, pgtest.Unbounded())
		require.NoError(t, err)
		return !pick.Empty()
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, b.store.InTx(t.Context(), func(tx pgx.Tx) error {
		jobs, err := pick.Lock(t.Context(), tx)
		assert.Len(t, jobs, 1)
		pause, begun := b.store.HoldBack("zzz")
		assert.True(t, begun)
		<-time.After(pause + 10*time.Millisecond)
		return err
	}))
	pick.LeaveAlone(false)
	pick, err := b.store.Pick(t.Context(), 10, pgtest.Unbounded())
	require.NoError(t, err)
	assert.False(t, pick.Empty(), "the first scan finds it again")
}
