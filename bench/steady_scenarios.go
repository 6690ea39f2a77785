package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/bench/report"
)

const (
	// calmRate is how many jobs a second are enqueued, each in a transaction of its own; busyRate is
	// the same, ten a transaction.
	calmRate = 800
	busyRate = 2_500
	// readers is how many connections scan the queue's table, and scanned how many completed jobs it
	// holds at first.
	readers = 4
	scanned = 100_000
)

// steadyAbout says what the scenarios of steady load have in common, and asSteady that they have it.
const steadyAbout = "One worker; jobs that do nothing come at a steady rate. The clock runs from just before COMMIT " +
	"until the " +
	"completing transaction has committed (`pg_xact_commit_timestamp`). Processor time is that of PostgreSQL and of " +
	"the worker. "

const asSteady = "As `steady`: "

func init() {
	linux := func(*bench) string {
		if runtime.GOOS != "linux" {
			return "it reads /proc, which only Linux has"
		}
		return ""
	}
	register(scenario{
		order: 120, name: "snapshot-steady", topic: topicSnapshots, takes: "11 minutes a run; HELD=2m shortens it",
		skip: linux,
		about: asSteady + "800 jobs/s, one a transaction, beside a snapshot that is held for ten minutes. The " +
			"percentiles " +
			"are those of the last minute.",
		run: runSnapshotSteady,
	})
	register(scenario{
		order: 130, name: "snapshot-busy", topic: topicSnapshots, takes: "16 minutes; HELD=1m shortens it", skip: linux,
		about: asSteady + "2,500 jobs/s, ten a transaction, beside a snapshot that is held for three minutes. What " +
			"River's " +
			"tuned client has not done ten seconds after the load counts as if it were done then.",
		run: runSnapshotBusy,
	})
	register(scenario{
		order: 140, name: "readers", topic: topicSnapshots, takes: "7 minutes; HELD=30s shortens it", skip: linux,
		about: asSteady + "800 jobs/s for 100 seconds, beside four connections that read the whole table of jobs " +
			"again and " +
			"again, each in a REPEATABLE READ transaction and with one process. River runs once, with its " +
			"tuned client.",
		run: runReaders,
	})
}

// shortened is how long a load is held: what the command line says, or that of a full or a short
// run.
func (b *bench) shortened(full time.Duration) time.Duration {
	if b.held > 0 {
		return b.held
	}
	return b.lasting(full, 2*time.Second)
}

// plan is a load at a rate, whose first and last part are at most a minute.
func (b *bench) plan(rate, perTx int, held time.Duration, beside func(context.Context, *database) error) steadyPlan {
	if b.smoke {
		rate = 100
	}
	held = b.shortened(held)
	return steadyPlan{
		rate: rate, perTx: perTx, warmUp: b.lasting(10*time.Second, time.Second/2), held: held,
		part: min(time.Minute, held/4), beside: beside,
	}
}

// holdSnapshot holds a snapshot until ctx ends, so that no row that dies meanwhile can be removed.
func holdSnapshot(ctx context.Context, d *database) error {
	return inSnapshot(ctx, d, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT FROM pg_class LIMIT 1`); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
}

// readAgainAndAgain has several connections read the table of jobs, each in one snapshot and by one
// process, until ctx ends. PostgreSQL would give each of them up to three more processes once the
// table has grown enough: what is measured then is a machine of two cores with a dozen processes
// that never rest.
func readAgainAndAgain(q loadedQueue) func(context.Context, *database) error {
	return func(ctx context.Context, d *database) error {
		group, ctx := errgroup.WithContext(ctx)
		for range readers {
			group.Go(func() error {
				return inSnapshot(ctx, d, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, `SET LOCAL max_parallel_workers_per_gather = 0`)
					for err == nil {
						_, err = tx.Exec(ctx, q.scan)
					}
					return err
				})
			})
		}
		return group.Wait()
	}
}

func inSnapshot(ctx context.Context, d *database, f func(pgx.Tx) error) error {
	tx, err := d.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("begin the transaction that holds a snapshot: %w", err)
	}
	err = f(tx)
	return errors.Join(err, tx.Rollback(context.WithoutCancel(ctx)))
}

// steadies measures a queue under a plan several times.
func (b *bench) steadies(ctx context.Context, runs int, q loadedQueue, p steadyPlan) ([]steadyFigures, error) {
	all := make([]steadyFigures, runs)
	for i := range all {
		var err error
		if all[i], err = b.steady(ctx, q, p); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// steadyMedian is the median of one figure of several runs; 0 when there are none.
func steadyMedian(all []steadyFigures, figure func(steadyFigures) float64) float64 {
	values := make([]float64, len(all))
	for i, f := range all {
		values[i] = figure(f)
	}
	return median(values)
}

// completedIn is a percentile from commit to completion in one of a run's windows.
func completedIn(window func(steadyFigures) steadyWindow, p float64) func(steadyFigures) float64 {
	return func(f steadyFigures) float64 { return percentile(window(f).completed, p) }
}

func lastPart(f steadyFigures) steadyWindow { return f.last }

func allTime(f steadyFigures) steadyWindow { return f.all }

func (b *bench) daybookSteady() loadedQueue {
	return daybookLoaded(b.lasting(60*time.Second, 10*time.Second))
}

func runSnapshotSteady(ctx context.Context, b *bench) ([]report.Row, error) {
	runs, plan := b.repeated(1), b.plan(calmRate, 1, 10*time.Minute, holdSnapshot)
	all, err := b.steadies(ctx, runs, b.daybookSteady(), plan)
	if err != nil {
		return nil, err
	}
	note := fmt.Sprintf("held for %s; last run: %s.", plan.held, all[len(all)-1])
	return []report.Row{
		{
			Name: "PostgreSQL's processor time a job", Unit: "last minute / first minute", Target: report.AtMost(1.3),
			Runs: runs, Note: note,
			Daybook: steadyMedian(all, func(f steadyFigures) float64 { return f.last.perJob() / f.first.perJob() }),
		},
		{
			Name: "commit to completion in the last minute, p50", Unit: "ms", Runs: runs,
			Daybook: steadyMedian(all, completedIn(lastPart, 50)),
		},
		{
			Name: "commit to completion in the last minute, p99", Unit: "ms", Target: report.AtMost(15), Runs: runs,
			Daybook: steadyMedian(all, completedIn(lastPart, 99)),
		},
	}, nil
}

func runSnapshotBusy(ctx context.Context, b *bench) ([]report.Row, error) {
	runs, plan := b.repeated(3), b.plan(busyRate, 10, 3*time.Minute, holdSnapshot)
	all, err := b.steadies(ctx, runs, b.daybookSteady(), plan)
	if err != nil {
		return nil, err
	}
	var without, peer []steadyFigures
	if !b.smoke {
		free := plan
		free.beside, free.held = nil, min(plan.held, time.Minute)
		free.part = min(plan.part, free.held/4)
		if without, err = b.steadies(ctx, 1, b.daybookSteady(), free); err != nil {
			return nil, err
		}
	}
	if !b.alone && !b.smoke {
		if peer, err = b.steadies(ctx, 1, riverLoaded("River's tuned client", riverTuned, 10*time.Second),
			plan); err != nil {
			return nil, err
		}
	}
	note := fmt.Sprintf("held for %s; last run: %s.", plan.held, all[len(all)-1])
	if len(without) > 0 {
		note += fmt.Sprintf(" Without a snapshot: %s.", without[0])
	}
	if len(peer) > 0 {
		note += fmt.Sprintf(" River: %s: %s.", riverTuned, peer[0])
	}
	row := func(name, unit string, target report.Target, figure func(steadyFigures) float64) report.Row {
		return report.Row{
			Name: name, Daybook: steadyMedian(all, figure), Unit: unit, Target: target,
			Runs: runs,
		}.Beside(riverName, steadyMedian(peer, figure))
	}
	rows := []report.Row{
		row("rate", "jobs/s", report.AtLeast(0.998*busyRate), func(f steadyFigures) float64 { return f.all.rate }),
		row("commit to completion, p50", "ms", report.AtMost(10), completedIn(allTime, 50)),
		row("commit to completion, p99", "ms", report.AtMost(50), completedIn(allTime, 99)),
	}
	rows[0].Note = note
	return rows, nil
}

func runReaders(ctx context.Context, b *bench) ([]report.Row, error) {
	under := func(runs int, q loadedQueue) ([]steadyFigures, error) {
		plan := b.plan(calmRate, 1, 100*time.Second, readAgainAndAgain(q))
		plan.backlog = b.sized(scanned, 1_000)
		return b.steadies(ctx, runs, q, plan)
	}
	runs := b.repeated(3)
	all, err := under(runs, b.daybookSteady())
	if err != nil {
		return nil, err
	}
	note := fmt.Sprintf("last run: %s.", all[len(all)-1])
	var peer []steadyFigures
	if !b.alone && !b.smoke {
		if peer, err = under(1, riverLoaded("River's tuned client", riverTuned, 30*time.Second)); err != nil {
			return nil, err
		}
		note += fmt.Sprintf(" River: %s: %s.", riverTuned, peer[0])
	}
	row := func(name string, target report.Target, p float64) report.Row {
		figure := completedIn(allTime, p)
		return report.Row{
			Name: name, Unit: "ms", Target: target, Runs: runs,
			Daybook: steadyMedian(all, figure),
		}.Beside(riverName, steadyMedian(peer, figure))
	}
	rows := []report.Row{
		row("commit to completion, p50", report.Target{}, 50),
		row("commit to completion, p99", report.AtMost(30), 99),
	}
	rows[0].Note = note
	return rows, nil
}
