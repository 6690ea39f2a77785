package workers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
)

// reports is an application's own processor: it works one job at a time and writes to a table of
// the application's.
type reports struct{}

func (reports) Prepare(_ context.Context, job accounting.Job) (accounting.JobCommit, error) {
	if job.DocumentID == "doc-3" {
		return nil, errors.New("the printer is out of paper")
	}
	return func(ctx context.Context, tx pgx.Tx, job accounting.Job) error {
		_, err := tx.Exec(ctx, `INSERT INTO reports (document_id, version) VALUES ($1, $2)`, job.DocumentID, job.Version)
		return err
	}, nil
}

func TestJobProcessorOfAnApplication(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE reports (document_id text PRIMARY KEY, version bigint NOT NULL)`)
	b.start(workers.AccountingOptions{JobProcessor: reports{}, ProcessorOptions: workers.ProcessorOptions{Parallel: 4}})
	for n := range 20 {
		_, err := queue.EnqueueAccountingJob(t.Context(), b.Pool,
			queue.AccountingJob{OrgID: org, DocumentID: fmt.Sprint("doc-", n), Version: 7})
		require.NoError(t, err)
	}

	counts := b.drainOnce()

	assert.EqualValues(t, 19, counts.Completed)
	assert.EqualValues(t, 1, counts.Retried)
	assert.Equal(t, 19, fixture.Count(t, b.Pool, `SELECT count(*) FROM reports WHERE version = 7`))
	job := fixture.Job(t, b.Pool, org, "doc-3")
	assert.Equal(t, models.CodeProcessorError, *job.LastErrorCode)
	assert.Equal(t, "the printer is out of paper", *job.LastError)
	assert.False(t, job.Working)
}

// chunks counts in one statement for a whole chunk.
type chunks struct{}

func (chunks) Prepare(context.Context, []accounting.Job) (accounting.Commit, error) {
	return func(ctx context.Context, tx pgx.Tx, jobs []accounting.Job) ([]error, error) {
		_, err := tx.Exec(ctx, `UPDATE counters SET n = n + $1`, len(jobs))
		errs := make([]error, len(jobs))
		for i, j := range jobs {
			if j.DocumentID == "doc-3" {
				errs[i] = &models.JobError{Code: models.CodeDocumentInvalid, Message: "it has no title"}
			}
		}
		return errs, err
	}, nil
}

func TestChunkProcessorOfAnApplication(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE counters (n integer NOT NULL)`)
	b.exec(`INSERT INTO counters VALUES (0)`)
	b.start(workers.AccountingOptions{Processor: chunks{}, ProcessorOptions: workers.ProcessorOptions{ChunkSize: 5}})
	for n := range 20 {
		_, err := queue.EnqueueAccountingJob(t.Context(), b.Pool,
			queue.AccountingJob{OrgID: org, DocumentID: fmt.Sprint("doc-", n), Version: 1})
		require.NoError(t, err)
	}

	counts := b.drainOnce()

	assert.EqualValues(t, 19, counts.Completed)
	assert.EqualValues(t, 1, counts.Failed)
	assert.Equal(t, 20, fixture.Count(t, b.Pool, `SELECT n FROM counters`))
}

// ownTable is an application that keeps its documents in a table of its own, and what it has
// deleted in another one.
type ownTable struct{}

func (ownTable) LockAndRead(ctx context.Context, tx pgx.Tx, keys []accounting.Key) ([]accounting.Found, error) {
	found := make([]accounting.Found, len(keys))
	for i, k := range keys {
		var version, net int64
		err := tx.QueryRow(ctx, `SELECT version, net FROM invoices WHERE number = $1 FOR NO KEY UPDATE SKIP LOCKED`,
			k.ID).Scan(&version, &net)
		if errors.Is(err, pgx.ErrNoRows) {
			const why = `SELECT CASE WHEN EXISTS (SELECT 1 FROM invoices WHERE number = $1) THEN $2::integer
                                     WHEN EXISTS (SELECT 1 FROM shredded WHERE number = $1) THEN $3::integer ELSE $4::integer END`
			err := tx.QueryRow(ctx, why, k.ID, accounting.Locked, accounting.Deleted,
				accounting.Unknown).Scan(&found[i].State)
			if err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		d := fixture.Invoice(k.OrgID, k.ID, net)
		now := time.Now()
		d.AccountingReadyAt, d.AccountingReadyVersion = &now, version
		found[i] = accounting.Found{State: accounting.Here, Document: d}
	}
	return found, nil
}

func (ownTable) SetPosted(ctx context.Context, tx pgx.Tx, keys []accounting.Key, live []bool) error {
	for i, k := range keys {
		if _, err := tx.Exec(ctx, `UPDATE invoices SET posted = $2 WHERE number = $1`, k.ID, live[i]); err != nil {
			return err
		}
	}
	return nil
}

func TestDocumentsInTablesOfAnApplication(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ownTables()
	b.exec(`INSERT INTO shredded VALUES ('2026-3')`)
	b.exec(`SELECT daybook.set_default_source('shop')`)
	b.start(workers.AccountingOptions{Sources: accounting.Sources{"shop": ownTable{}}})
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := tx.Exec(ctx, `INSERT INTO invoices (number, version, net) VALUES ('2026-1', 4, 1000), ('2026-2', 1, 500)`)
		require.NoError(t, err)
		_, err = queue.EnqueueAccountingJobs(ctx, tx, []queue.AccountingJob{
			{OrgID: org, DocumentID: "2026-1", Version: 4},
			{OrgID: org, DocumentID: "2026-2", Version: 1},
			{OrgID: org, DocumentID: "2026-3", Version: 1},
			{OrgID: org, DocumentID: "2026-4", Version: 1},
		})
		require.NoError(t, err)
	})

	counts := b.drainOnce()

	assert.EqualValues(t, 2, counts.Completed)
	assert.EqualValues(t, 1, counts.Cancelled, "the shredded one")
	assert.EqualValues(t, 1, counts.Failed, "the one that was never there")
	assert.Equal(t, models.CodeDocumentUnknown, *fixture.Job(t, b.Pool, org, "2026-4").LastErrorCode)
	assert.Equal(t, 2, fixture.Count(t, b.Pool, `SELECT count(*) FROM invoices WHERE posted`))
	assert.EqualValues(t, 1785, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
}

// ownTables makes the tables of ownTable.
func (b *bundle) ownTables() {
	b.t.Helper()
	b.exec(`CREATE TABLE invoices (number text PRIMARY KEY, version bigint NOT NULL, net bigint NOT NULL, posted boolean NOT NULL DEFAULT false)`)
	b.exec(`CREATE TABLE shredded (number text PRIMARY KEY)`)
}

func (b *bundle) exec(query string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), query, args...)
	require.NoError(b.t, err)
}
