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
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// However a job ends while its workflow runs, no workflow is left running.
func TestEndedJobEndsItsWorkflow(t *testing.T) {
	t.Parallel()
	brief := jobs.Policy{MaxAttempts: 1, Timeout: 2 * time.Second}
	for name, c := range map[string]struct {
		policy jobs.Policy
		// end ends the job, which waits for its workflow and which no worker has.
		end   func(b *bundle, id string)
		state models.JobState
	}{
		"cancelled": {FunctionPolicy(0), func(b *bundle, id string) {
			r, err := queue.CancelJob(b.t.Context(), b.Pool, id)
			require.NoError(b.t, err)
			assert.Equal(b.t, queue.Cancelled, r.Result)
		}, models.JobCancelled},
		"cancelled with others": {FunctionPolicy(0), func(b *bundle, id string) {
			b.exec(`SELECT daybook.cancel_jobs(ARRAY[$1], '{pending}')`, id)
		}, models.JobCancelled},
		"removed": {
			FunctionPolicy(0),
			func(b *bundle, id string) { b.exec(`DELETE FROM daybook.jobs WHERE id = $1`, id) }, "",
		},
		"out of time": {brief, nil, models.JobFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			config := TemporalConfig{Timeout: time.Minute, Heartbeat: time.Minute}
			if c.end != nil {
				config.Timeout = time.Second
			}
			// No worker polls for the activity.
			temporal, _ := b.activities(config, c.policy, func(context.Context, picture) error { return nil })
			id := b.enqueue(image())
			b.workUntilStarted(temporal, id)
			if c.end != nil {
				require.Equal(t, models.CodeSnoozed, b.job(id).Code, b.job(id).Error)
				c.end(b, id)
			}
			if c.state != "" {
				assert.Equal(t, c.state, b.job(id).State)
			}
			b.untilEnded(temporal, id, enums.WORKFLOW_EXECUTION_STATUS_CANCELED)
		})
	}
}

// A workflow that does not end when it is cancelled is terminated. A job that is tried again after
// that runs again.
func TestEndedJobTerminatesItsWorkflow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	config := TemporalConfig{CancelGrace: time.Second}
	temporal, poll := b.workflows(config, func(workflow.Context, picture) (string, error) { return "done", nil })
	id := b.enqueue(image())
	b.workUntilStarted(temporal, id)
	require.Equal(t, models.CodeSnoozed, b.job(id).Code)
	_, err := queue.CancelJob(t.Context(), b.Pool, id)
	require.NoError(t, err)
	h := &TemporalHandler{c: TemporalConfig{Client: temporal, Pool: b.Pool}}
	b.beside(h)
	// No worker polls: nothing answers the request to cancel it.
	b.untilEnded(temporal, id, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED)

	_, err = queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{})
	require.NoError(t, err)
	poll()
	b.work()
	assert.Equal(t, "done", result[string](t, b.job(id)))
}

// A workflow that undoes its work when it is cancelled has not done the job, whether it returns nil then
// or fails: a job that is tried again runs it again, also when it is still undoing.
func TestRetryAfterAWorkflowThatUndid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		undone error
		// status is what the workflow has come to when the job is tried again.
		status enums.WorkflowExecutionStatus
	}{
		"completed": {nil, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED},
		"failed":    {errors.New("undone"), enums.WORKFLOW_EXECUTION_STATUS_FAILED},
		"undoing":   {nil, enums.WORKFLOW_EXECUTION_STATUS_RUNNING},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var runs atomic.Int32
			temporal, poll := b.workflows(TemporalConfig{}, func(ctx workflow.Context, _ picture) (string, error) {
				if runs.Add(1) > 1 {
					return "done", nil
				}
				if workflow.Sleep(ctx, time.Hour) == nil {
					return "not cancelled", nil
				}
				apart, _ := workflow.NewDisconnectedContext(ctx)
				workflow.GetSignalChannel(ctx, "undo").Receive(apart, nil)
				return "undone", c.undone
			})
			b.beside(&TemporalHandler{c: TemporalConfig{Client: temporal, Pool: b.Pool}})
			id := b.enqueue(image())
			b.workUntilStarted(temporal, id)
			poll()
			_, err := queue.CancelJob(t.Context(), b.Pool, id)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				d, err := temporal.DescribeWorkflow(t.Context(), WorkflowID(id), "")
				return err == nil && d.RawResponse.GetWorkflowExtendedInfo().GetCancelRequested()
			}, pgtest.Patience, 50*time.Millisecond)
			undo := func() { assert.NoError(t, temporal.SignalWorkflow(t.Context(), WorkflowID(id), "", "undo", nil)) }
			if c.status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
				undo()
			}
			b.untilEnded(temporal, id, c.status)
			_, err = queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{})
			require.NoError(t, err)
			worked := make(chan struct{})
			go func() {
				defer close(worked)
				b.work()
			}()
			if c.status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
				require.Eventually(t, func() bool { return b.count(`SELECT count(*) FROM daybook.jobs WHERE working`) == 1 },
					pgtest.Patience, 10*time.Millisecond)
				undo()
			}
			<-worked
			assert.Equal(t, "done", result[string](t, b.job(id)), b.job(id).Error)
		})
	}
}

// The record of a workflow goes when the workflow has ended, not before a request to start it may
// have arrived.
func TestRecordsOfWorkflowsGo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	temporal, _ := b.workflows(TemporalConfig{}, func(workflow.Context, picture) error { return nil })
	k := &temporalKeeper{client: temporal, pool: b.Pool}
	namespace, err := namespaceOf(t.Context(), temporal)
	require.NoError(t, err)
	require.NotEmpty(t, namespace)
	records := func() int { return b.count(`SELECT count(*) FROM daybook.job_workflows`) }
	id := b.enqueue(image())
	open, err := store.OpenJobWorkflow(t.Context(), b.Pool, id, namespace, time.Hour)
	require.NoError(t, err)
	require.True(t, open)
	require.NoError(t, k.keep(t.Context()))
	assert.Equal(t, 1, records(), "its job goes on")

	_, err = queue.CancelJob(t.Context(), b.Pool, id)
	require.NoError(t, err)
	require.NoError(t, k.keep(t.Context()))
	assert.Equal(t, 1, records(), "the request to start the workflow may be on its way")
	open, err = store.OpenJobWorkflow(t.Context(), b.Pool, id, namespace, time.Hour)
	require.NoError(t, err)
	assert.False(t, open, "no workflow is started for a cancelled job")
	b.exec(`UPDATE daybook.job_workflows SET asked_at = asked_at - interval '1 hour', due_at = now(), namespace = 'other'`)
	require.NoError(t, k.keep(t.Context()))
	assert.Equal(t, 1, records(), "it is of another namespace")
	b.exec(`UPDATE daybook.job_workflows SET namespace = $1`, namespace)
	require.NoError(t, k.keep(t.Context()))
	assert.Zero(t, records())
}

// A job that is tried again before its workflow was cancelled goes on with it.
func TestRetriedJobKeepsItsWorkflow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	temporal, poll := b.workflows(TemporalConfig{},
		func(workflow.Context, picture) (string, error) { return "done", nil })
	id := b.enqueue(image())
	b.workUntilStarted(temporal, id)
	_, err := queue.CancelJob(t.Context(), b.Pool, id)
	require.NoError(t, err)
	_, err = queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{})
	require.NoError(t, err)
	require.NoError(t, (&temporalKeeper{client: temporal, pool: b.Pool}).keep(t.Context()))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.job_workflows WHERE due_at IS NULL`))
	poll()
	b.work()
	assert.Equal(t, "done", result[string](t, b.job(id)))
}

// The workflow hears that its job is to be cancelled before the attempt that waits for it does: the
// attempt starts no other run.
func TestCancelledWorkflowIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	temporal, _ := b.activities(patient, FunctionPolicy(time.Minute), func(context.Context, picture) error { return nil })
	h, err := NewTemporal(TemporalConfig{
		Client: temporal, Pool: b.Pool, Activity: "Resize", TaskQueue: workflowQueue,
		Timeout: time.Minute,
	})
	require.NoError(t, err)
	h.watchEvery = time.Hour
	jobs.RegisterRaw(b.registry, "scale", FunctionPolicy(time.Minute), h.Handle)
	id := b.enqueue(queue.RawPayload{Type: "scale"})
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		b.work()
	}()
	b.untilEnded(temporal, id, enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	_, err = queue.CancelJob(t.Context(), b.Pool, id)
	require.NoError(t, err)
	<-worked
	assert.Equal(t, models.JobCancelled, b.job(id).State)
	b.untilEnded(temporal, id, enums.WORKFLOW_EXECUTION_STATUS_CANCELED)
}

// A retry that takes the request to cancel back has the job worked again, also when the attempt saw
// the request before it started the workflow.
func TestCancellationThatIsTakenBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	temporal, poll := b.workflows(patient, func(workflow.Context, picture) (string, error) { return "done", nil })
	poll()
	h, err := NewTemporal(TemporalConfig{Client: temporal, Pool: b.Pool, Workflow: "Resize", TaskQueue: workflowQueue})
	require.NoError(t, err)
	var calls atomic.Int32
	jobs.RegisterRaw(b.registry, "scale", FunctionPolicy(time.Minute),
		func(ctx context.Context, job *jobs.Job[queue.RawPayload]) error {
			if calls.Add(1) > 1 {
				return h.Handle(ctx, job)
			}
			_, cancelling := queue.CancelJob(ctx, b.Pool, job.ID)
			err := h.Handle(ctx, job)
			_, retrying := queue.RetryJob(ctx, b.Pool, job.ID, queue.RetryOptions{})
			assert.NoError(t, errors.Join(cancelling, retrying))
			return err
		})
	id := b.enqueue(queue.RawPayload{Type: "scale"})
	b.work()
	b.due()
	b.work()
	assert.Equal(t, models.JobCompleted, b.job(id).State, b.job(id).Error)
}
