package workers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/temporalwait"
	"github.com/daybook-dev/daybook/workers/internal/tracing"
	"github.com/daybook-dev/daybook/workflows"
)

// ErrTemporalRefuses: Temporal answers and refuses the worker: there is no such namespace, or the
// client may not use it. The error of Run that is this one has Temporal's words.
var ErrTemporalRefuses = failure.New(failure.TemporalRefuses,
	"Temporal refuses the worker: check the client's namespace, its key and its TLS settings")

// connect says how the worker of Temporal's SDK is made, and what it registers. One that could not
// start cannot start again: each attempt makes another.
func (w *Worker) connect(
	c client.Client, taskQueue string, concurrentActivities, concurrentWorkflowTasks int, name string, m *Metrics,
	register func(worker.Worker),
) {
	concurrentActivities, concurrentWorkflowTasks = cmp.Or(concurrentActivities, 3), cmp.Or(concurrentWorkflowTasks, 5)
	w.client, w.taskQueue = c, taskQueue
	w.introduces = introduction{
		name: name, activities: concurrentActivities, workflowTasks: concurrentWorkflowTasks,
		namespace: m.namespace(), program: m.version(),
	}
	w.make = func() worker.Worker {
		sdk := worker.New(c, taskQueue, worker.Options{
			MaxConcurrentActivityExecutionSize:     concurrentActivities,
			MaxConcurrentWorkflowTaskExecutionSize: concurrentWorkflowTasks,
			// Temporal gives a lane's turn to the poll that waits longest. A process with one poll gets
			// one lane, and stands behind the others for the next.
			MaxConcurrentActivityTaskPollers: 1,
			WorkerStopTimeout:                DrainTimeout,
			StickyScheduleToStartTimeout:     stickyTimeout,
			Interceptors: append([]interceptor.WorkerInterceptor{workflows.SignalOrder()},
				tracing.Interceptors()...),
			Identity: name,
			OnFatalError: func(err error) {
				select {
				case w.fatal <- err:
				default:
				}
			},
		})
		register(sdk)
		return sdk
	}
}

// start returns the SDK's worker once Temporal answers and it polls. While Temporal is unavailable
// it logs and tries again.
func (w *Worker) start(ctx context.Context) (worker.Worker, error) {
	var started worker.Worker
	err := temporalwait.Until(ctx, w.log, "", func(ctx context.Context) error {
		// The SDK's own start cannot be cancelled, and has a client connect that has not yet.
		if _, err := w.client.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
			return err
		}
		w.loadTaskQueue(ctx)
		sdk := w.make()
		if err := sdk.Start(); err != nil {
			return err
		}
		started = sdk
		return nil
	})
	if temporalwait.Refuses(err) {
		err = fmt.Errorf("%w: %w", ErrTemporalRefuses, err)
	}
	return started, err
}

// loadTimeout is how long Temporal may take to load a task queue. Without that the worker polls all
// the same.
const loadTimeout = 5 * time.Second

// loadTaskQueue has Temporal load all partitions of the task queue (four of each type, by default)
// before the first poll. After five minutes without a poll it unloads a partition, with the tasks
// that wait there. A poll goes to one of them, and has the others loaded only if the first one was
// not: else what waits in the others waits until a later poll comes there, and a poll that finds
// nothing takes a minute. So the first worker after such a pause would wait for up to some minutes.
// To describe a task queue loads them all.
func (w *Worker) loadTaskQueue(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	_, err := w.client.DescribeTaskQueueEnhanced(ctx, client.DescribeTaskQueueEnhancedOptions{
		TaskQueue: w.taskQueue, TaskQueueTypes: []client.TaskQueueType{
			client.TaskQueueTypeWorkflow,
			client.TaskQueueTypeActivity,
		}, ReportStats: true,
	})
	if err != nil && ctx.Err() == nil {
		w.log.Debug("Temporal did not describe the task queue", "taskQueue", w.taskQueue, "error", err)
	}
}
