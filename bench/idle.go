package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/daybook-dev/daybook/bench/report"
)

func init() {
	register(scenario{
		order: 170, name: "idle", topic: topicFootprint, takes: "10 minutes",
		about: "A worker and the workflow with default settings and nothing to do: the transactions that the " +
			"database counts in 60 seconds, after 80, autovacuum's included. The same with River's default " +
			"client, with DBOS's default intervals, and with pg-boss, which is woken by NOTIFY.",
		run: runIdle,
	})
}

func runIdle(ctx context.Context, b *bench) ([]report.Row, error) {
	counting, runs := b.lasting(time.Minute, 2*time.Second), b.repeated(1)
	sides := []idleSide{{name: "Daybook", measure: b.idleDaybook}}
	if !b.alone {
		sides = append(sides, idleSide{riverName, riverDefault.String(), b.idleRiver})
	}
	if !b.alone && !b.smoke {
		sides = append(sides, b.idlePeers(ctx)...)
	}
	var measurements []measurement
	for _, s := range sides {
		measurements = append(measurements, func(ctx context.Context) (rate float64, err error) {
			err = s.measure(ctx, func(ctx context.Context, d *database) error {
				rate, err = d.transactionRate(ctx, b.lasting(80*time.Second, time.Second), counting)
				return err
			})
			b.say("  %s: %s transactions/s", s.name, report.Figure(rate))
			return rate, err
		})
	}
	rates, err := alternate(ctx, runs, measurements...)
	if err != nil {
		return nil, err
	}
	row := report.Row{
		Name: "transactions", Daybook: median(rates[0]), Unit: "transactions/s", Target: report.AtMost(0.5), Runs: runs,
		Note: fmt.Sprintf("counted for %s.", counting),
	}
	if len(sides) == 1 {
		return []report.Row{row}, nil
	}
	var rows []report.Row
	for i, s := range sides[1:] {
		r := row.Beside(s.name, median(rates[i+1]))
		r.Note = fmt.Sprintf("counted for %s; %s: %s.", counting, s.name, s.settings)
		if i > 0 {
			r.Name += ", beside " + s.name
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// rateOf counts the transactions of a database.
type rateOf func(ctx context.Context, d *database) error

// idleSide is a queue that has nothing to do. measure calls what it is given while a worker of it
// is there.
type idleSide struct {
	name, settings string
	measure        func(ctx context.Context, measure rateOf) error
}

// idlePeers are the peers besides River.
func (b *bench) idlePeers(ctx context.Context) []idleSide {
	sides := []idleSide{{dbosName, dbosDefault.String(), b.idleDBOS}}
	if node, _ := b.useNode(ctx); node != nil {
		sides = append(sides, idleSide{
			pgbossName, pgbossQuick.String() + ", NOTIFY",
			func(ctx context.Context, measure rateOf) error {
				return b.withPgboss(ctx, node, pgbossQuick, func(d *database, _ *journal) error { return measure(ctx, d) })
			},
		})
	}
	return sides
}

func (b *bench) idleDaybook(ctx context.Context, measure rateOf) error {
	return b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		if err := d.ready(ctx, organizations(), 0); err != nil {
			return err
		}
		// Else autovacuum would come for what the preparation has written, and for the statistics of
		// that.
		for _, stmt := range []string{`VACUUM (ANALYZE)`, `VACUUM`} {
			if _, err := d.pool.Exec(ctx, stmt); err != nil {
				return err
			}
		}
		return b.withWorkflow(ctx, d, settings{}, func(ctx context.Context, _ *worker) error { return measure(ctx, d) })
	})
}

func (b *bench) idleRiver(ctx context.Context, measure rateOf) error {
	return b.withDatabase(ctx, riverTemplate, func(d *database) error {
		return withRiver(ctx, d, riverDefault, nil, func(c *riverClient) error {
			return c.started(ctx, func() error { return measure(ctx, d) })
		})
	})
}

func (b *bench) idleDBOS(ctx context.Context, measure rateOf) error {
	return b.withDatabase(ctx, dbosTemplate, func(d *database) error {
		return withDBOS(ctx, d, dbosDefault, dbosNothing, nil, func(e *dbosExecutor) error {
			if err := dbos.Launch(e.Context); err != nil {
				return fmt.Errorf("launch DBOS: %w", err)
			}
			return measure(ctx, d)
		})
	})
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
	if err := d.resetStatements(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	pause(ctx, counting)
	after, err := one[int](ctx, d.b.admin, count, d.name)
	if err != nil {
		return 0, err
	}
	rate := perSecond(after-before, time.Since(began))
	return rate, d.sayStatements(ctx, fmt.Sprintf("idle for %s", counting), 1)
}
