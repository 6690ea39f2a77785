package main

import (
	"context"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
)

func init() {
	register(scenario{
		order: 10, name: "drain", topic: topicDocuments, takes: "6 minutes",
		about: "50,000 invoices of ten organizations wait. The clock runs from the start of the workflow until " +
			"no job is pending or leased; each document must end with one completed attempt and one live " +
			"impact of three entries. River's jobs write three ledger rows in one statement with " +
			"`JobCompleteTx`, a transaction a job. Both sides' best settings are looked for first; both " +
			"settings are compared with River's best.",
		run: runDrain,
	})
}

// drainSettings are what the best settings are looked for among.
var drainSettings = []settings{{50, 3}, {200, 3}, {500, 3}, {1000, 3}, {500, 2}}

// riverVariants are the same for River.
var riverVariants = []riverSettings{
	{maxWorkers: 50, pool: 16},
	{maxWorkers: 50, pool: 16, fetchCooldown: 20 * time.Millisecond},
	{maxWorkers: 50, pool: 16, fetchCooldown: time.Millisecond},
	{maxWorkers: 100, pool: 16, fetchCooldown: 20 * time.Millisecond},
	{maxWorkers: 100, pool: 16, fetchCooldown: 5 * time.Millisecond},
	{maxWorkers: 100, pool: 32, fetchCooldown: 20 * time.Millisecond},
	{maxWorkers: 200, pool: 16, fetchCooldown: 20 * time.Millisecond},
}

// bestSettings is what the other scenarios take where they want throughput.
var bestSettings = settings{batch: 500, lanes: 3}

func runDrain(ctx context.Context, b *bench) ([]report.Row, error) {
	n := b.sized(50_000, 2_000)
	best, riverBest := b.fast(), riverBusy
	if !b.smoke && b.best == (settings{}) {
		var err error
		best, err = fastest(ctx, b, drainSettings,
			func(ctx context.Context, s settings) (float64, error) { return b.drainRate(ctx, s, n) })
		if err != nil {
			return nil, err
		}
	}
	if !b.smoke && !b.alone {
		var err error
		riverBest, err = fastest(ctx, b, riverVariants, func(ctx context.Context, s riverSettings) (float64, error) {
			return b.riverRate(ctx, s, max(1, n/5))
		})
		if err != nil {
			return nil, err
		}
	}
	runs := b.repeated(3)
	rates, err := alternate(ctx, runs,
		func(ctx context.Context) (float64, error) { return b.drainRate(ctx, best, n) },
		b.peer(func(ctx context.Context) (float64, error) { return b.riverRate(ctx, riverBest, n) }),
		func(ctx context.Context) (float64, error) { return b.drainRate(ctx, settings{}, n) },
		b.peer(func(ctx context.Context) (float64, error) {
			took, err := b.drainByHand(ctx, n)
			b.say("  %s: %s documents/s", report.ByHand, report.Figure(perSecond(n, took)))
			return perSecond(n, took), err
		}),
	)
	if err != nil {
		return nil, err
	}
	river := median(rates[1])
	size := fmt.Sprintf("%s documents", report.Figure(float64(n)))
	row := func(name string, figure float64) report.Row {
		return report.Row{Name: name, Daybook: figure, Unit: "documents/s", Runs: runs}
	}
	rows := []report.Row{
		row("best settings", median(rates[0])).Beside(riverName, river),
		row("default settings", median(rates[2])).Beside(riverName, river),
		row("best settings, beside SQL by hand", median(rates[0])).Beside(report.ByHand, median(rates[3])),
	}
	rows[0].Target, rows[0].Note = report.TimesPeer(10), fmt.Sprintf("%s; Daybook: %s; River: %s.", size, best, riverBest)
	rows[1].Target, rows[1].Note = report.TimesPeer(5), fmt.Sprintf("%s; River: %s.", size, riverBest)
	rows[2].Note = fmt.Sprintf("%s; by hand: a function leases %d jobs, writes their rows and completes them, on %d "+
		"connections; no rules, no versions, no log.", size, byHandBatch, byHandConns)
	return rows, nil
}

// fastest measures each of the settings once and returns the one with the highest figure.
func fastest[S any](ctx context.Context, b *bench, all []S,
	measure func(context.Context, S) (float64, error),
) (S, error) {
	var best S
	highest := -1.0
	b.say("  looking for the best settings")
	for _, s := range all {
		rate, err := measure(ctx, s)
		if err != nil {
			return best, err
		}
		if rate > highest {
			best, highest = s, rate
		}
	}
	return best, nil
}

// drainRate is documents/s of Daybook on a database of its own.
func (b *bench) drainRate(ctx context.Context, s settings, n int) (rate float64, err error) {
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		if err := d.ready(ctx, organizations(), n); err != nil {
			return err
		}
		took, err := b.drainDaybook(ctx, d, s, n)
		if err != nil {
			return err
		}
		rate = perSecond(n, took)
		b.say("  Daybook, %s: %s documents/s", s, report.Figure(rate))
		return verify(ctx, d.pool, n, 3)
	})
	return rate, err
}

// riverRate is jobs/s of River on a database of its own.
func (b *bench) riverRate(ctx context.Context, s riverSettings, n int) (float64, error) {
	took, err := b.drainRiver(ctx, s, n)
	if err != nil {
		return 0, err
	}
	b.say("  River, %s: %s jobs/s", s, report.Figure(perSecond(n, took)))
	return perSecond(n, took), nil
}
