package jobs_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// TestTurnThatDoesNotLingerReadsEverything: a turn that is to end when nothing is due waits for the
// scan that tells it so. Each job has been due for longer than a recent scan reaches back, and the
// full scan of the turn before has put the next one off.
func TestTurnThatDoesNotLingerReadsEverything(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error { return nil })
	for round := range 20 {
		b.enqueue(greet{}, queue.JobOptions{})
		b.exec(`UPDATE daybook.jobs SET ready_at = clock_timestamp() - interval '1 hour' WHERE state = 'pending'`)
		require.Equal(t, 1, b.work().Completed, "round %d", round)
	}
}
