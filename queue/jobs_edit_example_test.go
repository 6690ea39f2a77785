package queue_test

import (
	"fmt"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/queue"
)

// A job with a wrong payload gets another one, and is tried again in the same transaction.
func ExampleEditJob() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	job, err := queue.EnqueueJob(ctx, pool, "acme", Receipt{OrderID: "order-71"}, queue.JobOptions{})
	if err != nil {
		panic(err)
	}
	if _, err := queue.CancelJob(ctx, pool, job.ID); err != nil {
		panic(err)
	}

	r, err := queue.EditJob(ctx, pool, job.ID, Receipt{OrderID: "order-7"},
		queue.EditOptions{By: "ann", Retry: queue.RetryNow})
	fmt.Println(r.Result, err)
	// Output: requeued <nil>
}
