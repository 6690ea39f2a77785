package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
)

// TestExpiredTasksCanBeRenewed: when the database's clock is set forward, or it was unavailable for
// long, the leases of workers that live have expired. They have ten seconds to renew them; other
// clients' leases end as they were told, and people end all at once.
func TestExpiredTasksCanBeRenewed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := store.NewTaskQueue(b.Pool, "email")
	b.tasks("email", "sms")
	fence, err := q.NextFence(t.Context())
	require.NoError(t, err)
	turn := store.Turn{ID: "run/0/1", Fence: fence, Worker: "alive", Begins: true}
	leased, err := q.LeaseFor(t.Context(), turn, 10, pgtest.Unbounded())
	require.NoError(t, err)
	require.Len(t, leased.Jobs, 1)
	b.exec(`SELECT queues.dequeue_next_available_task()`)
	forward := func() {
		b.exec(`UPDATE queues.open_task SET leased_until = leased_until - interval '1 hour', last_call = last_call - interval '1 hour', arrived = pg_current_xact_id()
                 WHERE leased_until IS NOT NULL`)
	}
	check := func() store.Reclaimed {
		got, _, err := q.Check(t.Context())
		require.NoError(t, err)
		return got
	}
	const left = `SELECT extract(epoch FROM leased_until - clock_timestamp())::integer FROM queues.open_task WHERE turn_id = 'run/0/1'`

	forward()
	assert.Equal(t, store.Reclaimed{Jobs: 1}, check(), "that of another client")
	assert.Positive(t, fixture.Count(t, b.Pool, left))
	assert.LessOrEqual(t, fixture.Count(t, b.Pool, left), 10)
	renewed, err := q.Renew(t.Context(), turn, nil, time.Second)
	require.NoError(t, err)
	assert.Equal(t, []string{leased.Jobs[0].ID}, renewed.Held)
	assert.Greater(t, fixture.Count(t, b.Pool, left), 290)

	forward()
	assert.Zero(t, check(), "each time anew")
	assert.Zero(t, check())
	forward()
	assert.Equal(t, store.Reclaimed{Jobs: 1, Lost: 1}, check(), "it was not renewed")

	leased, err = q.LeaseFor(t.Context(), turn, 10, pgtest.Unbounded())
	require.NoError(t, err)
	require.Len(t, leased.Jobs, 1)
	forward()
	got, err := q.ReclaimExpired(t.Context())
	require.NoError(t, err)
	assert.Equal(t, store.Reclaimed{Jobs: 1, Lost: 1}, got)
	assert.Empty(t, wrong(b.audit(audit.Options{})))
}
