package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
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
		order: 90, name: "jobs-latency", topic: topicLatency, takes: "2 minutes",
		about: "A background job every 50 ms, until its handler begins. River's tuned client has a " +
			"FetchCooldown of 1 ms, DBOS polls as often, pg-boss is woken by NOTIFY.",
		run: runJobsLatency,
	})
}

// latencySide is a peer whose latency is measured.
type latencySide struct {
	// peer is its name in the table, name says which of its settings.
	peer, name, settings string
	// tuned: Daybook is to be as good.
	tuned   bool
	measure func(ctx context.Context, samples int) ([]float64, error)
}

func runJobsLatency(ctx context.Context, b *bench) ([]report.Row, error) {
	n, runs := b.sampled(200, 10), b.repeated(1)
	sides := []latencySide{{name: "Daybook", measure: b.jobsLatency}}
	if !b.alone {
		sides = append(sides, b.latencyPeers(ctx)...)
	}
	p50, p99 := make([][]float64, len(sides)), make([][]float64, len(sides))
	for range runs {
		for i, s := range sides {
			delays, err := s.measure(ctx, n)
			if err != nil {
				return nil, err
			}
			b.sayDelays(s.name, delays)
			p50[i], p99[i] = append(p50[i], percentile(delays, 50)), append(p99[i], percentile(delays, 99))
		}
	}
	row := func(name string, s latencySide, own, peer, target float64) report.Row {
		r := report.Row{Name: name, Daybook: own, Unit: "ms", Runs: runs, Note: fmt.Sprintf("%d samples.", n)}
		if s.peer == "" {
			return r
		}
		r = r.Beside(s.peer, peer)
		r.Name, r.Note = name+", "+s.name, fmt.Sprintf("%d samples; %s: %s.", n, s.peer, s.settings)
		if s.tuned {
			r.Target = report.AtMostTimesPeer(target)
		}
		return r
	}
	var rows []report.Row
	for i, s := range sides {
		if i == 0 && len(sides) > 1 {
			continue
		}
		rows = append(rows, row("p50", s, median(p50[0]), median(p50[i]), 1),
			row("p99", s, median(p99[0]), median(p99[i]), 0.9))
	}
	return rows, nil
}

// latencyPeers are the peers with settings for latency, and River also with its default ones.
func (b *bench) latencyPeers(ctx context.Context) []latencySide {
	river := func(name string, s riverSettings, tuned bool) latencySide {
		return latencySide{
			peer: riverName, name: name, settings: s.String(), tuned: tuned,
			measure: func(ctx context.Context, samples int) ([]float64, error) { return b.riverNoopLatency(ctx, s, samples) },
		}
	}
	sides := []latencySide{
		river("River's default client", riverDefault, false),
		river("River's tuned client", riverSettings{maxWorkers: 100, pool: 16, fetchCooldown: time.Millisecond}, true),
		{peer: dbosName, name: dbosName, settings: dbosQuick.String(), tuned: true, measure: b.dbosLatency},
	}
	if node, _ := b.useNode(ctx); node != nil {
		sides = append(sides, latencySide{
			peer: pgbossName, name: pgbossName, settings: pgbossQuick.String() + ", NOTIFY", tuned: true,
			measure: func(ctx context.Context, samples int) ([]float64, error) { return b.pgbossLatency(ctx, node, samples) },
		})
	}
	return sides
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

// dbosLatency is the same for DBOS's workflows that do nothing.
func (b *bench) dbosLatency(ctx context.Context, samples int) (delays []float64, err error) {
	n := latencyWarmUp + samples
	err = b.withDatabase(ctx, dbosTemplate, func(d *database) error {
		began := newBeginnings(n)
		return withDBOS(ctx, d, dbosQuick, dbosNothing, began.mark, func(e *dbosExecutor) error {
			if err := dbos.Launch(e.Context); err != nil {
				return fmt.Errorf("launch DBOS: %w", err)
			}
			pause(ctx, jobsRest)
			committed, err := d.trickle(ctx, jobsPause, n, func(tx pgx.Tx, i int) error {
				return enqueueDBOS(e.Context, tx, newBenchJob(i))
			})
			if err != nil {
				return err
			}
			delays, err = began.after(ctx, committed, latencyWarmUp)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("workflows of DBOS, %s: %w", dbosQuick, err)
	}
	return delays, nil
}

// pgbossLatency is the same for pg-boss's jobs that do nothing, by a process of its own.
func (b *bench) pgbossLatency(ctx context.Context, node *nodePeers, samples int) (delays []float64, err error) {
	n := latencyWarmUp + samples
	err = b.withPgboss(ctx, node, pgbossQuick, func(d *database, j *journal) error {
		pause(ctx, jobsRest)
		committed, err := d.trickle(ctx, jobsPause, n, func(tx pgx.Tx, i int) error {
			return enqueuePgboss(ctx, tx, 0, []benchJob{newBenchJob(i)})
		})
		if err != nil {
			return err
		}
		var begun map[int][]beginning
		err = await(ctx, time.Millisecond, func(context.Context) (bool, int64, error) {
			begun, err = j.all()
			return len(begun) == n, int64(len(begun)), err
		})
		for i := latencyWarmUp; i < n && err == nil; i++ {
			delays = append(delays, milliseconds(begun[i][0].at.Sub(committed[i])))
		}
		return err
	})
	return delays, err
}
