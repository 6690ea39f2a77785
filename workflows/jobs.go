package workflows

import "go.temporal.io/sdk/workflow"

// Names by which the queue of background jobs is started.
const (
	JobsWorkflow  = "syncJobQueueWorkflow"
	JobsTaskQueue = "job-queue"
)

// Jobs is the workflow syncJobQueueWorkflow. It runs and returns as Accounting does; its activities are registered on another task
// queue, by a worker of jobs.
func Jobs(ctx workflow.Context, in Input) (*Counts, error) { return runQueue(ctx, in) }
