package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/bench/proxy"
	"github.com/daybook-dev/daybook/workflows"
)

// createEffects makes the table of what the handlers have done: one row a call, or sharedRows.
const createEffects = `
CREATE TABLE effects (job bigint, invocation bigint, tx bigint NOT NULL DEFAULT txid_current(), PRIMARY KEY (job, invocation))`

// afterKill is how long a killed worker's last statements may take to be done.
const afterKill = 50 * time.Millisecond

// faultRun is one phase with one queue while it runs.
type faultRun struct {
	b     *bench
	d     *database
	q     loadedQueue
	phase faultPhase
	// url is the database's address for the workers and for the programs that enqueue: it may lead
	// through the proxy.
	url      string
	proxy    *proxy.Proxy
	journal  *journal
	load     *load
	workflow client.WorkflowRun

	mu      sync.Mutex
	workers []*queueProcess
	windows []window
	held    map[int]time.Time
	killed  map[string]time.Time
}

// underFault runs one phase with one queue on a database of its own and returns its figures.
func (b *bench) underFault(ctx context.Context, q loadedQueue, p faultPhase) (figures []float64, err error) {
	err = b.withDatabase(ctx, q.template, func(d *database) error {
		if _, err := d.pool.Exec(ctx, createEffects); err != nil {
			return fmt.Errorf("create the table of effects: %w", err)
		}
		r := &faultRun{
			b: b, d: d, q: q, phase: p, url: d.url, journal: newJournal(), held: map[int]time.Time{},
			killed: map[string]time.Time{},
		}
		if p.proxied {
			if err := r.throughProxy(ctx); err != nil {
				return err
			}
			defer func() { _ = r.proxy.Cut() }() // nothing is left to be heard of it
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
	host, err := proxy.HostOf(r.d.url)
	if err != nil {
		return err
	}
	if r.proxy, err = proxy.New(ctx, host); err != nil {
		return err
	}
	r.url, err = r.proxy.Through(r.d.url)
	return err
}

// run starts two workers, loads the queue, strikes, and waits until the queue is empty or its
// patience has ended.
func (r *faultRun) run(ctx context.Context) ([]float64, error) {
	pool, err := openPool(ctx, r.url, loadCallers)
	if err != nil {
		return nil, fmt.Errorf("open the pool that enqueues: %w", err)
	}
	defer pool.Close()
	r.load = &load{pool: pool, committed: map[int]time.Time{}}
	if r.load.enqueue, err = r.q.enqueue(ctx, pool); err != nil {
		return nil, err
	}
	for range 2 {
		if err := r.startWorker(ctx); err != nil {
			return nil, err
		}
	}
	for _, w := range r.workers {
		if err := r.b.awaitProcess(ctx, r.q, w); err != nil {
			return nil, err
		}
	}
	if err := r.startWorkflow(ctx); err != nil {
		return nil, err
	}
	pause(ctx, jobsRest)
	striking := make(chan error, 1)
	go func() { striking <- r.phase.strike(ctx, r) }()
	if r.phase.rate > 0 {
		err = r.load.run(ctx, r.phase.rate, r.phase.perTx, r.phase.lasting)
	}
	if err = errors.Join(err, <-striking); err != nil {
		return nil, err
	}
	if err := awaitOpen(ctx, r.d, r.q); err != nil {
		return nil, err
	}
	return r.figures(ctx)
}

// startWorkflow starts Daybook's workflow; River has none.
func (r *faultRun) startWorkflow(ctx context.Context) (err error) {
	if r.q.own() {
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

// startWorker starts a process of this program that works the queue, and does not wait until it
// does.
func (r *faultRun) startWorker(ctx context.Context) error {
	w, err := r.q.start(ctx, r.b, r.url, processConfig{Idle: r.phase.idle}, r.journal)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers = append(r.workers, w)
	return nil
}

// kill ends a worker as a crash does, and notes what it held.
func (r *faultRun) kill(ctx context.Context, w *queueProcess) error {
	at := time.Now()
	w.Kill()
	<-w.read
	pause(ctx, afterKill)
	rows, err := r.d.pool.Query(ctx, r.q.held, w.name)
	if err != nil {
		return err
	}
	held, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return fmt.Errorf("look for what worker %s held: %w", w.name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.killed[w.name] = at
	for _, number := range append(held, r.journal.inHand(w.name)...) {
		if !r.inLivingHands(number) {
			r.held[number] = at
		}
	}
	return nil
}

// inLivingHands says whether a worker that was not killed is at a job.
func (r *faultRun) inLivingHands(number int) bool {
	return slices.ContainsFunc(r.workers, func(w *queueProcess) bool {
		return r.killed[w.name].IsZero() && slices.Contains(r.journal.inHand(w.name), number)
	})
}

// without notes a time in which nothing could be done.
func (r *faultRun) without(from, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.windows = append(r.windows, window{from, until})
}

// figures come to the figures of what was seen.
func (r *faultRun) figures(ctx context.Context) ([]float64, error) {
	o := observed{
		windows: r.windows, held: r.held, killed: r.killed, found: map[int]foundJob{}, effects: map[int]int{},
		end: time.Now(),
	}
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
		if o.effects[number] = n; r.q.shared {
			o.effects[number] = sharedCalls(n)
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("count the effects: %w", err)
	}
	if r.q.shared {
		if o.transactions, err = one[int](ctx, r.d.pool, `SELECT count(DISTINCT tx) FROM effects`); err != nil {
			return nil, fmt.Errorf("count the transactions: %w", err)
		}
	}
	if o.begun, err = r.journal.all(); err != nil {
		return nil, err
	}
	if err := r.addHeld(ctx); err != nil {
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

// addHeld adds to what killed workers held the jobs that they leased by statements which were done
// after they had been looked for.
func (r *faultRun) addHeld(ctx context.Context) error {
	for name, at := range r.killed {
		if r.q.lost == "" {
			return nil
		}
		rows, err := r.d.pool.Query(ctx, r.q.lost, name)
		if err != nil {
			return err
		}
		lost, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			return fmt.Errorf("look for what was lost with worker %s: %w", name, err)
		}
		for _, number := range lost {
			if _, known := r.held[number]; !known {
				r.held[number] = at
			}
		}
	}
	return nil
}

// sharedCalls is how many calls have left n rows in shared transactions. A call that has left a part
// of its rows is more than one.
func sharedCalls(n int) int {
	if n%sharedRows == 0 {
		return n / sharedRows
	}
	return n/sharedRows + 2
}
