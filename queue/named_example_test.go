package queue_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/queue"
)

// A program makes its named queues when it starts, and enqueues in them.
func ExampleSetQueue() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "") // PGHOST, PGDATABASE …
	if err != nil {
		log.Fatal(err)
	}
	// The server that is called allows ten calls at a time, and a hundred a minute.
	err = queue.SetQueue(ctx, pool, queue.NamedQueue{Name: "bank", MaxParallel: 10, Rate: 100, Per: time.Minute, Owner: "payments"})
	if err != nil {
		log.Fatal(err)
	}
	job, err := queue.EnqueueJob(ctx, pool, "org_123", welcome{UserID: "u_1"}, queue.JobOptions{Queue: "bank"})
	if err != nil {
		log.Fatal(err) // queue.ErrQueueUnknown, had it not been made
	}
	fmt.Println(job.ID)
}

// A server that is down is called no more until it is up again.
func ExamplePauseQueue() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := queue.PauseQueue(ctx, pool, "bank"); err != nil {
		log.Fatal(err)
	}
}

func ExampleResumeQueue() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	changed, err := queue.ResumeQueue(ctx, pool, "bank")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(changed)
}

func ExampleDeleteQueue() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	if err := queue.DeleteQueue(ctx, pool, "bank"); err != nil {
		log.Fatal(err) // queue.ErrQueueNotEmpty while it has open jobs
	}
}
