package jobs_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// patience bounds what a test waits for, on a machine that has much else to do.
const patience = 30 * time.Second

// What is asked of a unique job while it runs is done after the attempt, which may have read what
// is old by now.
func TestUniqueIsAskedWhileItRuns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE source (v int); CREATE TABLE total (v int)`)
	b.exec(`INSERT INTO source VALUES (1); INSERT INTO total VALUES (0)`)
	read, goOn := make(chan struct{}, 2), make(chan struct{}, 2)
	jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, _ *jobs.Job[greet]) error {
		var v int
		if err := b.Pool.QueryRow(ctx, `SELECT v FROM source`).Scan(&v); err != nil {
			return err
		}
		read <- struct{}{}
		<-goOn
		_, err := b.Pool.Exec(ctx, `UPDATE total SET v = $1`, v)
		return err
	})
	unique := queue.JobOptions{Unique: true}
	first := b.enqueue(greet{Name: "refresh"}, unique)
	done := make(chan engine.Report, 1)
	go func() { done <- b.work() }()
	<-read
	b.exec(`UPDATE source SET v = 2`)
	for range 3 {
		e, err := queue.EnqueueJob(t.Context(), b.Pool, org, greet{Name: "refresh"}, unique)
		require.NoError(t, err)
		assert.Equal(t, queue.EnqueuedJob{ID: first, Duplicate: true, Result: queue.Coalesced}, e)
	}
	goOn <- struct{}{}
	goOn <- struct{}{}
	report := <-done

	assert.Equal(t, 2, b.count(`SELECT v FROM total`))
	assert.Equal(t, 2, report.Completed, "several requests during one attempt are one")
	assert.Equal(t, models.JobCompleted, b.row(first).State)
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs`))
}

// A unique job that waits is not begun before the transaction that asked for it again has ended:
// its attempt sees what that wrote.
func TestUniqueWaitsForWhoAsks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE source (v int)`)
	b.exec(`INSERT INTO source VALUES (1)`)
	var read atomic.Int64
	jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, _ *jobs.Job[greet]) error {
		var v int64
		err := b.Pool.QueryRow(ctx, `SELECT v FROM source`).Scan(&v)
		read.Store(v)
		return err
	})
	first := b.enqueue(greet{}, queue.JobOptions{Unique: true})
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `UPDATE source SET v = 2`)
	require.NoError(t, err)
	e, err := queue.EnqueueJob(t.Context(), tx, org, greet{}, queue.JobOptions{Unique: true})
	require.NoError(t, err)
	assert.Equal(t, queue.EnqueuedJob{ID: first, Duplicate: true, Result: queue.Unchanged}, e)

	assert.Zero(t, b.work().Completed, "while the transaction is open")
	require.NoError(t, tx.Commit(t.Context()))
	// The turn before may have read the row, and left it to a full scan, which need not be due yet.
	require.Eventually(t, func() bool { return b.work().Completed == 1 }, long, 5*time.Millisecond)
	assert.EqualValues(t, 2, read.Load())
}

// A job that is cancelled before its handler began does not run: while its type has no room in a
// worker it waits in the queue.
func TestCancelledBeforeItBegan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ran sync.Map
	goOn := make(chan struct{})
	jobs.Register(b.registry, jobs.Policy{Parallel: 1}, func(_ context.Context, job *jobs.Job[greet]) error {
		ran.Store(job.Payload.Name, true)
		<-goOn
		return nil
	})
	first := b.enqueue(greet{Name: "first"}, queue.JobOptions{})
	second := b.enqueue(greet{Name: "second"}, queue.JobOptions{})
	done := make(chan engine.Report, 1)
	go func() { done <- b.work() }()
	require.Eventually(t, func() bool {
		_, begun := ran.Load("first")
		return begun
	}, patience, 10*time.Millisecond)
	r, err := queue.CancelJob(t.Context(), b.Pool, second)
	require.NoError(t, err)
	assert.Equal(t, queue.Cancelled, r.Result)
	close(goOn)
	<-done

	_, did := ran.Load("second")
	assert.False(t, did, "the handler of the cancelled job")
	assert.Equal(t, row{State: models.JobCancelled}, withoutWait(b.row(second)))
	assert.Equal(t, models.JobCompleted, b.row(first).State)
}

func withoutWait(r row) row {
	r.Wait = 0
	return r
}

// A job that is cancelled between its lease and the moment at which it is found that there is no
// room for it does not run either.
func TestCancelledBetweenLeaseAndBegin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cancelled, held, free := b.enqueue(greet{}, queue.JobOptions{}), b.enqueue(greet{}, queue.JobOptions{}),
		b.enqueue(greet{}, queue.JobOptions{})
	turn := b.turn()
	turn.Begins = true
	leased, err := b.store.LeaseFor(t.Context(), turn, 3, pgtest.Unbounded())
	require.NoError(t, err)
	require.Len(t, leased.Jobs, 3)
	r, err := queue.CancelJob(t.Context(), b.Pool, cancelled)
	require.NoError(t, err)
	require.Equal(t, queue.Cancelling, r.Result)
	require.NoError(t, b.store.MarkWaiting(t.Context(), turn, []string{cancelled, held, free}))
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT 1 FROM daybook.jobs WHERE id = $1 FOR NO KEY UPDATE`, held)
	require.NoError(t, err)

	begun, err := b.store.BeginWaiting(t.Context(), turn, []string{cancelled, held, free})
	require.NoError(t, err)
	assert.Equal(t, []string{free}, begun.Working)
	assert.Equal(t, []string{held}, begun.Held)
	assert.Equal(t, 1, begun.Cancelled)
	assert.Equal(t, row{State: models.JobCancelled}, withoutWait(b.row(cancelled)))
	require.NoError(t, tx.Rollback(t.Context()))
}
