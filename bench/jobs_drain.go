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

// drainJobs drains n jobs of Daybook, of the organizations in turn, on a database of its own. rows
// is how many ledger rows each job is to leave.
func (b *bench) drainJobs(ctx context.Context, name string, orgs []string, n, rows int,
	payload func(int) queue.Payload,
) (drained, error) {
	return b.drainBeside(ctx, name, orgs, n, rows, payload, besideNothing)
}

func besideNothing(context.Context, *database) (func(), error) { return func() {}, nil }

// drainBeside is drainJobs beside other sessions, which begin when the jobs are there and go on
// until end is called.
func (b *bench) drainBeside(ctx context.Context, name string, orgs []string, n, rows int,
	payload func(int) queue.Payload, beside func(context.Context, *database) (end func(), err error),
) (took drained, err error) {
	return b.drainFilled(ctx, name, n, rows, func(ctx context.Context, d *database) error {
		return fillJobs(ctx, d.pool, orgs, n, payload)
	}, beside)
}

// drainFilled is drainBeside with jobs that fill enqueues: n, all of which a worker works.
func (b *bench) drainFilled(ctx context.Context, name string, n, rows int, fill func(context.Context, *database) error,
	beside func(context.Context, *database) (end func(), err error),
) (took drained, err error) {
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		if _, err := d.pool.Exec(ctx, createLedger); err != nil {
			return fmt.Errorf("create the ledger: %w", err)
		}
		if err := fill(ctx, d); err != nil {
			return err
		}
		if err := d.quiesce(ctx); err != nil {
			return err
		}
		end, err := beside(ctx, d)
		if err != nil {
			return fmt.Errorf("begin the sessions beside the worker: %w", err)
		}
		defer end()
		var begun, first atomic.Int64
		began := func(int) {
			if begun.Add(1) == 1 {
				first.Store(time.Now().UnixNano())
			}
		}
		err = b.withJobs(ctx, d, began, func(ctx context.Context, start func() error) error {
			started := time.Now()
			if err := start(); err != nil {
				return err
			}
			ended, err := awaitJobs(ctx, d.pool, n, &begun)
			took = drained{ended.Sub(started), time.Unix(0, first.Load()).Sub(started)}
			return err
		})
		if err == nil {
			err = verifyJobs(ctx, d.pool, n, rows)
		}
		if err != nil {
			return errors.Join(err, failedAttempt(ctx, d.pool))
		}
		b.say("  Daybook, %s: %s jobs/s", name, report.Figure(perSecond(n, took.took)))
		return nil
	})
	if err != nil {
		return took, fmt.Errorf("%s: %w", name, err)
	}
	return took, nil
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
