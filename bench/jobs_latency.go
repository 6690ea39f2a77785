package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/queue"
)

const (
	// jobsPause is between two jobs.
	jobsPause = 50 * time.Millisecond
	// jobsRest is how long the workflow, or River's client, has been waiting for work when the first
	// job comes.
	jobsRest = time.Second
)

func init() {
	register(scenario{
		order: 90, name: "jobs-latency", topic: topicLatency, takes: "1 minute",
		about: "A background job every 50 ms, until its handler begins. River's tuned client has a " +
			"FetchCooldown of 1 ms.",
		run: runJobsLatency,
	})
}

func runJobsLatency(ctx context.Context, b *bench) ([]report.Row, error) {
	n := b.sampled(200, 10)
	own, err := b.jobsLatency(ctx, n)
	if err != nil {
		return nil, err
	}
	b.sayDelays("Daybook", own)
	rows := make([]report.Row, 0, 4)
	for _, v := range []struct {
		name     string
		settings riverSettings
	}{
		{"River's default client", riverDefault},
		{"River's tuned client", riverSettings{maxWorkers: 100, pool: 16, fetchCooldown: time.Millisecond}},
	} {
		var peer []float64
		if !b.alone {
			if peer, err = b.riverNoopLatency(ctx, v.settings, n); err != nil {
				return nil, err
			}
			b.sayDelays(v.name, peer)
		}
		for _, p := range []float64{50, 99} {
			rows = append(rows, report.Row{
				Name: fmt.Sprintf("p%.0f, %s", p, v.name), Daybook: percentile(own, p), Unit: "ms", Runs: 1,
				Note: fmt.Sprintf("%d samples; River: %s.", n, v.settings),
			}.Beside(riverName, percentile(peer, p)))
		}
	}
	return rows, nil
}

// jobsLatency returns, in milliseconds, how long after its commit the handler of each job began.
func (b *bench) jobsLatency(ctx context.Context, samples int) (delays []float64, err error) {
	n := latencyWarmUp + samples
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		began := newBeginnings(n)
		return b.withJobs(ctx, d, began.mark, func(ctx context.Context, start func() error) error {
			if err := start(); err != nil {
				return err
			}
			pause(ctx, jobsRest)
			committed, err := d.trickle(ctx, jobsPause, n, func(tx pgx.Tx, i int) error {
				_, err := queue.EnqueueJob(ctx, tx, "org-01", noopJob{newBenchJob(i)}, queue.JobOptions{})
				return err
			})
			if err != nil {
				return err
			}
			delays, err = began.after(ctx, committed, latencyWarmUp)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("background jobs of Daybook: %w", err)
	}
	return delays, nil
}

// riverNoopLatency is the same for River's jobs that do nothing.
func (b *bench) riverNoopLatency(ctx context.Context, s riverSettings, samples int) (delays []float64, err error) {
	n := latencyWarmUp + samples
	err = b.withDatabase(ctx, riverTemplate, func(d *database) error {
		began := newBeginnings(n)
		return withRiverNoop(ctx, d, s, n, began.mark, func(c *riverClient) error {
			return c.started(ctx, func() error {
				pause(ctx, jobsRest)
				committed, err := d.trickle(ctx, jobsPause, n, func(tx pgx.Tx, i int) error {
					_, err := c.InsertTx(ctx, tx, riverNoop{Number: i}, nil)
					return err
				})
				if err != nil {
					return err
				}
				delays, err = began.after(ctx, committed, latencyWarmUp)
				return err
			})
		})
	})
	if err != nil {
		return nil, fmt.Errorf("jobs of River, %s: %w", s, err)
	}
	return delays, nil
}
