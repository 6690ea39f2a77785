package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/bench/report"
)

const (
	// dbosName is the peer's name in the table.
	dbosName = "DBOS"
	// dbosApp is the application's name and version; dbosQueue is its queue, dbosWorkflow what the
	// queue runs.
	dbosApp      = "bench"
	dbosQueue    = "bench"
	dbosWorkflow = "work"
)

// dbosSettings are how an executor of DBOS works. Its queues are polled: it announces no workflow
// that is enqueued (package dbos, RegisterQueue).
type dbosSettings struct {
	// concurrency is WithWorkerConcurrency: how many workflows run side by side in a process, and how
	// many are dequeued at a time. pool is how many connections it has.
	concurrency, pool int
	// polling is WithQueueBasePollingInterval; DBOS's default is a second.
	polling time.Duration
}

func (s dbosSettings) String() string {
	return fmt.Sprintf("worker concurrency %d, %d connections, base polling interval %s", s.concurrency, s.pool, s.polling)
}

// dbosVariants are what DBOS's best settings are looked for among. Its documentation
// (docs.dbos.dev/golang, Queues & Concurrency) names both knobs and recommends no values.
var dbosVariants = []dbosSettings{
	{concurrency: 100, pool: 16, polling: 10 * time.Millisecond},
	{concurrency: 50, pool: 32, polling: 5 * time.Millisecond},
	{concurrency: 200, pool: 32, polling: 20 * time.Millisecond},
	{concurrency: 1000, pool: 32, polling: 20 * time.Millisecond},
}

// dbosQuick are settings for latency: it polls as often as River's tuned client looks.
var dbosQuick = dbosSettings{concurrency: 100, pool: 16, polling: time.Millisecond}

// dbosDefault are DBOS's own, with a limit of workflows, without which a process takes all that
// wait.
var dbosDefault = dbosSettings{concurrency: 100, pool: 16, polling: time.Second}

// migrateDBOS makes DBOS's schema, and a ledger for its workflows to write to.
func migrateDBOS(ctx context.Context, address string) error {
	if err := dbos.Migrate(ctx, address, dbos.WithMigrateLogger(slog.New(slog.DiscardHandler))); err != nil {
		return err
	}
	pool, err := openPool(ctx, address, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.Exec(ctx, createLedger)
	return err
}

// dbosExecutor is an executor that has not been launched yet, with what its workflow tells.
type dbosExecutor struct {
	dbos.Context
	// begun counts the workflows that began, returned those that did not fail.
	begun, returned atomic.Int64
	// first is when the first began, in nanoseconds since 1970.
	first atomic.Int64
}

// newDBOS makes an executor with a pool of its own, which its shutdown closes. register registers
// the workflow; source is the system database, so that a transaction of the workflow writes its
// rows and its step's record at once (package dbos, RunAsTransaction).
func newDBOS(ctx context.Context, address, id string, s dbosSettings,
	register func(c dbos.Context, source *dbos.DataSource),
) (_ dbos.Context, err error) {
	pool, err := openPool(ctx, address, s.pool)
	if err != nil {
		return nil, fmt.Errorf("open DBOS's pool: %w", err)
	}
	c, err := dbos.NewContext(context.WithoutCancel(ctx), dbos.Config{
		AppName: dbosApp, ApplicationVersion: dbosApp, ExecutorID: id, SystemDBPool: pool, SkipMigrations: true,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("make DBOS's context: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dbos.Shutdown(c, workerStop))
		}
	}()
	source, err := dbos.NewDataSource(c, pool)
	if err != nil {
		return nil, fmt.Errorf("make DBOS's data source: %w", err)
	}
	register(c, source)
	if _, err := dbos.RegisterQueue(c, dbosQueue, dbos.WithWorkerConcurrency(s.concurrency),
		dbos.WithQueueBasePollingInterval(s.polling)); err != nil {
		return nil, fmt.Errorf("register DBOS's queue: %w", err)
	}
	return c, nil
}

// dbosWork is what a workflow of DBOS does: nothing, or it posts an invoice, in one transaction with
// the record that the step is done, or it has three steps that do nothing.
type dbosWork int

const (
	dbosNothing dbosWork = iota
	dbosPosts
	dbosSteps
)

// do does it.
func (w dbosWork) do(c dbos.Context, source *dbos.DataSource, j benchJob) (err error) {
	switch w {
	case dbosNothing:
	case dbosPosts:
		_, err = dbos.RunAsTransaction(c, source, func(ctx context.Context, tx dbos.Tx) (bool, error) {
			_, err := tx.Exec(ctx, postRows, []int64{int64(j.Number)}, []int64{j.Net}, []int64{j.Tax})
			return true, err
		})
	case dbosSteps:
		for range stepsEach {
			if _, err = dbos.RunAsStep(c, func(context.Context) (int64, error) { return j.Net, nil }); err != nil {
				return err
			}
		}
	}
	return err
}

// withDBOS runs f with an executor of this process that is not launched yet.
func withDBOS(ctx context.Context, d *database, s dbosSettings, does dbosWork, began func(number int),
	f func(*dbosExecutor) error,
) (err error) {
	e := &dbosExecutor{}
	work := func(c dbos.Context, source *dbos.DataSource, j benchJob) (bool, error) {
		if e.begun.Add(1) == 1 {
			e.first.Store(time.Now().UnixNano())
		}
		if began != nil {
			began(j.Number)
		}
		err := does.do(c, source, j)
		if err == nil {
			e.returned.Add(1)
		}
		return err == nil, err
	}
	e.Context, err = newDBOS(ctx, d.url, "", s, func(c dbos.Context, source *dbos.DataSource) {
		dbos.RegisterWorkflow(c, func(c dbos.Context, j benchJob) (bool, error) { return work(c, source, j) },
			dbos.WithWorkflowName(dbosWorkflow))
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dbos.Shutdown(e.Context, workerStop)) }()
	return f(e)
}

// enqueueDBOS enqueues a workflow in a transaction of the application.
func enqueueDBOS[J any](c dbos.Client, tx pgx.Tx, job J) error {
	_, err := dbos.Enqueue[bool](c, dbosQueue, dbosWorkflow, job, dbos.WithEnqueueTransaction(tx))
	return err
}

// drain is drainDaybook's counterpart: n workflows wait, the executor is launched.
func (e *dbosExecutor) drain(ctx context.Context, d *database, n int) (took drained, err error) {
	for begin := 0; begin < n; begin += fillBatch {
		err := inTx(ctx, d.pool, func(tx pgx.Tx) error {
			for i := begin; i < min(begin+fillBatch, n); i++ {
				if err := enqueueDBOS(e.Context, tx, newBenchJob(i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return took, fmt.Errorf("enqueue DBOS's workflows: %w", err)
		}
	}
	if err := d.quiesce(ctx); err != nil {
		return took, err
	}
	began := time.Now()
	if err := dbos.Launch(e.Context); err != nil {
		return took, fmt.Errorf("launch DBOS: %w", err)
	}
	err = await(ctx, time.Millisecond, func(ctx context.Context) (bool, int64, error) {
		all := e.returned.Load()
		if all < int64(n) {
			return false, all, nil
		}
		open, err := one[bool](ctx, d.pool,
			`SELECT EXISTS (SELECT FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING'))`)
		return !open, all, err
	})
	if err != nil {
		return took, fmt.Errorf("wait for DBOS's workflows: %w", err)
	}
	took.took, took.first = time.Since(began), time.Unix(0, e.first.Load()).Sub(began)
	return took, nil
}

// drainDBOS drains n workflows, on a database of its own.
func (b *bench) drainDBOS(ctx context.Context, s dbosSettings, n int, does dbosWork) (took drained, err error) {
	err = b.withDatabase(ctx, dbosTemplate, func(d *database) error {
		return withDBOS(ctx, d, s, does, nil, func(e *dbosExecutor) error {
			if took, err = e.drain(ctx, d, n); err != nil {
				return err
			}
			return verifyDBOS(ctx, d.pool, n, does, e.begun.Load())
		})
	})
	if err != nil {
		return took, fmt.Errorf("%s, %s: %w", dbosName, s, err)
	}
	b.say("  %s, %s: %s jobs/s", dbosName, s, report.Figure(perSecond(n, took.took)))
	return took, nil
}

// verifyDBOS fails unless there are n workflows, each began once and succeeded, and has its three
// rows if it posts, and its steps if it has some.
func verifyDBOS(ctx context.Context, pool *pgxpool.Pool, n int, does dbosWork, begun int64) error {
	var all, succeeded int
	err := pool.QueryRow(ctx, `
SELECT count(*), count(*) FILTER (WHERE status = 'SUCCESS' AND recovery_attempts = 1)
  FROM dbos.workflow_status`).Scan(&all, &succeeded)
	if err != nil {
		return fmt.Errorf("count DBOS's workflows: %w", err)
	}
	if all != n || succeeded != n || begun != int64(n) {
		return fmt.Errorf("of %d workflows %d are there, %d began and %d succeeded", n, all, begun, succeeded)
	}
	if does == dbosSteps {
		kept, err := one[int](ctx, pool, `SELECT count(*) FROM dbos.operation_outputs`)
		if err == nil && kept != stepsEach*n {
			err = fmt.Errorf("%d workflows have kept %d steps", n, kept)
		}
		return err
	}
	if does != dbosPosts {
		return nil
	}
	right, err := postedOnce(ctx, pool)
	if err == nil && right != n {
		err = fmt.Errorf("of %d workflows %d are posted exactly once", n, right)
	}
	return err
}
