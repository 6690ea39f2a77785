package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/queue"
)

const (
	// enqueuers is how many goroutines enqueue side by side, each in transactions of its own.
	enqueuers = 10
	// enqueueBatch is how many jobs EnqueueMany is given at a time.
	enqueueBatch = 10_000
	// bulkEnqueuers is how many goroutines do so.
	bulkEnqueuers = 4
)

func init() {
	register(scenario{
		order: 50, name: "enqueue", topic: topicEnqueuing, takes: "2 minutes",
		about: "Ten goroutines enqueue 20,000 jobs, a transaction each. Then four callers enqueue 300,000 in " +
			"calls of 10,000: `queue.EnqueueAccountingJobs` beside `InsertManyFast`, which copies. No worker " +
			"runs.",
		run: runEnqueue,
	})
}

func runEnqueue(ctx context.Context, b *bench) ([]report.Row, error) {
	rows, err := b.enqueueRows(ctx, b.daybookEnqueue)
	if err != nil {
		return nil, err
	}
	rows[0].Target, rows[1].Target = report.TimesPeer(1), report.TimesPeer(1.2)
	return rows, nil
}

// enqueueRows measures both shapes beside River: one job a transaction, and many a call.
func (b *bench) enqueueRows(ctx context.Context, daybook func(shape) enqueuing) ([]report.Row, error) {
	n, many, runs := b.sized(20_000, 500), b.sized(300_000, 5_000), b.repeated(3)
	rate := func(n int, enqueue enqueuing) measurement {
		return func(ctx context.Context) (float64, error) { return b.enqueueRate(ctx, n, enqueue) }
	}
	rates, err := alternate(ctx, runs,
		rate(n, daybook(enqueueOne)), b.peer(rate(n, b.riverEnqueue(enqueueOne))),
		rate(many, daybook(enqueueAll)), b.peer(rate(many, b.riverEnqueue(enqueueAll))),
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
			Note: fmt.Sprintf("%s jobs in calls of %s, four callers; River: InsertManyFast.", report.Figure(float64(many)),
				report.Figure(enqueueBatch)),
		}.Beside(riverName, median(rates[3])),
	}, nil
}

// enqueuing enqueues n jobs into an empty database and says how long that took, and how many there
// are then.
type enqueuing func(ctx context.Context, n int) (took time.Duration, found int, err error)

func (b *bench) enqueueRate(ctx context.Context, n int, enqueue enqueuing) (float64, error) {
	took, found, err := enqueue(ctx, n)
	if err != nil {
		return 0, err
	}
	if found != n {
		return 0, fmt.Errorf("%d jobs were enqueued and %d are there", n, found)
	}
	b.say("  %s jobs: %s a second", report.Figure(float64(n)), report.Figure(perSecond(n, took)))
	return perSecond(n, took), nil
}

// shape is how jobs are handed over: call is made with the numbers of the jobs of each call.
type shape func(ctx context.Context, n int, call func(ctx context.Context, first, n int) error) error

// enqueueOne hands over one job a call, by several goroutines.
func enqueueOne(ctx context.Context, n int, call func(ctx context.Context, first, n int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for worker := range enqueuers {
		group.Go(func() error {
			for i := worker; i < n; i += enqueuers {
				if err := call(ctx, i, 1); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// enqueueAll hands over many jobs a call, by several goroutines.
func enqueueAll(ctx context.Context, n int, call func(ctx context.Context, first, n int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for worker := range bulkEnqueuers {
		group.Go(func() error {
			for first := worker * enqueueBatch; first < n; first += bulkEnqueuers * enqueueBatch {
				if err := call(ctx, first, min(enqueueBatch, n-first)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// enqueue hands over n jobs, each call in a transaction of its own, and says how long that took.
// count counts the jobs that are there then.
func (d *database) enqueue(ctx context.Context, n int, hand shape,
	call func(ctx context.Context, tx pgx.Tx, first, n int) error,
	count string,
) (took time.Duration, found int, err error) {
	if err := d.quiesce(ctx); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	err = hand(ctx, n, func(ctx context.Context, first, n int) error {
		err := inTx(ctx, d.pool, func(tx pgx.Tx) error { return call(ctx, tx, first, n) })
		if err != nil {
			return fmt.Errorf("enqueue %d jobs from number %d on: %w", n, first, err)
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	took = time.Since(began)
	if found, err = one[int](ctx, d.pool, count); err != nil {
		return 0, 0, fmt.Errorf("count the jobs that wait: %w", err)
	}
	return took, found, nil
}

func (b *bench) daybookEnqueue(hand shape) enqueuing {
	return func(ctx context.Context, n int) (took time.Duration, found int, err error) {
		orgs := organizations()
		job := func(i int) queue.AccountingJob {
			return queue.AccountingJob{OrgID: orgs[i%len(orgs)], DocumentID: fmt.Sprintf("invoice-%d", i), Version: 1}
		}
		call := func(ctx context.Context, tx pgx.Tx, first, n int) error {
			if n == 1 {
				_, err := queue.EnqueueAccountingJob(ctx, tx, job(first))
				return err
			}
			jobs := make([]queue.AccountingJob, n)
			for i := range jobs {
				jobs[i] = job(first + i)
			}
			_, err := queue.EnqueueAccountingJobs(ctx, tx, jobs)
			return err
		}
		err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
			took, found, err = d.enqueue(ctx, n, hand, call,
				`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'pending'`)
			return err
		})
		return took, found, err
	}
}

func (b *bench) riverEnqueue(hand shape) enqueuing {
	return func(ctx context.Context, n int) (took time.Duration, found int, err error) {
		err = b.withDatabase(ctx, riverTemplate, func(d *database) error {
			return withRiver(ctx, d, riverDefault, nil, func(c *riverClient) error {
				call := func(ctx context.Context, tx pgx.Tx, first, n int) error {
					if n == 1 {
						_, err := c.InsertTx(ctx, tx, riverJobs(first, 1)[0].Args, nil)
						return err
					}
					_, err := c.InsertManyFastTx(ctx, tx, riverJobs(first, n))
					return err
				}
				took, found, err = d.enqueue(ctx, n, hand, call, `SELECT count(*) FROM river_job WHERE state = 'available'`)
				return err
			})
		})
		return took, found, err
	}
}
