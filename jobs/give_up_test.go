package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/jobs"
)

// TestTurnThatWasGivenUpKeepsNothingWaiting: a turn that Temporal has given to another worker gives
// back what it has not begun, although jobs of its own go on.
func TestTurnThatWasGivenUpKeepsNothingWaiting(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begun, end := b.untilTold(1)
	b.enqueueFor(org, 2, 3)
	turn := b.turn()
	n, err := b.engine.Lease(t.Context(), turn, 50, nil)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	alive := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := b.engine.Process(t.Context(),
			engine.TurnRequest{Turn: turn, Batch: 50, Length: time.Minute, Alive: func() bool {
				select {
				case <-alive:
					return false
				default:
					return true
				}
			}})
		done <- err
	}()
	receive(t, begun)
	close(alive)
	assert.Eventually(t, func() bool {
		return b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'leased'`) == 1
	}, pgtest.Patience, 50*time.Millisecond)
	close(end)
	require.NoError(t, receive(t, done))
}

// TestOtherProcessesLearnOfWhatIsGivenBack: what a worker gives back that is stopped is begun by
// another process at once, and not when that looks by itself, 50 seconds after its last scan.
func TestOtherProcessesLearnOfWhatIsGivenBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begun := make(chan struct{}, 10)
	jobs.Register(b.registry, jobs.Policy{},
		func(context.Context, *jobs.Job[greet]) error { begun <- struct{}{}; return nil })
	b.enqueueFor(org, 2, 1)
	turn := b.turn()
	n, err := b.engine.Lease(t.Context(), turn, 50, nil)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	other := b.worker(b.registry)
	ended, next := make(chan error, 1), b.turn()
	go func() {
		_, err := other.Process(t.Context(), engine.TurnRequest{Turn: next, Batch: 50, Wait: time.Hour})
		ended <- err
	}()
	b.untilQuiet()
	began := time.Now()
	n, err = b.engine.ReleaseTurn(t.Context(), turn)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	receive(t, begun)
	assert.Less(t, time.Since(began), 30*time.Second)
	require.NoError(t, receive(t, ended))
}
