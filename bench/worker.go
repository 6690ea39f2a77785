package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/bench/child"
	"github.com/daybook-dev/daybook/workflows"
)

const (
	// workerStart is how long a worker may take until it polls.
	workerStart = 30 * time.Second
	// workerStop is how long a worker may take to drain.
	workerStop = 40 * time.Second
)

// settings are the workflow's; a zero is left out of its input, so that the default holds.
type settings struct{ batch, lanes int }

func (s settings) String() string {
	if s == (settings{}) {
		return "default settings"
	}
	return fmt.Sprintf("batchSize %d, concurrency %d", s.batch, s.lanes)
}

func (s settings) input() workflows.Input {
	var in workflows.Input
	if s.batch > 0 {
		in.BatchSize = &s.batch
	}
	if s.lanes > 0 {
		in.Concurrency = &s.lanes
	}
	return in
}

// worker is a process "daybook worker" with its own options as they are by default.
type worker struct {
	name string
	*child.Child
}

// withWorker runs f while a worker works the database's queue. The workflow is f's to start.
func (b *bench) withWorker(ctx context.Context, d *database, f func(context.Context, *worker) error) (err error) {
	w, err := b.startWorker(ctx, d)
	if err != nil {
		return err
	}
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		<-w.Done
		cancel(fmt.Errorf("the worker ended: %w", errors.Join(w.Err, errors.New(w.Tail()))))
	}()
	err = f(working, w)
	if cause := context.Cause(working); err != nil && cause != nil && ctx.Err() == nil {
		err = errors.Join(cause, err)
	}
	if err != nil {
		err = fmt.Errorf("%w\nthe worker's log ends:\n%s", err, w.Tail())
	}
	return errors.Join(err, w.stop())
}

// withWorkflow is withWorker with the workflow, which runs until f returns.
func (b *bench) withWorkflow(ctx context.Context, d *database, s settings,
	f func(context.Context, *worker) error,
) error {
	return b.withWorker(ctx, d, func(ctx context.Context, w *worker) error {
		run, err := b.startWorkflow(ctx, workflows.AccountingWorkflow, workflows.AccountingTaskQueue, s)
		if err != nil {
			return err
		}
		return errors.Join(f(ctx, w), b.endWorkflow(ctx, run))
	})
}

func (b *bench) startWorker(ctx context.Context, d *database) (*worker, error) {
	w := &worker{name: b.unique()}
	cmd := exec.Command(b.daybook, "worker", "--name", w.name, "--log-level", "warn") //nolint:noctx // stop ends it
	cmd.Env = workerEnvironment(d.url, b.stack.TemporalAddress)
	var err error
	if w.Child, err = child.Start(cmd, b.logOf(w.name), syscall.SIGKILL); err != nil {
		return nil, err
	}
	err = b.awaitPolls(ctx, workflows.AccountingTaskQueue, w.name, func() error {
		select {
		case <-w.Done:
			return fmt.Errorf("the worker ended while it started: %w\n%s", w.Err, w.Tail())
		default:
			return nil
		}
	})
	if err != nil {
		return nil, errors.Join(err, w.stop())
	}
	return w, nil
}

// logOf is the file of what a process says.
func (b *bench) logOf(name string) string { return filepath.Join(b.dir, name+".log") }

// workerEnvironment is this process's, without what would change the defaults.
func workerEnvironment(databaseURL, temporalAddress string) []string {
	env := []string{
		"DAYBOOK_DATABASE_URL=" + databaseURL, "TEMPORAL_ADDRESS=" + temporalAddress,
		"TEMPORAL_CONFIG_FILE=" + os.DevNull,
	}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "TEMPORAL_") && !strings.HasPrefix(kv, "DAYBOOK_") &&
			!strings.HasPrefix(kv, "ACCOUNTING_QUEUE_") && !strings.HasPrefix(kv, "PG") {
			env = append(env, kv)
		}
	}
	return env
}

// awaitPolls returns when Temporal knows that the worker asks for workflow tasks and for
// activities. ended says why the worker is gone; nil while it is there.
func (b *bench) awaitPolls(ctx context.Context, taskQueue, worker string, ended func() error) error {
	ctx, cancel := context.WithTimeout(ctx, workerStart)
	defer cancel()
	return await(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, int64, error) {
		if err := ended(); err != nil {
			return false, 0, err
		}
		for _, kind := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
			queue, err := b.temporal.DescribeTaskQueue(ctx, taskQueue, kind)
			if err != nil {
				return false, 0, err
			}
			polls := false
			for _, p := range queue.GetPollers() {
				polls = polls || p.GetIdentity() == worker
			}
			if !polls {
				return false, 0, nil
			}
		}
		return true, 0, nil
	})
}

// stop ends the worker in the orderly way, or by force when that takes too long.
func (w *worker) stop() error {
	if err := w.Stop(workerStop); err != nil {
		return fmt.Errorf("the worker: %w", err)
	}
	return nil
}

// startWorkflow starts the workflow of a queue.
func (b *bench) startWorkflow(ctx context.Context, workflow, taskQueue string, s settings) (client.WorkflowRun, error) {
	run, err := b.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: b.unique(), TaskQueue: taskQueue},
		workflow, s.input())
	if err != nil {
		return nil, fmt.Errorf("start the workflow: %w", err)
	}
	return run, nil
}

// endWorkflow cancels the run and waits until it has given everything back.
func (b *bench) endWorkflow(ctx context.Context, run client.WorkflowRun) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workerStop)
	defer cancel()
	if err := b.temporal.CancelWorkflow(ctx, run.GetID(), ""); err != nil {
		return fmt.Errorf("cancel the workflow: %w", err)
	}
	err := b.temporal.GetWorkflow(ctx, run.GetID(), "").Get(ctx, nil)
	if temporal.IsCanceledError(err) {
		return nil
	}
	if err == nil {
		return errors.New("the workflow ended by itself")
	}
	if ctx.Err() == nil {
		return fmt.Errorf("the workflow failed: %w", err)
	}
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	return errors.Join(fmt.Errorf("the workflow did not end within %s of being cancelled", workerStop),
		b.temporal.TerminateWorkflow(ending, run.GetID(), "", "the benchmark goes on"))
}
