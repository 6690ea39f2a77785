package handlers

import (
	"encoding/json"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const (
	// ActivityWorkflow is the type of Daybook's own workflow that runs the activity of a job.
	ActivityWorkflow = "daybookJobActivity"
	// ActivityTaskQueue is where Daybook's workers poll for that workflow (TemporalHandler.Run). The
	// activity's own worker polls its own task queue.
	ActivityTaskQueue = "daybook-job-activities"

	defaultActivityTimeout = 10 * time.Minute
	// maxActivityAttempts bounds what Temporal repeats within one attempt at a job.
	maxActivityAttempts = 100
)

// jobActivity is the first argument of ActivityWorkflow; the second is the job's payload.
type jobActivity struct {
	Activity  string `json:"activity"`
	TaskQueue string `json:"taskQueue"`
	// StartToClose and Heartbeat are in milliseconds; 0: no heartbeat is asked for.
	StartToClose int64 `json:"startToCloseMs"`
	Heartbeat    int64 `json:"heartbeatMs,omitempty"`
	Attempts     int32 `json:"attempts"`
}

// runJobActivity is the workflow daybookJobActivity: it runs one activity, whose result or failure
// is its own. When it is cancelled, it waits until the activity has ended. A change of what it does
// needs workflow.GetVersion, and a further recorded history in testdata.
func runJobActivity(ctx workflow.Context, a jobActivity, payload json.RawMessage) (converter.RawValue, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           a.TaskQueue,
		StartToCloseTimeout: time.Duration(a.StartToClose) * time.Millisecond,
		HeartbeatTimeout:    time.Duration(a.Heartbeat) * time.Millisecond,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: a.Attempts},
		WaitForCancellation: true,
	})
	var result converter.RawValue
	err := workflow.ExecuteActivity(ctx, a.Activity, payload).Get(ctx, &result)
	return result, err
}
