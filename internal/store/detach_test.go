package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLostAttemptOfADetachedJobNamesItsRun: a detached turn's id begins with the workflow's run, as
// every turn's does.
func TestLostAttemptOfADetachedJobNamesItsRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("a", 2, 1)
	turn := b.turn("run/0/1")
	jobs := b.lease(turn, 1)
	require.Len(t, jobs, 1)
	ids := []string{jobs[0].ID}
	begun, err := b.store.BeginWaiting(t.Context(), turn, ids)
	require.NoError(t, err)
	require.Equal(t, ids, begun.Working)
	handed, err := b.store.HandOver(t.Context(), turn, turn.Detach(), ids)
	require.NoError(t, err)
	require.True(t, handed)
	var detached bool
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT detached FROM daybook.accounting_work_queue`).Scan(&detached))
	assert.True(t, detached)
	b.exec(`UPDATE daybook.accounting_work_queue SET last_attempted_at = clock_timestamp() - interval '1 hour'`)

	_, err = b.store.ReclaimExpired(t.Context())
	require.NoError(t, err)
	var run string
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT workflow_run_id FROM daybook.attempts WHERE outcome = 'lost'`).Scan(&run))
	assert.Equal(t, "run", run)
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT detached FROM daybook.accounting_work_queue`).Scan(&detached))
	assert.False(t, detached, "the lease has ended")
}
