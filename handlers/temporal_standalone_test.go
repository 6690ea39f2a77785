package handlers

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc/codes"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// standalone is patient, and starts the activity without a workflow.
func standalone() TemporalConfig {
	c := patient
	c.Standalone = true
	return c
}

// hasStandalone reports whether the server starts standalone activities. The development server of
// the pinned Temporal CLI does not: DAYBOOK_TEST_TEMPORAL_ADDRESS names one that does.
func hasStandalone(t *testing.T, c client.Client) bool {
	t.Helper()
	_, err := c.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: "none"}).
		Describe(t.Context(), client.DescribeActivityOptions{})
	require.Error(t, err)
	return serviceerror.ToStatus(err).Code() != codes.Unimplemented
}

func needStandalone(t *testing.T, c client.Client) {
	t.Helper()
	if !hasStandalone(t, c) {
		t.Skip("the Temporal server has no standalone activities")
	}
}

// A server without standalone activities makes dead letters that say so, and their jobs begin anew
// when it has them.
func TestServerWithoutStandaloneActivities(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c, _ := b.activities(standalone(), FunctionPolicy(time.Minute), func(context.Context, picture) error { return nil })
	if hasStandalone(t, c) {
		t.Skip("the Temporal server has them")
	}
	j := b.run(image())
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, models.CodeActivityNotStandalone, j.Code)
	assert.Contains(t, j.Error, "the Temporal server starts no standalone activity")
}

func TestStandaloneActivityWorksAJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var runs atomic.Int32
	c, poll := b.activities(standalone(), FunctionPolicy(time.Minute),
		func(ctx context.Context, p picture) (map[string]any, error) {
			runs.Add(1)
			return map[string]any{"name": p.Name, "id": activity.GetInfo(ctx).ActivityID}, nil
		})
	needStandalone(t, c)
	poll()
	id := b.enqueue(image())
	b.work()
	want := map[string]any{"name": "a.png", "id": WorkflowID(id)}
	assert.Equal(t, want, result[map[string]any](t, b.job(id)), b.job(id).Error)
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.job_workflows`))
	_, err := c.DescribeWorkflow(t.Context(), WorkflowID(id), "")
	assert.Error(t, err, "no workflow is around it")

	// As if the worker had ended before the job was completed: the next attempt finds the result.
	fixture.Uncomplete(t, b.Pool, id)
	b.work()
	assert.Equal(t, want, result[map[string]any](t, b.job(id)))
	assert.EqualValues(t, 1, runs.Load(), "it runs once")
}

// Each failure of the activity is one of the job's attempts.
func TestStandaloneActivityFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var runs atomic.Int32
	c, poll := b.activities(standalone(), FunctionPolicy(time.Minute), func(context.Context, picture) (string, error) {
		switch runs.Add(1) {
		case 1:
			return "", temporal.NewApplicationErrorWithOptions("no room", "DISK_FULL",
				temporal.ApplicationErrorOptions{NextRetryDelay: 30 * time.Second})
		case 2:
			panic("no memory")
		}
		return "done", nil
	})
	needStandalone(t, c)
	poll()
	id := b.enqueue(image())
	b.work()
	j := b.job(id)
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, models.ErrorCode("DISK_FULL"), j.Code, j.Error)
	assert.Contains(t, j.Error, "of the activity Resize failed: DISK_FULL: no room")
	jittered(t, 30*time.Second, j.Wait)
	b.due()
	b.work()
	assert.Equal(t, models.CodeHandlerError, b.job(id).Code)
	assert.Contains(t, b.job(id).Error, "no memory")
	b.due()
	b.work()
	assert.Equal(t, "done", result[string](t, b.job(id)))
	assert.EqualValues(t, 3, runs.Load())
}

func TestStandaloneActivityWithoutHeartbeatFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	config := standalone()
	config.Heartbeat = time.Second
	c, poll := b.activities(config, FunctionPolicy(time.Minute), func(ctx context.Context, _ picture) error {
		<-ctx.Done()
		return ctx.Err()
	})
	needStandalone(t, c)
	poll()
	j := b.run(image())
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, models.CodeTimeout, j.Code, j.Error)
	assert.Contains(t, j.Error, "no heartbeat")
}

func TestStandaloneActivityTakesLongerThanAnAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// No worker polls yet.
	c, poll := b.activities(TemporalConfig{Standalone: true, Timeout: 2 * time.Second, Pause: 10 * time.Minute},
		FunctionPolicy(time.Minute), func(context.Context, picture) error { return nil })
	needStandalone(t, c)
	id := b.enqueue(image())
	b.work()
	assert.Equal(t, models.CodeSnoozed, b.job(id).Code, b.job(id).Error)
	poll()
	require.NoError(t, c.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: WorkflowID(id)}).
		Get(t.Context(), nil))
	b.due()
	b.work()
	assert.Equal(t, models.JobCompleted, b.job(id).State, b.job(id).Error)
	assert.Equal(t, 1, b.count(`SELECT run_count FROM daybook.jobs WHERE id = $1`, id), "waiting counts no attempt")
}

// What a heartbeat says is the job's progress. When the job is cancelled then, so is the activity; a
// job that is tried again afterwards starts another run.
func TestStandaloneActivityIsCancelledWithItsJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	config := standalone()
	config.Heartbeat = 10 * time.Second
	var runs atomic.Int32
	c, poll := b.activities(config, FunctionPolicy(time.Minute), func(ctx context.Context, _ picture) (string, error) {
		if runs.Add(1) > 1 {
			return "done", nil
		}
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			activity.RecordHeartbeat(ctx, map[string]int{"done": 40})
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-tick.C:
			}
		}
	})
	needStandalone(t, c)
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
	_, err := queue.CancelJob(t.Context(), b.Pool, id)
	require.NoError(t, err)
	<-worked
	assert.Equal(t, models.JobCancelled, b.job(id).State)
	require.Eventually(t, func() bool {
		d, err := c.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: WorkflowID(id)}).
			Describe(t.Context(), client.DescribeActivityOptions{})
		return err == nil && d.Status == enums.ACTIVITY_EXECUTION_STATUS_CANCELED
	}, pgtest.Patience, 50*time.Millisecond)

	_, err = queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{})
	require.NoError(t, err)
	b.work()
	assert.Equal(t, "done", result[string](t, b.job(id)), b.job(id).Error)
}

func TestStandaloneIsForAnActivity(t *testing.T) {
	t.Parallel()
	_, err := newTemporal(TemporalConfig{Workflow: "Resize", TaskQueue: workflowQueue, Standalone: true})
	require.Error(t, err)
	assert.ErrorContains(t, err, "standalone")
}
