package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/queue"
)

func init() {
	register(scenario{
		order: 60, name: "jobs-enqueue", topic: topicEnqueuing, takes: "3 minutes",
		about: "The same for background jobs.",
		run:   runJobsEnqueue,
	})
}

func runJobsEnqueue(ctx context.Context, b *bench) ([]report.Row, error) {
	rows, err := b.enqueueRows(ctx, b.jobsEnqueue)
	if err != nil {
		return nil, err
	}
	rows[0].Target, rows[1].Target = report.TimesPeer(1), report.TimesPeer(1)
	return rows, nil
}

func (b *bench) jobsEnqueue(hand shape) enqueuing {
	return func(ctx context.Context, n int) (took time.Duration, found int, err error) {
		orgs := organizations()
		job := func(i int) (org string, payload queue.Payload) { return orgs[i%len(orgs)], noopJob{newBenchJob(i)} }
		call := func(ctx context.Context, tx pgx.Tx, first, n int) error {
			if n == 1 {
				org, payload := job(first)
				_, err := queue.EnqueueJob(ctx, tx, org, payload, queue.JobOptions{})
				return err
			}
			some := make([]queue.NewJob, n)
			for i := range some {
				some[i].OrgID, some[i].Payload = job(first + i)
			}
			_, err := queue.EnqueueJobs(ctx, tx, some)
			return err
		}
		err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
			took, found, err = d.enqueue(ctx, n, hand, call, `SELECT count(*) FROM daybook.jobs WHERE state = 'pending'`)
			return err
		})
		return took, found, err
	}
}
