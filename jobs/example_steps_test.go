package jobs_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/jobs"
)

// once fails the first attempt, which is tried again at once.
func once(job *jobs.Job[Welcome]) error {
	if job.Attempt > 1 {
		return nil
	}
	return jobs.RetryAfter(0, errors.New("the line is busy"))
}

// The second attempt reads what the first one has kept, and does not upload again.
func ExampleStep() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		file, err := jobs.Step(ctx, job, "upload", func(context.Context) (string, error) {
			fmt.Println("upload")
			return "file-1", nil // with job.IdempotencyKey, for the case that it is asked for twice
		})
		if err != nil {
			return err
		}
		job.SetResult(file)
		return once(job)
	})

	work(registry)
	// Output:
	// upload
	// completed 2 "file-1"
}

// What the step writes commits together with its result: there is one booking, whatever dies when.
func ExampleStepInTx() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		number, err := jobs.StepInTx(ctx, job, "book", func(ctx context.Context, tx pgx.Tx) (number int, err error) {
			fmt.Println("book")
			err = tx.QueryRow(ctx, `SELECT 17`).Scan(&number) // an INSERT … RETURNING, for instance
			return number, err
		})
		if err != nil {
			return err
		}
		job.SetResult(number)
		return once(job)
	})

	work(registry)
	// Output:
	// book
	// completed 2 17
}

// A loop goes on from its last round.
func ExampleLoop() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		_, err := jobs.Loop(ctx, job, "pages", func(_ context.Context, done int) (int, bool, error) {
			if done == 2 {
				if err := once(job); err != nil {
					return 0, false, err
				}
			}
			fmt.Println("page", done+1)
			return done + 1, done+1 < 3, nil
		})
		return err
	})

	work(registry)
	// Output:
	// page 1
	// page 2
	// page 3
	// completed 2
}

// Each round commits what it writes together with where the loop stands.
func ExampleLoopInTx() {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
		rows, err := jobs.LoopInTx(ctx, job, "rows", func(ctx context.Context, tx pgx.Tx, done int) (int, bool, error) {
			var n int
			err := tx.QueryRow(ctx, `SELECT least(1000, 2500 - $1)`, done).Scan(&n) // an import of the next 1,000
			return done + n, n == 1000, err
		})
		job.SetResult(rows)
		return err
	})

	work(registry)
	// Output: completed 1 2500
}
