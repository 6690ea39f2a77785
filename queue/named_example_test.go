package queue_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/queue"
)

// bank is a server that allows ten calls at a time, and a hundred a minute.
func bank() queue.NamedQueue {
	return queue.NamedQueue{Name: "bank", MaxParallel: 10, Rate: 100, Per: time.Minute, Owner: "payments"}
}

// A program makes its named queues when it starts, and enqueues in them. A name that is misspelled
// is refused, so that its job does not go around the limits.
func ExampleSetQueue() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	for range 2 {
		changed, err := queue.SetQueue(ctx, pool, bank())
		fmt.Println(changed, err)
	}
	job, err := queue.EnqueueJob(ctx, pool, "acme", Receipt{OrderID: "order-7"}, queue.JobOptions{Queue: "bank"})
	fmt.Println(job.Result, err)
	_, err = queue.EnqueueJob(ctx, pool, "acme", Receipt{OrderID: "order-8"}, queue.JobOptions{Queue: "bnak"})
	fmt.Println(errors.Is(err, queue.ErrQueueNotFound))
	// Output:
	// true <nil>
	// false <nil>
	// enqueued <nil>
	// true
}

// A server that is down is called no more until it is up again.
func ExamplePauseQueue() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	fmt.Println(queue.SetQueue(ctx, pool, bank()))
	for range 2 {
		changed, err := queue.PauseQueue(ctx, pool, "bank")
		fmt.Println(changed, err)
	}
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
}

func ExampleResumeQueue() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	fmt.Println(queue.SetQueue(ctx, pool, bank()))
	changed, err := queue.ResumeQueue(ctx, pool, "bank")
	fmt.Println(changed, err) // it was not paused
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleDeleteQueue() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	fmt.Println(queue.SetQueue(ctx, pool, bank()))
	job, err := queue.EnqueueJob(ctx, pool, "acme", Receipt{OrderID: "order-7"}, queue.JobOptions{Queue: "bank"})
	fmt.Println(job.Result, err)
	fmt.Println(errors.Is(queue.DeleteQueue(ctx, pool, "bank"), queue.ErrQueueNotEmpty))
	_, err = queue.CancelJob(ctx, pool, job.ID)
	fmt.Println(err, queue.DeleteQueue(ctx, pool, "bank"))
	// Output:
	// true <nil>
	// enqueued <nil>
	// true
	// <nil> <nil>
}
