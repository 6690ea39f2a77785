package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/queue"
)

func init() {
	register(scenario{
		order: 43, name: "limits", topic: topicJobs, takes: "4 minutes",
		about: "Draining jobs whose type has a limit by key, at most two of a key at a time, beside as many without " +
			"one, in turns. All are there when the worker starts, and the handler does nothing.",
		run: runJobsLimits,
	})
}

// limitedSet is a number of jobs, with so many keys of their type's limit; zero keys: without one.
// crowd is how many more jobs there are, all of one key.
type limitedSet struct{ jobs, keys, crowd int }

func runJobsLimits(ctx context.Context, b *bench) ([]report.Row, error) {
	n, runs := b.sized(100_000, 2_000), b.repeated(3)
	rate := func(s limitedSet) measurement {
		return func(ctx context.Context) (float64, error) { return b.limitedRate(ctx, s) }
	}
	rates, err := alternate(ctx, runs, rate(limitedSet{n, 0, 0}), rate(limitedSet{n, n, 0}),
		rate(limitedSet{n, n / 10, 0}), rate(limitedSet{n, 0, n / 10}))
	if err != nil {
		return nil, err
	}
	row := func(name string, of int, target float64, note string) report.Row {
		r := report.Row{Name: name, Daybook: median(rates[of]), Unit: "jobs/s", Runs: runs, Note: note}.
			Beside("without a limit", median(rates[0]))
		if target > 0 {
			r.Target = report.TimesPeer(target)
		}
		return r
	}
	count := report.Count(n)
	return []report.Row{
		row("a key each", 1, 0.5, count+" jobs."),
		row("ten jobs of a key", 2, 0, count+" jobs, of which eight of ten wait in line at first."),
		row("jobs without a key beside a line", 3, 0.9,
			report.Count(n/10)+" jobs of one key stand in line beside them."),
	}, nil
}

// limitedRate drains a set, and returns the jobs/s of those that are not of the crowd.
func (b *bench) limitedRate(ctx context.Context, s limitedSet) (rate float64, err error) {
	var seconds float64
	beside := func(ctx context.Context, d *database) (func(), error) {
		return func() {
			const took = `
SELECT coalesce(extract(epoch FROM max(j.finished_at) - min(j.completed_started_at)), 1)::float8
  FROM daybook.jobs j
 WHERE j.limit_key IS DISTINCT FROM 'crowd'`
			seconds, err = one[float64](ctx, d.pool, took)
		}, nil
	}
	name := fmt.Sprintf("%s jobs, %s keys, %s in line beside them", report.Count(s.jobs), report.Count(s.keys),
		report.Count(s.crowd))
	_, failed := b.drainFilled(ctx, name, s.jobs+s.crowd, 0, func(ctx context.Context, d *database) error {
		if s.keys+s.crowd > 0 {
			const limit = `SELECT daybook.set_job_limit($1, parallel => 2)`
			if _, err := d.pool.Exec(ctx, limit, noopJob{}.JobType()); err != nil {
				return fmt.Errorf("limit the type: %w", err)
			}
		}
		return fillLimited(ctx, d, s)
	}, beside)
	if err = errors.Join(failed, err); err != nil {
		return 0, err
	}
	rate = float64(s.jobs) / seconds
	b.say("  %s: %s jobs/s", name, report.Figure(rate))
	return rate, nil
}

// fillLimited enqueues the jobs of a set, the keys in turn, behind the crowd.
func fillLimited(ctx context.Context, d *database, s limitedSet) error {
	orgs := organizations()
	for begin := 0; begin < s.jobs+s.crowd; begin += fillBatch {
		some := make([]queue.NewJob, min(fillBatch, s.jobs+s.crowd-begin))
		for i := range some {
			number := begin + i
			some[i] = queue.NewJob{OrgID: orgs[number%len(orgs)], Payload: noopJob{newBenchJob(number)}}
			switch key := number % max(s.keys, 1); {
			case number < s.crowd:
				some[i].OrgID, some[i].Options.LimitKey = orgs[0], "crowd"
			case s.keys > 0:
				some[i].OrgID, some[i].Options.LimitKey = orgs[key%len(orgs)], fmt.Sprint("account-", key)
			}
		}
		if _, err := queue.EnqueueJobs(ctx, d.pool, some); err != nil {
			return fmt.Errorf("enqueue jobs with a limit: %w", err)
		}
	}
	return nil
}
