package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// TestOneJobIsNoOutage has a job do what looks like the database failing: it is charged, and holds
// no other job up.
func TestOneJobIsNoOutage(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]failing{
		"a shorter deadline of its own": {commit: func(ctx context.Context, tx pgx.Tx, _ []engine.Job) ([]error, error) {
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			_, err := tx.Exec(ctx, `SELECT pg_sleep(5)`)
			return nil, err
		}},
		"another database's outage": {commit: func(context.Context, pgx.Tx, []engine.Job) ([]error, error) {
			return nil, &pgconn.PgError{Code: "57P01", Message: "terminating connection"}
		}},
		"its session ends": {commit: func(ctx context.Context, tx pgx.Tx, _ []engine.Job) ([]error, error) {
			_, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
			return nil, err
		}},
		"it rolls back": {commit: func(ctx context.Context, tx pgx.Tx, _ []engine.Job) ([]error, error) {
			return nil, tx.Rollback(ctx)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupWith(t, p, engine.Options{})
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
			assert.Equal(t, 1, b.work(1).Retried)
			job := b.job("doc")
			assert.Equal(t, models.JobPending, job.State)
			assert.Equal(t, 1, job.RunCount)
		})
	}
}

// TestErrorThatCannotBeStored has a processor return what the log would refuse.
func TestErrorThatCannotBeStored(t *testing.T) {
	t.Parallel()
	var none *models.JobError
	for name, e := range map[string]error{
		"no code":          &models.JobError{Message: "x"},
		"a code with NUL":  &models.JobError{Code: "A\x00B", Message: "x"},
		"a code not UTF-8": &models.JobError{Code: "A\xffB", Message: "x\x00y"},
		"a typed nil":      none,
	} {
		for where, p := range map[string]failing{
			"prepare": {prepare: func(context.Context, []engine.Job) error { return e }},
			"commit":  {commit: func(context.Context, pgx.Tx, []engine.Job) ([]error, error) { return nil, e }},
			"result":  {commit: func(context.Context, pgx.Tx, []engine.Job) ([]error, error) { return []error{e}, nil }},
		} {
			t.Run(name+", "+where, func(t *testing.T) {
				t.Parallel()
				b := setupWith(t, p, engine.Options{})
				fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
				assert.Equal(t, 1, b.work(1).Retried)
				b.assertJob("doc", models.JobPending, 1, models.CodeProcessorError)
			})
		}
	}
}

// TestTimeoutInCommitIsCharged lets statements run past the deadline: their abandoned sessions hold
// the rows a moment longer.
func TestTimeoutInCommitIsCharged(t *testing.T) {
	t.Parallel()
	b := setupWith(t, failing{commit: func(ctx context.Context, tx pgx.Tx, _ []engine.Job) ([]error, error) {
		_, err := tx.Exec(ctx, `SELECT count(*) FROM generate_series(1, 20000000) a, pg_sleep(0)`)
		return nil, err
	}}, engine.Options{ChunkTimeout: 60 * time.Millisecond, ChunkSize: 1, Parallel: 4, Slow: true})
	fixture.ManyReady(t, b.Pool, org, "doc-", 16)
	b.lease(1, 4)
	report, err := b.engine.Process(t.Context(), engine.TurnRequest{Turn: turn(1), Batch: 4, Length: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, 16, report.Retried)
	assert.Zero(t, report.Released)
}

// TestLeaseThatWasNotWorkedIsNotCharged lets leases expire again and again before a worker begins
// to work on them.
func TestLeaseThatWasNotWorkedIsNotCharged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	for n := range 8 {
		require.Equal(t, 1, b.lease(n+1, 50), n)
		b.exec(`UPDATE daybook.accounting_work_queue SET last_attempted_at = now() - interval '11 seconds' WHERE state = 'leased'`)
		require.Equal(t, 1, b.reclaim().Jobs)
	}
	assert.Zero(t, b.job("doc").RunCount)
	b.lease(100, 50)
	assert.Equal(t, 1, b.process(100).Completed)
}

// TestWaitingTurnTakesWhatWasLeftBehind unlocks a row while a turn waits.
func TestWaitingTurnTakesWhatWasLeftBehind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	b.lease(1, 50)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT 1 FROM daybook.accounting_work_queue FOR UPDATE`)
	require.NoError(t, err)
	r := request(1)
	r.Length = 0
	report, err := b.engine.Process(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, []string{turn(1).ID}, report.LeftBehind)
	time.AfterFunc(300*time.Millisecond, func() { _ = tx.Rollback(context.Background()) })

	report, err = b.engine.Process(t.Context(),
		engine.TurnRequest{Turn: turn(2), Batch: 50, LeftBehind: report.LeftBehind, Wait: 20 * time.Second})
	require.NoError(t, err)
	assert.Equal(t, 1, report.Completed)
	assert.Empty(t, report.LeftBehind)
}

// TestReleaseWaitsForLockedRows unlocks a row while a turn is given back.
func TestReleaseWaitsForLockedRows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	b.lease(1, 50)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT 1 FROM daybook.accounting_work_queue FOR UPDATE`)
	require.NoError(t, err)
	time.AfterFunc(300*time.Millisecond, func() { _ = tx.Rollback(context.Background()) })
	n, err := b.engine.ReleaseTurn(t.Context(), turn(1))
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	b.assertJob("doc", models.JobPending, 0, "")
}

// TestVersionZero enqueues a document that was never marked ready: its version is 0.
func TestVersionZero(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := ledgerdb.PutDocument(ctx, tx, fixture.Invoice(org, "doc", 1000))
		require.NoError(t, err)
		_, err = store.EnqueueAccountingJob(ctx, tx, org, "doc", 1, nil, 0)
		require.NoError(t, err)
	})
	b.work(1)
	b.assertJob("doc", models.JobPending, 0, models.CodeVersionMismatch)
	b.due()
	b.work(2)
	b.assertJob("doc", models.JobPending, 0, models.CodeDocumentNotReady)
}

// TestConfigurationIsChangedMeanwhile holds the rules of one organization while documents of two
// are due. The worker waits for neither lock, and the transaction that changes the rules may go on
// to mark documents.
func TestConfigurationIsChangedMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, "org_2")
	fixture.Ready(t, b.Pool, fixture.Unbalanced(org, "bad"), fixture.Invoice("org_2", "good", 1000))
	ctx := t.Context()
	tx, err := b.Pool.Begin(ctx)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	_, err = ledgerdb.ApplyRuleSet(ctx, tx, org, "new", string(sample.Rules())+"\n# new\n")
	require.NoError(t, err)

	report := b.work(1)

	assert.Equal(t, 1, report.Completed, "the other organization's")
	assert.Equal(t, 1, report.Rescheduled)
	b.assertJob("bad", models.JobPending, 0, models.CodeConfigurationLocked)
	_, err = tx.Exec(ctx, `SET LOCAL lock_timeout = '2s'`)
	require.NoError(t, err)
	_, err = store.MarkDocumentReady(ctx, tx, org, "bad", models.PriorityNormal)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(ctx))
	// Its organization is left alone for a moment.
	n := 1
	require.Eventually(t, func() bool {
		n++
		return b.work(n).Failed == 1
	}, time.Minute, 20*time.Millisecond)
	b.assertJob("bad", models.JobFailed, 1, models.CodeUnbalanced)
}

// TestAccountAddedBySQL adds an account behind the back of Daybook's own functions.
func TestAccountAddedBySQL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`DELETE FROM daybook.accounts WHERE code = '1200'`)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	assert.Equal(t, 1, b.work(1).Failed)
	b.exec(`INSERT INTO daybook.accounts (org_id, code, type) VALUES ('org_1', '1200', 'asset')`)
	_, err := store.MarkAccountingJobPending(t.Context(), b.Pool, org, "doc", nil, 0)
	require.NoError(t, err)
	assert.Equal(t, 1, b.work(2).Completed, "what is cached of the chart is not used any more")
}
