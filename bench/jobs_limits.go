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
		order: 43, name: "limits", topic: topicJobs, takes: "5 minutes",
		about: "Draining jobs whose type has a limit by key, at most two of a key at a time, beside as many without " +
			"one, in turns. All are there when the worker starts, and the handler does nothing.",
		run: runJobsLimits,
	})
}

// limitedSet is a number of jobs, with so many keys of their type's limit; zero keys: without one.
// crowd is how many more jobs there are before them, of one key, or where apart is set of a key each.
type limitedSet struct {
	jobs, keys, crowd int
	apart             bool
}

func runJobsLimits(ctx context.Context, b *bench) ([]report.Row, error) {
	n, runs := b.sized(100_000, 2_000), b.repeated(3)
	rate := func(s limitedSet) measurement {
		return func(ctx context.Context) (float64, error) { return b.limitedRate(ctx, s) }
	}
	rates, err := alternate(ctx, runs, rate(limitedSet{jobs: n}), rate(limitedSet{jobs: n, keys: n}),
		rate(limitedSet{jobs: n, keys: n / 10}), rate(limitedSet{jobs: n, crowd: n / 10}),
		rate(limitedSet{jobs: n, crowd: n, apart: true}))
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
		row("jobs without a key beside a key each", 4, 0.5, count+" jobs with keys are worked beside them."),
	}, nil
}

// limitedRate drains a set, and returns the jobs/s of those that are not of the crowd. It says how far
// apart the keys were when half of their jobs were done, as a share of what each has.
func (b *bench) limitedRate(ctx context.Context, s limitedSet) (rate float64, err error) {
	var seconds float64
	spread := "no keys"
	beside := func(ctx context.Context, d *database) (func(), error) {
		return func() {
			const took = `
SELECT coalesce(extract(epoch FROM max(j.finished_at) - min(j.completed_started_at)), 1)::float8
  FROM daybook.jobs j
 WHERE NOT coalesce(starts_with(j.limit_key, 'crowd'), false)`
			const shares = `
WITH half AS (
    SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY j.finished_at) AS at FROM daybook.jobs j WHERE j.limit_key IS NOT NULL
), keys AS (
    SELECT avg((j.finished_at <= h.at)::integer) AS share FROM daybook.jobs j CROSS JOIN half h WHERE j.limit_key IS NOT NULL GROUP BY j.org_id, j.limit_key
)
SELECT coalesce(round(min(k.share), 2) || ' to ' || round(max(k.share), 2), 'no keys') FROM keys k`
			if seconds, err = one[float64](ctx, d.pool, took); err == nil {
				spread, err = one[string](ctx, d.pool, shares)
			}
		}, nil
	}
	others := " in line beside them"
	if s.apart {
		others = " of a key each beside them"
	}
	name := report.Count(s.jobs) + " jobs, " + report.Count(s.keys) + " keys, " + report.Count(s.crowd) + others
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
	b.say("  %s: %s jobs/s; of the keys' jobs half done: %s", name, report.Figure(rate), spread)
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
			case number < s.crowd && s.apart:
				some[i].Options.LimitKey = fmt.Sprint("crowd-", number)
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
