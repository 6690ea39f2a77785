package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/workers"
)

// processEnv makes a process of this program a worker that may be killed: it holds a processConfig
// as JSON.
const processEnv = "BENCH_WORKER"

const (
	// faultPause is how long a handler takes besides writing its effect.
	faultPause = 10 * time.Millisecond
	// effectConns is how many connections the handlers of a worker have for their effects.
	effectConns = 8
	// faultConns is the pool of a worker of Daybook, River's has 16 as in the other scenarios.
	faultConns = 32
	// faultParallel is as many jobs as River's client runs side by side.
	faultParallel = 100
	// sharedRows is how many rows a job writes in a transaction that it shares.
	sharedRows = 3
	// workersName is the application_name of the workers' connections, by which the backends to
	// terminate are found; the handlers' own connections are not among them.
	workersName = "bench-worker"
)

// processConfig says what a worker process works.
type processConfig struct {
	Name, DatabaseURL, TemporalAddress string
	// Peer is River's or DBOS's name; empty: it is a worker of Daybook. MaxWorkers to Polling are the
	// peer's settings.
	Peer                                string
	MaxWorkers, Pool                    int
	FetchCooldown, RescueAfter, Polling time.Duration
	// Idle: the handlers do nothing and write nothing.
	Idle bool
	// Shared: Daybook's handlers write sharedRows rows in transactions that jobs share.
	Shared bool
	// Record: what the handlers do is kept, and told when the process ends, so that telling costs
	// nothing meanwhile.
	Record bool
	// Economy is the PickInterval of Daybook's worker; 0 is its default.
	Economy time.Duration
}

// faultJob is a job of the faults: one of Daybook, and one of River.
type faultJob struct {
	Number int `json:"number"`
	// Takes is how long the first attempt takes, in milliseconds, besides what each takes.
	Takes int `json:"takes,omitempty"`
}

// JobType implements queue.Payload.
func (faultJob) JobType() string { return "fault" }

// Kind implements river.JobArgs.
func (faultJob) Kind() string { return "fault" }

// processWork is a worker process at work.
type processWork struct {
	config  processConfig
	effects *pgxpool.Pool
	// tells is how the process tells what its handlers do: a line is one write, so that what was told
	// is not lost with the process.
	tells *os.File
	mu    sync.Mutex
	kept  strings.Builder
	// invocations numbers the calls of the handler.
	invocations atomic.Int64
}

// runProcess works until ctx ends.
func runProcess(ctx context.Context, text string, tells *os.File) error {
	w := &processWork{tells: tells}
	if err := json.Unmarshal([]byte(text), &w.config); err != nil {
		return fmt.Errorf("read %s: %w", processEnv, err)
	}
	address, err := withApplicationName(w.config.DatabaseURL, "bench-effects")
	if err != nil {
		return err
	}
	if w.effects, err = openPool(ctx, address, effectConns); err != nil {
		return fmt.Errorf("open the pool for effects: %w", err)
	}
	defer w.effects.Close()
	defer func() { _, _ = w.tells.WriteString(w.kept.String()) }() // when the reader is gone, nothing wants it
	if address, err = withApplicationName(w.config.DatabaseURL, workersName); err != nil {
		return err
	}
	switch w.config.Peer {
	case riverName:
		return w.river(ctx, address)
	case dbosName:
		return w.dbos(ctx, address)
	}
	return w.daybook(ctx, address)
}

func (w *processWork) daybook(ctx context.Context, address string) error {
	pool, err := openPool(ctx, address, faultConns)
	if err != nil {
		return fmt.Errorf("open the worker's pool: %w", err)
	}
	defer pool.Close()
	temporal, err := client.DialContext(ctx,
		client.Options{HostPort: w.config.TemporalAddress, Namespace: devstack.Namespace, Logger: silent{}})
	if err != nil {
		return fmt.Errorf("connect to Temporal: %w", err)
	}
	defer temporal.Close()
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{Owner: "bench", Parallel: faultParallel, SharedTransaction: w.config.Shared},
		func(ctx context.Context, j *jobs.Job[faultJob]) error {
			if w.config.Shared {
				w.share(ctx, j)
				return nil
			}
			return w.handle(ctx, j.Payload, j.Attempt)
		})
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	worker, err := workers.NewJobs(workers.JobsOptions{
		Client: temporal, Pool: pool, Registry: registry,
		Name: w.config.Name, Log: log, MaxConcurrentActivities: 6, PickInterval: w.config.Economy,
	})
	if err != nil {
		return fmt.Errorf("make the worker: %w", err)
	}
	defer worker.Close()
	return worker.Run(ctx)
}

// faultRiverWorker is the handler for River.
type faultRiverWorker struct {
	river.WorkerDefaults[faultJob]
	w *processWork
}

// Work implements river.Worker.
func (f *faultRiverWorker) Work(ctx context.Context, job *river.Job[faultJob]) error {
	return f.w.handle(ctx, job.Args, job.Attempt)
}

func (w *processWork) river(ctx context.Context, address string) error {
	s := riverSettings{
		maxWorkers: w.config.MaxWorkers, pool: w.config.Pool, fetchCooldown: w.config.FetchCooldown,
		rescueAfter: w.config.RescueAfter,
	}
	pool, err := openPool(ctx, address, s.pool)
	if err != nil {
		return fmt.Errorf("open River's pool: %w", err)
	}
	defer pool.Close()
	register := river.NewWorkers()
	river.AddWorker(register, &faultRiverWorker{w: w})
	c, err := river.NewClient(riverpgxv5.New(pool), s.config(w.config.Name, register))
	if err != nil {
		return fmt.Errorf("make River's client: %w", err)
	}
	working := context.WithoutCancel(ctx)
	if err := c.Start(working); err != nil {
		return fmt.Errorf("start River: %w", err)
	}
	w.tell("ready")
	<-ctx.Done()
	stop, cancel := context.WithTimeout(working, workerStop/2)
	defer cancel()
	return c.Stop(stop)
}

func (w *processWork) dbos(ctx context.Context, address string) error {
	s := dbosSettings{concurrency: w.config.MaxWorkers, pool: w.config.Pool, polling: w.config.Polling}
	c, err := newDBOS(ctx, address, w.config.Name, s, func(c dbos.Context, _ *dbos.DataSource) {
		dbos.RegisterWorkflow(c, func(c dbos.Context, job faultJob) (bool, error) {
			err := w.handle(c, job, 1)
			return err == nil, err
		}, dbos.WithWorkflowName(dbosWorkflow))
	})
	if err != nil {
		return err
	}
	if err := dbos.Launch(c); err != nil {
		return fmt.Errorf("launch DBOS: %w", err)
	}
	w.tell("ready")
	<-ctx.Done()
	return dbos.Shutdown(c, workerStop/2)
}

// handle is the handler of all: it takes some time and writes a row, again and again until that is
// done. It never fails by itself.
func (w *processWork) handle(ctx context.Context, job faultJob, attempt int) error {
	invocation := w.begin(job)
	if w.config.Idle {
		return nil
	}
	pause(ctx, job.takes(attempt))
	for {
		// The same call writes one row, also when it does not learn that it has written it.
		_, err := w.effects.Exec(ctx, `INSERT INTO effects (job, invocation) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
			job.Number, invocation)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		pause(ctx, 50*time.Millisecond)
	}
	w.note("e", job.Number)
	return nil
}

// begin tells that a handler begins, and returns the number of the call.
func (w *processWork) begin(job faultJob) int64 {
	w.note("b", job.Number)
	return int64(os.Getpid())<<32 | w.invocations.Add(1)
}

// takes is how long a handler takes besides writing its effect.
func (j faultJob) takes(attempt int) time.Duration {
	if attempt == 1 {
		return faultPause + time.Duration(j.Takes)*time.Millisecond
	}
	return faultPause
}

// share is the handler of jobs that write in transactions that they share.
func (w *processWork) share(ctx context.Context, j *jobs.Job[faultJob]) {
	invocation := w.begin(j.Payload)
	pause(ctx, j.Payload.takes(j.Attempt))
	j.InTx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO effects (job, invocation) SELECT $1, $3::bigint * $2 + n FROM generate_series(1, $3) n`,
			j.Payload.Number, invocation, sharedRows)
		return err
	})
	w.note("e", j.Payload.Number)
}

// note tells, or keeps, that a handler begins (b) or ends (e) now.
func (w *processWork) note(what string, number int) {
	line := what + " " + strconv.Itoa(number) + " " + strconv.FormatInt(time.Now().UnixNano(), 10)
	if !w.config.Record {
		w.tell(line)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.kept.WriteString(line + "\n")
}

// tell writes a line for the process that started this one.
func (w *processWork) tell(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.tells.WriteString(line + "\n") // when the reader is gone, this process ends too
}
