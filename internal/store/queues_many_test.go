package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestFullQueueOfManyOrganizations: a queue that is full, in which many organizations have jobs, is
// not walked through for each job of its neighbours.
func TestFullQueueOfManyOrganizations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "slow", MaxParallel: 1})
	b.exec(`SELECT daybook.enqueue_job('o' || n, 'noop', '{}', queue => 'slow') FROM generate_series(1, 20000) n`)
	b.inQueue("z", "", 500)
	b.inQueue("y", "", 500)
	s, room := store.NewQueue(b.Pool, store.Jobs), newQueues()
	require.NoError(t, s.Partitions().ReadAll(t.Context(), room))
	room.QueueFull("slow", time.Hour)
	took := func(n int) time.Duration {
		began := time.Now()
		require.Len(t, s.Partitions().Divide(n, room), min(n, 2))
		return time.Since(began)
	}
	// Two organizations have work beside the queue: for a third job all the others are gone through.
	few := min(took(3), took(3), took(3))
	many := min(took(400), took(400), took(400))
	t.Logf("3 jobs are divided in %v, 400 in %v", few, many)
	assert.Less(t, many, 40*few+10*time.Millisecond, "a walk for each job would take 398 times as long")
}

// TestContendedCapClosesNoQueue: a queue of which nothing was leased, because another worker leases
// jobs of its organization, is not full.
func TestContendedCapClosesNoQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "two", MaxParallel: 2})
	b.inQueue("o", "two", 3)
	b.exec(`INSERT INTO daybook.organizations (id, max_in_flight) VALUES ('o', 5) ON CONFLICT (id) DO UPDATE SET max_in_flight = 5`)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(),
		`SELECT pg_advisory_xact_lock(daybook.lock_class('organization leases'), hashtext('o'))`)
	require.NoError(t, err)
	s, room := store.NewQueue(b.Pool, store.Jobs), newQueues()
	assert.Empty(t, leaseAll(t, s, b.turn("run/0/1"), room, 10))
	assert.True(t, room.Open("two"))
	require.NoError(t, tx.Rollback(t.Context()))
	assert.Eventually(t, func() bool {
		return leaseAll(t, s, b.turn("run/0/2"), room, 10)["two"] == 2
	}, pgtest.Patience, 20*time.Millisecond)
}

// TestCallbacksWakeFleets: what comes for a job wakes the workers of its fleet, also where no other
// fleet waits for work.
func TestCallbacksWakeFleets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "orders", Fleet: "shop"})
	b.inQueue("o", "orders", 1)
	var job string
	var fleet int
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`UPDATE daybook.jobs SET last_error_code = 'AWAITING_CALLBACK', ready_at = clock_timestamp() + interval '1 hour' RETURNING id, fleet`).Scan(&job, &fleet))
	require.NoError(t, store.NewCallback(t.Context(), b.Pool, job, "paid", "token", time.Hour))
	conn, err := b.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), fmt.Sprintf(`LISTEN daybook_jobs_%d`, fleet))
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `SELECT pg_advisory_lock(daybook.lock_class('wakers'), daybook.jobs_key($1))`, fleet)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), pgtest.Patience)
	defer cancel()
	_, err = store.CompleteCallback(t.Context(), b.Pool, "token", []byte(`{}`))
	require.NoError(t, err)
	_, err = conn.Conn().WaitForNotification(ctx)
	require.NoError(t, err, "when it came")
	b.exec(`SELECT daybook.check_waits()`)
	_, err = conn.Conn().WaitForNotification(ctx)
	require.NoError(t, err, "when it was decided, by whichever worker")
	assert.True(t, func() (due bool) {
		require.NoError(t, b.Pool.QueryRow(t.Context(),
			`SELECT ready_at <= clock_timestamp() FROM daybook.jobs WHERE id = $1`, job).Scan(&due))
		return due
	}())
}
