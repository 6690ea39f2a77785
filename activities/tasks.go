package activities

import (
	"fmt"

	"github.com/caarlos0/env/v11"
)

// TasksSettingsFromEnv reads the environment of a worker of tasks. They have no backoff: what is to be done again is a new task.
func TasksSettingsFromEnv() (Settings, error) {
	s := struct {
		BatchSize           int `env:"TASK_QUEUE_BATCH_SIZE" envDefault:"50"`
		PollIntervalSeconds int `env:"TASK_QUEUE_POLL_INTERVAL_SECONDS" envDefault:"10"`
	}{}
	if err := env.Parse(&s); err != nil {
		return Settings{}, fmt.Errorf("worker environment: %w", err)
	}
	out := defaultSettings()
	out.BatchSize, out.PollIntervalSeconds = s.BatchSize, s.PollIntervalSeconds
	return out, out.check("TASK_QUEUE")
}
