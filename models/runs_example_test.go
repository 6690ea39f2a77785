package models_test

import (
	"fmt"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workflows"
)

func ExampleTaskQueueOf() {
	fmt.Println(models.TaskQueueOf(workflows.JobsTaskQueue, ""))
	fmt.Println(models.TaskQueueOf(workflows.JobsTaskQueue, "shop"))
	// Output:
	// job-queue
	// job-queue-shop
}

func ExampleWorkflowIDOf() {
	fmt.Println(models.WorkflowIDOf(models.TaskQueueOf(workflows.JobsTaskQueue, "shop")))
	// Output: job-queue-shop-worker-production
}
