package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/workflows"
)

// startJobs is how many jobs wait for a process that starts.
const startJobs = 100

func init() {
	register(scenario{
		order: 41, name: "start", topic: topicJobs, takes: "6 minutes",
		about: "10,000 jobs that do nothing wait, as in `jobs`: how many a second are done, the start included, and " +
			"how long it takes from the start of the workflow, or of the peer's client, until the first one " +
			"begins. *A process*: from its start until the first of 100 jobs that wait begins; the workflow " +
			"runs already.",
		run: runStart,
	})
}

func runStart(ctx context.Context, b *bench) ([]report.Row, error) {
	n, runs := b.sized(10_000, 1_000), b.repeated(3)
	sides, err := b.noopSides(ctx, n, n)
	if err != nil {
		return nil, err
	}
	if b.smoke {
		sides = sides[:1] // a short run of jobs has the peers work the same
	}
	rates, firsts, err := contest(ctx, runs, sides)
	if err != nil {
		return nil, err
	}
	for i := range firsts {
		firsts[i] *= 1000
	}
	rows := beside(report.Row{Name: "jobs that do nothing, the start included", Unit: "jobs/s", Runs: runs}, sides, rates,
		map[string]report.Target{riverName: report.TimesPeer(1.5), pgbossName: report.TimesPeer(1.5)})
	rows = append(rows, beside(report.Row{Name: "until the first begins", Unit: "ms", Runs: runs}, sides, firsts, nil)...)
	processes, err := b.processRows(ctx, runs)
	return append(rows, processes...), err
}

// processRows say how long it takes from the start of a process until its first job begins.
func (b *bench) processRows(ctx context.Context, runs int) ([]report.Row, error) {
	const patience = time.Minute
	queues := []loadedQueue{daybookLoaded(patience)}
	if !b.alone {
		queues = append(queues, riverLoaded(riverName, riverTuned, patience), dbosLoaded(dbosQuick, patience))
		if node, _ := b.useNode(ctx); node != nil {
			queues = append(queues, pgbossLoaded(node, pgbossSettings{concurrency: 10, batch: 10}, patience))
		}
	}
	var sides []side
	var measurements []measurement
	for _, q := range queues {
		sides = append(sides, side{name: q.name, settings: q.settings(), n: startJobs})
		measurements = append(measurements, func(ctx context.Context) (float64, error) { return b.processStart(ctx, q) })
	}
	taken, err := alternate(ctx, runs, measurements...)
	if err != nil {
		return nil, err
	}
	figures := make([]float64, len(taken))
	for i := range taken {
		figures[i] = median(taken[i])
	}
	return beside(report.Row{Name: "a process, until the first begins", Unit: "ms", Runs: runs}, sides, figures, nil), nil
}

// processStart is how many milliseconds a process takes from its start until the first job that
// waits begins.
func (b *bench) processStart(ctx context.Context, q loadedQueue) (took float64, err error) {
	err = b.withDatabase(ctx, q.template, func(d *database) (err error) {
		enqueue, err := q.enqueue(ctx, d.pool)
		if err != nil {
			return err
		}
		l := &load{pool: d.pool, enqueue: enqueue, committed: map[int]time.Time{}}
		l.add(ctx, numberedJobs(startJobs))
		if _, _, err := l.result(); err != nil {
			return err
		}
		var run client.WorkflowRun
		if q.own() {
			if run, err = b.startWorkflow(ctx, workflows.JobsWorkflow, workflows.JobsTaskQueue, settings{}); err != nil {
				return err
			}
		}
		j, began := newJournal(), time.Now()
		w, err := q.start(ctx, b, d.url, processConfig{Idle: true}, j)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.stop()) }()
		if run != nil {
			defer func() { err = errors.Join(err, b.endWorkflow(ctx, run)) }()
		}
		if err := awaitOpen(ctx, d, q); err != nil {
			return err
		}
		took = milliseconds(j.first().Sub(began))
		return begunOnce(j, startJobs)
	})
	if err != nil {
		return 0, fmt.Errorf("start of a process of %s: %w", q.name, err)
	}
	b.say("  a process of %s: first job after %s ms", q.name, report.Figure(took))
	return took, nil
}

// numberedJobs are n jobs.
func numberedJobs(n int) []faultJob {
	jobs := make([]faultJob, n)
	for i := range jobs {
		jobs[i].Number = i
	}
	return jobs
}

// begunOnce fails unless each of n jobs began once.
func begunOnce(j *journal, n int) error {
	begun, err := j.all()
	if err != nil {
		return err
	}
	for i := range n {
		if len(begun[i]) != 1 {
			return fmt.Errorf("job %d began %d times", i, len(begun[i]))
		}
	}
	return nil
}
