package queue_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/queue"
)

// A request for what is not there is an error that the caller can tell, and its transaction goes
// on: what it wrote before and writes after is committed.
func TestWhatIsNotThereLeavesTheTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "gone", 1000))
	_, err := b.Pool.Exec(t.Context(), `
UPDATE daybook.documents SET deleted_at = clock_timestamp();
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at) VALUES ('org_1', 'posted', 1, 'completed', clock_timestamp());
INSERT INTO daybook.jobs (id, org_id, type, payload, state, finished_at) VALUES ('ended', 'org_1', 'mail', '{}', 'completed', clock_timestamp())`)
	require.NoError(t, err)
	none, deleted, posted := queue.Document{OrgID: org, ID: "none"}, queue.Document{OrgID: org, ID: "gone"},
		queue.Document{OrgID: org, ID: "posted"}
	marked := func(_ queue.Marked, err error) error { return err }
	answered := func(_ queue.Response, err error) error { return err }
	for name, c := range map[string]struct {
		ask  func(ctx context.Context, tx pgx.Tx) error
		want error
	}{
		"ready": {func(ctx context.Context,
			tx pgx.Tx,
		) error {
			return marked(queue.MarkDocumentReady(ctx, tx, none))
		}, queue.ErrDocumentNotFound},
		"ready, deleted": {func(ctx context.Context,
			tx pgx.Tx,
		) error {
			return marked(queue.MarkDocumentReady(ctx, tx, deleted))
		}, queue.ErrDocumentDeleted},
		"not ready": {func(ctx context.Context,
			tx pgx.Tx,
		) error {
			return marked(queue.MarkDocumentNotReady(ctx, tx, none))
		}, queue.ErrDocumentNotFound},
		"deleted": {
			func(ctx context.Context, tx pgx.Tx) error { return marked(queue.MarkDocumentDeleted(ctx, tx, none)) },
			queue.ErrDocumentNotFound,
		},
		"pending": {func(ctx context.Context, tx pgx.Tx) error {
			return answered(queue.MarkAccountingJobPending(ctx, tx,
				queue.PendingAccountingJob{OrgID: org, DocumentID: "none"}))
		}, queue.ErrJobNotFound},
		"repost": {
			func(ctx context.Context, tx pgx.Tx) error { return answered(queue.RepostAccountingJob(ctx, tx, none)) },
			queue.ErrJobNotFound,
		},
		"cancel": {
			func(ctx context.Context, tx pgx.Tx) error { return answered(queue.CancelAccountingJob(ctx, tx, none)) },
			queue.ErrJobNotFound,
		},
		"cancel, completed": {func(ctx context.Context, tx pgx.Tx) error {
			return answered(queue.CancelAccountingJob(ctx, tx, posted))
		}, queue.ErrJobCompleted},
		"cancel a job": {func(ctx context.Context,
			tx pgx.Tx,
		) error {
			return answered(queue.CancelJob(ctx, tx, "none"))
		}, queue.ErrJobNotFound},
		"cancel a job, ended": {func(ctx context.Context,
			tx pgx.Tx,
		) error {
			return answered(queue.CancelJob(ctx, tx, "ended"))
		}, queue.ErrJobCompleted},
		"retry a job": {func(ctx context.Context, tx pgx.Tx) error {
			return answered(queue.RetryJob(ctx, tx, "none", queue.RetryOptions{}))
		}, queue.ErrJobNotFound},
		"retry a job, ended": {func(ctx context.Context, tx pgx.Tx) error {
			return answered(queue.RetryJob(ctx, tx, "ended", queue.RetryOptions{}))
		}, queue.ErrJobCompleted},
	} {
		tx, err := b.Pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(),
			`INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ($1, 'org_1', 'note', '{}')`, "before "+name)
		require.NoError(t, err)
		require.ErrorIs(t, c.ask(t.Context(), tx), c.want, name)
		_, err = tx.Exec(t.Context(),
			`INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ($1, 'org_1', 'note', '{}')`, "after "+name)
		assert.NoError(t, err, "%s: the transaction goes on", name)
		assert.NoError(t, tx.Commit(t.Context()), name)
	}
}
