package workflows

// TaskQueueOf returns the Temporal task queue of a kind for the workers of a fleet: the kind's own (AccountingTaskQueue, JobsTaskQueue, TasksTaskQueue)
// for the fleet without a name, and one of the fleet's own, such as "job-queue-shop", for another.
func TaskQueueOf(taskQueue, fleet string) string {
	if fleet == "" {
		return taskQueue
	}
	return taskQueue + "-" + fleet
}

// IDOf returns the id of the workflow that runs a kind on a task queue, as the documentation starts it, such as "job-queue-worker-production".
func IDOf(taskQueue string) string { return taskQueue + "-worker-production" }
