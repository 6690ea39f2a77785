package activities

import (
	"fmt"
	"time"
)

// Limits of the settings, the same for the environment and for the workflow's input.
const (
	MaxBatchSize           = 1000
	MaxPollIntervalSeconds = 3600
	MaxConcurrency         = 100
)

// Settings are the settings of a queue in a worker's environment. They reach the workflow as the result of an activity, so
// that a replay sees what the first execution saw.
type Settings struct {
	// BatchSize is how many jobs are leased at a time, 1 to MaxBatchSize.
	BatchSize int `json:"batchSize"`
	// PollIntervalSeconds is how long to wait for work when none is due, 1 to MaxPollIntervalSeconds.
	PollIntervalSeconds int `json:"pollIntervalSeconds"`
	// RetryBaseSeconds is the first backoff; each later one is three times as long.
	RetryBaseSeconds int `json:"retryBaseSeconds"`
}

// defaultSettings are those of an empty environment.
func defaultSettings() Settings {
	return Settings{BatchSize: 50, PollIntervalSeconds: 10, RetryBaseSeconds: 300}
}

// check names the variables of the environment by their prefix.
func (s Settings) check(prefix string) error {
	for _, v := range []struct {
		name            string
		value, min, max int
	}{
		{"BATCH_SIZE", s.BatchSize, 1, MaxBatchSize},
		{"POLL_INTERVAL_SECONDS", s.PollIntervalSeconds, 1, MaxPollIntervalSeconds},
		{"RETRY_BASE_SECONDS", s.RetryBaseSeconds, 1, 86400},
	} {
		if v.value < v.min || v.value > v.max {
			return fmt.Errorf("%s_%s is %d: want %d to %d", prefix, v.name, v.value, v.min, v.max)
		}
	}
	return nil
}

// RetryBase is RetryBaseSeconds as a duration.
func (s Settings) RetryBase() time.Duration { return time.Duration(s.RetryBaseSeconds) * time.Second }
