package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/queue"
)

func init() {
	register(scenario{
		order: 61, name: "jobs-debounce", topic: topicEnqueuing, takes: "2 minutes",
		about: "Enqueuing with a debounce key beside enqueuing without one, in turns: a new key for each job, and the " +
			"same 50 keys again and again, so that nearly each request replaces a payload and ten callers contend " +
			"for rows. No worker runs.",
		run: runJobsDebounce,
	})
}

// fewKeys is how many keys a caller of the second row shares with all others.
const fewKeys = 50

func runJobsDebounce(ctx context.Context, b *bench) ([]report.Row, error) {
	n, many, runs := b.sized(20_000, 500), b.sized(100_000, 5_000), b.repeated(5)
	rate := func(n int, hand shape, keys int) measurement {
		return func(ctx context.Context) (float64, error) { return b.debounceRate(ctx, n, hand, keys) }
	}
	rates, err := alternate(ctx, runs, rate(n, enqueueOne, 0), rate(n, enqueueOne, n), rate(n, enqueueOne, fewKeys),
		rate(many, enqueueAll, 0), rate(many, enqueueAll, many))
	if err != nil {
		return nil, err
	}
	row := func(name, unit string, debounced, plain int, note string) report.Row {
		return report.Row{
			Name: name, Daybook: median(rates[debounced]), Unit: unit, Runs: runs, Note: note,
		}.Beside("without a key", median(rates[plain]))
	}
	rows := []report.Row{
		row("a new key each, one a transaction", "transactions/s", 1, 0, report.Figure(float64(n))+" jobs."),
		row(fmt.Sprint(fewKeys, " keys, one a transaction"), "transactions/s", 2, 0, report.Figure(float64(n))+" requests."),
		row("a new key each, many a call", "rows/s", 4, 3, report.Figure(float64(many))+" jobs in calls of "+
			report.Figure(enqueueBatch)+", four callers."),
	}
	rows[0].Target = report.TimesPeer(0.8)
	return rows, nil
}

// debounceRate enqueues n jobs with so many keys; 0: without one.
func (b *bench) debounceRate(ctx context.Context, n int, hand shape, keys int) (rate float64, err error) {
	orgs := organizations()
	job := func(i int) (j queue.NewJob) {
		j.OrgID, j.Payload = orgs[i%len(orgs)], noopJob{newBenchJob(i)}
		if keys > 0 {
			j.OrgID = orgs[i%keys%len(orgs)]
			j.Options.Debounce = queue.Debounce{Key: fmt.Sprint("customer-", i%keys), Wait: time.Minute}
		}
		return j
	}
	call := func(ctx context.Context, tx pgx.Tx, first, n int) error {
		if n == 1 {
			j := job(first)
			_, err := queue.EnqueueJob(ctx, tx, j.OrgID, j.Payload, j.Options)
			return err
		}
		some := make([]queue.NewJob, n)
		for i := range some {
			some[i] = job(first + i)
		}
		_, err := queue.EnqueueJobs(ctx, tx, some)
		return err
	}
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		took, found, err := d.enqueue(ctx, n, hand, call, `SELECT count(*) FROM daybook.jobs WHERE state = 'pending'`)
		if want := min(n, keys); err == nil && keys > 0 && found != want || keys == 0 && found != n {
			return errors.Join(err, fmt.Errorf("%d jobs are there, not %d", found, want))
		}
		rate = perSecond(n, took)
		b.say("  %s requests, %s keys: %s a second", report.Figure(float64(n)), report.Figure(float64(keys)), report.Figure(rate))
		return err
	})
	return rate, err
}
