package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/jobs"
)

// TestLeaseLeavesAFullType: a type of which as many are leased as may be over all processes keeps
// no lease busy.
func TestLeaseLeavesAFullType(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.Register(b.registry, jobs.Policy{Parallel: 4, ParallelEverywhere: 2},
		func(context.Context, *jobs.Job[greet]) error { return nil })
	b.enqueueFor(org, 2, 5)
	for _, want := range []int{2, 0} {
		ctx, cancel := context.WithTimeout(t.Context(), long)
		began := time.Now()
		n, err := b.engine.Lease(ctx, b.turn(), 50, nil)
		cancel()
		require.NoError(t, err)
		assert.Equal(t, want, n)
		assert.Less(t, time.Since(began), long/2)
	}
}

// untilTold registers a handler that tells begun when it is called, and goes on until end is closed
// or its context ends.
func (b *bundle) untilTold(parallel int) (begun, end chan struct{}) {
	begun, end = make(chan struct{}, 10), make(chan struct{})
	jobs.Register(b.registry, jobs.Policy{Parallel: parallel}, func(ctx context.Context, _ *jobs.Job[greet]) error {
		begun <- struct{}{}
		select {
		case <-end:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	return begun, end
}

// TestWaitingJobsThatWereGivenBackTakeNoRoom: when a turn ends without the jobs that go on, those
// that had waited for room in it are another turn's, and take no room of theirs.
func TestWaitingJobsThatWereGivenBackTakeNoRoom(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begun, end := b.untilTold(2)
	b.enqueueFor(org, 2, 4)
	turn := b.turn()
	n, err := b.engine.Lease(t.Context(), turn, 50, nil)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	r, err := b.engine.Process(t.Context(),
		engine.TurnRequest{Turn: turn, Batch: 50, Length: 2 * time.Second, Linger: true})
	require.NoError(t, err)
	require.Equal(t, 2, r.Released)
	receive(t, begun)
	receive(t, begun)
	end <- struct{}{}
	b.until(1, completed)
	b.linger(b.engine)
	receive(t, begun) // beside the second one
	close(end)
}
