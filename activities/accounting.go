package activities

import (
	"fmt"

	"github.com/caarlos0/env/v11"
)

// AccountingSettingsFromEnv reads the environment of a worker of the accounting queue.
func AccountingSettingsFromEnv() (Settings, error) {
	s := struct {
		BatchSize           int `env:"ACCOUNTING_QUEUE_BATCH_SIZE" envDefault:"50"`
		PollIntervalSeconds int `env:"ACCOUNTING_QUEUE_POLL_INTERVAL_SECONDS" envDefault:"10"`
		RetryBaseSeconds    int `env:"ACCOUNTING_QUEUE_RETRY_BASE_SECONDS" envDefault:"300"`
	}{}
	if err := env.Parse(&s); err != nil {
		return Settings{}, fmt.Errorf("worker environment: %w", err)
	}
	out := Settings{BatchSize: s.BatchSize, PollIntervalSeconds: s.PollIntervalSeconds, RetryBaseSeconds: s.RetryBaseSeconds}
	return out, out.check("ACCOUNTING_QUEUE")
}
