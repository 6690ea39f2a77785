package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// beat is a job whose schedule fires while it is open.
type beat struct{}

func (beat) JobType() string { return "beat" }

// TestFiringsWhileTheJobIsOpen has a schedule fire twice while its job runs, and once after an
// attempt that is to be repeated in an hour.
func TestFiringsWhileTheJobIsOpen(t *testing.T) {
	s := setupSchedules(t)
	for overlap, want := range map[string]struct {
		running, after queue.Result
		attempts, jobs int
	}{
		"skip": {queue.Skipped, queue.Skipped, 2, 1},
		// The second attempt is what the firings asked for, so that the third firing finds no open job.
		"again": {queue.Coalesced, queue.Enqueued, 3, 2},
		"allow": {queue.Enqueued, queue.Enqueued, 5, 4},
	} {
		s.ok("schedules", "create", overlap, "--org", "acme-"+overlap, "--create", "--type", "beat", "--every", "1h",
			"--overlap", overlap, "--paused")
		assert.Equal(t, queue.Enqueued, s.trigger(overlap).Result, overlap)
		attempts := 0
		registry := jobs.NewRegistry()
		jobs.Register(registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[beat]) error {
			if attempts++; attempts > 1 {
				return nil
			}
			for range 2 {
				fired := s.trigger(overlap)
				assert.Equal(t, want.running, fired.Result, overlap)
				assert.Equal(t, want.running != queue.Enqueued, fired.JobID == job.ID, overlap)
			}
			return jobs.RetryAfter(time.Hour, assert.AnError)
		})
		queuetest.DrainJobs(t, s.Pool, registry, queuetest.JobsOptions{})
		last := s.trigger(overlap)
		assert.Equal(t, want.after, last.Result, overlap)
		listed, err := schedules.Describe(t.Context(), s.client, overlap)
		require.NoError(t, err)
		assert.Equal(t, schedules.Overlap(overlap), listed.Overlap)
		assert.Equal(t, last.Result, listed.LastResult)
		assert.Equal(t, last.JobID, listed.LastJobID)
		queuetest.DrainJobs(t, s.Pool, registry, queuetest.JobsOptions{Advance: 2 * time.Hour})
		assert.Equal(t, want.attempts, attempts, overlap)
		n := fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.jobs WHERE org_id = 'acme-`+overlap+`'`)
		assert.Equal(t, want.jobs, n, overlap)
	}
}
