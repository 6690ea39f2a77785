package activities

import (
	"fmt"

	"github.com/caarlos0/env/v11"
)

// JobsSettingsFromEnv reads the environment of a worker of jobs. Backoff is each type's own.
func JobsSettingsFromEnv() (Settings, error) {
	s := struct {
		BatchSize           int `env:"JOB_QUEUE_BATCH_SIZE" envDefault:"50"`
		PollIntervalSeconds int `env:"JOB_QUEUE_POLL_INTERVAL_SECONDS" envDefault:"10"`
	}{}
	if err := env.Parse(&s); err != nil {
		return Settings{}, fmt.Errorf("worker environment: %w", err)
	}
	out := defaultSettings()
	out.BatchSize, out.PollIntervalSeconds = s.BatchSize, s.PollIntervalSeconds
	return out, out.check("JOB_QUEUE")
}
