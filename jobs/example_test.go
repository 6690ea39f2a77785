package jobs_test

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
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// Welcome is the payload of a job: a struct whose JSON tags name the fields.
type Welcome struct {
	Name string `json:"name" jsonschema:"whom to greet"`
}

// JobType implements queue.Payload.
func (Welcome) JobType() string { return "welcome" }

// work enqueues a job for Ada, has it worked once as a worker does, and prints what became of it.
func work(registry *jobs.Registry, names ...string) {
	e := pgtest.NewExample()
	defer e.Close()
	for _, name := range append([]string{"Ada"}, names...) {
		if _, err := queue.EnqueueJob(e.Context(), e.Pool, "acme", Welcome{Name: name}, queue.JobOptions{}); err != nil {
			panic(err)
		}
	}
	for _, j := range queuetest.DrainJobs(e, e.Pool, registry, queuetest.JobsOptions{}).Jobs {
		fmt.Println(strings.Join(strings.Fields(fmt.Sprint(j.State, " ", j.Attempts, " ", j.ErrorCode, " ",
			string(j.Result))), " "))
	}
}

// A handler gets the payload as the struct that was enqueued. It returns nil when the job is done.
func ExampleRegister() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{MaxAttempts: 5, Timeout: time.Minute},
		func(ctx context.Context, job *jobs.Job[Welcome]) error {
			fmt.Println("Hello,", job.Payload.Name)
			return nil
		})

	work(registry)
	// Output:
	// Hello, Ada
	// completed 1
}

// A bulk handler works many jobs in the transaction that completes them: what it writes commits
// with them, or not at all. The first result has an error for each job that failed; nil: none did.
func ExampleRegisterBulk() {
	registry := jobs.NewRegistry()
	jobs.RegisterBulk(registry, jobs.Policy{Parallel: 100},
		func(ctx context.Context, tx pgx.Tx, all []*jobs.Job[Welcome]) ([]error, error) {
			var n int
			err := tx.QueryRow(ctx, `SELECT $1::int`, len(all)).Scan(&n) // an INSERT … SELECT FROM unnest(…), for instance
			fmt.Println(n, "at once")
			return make([]error, len(all)), err
		})

	work(registry, "Grace", "Mary")
	// Output:
	// 3 at once
	// completed 1
	// completed 1
	// completed 1
}

// What InTx is given runs in the transaction that completes the job: it commits once, or not at
// all.
func ExampleJob_InTx() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		// … what takes time, outside of any transaction …
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := queue.EnqueueJob(ctx, tx, job.OrgID, queue.RawPayload{Type: "follow-up", Data: json.RawMessage(`{}`)},
				queue.JobOptions{RunAt: job.EnqueuedAt.Add(time.Hour)})
			return err
		})
		return nil
	})

	work(registry)
	// Output: completed 1
}

// Progress is stored at once, for people who look at the job while it runs.
func ExampleJob_Progress() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		for done := range 3 {
			if err := job.Progress(ctx, map[string]int{"done": done + 1, "of": 3}); err != nil {
				return err
			}
		}
		return nil
	})

	work(registry)
	// Output: completed 1
}

// A result is stored with the job when it is completed.
func ExampleJob_SetResult() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		job.SetResult(map[string]string{"greeted": job.Payload.Name})
		return nil
	})

	work(registry)
	// Output: completed 1 {"greeted": "Ada"}
}

// A job that has nothing to do yet is put off. That is not a failure and counts as no attempt.
func ExampleSnooze() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		return jobs.Snooze(time.Hour)
	})

	work(registry)
	// Output: pending 0 SNOOZED
}

// An upstream that says when to come back is believed, in place of the policy's backoff.
func ExampleRetryAfter() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		return jobs.RetryAfter(time.Hour, errors.New("429 Too Many Requests"))
	})

	work(registry)
	// Output: pending 1 HANDLER_ERROR
}

// An error that no further attempt can mend makes the job a dead letter at once.
func ExampleFinal() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		return jobs.Final(errors.New("the account is closed"))
	})

	work(registry)
	// Output: failed 1 HANDLER_ERROR
}

// A job that is not wanted any more ends as cancelled, and is no dead letter.
func ExampleCancel() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		return jobs.Cancel("the customer left")
	})

	work(registry)
	// Output: cancelled 1 JOB_CANCELLED
}

// A handler that takes long waits for its context as well, and may undo what it has begun
// elsewhere.
func ExampleCancelRequested() {
	e := pgtest.NewExample()
	defer e.Close()
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		fmt.Println("reserve a room for", job.Payload.Name)
		go queue.CancelJob(e.Context(), e.Pool, job.ID) //nolint:errcheck // as a person does it meanwhile
		select {
		case <-time.After(time.Minute):
			return nil
		case <-ctx.Done():
		}
		if jobs.CancelRequested(ctx) {
			fmt.Println("give the room back") // under context.WithoutCancel(ctx)
		}
		return ctx.Err()
	})
	if _, err := queue.EnqueueJob(e.Context(), e.Pool, "acme", Welcome{Name: "Ada"}, queue.JobOptions{}); err != nil {
		panic(err)
	}
	for _, j := range queuetest.DrainJobs(e, e.Pool, registry, queuetest.JobsOptions{}).Jobs {
		fmt.Println(j.State)
	}
	// Output:
	// reserve a room for Ada
	// give the room back
	// cancelled
}

// A code tells programs and dashboards why a job failed.
func ExampleWithCode() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		return jobs.Final(jobs.WithCode(models.CodeAuthenticationFailed,
			errors.New("the mail server refuses the password")))
	})

	work(registry)
	// Output: failed 1 AUTHENTICATION_FAILED
}

// A panic fails the attempt, and nothing else.
func ExampleRegister_panic() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{MaxAttempts: 1}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		panic("a bug")
	})

	work(registry)
	// Output: failed 1 HANDLER_ERROR
}

// A program that takes payloads from others, such as a gateway, checks them against the schema of
// their type.
func ExampleRegistry_CheckPayload() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(context.Context, *jobs.Job[Welcome]) error { return nil })

	fmt.Println(registry.CheckPayload("welcome", json.RawMessage(`{"name": "Ada"}`)))
	err := registry.CheckPayload("welcome", json.RawMessage(`{"name": 7}`))
	fmt.Println(errors.Is(err, queue.ErrPayloadInvalid))
	// Output:
	// <nil>
	// true
}

// What is registered can be listed, with each policy as it holds and the schema of the payload.
func ExampleRegistry_Registrations() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{Owner: "growth", MaxAttempts: 3, Aliases: []string{"greeting"}},
		func(context.Context, *jobs.Job[Welcome]) error { return nil })

	for _, r := range registry.Registrations() {
		fmt.Println(r.Type, r.Policy.Owner, r.Policy.MaxAttempts, r.Bulk)
	}
	fmt.Println(registry.Names())
	// Output:
	// welcome growth 3 false
	// [greeting welcome]
}

// The first attempt asks for a callback and gives its token away; the job is worked again when the
// answer comes, or at the deadline.
func ExampleAwaitCallback() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		answer, err := job.Callback(ctx, "confirmed")
		switch {
		case err != nil:
			return err
		case answer == nil: // none has come, and no attempt has waited for one
			if answer, err = job.NewCallback(ctx, "confirmed", 48*time.Hour); err != nil {
				return err
			}
			fmt.Println("send a link with a token of", len(answer.Token), "characters")
			return jobs.AwaitCallback(answer)
		case answer.Expired:
			return jobs.Cancel("not confirmed within two days")
		case answer.Data == nil: // a person has tried the job again
			return jobs.AwaitCallback(answer)
		}
		job.SetResult(answer.Data)
		return nil
	})

	work(registry)
	// Output:
	// send a link with a token of 43 characters
	// pending 0 AWAITING_CALLBACK
}

// A type that a configuration names, whose payload is any JSON object.
func ExampleRegisterRaw() {
	e := pgtest.NewExample()
	defer e.Close()

	registry := jobs.NewRegistry()
	jobs.RegisterRaw(registry, "audit_log", jobs.Policy{},
		func(_ context.Context, job *jobs.Job[queue.RawPayload]) error {
			fmt.Println(job.Payload.Type, string(job.Payload.Data))
			return nil
		})
	payload := queue.RawPayload{Type: "audit_log", Data: []byte(`{"who": "ana"}`)}
	if _, err := queue.EnqueueJob(context.Background(), e.Pool, "acme", payload, queue.JobOptions{}); err != nil {
		panic(err)
	}
	queuetest.DrainJobs(e, e.Pool, registry, queuetest.JobsOptions{})
	// Output:
	// audit_log {"who": "ana"}
}
