package workflows_test

import (
	"fmt"

	"github.com/daybook-dev/daybook/workflows"
)

func ExampleTaskQueueOf() {
	fmt.Println(workflows.TaskQueueOf(workflows.JobsTaskQueue, ""))
	fmt.Println(workflows.TaskQueueOf(workflows.JobsTaskQueue, "shop"))
	// Output:
	// job-queue
	// job-queue-shop
}

func ExampleIDOf() {
	fmt.Println(workflows.IDOf(workflows.TaskQueueOf(workflows.JobsTaskQueue, "shop")))
	// Output: job-queue-shop-worker-production
}
