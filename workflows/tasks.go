package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/models"
)

// Names by which the queue of tasks is started.
const (
	TasksWorkflow  = "syncTaskQueueWorkflow"
	TasksTaskQueue = "task-queue"
)

// Tasks is the workflow syncTaskQueueWorkflow. It takes the same input, runs and returns as
// Accounting does. A worker of tasks registers its activities, on another task queue.
func Tasks(ctx workflow.Context, in Input) (*models.RunCounts, error) { return runQueue(ctx, in) }
