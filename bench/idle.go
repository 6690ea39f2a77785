package main

import (
	"context"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
)

func init() {
	register(scenario{
		order: 170, name: "idle", topic: topicFootprint, takes: "5 minutes",
		about: "A worker and the workflow with default settings and nothing to do: the transactions that the " +
			"database counts in 60 seconds, after 80, autovacuum's included. The same with River's default " +
			"client.",
		run: runIdle,
	})
}

func runIdle(ctx context.Context, b *bench) (rows []report.Row, err error) {
	resting, counting := b.lasting(80*time.Second, time.Second), b.lasting(time.Minute, 2*time.Second)
	runs := b.repeated(1)
	rates, err := alternate(ctx, runs,
		func(ctx context.Context) (rate float64, err error) {
			err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
				if err := d.ready(ctx, organizations(), 0); err != nil {
					return err
				}
				// Else autovacuum would come for what the preparation has written, and for the statistics
				// of that.
				for _, stmt := range []string{`VACUUM (ANALYZE)`, `VACUUM`} {
					if _, err := d.pool.Exec(ctx, stmt); err != nil {
						return err
					}
				}
				return b.withWorkflow(ctx, d, settings{}, func(ctx context.Context, _ *worker) error {
					rate, err = d.transactionRate(ctx, resting, counting)
					return err
				})
			})
			b.say("  Daybook: %s transactions/s", report.Figure(rate))
			return rate, err
		},
		b.peer(func(ctx context.Context) (rate float64, err error) {
			err = b.withDatabase(ctx, riverTemplate, func(d *database) error {
				return withRiver(ctx, d, riverDefault, nil, func(c *riverClient) error {
					return c.started(ctx, func() error {
						rate, err = d.transactionRate(ctx, resting, counting)
						return err
					})
				})
			})
			b.say("  River: %s transactions/s", report.Figure(rate))
			return rate, err
		}),
	)
	if err != nil {
		return nil, err
	}
	return []report.Row{report.Row{
		Name: "transactions", Daybook: median(rates[0]), Unit: "transactions/s", Target: report.AtMost(0.5), Runs: runs,
		Note: fmt.Sprintf("counted for %s.", counting),
	}.Beside(riverName, median(rates[1]))}, nil
}

// transactionRate counts the database's transactions for a while, after another while.
func (d *database) transactionRate(ctx context.Context, resting, counting time.Duration) (float64, error) {
	// Idle connections of ours would report late what they did before.
	d.pool.Reset()
	const count = `SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1`
	pause(ctx, resting)
	before, err := one[int](ctx, d.b.admin, count, d.name)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	pause(ctx, counting)
	after, err := one[int](ctx, d.b.admin, count, d.name)
	if err != nil {
		return 0, err
	}
	return perSecond(after-before, time.Since(began)), nil
}
