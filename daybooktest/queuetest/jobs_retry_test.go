package queuetest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestRetriedDeadLetterRuns mends the cause of a dead letter whose attempts are used up.
func TestRetriedDeadLetterRuns(t *testing.T) {
	t.Parallel()
	for _, mode := range []queue.RetryMode{queue.RetryNow, queue.RetryReset} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			broken := true
			registry := jobs.NewRegistry()
			jobs.Register(registry, jobs.Policy{MaxAttempts: 1}, func(context.Context, *jobs.Job[greet]) error {
				if broken {
					return errors.New("no luck")
				}
				return nil
			})
			id := b.enqueue(b.Pool, greet{}, queue.JobOptions{})
			assert.Equal(t, models.JobFailed, queuetest.DrainJobs(t, b.Pool, registry, queuetest.JobsOptions{}).Jobs[0].State)
			broken = false
			_, err := queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{Mode: mode})
			require.NoError(t, err)
			queuetest.DrainJobs(t, b.Pool, registry, queuetest.JobsOptions{}).RequireCompleted(t)
		})
	}
}
