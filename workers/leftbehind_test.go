package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// hold is a processor that waits at each document until the test lets it go on.
type hold struct {
	reached chan string
	proceed map[string]chan struct{}
}

func newHold(documents ...string) *hold {
	h := &hold{reached: make(chan string, 10), proceed: map[string]chan struct{}{}}
	for _, d := range documents {
		h.proceed[d] = make(chan struct{})
	}
	return h
}

func (h *hold) Prepare(ctx context.Context, job accounting.Job) (accounting.JobCommit, error) {
	h.reached <- job.DocumentID
	select {
	case <-h.proceed[job.DocumentID]:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// lock holds a document's queue row until it is called.
func (b *bundle) lock(document string) (unlock func()) {
	b.t.Helper()
	tx, err := b.Pool.Begin(b.t.Context())
	require.NoError(b.t, err)
	_, err = tx.Exec(b.t.Context(), `SELECT 1 FROM daybook.accounting_work_queue WHERE document_id = $1 FOR UPDATE`,
		document)
	require.NoError(b.t, err)
	return func() { require.NoError(b.t, tx.Rollback(b.t.Context())) }
}

// TestLeftBehindIsTakenByTheNextFetch ends a turn whose row another transaction holds locked, while
// another lane waits for work at a long poll interval.
func TestLeftBehindIsTakenByTheNextFetch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := newHold("inv-1")
	b.start(workers.AccountingOptions{JobProcessor: h})
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000))
	id := b.run(`{"pollIntervalSeconds": 3600}`)
	<-h.reached
	unlock := b.lock("inv-1")
	close(h.proceed["inv-1"])
	b.eventually("the turn has ended without its job", 30*time.Second,
		func() bool { return len(b.status(id).LeftBehind) > 0 })
	unlock()
	b.eventually("another turn has done it", 30*time.Second, func() bool { return b.states()[models.JobCompleted] == 1 })
	b.eventually("it is forgotten", 30*time.Second, func() bool { return len(b.status(id).LeftBehind) == 0 })
}

// TestExitWaitsForWhatWasLeftBehind has one of two lanes leave a job behind.
func TestExitWaitsForWhatWasLeftBehind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := newHold("inv-1", "inv-2")
	b.start(workers.AccountingOptions{JobProcessor: h})
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000), fixture.Invoice(org, "inv-2", 1000))
	id := b.run(`{"exitWhenEmpty": true, "batchSize": 1}`)
	<-h.reached
	<-h.reached
	unlock := b.lock("inv-1")
	close(h.proceed["inv-1"])
	b.eventually("a turn has ended without its job", 30*time.Second,
		func() bool { return len(b.status(id).LeftBehind) > 0 })
	close(h.proceed["inv-2"])
	b.eventually("the other job is done", 30*time.Second, func() bool { return b.states()[models.JobCompleted] == 1 })
	unlock()
	var counts models.RunCounts
	require.NoError(t, b.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), &counts))
	assert.Equal(t, map[models.JobState]int{models.JobCompleted: 2}, b.states())
}

// TestConfigureBeforeTheSettingsAreThere sends an update before any worker has answered.
func TestConfigureBeforeTheSettingsAreThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.run(`{}`)
	type answer struct {
		settings models.RunSettings
		err      error
	}
	got := make(chan answer, 1)
	go func() {
		s, err := b.configure(id, workflows.ConfigureInput{BatchSize: new(77)})
		got <- answer{s, err}
	}()
	b.start(workers.AccountingOptions{})
	a := <-got
	require.NoError(t, a.err)
	assert.Equal(t, models.RunSettings{BatchSize: 77, PollIntervalSeconds: 10, Concurrency: 3}, a.settings)
	assert.Equal(t, a.settings, b.status(id).Settings)
}
