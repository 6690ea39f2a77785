package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/look"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestLeasesRelease shows expired leases of every queue and releases them.
func TestLeasesRelease(t *testing.T) {
	t.Parallel()
	b := posted(t)
	b.ok("accounting", "enqueue", "--create", "de", "stuck", "--version", "1")
	_, err := b.Pool.Exec(t.Context(), `SELECT daybook.enqueue_job('de', 'webhook', '{}')`)
	require.NoError(t, err)
	for _, table := range []string{"accounting_work_queue", "jobs"} {
		_, err := b.Pool.Exec(t.Context(), `
UPDATE daybook.`+table+`
   SET state = 'leased', turn_id = 'gone', worker = 'dead', fence = 1, leased_generation = generation, run_count = 1, working = true,
       attempt_started_at = now(), detached = true, last_attempted_at = now() - interval '11 seconds'
 WHERE state = 'pending'`)
		require.NoError(t, err)
	}
	_, err = b.Pool.Exec(t.Context(), `
SELECT queues.enqueue('email', '{}');
SELECT queues.dequeue_next_available_task();
UPDATE queues.open_task
   SET turn_id = 'gone', worker = 'dead', fence = 1, working = true, detached = true, leased_until = now() - interval '1 second', arrived = pg_current_xact_id()`)
	require.NoError(t, err)
	var shown struct{ Leases []store.LeaseGroup }
	b.json(&shown, "leases")
	require.Len(t, shown.Leases, len(store.Queues()))
	for _, g := range shown.Leases {
		assert.Equal(t, "dead", g.Worker)
		assert.EqualValues(t, 1, g.Expired)
		assert.True(t, g.Detached)
	}
	var released struct{ Queues []look.ReleasedLeases }
	b.json(&released, "leases", "release")
	var want []look.ReleasedLeases
	for _, q := range store.Queues() {
		want = append(want, look.ReleasedLeases{Kind: q.Name, Released: 1, Charged: 1})
	}
	assert.Equal(t, want, released.Queues)
	assert.Contains(t, b.ok("leases"), "nothing is leased")
	assert.Contains(t, b.ok("leases", "release"), "tasks: 0 leases released, 0 tasks charged with an attempt, 0 failed")
}
