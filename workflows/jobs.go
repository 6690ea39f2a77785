package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/models"
)

// Names by which the queue of background jobs is started.
const (
	JobsWorkflow  = "syncJobQueueWorkflow"
	JobsTaskQueue = "job-queue"
)

// Jobs is the workflow syncJobQueueWorkflow. It takes the same input, runs and returns as
// Accounting does. A worker of jobs registers its activities, on another task queue.
func Jobs(ctx workflow.Context, in Input) (*models.RunCounts, error) { return runQueue(ctx, in) }
