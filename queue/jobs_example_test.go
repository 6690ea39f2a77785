package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/jobs"
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
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// … write the order …
		job, err := queue.EnqueueJob(ctx, tx, "acme", Receipt{OrderID: "order-7"}, queue.JobOptions{
			RunAt: time.Now().Add(time.Minute),
			Links: []queue.Link{{Kind: "order", ID: "order-7"}},
		})
		fmt.Println(job.Result)
		return err
	})
	fmt.Println(err)
	// Output:
	// enqueued
	// <nil>
}

// The same key with the same payload leads to the first job, however often it is asked for; with
// another payload it is an error.
func ExampleEnqueueJob_idempotent() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	for _, order := range []string{"order-7", "order-7", "order-8"} {
		job, err := queue.EnqueueJob(ctx, pool, "acme", Receipt{OrderID: order},
			queue.JobOptions{IdempotencyKey: "receipt/7"})
		fmt.Println(job.Duplicate, errors.Is(err, queue.ErrKeyReused))
	}
	// Output:
	// false false
	// true false
	// false true
}

// What cannot be enqueued is refused before anything is written.
func ExampleEnqueueJob_refused() {
	var tx pgx.Tx
	_, err := queue.EnqueueJob(context.Background(), tx, "org_123", Receipt{OrderID: strings.Repeat("x", 200_000)},
		queue.JobOptions{})
	fmt.Println(errors.Is(err, queue.ErrPayloadTooLarge), err)
	// Output: true payload: it has 200016 bytes and may have 131072: keep what is large elsewhere, and its name in the payload
}

// Many jobs are enqueued by one statement.
func ExampleEnqueueJobs() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	jobs := make([]queue.NewJob, 1000)
	for i := range jobs {
		jobs[i] = queue.NewJob{
			OrgID: "acme", Payload: Receipt{OrderID: fmt.Sprint(i)},
			Options: queue.JobOptions{Priority: queue.Low},
		}
	}
	done, err := queue.EnqueueJobs(ctx, pool, jobs)
	fmt.Println(len(done), done[0].Result, err)
	// Output: 1000 enqueued <nil>
}

// A program that has no struct for a payload, such as a gateway, passes JSON.
func ExampleRawPayload() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	payload := queue.RawPayload{Type: "receipt", Data: json.RawMessage(`{"order_id": "order-7"}`)}
	job, err := queue.EnqueueJob(ctx, pool, "acme", payload, queue.JobOptions{})
	fmt.Println(job.Result, err)
	// Output: enqueued <nil>
}

// CheckJob says what EnqueueJob would refuse, before there is a transaction.
func ExampleCheckJob() {
	fmt.Println(queue.CheckJob("acme", Receipt{OrderID: "order-7"}, queue.JobOptions{}))
	fmt.Println(errors.Is(queue.CheckJob("", Receipt{}, queue.JobOptions{}), queue.ErrEmptyID))
	// Output:
	// <nil>
	// true
}

func ExampleCancelJob() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	job, err := queue.EnqueueJob(ctx, pool, "acme", Receipt{OrderID: "order-7"}, queue.JobOptions{})
	if err != nil {
		panic(err)
	}

	r, err := queue.CancelJob(ctx, pool, job.ID)
	fmt.Println(r.Result, err)
	// Output: cancelled <nil>
}

// A dead letter or a cancelled job is tried again, with its attempts counted anew.
func ExampleRetryJob() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	job, err := queue.EnqueueJob(ctx, pool, "acme", Receipt{OrderID: "order-7"}, queue.JobOptions{})
	if err != nil {
		panic(err)
	}
	if _, err := queue.CancelJob(ctx, pool, job.ID); err != nil {
		panic(err)
	}

	r, err := queue.RetryJob(ctx, pool, job.ID, queue.RetryOptions{Mode: queue.RetryReset})
	fmt.Println(r.Result, err)
	// Output: requeued <nil>
}

// receipts has a handler for receipts, as a worker has.
func receipts() *jobs.Registry {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[Receipt]) error {
		job.SetResult(map[string]string{"sent": job.Payload.OrderID})
		return nil
	})
	return registry
}

func ExampleReadJobStatus() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	job, err := queue.EnqueueJob(ctx, pool, "acme", Receipt{OrderID: "order-7"}, queue.JobOptions{})
	if err != nil {
		panic(err)
	}

	before, err := queue.ReadJobStatus(ctx, pool, job.ID)
	if err != nil {
		panic(err)
	}
	queuetest.DrainJobs(e, pool, receipts(), queuetest.JobsOptions{}) // a worker does the same
	after, err := queue.ReadJobStatus(ctx, pool, job.ID)
	fmt.Println(before.State, before.Ended())
	fmt.Println(after.State, after.Ended(), string(after.Result), err)
	// Output:
	// pending false
	// completed true {"sent": "order-7"} <nil>
}

// A request that must answer with the outcome waits for it, after its commit and for a bounded
// time.
func ExampleWaitJob() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	job, err := queue.EnqueueJob(ctx, pool, "acme", Receipt{OrderID: "order-7"}, queue.JobOptions{})
	if err != nil {
		panic(err)
	}
	queuetest.DrainJobs(e, pool, receipts(), queuetest.JobsOptions{}) // a worker does the same

	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	status, err := queue.WaitJob(ctx, pool, job.ID, queue.WaitJobOptions{})
	fmt.Println(status.State, string(status.Result), err)
	// Output: completed {"sent": "order-7"} <nil>
}

// Another system answers by the token that the handler gave it: in an application of its own, by
// this function, or over HTTP (POST /api/callbacks/…).
func ExampleCompleteCallback() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	var token string
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Receipt]) error {
		paid, err := job.Callback(ctx, "paid")
		if err != nil {
			return err
		}
		if paid != nil {
			fmt.Println("paid:", string(paid.Data))
			return nil
		}
		if paid, err = job.NewCallback(ctx, "paid", time.Hour); err != nil {
			return err
		}
		token = paid.Token // in truth it is sent to the bank
		return jobs.AwaitCallback(paid)
	})
	if _, err := queue.EnqueueJob(ctx, pool, "acme", Receipt{OrderID: "order-7"}, queue.JobOptions{}); err != nil {
		panic(err)
	}
	queuetest.DrainJobs(e, pool, registry, queuetest.JobsOptions{})

	done, err := queue.CompleteCallback(ctx, pool, token, map[string]int{"cents": 900})
	fmt.Println(done.Result, err)
	queuetest.DrainJobs(e, pool, registry, queuetest.JobsOptions{})
	// Output:
	// received <nil>
	// paid: {"cents": 900}
}

// A job may wait for another system from the beginning: the token goes into the request that is
// sent there after the commit.
func ExampleEnqueueJobWithCallback() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Receipt]) error {
		paid, err := job.Callback(ctx, "paid")
		switch {
		case err != nil:
			return err
		case paid.Expired:
			return jobs.Cancel("not paid within an hour")
		case paid.Data == nil: // a person has tried the job meanwhile
			return jobs.AwaitCallback(paid)
		}
		fmt.Println("paid:", string(paid.Data))
		return nil
	})
	job, err := queue.EnqueueJobWithCallback(ctx, pool, "acme", Receipt{OrderID: "order-8"},
		queue.CallbackOptions{Name: "paid", Within: time.Hour}, queue.JobOptions{})
	if err != nil {
		panic(err)
	}
	queuetest.DrainJobs(e, pool, registry, queuetest.JobsOptions{}) // nothing is due
	done, err := queue.CompleteCallback(ctx, pool, job.Token, map[string]int{"cents": 900})
	fmt.Println(done.Result, err)
	queuetest.DrainJobs(e, pool, registry, queuetest.JobsOptions{})
	// Output:
	// received <nil>
	// paid: {"cents": 900}
}

// Jobs with the same sequence are worked one after the other; a job with After begins when those
// jobs are completed.
func ExampleJobOptions() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[Receipt]) error {
		fmt.Println(job.Payload.OrderID)
		return nil
	})
	var ids []string
	for _, change := range []string{"order-7: made", "order-7: paid"} {
		job, err := queue.EnqueueJob(ctx, pool, "acme", Receipt{OrderID: change}, queue.JobOptions{Sequence: "order-7"})
		if err != nil {
			panic(err)
		}
		ids = append(ids, job.ID)
	}
	if _, err := queue.EnqueueJob(ctx, pool, "acme", Receipt{OrderID: "summary"},
		queue.JobOptions{After: ids}); err != nil {
		panic(err)
	}
	queuetest.DrainJobs(e, pool, registry, queuetest.JobsOptions{})
	// Output:
	// order-7: made
	// order-7: paid
	// summary
}
