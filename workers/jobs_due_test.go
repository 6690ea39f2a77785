package workers_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
)

type slowJob struct{ N int }

func (slowJob) JobType() string { return "slow_job" }

func stateOf(t *testing.T, pool *pgxpool.Pool, id string) (state string, runs int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT state::text, run_count FROM daybook.jobs WHERE id = $1`,
		id).Scan(&state, &runs))
	return state, runs
}

// TestDueRunIsAnsweredBeforeItsJobsEnd: a job that takes longer than the request is not cancelled,
// and what is not begun is given back.
func TestDueRunIsAnsweredBeforeItsJobsEnd(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	r := jobs.NewRegistry()
	began, finish := make(chan struct{}, 2), make(chan struct{})
	var cancelled atomic.Bool
	jobs.Register(r, jobs.Policy{Timeout: 5 * time.Minute, Parallel: 1},
		func(ctx context.Context, _ *jobs.Job[slowJob]) error {
			began <- struct{}{}
			select {
			case <-finish:
			case <-ctx.Done():
				cancelled.Store(true)
			}
			return ctx.Err()
		})
	due, err := workers.NewDueJobs(workers.DueJobsOptions{Pool: db.Pool, Registry: r, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer due.Close()
	first, err := queue.EnqueueJob(t.Context(), db.Pool, "acme", slowJob{1}, queue.JobOptions{})
	require.NoError(t, err)
	second, err := queue.EnqueueJob(t.Context(), db.Pool, "acme", slowJob{2}, queue.JobOptions{})
	require.NoError(t, err)
	request, end := context.WithCancel(t.Context())
	go func() {
		<-began
		end()
	}()

	report, err := due.Run(request, 10)

	require.NoError(t, err)
	assert.Equal(t, workers.DueReport{Running: 1}, report)
	state, _ := stateOf(t, db.Pool, first.ID)
	assert.Equal(t, "leased", state)
	state, runs := stateOf(t, db.Pool, second.ID)
	assert.Equal(t, "pending", state, "it had not begun")
	assert.Zero(t, runs)
	close(finish)
	require.Eventually(t, func() bool {
		state, runs := stateOf(t, db.Pool, first.ID)
		return state == "completed" && runs == 1
	}, pgtest.Patience, 20*time.Millisecond)
	assert.False(t, cancelled.Load())
	var run string
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT workflow_run_id FROM daybook.attempts WHERE job_id = $1`,
		first.ID).Scan(&run))
	assert.Empty(t, run, "no workflow works it")
}

// TestDueClosesGracefully: Close waits for what runs.
func TestDueClosesGracefully(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	r := jobs.NewRegistry()
	began, finish := make(chan struct{}, 1), make(chan struct{})
	jobs.Register(r, jobs.Policy{Timeout: 5 * time.Minute}, func(context.Context, *jobs.Job[slowJob]) error {
		began <- struct{}{}
		<-finish
		return nil
	})
	due, err := workers.NewDueJobs(workers.DueJobsOptions{Pool: db.Pool, Registry: r, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	job, err := queue.EnqueueJob(t.Context(), db.Pool, "acme", slowJob{1}, queue.JobOptions{})
	require.NoError(t, err)
	request, end := context.WithCancel(t.Context())
	go func() {
		<-began
		end()
	}()
	_, err = due.Run(request, 10)
	require.NoError(t, err)
	time.AfterFunc(100*time.Millisecond, func() { close(finish) })

	due.Close()

	state, _ := stateOf(t, db.Pool, job.ID)
	assert.Equal(t, "completed", state)
	_, err = due.Run(t.Context(), 10)
	require.ErrorContains(t, err, "closed")
}

// TestDueRunsBesideClose: runs that are asked for while the others are closed are refused, or have
// ended when Close returns.
func TestDueRunsBesideClose(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	r := jobs.NewRegistry()
	var closed, late atomic.Bool
	jobs.Register(r, jobs.Policy{}, func(context.Context, *jobs.Job[slowJob]) error {
		if closed.Load() {
			late.Store(true)
		}
		return nil
	})
	due, err := workers.NewDueJobs(workers.DueJobsOptions{Pool: db.Pool, Registry: r, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	var callers sync.WaitGroup
	ran := make(chan struct{}, 100)
	for n := range 4 {
		callers.Go(func() {
			for {
				_, err := queue.EnqueueJob(t.Context(), db.Pool, "acme", slowJob{n}, queue.JobOptions{})
				assert.NoError(t, err)
				if _, err := due.Run(t.Context(), 1); err != nil {
					assert.ErrorIs(t, err, workers.ErrClosed)
					return
				}
				select {
				case ran <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 8 {
		<-ran
	}
	due.Close()
	closed.Store(true)
	callers.Wait()
	assert.False(t, late.Load(), "a handler ran after Close")
	var leased int
	require.NoError(t, db.Pool.QueryRow(t.Context(),
		`SELECT count(*) FROM daybook.jobs WHERE state = 'leased'`).Scan(&leased))
	assert.Zero(t, leased)
}
