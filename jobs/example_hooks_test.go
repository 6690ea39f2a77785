package jobs_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// tenantKey is under which the context has the organization of a job.
type tenantKey struct{}

// Middleware runs around every handler: here it puts the organization into the context, and sees
// how the attempt ended.
func ExampleRegistry_Use() {
	registry := jobs.NewRegistry()
	registry.Use(func(ctx context.Context, job *jobs.Info, next func(context.Context) error) error {
		err := next(context.WithValue(ctx, tenantKey{}, job.OrgID))
		fmt.Println(job.Type, "attempt", job.Attempt, "ended with", err)
		return err
	})
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		fmt.Println("Hello from", ctx.Value(tenantKey{}))
		return nil
	})

	work(registry)
	// Output:
	// Hello from acme
	// welcome attempt 1 ended with <nil>
	// completed 1
}

// An error handler is told of each failed attempt, and may end the job.
func ExampleRegistry_OnError() {
	gone := errors.New("the account is closed")
	registry := jobs.NewRegistry()
	registry.OnError(func(ctx context.Context, job *jobs.Info, f jobs.Failure) jobs.Verdict {
		fmt.Println(job.Type, f.Code, f.Err)
		if errors.Is(f.Err, gone) {
			return jobs.DeadLetter
		}
		return jobs.Leave
	})
	jobs.Register(registry, jobs.Policy{MaxAttempts: 5}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		return gone
	})

	work(registry)
	// Output:
	// welcome HANDLER_ERROR the account is closed
	// failed 1 HANDLER_ERROR
}

// A handler sees what the job is about, how urgent it is, and what the attempts before came to.
func ExampleJob_EarlierAttempts() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		earlier, err := job.EarlierAttempts(ctx)
		if err != nil {
			return err
		}
		links, err := job.Links(ctx)
		fmt.Println(len(earlier), "before,", len(links), "links, normal:", job.Priority == queue.Normal)
		return err
	})

	work(registry)
	// Output:
	// 0 before, 0 links, normal: true
	// completed 1
}
