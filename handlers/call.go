package handlers

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// call is one attempt at a job, as a built-in handler sees it.
type call[P queue.Payload] struct {
	id, orgID  string
	attempt    int
	key        string
	payload    P
	enqueuedAt time.Time
	// encrypted: no table may hold in plain what the payload, or an answer, says.
	encrypted bool

	result   func(v any)
	progress func(ctx context.Context, v any) error
	inTx     func(f func(ctx context.Context, tx pgx.Tx) error)
}

func callOf[P queue.Payload](job *jobs.Job[P]) *call[P] {
	return &call[P]{
		id: job.ID, orgID: job.OrgID, attempt: job.Attempt, key: job.IdempotencyKey, payload: job.Payload,
		enqueuedAt: job.EnqueuedAt, encrypted: job.Encrypted,
		result: job.SetResult, progress: job.Progress, inTx: job.InTx,
	}
}

// writeOnCompletion has a receipt that could not be written before written with the completion of
// the job. Time in which the database holds that up is not the job's.
func (c *call[P]) writeOnCompletion(write func(ctx context.Context, tx pgx.Tx) error) {
	c.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return store.Await(ctx, receiptTimeout, func(ctx context.Context) error { return write(ctx, tx) })
	})
}

// writes are what the end of an attempt is to write, because the database has not taken it before.
// Without that, the next attempt does not know it.
type writes []func(ctx context.Context, tx pgx.Tx) error

func (w writes) run(ctx context.Context, tx pgx.Tx) error {
	for _, write := range w {
		if err := write(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}
