package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// However many jobs have ended, the status of all organizations reads a part of them, estimates how
// many they are, and says so. What is open or failed is counted, and so is all of one organization.
// The rows have a page each.
func TestStatusReadsAPartOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	const completed, cancelled, most = 9000, 3000, 4096
	b := setup(t)
	b.exec(`ALTER TABLE daybook.jobs SET (autovacuum_enabled = false)`)
	b.exec(`ALTER TABLE daybook.jobs ALTER payload SET STORAGE PLAIN`)
	b.exec(`INSERT INTO daybook.jobs (org_id, type, payload, state, finished_at)
SELECT 'o', 'noop', jsonb_build_object('a', repeat('x', 5500)), CASE WHEN g % 4 = 0 THEN 'cancelled' ELSE 'completed' END::daybook.job_state, now() FROM generate_series(1, $1) g`, completed+cancelled)
	b.inQueue("p", "", 7)
	b.exec(`UPDATE daybook.jobs SET state = 'failed', finished_at = now(), last_error = 'no', last_error_code = 'HANDLER_ERROR'
 WHERE id IN (SELECT id FROM daybook.jobs WHERE state = 'pending' LIMIT 2)`)
	b.exec(`ANALYZE daybook.jobs`)
	jobs := func(org string) store.QueueStatus {
		all, err := store.Status(t.Context(), b.Pool, org)
		require.NoError(t, err)
		return all[1]
	}
	var s store.QueueStatus
	pages := b.jobPages(b.Pool, func() { s = jobs("") })
	assert.Equal(t, "jobs", s.Kind)
	assert.Less(t, pages, int64(most*5/4), "pages read, of 12,000")
	assert.Equal(t, []models.JobState{models.JobCompleted, models.JobCancelled}, s.Estimated)
	assert.InEpsilon(t, completed, s.Counts[models.JobCompleted], 0.2)
	assert.InEpsilon(t, cancelled, s.Counts[models.JobCancelled], 0.25)
	assert.Equal(t, int64(5), s.Counts[models.JobPending])
	assert.Equal(t, int64(2), s.Counts[models.JobFailed])
	assert.Equal(t, int64(2), s.FailedByCode["HANDLER_ERROR"])
	own := jobs("o")
	assert.Empty(t, own.Estimated)
	assert.Equal(t, int64(completed), own.Counts[models.JobCompleted])
	assert.Zero(t, own.Counts[models.JobFailed])
	p := jobs("p")
	assert.Zero(t, p.Counts[models.JobCompleted])
	assert.Equal(t, int64(5), p.Due)
	assert.Equal(t, int64(2), p.Counts[models.JobFailed])
}
