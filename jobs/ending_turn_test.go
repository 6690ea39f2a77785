package jobs_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// TestTurnThatEndsKeepsNoWorkFromOthers has a turn that was told to stop wait for its handler,
// while another turn of the process lingers: what comes then is worked at once, one job after the
// other, though the first turn has waited longest and is told first.
func TestTurnThatEndsKeepsNoWorkFromOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reached, proceed := make(chan struct{}), make(chan struct{})
	jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
		if job.Payload.Name == "slow" {
			close(reached)
			<-proceed
		}
		return nil
	})
	ending := b.linger(b.engine)
	b.enqueue(greet{Name: "slow"}, queue.JobOptions{})
	receive(t, reached)
	ending.stop()
	other := b.linger(b.engine)
	for n := range 20 {
		b.enqueue(greet{Name: "quick"}, queue.JobOptions{})
		b.until(n+1, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`)
	}
	close(proceed)
	require.Equal(t, 1, ending.end().Completed)
	other.end()
}
