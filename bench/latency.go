package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/queue"
)

// latencyWarmUp is how many documents come before the samples.
const latencyWarmUp = 10

func init() {
	register(scenario{
		order: 70, name: "latency", topic: topicLatency, takes: "2 minutes",
		about: "A document every 50 ms, 200 in all, with default settings. The clock runs from just before " +
			"COMMIT until the database leased the job (`attempts.started_at`); River's ends where `Work` " +
			"begins.",
		run: func(ctx context.Context, b *bench) ([]report.Row, error) {
			return runLatency(ctx, b, latencyPlan{
				samples: b.sampled(200, 10), pause: 50 * time.Millisecond, warmUp: latencyWarmUp, runs: b.repeated(3), p50: 5,
				p99: 30,
			})
		},
	})
	register(scenario{
		order: 80, name: "latency-idle", topic: topicLatency, takes: "22 minutes",
		about: "The same after 30 seconds in which nothing came, 20 times.",
		skip: func(b *bench) string {
			if b.smoke {
				return "it cannot be short"
			}
			return ""
		},
		run: func(ctx context.Context, b *bench) ([]report.Row, error) {
			return runLatency(ctx, b, latencyPlan{
				samples: b.sampled(20, 0), pause: 30 * time.Second, warmUp: 1, runs: b.repeated(1), p50: 60, p99: 150,
			})
		},
	})
}

// latencyPlan says how often documents come and how late they may be started, in milliseconds.
type latencyPlan struct {
	samples, warmUp, runs int
	pause                 time.Duration
	p50, p99              float64
}

func runLatency(ctx context.Context, b *bench, p latencyPlan) ([]report.Row, error) {
	var p50, p99, riverP50, riverP99 []float64
	for range p.runs {
		delays, err := b.daybookLatency(ctx, p)
		if err != nil {
			return nil, err
		}
		p50, p99 = append(p50, percentile(delays, 50)), append(p99, percentile(delays, 99))
		b.sayDelays("Daybook", delays)
		if b.alone {
			continue
		}
		if delays, err = b.riverLatency(ctx, p); err != nil {
			return nil, err
		}
		riverP50, riverP99 = append(riverP50, percentile(delays, 50)), append(riverP99, percentile(delays, 99))
		b.sayDelays("River", delays)
	}
	note := fmt.Sprintf("%d samples a run, one every %s; River: %s.", p.samples, p.pause, riverDefault)
	row := func(name string, figure, peer, target float64) report.Row {
		return report.Row{
			Name: name, Daybook: figure, Unit: "ms", Target: report.AtMost(target), Runs: p.runs,
			Note: note,
		}.Beside(riverName, peer)
	}
	return []report.Row{
		row("p50, River's default client", median(p50), median(riverP50), p.p50),
		row("p99, River's default client", median(p99), median(riverP99), p.p99),
	}, nil
}

// every calls f with 0, 1, 2, …, pause apart: the last of them has the pause before it, the first
// one too.
func every(ctx context.Context, pause time.Duration, n int, f func(int) error) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for i := range n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

// daybookLatency returns, in milliseconds, how long after its commit the processing of each
// document began.
func (b *bench) daybookLatency(ctx context.Context, p latencyPlan) (delays []float64, err error) {
	const org = "org-01"
	n := p.warmUp + p.samples
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		if err := d.ready(ctx, []string{org}, 0); err != nil {
			return err
		}
		committed := map[string]time.Time{}
		err := b.withWorkflow(ctx, d, settings{}, func(ctx context.Context, _ *worker) error {
			err := every(ctx, p.pause, n, func(i int) error {
				id := fmt.Sprintf("sample-%d", i)
				at, err := postInvoice(ctx, d, org, id, queue.Normal)
				if i >= p.warmUp {
					committed[id] = at
				}
				return err
			})
			if err != nil {
				return err
			}
			_, err = awaitEnds(ctx, d.pool, n)
			return err
		})
		if err != nil {
			return err
		}
		if err := verify(ctx, d.pool, n, 3); err != nil {
			return err
		}
		rows, err := d.pool.Query(ctx, `SELECT document_id, started_at FROM daybook.attempts WHERE outcome = 'completed'`)
		if err != nil {
			return err
		}
		var id string
		var started time.Time
		_, err = pgx.ForEachRow(rows, []any{&id, &started}, func() error {
			if at, ok := committed[id]; ok {
				delays = append(delays, milliseconds(started.Sub(at)))
			}
			return nil
		})
		return err
	})
	return delays, err
}

// postInvoice writes an invoice, marks it ready and commits, as domain code does; it returns the
// moment before the commit was sent.
func postInvoice(ctx context.Context, d *database, org, id string, priority queue.Priority) (at time.Time, err error) {
	tx, err := d.pool.Begin(ctx)
	if err != nil {
		return at, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := ledgerdb.PutDocument(ctx, tx, invoice(org, id)); err != nil {
		return at, err
	}
	if _, err := queue.MarkDocumentReady(ctx, tx, queue.Document{OrgID: org, ID: id, Priority: priority}); err != nil {
		return at, err
	}
	at = time.Now()
	return at, tx.Commit(ctx)
}

// riverLatency is the same for River's default client.
func (b *bench) riverLatency(ctx context.Context, p latencyPlan) (delays []float64, err error) {
	n := p.warmUp + p.samples
	err = b.withDatabase(ctx, riverTemplate, func(d *database) error {
		began := newBeginnings(n)
		err := withRiver(ctx, d, riverDefault, func(job riverInvoice) { began.mark(job.Number) },
			func(c *riverClient) error {
				return c.started(ctx, func() error {
					committed, err := d.trickle(ctx, p.pause, n, func(tx pgx.Tx, i int) error {
						_, err := c.InsertTx(ctx, tx, riverJobs(i, 1)[0].Args, nil)
						return err
					})
					if err != nil {
						return err
					}
					if err := c.awaitCompleted(ctx, n); err != nil {
						return err
					}
					delays, err = began.after(ctx, committed, p.warmUp)
					return err
				})
			})
		if err != nil {
			return err
		}
		return verifyRiver(ctx, d, n)
	})
	return delays, err
}
