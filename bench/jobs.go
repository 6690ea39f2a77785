package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/queue"
)

func init() {
	register(scenario{
		order: 40, name: "jobs", topic: topicJobs, takes: "5 minutes",
		about: "50,000 jobs of ten organizations wait; an embedded worker works them with default settings, " +
			"from the start of the workflow, or of River's client, until the last one is completed. They do " +
			"nothing, or write three ledger rows: by a bulk handler, or in the transaction that completes " +
			"the job. graphile-worker runs in two processes with its local queue. The peers' best settings " +
			"are looked for first.",
		run: runJobs,
	})
}

func runJobs(ctx context.Context, b *bench) ([]report.Row, error) {
	n, runs := b.sized(50_000, 1_000), b.repeated(3)
	single := max(1, n/5)
	noopBest, postBest, nodeBest := riverNoopVariants[0], riverBusy, graphileVariants[0]
	g, noGraphile := b.useGraphile(ctx)
	if !b.smoke && g != nil {
		var err error
		if nodeBest, err = fastest(ctx, b, graphileVariants,
			func(ctx context.Context,
				s graphileSettings,
			) (float64, error) {
				return b.graphileRate(ctx, g, s, n)
			}); err != nil {
			return nil, err
		}
	}
	if !b.smoke && !b.alone {
		var err error
		if noopBest, err = fastest(ctx, b, riverNoopVariants,
			func(ctx context.Context, s riverSettings) (float64, error) { return b.riverNoopRate(ctx, s, n) }); err != nil {
			return nil, err
		}
		if postBest, err = fastest(ctx, b, riverVariants,
			func(ctx context.Context, s riverSettings) (float64, error) { return b.riverRate(ctx, s, single) }); err != nil {
			return nil, err
		}
	}
	var node measurement
	if g != nil {
		node = func(ctx context.Context) (float64, error) { return b.graphileRate(ctx, g, nodeBest, n) }
	}
	rates, err := alternate(ctx, runs,
		func(ctx context.Context) (float64, error) {
			return b.jobsRate(ctx, "jobs that do nothing", organizations(), n, 0,
				func(i int) queue.Payload { return noopJob{newBenchJob(i)} })
		},
		b.peer(func(ctx context.Context) (float64, error) { return b.riverNoopRate(ctx, noopBest, n) }),
		func(ctx context.Context) (float64, error) {
			return b.jobsRate(ctx, "bulk handler", organizations(), n, 3,
				func(i int) queue.Payload { return bulkJob{newBenchJob(i)} })
		},
		func(ctx context.Context) (float64, error) {
			return b.jobsRate(ctx, "handler with its own transaction", organizations(), single, 3,
				func(i int) queue.Payload { return singleJob{newBenchJob(i)} })
		},
		b.peer(func(ctx context.Context) (float64, error) { return b.riverRate(ctx, postBest, single) }),
		node,
	)
	if err != nil {
		return nil, err
	}
	noop, post := median(rates[1]), median(rates[4])
	row := func(name string, figure, peer, target float64, note string) report.Row {
		return report.Row{
			Name: name, Daybook: figure, Unit: "jobs/s", Target: report.TimesPeer(target), Runs: runs,
			Note: note,
		}.Beside(riverName, peer)
	}
	rows := []report.Row{row("that do nothing", median(rates[0]), noop, 1.6,
		fmt.Sprintf("%s jobs; River: %s.", report.Figure(float64(n)), noopBest))}
	if g != nil {
		beside := row("that do nothing, beside graphile-worker", median(rates[0]), 0, 1,
			fmt.Sprintf("%s jobs; graphile-worker %s on node %s: %s; it deletes a job that is completed.",
				report.Figure(float64(n)), g.version, g.nodeVersion, nodeBest))
		rows = append(rows, beside.Beside(graphileName, median(rates[5])))
	} else {
		rows[0].Note += fmt.Sprintf(" %s: %s.", graphileName, noGraphile)
	}
	return append(rows,
		row("bulk handler, three rows each", median(rates[2]), post, 8,
			fmt.Sprintf("%s jobs; River: %s jobs with JobCompleteTx, %s.", report.Figure(float64(n)),
				report.Figure(float64(single)), postBest)),
		row("own transaction, three rows each", median(rates[3]), post, 1.2,
			fmt.Sprintf("%s jobs; River: the same, %s.", report.Figure(float64(single)), postBest)),
	), nil
}

// jobsRate is jobs/s of Daybook on a database of its own, for n jobs of the organizations in turn.
// rows is how many ledger rows each job is to leave.
func (b *bench) jobsRate(ctx context.Context, name string, orgs []string, n, rows int,
	payload func(int) queue.Payload,
) (rate float64, err error) {
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		if _, err := d.pool.Exec(ctx, createLedger); err != nil {
			return fmt.Errorf("create the ledger: %w", err)
		}
		if err := fillJobs(ctx, d.pool, orgs, n, payload); err != nil {
			return err
		}
		if err := d.quiesce(ctx); err != nil {
			return err
		}
		var begun atomic.Int64
		err := b.withJobs(ctx, d, func(int) { begun.Add(1) }, func(ctx context.Context, start func() error) error {
			began := time.Now()
			if err := start(); err != nil {
				return err
			}
			ended, err := awaitJobs(ctx, d.pool, n, &begun)
			rate = perSecond(n, ended.Sub(began))
			return err
		})
		if err == nil {
			err = verifyJobs(ctx, d.pool, n, rows)
		}
		if err != nil {
			return errors.Join(err, failedAttempt(ctx, d.pool))
		}
		b.say("  Daybook, %s: %s jobs/s", name, report.Figure(rate))
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return rate, nil
}

// fillJobs enqueues n jobs of the organizations in turn.
func fillJobs(ctx context.Context, pool *pgxpool.Pool, orgs []string, n int, payload func(int) queue.Payload) error {
	for begin := 0; begin < n; begin += fillBatch {
		some := make([]queue.NewJob, min(fillBatch, n-begin))
		for i := range some {
			some[i] = queue.NewJob{
				OrgID: orgs[(begin+i)%len(orgs)], Payload: payload(begin + i),
				Options: queue.JobOptions{SkipValidation: true},
			}
		}
		if _, err := queue.EnqueueJobs(ctx, pool, some); err != nil {
			return fmt.Errorf("enqueue background jobs: %w", err)
		}
	}
	return nil
}

// awaitJobs waits until no background job is pending or leased any more, of n that handlers count
// as they begin, and says when that was. It gives up when one waits for another attempt after an
// error.
func awaitJobs(ctx context.Context, pool *pgxpool.Pool, n int, begun *atomic.Int64) (time.Time, error) {
	// The youngest job of each organization is its last.
	near := func(ctx context.Context) (last bool, progress int64, err error) {
		progress = begun.Load()
		if progress >= int64(n) {
			last, err = one[bool](ctx, pool,
				`SELECT bool_and(j.state = 'completed') FROM (SELECT state FROM daybook.jobs ORDER BY id DESC LIMIT $1) j`,
				len(organizations()))
		}
		return last, progress, err
	}
	return awaitEmpty(ctx, time.Millisecond, near, func(ctx context.Context) (at time.Time, empty bool, err error) {
		var open, again bool
		err = pool.QueryRow(ctx, `
SELECT EXISTS (SELECT FROM daybook.jobs WHERE state = 'pending') OR EXISTS (SELECT FROM daybook.jobs WHERE state = 'leased'),
       EXISTS (SELECT FROM daybook.jobs WHERE state = 'pending' AND last_error IS NOT NULL), statement_timestamp()`).Scan(&open, &again, &at)
		if err == nil && again {
			err = errors.New("a job is to be tried again")
		}
		return at, !open, err
	})
}

// verifyJobs fails unless each job is completed by the first attempt and has left its rows.
func verifyJobs(ctx context.Context, pool *pgxpool.Pool, n, rows int) error {
	if _, err := pool.Exec(ctx, `ANALYZE daybook.jobs, ledger`); err != nil {
		return fmt.Errorf("analyze what was done: %w", err)
	}
	right, err := one[int](ctx, pool, `
WITH tried AS (SELECT job_id, count(*) AS n FROM daybook.attempts GROUP BY 1), written AS (SELECT job, count(*) AS n FROM ledger GROUP BY 1)
SELECT count(*)
  FROM daybook.jobs j
  JOIN tried ON tried.job_id = j.id AND tried.n = 1
  LEFT JOIN written ON written.job = (j.payload->>'number')::bigint
 WHERE j.state = 'completed' AND j.run_count = 1 AND coalesce(written.n, 0) = $1`, rows)
	if err != nil {
		return fmt.Errorf("count the jobs that were done exactly once: %w", err)
	}
	if right != n {
		return fmt.Errorf("of %d jobs %d were done exactly once", n, right)
	}
	return nil
}

// failedAttempt is the error of the first attempt that has one; nil: none has.
func failedAttempt(ctx context.Context, pool *pgxpool.Pool) error {
	ctx = context.WithoutCancel(ctx)
	text, err := one[string](ctx, pool,
		`SELECT coalesce((SELECT error_code || ': ' || error FROM daybook.attempts WHERE error IS NOT NULL ORDER BY id LIMIT 1), '')`)
	if err != nil {
		return fmt.Errorf("look for the error of an attempt: %w", err)
	}
	if text != "" {
		return fmt.Errorf("an attempt ended with %s", text)
	}
	return nil
}
