package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestCallEndsWithItsLease has another turn take a job while its handler runs: the next renewal
// ends the call.
func TestCallEndsWithItsLease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, _ *jobs.Job[greet]) error {
		_, err := b.Pool.Exec(ctx, `UPDATE daybook.jobs SET turn_id = 'another/0/1', fence = fence + 1`)
		assert.NoError(t, err)
		select {
		case <-ctx.Done():
			assert.ErrorIs(t, ctx.Err(), context.Canceled)
		case <-time.After(time.Minute):
			assert.Fail(t, "the call goes on")
		}
		return ctx.Err()
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	e := b.renewing()
	_, err := e.Process(t.Context(), engine.TurnRequest{Turn: b.turn(), Batch: 50, Length: time.Minute})
	require.NoError(t, err)
	row := b.row(id)
	assert.Equal(t, models.JobLeased, row.State)
	assert.Zero(t, row.Attempts)
}
