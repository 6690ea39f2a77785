package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestCancelOfARunningJob: docs/jobs.md says that the handler is not told. Its context goes on, also when its lease has been renewed since, and it may
// report progress; what it wanted to commit is left out.
func TestCancelOfARunningJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE greeted (name text)`)
	began, goOn := make(chan struct{}), make(chan struct{})
	var ended, progress error
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{Timeout: time.Minute}, func(ctx context.Context, job *jobs.Job[greet]) error {
		close(began)
		<-goOn
		ended, progress = ctx.Err(), job.Progress(ctx, 50)
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO greeted VALUES ('Ada')`)
			return err
		})
		return nil
	})
	e := engine.NewJobs(store.NewQueue(b.Pool, store.Jobs), engine.HandlersOf(registry), engine.Options{RenewEvery: 20 * time.Millisecond})
	t.Cleanup(e.Close)
	id := b.enqueue(greet{}, queue.JobOptions{})
	over := make(chan error, 1)
	turn := b.turn()
	go func() {
		_, err := e.Process(context.Background(), engine.TurnRequest{Turn: turn, Batch: 50, Length: time.Minute})
		over <- err
	}()
	<-began
	require.Eventually(t, func() bool { return b.row(id).State == models.JobLeased }, 10*time.Second, 5*time.Millisecond)
	r, err := queue.CancelJob(t.Context(), b.Pool, id)
	require.NoError(t, err)
	assert.Equal(t, queue.Cancelling, r.Result)
	// As old as a lease is when it is renewed: twice.
	for range 2 {
		b.exec(`UPDATE daybook.jobs SET last_attempted_at = clock_timestamp() - interval '5 seconds'`)
		require.Eventually(t, func() bool {
			return b.count(`SELECT count(*) FROM daybook.jobs WHERE last_attempted_at > clock_timestamp() - interval '4 seconds'`) == 1
		}, 10*time.Second, 5*time.Millisecond)
	}
	close(goOn)
	require.NoError(t, <-over)
	require.NoError(t, ended, "the handler's context goes on")
	require.NoError(t, progress)
	assert.Equal(t, models.JobCancelled, b.row(id).State)
	assert.Zero(t, b.count(`SELECT count(*) FROM greeted`))
}
