package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/models"
)

// ScheduledJobWorkflow is the type of the workflow that each firing of a schedule starts.
const ScheduledJobWorkflow = models.ScheduledJobWorkflow

// scheduledStartTime is what Temporal's schedules set on the workflows that they start: the
// firing's nominal time, to the second.
var scheduledStartTime = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

// enqueueTimeout bounds one try at enqueuing; it is tried until the database is there.
const enqueueTimeout = 30 * time.Second

// ScheduledJob is the workflow enqueueScheduledJob: it enqueues one job, under a key made of the
// schedule and the firing's nominal time, so that a firing that is retried, reset or doubled leads
// to one job.
func ScheduledJob(ctx workflow.Context, job activities.ScheduledJob) (activities.EnqueueScheduledOutput, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: enqueueTimeout,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2,
			MaximumInterval: time.Minute,
		},
		Summary: "enqueue a job of type " + job.Type,
	})
	var out activities.EnqueueScheduledOutput
	var a *activities.Schedules
	err := workflow.ExecuteActivity(ctx, a.EnqueueScheduledJob,
		activities.EnqueueScheduledInput{Job: job, Key: firingKey(ctx, job.ScheduleID)}).Get(ctx, &out)
	return out, err
}

// firingKey is the idempotency key of a firing. A workflow that no schedule started has its id in
// place of the time.
func firingKey(ctx workflow.Context, schedule string) string {
	if t, ok := workflow.GetTypedSearchAttributes(ctx).GetTime(scheduledStartTime); ok {
		return "schedule/" + schedule + "/" + t.UTC().Format(time.RFC3339)
	}
	return "schedule/" + schedule + "/" + workflow.GetInfo(ctx).WorkflowExecution.ID
}
