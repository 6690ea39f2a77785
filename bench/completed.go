package main

import (
	"context"
	"fmt"

	"github.com/daybook-dev/daybook/bench/report"
)

func init() {
	register(scenario{
		order: 30, name: "completed", topic: topicDocuments, takes: "5 minutes",
		about: "The rate of `drain` (20,000 documents, batchSize 500, concurrency 3) beside 5,000,000 completed " +
			"rows of a thousand organizations, divided by the rate beside none.",
		run: runCompleted,
	})
}

func runCompleted(ctx context.Context, b *bench) (rows []report.Row, err error) {
	n, runs, completed := b.sized(20_000, 1_000), b.repeated(3), 5_000_000
	if b.smoke {
		completed = 20_000
	}
	err = b.withDatabase(ctx, daybookTemplate, func(empty *database) error {
		return b.withDatabase(ctx, daybookTemplate, func(full *database) error {
			orgs := organizations()
			for _, d := range []*database{empty, full} {
				if err := setUpSample(ctx, d.pool, orgs); err != nil {
					return err
				}
			}
			if err := fillCompleted(ctx, full, completed); err != nil {
				return err
			}
			var posted int
			drain := func(d *database) func(context.Context) (float64, error) {
				return func(ctx context.Context) (float64, error) {
					if d == empty {
						posted += n
					}
					if err := fill(ctx, d.pool, orgs, posted-n+1, n); err != nil {
						return 0, err
					}
					if err := d.quiesce(ctx); err != nil {
						return 0, err
					}
					took, err := b.drainDaybook(ctx, d, b.fast(), posted)
					if err != nil {
						return 0, err
					}
					b.say("  %s documents/s", report.Figure(perSecond(n, took)))
					return perSecond(n, took), verify(ctx, d.pool, posted, 3)
				}
			}
			rates, err := alternate(ctx, runs, drain(empty), drain(full))
			if err != nil {
				return err
			}
			without, with := median(rates[0]), median(rates[1])
			rows = []report.Row{{
				Name: "rate that is left", Daybook: with / without, Unit: "with / without", Target: report.AtLeast(0.9),
				Runs: runs,
				Note: fmt.Sprintf("%s completed rows: %s documents/s; none: %s documents/s.", report.Figure(float64(completed)),
					report.Figure(with), report.Figure(without)),
			}}
			return nil
		})
	})
	return rows, err
}

// fillCompleted writes completed jobs of documents that are not kept any more.
func fillCompleted(ctx context.Context, d *database, n int) error {
	const part = 500_000
	const write = `
INSERT INTO daybook.accounting_work_queue
    (org_id, document_id, version_hint, state, run_count, created_at, updated_at, ready_at, first_ready_at, last_attempted_at, finished_at)
SELECT 'past-' || i % 1000, 'past-' || i, 1, 'completed', 1, at, at + interval '2 seconds', at, at, at + interval '1 second', at + interval '2 seconds'
  FROM (SELECT i, now() - interval '90 days' * (1 - i::float8 / $3) - interval '1 minute' AS at FROM generate_series($1::bigint, $2::bigint) i) s`
	for first := 1; first <= n; first += part {
		if _, err := d.pool.Exec(ctx, write, first, min(first+part-1, n), float64(n)); err != nil {
			return fmt.Errorf("write completed jobs: %w", err)
		}
	}
	return d.quiesce(ctx)
}
