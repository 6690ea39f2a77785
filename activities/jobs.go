package activities

// JobsSettingsFromEnv fills in what is 0 from the environment of a worker of jobs, or else with the
// default. Backoff is each type's own.
func JobsSettingsFromEnv(given Settings) (Settings, error) {
	return given.orEnvironment("JOB_QUEUE_BATCH_SIZE", "JOB_QUEUE_POLL_INTERVAL_SECONDS", "")
}
