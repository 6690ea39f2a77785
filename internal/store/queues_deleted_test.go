package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
)

// TestRetryOfADeletedQueuesJob: a dead letter of a named queue that was deleted is refused, until
// the queue is made again, with whichever fleet.
func TestRetryOfADeletedQueuesJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "bank", MaxParallel: 1})
	b.inQueue("o", "bank", 2)
	b.inQueue("o", "", 1)
	b.exec(`UPDATE daybook.jobs SET state = 'cancelled', finished_at = clock_timestamp()`)
	require.NoError(t, store.DeleteQueue(t.Context(), b.Pool, "bank"))
	retry := func() error {
		_, err := b.Pool.Exec(t.Context(),
			`SELECT daybook.retry_job((SELECT min(id) FROM daybook.jobs WHERE queue = 'bank'))`)
		return store.Wrap("retry", err)
	}
	require.ErrorIs(t, retry(), store.ErrQueueNotFound)
	var changed, open int
	many := `SELECT daybook.retry_jobs(ARRAY(SELECT id FROM daybook.jobs), '{cancelled}')`
	require.NoError(t, b.Pool.QueryRow(t.Context(), many).Scan(&changed))
	assert.Equal(t, 1, changed, "the one that is in no queue")

	b.setQueue(store.NamedQueue{Name: "bank", Fleet: "shop"})
	require.NoError(t, retry())
	require.NoError(t, b.Pool.QueryRow(t.Context(), many).Scan(&changed))
	assert.Equal(t, 1, changed)
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND fleet = daybook.queue_fleet('bank')`).Scan(&open))
	assert.Equal(t, 2, open, "the fleet that works the queue now works them")
}

// Dead letters whose handler was missing come back when a worker has one, but for those of a queue
// that was deleted, which keep no other from it.
func TestReturnMissingWithoutTheQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "bank"})
	b.inQueue("o", "bank", 1)
	b.inQueue("o", "", 1)
	b.exec(`UPDATE daybook.jobs SET state = 'failed', last_error = 'no', last_error_code = 'HANDLER_MISSING', finished_at = clock_timestamp()`)
	require.NoError(t, store.DeleteQueue(t.Context(), b.Pool, "bank"))
	n, err := store.NewQueue(b.Pool, store.Jobs).ReturnMissing(t.Context(), []string{"noop"})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
}
