package activities

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// Settings are the settings of a queue in a worker's environment. They reach the workflow as the
// result of an activity, so that a replay sees what the first execution saw.
type Settings struct {
	// BatchSize is how many jobs are leased at a time, 1 to MaxBatchSize.
	BatchSize int `json:"batchSize"`
	// PollIntervalSeconds is how long to wait for work when none is due, 1 to MaxPollIntervalSeconds.
	PollIntervalSeconds int `json:"pollIntervalSeconds"`
	// RetryBaseSeconds is the first backoff; each later one is three times as long.
	RetryBaseSeconds int `json:"retryBaseSeconds"`
}

// orEnvironment gives the fields that are 0 what the environment of a worker says, or else their
// defaults. A field that is given has no variable read, and an empty name is no variable.
func (s Settings) orEnvironment(batchSize, pollInterval, retryBase string) (Settings, error) {
	for _, v := range []struct {
		value          *int
		name           string
		otherwise, max int
	}{
		{&s.BatchSize, batchSize, 50, models.MaxBatchSize},
		{&s.PollIntervalSeconds, pollInterval, 10, models.MaxPollIntervalSeconds},
		{&s.RetryBaseSeconds, retryBase, 300, 86400},
	} {
		if *v.value != 0 {
			continue
		}
		*v.value = v.otherwise
		if text := os.Getenv(v.name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > v.max {
				return s, fmt.Errorf("the worker's environment: %s is %q: want a number from 1 to %d", v.name, text, v.max)
			}
			*v.value = n
		}
	}
	return s, nil
}

// RetryBase is RetryBaseSeconds as a duration.
func (s Settings) RetryBase() time.Duration { return time.Duration(s.RetryBaseSeconds) * time.Second }
