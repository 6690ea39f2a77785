package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverName is the peer's name in the table.
const riverName = "River"

// riverSettings are how a River client works; the zero value of FetchCooldown is River's default.
type riverSettings struct {
	maxWorkers, pool int
	fetchCooldown    time.Duration
	// rescueAfter is how long a job may run, and how long it has run when River takes it from a
	// worker that is gone; 0: a minute and an hour.
	rescueAfter time.Duration
}

// riverDefault is what River's documentation begins with.
var riverDefault = riverSettings{maxWorkers: 100, pool: 16}

// riverBusy are settings for throughput, where a scenario does not look for the best ones itself.
var riverBusy = riverSettings{maxWorkers: 50, pool: 16, fetchCooldown: 20 * time.Millisecond}

func (s riverSettings) String() string {
	cooldown := s.fetchCooldown
	if cooldown == 0 {
		cooldown = river.FetchCooldownDefault
	}
	text := fmt.Sprintf("MaxWorkers %d, %d connections, FetchCooldown %s", s.maxWorkers, s.pool, cooldown)
	if s.rescueAfter > 0 {
		text += fmt.Sprintf(", RescueStuckJobsAfter %s", s.rescueAfter)
	}
	return text
}

// migrateRiver makes River's schema, and a ledger for its jobs to write to.
func migrateRiver(ctx context.Context, address string) error {
	pool, err := openPool(ctx, address, 2)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	_, err = pool.Exec(ctx, createLedger)
	return err
}

// riverInvoice is a job of River: an invoice that is to be posted.
type riverInvoice struct {
	Number int    `json:"number"`
	Org    string `json:"org"`
	Net    int64  `json:"net"`
	Tax    int64  `json:"tax"`
}

// Kind implements river.JobArgs.
func (riverInvoice) Kind() string { return "invoice" }

// riverWorker posts an invoice the way River's documentation shows for exactly once: the ledger's
// rows and the job's completion in one transaction.
type riverWorker struct {
	river.WorkerDefaults[riverInvoice]
	pool *pgxpool.Pool
	// began is called when Work begins; completed counts the jobs whose transaction has committed.
	began     func(riverInvoice)
	completed *atomic.Int64
}

// Work implements river.Worker.
func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverInvoice]) error {
	if w.began != nil {
		w.began(job.Args)
	}
	err := inTx(ctx, w.pool, func(tx pgx.Tx) error {
		const post = `INSERT INTO ledger (job, account, amount, currency)
VALUES ($1, '1200', $2::bigint + $3::bigint, 'EUR'), ($1, '4400', -$2::bigint, 'EUR'), ($1, '3800', -$3::bigint, 'EUR')`
		if _, err := tx.Exec(ctx, post, job.ID, job.Args.Net, job.Args.Tax); err != nil {
			return err
		}
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
	if err == nil {
		w.completed.Add(1)
	}
	return err
}

// riverClient is a client, and how many of its jobs are completed in the database.
type riverClient struct {
	*river.Client[pgx.Tx]
	completed func() int64
}

// withRiver runs f with a client that posts invoices and that is not started yet. began may be nil.
func withRiver(ctx context.Context, d *database, s riverSettings, began func(riverInvoice),
	f func(*riverClient) error,
) error {
	completed := &atomic.Int64{}
	register := func(workers *river.Workers, pool *pgxpool.Pool) {
		river.AddWorker(workers, &riverWorker{pool: pool, began: began, completed: completed})
	}
	return withRiverClient(ctx, d, s, register, func(c *river.Client[pgx.Tx]) error {
		return f(&riverClient{c, completed.Load})
	})
}

// withRiverClient runs f with a client of the worker that register registers, and with a pool of
// its own. It is not started yet.
func withRiverClient(ctx context.Context, d *database, s riverSettings, register func(*river.Workers, *pgxpool.Pool),
	f func(*river.Client[pgx.Tx]) error,
) error {
	pool, err := openPool(ctx, d.url, s.pool)
	if err != nil {
		return fmt.Errorf("open River's pool: %w", err)
	}
	defer pool.Close()
	workers := river.NewWorkers()
	register(workers, pool)
	client, err := river.NewClient(riverpgxv5.New(pool), s.config("", workers))
	if err != nil {
		return fmt.Errorf("make River's client: %w", err)
	}
	return f(client)
}

// config is the client's configuration; without an id, River makes one up.
func (s riverSettings) config(id string, workers *river.Workers) *river.Config {
	return &river.Config{
		ID: id, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: s.maxWorkers}}, Workers: workers,
		FetchCooldown: s.fetchCooldown, JobTimeout: s.rescueAfter, RescueStuckJobsAfter: s.rescueAfter,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// started runs f while the client works.
func (c *riverClient) started(ctx context.Context, f func() error) error {
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("start River: %w", err)
	}
	err := f()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), workerStop)
	defer cancel()
	if stopErr := c.Stop(stop); stopErr != nil {
		err = errors.Join(err, fmt.Errorf("stop River: %w", stopErr))
	}
	return err
}

// awaitCompleted returns when n jobs are completed.
func (c *riverClient) awaitCompleted(ctx context.Context, n int) error {
	err := await(ctx, time.Millisecond, func(context.Context) (bool, int64, error) {
		done := c.completed()
		return done >= int64(n), done, nil
	})
	if err != nil {
		return fmt.Errorf("wait for River's jobs: %w", err)
	}
	return nil
}

// riverJobs makes n jobs, numbered from first on.
func riverJobs(first, n int) []river.InsertManyParams {
	jobs := make([]river.InsertManyParams, n)
	for i := range jobs {
		net := int64(1000 + (first+i)%100_000)
		jobs[i].Args = riverInvoice{Number: first + i, Org: "org-01", Net: net, Tax: net * 19 / 100}
	}
	return jobs
}

// fillRiver inserts n of the jobs, which are made from a number on.
func fillRiver(ctx context.Context, c *riverClient, n int, jobs func(first, n int) []river.InsertManyParams) error {
	for begin := 0; begin < n; begin += fillBatch {
		if _, err := c.InsertManyFast(ctx, jobs(begin, min(fillBatch, n-begin))); err != nil {
			return fmt.Errorf("insert River's jobs: %w", err)
		}
	}
	return nil
}

// drain is drainDaybook's counterpart: n of the jobs wait, the client starts. It returns when that
// was, and how long it took until they were completed in the database.
func (c *riverClient) drain(ctx context.Context, d *database, n int,
	jobs func(first, n int) []river.InsertManyParams,
) (began time.Time, took time.Duration, err error) {
	if err := fillRiver(ctx, c, n, jobs); err != nil {
		return began, 0, err
	}
	if err := d.quiesce(ctx); err != nil {
		return began, 0, err
	}
	began = time.Now()
	err = c.started(ctx, func() error {
		err := c.awaitCompleted(ctx, n)
		took = time.Since(began)
		return err
	})
	return began, took, err
}

// drainRiver drains n invoices, on a database of its own.
func (b *bench) drainRiver(ctx context.Context, s riverSettings, n int) (took time.Duration, err error) {
	err = b.withDatabase(ctx, riverTemplate, func(d *database) error {
		return withRiver(ctx, d, s, nil, func(c *riverClient) error {
			if _, took, err = c.drain(ctx, d, n, riverJobs); err != nil {
				return err
			}
			return verifyRiver(ctx, d, n)
		})
	})
	return took, err
}

// verifyRiver fails unless each job is completed and has its three rows, which balance.
func verifyRiver(ctx context.Context, d *database, n int) error {
	if err := verifyRiverCompleted(ctx, d, n); err != nil {
		return err
	}
	right, err := postedOnce(ctx, d.pool)
	if err != nil {
		return err
	}
	if right != n {
		return fmt.Errorf("River: of %d jobs %d are posted exactly once", n, right)
	}
	return nil
}

// verifyRiverCompleted fails unless there are n jobs and each is completed.
func verifyRiverCompleted(ctx context.Context, d *database, n int) error {
	var all, completed int
	err := d.pool.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE state = 'completed') FROM river_job`).Scan(&all,
		&completed)
	if err != nil {
		return fmt.Errorf("count River's completed jobs: %w", err)
	}
	if all != n || completed != n {
		return fmt.Errorf("River: of %d jobs %d are there and %d completed", n, all, completed)
	}
	return nil
}
