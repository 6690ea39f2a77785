package jobs_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// builds are two versions of one program, which note what they work.
type builds struct {
	mu sync.Mutex
	// worked counts jobs by the version that worked them and the lowest version that they may have.
	worked map[[2]int]int
}

// build is a worker of a version.
func (n *builds) build(b *bundle, version int) *engine.Engine {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{Version: version, Base: time.Second}, func(_ context.Context, job *jobs.Job[greet]) error {
		var needs int
		_, _ = fmt.Sscanf(job.Payload.Name, "needs %d", &needs)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.worked[[2]int{version, needs}]++
		if job.Attempt == 1 && job.ID[len(job.ID)-1]%7 == 0 {
			return assert.AnError // it is tried again
		}
		return nil
	})
	name := fmt.Sprintf("build %d", version)
	require.NoError(b.t, b.store.NoteJobWorker(b.t.Context(), store.JobWorker{
		ID: name, Name: name, Types: registry.Names(), Versions: registry.Versions(),
	}))
	e := b.worker(registry)
	b.lanes(3, e, name)
	return e
}

// TestRollingDeployment: while an older and a newer build of a program work side by side, under
// load, jobs that need the newer one are worked by it alone, and nothing waits once it is there.
func TestRollingDeployment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.set_queue('bank')`)
	n := &builds{worked: map[[2]int]int{}}
	n.build(b, 1)
	enqueue := func(count, minVersion int, o queue.JobOptions) {
		o.MinVersion = minVersion
		list := make([]queue.NewJob, count)
		for i := range list {
			list[i] = queue.NewJob{
				OrgID: fmt.Sprintf("org %d", i%5), Payload: greet{Name: fmt.Sprintf("needs %d", minVersion)}, Options: o,
			}
		}
		_, err := queue.EnqueueJobs(t.Context(), b.Pool, list)
		require.NoError(t, err)
	}
	left := func(version int) int {
		return b.count(`SELECT count(*) FROM daybook.jobs WHERE state <> 'completed' AND coalesce(min_version, 0) = $1`, version)
	}
	for range 10 {
		enqueue(20, 0, queue.JobOptions{})
		enqueue(20, 1, queue.JobOptions{})
		enqueue(20, 2, queue.JobOptions{})
		enqueue(20, 2, queue.JobOptions{Queue: "bank", Priority: queue.High})
		b.enqueue(greet{Name: "needs 2"}, queue.JobOptions{MinVersion: 2})
	}
	require.Eventually(t, func() bool { return left(0) == 0 && left(1) == 0 }, time.Minute, 50*time.Millisecond)
	assert.Equal(t, 410, left(2), "the older build leaves them alone")
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.jobs WHERE min_version = 2 AND (run_count > 0 OR state <> 'pending')`))

	n.build(b, 2)
	for range 10 {
		enqueue(20, 0, queue.JobOptions{})
		enqueue(20, 2, queue.JobOptions{})
	}
	require.Eventually(t, func() bool { return left(0)+left(1)+left(2) == 0 }, time.Minute, 50*time.Millisecond)
	n.mu.Lock()
	defer n.mu.Unlock()
	assert.Zero(t, n.worked[[2]int{1, 2}], "an older build worked what it may not")
	assert.GreaterOrEqual(t, n.worked[[2]int{2, 2}], 610)
}

// TestMinVersionStays: a dead letter that is tried again, or edited, still needs its version, and a
// unique job gets the higher one.
func TestMinVersionStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.Register(b.registry, jobs.Policy{Version: 1}, func(context.Context, *jobs.Job[greet]) error { return nil })
	id := b.enqueue(greet{}, queue.JobOptions{MinVersion: 2})
	b.exec(`UPDATE daybook.jobs SET state = 'failed', run_count = 1, last_error = 'e', last_error_code = 'X', finished_at = now()`)
	_, err := queue.EditJob(t.Context(), b.Pool, id, greet{Name: "other"}, queue.EditOptions{Retry: queue.RetryNow})
	require.NoError(t, err)
	unique := queue.JobOptions{Unique: true}
	one := b.enqueue(greet{Name: "one"}, unique)
	unique.MinVersion = 3
	require.Equal(t, one, b.enqueue(greet{Name: "one"}, unique))
	assert.Zero(t, b.work().Leased)
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE id = $1 AND min_version = 3`, one))
	_, err = queue.EnqueueJob(t.Context(), b.Pool, org, greet{}, queue.JobOptions{MinVersion: -1})
	require.ErrorIs(t, err, queue.ErrInvalidMinVersion)
	_, err = b.Pool.Exec(t.Context(), `SELECT daybook.enqueue_job('o', 't', '{}', min_version => 0)`)
	require.ErrorContains(t, err, "DB010")
	_, err = b.Pool.Exec(t.Context(), `SELECT daybook.enqueue_jobs('{o}', '{t}', ARRAY['{}'::jsonb], min_versions => '{0}')`)
	require.ErrorContains(t, err, "DB010")
}

// TestOlderWorkerGivesBackWhatItsTurnHeld: Temporal gives a turn of a newer worker that died to an
// older one, which finds the leased job and must not work it.
func TestOlderWorkerGivesBackWhatItsTurnHeld(t *testing.T) {
	t.Parallel()
	b := setup(t)
	worked := false
	jobs.Register(b.registry, jobs.Policy{Version: 1}, func(context.Context, *jobs.Job[greet]) error {
		worked = true
		return nil
	})
	id := b.enqueue(greet{}, queue.JobOptions{MinVersion: 2})
	turn := b.turn()
	b.exec(`
UPDATE daybook.jobs SET state = 'leased', working = true, run_count = 1, turn_id = $1, fence = 0, leased_generation = generation, worker = 'newer',
       attempt_started_at = now(), last_attempted_at = now()`, turn.ID)
	_, err := b.engine.Process(t.Context(), engine.TurnRequest{Turn: turn, Batch: 50, Length: 2 * time.Second})
	require.NoError(t, err)
	assert.False(t, worked)
	assert.Equal(t, models.JobPending, b.row(id).State)
}
