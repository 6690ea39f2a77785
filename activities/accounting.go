package activities

// AccountingSettingsFromEnv fills in what is 0 from the environment of a worker of the accounting
// queue, or else with the default.
func AccountingSettingsFromEnv(given Settings) (Settings, error) {
	return given.orEnvironment("ACCOUNTING_QUEUE_BATCH_SIZE", "ACCOUNTING_QUEUE_POLL_INTERVAL_SECONDS",
		"ACCOUNTING_QUEUE_RETRY_BASE_SECONDS")
}
