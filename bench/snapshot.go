package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/bench/report"
)

// snapshotWarmUp is how long everything runs before the snapshot is taken.
const snapshotWarmUp = 5 * time.Second

func init() {
	register(scenario{
		order: 110, name: "snapshot", topic: topicSnapshots, takes: "19 minutes",
		about: "A worker drains documents, of which 10,000 always wait. A REPEATABLE READ transaction stays " +
			"open for 90 seconds; beside each run is one in which it ends at once. The last 15 seconds with " +
			"it are divided by the same seconds without it: tables grow meanwhile, so the rate falls without " +
			"a snapshot as well.",
		run: runSnapshot,
	})
}

// snapshotRun says how long the snapshot is held, and of what parts at its ends the rates are
// taken.
type snapshotRun struct {
	warmUp, held, part time.Duration
	// floor is the backlog that the enqueuer keeps; it adds a tenth of it at a time.
	floor int
	// released: the snapshot is given up at once.
	released bool
}

func (s snapshotRun) addition() int { return max(1, s.floor/10) }

// snapshotRates are jobs/s in the first and in the last part.
type snapshotRates struct{ first, last float64 }

func (r snapshotRates) kept() float64 {
	if r.first == 0 {
		return 0
	}
	return r.last / r.first
}

func runSnapshot(ctx context.Context, b *bench) ([]report.Row, error) {
	s := snapshotRun{
		floor:  b.sized(10_000, 1_000),
		warmUp: b.lasting(snapshotWarmUp, time.Second), held: b.lasting(90*time.Second, 2*time.Second),
		part: b.lasting(15*time.Second, time.Second/2),
	}
	runs := b.repeated(3)
	var held, free []snapshotRates
	var riverLast snapshotRates
	daybook := func(all *[]snapshotRates, s snapshotRun, name string) measurement {
		return func(ctx context.Context) (float64, error) {
			r, err := b.daybookSnapshot(ctx, s)
			b.say("  Daybook%s: %s/s → %s/s", name, report.Figure(r.first), report.Figure(r.last))
			*all = append(*all, r)
			return r.kept(), err
		}
	}
	without := s
	without.released = true
	kept, err := alternate(ctx, runs,
		daybook(&held, s, ""),
		daybook(&free, without, " without the snapshot"),
		b.peer(func(ctx context.Context) (_ float64, err error) {
			riverLast, err = b.riverSnapshot(ctx, s)
			b.say("  River: %s/s → %s/s", report.Figure(riverLast.first), report.Figure(riverLast.last))
			return riverLast.kept(), err
		}),
	)
	if err != nil {
		return nil, err
	}
	beside := make([]float64, runs)
	for i := range beside {
		if free[i].last > 0 {
			beside[i] = held[i].last / free[i].last
		}
	}
	last, lastFree := held[runs-1], free[runs-1]
	const unit = "last 15 s / first 15 s"
	return []report.Row{
		{
			Name: "rate beside that without the snapshot, lowest run", Daybook: slices.Min(beside),
			Unit: "with / without, in the last 15 s", Target: report.AtLeast(0.9), Runs: runs,
		},
		{
			Name: "rate beside that without the snapshot", Daybook: median(beside), Unit: "with / without, in the last 15 s",
			Runs: runs,
		},
		report.Row{
			Name: "rate that is left", Daybook: median(kept[0]), Unit: unit, Runs: runs,
			Note: fmt.Sprintf("in the last run Daybook went from %s to %s documents/s, without the snapshot from %s to %s, "+
				"River from %s to %s jobs/s (%s).", report.Figure(last.first),
				report.Figure(last.last), report.Figure(lastFree.first), report.Figure(lastFree.last),
				report.Figure(riverLast.first), report.Figure(riverLast.last), riverBusy),
		}.Beside(riverName, median(kept[2])),
		{Name: "rate that is left without the snapshot", Daybook: median(kept[1]), Unit: unit, Runs: runs},
	}, nil
}

// underSnapshot feeds the queue and, after the warm-up, holds a snapshot. It calls mark when the
// snapshot is taken, after the first part of the time, before the last part, and at the end.
func (d *database) underSnapshot(ctx context.Context, s snapshotRun, feed func(context.Context) error,
	mark func(i int),
) error {
	group, ctx := errgroup.WithContext(ctx)
	feeding, enough := context.WithCancel(ctx)
	group.Go(func() error { return feed(feeding) })
	group.Go(func() error {
		defer enough()
		pause(ctx, s.warmUp)
		tx, err := d.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		if _, err := tx.Exec(ctx, `SELECT FROM pg_class LIMIT 1`); err != nil {
			return err
		}
		if s.released {
			if err := tx.Rollback(ctx); err != nil {
				return err
			}
		}
		mark(0)
		for i, d := range []time.Duration{s.part, s.held - 2*s.part, s.part} {
			pause(ctx, d)
			mark(i + 1)
		}
		return ctx.Err() // what is deferred ends the transaction
	})
	return group.Wait()
}

func (b *bench) daybookSnapshot(ctx context.Context, s snapshotRun) (rates snapshotRates, err error) {
	orgs := organizations()
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		if err := d.ready(ctx, orgs, s.floor); err != nil {
			return err
		}
		total := s.floor
		var at [4]time.Time
		err := b.withWorkflow(ctx, d, b.fast(), func(ctx context.Context, _ *worker) error {
			err := d.underSnapshot(ctx, s, func(ctx context.Context) (err error) {
				total, err = keepFull(ctx, d, orgs, total, s.floor, s.addition())
				return err
			}, func(i int) { at[i] = time.Now() })
			if err != nil {
				return err
			}
			_, err = awaitEnds(ctx, d.pool, total)
			return err
		})
		if err != nil {
			return err
		}
		var first, last int
		const count = `
SELECT count(*) FILTER (WHERE ended_at >= $1 AND ended_at < $2), count(*) FILTER (WHERE ended_at >= $3 AND ended_at < $4)
  FROM daybook.attempts WHERE outcome = 'completed'`
		if err := d.pool.QueryRow(ctx, count, at[0], at[1], at[2], at[3]).Scan(&first, &last); err != nil {
			return err
		}
		rates = snapshotRates{perSecond(first, at[1].Sub(at[0])), perSecond(last, at[3].Sub(at[2]))}
		return verify(ctx, d.pool, total, 3)
	})
	return rates, err
}

func (b *bench) riverSnapshot(ctx context.Context, s snapshotRun) (rates snapshotRates, err error) {
	err = b.withDatabase(ctx, riverTemplate, func(d *database) error {
		total := s.floor
		err := withRiver(ctx, d, riverBusy, nil, func(c *riverClient) error {
			if err := fillRiver(ctx, c, total, riverJobs); err != nil {
				return err
			}
			if err := d.quiesce(ctx); err != nil {
				return err
			}
			var at [4]time.Time
			var done [4]int
			feed := func(ctx context.Context) error {
				for ctx.Err() == nil {
					if total-int(c.completed()) >= s.floor {
						pause(ctx, 2*time.Millisecond)
						continue
					}
					// What is begun is finished, so that the number is right.
					if _, err := c.InsertManyFast(context.WithoutCancel(ctx), riverJobs(total, s.addition())); err != nil {
						return err
					}
					total += s.addition()
				}
				return nil
			}
			return c.started(ctx, func() error {
				if err := d.underSnapshot(ctx, s, feed,
					func(i int) { at[i], done[i] = time.Now(), int(c.completed()) }); err != nil {
					return err
				}
				rates = snapshotRates{
					perSecond(done[1]-done[0], at[1].Sub(at[0])),
					perSecond(done[3]-done[2], at[3].Sub(at[2])),
				}
				return c.awaitCompleted(ctx, total)
			})
		})
		if err != nil {
			return err
		}
		return verifyRiver(ctx, d, total)
	})
	return rates, err
}
