package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/queue"
)

const (
	// tricklePause is between two jobs that are due at once.
	tricklePause = 30 * time.Millisecond
	// tricklePatience is how long after the last of them work may begin.
	tricklePatience = 15 * time.Second
	// quietOrg is the organization of the trickle that has nothing else to do.
	quietOrg = "quiet"
)

// trickleParts measure a trickle beside work that is due tomorrow.
func (b *bench) trickleParts(s organizationsSizes) []organizationsPart {
	samples := b.sampled(300, 20)
	rows := func(figures []float64) []report.Row {
		note := fmt.Sprintf("%s jobs due tomorrow in %s organizations; %d samples, one every %s; the slowest waited %s "+
			"ms.%s", report.Count(s.later),
			report.Count(s.laterOrgs), samples, tricklePause, report.Figure(figures[2]), missingNote(figures[3], samples))
		return []report.Row{
			{Name: "p50", Daybook: figures[0], Unit: "ms", Target: report.AtMost(20), Note: note},
			{Name: "p99", Daybook: figures[1], Unit: "ms", Target: report.AtMost(200), Note: note},
		}
	}
	part := func(name string,
		measure func(context.Context, organizationsSizes, int) ([]float64, int, error),
	) organizationsPart {
		return organizationsPart{name: name, rows: rows, measure: func(ctx context.Context) ([]float64, error) {
			delays, missing, err := measure(ctx, s, samples)
			if err != nil {
				return nil, err
			}
			b.sayDelays(name, delays)
			return []float64{percentile(delays, 50), percentile(delays, 99), percentile(delays, 100), float64(missing)}, nil
		}}
	}
	return []organizationsPart{
		part("trickle of jobs", b.trickleOfJobs),
		part("trickle of documents", b.trickleOfDocuments),
	}
}

// laterOrg is the i-th organization that has work due tomorrow.
func laterOrg(i int) string { return fmt.Sprintf("later-%d", i) }

// trickleOrg is the organization of the trickle's i-th job.
func trickleOrg(i, orgs int) string {
	if i%2 == 0 {
		return quietOrg
	}
	return laterOrg(i * 37 % orgs)
}

func (b *bench) trickleOfJobs(ctx context.Context, s organizationsSizes,
	samples int,
) (delays []float64, missing int, err error) {
	n := latencyWarmUp + samples
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		if err := fillJobsDueLater(ctx, d, s); err != nil {
			return err
		}
		if err := d.quiesce(ctx); err != nil {
			return err
		}
		began := newBeginnings(n)
		return b.withJobs(ctx, d, began.mark, func(ctx context.Context, start func() error) error {
			if err := start(); err != nil {
				return err
			}
			pause(ctx, jobsRest)
			committed, err := d.trickle(ctx, tricklePause, n, func(tx pgx.Tx, i int) error {
				_, err := queue.EnqueueJob(ctx, tx, trickleOrg(i, s.laterOrgs), noopJob{newBenchJob(i)}, queue.JobOptions{})
				return err
			})
			if err != nil {
				return err
			}
			delays, missing, err = began.within(ctx, committed, latencyWarmUp, tricklePatience)
			return err
		})
	})
	return delays, missing, err
}

// fillJobsDueLater enqueues the jobs that are due tomorrow, in turn of each organization.
func fillJobsDueLater(ctx context.Context, d *database, s organizationsSizes) error {
	tomorrow := time.Now().Add(24 * time.Hour)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for begin := 0; begin < s.later; begin += fillBatch {
		group.Go(func() error {
			some := make([]queue.NewJob, min(fillBatch, s.later-begin))
			for i := range some {
				number := begin + i
				some[i] = queue.NewJob{
					OrgID: laterOrg(number % s.laterOrgs), Payload: noopJob{newBenchJob(number)},
					Options: queue.JobOptions{RunAt: tomorrow, SkipValidation: true},
				}
			}
			_, err := queue.EnqueueJobs(ctx, d.pool, some)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("enqueue jobs that are due tomorrow: %w", err)
	}
	return nil
}

func (b *bench) trickleOfDocuments(ctx context.Context, s organizationsSizes, samples int) (delays []float64,
	missing int, err error,
) {
	n := latencyWarmUp + samples
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		orgs := map[string]bool{}
		for i := range n {
			orgs[trickleOrg(i, s.laterOrgs)] = true
		}
		if err := setUpMany(ctx, d.pool, keys(orgs), smallConfiguration); err != nil {
			return err
		}
		// Nothing reads these: they are never due while the clock runs.
		const later = `
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, ready_at)
SELECT 'later-' || i % $2::int, 'later-' || i, 1, now() + interval '1 day' FROM generate_series(0, $1::int - 1) i`
		if _, err := d.pool.Exec(ctx, later, s.later, s.laterOrgs); err != nil {
			return fmt.Errorf("enqueue documents that are due tomorrow: %w", err)
		}
		if err := d.quiesce(ctx); err != nil {
			return err
		}
		return b.withWorkflow(ctx, d, settings{}, func(ctx context.Context, _ *worker) error {
			pause(ctx, jobsRest)
			committed, err := d.trickle(ctx, tricklePause, n, func(tx pgx.Tx, i int) error {
				org, id := trickleOrg(i, s.laterOrgs), fmt.Sprintf("sample-%d", i)
				if _, err := ledgerdb.PutDocument(ctx, tx, invoice(org, id)); err != nil {
					return err
				}
				_, err := queue.MarkDocumentReady(ctx, tx, queue.Document{OrgID: org, ID: id})
				return err
			})
			if err != nil {
				return err
			}
			delays, missing, err = d.startedWithin(ctx, committed, tricklePatience)
			return err
		})
	})
	return delays, missing, err
}

// startedWithin is beginnings.within for documents sample-0, sample-1, …, whose work begins when
// the database leases their job.
func (d *database) startedWithin(ctx context.Context, committed []time.Time, patience time.Duration) (delays []float64,
	missing int, err error,
) {
	waiting, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for waiting.Err() == nil {
		n, err := drawn(ctx, d.pool)
		if err == nil && n >= int64(len(committed)) {
			// The last of them may not be committed yet.
			n, err = one[int64](ctx, d.pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed'`)
		}
		if err != nil {
			return nil, 0, err
		}
		if n >= int64(len(committed)) {
			break
		}
		pause(waiting, 20*time.Millisecond)
	}
	began := newBeginnings(len(committed))
	rows, err := d.pool.Query(ctx, `
SELECT substr(document_id, 8)::int, min(started_at) FROM daybook.attempts WHERE outcome = 'completed' AND document_id LIKE 'sample-%' GROUP BY 1`)
	if err != nil {
		return nil, 0, err
	}
	var number int
	var at time.Time
	if _, err := pgx.ForEachRow(rows, []any{&number, &at}, func() error {
		began.at[number].Store(int64(at.Sub(began.epoch)))
		return nil
	}); err != nil {
		return nil, 0, fmt.Errorf("read when the work on each document began: %w", err)
	}
	return began.within(ctx, committed, latencyWarmUp, 0)
}
