package jobs_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestLongAttemptsThatAreStoppedAreCounted: a job that takes longer than its processes live ends as
// a dead letter that names the cause.
func TestLongAttemptsThatAreStoppedAreCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reached := make(chan struct{}, 1)
	jobs.Register(b.registry, jobs.Policy{MaxAttempts: 2}, func(ctx context.Context, _ *jobs.Job[greet]) error {
		reached <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	for range 2 {
		e := engine.NewJobs(b.store, b.registry, engine.Options{
			Log: slog.New(slog.DiscardHandler), Grace: 20 * time.Millisecond, CountStopped: time.Millisecond,
		})
		stop := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			_, err := e.Process(context.Background(),
				engine.TurnRequest{Turn: b.turn(), Batch: 50, Length: time.Minute, Stop: stop})
			done <- err
		}()
		<-reached
		close(stop)
		require.NoError(t, <-done)
		e.Close()
		b.exec(`UPDATE daybook.jobs SET ready_at = clock_timestamp() WHERE state = 'pending'`)
	}
	j := b.row(id)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, 2, j.RunCount)
	assert.Equal(t, 2, b.count(`SELECT count(*) FROM daybook.attempts WHERE job_id = $1 AND error_code = 'WORKER_LOST' AND error LIKE 'the worker was stopped%'`, id))
}
