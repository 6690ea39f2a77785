package workflows

import "go.temporal.io/sdk/workflow"

// Names by which the queue of background jobs is started.
const (
	JobsWorkflow  = "syncJobQueueWorkflow"
	JobsTaskQueue = "job-queue"
)

// Jobs is the workflow syncJobQueueWorkflow: the loop, input and messages of the accounting queue, whose activities are
// registered on another task queue by a worker of background jobs.
func Jobs(ctx workflow.Context, in AccountingInput) (*Counts, error) { return Accounting(ctx, in) }
