package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// gate is a processor that posts as the ledger does, but stops before the transaction until the
// test lets it go on.
type gate struct {
	inner   engine.Processor
	reached chan []engine.Job
	proceed chan struct{}
}

func newGate() *gate {
	return &gate{inner: ledger.New(nil), reached: make(chan []engine.Job, 100), proceed: make(chan struct{})}
}

func (g *gate) Prepare(ctx context.Context, jobs []engine.Job) (engine.Commit, error) {
	g.reached <- jobs
	select {
	case <-g.proceed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return g.inner.Prepare(ctx, jobs)
}

// processing runs turn n in the background.
func (b *bundle) processing(e *engine.Engine, r engine.TurnRequest) <-chan engine.Report {
	done := make(chan engine.Report, 1)
	go func() {
		report, err := e.Process(context.WithoutCancel(b.t.Context()), r)
		assert.NoError(b.t, err)
		done <- report
	}()
	return done
}

func request(n int) engine.TurnRequest {
	return engine.TurnRequest{Turn: turn(n), Batch: 50, Length: time.Minute}
}

// TestSleeperCommitsNothing has a worker sleep between its lease and its transaction while a
// successor reclaims the turn.
func TestSleeperCommitsNothing(t *testing.T) {
	t.Parallel()
	g := newGate()
	b := setupWith(t, g, engine.Options{})
	successor := b.another(ledger.New(nil), engine.Options{})
	fixture.ManyReady(t, b.Pool, org, "doc-", 20)
	b.lease(1, 50)
	sleeper := b.processing(b.engine, request(1))
	<-g.reached

	r := request(1)
	r.Crashed = true
	report, err := successor.Process(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, 20, report.Completed)
	close(g.proceed)

	late := <-sleeper
	assert.Zero(t, late.Completed)
	assert.Equal(t, 20, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts`))
	assert.Equal(t, 20, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts`))
}

// TestSleeperInsideItsTransaction holds the queue rows locked: the successor leaves them alone and
// sweeps them in later.
func TestSleeperInsideItsTransaction(t *testing.T) {
	t.Parallel()
	inside, proceed := make(chan struct{}), make(chan struct{})
	inner := ledger.New(nil)
	b := setupWith(t, failing{commit: func(ctx context.Context, tx pgx.Tx, jobs []engine.Job) ([]error, error) {
		close(inside)
		<-proceed
		commit, err := inner.Prepare(ctx, jobs)
		if err != nil {
			return nil, err
		}
		return commit(ctx, tx, jobs)
	}}, engine.Options{})
	successor := b.another(ledger.New(nil), engine.Options{})
	fixture.ManyReady(t, b.Pool, org, "doc-", 5)
	b.lease(1, 50)
	sleeper := b.processing(b.engine, request(1))
	<-inside

	r := request(1)
	r.Crashed, r.Length = true, 0
	report, err := successor.Process(t.Context(), r)
	require.NoError(t, err)
	assert.Zero(t, report.Completed)
	assert.Equal(t, []string{turn(1).ID}, report.LeftBehind, "the rows are named, for the lane's next turn")

	close(proceed)
	assert.Equal(t, 5, (<-sleeper).Completed, "no other worker reclaimed them, so they are still its own")
	assert.Equal(t, 5, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts`))
}

// TestLeftBehindIsTakenByTheNextTurn names an earlier turn of the lane to the next one.
func TestLeftBehindIsTakenByTheNextTurn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.ManyReady(t, b.Pool, org, "doc-", 3)
	b.lease(1, 50)

	r, err := b.engine.Process(t.Context(), engine.TurnRequest{Turn: turn(2), Batch: 50, LeftBehind: []string{turn(1).ID}})
	require.NoError(t, err)
	assert.Equal(t, 3, r.Leased)
	assert.Empty(t, r.LeftBehind)
	assert.Equal(t, 3, r.Completed)
	assert.Equal(t, 1, b.job("doc-1").RunCount, "reclaiming what was not begun is no attempt")
}

// TestTwoEnginesShareAQueue runs turns of two workers side by side.
func TestTwoEnginesShareAQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.another(ledger.New(nil), engine.Options{})
	fixture.ManyReady(t, b.Pool, org, "doc-", 2000)

	first, second := b.processing(b.engine, request(1)), b.processing(other, request(2))

	a, c := <-first, <-second
	assert.Equal(t, 2000, a.Completed+c.Completed)
	assert.Equal(t, 2000, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts`))
	assert.Equal(t, 2000, fixture.Count(t, b.Pool, `SELECT count(DISTINCT job_id) FROM daybook.attempts`))
}

// TestRequestsDuringAnAttempt makes each request while the job is being worked.
func TestRequestsDuringAnAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask   func(t *testing.T, b *bundle)
		state models.JobState
		after models.JobState
		posts int
	}{
		"newer version": {
			func(t *testing.T, b *bundle) { fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 2000)) },
			models.JobPending, models.JobCompleted, 1,
		},
		"mark pending": {func(t *testing.T, b *bundle) {
			_, err := store.MarkAccountingJobPending(t.Context(), b.Pool, org, "doc", nil, 0)
			require.NoError(t, err)
		}, models.JobPending, models.JobCompleted, 1},
		"same version": {func(t *testing.T, b *bundle) {
			_, err := store.EnqueueAccountingJob(t.Context(), b.Pool, org, "doc", 1, nil, 0)
			require.NoError(t, err)
		}, models.JobCompleted, models.JobCompleted, 1},
		"cancel": {func(t *testing.T, b *bundle) {
			_, err := store.CancelAccountingJob(t.Context(), b.Pool, org, "doc")
			require.NoError(t, err)
		}, models.JobCancelled, models.JobCancelled, 0},
		"cancel, then again": {func(t *testing.T, b *bundle) {
			_, err := store.CancelAccountingJob(t.Context(), b.Pool, org, "doc")
			require.NoError(t, err)
			_, err = store.EnqueueAccountingJob(t.Context(), b.Pool, org, "doc", 1, nil, 0)
			require.NoError(t, err)
		}, models.JobPending, models.JobCompleted, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate()
			b := setupWith(t, g, engine.Options{})
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
			b.lease(1, 50)
			stop := make(chan struct{})
			r := request(1)
			r.Stop = stop
			done := b.processing(b.engine, r)
			<-g.reached
			close(stop) // one attempt only
			c.ask(t, b)
			close(g.proceed)
			<-done

			assert.Equal(t, c.state, b.job("doc").State)
			b.work(2)
			assert.Equal(t, c.after, b.job("doc").State)
			live := fixture.Count(t, b.Pool, `
SELECT count(*) FROM (SELECT DISTINCT ON (document_id) kind FROM daybook.impacts ORDER BY document_id, seq DESC) l WHERE kind = 'post'`)
			assert.Equal(t, c.posts, live)
			assert.False(t, b.job("doc").CancelRequested)
		})
	}
}

// TestNewVersionReversesAndPostsAnew changes a posted document.
func TestNewVersionReversesAndPostsAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	b.work(1)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 3000))
	b.work(2)

	impacts := fixture.Impacts(t, b.Pool, org, "doc")
	require.Len(t, impacts, 3)
	assert.Equal(t, []models.ImpactKind{models.ImpactPost, models.ImpactReverse, models.ImpactPost},
		[]models.ImpactKind{impacts[0].Kind, impacts[1].Kind, impacts[2].Kind})
	assert.EqualValues(t, 3570, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
	mirrored := fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.entries a JOIN daybook.entries m USING (line_no, account_code, amount_minor, currency)
 WHERE a.impact_id = $1 AND m.impact_id = $2 AND a.side <> m.side`, impacts[0].ID, impacts[1].ID)
	assert.Equal(t, 3, mirrored)
}

// TestRepeatPostsNothing asks again for what is posted.
func TestRepeatPostsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	b.work(1)
	_, err := store.MarkAccountingJobPending(t.Context(), b.Pool, org, "doc", nil, 0)
	require.NoError(t, err)
	assert.Equal(t, 1, b.work(2).Completed)
	assert.Len(t, fixture.Impacts(t, b.Pool, org, "doc"), 1)
}

// TestLockedDocument has a domain transaction hold a document while the worker comes by, and then
// enqueue it: neither waits for the other, and nothing is counted.
func TestLockedDocument(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc-1", 1000), fixture.Invoice(org, "doc-2", 1000))
	ctx := t.Context()
	tx, err := b.Pool.Begin(ctx)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	_, err = tx.Exec(ctx, `SELECT 1 FROM daybook.documents WHERE id = 'doc-1' FOR UPDATE`)
	require.NoError(t, err)

	report := b.work(1)

	assert.Equal(t, 1, report.Completed)
	assert.Equal(t, 1, report.Rescheduled)
	b.assertJob("doc-1", models.JobPending, 0, models.CodeDocumentLocked)
	assert.Empty(t, fixture.Attempts(t, b.Pool, org, "doc-1"))
	_, err = tx.Exec(ctx, `SET LOCAL lock_timeout = '2s'`)
	require.NoError(t, err)
	_, err = store.MarkDocumentReady(ctx, tx, org, "doc-1", models.PriorityNormal)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(ctx))
	assert.Equal(t, 1, b.work(2).Completed)
}

// TestLockedQueueRow has a domain transaction hold the queue row of a leased job.
func TestLockedQueueRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc-1", 1000), fixture.Invoice(org, "doc-2", 1000))
	b.lease(1, 50)
	ctx := t.Context()
	tx, err := b.Pool.Begin(ctx)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	_, err = store.EnqueueAccountingJob(ctx, tx, org, "doc-1", 2, nil, 0)
	require.NoError(t, err)

	r := request(1)
	r.Length = 0
	report, err := b.engine.Process(ctx, r)
	require.NoError(t, err)
	assert.Equal(t, 1, report.Completed)
	assert.Equal(t, []string{turn(1).ID}, report.LeftBehind)
	require.NoError(t, tx.Commit(ctx))

	report, err = b.engine.Process(ctx, engine.TurnRequest{Turn: turn(2), Batch: 50, Length: time.Minute, LeftBehind: report.LeftBehind})
	require.NoError(t, err)
	assert.Equal(t, 1, report.Leased)
}

// TestExpiredLeasesAreReclaimed lets leases expire that their holder does not renew.
func TestExpiredLeasesAreReclaimed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.ManyReady(t, b.Pool, org, "doc-", 3)
	b.lease(1, 50)
	b.reclaim()
	assert.Zero(t, b.lease(2, 50), "they have not expired")
	b.exec(`UPDATE daybook.accounting_work_queue SET last_attempted_at = now() - interval '11 seconds',
	               run_count = CASE document_id WHEN 'doc-3' THEN 6 ELSE run_count END, working = document_id <> 'doc-1'`)

	got := b.reclaim()

	assert.Equal(t, store.Reclaimed{Jobs: 3, Lost: 2, Failed: 1}, got)
	assert.Equal(t, 2, b.lease(2, 50))
	b.assertJob("doc-3", models.JobFailed, 6, models.CodeWorkerLost)
	assert.Equal(t, 2, b.process(2).Completed)
	b.assertJob("doc-1", models.JobCompleted, 1, "")
	b.assertJob("doc-2", models.JobCompleted, 2, "")
	assert.Len(t, fixture.Attempts(t, b.Pool, org, "doc-1"), 1, "it was not begun, as far as is known")
	attempts := fixture.Attempts(t, b.Pool, org, "doc-2")
	require.Len(t, attempts, 2)
	assert.Equal(t, models.OutcomeLost, attempts[0].Outcome)
	assert.Equal(t, turn(1).ID, attempts[0].TurnID)
}

// TestWaitingTurnReclaims: what expires while a turn waits is found while it waits.
func TestWaitingTurnReclaims(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv", 1000))
	b.lease(1, 50)
	r, err := b.engine.Process(t.Context(), engine.TurnRequest{Turn: turn(2), Batch: 50, Wait: 5 * time.Minute})
	require.NoError(t, err)
	assert.Equal(t, 1, r.Leased)
}

// TestRenewedLeasesAreNotStale has a slow job live longer than the renewal interval.
func TestRenewalKeepsLeasesAndSweepsZombies(t *testing.T) {
	t.Parallel()
	g := newGate()
	b := setupWith(t, g, engine.Options{RenewEvery: 20 * time.Millisecond})
	fixture.ManyReady(t, b.Pool, org, "doc-", 2)
	b.lease(1, 1)
	done := b.processing(b.engine, engine.TurnRequest{Turn: turn(1), Batch: 1, Length: 0})
	<-g.reached
	// A predecessor with a lower fence leases after the turn was reclaimed.
	zombie := turn(1)
	zombie.Fence = 1
	leased, err := b.store.LeaseFor(t.Context(), zombie, 1, pgtest.Unbounded())
	require.NoError(t, err)
	require.Len(t, leased.Jobs, 1)
	b.exec(`UPDATE daybook.accounting_work_queue SET last_attempted_at = now() - interval '1 hour'`)

	require.Eventually(t, func() bool {
		return fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.accounting_work_queue WHERE last_attempted_at > now() - interval '1 minute' AND fence > 1`) == 2
	}, pgtest.Patience, 10*time.Millisecond)
	close(g.proceed)
	report := <-done
	// Swept in at the turn's very end it is given back instead of worked, or, while a renewal that
	// was cut off has its row for a moment, left to the next fetch.
	assert.Equal(t, 2, report.Completed+report.Released+len(report.LeftBehind))
}

// TestBulkGoesOnWithoutWhatItHasLost takes one of three documents from a turn while it works them:
// the call is ended for that once, and the others are posted by the next one.
func TestBulkGoesOnWithoutWhatItHasLost(t *testing.T) {
	t.Parallel()
	g := newGate()
	b := setupWith(t, g, engine.Options{RenewEvery: 20 * time.Millisecond})
	fixture.ManyReady(t, b.Pool, org, "doc-", 3)
	b.lease(1, 50)
	done := b.processing(b.engine, engine.TurnRequest{Turn: turn(1), Batch: 50})
	require.Len(t, <-g.reached, 3)
	b.exec(`UPDATE daybook.accounting_work_queue SET turn_id = 'run/1/1', fence = nextval('daybook.fence_seq') WHERE document_id = 'doc-1'`)
	require.Len(t, <-g.reached, 2)
	for range 2 {
		b.exec(`UPDATE daybook.accounting_work_queue SET last_attempted_at = now() - interval '5 seconds' WHERE document_id <> 'doc-1'`)
		require.Eventually(t, func() bool {
			return b.in("daybook.accounting_work_queue",
				`document_id <> 'doc-1' AND last_attempted_at > now() - interval '4 seconds'`) == 2
		}, pgtest.Patience, 5*time.Millisecond)
	}
	close(g.proceed)
	assert.Equal(t, 2, (<-done).Completed)
	assert.Empty(t, g.reached)
}

// TestStopGivesTheRestBack stops a turn in its first chunk.
func TestStopGivesTheRestBack(t *testing.T) {
	t.Parallel()
	g := newGate()
	b := setupWith(t, g, engine.Options{ChunkSize: 10})
	fixture.ManyReady(t, b.Pool, org, "doc-", 50)
	b.lease(1, 50)
	stop := make(chan struct{})
	r := request(1)
	r.Stop = stop
	done := b.processing(b.engine, r)
	<-g.reached
	close(stop)
	close(g.proceed)

	report := <-done
	assert.Equal(t, 10, report.Completed)
	assert.Equal(t, 40, report.Released)
	assert.True(t, report.Stopped)
	assert.Equal(t, 40, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'pending' AND run_count = 0`))
}

// TestGraceEndsARunningChunk stops a turn whose processor does not come to an end by itself.
func TestGraceEndsARunningChunk(t *testing.T) {
	t.Parallel()
	g := newGate()
	b := setupWith(t, g, engine.Options{Grace: 10 * time.Millisecond})
	fixture.ManyReady(t, b.Pool, org, "doc-", 5)
	b.lease(1, 50)
	stop := make(chan struct{})
	r := request(1)
	r.Stop = stop
	done := b.processing(b.engine, r)
	<-g.reached
	close(stop)
	assert.Equal(t, 5, (<-done).Released)
	assert.Equal(t, 5, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'pending' AND run_count = 0`))
}
