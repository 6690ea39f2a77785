package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// readyIn is how long from its completion until the job is due again, to the second.
func (b *bundle) readyIn(document string) time.Duration {
	b.t.Helper()
	var seconds float64
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), `
SELECT extract(epoch FROM ready_at - updated_at) FROM daybook.accounting_work_queue WHERE org_id = $1 AND document_id = $2`, org, document).Scan(&seconds))
	return time.Duration(seconds * float64(time.Second)).Round(time.Second)
}

// assertJob compares what an operator sees of a job.
func (b *bundle) assertJob(document string, state models.JobState, runCount int,
	code models.ErrorCode,
) models.AccountingJob {
	b.t.Helper()
	job := b.job(document)
	assert.Equal(b.t, state, job.State)
	assert.Equal(b.t, runCount, job.RunCount, "run_count")
	if code == "" {
		assert.Nil(b.t, job.LastErrorCode)
		assert.Nil(b.t, job.LastError)
		return job
	}
	if assert.NotNil(b.t, job.LastErrorCode) {
		assert.Equal(b.t, code, *job.LastErrorCode)
		assert.NotEmpty(b.t, *job.LastError)
	}
	return job
}

func TestDocumentNotReady(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000))
	b.exec(`UPDATE daybook.documents SET accounting_ready_at = NULL`)

	for look, seconds := range []int{30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 60, 120, 240, 480, 900, 900} {
		report := b.work(look + 1)
		assert.Equal(t, 1, report.Rescheduled)
		b.assertJob("inv-1", models.JobPending, 0, models.CodeDocumentNotReady)
		assert.Equal(t, time.Duration(seconds)*time.Second, b.readyIn("inv-1"), "look %d", look+1)
		b.due()
	}

	// Marking it ready pulls the job forward at once.
	b.exec(`UPDATE daybook.accounting_work_queue SET ready_at = now() + interval '10 minutes'`)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000))
	assert.Equal(t, 1, b.work(100).Completed)
	b.assertJob("inv-1", models.JobCompleted, 1, "")
}

func TestVersionMismatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000))
	b.exec(`UPDATE daybook.documents SET accounting_ready_version = 7`)

	assert.Equal(t, 1, b.work(1).Rescheduled)

	job := b.assertJob("inv-1", models.JobPending, 0, models.CodeVersionMismatch)
	assert.EqualValues(t, 7, job.VersionHint)
	assert.Equal(t, 5*time.Second, b.readyIn("inv-1"))
	b.due()
	assert.Equal(t, 1, b.work(2).Completed)
	assert.EqualValues(t, 7, fixture.Impacts(t, b.Pool, org, "inv-1")[0].DocumentVersion)
}

func TestDeletedDocumentIsCancelledAndReversed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000))
	b.work(1)
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := store.MarkDocumentDeleted(ctx, tx, org, "inv-1")
		require.NoError(t, err)
	})

	assert.Equal(t, 1, b.work(2).Cancelled)

	b.assertJob("inv-1", models.JobCancelled, 1, models.CodeDocumentDeleted)
	impacts := fixture.Impacts(t, b.Pool, org, "inv-1")
	require.Len(t, impacts, 2)
	assert.Equal(t, models.ImpactReverse, impacts[1].Kind)
	assert.Zero(t, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
	assert.Equal(t, 1, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.documents WHERE accounting_impact_created_at IS NULL`))
}

func TestRetractedDocumentIsReversed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000))
	b.work(1)
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := store.MarkDocumentNotReady(ctx, tx, org, "inv-1")
		require.NoError(t, err)
	})

	assert.Equal(t, 1, b.work(2).Rescheduled)

	b.assertJob("inv-1", models.JobPending, 0, models.CodeDocumentNotReady)
	assert.Zero(t, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
	b.due()
	b.work(3)
	assert.Len(t, fixture.Impacts(t, b.Pool, org, "inv-1"), 2, "it is reversed once")
}

// TestUnknownDocumentFails leaves the ledger alone when a document's row is gone without a word,
// and comes back with the row.
func TestUnknownDocumentFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := store.EnqueueAccountingJob(t.Context(), b.Pool, org, "nowhere", 1, nil, 0)
	require.NoError(t, err)

	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000))
	assert.Equal(t, 1, b.work(1).Failed)
	b.assertJob("nowhere", models.JobFailed, 1, models.CodeDocumentUnknown)

	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := tx.Exec(ctx, `DELETE FROM daybook.documents WHERE id = 'inv-1'`)
		require.NoError(t, err)
	})
	_, err = store.MarkAccountingJobPending(t.Context(), b.Pool, org, "inv-1", nil, 0)
	require.NoError(t, err)
	assert.Equal(t, 1, b.work(2).Failed)
	b.assertJob("inv-1", models.JobFailed, 1, models.CodeDocumentUnknown)
	assert.Len(t, fixture.Impacts(t, b.Pool, org, "inv-1"), 1, "nothing is reversed")
	assert.EqualValues(t, 1190, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
}

// TestDeletionLastsLongerThanTheRow removes a document's row before, and after, it is marked
// deleted, and before a worker has looked.
func TestDeletionLastsLongerThanTheRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000), fixture.Invoice(org, "inv-2", 1000))
	b.work(1)
	remove := func(id string) {
		_, err := b.Pool.Exec(t.Context(), `DELETE FROM daybook.documents WHERE id = $1`, id)
		require.NoError(t, err)
	}
	mark := func(id string) {
		fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
			m, err := store.MarkDocumentDeleted(ctx, tx, org, id)
			require.NoError(t, err)
			assert.EqualValues(t, 2, m.Version, id)
		})
	}
	mark("inv-1")
	remove("inv-1")
	remove("inv-2")
	mark("inv-2")
	mark("inv-2")

	assert.Equal(t, 2, b.work(2).Cancelled)

	for _, id := range []string{"inv-1", "inv-2"} {
		b.assertJob(id, models.JobCancelled, 1, models.CodeDocumentDeleted)
		assert.Len(t, fixture.Impacts(t, b.Pool, org, id), 2, id)
	}
	assert.Zero(t, fixture.Balance(t, b.Pool, org, "1200", "EUR"))

	// Asked for again without a row, in a version that nothing was said of, it is unknown.
	_, err := store.EnqueueAccountingJob(t.Context(), b.Pool, org, "inv-1", 3, nil, 0)
	require.NoError(t, err)
	assert.Equal(t, 1, b.work(3).Failed)
	b.assertJob("inv-1", models.JobFailed, 1, models.CodeDocumentUnknown)
}

func TestPermanentErrorsFailAtOnce(t *testing.T) {
	t.Parallel()
	noRule := fixture.Invoice(org, "doc", 1000)
	noRule.Type = "memo"
	overflow := fixture.Invoice(org, "doc", 1000)
	overflow.Content.Payable, overflow.Content.Prepaid = 1<<62, 1<<62
	overflow.Content.Lines[0].Net = 1 << 62
	for name, c := range map[string]struct {
		document *models.Document
		prepare  string
		code     models.ErrorCode
	}{
		"unbalanced": {fixture.Unbalanced(org, "doc"), "", models.CodeUnbalanced},
		"no rule":    {noRule, "", models.CodeNoMatchingRule},
		"unknown account": {
			fixture.Invoice(org, "doc", 1000), `DELETE FROM daybook.accounts WHERE code = '1200'`,
			models.CodeUnknownAccount,
		},
		"no rule set": {
			fixture.Invoice(org, "doc", 1000), `UPDATE daybook.organizations SET active_rule_set = NULL`,
			models.CodeNoMatchingRule,
		},
		"overflow": {overflow, "", models.CodeDocumentInvalid},
		"unreadable": {
			fixture.Invoice(org, "doc", 1000),
			`UPDATE daybook.documents SET content = '{"lines": "none"}'`, models.CodeDocumentInvalid,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			fixture.Ready(t, b.Pool, c.document)
			if c.prepare != "" {
				b.exec(c.prepare)
			}

			assert.Equal(t, 1, b.work(1).Failed)

			b.assertJob("doc", models.JobFailed, 1, c.code)
			assert.Empty(t, fixture.Impacts(t, b.Pool, org, "doc"))
			attempts := fixture.Attempts(t, b.Pool, org, "doc")
			require.Len(t, attempts, 1)
			assert.Equal(t, models.OutcomeFailed, attempts[0].Outcome)
		})
	}
}

func TestFailedJobsReturnWhenTheirCauseIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000), fixture.Unbalanced(org, "inv-2"))
	b.exec(`DELETE FROM daybook.accounts WHERE code = '1200'`)
	b.work(1)
	b.assertJob("inv-1", models.JobFailed, 1, models.CodeUnknownAccount)

	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		a, err := ledgerdb.PutAccounts(ctx, tx, org,
			[]models.Account{{Code: "1200", Name: "Receivable", Type: models.AccountAsset}}, nil)
		require.NoError(t, err)
		assert.Equal(t, 2, a.Returned)
	})

	report := b.work(2)
	assert.Equal(t, 1, report.Completed)
	b.assertJob("inv-1", models.JobCompleted, 1, "")
	// The second was failed for the account as well, and now fails for what is wrong with itself.
	b.assertJob("inv-2", models.JobFailed, 1, models.CodeUnbalanced)
}

// failing is a processor whose job ends as the test says.
type failing struct {
	prepare func(ctx context.Context, jobs []engine.Job) error
	commit  func(ctx context.Context, tx pgx.Tx, jobs []engine.Job) ([]error, error)
}

func (f failing) Prepare(ctx context.Context, jobs []engine.Job) (engine.Commit, error) {
	if f.prepare != nil {
		if err := f.prepare(ctx, jobs); err != nil {
			return nil, err
		}
	}
	return f.commit, nil
}

func TestTransientErrorsBackOff(t *testing.T) {
	t.Parallel()
	refuse := func(ctx context.Context, tx pgx.Tx, _ []engine.Job) ([]error, error) {
		_, err := tx.Exec(ctx, `SELECT 1 / 0`)
		return nil, err
	}
	for name, c := range map[string]struct {
		processor failing
		options   engine.Options
		code      models.ErrorCode
	}{
		"prepare fails": {
			failing{prepare: func(context.Context, []engine.Job) error { return errors.New("no") }},
			engine.Options{},
			models.CodeProcessorError,
		},
		"panic": {
			failing{prepare: func(context.Context, []engine.Job) error { panic("no") }},
			engine.Options{},
			models.CodeProcessorError,
		},
		"commit fails": {failing{commit: func(context.Context, pgx.Tx, []engine.Job) ([]error, error) {
			return nil, fmt.Errorf("upstream: %w", context.Canceled)
		}}, engine.Options{}, models.CodeProcessorError},
		"job fails": {failing{commit: func(_ context.Context, _ pgx.Tx, jobs []engine.Job) ([]error, error) {
			return []error{errors.New("no")}, nil
		}}, engine.Options{}, models.CodeProcessorError},
		"wrong number of results": {failing{commit: func(context.Context, pgx.Tx, []engine.Job) ([]error, error) {
			return make([]error, 2), nil
		}}, engine.Options{}, models.CodeProcessorError},
		"database refuses": {failing{commit: refuse}, engine.Options{}, models.CodeDatabaseError},
		"timeout": {failing{prepare: func(ctx context.Context, _ []engine.Job) error {
			<-ctx.Done()
			return ctx.Err()
		}}, engine.Options{ChunkTimeout: 10 * time.Millisecond}, models.CodeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupWith(t, c.processor, c.options)
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
			const minute = time.Minute
			for attempt, want := range []time.Duration{5 * minute, 15 * minute, 45 * minute, 135 * minute, 360 * minute} {
				assert.Equal(t, 1, b.work(attempt+1).Retried)
				b.assertJob("doc", models.JobPending, attempt+1, c.code)
				assert.Equal(t, want, b.readyIn("doc"), "after attempt %d", attempt+1)
				assert.Zero(t, b.lease(100+attempt, 50), "not before it is due")
				b.due()
			}
			assert.Equal(t, 1, b.work(6).Failed)
			b.assertJob("doc", models.JobFailed, 6, c.code)
			attempts := fixture.Attempts(t, b.Pool, org, "doc")
			require.Len(t, attempts, 6)
			assert.Equal(t, models.OutcomeRetried, attempts[4].Outcome)
			assert.Equal(t, models.OutcomeFailed, attempts[5].Outcome)
		})
	}
}

func TestRetryBaseIsConfigurable(t *testing.T) {
	t.Parallel()
	b := setupWith(t, failing{prepare: func(context.Context, []engine.Job) error { return errors.New("no") }},
		engine.Options{RetryBase: 7 * time.Second})
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	b.work(1)
	assert.Equal(t, 7*time.Second, b.readyIn("doc"))
	b.due()
	b.work(2)
	assert.Equal(t, 21*time.Second, b.readyIn("doc"))
}

// TestBadDocumentsAreIsolated has documents in the middle of a chunk that the database itself
// refuses, which only shows when the whole chunk is inserted; their neighbours are posted in the
// same pass.
func TestBadDocumentsAreIsolated(t *testing.T) {
	t.Parallel()
	poisoned := map[string]bool{"doc-13": true, "doc-14": true, "doc-77": true}
	b := setupWith(t, failing{commit: func(ctx context.Context, tx pgx.Tx, jobs []engine.Job) ([]error, error) {
		for _, j := range jobs {
			if poisoned[j.DocumentID] {
				_, err := tx.Exec(ctx, `SELECT 1 / 0`)
				return nil, err
			}
		}
		return nil, nil
	}}, engine.Options{})
	fixture.ManyReady(t, b.Pool, org, "doc-", 100)

	b.lease(1, 100)
	report := b.process(1)

	assert.Equal(t, 97, report.Completed)
	assert.Equal(t, 3, report.Retried)
	for id := range poisoned {
		b.assertJob(id, models.JobPending, 1, models.CodeDatabaseError)
	}
	assert.Equal(t, 97, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed' AND run_count = 1`))
}

// TestUnbalancedInsertIsTheDocumentsError makes the ledger's own check blind, so that the
// database's has to refuse.
func TestDatabaseRefusesWhatTheRulesMissed(t *testing.T) {
	t.Parallel()
	b := setupWith(t, failing{commit: func(ctx context.Context, tx pgx.Tx, jobs []engine.Job) ([]error, error) {
		return nil, ledgerdb.InsertPosting(ctx, tx, ledgerdb.Posting{
			Impacts: []models.Impact{{
				ID: 1, OrgID: org, DocumentID: "doc", Seq: 1, Kind: models.ImpactPost, EntryCount: 1,
				DocumentDate: models.NewDate(2026, 1, 1), PostingDate: models.NewDate(2026, 1, 1), JobID: jobs[0].ID,
				Attempt: 1,
			}},
			Entries: []models.Entry{{
				ImpactID: 1, LineNo: 1, OrgID: org, Account: "1200", Side: models.Debit, Amount: 5,
				Currency: "EUR",
			}},
		})
	}}, engine.Options{})
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))

	assert.Equal(t, 1, b.work(1).Failed)
	b.assertJob("doc", models.JobFailed, 1, models.CodeUnbalanced)
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts`))
}
