package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/daybook-dev/daybook/queue"
)

// loadedQueue is a queue that is put under load or fault: Daybook, or River with some settings.
type loadedQueue struct {
	name, template string
	// river are River's settings; nil: it is Daybook.
	river *riverSettings
	// economy is what Daybook's worker trades latency for processor time by; 0: its default.
	economy time.Duration
	// patience is how long after the load the queue may take to be empty.
	patience time.Duration
	// open counts what is not finished, held lists the numbers of the jobs that a worker holds, found
	// lists all jobs.
	open, held, found string
	// scan reads the whole table of jobs.
	scan string
	// completed lists the numbers of the completed jobs and when the transaction that completed each
	// was committed.
	completed string
}

func daybookLoaded(patience time.Duration) loadedQueue {
	return loadedQueue{
		name: "Daybook", template: daybookTemplate, patience: patience,
		open:  `SELECT count(*) FROM daybook.jobs WHERE state IN ('pending', 'leased')`,
		held:  `SELECT (payload->>'number')::bigint FROM daybook.jobs WHERE state = 'leased' AND worker = $1`,
		found: `SELECT (payload->>'number')::bigint, state NOT IN ('pending', 'leased'), run_count > 1 FROM daybook.jobs`,
		scan:  `SELECT count(*) FROM daybook.jobs WHERE payload->>'number' = '-1'`,

		completed: `SELECT (payload->>'number')::bigint, pg_xact_commit_timestamp(xmin) FROM daybook.jobs WHERE state = 'completed' AND run_count = 1`,
	}
}

func riverLoaded(name string, s riverSettings, patience time.Duration) loadedQueue {
	return loadedQueue{
		name: name, template: riverTemplate, river: &s, patience: patience,
		open:  `SELECT count(*) FROM river_job WHERE finalized_at IS NULL`,
		held:  `SELECT (args->>'number')::bigint FROM river_job WHERE state = 'running' AND attempted_by[array_upper(attempted_by, 1)] = $1`,
		found: `SELECT (args->>'number')::bigint, finalized_at IS NOT NULL, attempt > 1 FROM river_job`,
		scan:  `SELECT count(*) FROM river_job WHERE args->>'number' = '-1'`,

		completed: `SELECT (args->>'number')::bigint, pg_xact_commit_timestamp(xmin) FROM river_job WHERE state = 'completed' AND attempt = 1`,
	}
}

// process completes the configuration of a process that works the queue.
func (q loadedQueue) process(url string, c processConfig) processConfig {
	c.DatabaseURL, c.Economy = url, q.economy
	if s := q.river; s != nil {
		c.River, c.MaxWorkers, c.Pool, c.FetchCooldown, c.RescueAfter = true, s.maxWorkers, s.pool, s.fetchCooldown,
			s.rescueAfter
	}
	return c
}

// enqueue is how the queue takes jobs in a transaction of the application.
func (q loadedQueue) enqueue(pool *pgxpool.Pool) (func(context.Context, pgx.Tx, []faultJob) error, error) {
	if q.river == nil {
		orgs := organizations()
		return func(ctx context.Context, tx pgx.Tx, jobs []faultJob) error {
			if len(jobs) == 1 {
				_, err := queue.EnqueueJob(ctx, tx, orgs[jobs[0].Number%len(orgs)], jobs[0], queue.JobOptions{})
				return err
			}
			some := make([]queue.NewJob, len(jobs))
			for i, j := range jobs {
				some[i] = queue.NewJob{OrgID: orgs[j.Number%len(orgs)], Payload: j}
			}
			_, err := queue.EnqueueJobs(ctx, tx, some)
			return err
		}, nil
	}
	// A client announces at most one insert a queue in its FetchCooldown.
	inserts, err := river.NewClient(riverpgxv5.New(pool), &river.Config{FetchCooldown: q.river.fetchCooldown})
	if err != nil {
		return nil, fmt.Errorf("make River's client that inserts: %w", err)
	}
	return func(ctx context.Context, tx pgx.Tx, jobs []faultJob) error {
		if len(jobs) == 1 {
			_, err := inserts.InsertTx(ctx, tx, jobs[0], nil)
			return err
		}
		some := make([]river.InsertManyParams, len(jobs))
		for i, j := range jobs {
			some[i].Args = j
		}
		_, err := inserts.InsertManyTx(ctx, tx, some)
		return err
	}, nil
}
