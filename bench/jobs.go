package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

func init() {
	register(scenario{
		order: 110, name: "jobs",
		about: "50,000 background jobs of ten organizations wait; a worker that this process embeds works them through `syncJobQueueWorkflow` with default settings, as River's client " +
			"is embedded. The clock runs from the start of the workflow, or of River's client, until the last job is completed in the database. First the jobs do " +
			"nothing. Then each posts three ledger rows: with Daybook by a bulk handler, and by a handler that asks for the transaction that completes its own job; with River " +
			"in a transaction a job with `JobCompleteTx`, which is what both are compared with.",
		run: runJobs,
	})
	register(scenario{
		order: 120, name: "jobs-enqueue",
		about: "As `enqueue`, for background jobs: `queue.EnqueueJob` beside `InsertTx`, `queue.EnqueueJobs` beside `InsertManyFast`.",
		run:   runJobsEnqueue,
	})
	register(scenario{
		order: 130, name: "jobs-latency",
		about: "As `latency`, for a background job every 50 ms: from just before COMMIT is sent until the handler begins. River's client once with its default settings, once with a " +
			"FetchCooldown of 1 ms.",
		run: runJobsLatency,
	})
}

// benchJob is what a background job of the benchmark is about.
type benchJob struct {
	Number int   `json:"number"`
	Net    int64 `json:"net"`
	Tax    int64 `json:"tax"`
}

// The same payload under the types of the three handlers.
type (
	noopJob   struct{ benchJob }
	bulkJob   struct{ benchJob }
	singleJob struct{ benchJob }
)

// JobType implements queue.Payload.
func (noopJob) JobType() string { return "noop" }

// JobType implements queue.Payload.
func (bulkJob) JobType() string { return "post_bulk" }

// JobType implements queue.Payload.
func (singleJob) JobType() string { return "post_single" }

func newBenchJob(i int) benchJob {
	net := int64(1000 + i%100_000)
	return benchJob{Number: i, Net: net, Tax: net * 19 / 100}
}

const createLedger = `CREATE TABLE ledger (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job bigint NOT NULL, account text NOT NULL, amount bigint NOT NULL, currency text NOT NULL)`

// postRows writes the rows of some jobs in one statement.
const postRows = `
INSERT INTO ledger (job, account, amount, currency)
SELECT n, account, amount, 'EUR'
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS j (n, net, tax),
       LATERAL (VALUES ('1200', net + tax), ('4400', -net), ('3800', -tax)) v (account, amount)`

// benchRegistry holds the handlers. began is told when one begins; it may be nil.
func benchRegistry(began func(number int)) *jobs.Registry {
	r := jobs.NewRegistry()
	policy := jobs.Policy{Owner: "bench", Parallel: 500}
	jobs.Register(r, policy, func(_ context.Context, j *jobs.Job[noopJob]) error {
		if began != nil {
			began(j.Payload.Number)
		}
		return nil
	})
	jobs.RegisterBulk(r, policy, func(ctx context.Context, tx pgx.Tx, all []*jobs.Job[bulkJob]) ([]error, error) {
		numbers, nets, taxes := make([]int64, len(all)), make([]int64, len(all)), make([]int64, len(all))
		for i, j := range all {
			numbers[i], nets[i], taxes[i] = int64(j.Payload.Number), j.Payload.Net, j.Payload.Tax
		}
		_, err := tx.Exec(ctx, postRows, numbers, nets, taxes)
		return nil, err
	})
	policy.Parallel = 16
	jobs.Register(r, policy, func(_ context.Context, j *jobs.Job[singleJob]) error {
		j.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, postRows, []int64{int64(j.Payload.Number)}, []int64{j.Payload.Net}, []int64{j.Payload.Tax})
			return err
		})
		return nil
	})
	return r
}

// withJobs runs f while an embedded worker and the workflow work background jobs. start starts the workflow.
func (b *bench) withJobs(ctx context.Context, d *database, began func(int), f func(ctx context.Context, start func() error) error) (err error) {
	pool, err := openPool(ctx, d.url, 32)
	if err != nil {
		return err
	}
	defer pool.Close()
	w, err := workers.NewJobs(workers.JobOptions{
		Client: b.temporal, Pool: pool, Registry: benchRegistry(began), Log: slog.New(slog.DiscardHandler), MaxConcurrentActivities: 6,
	})
	if err != nil {
		return err
	}
	defer w.Close()
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(working) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-ended)
	}()
	var run client.WorkflowRun
	err = f(ctx, func() (err error) {
		run, err = b.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: fmt.Sprintf("bench-%d-%d", os.Getpid(), b.count()), TaskQueue: workflows.JobsTaskQueue,
		}, workflows.JobsWorkflow, settings{}.input())
		return err
	})
	if run != nil {
		err = errors.Join(err, b.endWorkflow(ctx, run))
	}
	return err
}

// fillJobs enqueues n jobs.
func fillJobs(ctx context.Context, pool *pgxpool.Pool, n int, payload func(int) queue.Payload) error {
	orgs := organizations()
	for begin := 0; begin < n; begin += fillBatch {
		some := make([]queue.NewJob, min(fillBatch, n-begin))
		for i := range some {
			some[i] = queue.NewJob{OrgID: orgs[(begin+i)%len(orgs)], Payload: payload(begin + i), Options: queue.JobOptions{SkipValidation: true}}
		}
		if _, err := queue.EnqueueJobs(ctx, pool, some); err != nil {
			return err
		}
	}
	return nil
}

// jobsRate drains n jobs and returns how many that was a second. rows is how many ledger rows each is to leave.
func (b *bench) jobsRate(ctx context.Context, name string, n, rows int, payload func(int) queue.Payload) (rate float64, err error) {
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		if _, err := d.pool.Exec(ctx, createLedger); err != nil {
			return err
		}
		if err := fillJobs(ctx, d.pool, n, payload); err != nil {
			return err
		}
		if err := d.settle(ctx); err != nil {
			return err
		}
		return b.withJobs(ctx, d, nil, func(ctx context.Context, start func() error) error {
			time.Sleep(500 * time.Millisecond) // the worker has begun to poll
			began := time.Now()
			if err := start(); err != nil {
				return err
			}
			err := await(ctx, 5*time.Millisecond, func(ctx context.Context) (bool, int64, error) {
				open, err := one[bool](ctx, d.pool, `SELECT EXISTS (SELECT FROM daybook.jobs WHERE state = 'pending') OR EXISTS (SELECT FROM daybook.jobs WHERE state = 'leased')`)
				if err == nil {
					var wrong string
					if wrong, err = one[string](ctx, d.pool, `SELECT coalesce((SELECT error FROM daybook.attempts WHERE error IS NOT NULL LIMIT 1), '')`); err == nil && wrong != "" {
						err = errors.New(wrong)
					}
				}
				if err != nil || open {
					done, doneErr := one[int64](ctx, d.pool, `SELECT coalesce(pg_sequence_last_value('daybook.attempts_id_seq'), 0)`)
					return false, done, errors.Join(err, doneErr)
				}
				return true, int64(n), nil
			})
			if err != nil {
				return err
			}
			rate = perSecond(n, time.Since(began))
			if _, err := d.pool.Exec(ctx, `ANALYZE daybook.jobs, daybook.attempts, ledger`); err != nil {
				return err
			}
			right, err := one[int](ctx, d.pool, `
WITH tried AS (SELECT job_id, count(*) AS n FROM daybook.attempts GROUP BY 1), written AS (SELECT job, count(*) AS n FROM ledger GROUP BY 1)
SELECT count(*)
  FROM daybook.jobs j
  JOIN tried ON tried.job_id = j.id AND tried.n = 1
  LEFT JOIN written ON written.job = (j.payload->>'number')::bigint
 WHERE j.state = 'completed' AND j.run_count = 1 AND coalesce(written.n, 0) = $1`, rows)
			if err == nil && right != n {
				err = fmt.Errorf("of %d jobs %d were done exactly once", n, right)
			}
			return err
		})
	})
	b.say("  Daybook, %s: %s jobs/s", name, report.Figure(rate))
	return rate, err
}

// riverNoop is a job of River that does nothing.
type riverNoop struct {
	Number int `json:"number"`
}

// Kind implements river.JobArgs.
func (riverNoop) Kind() string { return "noop" }

type riverNoopWorker struct {
	river.WorkerDefaults[riverNoop]
	began func(int)
}

// Work implements river.Worker.
func (w *riverNoopWorker) Work(_ context.Context, job *river.Job[riverNoop]) error {
	if w.began != nil {
		w.began(job.Args.Number)
	}
	return nil
}

// withRiverNoop runs f with a client whose jobs do nothing and that is not started yet.
func withRiverNoop(ctx context.Context, d *database, s riverSettings, began func(int), f func(*river.Client[pgx.Tx]) error) error {
	pool, err := openPool(ctx, d.url, s.pool)
	if err != nil {
		return err
	}
	defer pool.Close()
	all := river.NewWorkers()
	river.AddWorker(all, &riverNoopWorker{began: began})
	c, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: s.maxWorkers}}, Workers: all,
		FetchCooldown: s.fetchCooldown, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	return f(c)
}

// riverNoopVariants are what River's best settings for jobs that do nothing are looked for among.
var riverNoopVariants = []riverSettings{
	{maxWorkers: 500, pool: 16, fetchCooldown: 5 * time.Millisecond},
	{maxWorkers: 2000, pool: 16, fetchCooldown: 5 * time.Millisecond},
	{maxWorkers: 2000, pool: 16, fetchCooldown: 50 * time.Millisecond},
}

func (b *bench) riverNoopRate(ctx context.Context, s riverSettings, n int) (rate float64, err error) {
	err = b.withDatabase(ctx, riverTemplate, func(d *database) error {
		return withRiverNoop(ctx, d, s, nil, func(c *river.Client[pgx.Tx]) error {
			for begin := 0; begin < n; begin += fillBatch {
				some := make([]river.InsertManyParams, min(fillBatch, n-begin))
				for i := range some {
					some[i].Args = riverNoop{Number: begin + i}
				}
				if _, err := c.InsertManyFast(ctx, some); err != nil {
					return err
				}
			}
			if err := d.settle(ctx); err != nil {
				return err
			}
			began := time.Now()
			if err := c.Start(ctx); err != nil {
				return err
			}
			err := await(ctx, 5*time.Millisecond, func(ctx context.Context) (bool, int64, error) {
				open, err := one[bool](ctx, d.pool, `SELECT EXISTS (SELECT FROM river_job WHERE state <> 'completed')`)
				return !open, int64(time.Since(began)), err
			})
			rate = perSecond(n, time.Since(began))
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), workerStop)
			defer cancel()
			return errors.Join(err, c.Stop(stop))
		})
	})
	b.say("  River, jobs that do nothing, %s: %s jobs/s", s, report.Figure(rate))
	return rate, err
}

func runJobs(ctx context.Context, b *bench) ([]report.Row, error) {
	n, runs := b.sized(50_000, 1_000), b.repeated(3)
	single := max(1, n/5)
	noopBest, postBest := riverNoopVariants[0], riverBusy
	if !b.smoke && !b.alone {
		var err error
		if noopBest, err = fastest(ctx, b, riverNoopVariants, func(ctx context.Context, s riverSettings) (float64, error) { return b.riverNoopRate(ctx, s, n) }); err != nil {
			return nil, err
		}
		if postBest, err = fastest(ctx, b, riverVariants, func(ctx context.Context, s riverSettings) (float64, error) { return b.riverRate(ctx, s, single) }); err != nil {
			return nil, err
		}
	}
	rates, err := alternate(ctx, runs,
		func(ctx context.Context) (float64, error) {
			return b.jobsRate(ctx, "jobs that do nothing", n, 0, func(i int) queue.Payload { return noopJob{newBenchJob(i)} })
		},
		b.peer(func(ctx context.Context) (float64, error) { return b.riverNoopRate(ctx, noopBest, n) }),
		func(ctx context.Context) (float64, error) {
			return b.jobsRate(ctx, "bulk handler", n, 3, func(i int) queue.Payload { return bulkJob{newBenchJob(i)} })
		},
		func(ctx context.Context) (float64, error) {
			return b.jobsRate(ctx, "handler with its own transaction", single, 3, func(i int) queue.Payload { return singleJob{newBenchJob(i)} })
		},
		b.peer(func(ctx context.Context) (float64, error) { return b.riverRate(ctx, postBest, single) }),
	)
	if err != nil {
		return nil, err
	}
	noop, post := median(rates[1]), median(rates[4])
	row := func(name string, figure, peer, target float64, note string) report.Row {
		return report.Row{Name: name, Daybook: figure, Unit: "jobs/s", Target: report.TimesPeer(target), Runs: runs, Note: note}.Beside(riverName, peer)
	}
	return []report.Row{
		row("that do nothing", median(rates[0]), noop, 1, fmt.Sprintf("%s jobs; River: %s.", report.Figure(float64(n)), noopBest)),
		row("bulk handler, three rows each", median(rates[2]), post, 8, fmt.Sprintf("%s jobs; River: %s jobs with JobCompleteTx, %s.", report.Figure(float64(n)), report.Figure(float64(single)), postBest)),
		row("own transaction, three rows each", median(rates[3]), post, 1, fmt.Sprintf("%s jobs; River: the same, %s.", report.Figure(float64(single)), postBest)),
	}, nil
}

func (b *bench) jobsEnqueue(hand shape) enqueuing {
	return func(ctx context.Context, n int) (took time.Duration, found int, err error) {
		orgs := organizations()
		err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
			if err := d.settle(ctx); err != nil {
				return err
			}
			began := time.Now()
			err := hand(ctx, n, func(ctx context.Context, first, n int) error {
				return inTx(ctx, d.pool, func(tx pgx.Tx) error {
					if n == 1 {
						_, err := queue.EnqueueJob(ctx, tx, orgs[first%len(orgs)], noopJob{newBenchJob(first)}, queue.JobOptions{})
						return err
					}
					some := make([]queue.NewJob, n)
					for i := range some {
						some[i] = queue.NewJob{OrgID: orgs[(first+i)%len(orgs)], Payload: noopJob{newBenchJob(first + i)}}
					}
					_, err := queue.EnqueueJobs(ctx, tx, some)
					return err
				})
			})
			if err != nil {
				return err
			}
			took = time.Since(began)
			found, err = one[int](ctx, d.pool, `SELECT count(*) FROM daybook.jobs WHERE state = 'pending'`)
			return err
		})
		return took, found, err
	}
}

func runJobsEnqueue(ctx context.Context, b *bench) ([]report.Row, error) {
	n, many, runs := b.sized(20_000, 500), b.sized(300_000, 5_000), b.repeated(3)
	rates, err := alternate(ctx, runs,
		func(ctx context.Context) (float64, error) { return b.enqueueRate(ctx, n, b.jobsEnqueue(enqueueOne)) },
		b.peer(func(ctx context.Context) (float64, error) { return b.enqueueRate(ctx, n, b.riverEnqueue(enqueueOne)) }),
		func(ctx context.Context) (float64, error) { return b.enqueueRate(ctx, many, b.jobsEnqueue(enqueueAll)) },
		b.peer(func(ctx context.Context) (float64, error) {
			return b.enqueueRate(ctx, many, b.riverEnqueue(enqueueAll))
		}),
	)
	if err != nil {
		return nil, err
	}
	return []report.Row{
		report.Row{
			Name: "one a transaction, 10 goroutines", Daybook: median(rates[0]), Unit: "transactions/s", Runs: runs,
			Note: fmt.Sprintf("%s jobs; River: InsertTx.", report.Figure(float64(n))),
		}.Beside(riverName, median(rates[1])),
		report.Row{
			Name: "many a call", Daybook: median(rates[2]), Unit: "rows/s", Runs: runs,
			Note: fmt.Sprintf("%s jobs in calls of %s, four callers; River: InsertManyFast.", report.Figure(float64(many)), report.Figure(enqueueBatch)),
		}.Beside(riverName, median(rates[3])),
	}, nil
}

// started collects when jobs were committed and when they began.
type started struct{ began [1 << 12]atomic.Int64 }

func (s *started) mark(i int) { s.began[i].CompareAndSwap(0, time.Now().UnixNano()) }

// delays waits until all have begun and returns how long that took each, in milliseconds.
func (s *started) delays(ctx context.Context, committed []time.Time, warmUp int) ([]float64, error) {
	err := await(ctx, time.Millisecond, func(context.Context) (bool, int64, error) {
		for i := range committed {
			if s.began[i].Load() == 0 {
				return false, int64(i), nil
			}
		}
		return true, int64(len(committed)), nil
	})
	delays := make([]float64, 0, len(committed))
	for i := warmUp; i < len(committed); i++ {
		delays = append(delays, float64(s.began[i].Load()-committed[i].UnixNano())/1e6)
	}
	return delays, err
}

// trickle enqueues one job after the other, each in a transaction, and notes when it was committed.
func trickle(ctx context.Context, pool *pgxpool.Pool, pause time.Duration, n int, enqueue func(tx pgx.Tx, i int) error) ([]time.Time, error) {
	committed := make([]time.Time, n)
	err := every(ctx, pause, n, func(i int) error {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		if err := enqueue(tx, i); err != nil {
			return err
		}
		committed[i] = time.Now()
		return tx.Commit(ctx)
	})
	return committed, err
}

func (b *bench) jobsLatency(ctx context.Context, n int) (delays []float64, err error) {
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		var s started
		return b.withJobs(ctx, d, s.mark, func(ctx context.Context, start func() error) error {
			if err := start(); err != nil {
				return err
			}
			time.Sleep(time.Second)
			committed, err := trickle(ctx, d.pool, 50*time.Millisecond, n+latencyWarmUp, func(tx pgx.Tx, i int) error {
				_, err := queue.EnqueueJob(ctx, tx, "org-01", noopJob{newBenchJob(i)}, queue.JobOptions{})
				return err
			})
			if err != nil {
				return err
			}
			delays, err = s.delays(ctx, committed, latencyWarmUp)
			return err
		})
	})
	return delays, err
}

func (b *bench) riverNoopLatency(ctx context.Context, settings riverSettings, n int) (delays []float64, err error) {
	err = b.withDatabase(ctx, riverTemplate, func(d *database) error {
		var s started
		return withRiverNoop(ctx, d, settings, s.mark, func(c *river.Client[pgx.Tx]) error {
			if err := c.Start(ctx); err != nil {
				return err
			}
			time.Sleep(time.Second)
			committed, err := trickle(ctx, d.pool, 50*time.Millisecond, n+latencyWarmUp, func(tx pgx.Tx, i int) error {
				_, err := c.InsertTx(ctx, tx, riverNoop{Number: i}, nil)
				return err
			})
			if err == nil {
				delays, err = s.delays(ctx, committed, latencyWarmUp)
			}
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), workerStop)
			defer cancel()
			return errors.Join(err, c.Stop(stop))
		})
	})
	return delays, err
}

func runJobsLatency(ctx context.Context, b *bench) ([]report.Row, error) {
	n := b.sampled(200, 10)
	tuned := riverSettings{maxWorkers: 100, pool: 16, fetchCooldown: time.Millisecond}
	own, err := b.jobsLatency(ctx, n)
	if err != nil {
		return nil, err
	}
	rows := make([]report.Row, 0, 4)
	row := func(name string, p float64, peer []float64, settings riverSettings) report.Row {
		return report.Row{
			Name: name, Daybook: percentile(own, p), Unit: "ms", Runs: 1, Note: fmt.Sprintf("%d samples; River: %s.", n, settings),
		}.Beside(riverName, percentile(peer, p))
	}
	for _, v := range []struct {
		name     string
		settings riverSettings
	}{{"River's default client", riverDefault}, {"River's tuned client", tuned}} {
		peer, err := b.riverNoopLatency(ctx, v.settings, n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row("p50, "+v.name, 50, peer, v.settings), row("p99, "+v.name, 99, peer, v.settings))
	}
	return rows, nil
}
