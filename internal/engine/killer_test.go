package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// killer is a ledger that never comes back from one document, as if its worker had died there.
type killer struct {
	engine.Processor
	document string
	met      chan struct{}
	revive   chan struct{}
	mu       sync.Mutex
	sizes    []int
}

func (k *killer) Prepare(ctx context.Context, jobs []engine.Job) (engine.Commit, error) {
	k.mu.Lock()
	k.sizes = append(k.sizes, len(jobs))
	k.mu.Unlock()
	for _, j := range jobs {
		if j.DocumentID == k.document {
			k.met <- struct{}{}
			<-k.revive
		}
	}
	return k.Processor.Prepare(ctx, jobs)
}

// TestDocumentThatKillsItsWorkerEndsAlone lets one document of fifty kill one worker after the
// other. In the end all the dead wake up, and none of them commits anything.
func TestDocumentThatKillsItsWorkerEndsAlone(t *testing.T) {
	t.Parallel()
	k := &killer{Processor: ledger.New(nil), document: "doc-30", met: make(chan struct{}), revive: make(chan struct{})}
	b := setupWith(t, k, engine.Options{ChunkSize: 50})
	fixture.ManyReady(t, b.Pool, org, "doc-", 50)
	b.lease(1, 50)

	var dead []<-chan engine.Report
	for alive := true; alive; {
		r := request(1)
		r.Crashed = len(dead) > 0
		done := b.processing(b.engine, r)
		select {
		case <-k.met:
			require.Less(t, len(dead), 20, "it must end")
			dead = append(dead, done)
		case <-done:
			alive = false
		case <-time.After(pgtest.Patience):
			require.Fail(t, "the turn neither died nor ended")
		}
	}

	assert.Len(t, dead, 8, "twice among others, then six times alone")
	b.assertJob("doc-30", models.JobFailed, 6, models.CodeWorkerLost)
	const completed = `SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed' AND run_count = 1`
	assert.Equal(t, 49, fixture.Count(t, b.Pool, completed), "no other job was charged")
	attempts := fixture.Attempts(t, b.Pool, org, "doc-30")
	require.Len(t, attempts, 6)
	for i, a := range attempts {
		assert.Equal(t, models.OutcomeLost, a.Outcome)
		assert.Equal(t, i+1, a.Attempt)
	}
	assert.Equal(t, 50, k.sizes[0])
	assert.Equal(t, 5, k.sizes[1], "after one reclaim, a tenth")
	assert.Equal(t, 1, k.sizes[len(k.sizes)-1], "after two, one by one")

	close(k.revive)
	for _, done := range dead {
		<-done
	}
	assert.Equal(t, 49, fixture.Count(t, b.Pool, completed))
	assert.Equal(t, 49, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts`))
}

// TestDocumentThatKillsAWaitingTurnEndsAlone: a document that ends the worker of a turn which waits
// is charged as in any other turn.
func TestDocumentThatKillsAWaitingTurnEndsAlone(t *testing.T) {
	t.Parallel()
	k := &killer{Processor: ledger.New(nil), document: "doc-3", met: make(chan struct{}), revive: make(chan struct{})}
	b := setupWith(t, k, engine.Options{ChunkSize: 50})
	fixture.ManyReady(t, b.Pool, org, "doc-", 5)

	dead := 0
	ended := make(chan engine.Report, 30)
	for alive := true; alive; {
		again := dead > 0
		go func() {
			r, err := b.engine.Process(t.Context(), engine.TurnRequest{
				Turn: store.Turn{ID: "run/0/1", Worker: "w"}, Batch: 50, Wait: time.Minute, Fresh: !again, Crashed: again,
			})
			assert.NoError(t, err)
			ended <- r
		}()
		select {
		case <-k.met:
			dead++
			require.Less(t, dead, 20, "it must end")
		case <-ended:
			alive = false
		case <-time.After(pgtest.Patience):
			require.Fail(t, "the turn neither died nor ended")
		}
	}
	b.assertJob("doc-3", models.JobFailed, 6, models.CodeWorkerLost)
	assert.Equal(t, 4, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed' AND run_count = 1`))
	close(k.revive)
	for range dead {
		<-ended
	}
	assert.Equal(t, 4, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts`))
}

// TestSlowProcessor works jobs side by side, leases only what it can start, and is charged for each
// job that it began.
func TestSlowProcessor(t *testing.T) {
	t.Parallel()
	g := newGate()
	b := setupWith(t, g, engine.Options{Slow: true, ChunkSize: 1, Parallel: 3})
	fixture.ManyReady(t, b.Pool, org, "doc-", 7)

	assert.Equal(t, 3, b.lease(1, 3))
	done := b.processing(b.engine, request(1))
	for range 3 {
		<-g.reached
	}
	const leased = `SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'leased' AND working`
	assert.Equal(t, 3, fixture.Count(t, b.Pool, leased))
	// The worker is lost in all three.
	r := request(1)
	r.Crashed = true
	successor := b.processing(b.engine, r)
	for range 3 {
		<-g.reached
	}
	close(g.proceed)
	completed := (<-done).Completed + (<-successor).Completed
	// A turn that does not linger leaves to the next one what the lost worker has locked at that
	// moment.
	next := 1
	require.Eventually(t, func() bool {
		if completed < 7 {
			next++
			completed += b.work(next).Completed
		}
		return completed >= 7
	}, pgtest.Patience, 20*time.Millisecond)
	assert.Equal(t, 7, completed)
	assert.Equal(t, 3, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE outcome = 'lost'`))
	assert.Equal(t, 7, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts`))
}
