package health_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// TestJobsInALineWait: jobs in the line of their key's limit wait, and are not due. Those whose limit
// no worker has looked at are due, as others are.
func TestJobsInALineWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.set_job_limit('mail', by => 'payload.a', parallel => 1)`)
	b.exec(`SELECT daybook.enqueue_job('acme', 'mail', '{"a": "k"}') FROM generate_series(1, 5);
UPDATE daybook.jobs SET ready_at = now() - interval '10 minutes'`)
	count := func() (due, waiting int64) {
		k, err := figures.Count(t.Context(), b.Pool, "jobs")
		require.NoError(t, err)
		all, err := store.Status(t.Context(), b.Pool, "")
		require.NoError(t, err)
		for _, s := range all {
			if s.Kind == "jobs" {
				assert.Equal(t, k.Due, s.Due)
				assert.Equal(t, k.Due > 0, s.OldestDue != nil)
				assert.Equal(t, k.Waiting, s.Waiting)
			}
		}
		return k.Due, k.Waiting
	}
	due, waiting := count()
	assert.Equal(t, []int64{5, 0}, []int64{due, waiting})
	assert.EqualValues(t, 5, one(t, b.check(), health.OldestDue).Count)

	b.exec(`SELECT daybook.check_waits()`)
	b.exec(`UPDATE daybook.jobs SET state = 'leased', run_count = 1, turn_id = 't', fence = 1, leased_generation = 0, attempt_started_at = now(), last_attempted_at = now()
 WHERE fleet >= 0`)
	due, waiting = count()
	assert.Equal(t, []int64{0, 4}, []int64{due, waiting})
	assert.Empty(t, of(b.check(), health.OldestDue))
}
