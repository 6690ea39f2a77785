package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/queue"
)

// Receipt is a payload: its JSON tags name the fields, its JobType the handler.
type Receipt struct {
	OrderID string `json:"order_id" jsonschema:"the order that was paid"`
}

// JobType implements queue.Payload.
func (Receipt) JobType() string { return "receipt" }

// The order and the job that follows it are committed together.
func ExampleEnqueueJob() {
	pay := func(ctx context.Context, tx pgx.Tx, order string) error {
		// … write the order …
		job, err := queue.EnqueueJob(ctx, tx, "org_123", Receipt{OrderID: order}, queue.JobOptions{
			IdempotencyKey: "receipt/" + order,
			RunAt:          time.Now().Add(time.Minute),
			Links:          []queue.Link{{Kind: "order", ID: order}},
		})
		if err == nil && job.Duplicate {
			fmt.Println("the receipt was asked for already, by job", job.ID)
		}
		return err
	}
	_ = pay
}

// What cannot be enqueued is refused before anything is written.
func ExampleEnqueueJob_refused() {
	var tx pgx.Tx
	_, err := queue.EnqueueJob(context.Background(), tx, "org_123", Receipt{OrderID: strings.Repeat("x", 200_000)}, queue.JobOptions{})
	fmt.Println(errors.Is(err, queue.ErrPayloadTooLarge), err)
	// Output: true payload: it has 200016 bytes and may have 131072: keep what is large elsewhere, and its name in the payload
}
