package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/workflows"
)

// offeredEnough is the part of a load that must have been enqueued for its figures to be believed.
const offeredEnough = 0.98

// steadyPlan says how long jobs that do nothing come at a steady rate, and what goes on beside
// them.
type steadyPlan struct {
	rate, perTx int
	// warmUp comes first and does not count; then the jobs of held count. part is the length of its
	// first and of its last part, which are looked at by themselves.
	warmUp, held, part time.Duration
	// backlog is how many jobs are completed before.
	backlog int
	// beside goes on while held, until ctx ends; nil: nothing does.
	beside func(ctx context.Context, d *database) error
}

// steadyWindow is what was measured in a part of the time.
type steadyWindow struct {
	// rate is jobs completed a second, offered jobs enqueued a second.
	rate, offered float64
	// postgres and worker are the processor time that they used, in seconds a second.
	postgres, worker float64
	// begun and completed are milliseconds from before a job's commit until its handler began, and
	// until the transaction that completed it was committed; of the jobs that were enqueued in this
	// time.
	begun, completed []float64
}

// perJob is PostgreSQL's processor time a completed job, in milliseconds.
func (w steadyWindow) perJob() float64 {
	if w.rate == 0 {
		return 0
	}
	return 1000 * w.postgres / w.rate
}

// core is the processor time of PostgreSQL and the worker, in percent of a core.
func (w steadyWindow) core() float64 { return 100 * (w.postgres + w.worker) }

// steadyFigures are what was measured in all the time that counts, and in its first and last part.
type steadyFigures struct {
	first, last, all steadyWindow
	// planned is how many jobs a second were to be enqueued.
	planned int
}

// behind: the machine could not even enqueue what was planned, so that the figures are no
// measurement.
func (f steadyFigures) behind() bool { return f.all.offered < offeredEnough*float64(f.planned) }

func (f steadyFigures) String() string {
	p := func(delays []float64) string {
		return report.Figure(percentile(delays, 50)) + " / " + report.Figure(percentile(delays, 99))
	}
	text := ""
	if f.behind() {
		text = fmt.Sprintf("NO MEASUREMENT, because the machine did other work: only %s of %d jobs/s were enqueued; ",
			report.Figure(f.all.offered), f.planned)
	}
	return text + fmt.Sprintf("%s of %s jobs/s, commit to completion p50 / p99 %s ms (first part %s, last %s; slowest "+
		"%s), to beginning %s ms; PostgreSQL %s %% of a core (%s ms a job; first part %s, last %s), worker %s %%",
		report.Figure(f.all.rate), report.Figure(f.all.offered), p(f.all.completed), p(f.first.completed),
		p(f.last.completed), report.Figure(percentile(f.all.completed, 100)), p(f.all.begun),
		report.Figure(100*f.all.postgres), report.Figure(f.all.perJob()), report.Figure(f.first.perJob()),
		report.Figure(f.last.perJob()), report.Figure(100*f.all.worker))
}

// steadyMark is a moment, the processor time that was used until then, and how many jobs were
// enqueued.
type steadyMark struct {
	at               time.Time
	postgres, worker float64
	enqueued         int
}

// steadyRun is one queue under steady load.
type steadyRun struct {
	b       *bench
	d       *database
	q       loadedQueue
	plan    steadyPlan
	journal *journal
	load    *load
	worker  *queueProcess
	// postmaster is the process that PostgreSQL's others are children of.
	postmaster int
	// marks are the beginning and the end of the first part, and of the last.
	marks [4]steadyMark
	end   time.Time
}

// steady puts a queue under steady load, on a database of its own, with one worker process.
func (b *bench) steady(ctx context.Context, q loadedQueue, p steadyPlan) (figures steadyFigures, err error) {
	err = b.withDatabase(ctx, q.template, func(d *database) error {
		r := &steadyRun{b: b, d: d, q: q, plan: p, journal: newJournal()}
		if r.postmaster, err = b.postmaster(ctx); err != nil {
			return err
		}
		if err := r.run(ctx); err != nil {
			return err
		}
		figures, err = r.figures(ctx)
		return err
	})
	if err != nil {
		return figures, fmt.Errorf("%s: %w", q.name, err)
	}
	b.say("  %s: %s", q.name, figures)
	return figures, nil
}

// postmaster is the process id of PostgreSQL's first process: the parent of the one that answers.
func (b *bench) postmaster(ctx context.Context) (int, error) {
	pid, err := one[int](ctx, b.admin, `SELECT pg_backend_pid()`)
	if err != nil {
		return 0, err
	}
	t, err := readProcessorTime(pid)
	return t.parent, err
}

// run starts the worker, loads the queue, and ends the worker when everything is done.
func (r *steadyRun) run(ctx context.Context) (err error) {
	pool, err := openPool(ctx, r.d.url, loadCallers)
	if err != nil {
		return fmt.Errorf("open the pool that enqueues: %w", err)
	}
	defer pool.Close()
	r.load = &load{pool: pool, committed: map[int]time.Time{}, punctual: true}
	if r.load.enqueue, err = r.q.enqueue(ctx, pool); err != nil {
		return err
	}
	if err := r.d.quiesce(ctx); err != nil {
		return err
	}
	if r.worker, err = r.q.start(ctx, r.b, r.d.url, processConfig{Idle: true, Record: true}, r.journal); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, r.worker.stop())
		<-r.worker.read
	}()
	if err := r.b.awaitProcess(ctx, r.q, r.worker); err != nil {
		return err
	}
	var run client.WorkflowRun
	if r.q.own() {
		if run, err = r.b.startWorkflow(ctx, workflows.JobsWorkflow, workflows.JobsTaskQueue, settings{}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.b.endWorkflow(ctx, run)) }()
	}
	pause(ctx, jobsRest)
	if err := r.completeBacklog(ctx, pool); err != nil {
		return err
	}
	group, loading := errgroup.WithContext(ctx)
	group.Go(func() error {
		return r.load.run(loading, r.plan.rate, r.plan.perTx, r.plan.warmUp+r.plan.held+r.plan.tail())
	})
	group.Go(func() error { return r.watch(loading) })
	if err := group.Wait(); err != nil {
		return err
	}
	err = awaitOpen(ctx, r.d, r.q)
	r.end = time.Now()
	return err
}

// tail is how long the load goes on after the time that counts, so that its last jobs are worked
// under load like the others.
func (p steadyPlan) tail() time.Duration { return p.warmUp / 4 }

// completeBacklog enqueues jobs and waits until they are done, as a queue has done some when it is
// looked at.
func (r *steadyRun) completeBacklog(ctx context.Context, pool *pgxpool.Pool) error {
	for begin := 0; begin < r.plan.backlog; begin += fillBatch {
		some := make([]faultJob, min(fillBatch, r.plan.backlog-begin))
		for i := range some {
			some[i].Number = longJobs + begin + i
		}
		if err := inTx(ctx, pool, func(tx pgx.Tx) error { return r.load.enqueue(ctx, tx, some) }); err != nil {
			return fmt.Errorf("enqueue jobs to be completed before: %w", err)
		}
	}
	if r.plan.backlog == 0 {
		return nil
	}
	if err := awaitOpen(ctx, r.d, r.q); err != nil {
		return err
	}
	_, err := r.d.pool.Exec(ctx, `VACUUM (ANALYZE)`)
	return err
}

// watch sets the marks, and has going on beside the load what the plan says.
func (r *steadyRun) watch(ctx context.Context) error {
	pause(ctx, r.plan.warmUp)
	beside, over := context.WithCancel(ctx)
	defer over()
	group, besides := errgroup.WithContext(beside)
	if r.plan.beside != nil {
		group.Go(func() error {
			err := r.plan.beside(besides, r.d)
			if besides.Err() != nil && ctx.Err() == nil {
				return nil // the end of the time ended it
			}
			return err
		})
	}
	for i, d := range []time.Duration{0, r.plan.part, r.plan.held - 2*r.plan.part, r.plan.part} {
		pause(besides, d)
		if err := besides.Err(); err != nil {
			return errors.Join(group.Wait(), ctx.Err())
		}
		if err := r.mark(ctx, i); err != nil {
			return err
		}
	}
	over()
	return group.Wait()
}

// mark notes the moment and the processor time. The first and the last part have statements of
// their own.
func (r *steadyRun) mark(ctx context.Context, i int) (err error) {
	m := &r.marks[i]
	m.at, m.enqueued = time.Now(), r.load.count()
	if m.postgres, err = familyTime(r.postmaster); err != nil {
		return fmt.Errorf("read PostgreSQL's processor time: %w", err)
	}
	if m.worker, err = familyTime(r.worker.PID); err != nil {
		return fmt.Errorf("read the worker's processor time: %w", err)
	}
	if i%2 == 0 {
		return r.d.resetStatements(ctx)
	}
	return r.d.sayStatements(ctx, []string{"first part", "last part"}[i/2], m.enqueued-r.marks[i-1].enqueued)
}

// awaitOpen returns when all jobs are finished, or when the queue's patience has ended.
func awaitOpen(ctx context.Context, d *database, q loadedQueue) error {
	waiting, stop := context.WithTimeout(ctx, q.patience)
	defer stop()
	for waiting.Err() == nil {
		n, err := one[int](ctx, d.pool, q.open)
		if err != nil {
			return fmt.Errorf("count what is open: %w", err)
		}
		if n == 0 {
			return nil
		}
		pause(waiting, 200*time.Millisecond)
	}
	return ctx.Err()
}
