package activities

// TasksSettingsFromEnv fills in what is 0 from the environment of a worker of tasks, or else with
// the default. They have no backoff: what is to be done again is a new task.
func TasksSettingsFromEnv(given Settings) (Settings, error) {
	return given.orEnvironment("TASK_QUEUE_BATCH_SIZE", "TASK_QUEUE_POLL_INTERVAL_SECONDS", "")
}
