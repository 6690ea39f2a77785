package handlers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// activities registers the type resize, worked by an activity whose worker is started by poll. What
// runs beside the handlers runs until the test ends.
func (b *bundle) activities(c TemporalConfig, policy jobs.Policy, f any) (c1 client.Client, poll func()) {
	b.t.Helper()
	server := temporaltest.Shared(b.t)
	c1 = server.Client(b.t, server.Namespace(b.t))
	c.Client, c.Pool, c.Activity, c.TaskQueue = c1, b.Pool, "Resize", workflowQueue
	h, err := NewTemporal(c)
	require.NoError(b.t, err)
	h.watchEvery = 50 * time.Millisecond
	b.beside(h)
	jobs.RegisterRaw(b.registry, "resize", policy, h.Handle)
	return c1, func() {
		w := worker.New(c1, workflowQueue,
			worker.Options{
				DisableWorkflowWorker: true, MaxHeartbeatThrottleInterval: 50 * time.Millisecond,
				DefaultHeartbeatThrottleInterval: 50 * time.Millisecond,
			})
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: "Resize"})
		require.NoError(b.t, w.Start())
		b.t.Cleanup(w.Stop)
	}
}

// beside runs what belongs to a handler beside its attempts.
func (b *bundle) beside(h *TemporalHandler) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		assert.NoError(b.t, <-ended)
	})
}

func TestActivityWorksAJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var runs atomic.Int32
	c, poll := b.activities(patient, FunctionPolicy(time.Minute),
		func(_ context.Context, p picture) (map[string]any, error) {
			runs.Add(1)
			return map[string]any{"name": p.Name, "files": len(p.Sizes)}, nil
		})
	poll()
	id := b.enqueue(image())
	b.work()
	want := map[string]any{"name": "a.png", "files": 2.0}
	assert.Equal(t, want, result[map[string]any](t, b.job(id)))
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.job_workflows`))

	// As if the worker had ended before the job was completed: the next attempt finds the result.
	fixture.Uncomplete(t, b.Pool, id)
	b.work()
	assert.Equal(t, want, result[map[string]any](t, b.job(id)))
	assert.EqualValues(t, 1, runs.Load(), "it runs once")
	b.record(c, id, "completed")
}

// Each failure of the activity is one of the job's attempts, with the error's code and details.
func TestActivityFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var runs atomic.Int32
	c, poll := b.activities(patient, FunctionPolicy(time.Minute), func(context.Context, picture) error {
		if runs.Add(1) == 1 {
			return temporal.NewApplicationErrorWithOptions("no room", "DISK_FULL", temporal.ApplicationErrorOptions{
				NextRetryDelay: 30 * time.Second, Details: []any{map[string]int{"needed": 7}},
			})
		}
		return temporal.NewNonRetryableApplicationError("no such picture", "ValueError", errors.New("404"))
	})
	poll()
	id := b.enqueue(image())
	b.work()
	j := b.job(id)
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, models.ErrorCode("DISK_FULL"), j.Code, j.Error)
	assert.Contains(t, j.Error, `no room (details: {"needed":7})`)
	jittered(t, 30*time.Second, j.Wait)
	b.due()
	b.work()
	j = b.job(id)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, models.CodeHandlerError, j.Code)
	assert.Contains(t, j.Error, "ValueError: no such picture")
	assert.EqualValues(t, 2, runs.Load())
	b.record(c, id, "failed")
}

// Temporal tries the activity again within one attempt at the job, if the configuration lets it.
func TestActivityIsTriedAgainByTemporal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var runs atomic.Int32
	config := patient
	config.ActivityAttempts = 2
	_, poll := b.activities(config, FunctionPolicy(time.Minute), func(context.Context, picture) (string, error) {
		if runs.Add(1) == 1 {
			return "", errors.New("no room")
		}
		return "done", nil
	})
	poll()
	assert.Equal(t, "done", result[string](t, b.run(image())))
}

func TestActivityWithoutHeartbeatFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	config := patient
	config.Heartbeat = time.Second
	_, poll := b.activities(config, FunctionPolicy(time.Minute), func(ctx context.Context, _ picture) error {
		<-ctx.Done()
		return ctx.Err()
	})
	poll()
	j := b.run(image())
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, models.CodeTimeout, j.Code)
	assert.Contains(t, j.Error, "no heartbeat")
}

// What a heartbeat says is the job's progress while an attempt waits. When the job is cancelled
// then, so is the activity.
func TestActivityTellsItsProgress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	config := patient
	config.Heartbeat = 10 * time.Second
	told := make(chan error, 1)
	c, poll := b.activities(config, FunctionPolicy(time.Minute), func(ctx context.Context, _ picture) error {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			activity.RecordHeartbeat(ctx, map[string]int{"done": 40})
			select {
			case <-ctx.Done():
				told <- context.Cause(ctx)
				return ctx.Err()
			case <-tick.C:
			}
		}
	})
	poll()
	id := b.enqueue(image())
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		b.work()
	}()
	require.Eventually(t, func() bool {
		return b.count(`SELECT count(*) FROM daybook.jobs WHERE id = $1 AND progress = '{"done": 40}'`, id) == 1
	}, time.Minute, 20*time.Millisecond)
	r, err := queue.CancelJob(t.Context(), b.Pool, id)
	require.NoError(t, err)
	assert.Equal(t, queue.Cancelling, r.Result)
	<-worked
	assert.Equal(t, models.JobCancelled, b.job(id).State)
	assert.Error(t, <-told)
	b.untilEnded(c, id, enums.WORKFLOW_EXECUTION_STATUS_CANCELED)
	b.record(c, id, "cancelled")
}

// The heartbeats of a workflow's activities are the progress of its job.
func TestWorkflowTellsItsProgress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	server := temporaltest.Shared(t)
	c := server.Client(t, server.Namespace(t))
	h, err := NewTemporal(TemporalConfig{
		Client: c, Pool: b.Pool, Workflow: "Resize", TaskQueue: workflowQueue,
		Timeout: time.Minute,
	})
	require.NoError(t, err)
	h.watchEvery = 50 * time.Millisecond
	jobs.RegisterRaw(b.registry, "resize", FunctionPolicy(time.Minute), h.Handle)
	w := worker.New(c, workflowQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, p picture) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		return workflow.ExecuteActivity(ctx, "Scale", p.Sizes).Get(ctx, nil)
	}, workflow.RegisterOptions{Name: "Resize"})
	seen := make(chan struct{})
	w.RegisterActivityWithOptions(func(ctx context.Context, sizes []int) error {
		activity.RecordHeartbeat(ctx, "scaling", len(sizes))
		<-seen
		return nil
	}, activity.RegisterOptions{Name: "Scale"})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	id := b.enqueue(image())
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		b.work()
	}()
	assert.Eventually(t, func() bool {
		return b.count(`SELECT count(*) FROM daybook.jobs WHERE id = $1 AND progress = '[{"activity": "Scale", "id": "5", "attempt": 1, "heartbeat": ["scaling", 2]}]'`, id) == 1
	}, time.Minute, 20*time.Millisecond)
	close(seen)
	<-worked
	assert.Equal(t, models.JobCompleted, b.job(id).State, b.job(id).Error)
}

// untilEnded waits until the workflow of a job has ended so.
func (b *bundle) untilEnded(c client.Client, id string, want enums.WorkflowExecutionStatus) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		d, err := c.DescribeWorkflow(b.t.Context(), WorkflowID(id), "")
		return err == nil && d.Status == want
	}, pgtest.Patience, 50*time.Millisecond)
}

// workUntilStarted works a job until Temporal has its workflow: on a busy machine the time of an
// attempt may be over before it has.
func (b *bundle) workUntilStarted(c client.Client, id string) {
	b.t.Helper()
	for range 20 {
		b.work()
		if _, err := c.DescribeWorkflow(b.t.Context(), WorkflowID(id), ""); err == nil {
			return
		}
		_, err := queue.RetryJob(b.t.Context(), b.Pool, id, queue.RetryOptions{})
		require.NoError(b.t, err)
	}
	require.Fail(b.t, "the workflow was not started in any of 20 attempts")
}
