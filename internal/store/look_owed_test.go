package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
)

// TestSteadyWorkHidesNoOldRow: a worker that keeps up with a steady stream of new jobs also finds a row that no glance sees, of an
// organization that was paused for instance.
func TestSteadyWorkHidesNoOldRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	turn := b.turn("run/0/1")
	require.Empty(t, b.lease(turn, 10))
	b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, ready_at) VALUES ('zzz', 'old', 1, clock_timestamp() - interval '1 hour')`)
	i := 0
	require.Eventually(t, func() bool {
		i++
		_, err := store.EnqueueAccountingJob(t.Context(), b.Pool, "a", fmt.Sprint("new_", i), 1, nil, 0)
		require.NoError(t, err)
		for _, j := range b.lease(turn, 10) {
			if j.DocumentID == "old" {
				return true
			}
		}
		return false
	}, 10*time.Second, 5*time.Millisecond)
}
