package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// TestHandlersThatHoldAllConnections: handlers may hold every connection of the worker's pool for
// longer than a lease lasts. The worker renews its leases all the same, so that no other one works
// those jobs.
func TestHandlersThatHoldAllConnections(t *testing.T) {
	t.Parallel()
	b := setup(t)
	config := b.Pool.Config()
	config.MaxConns = 3
	small, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(small.Close)
	jobs.Register(b.registry, jobs.Policy{Parallel: 6}, func(ctx context.Context, _ *jobs.Job[greet]) error {
		_, err := small.Exec(ctx, `SELECT pg_sleep(14)`)
		return err
	})
	for range 3 {
		b.enqueue(greet{}, queue.JobOptions{})
	}
	b.lane(b.engineOn(small), 5*time.Second)
	require.Eventually(t, func() bool { return b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'leased'`) == 3 },
		long, time.Millisecond)
	b.engine.StartReclaiming()
	require.Eventually(t, func() bool { return b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`) == 3 }, 2*time.Minute, 100*time.Millisecond)
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.jobs WHERE run_count > 1`))
}
