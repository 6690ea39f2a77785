package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/daybook-dev/daybook/bench/report"
)

// riverNoopVariants are what River's best settings for jobs that do nothing are looked for among.
var riverNoopVariants = []riverSettings{
	{maxWorkers: 500, pool: 16, fetchCooldown: 5 * time.Millisecond},
	{maxWorkers: 2000, pool: 16, fetchCooldown: 5 * time.Millisecond},
	{maxWorkers: 2000, pool: 16, fetchCooldown: 50 * time.Millisecond},
}

// riverNoop is a job of River that does nothing.
type riverNoop struct {
	Number int `json:"number"`
}

// Kind implements river.JobArgs.
func (riverNoop) Kind() string { return "noop" }

type riverNoopWorker struct {
	river.WorkerDefaults[riverNoop]
	// began is called when Work begins.
	began func(number int)
}

// Work implements river.Worker.
func (w *riverNoopWorker) Work(_ context.Context, job *river.Job[riverNoop]) error {
	if w.began != nil {
		w.began(job.Args.Number)
	}
	return nil
}

// riverNoopJobs makes n jobs, numbered from first on.
func riverNoopJobs(first, n int) []river.InsertManyParams {
	jobs := make([]river.InsertManyParams, n)
	for i := range jobs {
		jobs[i].Args = riverNoop{Number: first + i}
	}
	return jobs
}

// withRiverNoop runs f with a client whose n jobs do nothing and that is not started yet. began may
// be nil.
//
// River completes such jobs in batches some time after Work has returned, and tells its subscribers
// when a batch is committed: that is what completed counts, in one goroutine at a time. The channel
// has room for all, because River drops what finds none.
func withRiverNoop(ctx context.Context, d *database, s riverSettings, n int, began func(int),
	f func(*riverClient) error,
) error {
	register := func(workers *river.Workers, _ *pgxpool.Pool) {
		river.AddWorker(workers, &riverNoopWorker{began: began})
	}
	return withRiverClient(ctx, d, s, register, func(c *river.Client[pgx.Tx]) error {
		events, cancel := c.SubscribeConfig(&river.SubscribeConfig{
			ChanSize: n,
			Kinds:    []river.EventKind{river.EventKindJobCompleted},
		})
		defer cancel()
		var told int64
		return f(&riverClient{c, func() int64 {
			for {
				select {
				case _, ok := <-events:
					if !ok {
						return told
					}
					told++
				default:
					return told
				}
			}
		}})
	})
}

// drainRiverNoop drains n jobs of River that do nothing, on a database of its own.
func (b *bench) drainRiverNoop(ctx context.Context, s riverSettings, n int) (took drained, err error) {
	err = b.withDatabase(ctx, riverTemplate, func(d *database) error {
		var first atomic.Int64
		began := func(int) { first.CompareAndSwap(0, time.Now().UnixNano()) }
		return withRiverNoop(ctx, d, s, n, began, func(c *riverClient) error {
			started, lasted, err := c.drain(ctx, d, n, riverNoopJobs)
			if err != nil {
				return err
			}
			took = drained{lasted, time.Unix(0, first.Load()).Sub(started)}
			return verifyRiverCompleted(ctx, d, n)
		})
	})
	if err != nil {
		return took, fmt.Errorf("River, jobs that do nothing, %s: %w", s, err)
	}
	b.say("  River, jobs that do nothing, %s: %s jobs/s", s, report.Figure(perSecond(n, took.took)))
	return took, nil
}
