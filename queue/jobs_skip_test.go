package queue_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// firing enqueues as a firing of a schedule does, under a key of its own.
func (b *bundle) firing(q store.Querier, key string) store.EnqueuedJob {
	r, err := store.EnqueueJob(b.t.Context(), q, store.NewJob{
		OrgID: org, Type: "welcome", Payload: []byte(`{}`), IdempotencyKey: key, SkipWhileOpen: "schedule/nightly",
	})
	assert.NoError(b.t, err)
	return r
}

// TestJobThatIsSkippedWhileOneIsOpen enqueues a job of a key while one is in each of its states.
func TestJobThatIsSkippedWhileOneIsOpen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state models.JobState
		want  string
	}{
		{"", "skipped"},
		{models.JobPending, "skipped"},
		{models.JobLeased, "skipped"},
		{models.JobCompleted, "enqueued"},
		{models.JobFailed, "enqueued"},
		{models.JobCancelled, "enqueued"},
	} {
		b := setup(t)
		first := b.firing(b.Pool, "1")
		require.Equal(t, "enqueued", first.Result)
		if c.state != "" {
			b.end(first.JobID, c.state)
		}
		before := b.queued(first.JobID)
		second := b.firing(b.Pool, "2")
		assert.Equal(t, c.want, second.Result, c.state)
		assert.Equal(t, c.want == "skipped", second.JobID == first.JobID, c.state)
		assert.Equal(t, before, b.queued(first.JobID), "nothing is asked of the open job")
		assert.Equal(t, "unchanged", b.firing(b.Pool, "1").Result, "a firing that is executed twice")
		assert.Equal(t, queue.Enqueued, b.newJob(welcome{}, queue.JobOptions{Unique: true}).Result,
			"a unique job of the same payload is another")
	}
}

// TestFiringsAtOnce has twelve firings enqueue at the same moment.
func TestFiringsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var all sync.WaitGroup
	results := make([]store.EnqueuedJob, 12)
	for i := range results {
		all.Go(func() { results[i] = b.firing(b.Pool, fmt.Sprint(i)) })
	}
	all.Wait()
	count := map[string]int{}
	for _, r := range results {
		count[r.Result]++
		assert.Equal(t, results[0].JobID, r.JobID)
	}
	assert.Equal(t, map[string]int{"enqueued": 1, "skipped": 11}, count)
	assert.Equal(t, 1, b.queuedJobs())
}

// TestFiringBetweenCompletionAndCommit comes while the transaction that ends the open job is not
// committed: it waits for that, and enqueues a job if the commit succeeds.
func TestFiringBetweenCompletionAndCommit(t *testing.T) {
	t.Parallel()
	for _, commits := range []bool{true, false} {
		b := setup(t)
		first := b.firing(b.Pool, "1")
		tx, err := b.Pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(),
			`UPDATE daybook.jobs SET state = 'completed', run_count = 1, finished_at = clock_timestamp() WHERE id = $1`,
			first.JobID)
		require.NoError(t, err)
		answer := make(chan store.EnqueuedJob, 1)
		go func() { answer <- b.firing(b.Pool, "2") }()
		require.Eventually(t, func() bool {
			var waiting int
			err := b.Pool.QueryRow(t.Context(),
				`SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'`, b.Name).Scan(&waiting)
			return err == nil && waiting == 1
		}, pgtest.Patience, 5*time.Millisecond, "the firing waits for the transaction")
		if commits {
			require.NoError(t, tx.Commit(t.Context()))
			assert.Equal(t, "enqueued", (<-answer).Result)
		} else {
			require.NoError(t, tx.Rollback(t.Context()))
			assert.Equal(t, store.EnqueuedJob{JobID: first.JobID, Duplicate: true, Result: "skipped"}, <-answer)
		}
	}
}
