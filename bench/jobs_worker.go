package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// benchJob is what a background job of the benchmark is about.
type benchJob struct {
	Number int   `json:"number"`
	Net    int64 `json:"net"`
	Tax    int64 `json:"tax"`
	// Nested: it writes its rows by postNested.
	Nested bool `json:"nested,omitempty"`
}

// The same payload under the types of the handlers.
type (
	noopJob    struct{ benchJob }
	bulkJob    struct{ benchJob }
	singleJob  struct{ benchJob }
	sharedJob  struct{ benchJob }
	defaultJob struct{ benchJob }
	stepsJob   struct{ benchJob }
)

// JobType implements queue.Payload.
func (noopJob) JobType() string { return "noop" }

// JobType implements queue.Payload.
func (bulkJob) JobType() string { return "post_bulk" }

// JobType implements queue.Payload.
func (defaultJob) JobType() string { return "does_nothing" }

// JobType implements queue.Payload.
func (singleJob) JobType() string { return "post_single" }

// JobType implements queue.Payload.
func (sharedJob) JobType() string { return "post_shared" }

// JobType implements queue.Payload.
func (stepsJob) JobType() string { return "has_steps" }

func newBenchJob(i int) benchJob {
	net := int64(1000 + i%100_000)
	return benchJob{Number: i, Net: net, Tax: net * 19 / 100}
}

// postRows writes the rows of some jobs in one statement.
const postRows = `
INSERT INTO ledger (job, account, amount, currency)
SELECT n, account, amount, 'EUR'
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS j (n, net, tax),
       LATERAL (VALUES ('1200', net + tax), ('4400', -net), ('3800', -tax)) v (account, amount)`

// benchRegistry holds the handlers. began is told of each job that begins.
func benchRegistry(began func(number int)) *jobs.Registry {
	r := jobs.NewRegistry()
	// As River's MaxWorkers for jobs that do nothing: the room for them bounds how many are picked at
	// a time, over the lanes of the process.
	policy := jobs.Policy{Owner: "bench", Parallel: 2000}
	jobs.Register(r, policy, func(_ context.Context, j *jobs.Job[noopJob]) error {
		began(j.Payload.Number)
		return nil
	})
	policy.Parallel = 0 // as many as by default, so that there are more due than there is room for
	jobs.Register(r, policy, func(_ context.Context, j *jobs.Job[defaultJob]) error {
		began(j.Payload.Number)
		return nil
	})
	policy.Parallel = 200
	jobs.Register(r, policy, func(ctx context.Context, j *jobs.Job[stepsJob]) error {
		began(j.Payload.Number)
		return runSteps(ctx, j)
	})
	policy.Parallel = 500 // in a call
	jobs.RegisterBulk(r, policy, func(ctx context.Context, tx pgx.Tx, all []*jobs.Job[bulkJob]) ([]error, error) {
		numbers, nets, taxes := make([]int64, len(all)), make([]int64, len(all)), make([]int64, len(all))
		for i, j := range all {
			began(j.Payload.Number)
			numbers[i], nets[i], taxes[i] = int64(j.Payload.Number), j.Payload.Net, j.Payload.Tax
		}
		_, err := tx.Exec(ctx, postRows, numbers, nets, taxes)
		return nil, err
	})
	policy.Parallel = 48 // over the lanes of the process
	jobs.Register(r, policy, func(_ context.Context, j *jobs.Job[singleJob]) error {
		began(j.Payload.Number)
		j.InTx(j.Payload.post)
		return nil
	})
	policy.Parallel, policy.SharedTransaction = 200, true
	jobs.Register(r, policy, func(_ context.Context, j *jobs.Job[sharedJob]) error {
		began(j.Payload.Number)
		j.InTx(j.Payload.post)
		return nil
	})
	return r
}

// post writes the rows of one job.
func (j benchJob) post(ctx context.Context, tx pgx.Tx) error {
	if j.Nested {
		_, err := tx.Exec(ctx, `SELECT post_nested($1, $2, $3)`, j.Number, j.Net, j.Tax)
		return err
	}
	_, err := tx.Exec(ctx, postRows, []int64{int64(j.Number)}, []int64{j.Net}, []int64{j.Tax})
	return err
}

// withJobs runs f while an embedded worker works the background jobs of benchRegistry.
func (b *bench) withJobs(ctx context.Context, d *database, began func(int),
	f func(ctx context.Context, start func() error) error,
) error {
	return b.withRegistry(ctx, d, benchRegistry(began), f)
}

// withRegistry runs f while an embedded worker works background jobs. start starts the workflow,
// which runs until f returns.
func (b *bench) withRegistry(ctx context.Context, d *database, registry *jobs.Registry,
	f func(ctx context.Context, start func() error) error,
) error {
	return b.withEmbedded(ctx, d, embedded{
		workflow: workflows.JobsWorkflow, taskQueue: workflows.JobsTaskQueue,
		make: func(pool *pgxpool.Pool, name string) (*workers.Worker, error) {
			return workers.NewJobs(workers.JobsOptions{
				Client: b.temporal, Pool: pool, Registry: registry, Name: name, Log: slog.New(slog.DiscardHandler),
				MaxConcurrentActivities: 6,
			})
		},
	}, f)
}

// embedded is a worker that this process embeds.
type embedded struct {
	workflow, taskQueue string
	make                func(pool *pgxpool.Pool, name string) (*workers.Worker, error)
}

// withEmbedded runs f while an embedded worker works. start starts the workflow, which runs until f
// returns.
func (b *bench) withEmbedded(ctx context.Context, d *database, e embedded,
	f func(ctx context.Context, start func() error) error,
) (err error) {
	pool, err := openPool(ctx, d.url, 32)
	if err != nil {
		return fmt.Errorf("open the embedded worker's pool: %w", err)
	}
	defer pool.Close()
	name := b.unique()
	w, err := e.make(pool, name)
	if err != nil {
		return fmt.Errorf("make the embedded worker: %w", err)
	}
	defer w.Close()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	working, end := context.WithCancelCause(ctx)
	defer end(nil)
	ended := make(chan error, 1)
	go func() {
		err := w.Run(running)
		end(errors.New("the embedded worker ended early"))
		ended <- err
	}()
	defer func() {
		stop()
		if runErr := <-ended; runErr != nil {
			err = errors.Join(err, fmt.Errorf("run the embedded worker: %w", runErr))
		}
	}()
	if err := b.awaitPolls(working, e.taskQueue, name, working.Err); err != nil {
		return fmt.Errorf("wait until the embedded worker polls: %w", errors.Join(err, context.Cause(working)))
	}
	var run client.WorkflowRun
	err = f(working, func() (err error) {
		run, err = b.startWorkflow(working, e.workflow, e.taskQueue, settings{})
		return err
	})
	if cause := context.Cause(working); err != nil && cause != nil && ctx.Err() == nil {
		err = errors.Join(cause, err)
	}
	if run != nil {
		err = errors.Join(err, b.endWorkflow(ctx, run))
	}
	return err
}
