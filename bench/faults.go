package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/models"
)

const (
	// faultRate is how many jobs a second are enqueued, each alone; steadyRate is the same without
	// faults, ten a transaction.
	faultRate  = 600
	steadyRate = 2_500
	// longJobsCount long jobs are in hand when a worker is killed; each takes longTakes.
	longJobsCount = 10
	longTakes     = 12 * time.Second
)

// riverTuned is River's client with what helps it here: it looks at once, and takes jobs from dead
// workers as soon as its documentation allows with jobs of that length.
var riverTuned = riverSettings{
	maxWorkers: 100, pool: 16, fetchCooldown: time.Millisecond,
	rescueAfter: 15 * time.Second,
}

func init() {
	register(scenario{
		order: 190, name: "faults", topic: topicFaults, takes: "13 minutes",
		about: "Two worker processes and 600 jobs a second, whether or not the ones before them are done. A " +
			"handler takes 10 ms and writes a row in a transaction of its own, so that what was lost or done " +
			"twice is counted. The clock runs from just before COMMIT until the handler begins. *One worker " +
			"killed*: not replaced, with ten jobs of 12 s in hand; *recovery* is until the last of what it " +
			"held begins again. *Killed every 15 s*: in turn, each replaced. *Two backends terminated a " +
			"second*: at random. *PostgreSQL away for 15 s*: behind a proxy. *Synchronous standby away for " +
			"15 s*: each commit waits. *Workflow paused, cancelled, started again*: three seconds, and one. " +
			"*2,500 jobs a second*: handlers that do nothing. *Charged* are jobs with a second attempt, " +
			"although no handler fails. *Shared transactions*: a handler's three rows are written by a function " +
			"given to InTx; done twice and partly done count alike. River's tuned client has a FetchCooldown of 1 ms, and a JobTimeout " +
			"and RescueStuckJobsAfter of 15 s.",
		run: runFaults,
	})
}

// faultPhase is one kind of trouble.
type faultPhase struct {
	name        string
	rate, perTx int
	lasting     time.Duration
	// strike makes the trouble while the queue is loaded, and returns when it is over.
	strike func(ctx context.Context, r *faultRun) error
	// proxied: PostgreSQL is reached through a proxy. idle: the handlers do nothing. alone: it is
	// Daybook's only.
	proxied, idle, alone bool
	// shared: handlers write three rows in transactions that jobs share. andShared: the phase has such
	// a variant.
	shared, andShared bool
	// killed: a worker is killed, and its jobs are rightly counted an attempt.
	killed bool
	// slowest: of several runs the slowest counts, where it is one of the scenario reclaim.
	slowest bool
	rows    []faultRow
}

// faultRow is a figure of a phase that has a row of its own.
type faultRow struct {
	figure int
	name   string
	unit   string
	// scale is what the figure is multiplied by to be in unit.
	scale  float64
	target report.Target
}

func slowest(target report.Target) faultRow {
	return faultRow{figureSlowest, "slowest", "s", 1, target}
}

func p99(target report.Target) faultRow { return faultRow{figureP99, "p99", "ms", 1000, target} }

// faultPhases are all of them, those of shared transactions behind the others.
func (b *bench) faultPhases() []faultPhase {
	all := b.usualPhases()
	if b.smoke { // make chaos, which runs beside it, breaks all the rest
		all = slices.DeleteFunc(all, func(p faultPhase) bool { return !p.killed })
	}
	for _, p := range all {
		if !p.andShared {
			continue
		}
		p.name, p.shared, p.alone = p.name+", shared transactions", true, true
		p.rows = []faultRow{
			{figureTwice, "done twice", "jobs", 1, report.AtMost(0)},
			{figureChargedOthers, "charged, not a killed worker's", "jobs", 1, report.AtMost(0)},
		}
		all = append(all, p)
	}
	return all
}

// usualPhases are those in which handlers write by connections of their own.
func (b *bench) usualPhases() []faultPhase {
	rate, steady := b.sized(faultRate, 100), chooseNumber(0, steadyRate, 200, b.smoke)
	long := func(full time.Duration) time.Duration { return b.lasting(full, 2*time.Second) }
	calm := func(full time.Duration) time.Duration { return b.lasting(full, time.Second) }
	none := func(context.Context, *faultRun) error { return nil }
	recovery := func(figure int, name string) faultRow { return faultRow{figure, name, "s", 1, report.AtMost(15)} }
	return []faultPhase{
		{
			name: "no fault", rate: rate, perTx: 1, lasting: calm(8 * time.Second), strike: none,
			rows: []faultRow{p99(report.AtMost(50)), slowest(report.AtMost(0.5))},
		},
		{
			name: "one worker killed", rate: rate, perTx: 1, lasting: long(18 * time.Second), strike: b.killOne, killed: true,
			rows: []faultRow{
				slowest(report.AtMost(2)),
				{figureOverOne, "waited over a second", "jobs", 1, report.Target{}},
				recovery(figureRecovery, "recovery of what it held"),
				recovery(figureLongRecovery, "recovery of its long jobs"),
			},
		},
		{
			name: "killed every 15 s", rate: rate, perTx: 1, lasting: long(24 * time.Second), strike: b.killOften,
			killed: true, andShared: true,
			rows: []faultRow{slowest(report.AtMost(2)), recovery(figureRecovery, "recovery of what they held")},
		},
		{
			name: "two backends terminated a second", rate: rate, perTx: 1, lasting: long(10 * time.Second),
			strike: b.terminateBackends, andShared: true,
			rows: []faultRow{
				slowest(report.AtMost(0.5)),
				{figureOverOne, "waited over a second", "jobs", 1, report.AtMost(0)},
			},
		},
		{
			name: "PostgreSQL away for 15 s", rate: rate, perTx: 1, lasting: b.lasting(25*time.Second, 4*time.Second),
			strike: b.cutOff, proxied: true, andShared: true,
			rows: []faultRow{slowest(report.Target{})},
		},
		{
			name: "synchronous standby away for 15 s", rate: rate, perTx: 1,
			lasting: b.lasting(25*time.Second, 4*time.Second), strike: b.loseStandby,
			rows: []faultRow{slowest(report.Target{})},
		},
		{
			name: "workflow paused, cancelled, started again", rate: rate, perTx: 1,
			lasting: b.lasting(14*time.Second, 6*time.Second), strike: b.interruptWorkflow, alone: true,
			rows: []faultRow{slowest(report.Target{})},
		},
		{
			name: "2,500 jobs a second", rate: steady, perTx: 10, lasting: calm(10 * time.Second), strike: none, idle: true,
			rows: []faultRow{p99(report.AtMost(50)), slowest(report.AtMost(0.5))},
		},
	}
}

// killOne puts long jobs into hand and kills one of the two workers.
func (b *bench) killOne(ctx context.Context, r *faultRun) error {
	takes := longTakes
	if b.smoke {
		takes = time.Second
	}
	var jobs []faultJob
	for i := range longJobsCount {
		jobs = append(jobs, faultJob{Number: longJobs + i, Takes: int(takes.Milliseconds())})
	}
	for _, j := range jobs {
		r.load.add(ctx, []faultJob{j})
	}
	// By then a turn has ended since they began.
	pause(ctx, b.lasting(8*time.Second, time.Second/2))
	return r.kill(ctx, r.workers[0])
}

// killOften kills a worker every 15 seconds and starts another one.
func (b *bench) killOften(ctx context.Context, r *faultRun) error {
	pause(ctx, b.lasting(3*time.Second, time.Second/2))
	for i := range 2 {
		if i > 0 {
			pause(ctx, b.lasting(15*time.Second, time.Second/2))
		}
		if err := r.kill(ctx, r.workers[i]); err != nil {
			return err
		}
		if err := r.startWorker(ctx); err != nil {
			return err
		}
	}
	return nil
}

// terminateBackends ends connections of the workers for as long as the load lasts.
func (b *bench) terminateBackends(ctx context.Context, r *faultRun) error {
	const terminate = `
SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE datname = $1 AND application_name = $2 ORDER BY random() LIMIT 2) chosen`
	began, terminated := time.Now(), 0
	for pause(ctx, time.Second); time.Since(began) < r.phase.lasting && ctx.Err() == nil; pause(ctx, time.Second) {
		n, err := one[int](ctx, b.admin, terminate, r.d.name, workersName)
		if err != nil {
			return fmt.Errorf("terminate backends: %w", err)
		}
		terminated += n
	}
	if terminated == 0 {
		return fmt.Errorf("no connection of the workers was found to terminate")
	}
	return ctx.Err()
}

// cutOff cuts everyone off from PostgreSQL for a while.
func (b *bench) cutOff(ctx context.Context, r *faultRun) error {
	cut := func(context.Context) error {
		if err := r.proxy.Cut(); err != nil {
			return fmt.Errorf("cut the connections: %w", err)
		}
		return nil
	}
	return b.outage(ctx, r, cut, r.proxy.Open)
}

// loseStandby has each commit wait for a while, as it does when the standby that is to confirm it
// is gone.
func (b *bench) loseStandby(ctx context.Context, r *faultRun) error {
	require := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			for _, stmt := range []string{
				`ALTER SYSTEM SET synchronous_standby_names = '` + name + `'`,
				`SELECT pg_reload_conf()`,
			} {
				if _, err := b.admin.Exec(ctx, stmt); err != nil {
					return fmt.Errorf("change which standby confirms commits: %w", err)
				}
			}
			return nil
		}
	}
	return b.outage(ctx, r, require("absent"), require(""))
}

// outage is a time in which nothing can be done, which ends also when ctx has.
func (b *bench) outage(ctx context.Context, r *faultRun, begin, end func(context.Context) error) error {
	pause(ctx, b.lasting(4*time.Second, time.Second))
	from := time.Now()
	if err := begin(ctx); err != nil {
		return err
	}
	pause(ctx, b.lasting(15*time.Second, time.Second))
	if err := end(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	r.without(from, time.Now())
	return ctx.Err()
}

// interruptWorkflow pauses and resumes the workflow, then cancels it and starts it again.
func (b *bench) interruptWorkflow(ctx context.Context, r *faultRun) error {
	length := b.lasting(3*time.Second, time.Second)
	pause(ctx, length)
	from := time.Now()
	if err := b.temporal.SignalWorkflow(ctx, r.workflow.GetID(), "", models.SignalPause, nil); err != nil {
		return fmt.Errorf("pause the workflow: %w", err)
	}
	pause(ctx, length)
	if err := b.temporal.SignalWorkflow(ctx, r.workflow.GetID(), "", models.SignalResume, nil); err != nil {
		return fmt.Errorf("resume the workflow: %w", err)
	}
	r.without(from, time.Now())
	pause(ctx, length)
	from = time.Now()
	if err := b.endWorkflow(ctx, r.workflow); err != nil {
		return err
	}
	pause(ctx, time.Second)
	if err := r.startWorkflow(ctx); err != nil {
		return err
	}
	r.without(from, time.Now())
	return ctx.Err()
}
