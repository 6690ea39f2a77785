package queue_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/queue"
)

// requests makes every request on a handle and returns their errors.
func requests(ctx context.Context, q queue.Querier) map[string]error {
	document := queue.Document{OrgID: "org_1", ID: "doc_1"}
	said := map[string]error{}
	_, said["EnqueueAccountingJob"] = queue.EnqueueAccountingJob(ctx, q,
		queue.AccountingJob{OrgID: "org_1", DocumentID: "doc_1", Version: 1})
	_, said["EnqueueAccountingJobs"] = queue.EnqueueAccountingJobs(ctx, q,
		[]queue.AccountingJob{{OrgID: "org_1", DocumentID: "doc_1", Version: 1}})
	_, said["MarkAccountingJobPending"] = queue.MarkAccountingJobPending(ctx, q,
		queue.PendingAccountingJob{OrgID: "org_1", DocumentID: "doc_1"})
	_, said["RepostAccountingJob"] = queue.RepostAccountingJob(ctx, q, document)
	_, said["CancelAccountingJob"] = queue.CancelAccountingJob(ctx, q, document)
	_, said["MarkDocumentReady"] = queue.MarkDocumentReady(ctx, q, document)
	_, said["MarkDocumentNotReady"] = queue.MarkDocumentNotReady(ctx, q, document)
	_, said["MarkDocumentDeleted"] = queue.MarkDocumentDeleted(ctx, q, document)
	_, said["ReadAccountingJobStatus"] = queue.ReadAccountingJobStatus(ctx, q, document)
	_, said["WaitAccountingJob"] = queue.WaitAccountingJob(ctx, q, document, queue.WaitAccountingJobOptions{})
	_, said["EnqueueJob"] = queue.EnqueueJob(ctx, q, "org_1", queue.RawPayload{Type: "t"}, queue.JobOptions{})
	_, said["EnqueueJobs"] = queue.EnqueueJobs(ctx, q,
		[]queue.NewJob{{OrgID: "org_1", Payload: queue.RawPayload{Type: "t"}}})
	_, said["RetryJob"] = queue.RetryJob(ctx, q, "j", queue.RetryOptions{})
	_, said["CancelJob"] = queue.CancelJob(ctx, q, "j")
	_, said["ReadJobStatus"] = queue.ReadJobStatus(ctx, q, "j")
	_, said["WaitJob"] = queue.WaitJob(ctx, q, "j", queue.WaitJobOptions{})
	return said
}

func TestNilQueriers(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]queue.Querier{
		"nil":                      nil,
		"nil pool":                 (*pgxpool.Pool)(nil),
		"nil connection":           (*pgx.Conn)(nil),
		"nil database/sql handle":  queue.SQL((*sql.Tx)(nil)),
		"nil database/sql querier": queue.SQL(nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for request, err := range requests(t.Context(), q) {
				require.ErrorIs(t, err, queue.ErrNoQuerier, request)
				assert.ErrorContains(t, err, "pass your transaction", request)
			}
		})
	}
}

func TestRequestsOnADatabaseWithoutTheSchema(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	for request, err := range requests(t.Context(), onEach{db.Pool}) {
		require.ErrorIs(t, err, queue.ErrNotMigrated, request)
		assert.ErrorContains(t, err, "daybook migrate up", request)
		var pg interface{ SQLState() string }
		assert.ErrorAs(t, err, &pg, "%s keeps the database's own error", request)
	}
}

// onEach is a handle that is no pool by its type, so that requests which want a transaction take
// it.
type onEach struct{ *pgxpool.Pool }
