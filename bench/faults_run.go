package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workflows"
)

// createEffects makes the table of what the handlers have done: one row a call.
const createEffects = `CREATE TABLE effects (job bigint, invocation bigint, PRIMARY KEY (job, invocation))`

// faultQueue is a queue under fault: Daybook, or River with some settings.
type faultQueue struct {
	name, template string
	// river are River's settings; nil: it is Daybook.
	river *riverSettings
	// patience is how long after the load the queue may take to be empty.
	patience time.Duration
	// open counts what is not finished, held lists the numbers of the jobs that a worker holds, found lists all jobs.
	open, held, found string
}

func daybookUnderFault(patience time.Duration) faultQueue {
	return faultQueue{
		name: "Daybook", template: daybookTemplate, patience: patience,
		open:  `SELECT count(*) FROM daybook.jobs WHERE state IN ('pending', 'leased')`,
		held:  `SELECT (payload->>'number')::bigint FROM daybook.jobs WHERE state = 'leased' AND worker = $1`,
		found: `SELECT (payload->>'number')::bigint, state NOT IN ('pending', 'leased'), run_count > 1 FROM daybook.jobs`,
	}
}

func riverUnderFault(name string, s riverSettings, patience time.Duration) faultQueue {
	return faultQueue{
		name: name, template: riverTemplate, river: &s, patience: patience,
		open:  `SELECT count(*) FROM river_job WHERE finalized_at IS NULL`,
		held:  `SELECT (args->>'number')::bigint FROM river_job WHERE state = 'running' AND attempted_by[array_upper(attempted_by, 1)] = $1`,
		found: `SELECT (args->>'number')::bigint, finalized_at IS NOT NULL, attempt > 1 FROM river_job`,
	}
}

// faultRun is one phase with one queue while it runs.
type faultRun struct {
	b     *bench
	d     *database
	q     faultQueue
	phase faultPhase
	// url is the database's address for the workers and for the programs that enqueue: it may lead through the proxy.
	url      string
	proxy    *proxy
	journal  *journal
	load     *load
	workflow client.WorkflowRun

	mu      sync.Mutex
	workers []*faultProcess
	windows []window
	held    map[int]time.Time
}

// faultProcess is a worker process, and whether all that it told is read.
type faultProcess struct {
	*worker
	ready, read chan struct{}
}

// underFault runs one phase with one queue on a database of its own and returns its figures.
func (b *bench) underFault(ctx context.Context, q faultQueue, p faultPhase) (figures []float64, err error) {
	err = b.withDatabase(ctx, q.template, func(d *database) error {
		if _, err := d.pool.Exec(ctx, createEffects); err != nil {
			return fmt.Errorf("create the table of effects: %w", err)
		}
		r := &faultRun{b: b, d: d, q: q, phase: p, url: d.url, journal: newJournal(), held: map[int]time.Time{}}
		if p.proxied {
			if err := r.throughProxy(ctx); err != nil {
				return err
			}
			defer func() { _ = r.proxy.cut() }() // nothing is left to be heard of it
		}
		if figures, err = r.run(ctx); err != nil {
			return errors.Join(err, r.stop(ctx))
		}
		return r.stop(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", p.name, q.name, err)
	}
	b.say("  %s, %s: %s", p.name, q.name, faultLine(figures))
	return figures, nil
}

func (r *faultRun) throughProxy(ctx context.Context) error {
	host, err := hostOf(r.d.url)
	if err != nil {
		return err
	}
	if r.proxy, err = newProxy(ctx, host); err != nil {
		return err
	}
	r.url, err = r.proxy.through(r.d.url)
	return err
}

// run starts two workers, loads the queue, strikes, and waits until the queue is empty or its patience has ended.
func (r *faultRun) run(ctx context.Context) ([]float64, error) {
	pool, err := openPool(ctx, r.url, loadCallers)
	if err != nil {
		return nil, fmt.Errorf("open the pool that enqueues: %w", err)
	}
	defer pool.Close()
	r.load = &load{pool: pool, committed: map[int]time.Time{}}
	if r.load.enqueue, err = r.q.enqueue(r); err != nil {
		return nil, err
	}
	for range 2 {
		if err := r.startWorker(ctx); err != nil {
			return nil, err
		}
	}
	for _, w := range r.workers {
		if err := r.awaitWorker(ctx, w); err != nil {
			return nil, err
		}
	}
	if err := r.startWorkflow(ctx); err != nil {
		return nil, err
	}
	pause(ctx, jobsSettling)
	striking := make(chan error, 1)
	go func() { striking <- r.phase.strike(ctx, r) }()
	err = r.load.run(ctx, r.phase.rate, r.phase.perTx, r.phase.lasting)
	if err = errors.Join(err, <-striking); err != nil {
		return nil, err
	}
	if err := r.awaitEmpty(ctx); err != nil {
		return nil, err
	}
	return r.figures(ctx)
}

// startWorkflow starts Daybook's workflow; River has none.
func (r *faultRun) startWorkflow(ctx context.Context) (err error) {
	if r.q.river == nil {
		r.workflow, err = r.b.startWorkflow(ctx, workflows.JobsWorkflow, workflows.JobsTaskQueue, settings{})
	}
	return err
}

// stop ends the workflow and the workers.
func (r *faultRun) stop(ctx context.Context) error {
	var errs []error
	if r.workflow != nil {
		errs = append(errs, r.b.endWorkflow(ctx, r.workflow))
	}
	for _, w := range r.workers {
		errs = append(errs, w.stop())
	}
	return errors.Join(errs...)
}

// startWorker starts a process of this program that works the queue, and does not wait until it does.
func (r *faultRun) startWorker(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	name := r.b.unique()
	w := &faultProcess{worker: &worker{name: name, log: filepath.Join(r.b.dir, name+".log"), done: make(chan struct{})}, ready: make(chan struct{}), read: make(chan struct{})}
	config := faultWorkerConfig{Name: name, DatabaseURL: r.url, TemporalAddress: r.b.stack.TemporalAddress, Idle: r.phase.idle}
	if s := r.q.river; s != nil {
		config.River, config.MaxWorkers, config.Pool, config.FetchCooldown, config.RescueAfter = true, s.maxWorkers, s.pool, s.fetchCooldown, s.rescueAfter
	}
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	lines, tells, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self)
	cmd.Env = append(workerEnvironment(r.url, r.b.stack.TemporalAddress), faultWorkerEnv+"="+string(text))
	cmd.Stdout = tells
	err = w.launch(cmd)
	_ = tells.Close() // it is the worker's now
	if err != nil {
		_ = lines.Close()
		return err
	}
	go func() {
		defer close(w.read)
		r.journal.follow(name, lines, func() { close(w.ready) })
		_ = lines.Close()
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers = append(r.workers, w)
	return nil
}

// awaitWorker returns when the worker asks for work.
func (r *faultRun) awaitWorker(ctx context.Context, w *faultProcess) error {
	ended := func() error {
		select {
		case <-w.done:
			return fmt.Errorf("the worker ended while it started: %w\n%s", w.err, w.tail())
		default:
			return nil
		}
	}
	if r.q.river == nil {
		return r.b.awaitPolls(ctx, workflows.JobsTaskQueue, w.name, ended)
	}
	ctx, cancel := context.WithTimeout(ctx, workerStart)
	defer cancel()
	select {
	case <-w.ready:
		return nil
	case <-w.done:
		return ended()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kill ends a worker as a crash does, and notes what it held.
func (r *faultRun) kill(ctx context.Context, w *faultProcess) error {
	process, err := os.FindProcess(w.pid)
	if err != nil {
		return err
	}
	at := time.Now()
	if err := process.Kill(); err != nil {
		return fmt.Errorf("kill worker %s: %w", w.name, err)
	}
	rows, err := r.d.pool.Query(ctx, r.q.held, w.name)
	if err != nil {
		return err
	}
	held, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return fmt.Errorf("look for what worker %s held: %w", w.name, err)
	}
	<-w.done
	<-w.read
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, number := range append(held, r.journal.inHand(w.name)...) {
		r.held[number] = at
	}
	return nil
}

// without notes a time in which nothing could be done.
func (r *faultRun) without(from, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.windows = append(r.windows, window{from, until})
}

// awaitEmpty returns when all jobs are finished, or when the queue's patience has ended.
func (r *faultRun) awaitEmpty(ctx context.Context) error {
	waiting, stop := context.WithTimeout(ctx, r.q.patience)
	defer stop()
	for waiting.Err() == nil {
		n, err := one[int](ctx, r.d.pool, r.q.open)
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

// figures come to the figures of what was seen.
func (r *faultRun) figures(ctx context.Context) ([]float64, error) {
	o := observed{windows: r.windows, held: r.held, found: map[int]foundJob{}, effects: map[int]int{}, end: time.Now()}
	var err error
	if o.committed, o.refused, err = r.load.result(); err != nil {
		return nil, err
	}
	rows, err := r.d.pool.Query(ctx, r.q.found)
	if err != nil {
		return nil, err
	}
	var number, n int
	var job foundJob
	if _, err := pgx.ForEachRow(rows, []any{&number, &job.finished, &job.again}, func() error {
		o.found[number] = job
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read what became of the jobs: %w", err)
	}
	if rows, err = r.d.pool.Query(ctx, `SELECT job, count(*) FROM effects GROUP BY 1`); err != nil {
		return nil, err
	}
	if _, err := pgx.ForEachRow(rows, []any{&number, &n}, func() error {
		o.effects[number] = n
		return nil
	}); err != nil {
		return nil, fmt.Errorf("count the effects: %w", err)
	}
	if o.begun, err = r.journal.all(); err != nil {
		return nil, err
	}
	if r.phase.idle {
		// Handlers that write nothing have done what they have begun.
		for number, calls := range o.begun {
			o.effects[number] = len(calls)
		}
	}
	return o.figures(), nil
}

// enqueue is how the queue takes jobs in a transaction of the application.
func (q faultQueue) enqueue(r *faultRun) (func(context.Context, pgx.Tx, []faultJob) error, error) {
	if q.river == nil {
		orgs := organizations()
		return func(ctx context.Context, tx pgx.Tx, jobs []faultJob) error {
			if len(jobs) == 1 {
				_, err := queue.EnqueueJob(ctx, tx, orgs[jobs[0].Number%len(orgs)], jobs[0], queue.JobOptions{})
				return err
			}
			some := make([]queue.NewJob, len(jobs))
			for i, j := range jobs {
				some[i] = queue.NewJob{OrgID: orgs[j.Number%len(orgs)], Payload: j}
			}
			_, err := queue.EnqueueJobs(ctx, tx, some)
			return err
		}, nil
	}
	// A client announces at most one insert a queue in its FetchCooldown.
	inserts, err := river.NewClient(riverpgxv5.New(r.load.pool), &river.Config{FetchCooldown: q.river.fetchCooldown})
	if err != nil {
		return nil, fmt.Errorf("make River's client that inserts: %w", err)
	}
	return func(ctx context.Context, tx pgx.Tx, jobs []faultJob) error {
		if len(jobs) == 1 {
			_, err := inserts.InsertTx(ctx, tx, jobs[0], nil)
			return err
		}
		some := make([]river.InsertManyParams, len(jobs))
		for i, j := range jobs {
			some[i].Args = j
		}
		_, err := inserts.InsertManyTx(ctx, tx, some)
		return err
	}, nil
}
