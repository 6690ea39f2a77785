package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/queue"
)

func TestInvalidRequestsAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long, tooLong := strings.Repeat("a", 255), strings.Repeat("a", 256)
	// 85 runes of three bytes are 255 bytes; 86 are 258.
	euros, tooManyEuros := strings.Repeat("€", 85), strings.Repeat("€", 86)
	for _, c := range []struct {
		name string
		job  queue.AccountingJob
		want error
	}{
		{"empty organization", queue.AccountingJob{DocumentID: doc}, queue.ErrEmptyID},
		{"empty document", queue.AccountingJob{OrgID: org}, queue.ErrEmptyID},
		{"255 bytes", queue.AccountingJob{OrgID: long, DocumentID: long}, nil},
		{"255 bytes in 85 runes", queue.AccountingJob{OrgID: euros, DocumentID: euros}, nil},
		{"organization of 256 bytes", queue.AccountingJob{OrgID: tooLong, DocumentID: doc}, queue.ErrIDTooLong},
		{"document of 256 bytes", queue.AccountingJob{OrgID: org, DocumentID: tooLong}, queue.ErrIDTooLong},
		{"258 bytes in 86 runes", queue.AccountingJob{OrgID: org, DocumentID: tooManyEuros}, queue.ErrIDTooLong},
		{"a space is an id", queue.AccountingJob{OrgID: " ", DocumentID: " "}, nil},
		{"negative version", queue.AccountingJob{OrgID: org, DocumentID: doc, Version: -1}, queue.ErrNegativeVersion},
		{"version 0", queue.AccountingJob{OrgID: org, DocumentID: "zero"}, nil},
		{"priority 4", queue.AccountingJob{OrgID: org, DocumentID: doc, Priority: 4}, queue.ErrInvalidPriority},
		{"priority -1", queue.AccountingJob{OrgID: org, DocumentID: doc, Priority: -1}, queue.ErrInvalidPriority},
	} {
		_, err := queue.EnqueueAccountingJob(t.Context(), b.Pool, c.job)
		require.ErrorIs(t, err, c.want, "EnqueueAccountingJob: %s", c.name)
		_, err = queue.EnqueueAccountingJobs(t.Context(), b.Pool,
			[]queue.AccountingJob{{OrgID: org, DocumentID: "fine"}, c.job})
		require.ErrorIs(t, err, c.want, "EnqueueAccountingJobs: %s", c.name)
		if c.want != nil {
			require.ErrorContains(t, err, "job 1:", "EnqueueAccountingJobs names the position")
		}
		if c.job.Version != 0 || c.job.Priority != 0 || c.want == nil {
			continue
		}
		_, err = queue.MarkAccountingJobPending(t.Context(), b.Pool,
			queue.PendingAccountingJob{OrgID: c.job.OrgID, DocumentID: c.job.DocumentID})
		require.ErrorIs(t, err, c.want, "MarkAccountingJobPending: %s", c.name)
		_, err = queue.CancelAccountingJob(t.Context(), b.Pool, queue.Document{OrgID: c.job.OrgID, ID: c.job.DocumentID})
		require.ErrorIs(t, err, c.want, "Cancel: %s", c.name)
		_, err = queue.MarkDocumentReady(t.Context(), b.Pool, queue.Document{OrgID: c.job.OrgID, ID: c.job.DocumentID})
		require.ErrorIs(t, err, c.want, "MarkDocumentReady: %s", c.name)
	}
	// The four that are valid, and the one that stood beside them.
	assert.Equal(t, 5, b.jobs())
}

func TestInvalidMarkPending(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enqueue(1)
	for _, c := range []struct {
		name    string
		pending queue.PendingAccountingJob
		want    error
	}{
		{"negative delay", queue.PendingAccountingJob{OrgID: org, DocumentID: doc, Delay: -1}, queue.ErrNegativeDelay},
		{
			"negative version",
			queue.PendingAccountingJob{OrgID: org, DocumentID: doc, Version: -1},
			queue.ErrNegativeVersion,
		},
		{
			"more than 100 years",
			queue.PendingAccountingJob{OrgID: org, DocumentID: doc, Delay: 120 * 365 * 24 * time.Hour},
			queue.ErrInvalid,
		},
	} {
		_, err := queue.MarkAccountingJobPending(t.Context(), b.Pool, c.pending)
		require.ErrorIs(t, err, c.want, c.name)
	}
}

func TestInvalidPriorityOfADocument(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = queue.MarkDocumentReady(t.Context(), tx, queue.Document{OrgID: org, ID: doc, Priority: 4})
	require.ErrorIs(t, err, queue.ErrInvalidPriority)
	require.NoError(t, tx.Rollback(t.Context()))
}

func TestNothingToEnqueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rs, err := queue.EnqueueAccountingJobs(t.Context(), b.Pool, nil)
	require.NoError(t, err)
	assert.Empty(t, rs)
}

// Other languages call the functions themselves: the database refuses the same, by SQLSTATE.
func TestSQLSTATEs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.putDocument()
	b.exec(`SELECT daybook.enqueue_accounting_job('org_1', 'done', 1)`)
	turn, job := b.lease()
	b.endAttempt(turn, job.ID, "completed", "", 0)
	b.exec(`INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content, deleted_at)
	        VALUES ('org_1', 'deleted', 'invoice', 'out', 'EUR', '2026-03-14', '{}', now())`)
	for _, c := range []struct{ name, state, query string }{
		{"empty organization", "DB010", `SELECT daybook.enqueue_accounting_job('', 'd', 1)`},
		{"no organization", "DB010", `SELECT daybook.enqueue_accounting_job(NULL, 'd', 1)`},
		{"empty document", "DB010", `SELECT daybook.enqueue_accounting_job('o', '', 1)`},
		{"organization of 256 bytes", "DB010", `SELECT daybook.enqueue_accounting_job(repeat('a', 256), 'd', 1)`},
		{"document of 258 bytes", "DB010", `SELECT daybook.enqueue_accounting_job('o', repeat('€', 86), 1)`},
		{"document of 255 bytes", "", `SELECT daybook.enqueue_accounting_job('o', repeat('€', 85), 1)`},
		{"negative version", "DB010", `SELECT daybook.enqueue_accounting_job('o', 'd', -1)`},
		{"no version", "DB010", `SELECT daybook.enqueue_accounting_job('o', 'd', NULL)`},
		{"priority 0", "DB010", `SELECT daybook.enqueue_accounting_job('o', 'd', 1, NULL, 0)`},
		{"priority 4", "DB010", `SELECT daybook.enqueue_accounting_job('o', 'd', 1, NULL, 4)`},
		{"priority beyond smallint", "DB010", `SELECT daybook.enqueue_accounting_job('o', 'd', 1, NULL, 70000)`},
		{"never due", "DB010", `SELECT daybook.enqueue_accounting_job('o', 'd', 1, 'infinity')`},
		{"due since ever", "", `SELECT daybook.enqueue_accounting_job('o', 'd', 1, '-infinity')`},

		{
			"many: one is empty", "DB010",
			`SELECT daybook.enqueue_accounting_jobs(ARRAY['o', ''], ARRAY['d', 'd'], ARRAY[1, 1])`,
		},
		{
			"many: one is null", "DB010",
			`SELECT daybook.enqueue_accounting_jobs(ARRAY['o', NULL], ARRAY['d', 'd'], ARRAY[1, 1])`,
		},
		{
			"many: one is too long", "DB010",
			`SELECT daybook.enqueue_accounting_jobs(ARRAY['o', 'o'], ARRAY['d', repeat('a', 256)], ARRAY[1, 1])`,
		},
		{
			"many: one is negative", "DB010",
			`SELECT daybook.enqueue_accounting_jobs(ARRAY['o', 'o'], ARRAY['d', 'e'], ARRAY[1, -1])`,
		},
		{
			"many: one has no version", "DB010",
			`SELECT daybook.enqueue_accounting_jobs(ARRAY['o', 'o'], ARRAY['d', 'e'], ARRAY[1, NULL])`,
		},
		{
			"many: one priority is wrong", "DB010",
			`SELECT daybook.enqueue_accounting_jobs(ARRAY['o', 'o'], ARRAY['d', 'e'], ARRAY[1, 1], NULL, ARRAY[1, 9])`,
		},
		{
			"many: one is never due", "DB010",
			`SELECT daybook.enqueue_accounting_jobs(ARRAY['o'], ARRAY['d'], ARRAY[1], ARRAY['infinity'::timestamptz])`,
		},
		{
			"many: unequal lengths", "DB010",
			`SELECT daybook.enqueue_accounting_jobs(ARRAY['o', 'o'], ARRAY['d', 'e'], ARRAY[1])`,
		},
		{
			"many: unequal priorities", "DB010",
			`SELECT daybook.enqueue_accounting_jobs(ARRAY['o', 'o'], ARRAY['d', 'e'], ARRAY[1, 1], NULL, ARRAY[1])`,
		},
		{"many: no versions at all", "DB010", `SELECT daybook.enqueue_accounting_jobs(ARRAY['o'], ARRAY['d'], NULL)`},
		{"many: none", "", `SELECT daybook.enqueue_accounting_jobs(ARRAY[]::text[], ARRAY[]::text[], ARRAY[]::bigint[])`},

		{"mark pending: empty", "DB010", `SELECT daybook.mark_accounting_job_pending('', 'd')`},
		{"mark pending: negative delay", "DB010", `SELECT daybook.mark_accounting_job_pending('org_1', 'done', NULL, -1)`},
		{"mark pending: NaN", "DB010", `SELECT daybook.mark_accounting_job_pending('org_1', 'done', NULL, 'NaN')`},
		{
			"mark pending: infinite delay", "DB010",
			`SELECT daybook.mark_accounting_job_pending('org_1', 'done', NULL, 'Infinity')`,
		},
		{"mark pending: no delay", "DB010", `SELECT daybook.mark_accounting_job_pending('org_1', 'done', NULL, NULL)`},
		{"mark pending: no such job", "DB011", `SELECT daybook.mark_accounting_job_pending('org_1', 'unknown')`},
		{"cancel: empty", "DB010", `SELECT daybook.cancel_accounting_job('org_1', '')`},
		{"cancel: no such job", "DB011", `SELECT daybook.cancel_accounting_job('org_1', 'unknown')`},
		{"cancel: completed", "DB012", `SELECT daybook.cancel_accounting_job('org_1', 'done')`},

		{"ready: empty", "DB010", `SELECT daybook.mark_document_ready('', 'd')`},
		{"ready: priority 4", "DB010", `SELECT daybook.mark_document_ready('org_1', 'doc_1', 4)`},
		{"ready: no such document", "DB013", `SELECT daybook.mark_document_ready('org_1', 'unknown')`},
		{"ready: deleted", "DB014", `SELECT daybook.mark_document_ready('org_1', 'deleted')`},
		{"not ready: no such document", "DB013", `SELECT daybook.mark_document_not_ready('org_1', 'unknown')`},
		{"deleted: no such document", "DB013", `SELECT daybook.mark_document_deleted('org_1', 'unknown')`},
	} {
		_, err := b.Pool.Exec(t.Context(), c.query)
		var pg *pgconn.PgError
		if c.state == "" {
			assert.NoError(t, err, c.name)
		} else if assert.ErrorAs(t, err, &pg, c.name) {
			assert.Equal(t, c.state, pg.Code, "%s: %s", c.name, pg.Message)
		}
	}
}

// Errors say what to do next, in the words of the database function.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.bring("completed")
	_, err := cancel(t.Context(), b.Pool)
	require.ErrorIs(t, err, queue.ErrJobCompleted)
	require.EqualError(t, err, "the accounting job for document doc_1 of organization org_1 is completed: mark the "+
		"document not ready or deleted to take its posting back")
	_, err = queue.MarkAccountingJobPending(t.Context(), b.Pool,
		queue.PendingAccountingJob{OrgID: org, DocumentID: "unknown"})
	require.EqualError(t, err, "no accounting job for document unknown of organization org_1: enqueue the document first")
}
