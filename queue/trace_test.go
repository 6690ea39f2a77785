package queue_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/queue"
)

const (
	traceparent      = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	otherTraceparent = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-00"
)

// traces returns the traceparents of a table's rows, in the order of its key; "": a row has none.
func (b *bundle) traces(table, key string) []string {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(), "SELECT coalesce(traceparent, '') FROM "+table+" ORDER BY "+key)
	require.NoError(b.t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	return list
}

// TestTraceOfRequests makes each request in a context with a trace, and one like it in a context
// without.
func TestTraceOfRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := queue.WithTraceParent(t.Context(), traceparent)
	assert.Equal(t, traceparent, queue.TraceParent(ctx))
	for i, ctx := range []context.Context{ctx, t.Context(), queue.WithTraceParent(t.Context(), "00-nonsense-01")} {
		n := string(rune('a' + i))
		_, err := queue.EnqueueJob(ctx, b.Pool, org, welcome{UserID: n}, queue.JobOptions{})
		require.NoError(t, err)
		_, err = queue.EnqueueJobs(ctx, b.Pool, []queue.NewJob{
			{OrgID: org, Payload: welcome{UserID: "1"}, Options: queue.JobOptions{IdempotencyKey: n}},
			{OrgID: org, Payload: welcome{UserID: n}, Options: queue.JobOptions{Unique: true}},
		})
		require.NoError(t, err)
		_, err = queue.EnqueueAccountingJob(ctx, b.Pool, queue.AccountingJob{OrgID: org, DocumentID: n + "1", Version: 1})
		require.NoError(t, err)
		_, err = queue.EnqueueAccountingJobs(ctx, b.Pool,
			[]queue.AccountingJob{
				{OrgID: org, DocumentID: n + "2", Version: 1},
				{OrgID: org, DocumentID: n + "3", Version: 1},
			})
		require.NoError(t, err)
		d := fixture.Invoice(org, n+"4", 1000)
		fixture.Ready(t, b.Pool, d)
		require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
			_, err := queue.MarkDocumentReady(ctx, tx, queue.Document{OrgID: org, ID: n + "4"})
			return err
		}))
		tasks, err := queue.EnqueueTasks(ctx, b.Pool,
			[]queue.NewTask{
				{Payload: queue.RawTask{Type: "t"}},
				{Payload: queue.RawTask{Type: "t", Data: json.RawMessage(`{"a": 1}`)}},
			})
		require.NoError(t, err)
		require.Len(t, tasks, 2)
	}
	assert.Equal(t, []string{traceparent, traceparent, traceparent, "", "", "", "", "", ""},
		b.traces("daybook.jobs", "created_at, id"))
	assert.Equal(t, []string{traceparent, traceparent, traceparent, traceparent, "", "", "", "", "", "", "", ""},
		b.traces("daybook.accounting_work_queue", "document_id"))
	assert.Equal(t, []string{traceparent, traceparent, "", "", "", ""}, b.traces("queues.task", "task_id"))
}

// TestTraceFromSQL is what a program of another language does: it sets daybook.traceparent for its
// transaction.
func TestTraceFromSQL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, set := range []string{
		traceparent, "", "nonsense", "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		traceparent + "' OR true",
	} {
		require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `SELECT set_config('daybook.traceparent', $1, true)`, set)
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), `SELECT daybook.enqueue_job('acme', 'welcome', '{}'), queues.enqueue('t', '{}')`)
			return err
		}))
	}
	assert.Equal(t, []string{traceparent, "", "", "", ""}, b.traces("daybook.jobs", "created_at, id"))
	assert.Equal(t, []string{traceparent, "", "", "", ""}, b.traces("queues.task", "task_id"))
}

// TestTraceOfTheNextAttempt follows one document: a trace stays while the job waits for the same
// attempt, and goes with a request that begins anew.
func TestTraceOfTheNextAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	enqueue := func(ctx context.Context, version int64) string {
		_, err := queue.EnqueueAccountingJob(ctx, b.Pool,
			queue.AccountingJob{OrgID: org, DocumentID: doc, Version: version})
		require.NoError(t, err)
		return b.traces("daybook.accounting_work_queue", "id")[0]
	}
	one, other := queue.WithTraceParent(t.Context(), traceparent), queue.WithTraceParent(t.Context(), otherTraceparent)
	assert.Equal(t, traceparent, enqueue(one, 1))
	assert.Equal(t, traceparent, enqueue(t.Context(), 2), "coalesced, without a trace of its own")
	assert.Equal(t, otherTraceparent, enqueue(other, 3), "coalesced")
	_, err := queue.CancelAccountingJob(t.Context(), b.Pool, queue.Document{OrgID: org, ID: doc})
	require.NoError(t, err)
	assert.Empty(t, enqueue(t.Context(), 4), "requeued: the attempt before answered the other trace")
}

// TestTraceHoldsForTheTransaction: what the same transaction enqueues by SQL after a traced request
// belongs to the trace.
func TestTraceHoldsForTheTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		_, err := queue.EnqueueJob(queue.WithTraceParent(t.Context(), traceparent), tx, org, welcome{}, queue.JobOptions{})
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `SELECT daybook.enqueue_job('acme', 'welcome', '{}')`)
		return err
	}))
	b.newJob(welcome{}, queue.JobOptions{})
	assert.Equal(t, []string{traceparent, traceparent, ""}, b.traces("daybook.jobs", "created_at, id"))
}
