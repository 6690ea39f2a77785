package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// mixedJob takes a third of a second, slowJob three seconds.
type (
	mixedJob struct {
		Org      string `json:"org"`
		Priority int    `json:"priority"`
	}
	slowJob struct{ benchJob }
)

// JobType implements queue.Payload.
func (mixedJob) JobType() string { return "mixed" }

// JobType implements queue.Payload.
func (slowJob) JobType() string { return "slow" }

// The organizations of the mixed jobs; the jobs of the second come after all of the first.
const (
	mixedFirst  = "org-a"
	mixedSecond = "org-b"
)

// mixedPriorities are from high to low.
var mixedPriorities = []queue.Priority{queue.High, queue.Normal, queue.Low}

// slowPlan says how long the handlers take, and how long things are watched.
type slowPlan struct {
	mixed, slow, watched time.Duration
	// each is how many mixed jobs there are of each organization and priority.
	each    int
	samples int
}

// slowParts measure what slow handlers do to others.
func (b *bench) slowParts(s organizationsSizes) []organizationsPart {
	p := slowPlan{
		mixed: b.lasting(300*time.Millisecond, 50*time.Millisecond), slow: b.lasting(3*time.Second, 300*time.Millisecond),
		watched: b.lasting(12*time.Second, time.Second),
		each:    1_500, samples: b.sampled(10, 2),
	}
	return []organizationsPart{
		{
			name:    "slow handlers",
			measure: func(ctx context.Context) ([]float64, error) { return b.mixedShares(ctx, p) },
			rows: func(figures []float64) []report.Row {
				note := fmt.Sprintf("handlers take %s; in %s %s jobs began: of A %s, of B %s; high %s, normal %s, low %s.",
					p.mixed, p.watched, report.Count(int(figures[3])),
					report.Count(int(figures[4])), report.Count(int(figures[5])), report.Count(int(figures[6])),
					report.Count(int(figures[7])), report.Count(int(figures[8])))
				return []report.Row{
					{
						Name: "the second organization's share", Daybook: figures[0], Unit: "of all that began",
						Target: report.AtLeast(0.4), Note: note,
					},
					{
						Name: "high priority's share", Daybook: figures[1], Unit: "of all that began", Target: report.AtLeast(0.6),
						Note: note,
					},
					{
						Name: "low priority's share", Daybook: figures[2], Unit: "of all that began", Target: report.AtLeast(0.01),
						Note: note,
					},
				}
			},
		},
		{
			name:    "slow type",
			measure: func(ctx context.Context) ([]float64, error) { return b.behindSlowType(ctx, s.slow, p) },
			rows: func(figures []float64) []report.Row {
				return []report.Row{{
					Name: "a quick job's wait", Daybook: figures[0] / 1000, Unit: "s", Target: report.AtMost(1),
					Note: fmt.Sprintf("%s jobs that take %s before it; the slowest of %d, p50 %s s.%s", report.Count(s.slow),
						p.slow, p.samples,
						report.Figure(figures[1]/1000), missingNote(figures[2], p.samples)),
				}}
			},
		},
	}
}

// begun counts the mixed jobs whose handler has begun.
type begun struct {
	mu       sync.Mutex
	org      map[string]int
	priority map[int]int
	all      int
}

func (c *begun) add(j mixedJob) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.org[j.Org]++
	c.priority[j.Priority]++
	c.all++
}

// figures are the shares and the numbers that the rows tell.
func (c *begun) figures() []float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := float64(max(1, c.all))
	first, second := float64(c.org[mixedFirst]), float64(c.org[mixedSecond])
	high, normal, low := float64(c.priority[int(queue.High)]), float64(c.priority[int(queue.Normal)]),
		float64(c.priority[int(queue.Low)])
	return []float64{second / all, high / all, low / all, float64(c.all), first, second, high, normal, low}
}

// mixedShares lets slow jobs of two organizations and three priorities run for a while.
func (b *bench) mixedShares(ctx context.Context, p slowPlan) (figures []float64, err error) {
	counted := &begun{org: map[string]int{}, priority: map[int]int{}}
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{Owner: "bench"}, func(ctx context.Context, j *jobs.Job[mixedJob]) error {
		counted.add(j.Payload)
		return takes(ctx, p.mixed)
	})
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		for _, org := range []string{mixedFirst, mixedSecond} {
			var some []queue.NewJob
			for range p.each {
				for _, priority := range mixedPriorities {
					some = append(some, queue.NewJob{
						OrgID: org, Payload: mixedJob{org, int(priority)},
						Options: queue.JobOptions{Priority: priority, SkipValidation: true},
					})
				}
			}
			if _, err := queue.EnqueueJobs(ctx, d.pool, some); err != nil {
				return fmt.Errorf("enqueue slow jobs: %w", err)
			}
		}
		if err := d.quiesce(ctx); err != nil {
			return err
		}
		return b.withRegistry(ctx, d, registry, func(ctx context.Context, start func() error) error {
			if err := start(); err != nil {
				return err
			}
			pause(ctx, p.watched)
			figures = counted.figures()
			b.say("  slow handlers: of A %s, of B %s; high %s, normal %s, low %s", report.Count(int(figures[4])),
				report.Count(int(figures[5])), report.Count(int(figures[6])),
				report.Count(int(figures[7])), report.Count(int(figures[8])))
			return ctx.Err()
		})
	})
	return figures, err
}

// behindSlowType returns, in milliseconds, the longest and the median wait of quick jobs that come
// when n jobs of a slow type wait, and how many of them had not begun.
func (b *bench) behindSlowType(ctx context.Context, n int, p slowPlan) (figures []float64, err error) {
	const org = "org-01"
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		some := make([]queue.NewJob, n)
		for i := range some {
			some[i] = queue.NewJob{
				OrgID: org, Payload: slowJob{newBenchJob(i)},
				Options: queue.JobOptions{SkipValidation: true},
			}
		}
		if _, err := queue.EnqueueJobs(ctx, d.pool, some); err != nil {
			return fmt.Errorf("enqueue the slow jobs: %w", err)
		}
		if err := d.quiesce(ctx); err != nil {
			return err
		}
		began := newBeginnings(p.samples)
		registry := benchRegistry(began.mark)
		jobs.Register(registry, jobs.Policy{Owner: "bench"},
			func(ctx context.Context, _ *jobs.Job[slowJob]) error { return takes(ctx, p.slow) })
		return b.withRegistry(ctx, d, registry, func(ctx context.Context, start func() error) error {
			if err := start(); err != nil {
				return err
			}
			pause(ctx, 2*jobsRest)
			committed, err := d.trickle(ctx, b.lasting(500*time.Millisecond, 100*time.Millisecond), p.samples,
				func(tx pgx.Tx, i int) error {
					_, err := queue.EnqueueJob(ctx, tx, org, noopJob{newBenchJob(i)}, queue.JobOptions{})
					return err
				})
			if err != nil {
				return err
			}
			delays, missing, err := began.within(ctx, committed, 0, tricklePatience)
			if err != nil {
				return err
			}
			b.sayDelays("quick jobs behind a slow type", delays)
			figures = []float64{percentile(delays, 100), percentile(delays, 50), float64(missing)}
			return nil
		})
	})
	return figures, err
}

// takes lasts d, or until ctx ends.
func takes(ctx context.Context, d time.Duration) error {
	pause(ctx, d)
	return ctx.Err()
}
