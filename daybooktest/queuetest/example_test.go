package queuetest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// Thanks is a payload.
type Thanks struct {
	Order string `json:"order"`
}

// JobType implements queue.Payload.
func (Thanks) JobType() string { return "thanks" }

// pay is the code under test: it takes an order's money, and has the customer thanked.
func pay(ctx context.Context, tx queue.Querier, order string) error {
	_, err := queue.EnqueueJob(ctx, tx, "acme", Thanks{Order: order}, queue.JobOptions{Priority: queue.High})
	return err
}

// The test of the code that enqueues asks what was enqueued. t is the test's *testing.T.
func ExampleRequireJobEnqueued() {
	t := pgtest.NewExample()
	defer t.Close()
	if err := pay(t.Context(), t.Pool, "order-7"); err != nil {
		panic(err)
	}

	job := queuetest.RequireJobEnqueued(t, t.Pool,
		func(j queuetest.Job[Thanks]) bool { return j.Payload.Order == "order-7" })
	fmt.Println(job.OrgID, job.State, job.Priority == queue.High)
	// Output: acme pending true
}

func ExampleRequireJobNotEnqueued() {
	t := pgtest.NewExample()
	defer t.Close()
	err := pgx.BeginFunc(t.Context(), t.Pool, func(tx pgx.Tx) error {
		if err := pay(t.Context(), tx, "order-7"); err != nil {
			return err
		}
		return errors.New("the card was refused")
	})
	fmt.Println(err)

	queuetest.RequireJobNotEnqueued[Thanks](t, t.Pool)
	// Output: the card was refused
}

func ExampleEnqueuedJobs() {
	t := pgtest.NewExample()
	defer t.Close()
	for _, order := range []string{"order-7", "order-8"} {
		if err := pay(t.Context(), t.Pool, order); err != nil {
			panic(err)
		}
	}

	for _, job := range queuetest.EnqueuedJobs[Thanks](t, t.Pool) {
		fmt.Println(job.Payload.Order)
	}
	// Output:
	// order-7
	// order-8
}

// The test of a handler enqueues, and has everything that is due worked in the test's process,
// without Temporal.
func ExampleDrainJobs() {
	t := pgtest.NewExample()
	defer t.Close()
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Thanks]) error {
		fmt.Println("thank you for", job.Payload.Order)
		return nil
	})
	if err := pay(t.Context(), t.Pool, "order-7"); err != nil {
		panic(err)
	}

	drained := queuetest.DrainJobs(t, t.Pool, registry, queuetest.JobsOptions{})
	drained.RequireCompleted(t)
	fmt.Println(drained.Completed)
	// Output:
	// thank you for order-7
	// 1
}

// The test of documents has everything that is ready posted.
func ExampleDrainAccounting() {
	t := pgtest.NewExample()
	defer t.Close()
	fixture.Organization(t, t.Pool, "acme")
	fixture.Ready(t, t.Pool, fixture.Invoice("acme", "inv-1", 10000), fixture.Unbalanced("acme", "inv-2"))

	for _, j := range queuetest.DrainAccounting(t, t.Pool, queuetest.AccountingOptions{}).Jobs {
		fmt.Println(j.DocumentID, j.State)
	}
	// Output:
	// inv-1 completed
	// inv-2 failed
}
