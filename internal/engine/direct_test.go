package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

const exactlyOnce = `SELECT count(*) FROM daybook.accounting_work_queue q
 WHERE state = 'completed' AND run_count = 1
   AND (SELECT count(*) FROM daybook.impacts i WHERE i.job_id = q.id) = 1
   AND (SELECT count(*) FROM daybook.attempts a WHERE a.job_id = q.id AND a.outcome = 'completed') = 1`

// TestDirectlyWorkedJobsAreNeverLeased looks at the queue from outside while a refill is in its
// transaction.
func TestDirectlyWorkedJobsAreNeverLeased(t *testing.T) {
	t.Parallel()
	g := newGate()
	b := setupWith(t, g, engine.Options{Direct: true})
	fixture.ManyReady(t, b.Pool, org, "doc-", 20)
	done := b.processing(b.engine, request(1))
	<-g.reached
	assert.Equal(t, 20, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'pending'`))
	assert.Zero(t, b.lease(2, 50), "they are locked")
	close(g.proceed)
	r := <-done
	assert.Equal(t, 20, r.Leased)
	assert.Equal(t, 20, r.Completed)
	assert.Equal(t, 20, fixture.Count(t, b.Pool, exactlyOnce))
}

// TestDirectWorkSideBySide drains one queue with several turns of two workers.
func TestDirectWorkSideBySide(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := engine.New(store.New(b.Pool), ledger.New(nil), engine.Options{Direct: true, ChunkSize: 70})
	t.Cleanup(other.Close)
	fixture.ManyReady(t, b.Pool, org, "doc-", 3000)
	var wg sync.WaitGroup
	var mu sync.Mutex
	completed := 0
	for n := range 4 {
		e := b.engine
		if n%2 == 1 {
			e = other
		}
		wg.Go(func() {
			r, err := e.Process(context.Background(), engine.TurnRequest{Turn: turn(n + 1), Batch: 20, Length: time.Minute})
			assert.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			completed += r.Completed
		})
	}
	wg.Wait()
	// A turn ends when what is left is locked by the others.
	completed += b.process(9).Completed
	assert.Equal(t, 3000, completed)
	assert.Equal(t, 3000, fixture.Count(t, b.Pool, exactlyOnce))
}

// spoiler fails in the database for one document, which spoils the transaction of its chunk.
type spoiler struct {
	engine.Processor
	document string
}

func (s spoiler) Prepare(ctx context.Context, jobs []engine.Job) (engine.Commit, error) {
	inner, err := s.Processor.Prepare(ctx, jobs)
	return func(ctx context.Context, tx pgx.Tx, jobs []engine.Job) ([]error, error) {
		for _, j := range jobs {
			if j.DocumentID == s.document {
				_, err := tx.Exec(ctx, `SELECT 1 / 0`)
				return nil, err
			}
		}
		return inner(ctx, tx, jobs)
	}, err
}

// TestPoisonedDocumentIsIsolated has one document of a thousand spoil every transaction that it is
// in.
func TestPoisonedDocumentIsIsolated(t *testing.T) {
	t.Parallel()
	b := setupWith(t, spoiler{ledger.New(nil), "doc-300"}, engine.Options{Direct: true})
	fixture.ManyReady(t, b.Pool, org, "doc-", 1000)
	r, err := b.engine.Process(t.Context(), engine.TurnRequest{Turn: turn(1), Batch: 50, Length: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, 999, r.Completed)
	assert.Equal(t, 1, r.Retried)
	b.assertJob("doc-300", models.JobPending, 1, models.CodeDatabaseError)
	assert.Equal(t, 999, fixture.Count(t, b.Pool, exactlyOnce))
}

// TestCrashedTurnLeases works what a worker may have died of under a lease.
func TestCrashedTurnLeases(t *testing.T) {
	t.Parallel()
	g := newGate()
	b := setupWith(t, g, engine.Options{Direct: true})
	fixture.ManyReady(t, b.Pool, org, "doc-", 5)
	r := request(1)
	r.Crashed = true
	done := b.processing(b.engine, r)
	<-g.reached
	assert.Equal(t, 5, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'leased'`))
	close(g.proceed)
	assert.Equal(t, 5, (<-done).Completed)
}

// TestCappedOrganizationIsLeased drains two organizations, one of them with a cap, in one turn.
func TestCappedOrganizationIsLeased(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, "org_2")
	limit := 3
	require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		_, err := store.CapOrganization(t.Context(), tx, "org_2", &limit)
		return err
	}))
	fixture.ManyReady(t, b.Pool, org, "doc-", 500)
	fixture.ManyReady(t, b.Pool, "org_2", "doc-", 30)
	r, err := b.engine.Process(t.Context(), engine.TurnRequest{Turn: turn(1), Batch: 50, Length: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, 530, r.Completed)
	assert.Equal(t, 530, fixture.Count(t, b.Pool, exactlyOnce))
}

// TestLongDocumentsAreWorkedInSmallerChunks has documents whose lines are together more than a
// transaction should hold.
func TestLongDocumentsAreWorkedInSmallerChunks(t *testing.T) {
	t.Parallel()
	for name, direct := range map[string]bool{"directly": true, "leased": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sizes := &counted{Processor: ledger.New(nil)}
			b := setupWith(t, sizes, engine.Options{Direct: direct})
			for i := range 40 {
				d := fixture.Invoice(org, fmt.Sprintf("long-%02d", i), 1000)
				for n := range 3000 {
					d.Content.Lines = append(d.Content.Lines, models.Line{
						Kind: "note", Description: fmt.Sprintf("line %d of a long document, %x", n, n*2654435761),
					})
				}
				fixture.Ready(t, b.Pool, d)
			}
			r, err := b.engine.Process(t.Context(), engine.TurnRequest{Turn: turn(1), Batch: 50, Length: time.Minute})
			require.NoError(t, err)
			assert.Equal(t, 40, r.Completed+r.Failed)
			assert.Greater(t, sizes.chunks, 2, "several transactions")
		})
	}
}

// counted counts the chunks that are committed.
type counted struct {
	engine.Processor
	chunks int
}

func (c *counted) Prepare(ctx context.Context, jobs []engine.Job) (engine.Commit, error) {
	c.chunks++
	return c.Processor.Prepare(ctx, jobs)
}
