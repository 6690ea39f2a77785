package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/models"
)

// Names by which the accounting queue is started.
const (
	AccountingWorkflow  = "syncAccountingQueueWorkflow"
	AccountingTaskQueue = "accounting-queue"
)

// Accounting is the workflow syncAccountingQueueWorkflow. It returns only when it is cancelled,
// when its input is out of range, or when ExitWhenEmpty is set and nothing is due.
func Accounting(ctx workflow.Context, in Input) (*models.RunCounts, error) { return runQueue(ctx, in) }
