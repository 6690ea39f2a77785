package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/tasks"
)

func init() {
	register(scenario{
		order: 46, name: "tasks-completed", topic: topicTasks, takes: "5 minutes",
		about: "The rate of `tasks` beside 5,000,000 completed tasks with their leases, divided by the rate " +
			"beside none.",
		run: runTasksCompleted,
	})
	register(scenario{
		order: 47, name: "tasks-snapshot", topic: topicTasks, takes: "6 minutes; HELD=30s shortens it",
		about: "About 5,000 tasks always wait. After five seconds a REPEATABLE READ transaction reads a row and " +
			"stays open for 90 seconds. The figure is what was completed in its last 15 seconds divided by " +
			"its first 15.",
		run: runTasksSnapshot,
	})
}

func runTasksCompleted(ctx context.Context, b *bench) (rows []report.Row, err error) {
	n, runs, completed := b.sized(20_000, 500), b.repeated(3), 5_000_000
	if b.smoke {
		completed = 20_000
	}
	err = b.withTaskDatabase(ctx, func(empty *database) error {
		return b.withTaskDatabase(ctx, func(full *database) error {
			if err := fillCompletedTasks(ctx, full, completed); err != nil {
				return err
			}
			work := func(d *database) func(context.Context) (float64, error) {
				return func(ctx context.Context) (float64, error) { return b.taskRate(ctx, d, tasks.Policy{}, n) }
			}
			rates, err := alternate(ctx, runs, work(empty), work(full))
			if err != nil {
				return err
			}
			without, with := median(rates[0]), median(rates[1])
			rows = []report.Row{{
				Name: "rate that is left with completed tasks", Daybook: with / without, Unit: "with / without",
				Target: report.AtLeast(0.9), Runs: runs,
				Note: fmt.Sprintf("%s completed tasks: %s tasks/s; none: %s tasks/s.", report.Figure(float64(completed)),
					report.Figure(with), report.Figure(without)),
			}}
			return nil
		})
	})
	return rows, err
}

// fillCompletedTasks writes completed tasks of the last 90 days.
func fillCompletedTasks(ctx context.Context, d *database, n int) error {
	const part = 500_000
	const write = `
WITH added AS (
    INSERT INTO queues.task (task_type, payload, enqueued_at, scheduled_at)
    SELECT 'db_function', jsonb_build_object('db_function', 'effects.note', 'n', i), at, at
      FROM (SELECT i, now() - interval '90 days' * (1 - i::float8 / $3) - interval '1 minute' AS at FROM generate_series($1::bigint, $2::bigint) i) s
    RETURNING task_id, scheduled_at
), leased AS (
    INSERT INTO queues.task_lease (task_id, leased_at, expires_at) SELECT task_id, scheduled_at, scheduled_at + interval '5 minutes' FROM added
)
INSERT INTO queues.task_completed (task_id, completed_at) SELECT task_id, scheduled_at + interval '1 second' FROM added`
	for first := 1; first <= n; first += part {
		if _, err := d.pool.Exec(ctx, write, first, min(first+part-1, n), float64(n)); err != nil {
			return fmt.Errorf("write completed tasks: %w", err)
		}
	}
	return d.quiesce(ctx)
}

func runTasksSnapshot(ctx context.Context, b *bench) ([]report.Row, error) {
	held := b.shortened(90 * time.Second)
	s := snapshotRun{
		floor: b.sized(5_000, 500), warmUp: b.lasting(snapshotWarmUp, time.Second), held: held,
		part: min(b.lasting(15*time.Second, time.Second/2), held/3),
	}
	runs := b.repeated(3)
	var last snapshotRates
	kept, err := alternate(ctx, runs, func(ctx context.Context) (_ float64, err error) {
		last, err = b.taskSnapshot(ctx, s)
		b.say("  Daybook, tasks: %s/s → %s/s", report.Figure(last.first), report.Figure(last.last))
		return last.kept(), err
	})
	if err != nil {
		return nil, err
	}
	return []report.Row{{
		Name: "rate that is left under a snapshot, lowest run", Daybook: slices.Min(kept[0]),
		Unit: "last 15 s / first 15 s", Target: report.AtLeast(0.9), Runs: runs,
		Note: fmt.Sprintf("held for %s; in the last run from %s to %s tasks/s.", held, report.Figure(last.first),
			report.Figure(last.last)),
	}}, nil
}

func (b *bench) taskSnapshot(ctx context.Context, s snapshotRun) (rates snapshotRates, err error) {
	err = b.withTaskDatabase(ctx, func(d *database) error {
		total := s.floor
		if err := fillTasks(ctx, d.pool, total); err != nil {
			return err
		}
		if err := d.quiesce(ctx); err != nil {
			return err
		}
		var at [4]time.Time
		feed := func(ctx context.Context) error {
			for ctx.Err() == nil {
				var done int
				if err := d.pool.QueryRow(ctx,
					`SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM effects.done`).Scan(&done); err != nil {
					return errUnless(ctx, err)
				}
				if total-done >= s.floor {
					pause(ctx, 2*time.Millisecond)
					continue
				}
				// What is begun is finished, so that the number is right.
				if err := fillTasks(context.WithoutCancel(ctx), d.pool, s.addition()); err != nil {
					return err
				}
				total += s.addition()
			}
			return nil
		}
		err := b.withTasks(ctx, d, tasks.Policy{}, func(ctx context.Context, start func() error) error {
			if err := start(); err != nil {
				return err
			}
			if err := d.underSnapshot(ctx, s, feed, func(i int) { at[i] = time.Now() }); err != nil {
				return err
			}
			return awaitTasks(ctx, d.pool, total)
		})
		if err != nil {
			return err
		}
		var first, last int
		const count = `
SELECT count(*) FILTER (WHERE completed_at >= $1 AND completed_at < $2), count(*) FILTER (WHERE completed_at >= $3 AND completed_at < $4) FROM queues.task_completed`
		if err := d.pool.QueryRow(ctx, count, at[0], at[1], at[2], at[3]).Scan(&first, &last); err != nil {
			return err
		}
		rates = snapshotRates{perSecond(first, at[1].Sub(at[0])), perSecond(last, at[3].Sub(at[2]))}
		return verifyTasks(ctx, d.pool, total)
	})
	return rates, err
}

// errUnless is err, unless the context has ended.
func errUnless(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
