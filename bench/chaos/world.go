package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/bench/child"
	"github.com/daybook-dev/daybook/bench/proxy"
	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workflows"
)

// world is everything that runs, and what is known about it.
type world struct {
	options
	out, log io.Writer
	began    time.Time
	dir      string

	servers  cluster
	database *proxy.Proxy // between everyone and the address that leads to the primary
	url      string       // through it
	temporal *devstack.Stack
	workflow *proxy.Proxy // between everyone and Temporal
	client   client.Client
	pool     *pgxpool.Pool
	load     *load
	probe    *probe

	// life ends when the run does, and watching are those who wait for something until then.
	life     context.Context
	end      context.CancelFunc
	watching sync.WaitGroup

	mu      sync.Mutex
	saying  sync.Mutex
	workers []*worker
	started int
	// killed are the names of the workers that were, and what each held was reclaimed after.
	killed map[string]time.Time
	struck map[string]int
	failed []string // troubles that could not be made
	lacks  []string // what this machine does not allow
}

// worker is a process that works the queues.
type worker struct {
	*child.Child
	name string
	// own: it is the application's, and works its jobs; else it is daybook worker.
	own bool
}

func (w *world) say(format string, args ...any) {
	w.saying.Lock()
	defer w.saying.Unlock()
	_, _ = fmt.Fprintf(w.log, "%6.1f s  "+format+"\n", append([]any{time.Since(w.began).Seconds()}, args...)...)
}

// newRandom is a source of its own for each purpose, so that when something happens does not depend
// on how fast something else is.
func (w *world) newRandom(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, purpose)) } //nolint:gosec // it is to be repeated

func (w *world) start(ctx context.Context) (err error) {
	w.life, w.end = context.WithCancel(context.WithoutCancel(ctx))
	w.killed, w.struck = map[string]time.Time{}, map[string]int{}
	w.say("seed %d, %s cluster, %s of trouble", w.seed, w.cluster, w.lasting)
	if w.dir, err = os.MkdirTemp("", "daybook-chaos-"); err != nil {
		return err
	}
	if err := os.Chmod(w.dir, 0o711); err != nil { //nolint:gosec // PostgreSQL's user passes through
		return err
	}
	if w.daybook, err = filepath.Abs(w.daybook); err != nil {
		return err
	}
	if err := w.startServers(ctx); err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(w.url)
	if err != nil {
		return err
	}
	config.MaxConns = callers
	if w.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	if err := migrations.Up(ctx, w.url); err != nil {
		return err
	}
	if err := prepareTables(ctx, w.pool); err != nil {
		return err
	}
	w.load = &load{pool: w.pool, random: w.newRandom(2), acknowledged: map[int64]acknowledgement{}}
	if w.clocks() {
		w.load.apart = 2 * clockSeconds * time.Second
	}
	if w.probe, err = newProbe(ctx, w.load, w.servers.leader(), w.url); err != nil {
		return err
	}
	for i := range 4 {
		if err := w.startWorker(ctx, i%2 == 1); err != nil {
			return err
		}
	}
	if err := w.startWorkflows(ctx); err != nil {
		return err
	}
	w.say("PostgreSQL with a standby, Temporal and %d workers run", len(w.workers))
	return nil
}

func (w *world) startServers(ctx context.Context) error {
	dir := filepath.Join(w.dir, "postgres")
	random := w.newRandom(3)
	if w.cluster == clusterPatroni {
		w.servers = &patroni{dir: dir, async: w.async, random: random}
	} else {
		// Those who are connected to a frozen server wait for it, in a long run for half a minute.
		frozen := min(30*time.Second, w.lasting/5)
		w.servers = &plain{dir: dir, async: w.async, random: random, clocks: w.clocks(), frozen: frozen, say: w.say}
	}
	started := make(chan error, 1)
	go func() {
		var err error
		w.temporal, err = w.startTemporal(ctx, 0)
		started <- err
	}()
	if err := errors.Join(w.servers.start(ctx), <-started); err != nil {
		return err
	}
	var err error
	// They live until stop, whatever ends the run.
	living := context.WithoutCancel(ctx)
	if w.database, err = proxy.New(living, w.servers.leader()); err != nil {
		return err
	}
	if w.url, err = w.database.Through(w.servers.url()); err != nil {
		return err
	}
	if w.workflow, err = proxy.New(living, w.temporal.TemporalAddress); err != nil {
		return err
	}
	w.client, err = client.NewLazyClient(client.Options{
		HostPort: w.temporal.TemporalAddress, Namespace: devstack.Namespace, Logger: silent{},
	})
	return err
}

func (w *world) startTemporal(ctx context.Context, port int) (*devstack.Stack, error) {
	return devstack.Start(ctx, devstack.Options{
		Dir: filepath.Join(w.dir, "temporal"), TemporalPort: port, NoPostgres: true, NoUI: true, Private: true,
	})
}

// environment is this process's, without what would change defaults.
func (w *world) environment(more ...string) []string {
	env := append([]string{
		"DAYBOOK_DATABASE_URL=" + w.url, "TEMPORAL_ADDRESS=" + w.workflow.Address, "TEMPORAL_CONFIG_FILE=" + os.DevNull,
		"DAYBOOK_DB_FUNCTIONS=chaos.run_job",
	}, more...)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "TEMPORAL_") && !strings.HasPrefix(kv, "DAYBOOK_") && !strings.HasPrefix(kv, "PG") {
			env = append(env, kv)
		}
	}
	return env
}

// startWorker starts a worker, and does not wait until it works.
func (w *world) startWorker(_ context.Context, own bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started++
	p := &worker{name: fmt.Sprintf("worker-%d", w.started), own: own}
	cmd := exec.Command(w.daybook, "worker", "--name", p.name, "--log-level", "warn") //nolint:noctx // stop ends it
	cmd.Env = w.environment()
	if own {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		config, err := json.Marshal(workerConfig{Name: p.name, DatabaseURL: w.url, TemporalAddress: w.workflow.Address})
		if err != nil {
			return err
		}
		cmd = exec.Command(self) //nolint:noctx // stop ends it
		cmd.Env = w.environment(workerEnv + "=" + string(config))
	}
	var err error
	if p.Child, err = child.Start(cmd, filepath.Join(w.dir, p.name+".log"), syscall.SIGKILL); err != nil {
		return err
	}
	w.workers = append(w.workers, p)
	return nil
}

// living is one of the workers that live; nil: none does.
func (w *world) living(choose int) *worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*worker
	for _, p := range w.workers {
		if !p.Ended() {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[choose%len(all)]
}

// replaceEnded starts a worker for each that ended, as a supervisor of processes does. One that ended
// by itself is told.
func (w *world) replaceEnded(ctx context.Context) error {
	w.mu.Lock()
	var ended []*worker
	w.workers = slices.DeleteFunc(w.workers, func(p *worker) bool {
		if p.Ended() {
			ended = append(ended, p)
			return true
		}
		return false
	})
	w.mu.Unlock()
	for _, p := range ended {
		if _, killed := w.killedAt(p.name); !killed {
			w.say("%s ended by itself: %v\n%s", p.name, p.Err, p.Tail())
			w.note("ended")
		}
		if err := w.startWorker(ctx, p.own); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) killedAt(name string) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, killed := w.killed[name]
	return at, killed
}

// note counts what was done.
func (w *world) note(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.struck[name]++
}

// queues are the workflows that run: type and task queue.
func queues() [][2]string {
	return [][2]string{
		{workflows.AccountingWorkflow, workflows.AccountingTaskQueue},
		{workflows.JobsWorkflow, workflows.JobsTaskQueue},
		{workflows.TasksWorkflow, workflows.TasksTaskQueue},
		{workflows.JobsWorkflow, models.TaskQueueOf(workflows.JobsTaskQueue, fleet)},
	}
}

// startWorkflows starts those that do not run.
func (w *world) startWorkflows(ctx context.Context) error {
	for _, q := range queues() {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := w.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: models.WorkflowIDOf(q[1]), TaskQueue: q[1], WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		}, q[0], workflows.Input{})
		cancel()
		if err != nil {
			return fmt.Errorf("start %s: %w", q[1], err)
		}
	}
	return nil
}

// clocks says whether those of the servers are apart.
func (w *world) clocks() bool {
	return w.cluster == clusterPlain && fakeTime() != "" && w.wanted("clock")
}

// wanted says whether the command line wants a kind of trouble.
func (w *world) wanted(name string) bool {
	if w.only == "" {
		return true
	}
	return slices.ContainsFunc(strings.Split(w.only, ","),
		func(begin string) bool { return begin != "" && strings.HasPrefix(name, begin) })
}

// stop ends everything, and removes the directory unless its logs are wanted.
func (w *world) stop() {
	if w.end != nil {
		w.end()
		w.watching.Wait()
	}
	w.mu.Lock()
	workers := w.workers
	w.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range workers {
		all.Go(func() {
			_ = syscall.Kill(p.PID, syscall.SIGCONT) // it may be gone
			p.Kill()
		})
	}
	all.Wait()
	for _, pool := range []*pgxpool.Pool{w.pool, w.probePool()} {
		if pool != nil {
			pool.Close()
		}
	}
	if w.client != nil {
		w.client.Close()
	}
	for _, p := range []*proxy.Proxy{w.database, w.workflow} {
		if p != nil {
			_ = p.Cut() // nothing is left to be heard of it
		}
	}
	if w.temporal != nil {
		_ = w.temporal.Kill() // it is gone then
	}
	if w.servers != nil {
		w.servers.stop()
	}
	if w.dir != "" && !w.keep {
		_ = os.RemoveAll(w.dir)
	}
}

func (w *world) probePool() *pgxpool.Pool {
	if w.probe == nil {
		return nil
	}
	return w.probe.pool
}

// silent keeps the Temporal client's messages out of the output.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
