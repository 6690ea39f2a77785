package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// WebhookReceipt says how one attempt to deliver a webhook ended.
type WebhookReceipt struct {
	JobID   string
	OrgID   string
	Attempt int
	// URL is without query and credentials.
	URL string
	// Status is the answer's; 0: there was none.
	Status int
	// OK says that the webhook was delivered.
	OK bool
	// ErrorCode is empty when the webhook was delivered.
	ErrorCode models.ErrorCode
	Duration  time.Duration
	SentAt    time.Time
}

// WriteWebhookReceipt writes a receipt. An attempt that is repeated after its worker was lost replaces its receipt, unless that
// says that the webhook was delivered.
func WriteWebhookReceipt(ctx context.Context, q batcher, r WebhookReceipt) error {
	const stmt = `
INSERT INTO daybook.webhook_deliveries AS w (job_id, attempt, url, status, ok, error_code, duration_ms, sent_at, org_id)
VALUES (@job, @attempt, @url, nullif(@status, 0), @ok, nullif(@error_code, ''), @duration_ms, @sent_at, @org)
ON CONFLICT (job_id, attempt) DO UPDATE
   SET url = excluded.url, status = excluded.status, ok = excluded.ok, error_code = excluded.error_code,
       duration_ms = excluded.duration_ms, sent_at = excluded.sent_at
 WHERE NOT w.ok
RETURNING w.job_id`
	_, err := byKey(ctx, q, pgx.RowTo[string], stmt, Args{
		"job": r.JobID, "org": r.OrgID, "attempt": r.Attempt, "url": r.URL, "status": r.Status, "ok": r.OK, "error_code": string(r.ErrorCode),
		"duration_ms": r.Duration.Milliseconds(), "sent_at": r.SentAt,
	})
	return Wrap("write the webhook's receipt", err)
}

// DeliveredWebhook is the attempt that delivered a job's webhook.
type DeliveredWebhook struct {
	Attempt int
	Status  int
}

// WebhookDelivered reads which attempt of a job delivered its webhook; ok is false when none has.
func WebhookDelivered(ctx context.Context, q Querier, jobID string) (delivered DeliveredWebhook, ok bool, err error) {
	const stmt = `
SELECT attempt, coalesce(status, 0) FROM daybook.webhook_deliveries WHERE job_id = $1 AND ok ORDER BY attempt LIMIT 1`
	err = q.QueryRow(ctx, stmt, jobID).Scan(&delivered.Attempt, &delivered.Status)
	if errors.Is(err, pgx.ErrNoRows) {
		return delivered, false, nil
	}
	return delivered, err == nil, Wrap("look for an earlier delivery", err)
}
