package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/queue"
)

// fairPause is between two samples.
const fairPause = 250 * time.Millisecond

func init() {
	register(scenario{
		order: 150, name: "fair", topic: topicFairness, takes: "3 minutes",
		about: "At least 50,000 documents of organization A always wait. A document of organization B with " +
			"normal priority and one of A with high priority come in turn, 20 of each. The clock runs from " +
			"just before COMMIT until a reader sees the job completed.",
		run: runFair,
	})
}

func runFair(ctx context.Context, b *bench) ([]report.Row, error) {
	backlog, samples, runs := b.sized(100_000, 2_000), b.sampled(20, 2), b.repeated(3)
	var other, high []float64
	for range runs {
		o, h, err := b.fair(ctx, backlog, samples)
		if err != nil {
			return nil, err
		}
		b.say("  organization B: p50 %s s, p99 %s s; high priority: p50 %s s, p99 %s s", report.Figure(percentile(o, 50)),
			report.Figure(percentile(o, 99)),
			report.Figure(percentile(h, 50)), report.Figure(percentile(h, 99)))
		other, high = append(other, percentile(o, 99)), append(high, percentile(h, 99))
	}
	note := fmt.Sprintf("%s documents of A wait at first; %d samples of each kind a run, so p99 is the slowest.",
		report.Figure(float64(backlog)), samples)
	return []report.Row{
		{
			Name: "another organization's document, p99", Daybook: median(other), Unit: "s", Target: report.AtMost(1),
			Runs: runs, Note: note,
		},
		{
			Name: "a document with high priority, p99", Daybook: median(high), Unit: "s", Target: report.AtMost(0.5),
			Runs: runs, Note: note,
		},
	}, nil
}

// fair returns how many seconds it took until each sample was completed: those of another
// organization, those of high priority.
func (b *bench) fair(ctx context.Context, backlog, samples int) (other, high []float64, err error) {
	const crowded, quiet = "org-a", "org-b"
	total := backlog
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		if err := setUpSample(ctx, d.pool, []string{crowded, quiet}); err != nil {
			return err
		}
		if err := fill(ctx, d.pool, []string{crowded}, 1, backlog); err != nil {
			return err
		}
		if err := d.quiesce(ctx); err != nil {
			return err
		}
		err := b.withWorkflow(ctx, d, settings{}, func(ctx context.Context, _ *worker) error {
			group, filling := errgroup.WithContext(ctx)
			filling, enough := context.WithCancel(filling)
			defer enough()
			group.Go(func() error {
				var err error
				total, err = keepFull(filling, d, []string{crowded}, backlog, backlog/2, max(1, backlog/10))
				return err
			})
			group.Go(func() error {
				defer enough()
				return every(filling, fairPause, 2*samples, func(i int) error {
					org, priority, kind := quiet, queue.Normal, &other
					if i%2 == 1 {
						org, priority, kind = crowded, queue.High, &high
					}
					took, err := untilCompleted(filling, d, org, fmt.Sprintf("sample-%d", i), priority)
					*kind = append(*kind, took.Seconds())
					return err
				})
			})
			if err := group.Wait(); err != nil {
				return err
			}
			_, err := awaitEnds(ctx, d.pool, total+2*samples)
			return err
		})
		if err != nil {
			return err
		}
		return verify(ctx, d.pool, total+2*samples, 3)
	})
	return other, high, err
}

// untilCompleted posts an invoice and returns how long it took from its commit until its job was
// seen completed.
func untilCompleted(ctx context.Context, d *database, org, id string, priority queue.Priority) (time.Duration, error) {
	at, err := postInvoice(ctx, d, org, id, priority)
	if err != nil {
		return 0, err
	}
	err = await(ctx, 2*time.Millisecond, func(ctx context.Context) (bool, int64, error) {
		state, err := one[string](ctx, d.pool,
			`SELECT state::text FROM daybook.accounting_work_queue WHERE org_id = $1 AND document_id = $2`, org, id)
		if state == "failed" {
			err = errors.Join(err, fmt.Errorf("document %s of %s failed", id, org))
		}
		return state == "completed", 0, err
	})
	return time.Since(at), err
}
