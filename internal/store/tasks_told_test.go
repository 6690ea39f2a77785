package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
)

// TestLeaseTellsWhatItReclaimed: a call that leases tasks ends expired leases first, tells of them,
// and leases their tasks anew.
func TestLeaseTellsWhatItReclaimed(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ctx := t.Context()
	_, err := db.Pool.Exec(ctx, `SELECT queues.enqueue('sms', '{}')`)
	require.NoError(t, err)
	q := store.NewTaskQueue(db.As(t, "worker_service_user"), "sms")
	var told []store.Change
	q.Observe(func(changes []store.Change) { told = append(told, changes...) })
	lease := func(turn, worker string) []store.Job {
		fence, err := q.NextFence(ctx)
		require.NoError(t, err)
		got, err := q.LeaseFor(ctx, store.Turn{ID: turn, Fence: fence, Worker: worker, Begins: true}, 10,
			pgtest.Unbounded())
		require.NoError(t, err)
		return got.Jobs
	}
	first := lease("run/0/1", "gone")
	require.Len(t, first, 1)
	assert.Empty(t, told)
	_, err = db.Pool.Exec(ctx,
		`UPDATE queues.open_task SET leased_until = c, last_call = c, arrived = pg_current_xact_id() FROM clock_timestamp() AS c`)
	require.NoError(t, err)
	again := lease("run/0/2", "alive")
	require.Len(t, again, 1)
	assert.Equal(t, 2, again[0].Attempt)
	assert.False(t, again[0].ReadyHere.IsZero())
	require.Len(t, told, 1)
	assert.Equal(t, events.Reclaimed, told[0].What)
	assert.Equal(t, first[0].ID, told[0].Job.ID)
	assert.Equal(t, "sms", told[0].Job.Type)
	assert.Equal(t, 1, told[0].Job.Attempt)
	assert.Equal(t, "gone", told[0].Worker)
	assert.Equal(t, "run/0/1", told[0].Turn)
	assert.True(t, told[0].Counted)
}
