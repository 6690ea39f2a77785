package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// Delivery is what became of one channel of a job that sends by several.
type Delivery struct {
	Channel   string
	State     models.DeliveryState
	Attempt   int
	Reference string
	ErrorCode models.ErrorCode
	Error     string
}

// Deliveries reads what became of each channel of a job in earlier attempts. A channel that was
// being asked when its attempt ended becomes unknown: it is not on record whether it took the
// message.
func Deliveries(ctx context.Context, q batcher, jobID string) (map[string]Delivery, error) {
	const stmt = `
WITH lost AS (
    UPDATE daybook.job_deliveries
       SET state = 'unknown', reference = NULL, ended_at = clock_timestamp(), error_code = 'WORKER_LOST',
           error = 'the attempt ended before it was on record whether the message was sent'
     WHERE job_id = @job AND state = 'sending'
    RETURNING channel, state, attempt, reference, error_code, error
)
SELECT channel, state, attempt, coalesce(reference, ''), coalesce(error_code, ''), coalesce(error, '') FROM lost
 UNION ALL
SELECT d.channel, d.state, d.attempt, coalesce(d.reference, ''), coalesce(d.error_code, ''), coalesce(d.error, '')
  FROM daybook.job_deliveries d
 WHERE d.job_id = @job AND d.state <> 'sending'`
	rows, err := byKey(ctx, q, pgx.RowToStructByPos[Delivery], stmt, Args{"job": jobID})
	if err != nil {
		return nil, Wrap("read what the job has sent", err)
	}
	all := make(map[string]Delivery, len(rows))
	for _, d := range rows {
		all[d.Channel] = d
	}
	return all, nil
}

// BeginDelivery notes that a channel is about to be asked. It reports false when it must not be:
// the message was sent, or perhaps sent, or was refused for good. A request to try the job again
// allows what was refused; one that resets the job allows also what was perhaps sent. After an
// error the channel is not to be asked, and UndoDelivery is: it knows by the mark, a text that no
// other call has, what this one has noted.
func BeginDelivery(ctx context.Context, q batcher, jobID, channel string, attempt int, mark string) (bool, error) {
	const stmt = `
INSERT INTO daybook.job_deliveries AS d (job_id, channel, state, attempt, generation, reference)
SELECT @job, @channel, 'sending', @attempt, coalesce((SELECT j.generation FROM daybook.jobs j WHERE j.id = @job), 0), @mark
ON CONFLICT (job_id, channel) DO UPDATE
   SET state = 'sending', attempt = excluded.attempt, generation = excluded.generation, reference = excluded.reference, error_code = NULL, error = NULL,
       started_at = clock_timestamp(), ended_at = NULL
 WHERE d.state = 'failed'
    OR (d.state = 'refused' AND d.generation < excluded.generation)
    OR (d.state = 'unknown' AND d.generation < excluded.generation AND d.attempt >= excluded.attempt)
RETURNING d.channel`
	begun, err := byKey(ctx, q, pgx.RowTo[string], stmt,
		Args{"job": jobID, "channel": channel, "attempt": attempt, "mark": mark})
	return len(begun) == 1, Wrap("note that a channel is asked", err)
}

// UndoDelivery notes that a channel was not asked, where BeginDelivery has noted by that mark that
// it is about to be. It waits for a call of it whose commit hangs.
func UndoDelivery(ctx context.Context, q batcher, jobID, channel string, attempt int, mark string) error {
	const stmt = `
INSERT INTO daybook.job_deliveries AS d (job_id, channel, state, attempt, generation, error_code, error, ended_at)
VALUES (@job, @channel, 'failed', @attempt, 0, 'DATABASE_ERROR', 'it was not asked: the database did not take in time that it is asked', clock_timestamp())
ON CONFLICT (job_id, channel) DO UPDATE
   SET state = excluded.state, reference = NULL, error_code = excluded.error_code, error = excluded.error, ended_at = excluded.ended_at
 WHERE d.state = 'sending' AND d.reference = @mark
RETURNING d.channel`
	_, err := byKey(ctx, q, pgx.RowTo[string], stmt,
		Args{"job": jobID, "channel": channel, "attempt": attempt, "mark": mark})
	return Wrap("note that a channel was not asked", err)
}

// EndDelivery notes what became of a channel that was asked.
func EndDelivery(ctx context.Context, q batcher, jobID string, d Delivery) error {
	const stmt = `
UPDATE daybook.job_deliveries
   SET state = @state, reference = nullif(@reference, ''), error_code = nullif(@code, ''), error = nullif(@error, ''), ended_at = clock_timestamp()
 WHERE job_id = @job AND channel = @channel AND attempt = @attempt AND state IN ('sending', 'unknown')
RETURNING channel`
	_, err := byKey(ctx, q, pgx.RowTo[string], stmt, Args{
		"job": jobID, "channel": d.Channel, "attempt": d.Attempt, "state": string(d.State), "reference": d.Reference,
		"code":  string(d.ErrorCode),
		"error": d.Error,
	})
	return Wrap("note what became of a channel", err)
}

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

// WriteWebhookReceipt writes a receipt. An attempt that is repeated after its worker was lost
// replaces its receipt, unless that says that the webhook was delivered.
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
		"job": r.JobID, "org": r.OrgID, "attempt": r.Attempt, "url": r.URL, "status": r.Status, "ok": r.OK,
		"error_code":  string(r.ErrorCode),
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
