// Package fulfil is the example of docs/job-or-workflow.md: a background job that starts a Temporal
// workflow and waits for its result, and a step of a workflow that waits for a background job. Its
// test runs both.
package fulfil

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// TaskQueue is where the application's own workflows and activities are worked.
const TaskQueue = "fulfil"

// Ship is the payload of a job that has an order shipped.
type Ship struct {
	OrderID string `json:"order_id"`
}

// JobType implements queue.Payload.
func (Ship) JobType() string { return "ship" }

// Shipping works jobs of the type ship by a workflow.
type Shipping struct {
	Temporal client.Client
	// Patience is how long an attempt waits for the workflow before it puts the job off for Pause.
	Patience, Pause time.Duration
}

// Work is the handler. The id of the workflow is made of the job's, so that it runs once: every
// further attempt meets the workflow that runs, or the result of the one that has ended.
func (s *Shipping) Work(ctx context.Context, job *jobs.Job[Ship]) error {
	run, err := s.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: "ship/" + job.ID, TaskQueue: TaskQueue,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, ShipWorkflow, job.Payload)
	if err != nil {
		return err // Temporal cannot be reached: again by the policy
	}
	waiting, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	var parcel string
	err = run.Get(waiting, &parcel)
	failed := (*temporal.WorkflowExecutionError)(nil)
	switch {
	case errors.As(err, &failed):
		return jobs.Final(err) // the workflow has tried what there was to try
	case err != nil && ctx.Err() == nil:
		return jobs.Snooze(s.Pause) // it goes on without this attempt, which is not counted
	case err != nil:
		return err
	}
	job.SetResult(parcel)
	return nil
}

// ShipWorkflow has many steps, and may take days.
func ShipWorkflow(ctx workflow.Context, order Ship) (parcel string, err error) {
	if err := workflow.Sleep(ctx, time.Second); err != nil {
		return "", err
	}
	return "parcel-of-" + order.OrderID, nil
}

// Charge is the payload of a job that charges a card.
type Charge struct {
	OrderID string `json:"order_id"`
}

// JobType implements queue.Payload.
func (Charge) JobType() string { return "charge" }

// Steps are activities of the application's workflows.
type Steps struct{ DB queue.Querier }

// Charge enqueues a job and waits for it. Each attempt of the activity leads to the same job, by
// its idempotency key.
func (s *Steps) Charge(ctx context.Context, order string) (receipt string, err error) {
	info := activity.GetInfo(ctx)
	job, err := queue.EnqueueJob(ctx, s.DB, "acme", Charge{OrderID: order}, queue.JobOptions{
		IdempotencyKey: info.WorkflowExecution.ID + "/" + info.WorkflowExecution.RunID + "/" + info.ActivityID,
	})
	if err != nil {
		return "", err
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // without heartbeats the server would learn of a worker's end only by the activity's timeout
		for waiting.Err() == nil {
			activity.RecordHeartbeat(waiting, job.ID)
			select {
			case <-waiting.Done():
			case <-time.After(5 * time.Second):
			}
		}
	}()
	status, err := queue.WaitJob(waiting, s.DB, job.ID, queue.WaitJobOptions{})
	if err != nil {
		return "", err
	}
	if !status.Completed() {
		return "", temporal.NewNonRetryableApplicationError(fmt.Sprintf("job %s is %s: %s", job.ID, status.State,
			status.Error), string(status.ErrorCode), nil)
	}
	return string(status.Result), nil
}

// OrderWorkflow has a step that waits for a job.
func OrderWorkflow(ctx workflow.Context, order string) (receipt string, err error) {
	ctx = workflow.WithActivityOptions(ctx,
		workflow.ActivityOptions{StartToCloseTimeout: 24 * time.Hour, HeartbeatTimeout: 30 * time.Second})
	var steps *Steps
	err = workflow.ExecuteActivity(ctx, steps.Charge, order).Get(ctx, &receipt)
	return receipt, err
}
