package queue_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/queue"
)

// What PostgreSQL cannot hold is found before anything is sent: a pool without a database is never
// asked.
func TestTextsAndTimesThatNoRowCanHave(t *testing.T) {
	t.Parallel()
	ctx, q, payload := t.Context(), new(pgxpool.Pool), queue.RawPayload{Type: "t", Data: []byte(`{}`)}
	for _, wrong := range []string{"a\x00b", "a\xffb"} {
		for what, o := range map[string]queue.JobOptions{
			"idempotency key":     {IdempotencyKey: wrong},
			"key of the sequence": {Sequence: wrong},
			"ids of After":        {After: []string{wrong}},
			"links":               {Links: []queue.Link{{Kind: "user", ID: wrong}}},
		} {
			_, err := queue.EnqueueJob(ctx, q, "acme", payload, o)
			require.ErrorIs(t, err, queue.ErrInvalidText)
			require.ErrorContains(t, err, what)
		}
		said := map[string]error{}
		_, said["EnqueueJob"] = queue.EnqueueJob(ctx, q, wrong, payload, queue.JobOptions{})
		_, said["EnqueueJobs"] = queue.EnqueueJobs(ctx, q, []queue.NewJob{{OrgID: wrong, Payload: payload}})
		_, said["EnqueueAccountingJob"] = queue.EnqueueAccountingJob(ctx, q,
			queue.AccountingJob{OrgID: "acme", DocumentID: wrong})
		_, said["EnqueueAccountingJobs"] = queue.EnqueueAccountingJobs(ctx, q,
			[]queue.AccountingJob{{OrgID: wrong, DocumentID: "d"}})
		_, said["CancelAccountingJob"] = queue.CancelAccountingJob(ctx, q, queue.Document{OrgID: "acme", ID: wrong})
		_, said["MarkDocumentReady"] = queue.MarkDocumentReady(ctx, q, queue.Document{OrgID: "acme", ID: wrong})
		_, said["ReadAccountingJobStatus"] = queue.ReadAccountingJobStatus(ctx, q, queue.Document{OrgID: wrong, ID: "d"})
		_, said["SetSource"] = queue.SetSource(ctx, q, wrong, "daybook")
		for request, err := range said {
			require.ErrorIs(t, err, queue.ErrInvalidText, request)
			require.ErrorContains(t, err, " id", request)
		}
		said = map[string]error{}
		_, said["RetryJob"] = queue.RetryJob(ctx, q, wrong, queue.RetryOptions{})
		_, said["CancelJob"] = queue.CancelJob(ctx, q, wrong)
		_, said["ReadJobStatus"] = queue.ReadJobStatus(ctx, q, wrong)
		_, said["WaitJob"] = queue.WaitJob(ctx, q, wrong, queue.WaitJobOptions{})
		_, said["PauseQueue"] = queue.PauseQueue(ctx, q, wrong)
		_, said["ResumeQueue"] = queue.ResumeQueue(ctx, q, wrong)
		said["DeleteQueue"] = queue.DeleteQueue(ctx, q, wrong)
		_, said["SetQueue"] = queue.SetQueue(ctx, q, queue.NamedQueue{Name: "q", Owner: wrong})
		_, said["EnqueueJobWithCallback"] = queue.EnqueueJobWithCallback(ctx, q, "acme", payload,
			queue.CallbackOptions{Name: wrong, Within: time.Hour}, queue.JobOptions{})
		_, said["CompleteCallback"] = queue.CompleteCallback(ctx, q, wrong, map[string]any{})
		for request, err := range said {
			require.ErrorIs(t, err, queue.ErrInvalidText, request)
		}
		_, err := queue.EnqueueJob(ctx, q, "acme", payload, queue.JobOptions{Queue: wrong})
		require.ErrorIs(t, err, queue.ErrInvalidQueue)
	}
	for _, at := range []time.Time{
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		_, err := queue.EnqueueJob(ctx, q, "acme", payload, queue.JobOptions{RunAt: at})
		require.ErrorIs(t, err, queue.ErrInvalidTime)
		_, err = queue.EnqueueAccountingJob(ctx, q, queue.AccountingJob{OrgID: "acme", DocumentID: "d", ReadyAt: at})
		require.ErrorIs(t, err, queue.ErrInvalidTime)
	}
}
