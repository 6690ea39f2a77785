package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/models"
)

// ErrTypeInvalidInput is the type of the application error with which a run fails whose input is
// out of range.
const ErrTypeInvalidInput = "INVALID_INPUT"

// Input starts syncAccountingQueueWorkflow. Every field may be left out: then the environment of
// the worker that answers first decides, and its defaults.
type Input struct {
	// BatchSize is how many jobs are leased at a time, 1 to activities.MaxBatchSize; default 50.
	BatchSize *int `json:"batchSize,omitempty"`
	// PollIntervalSeconds is how long to wait for work when none is due, 1 to
	// activities.MaxPollIntervalSeconds; default 10.
	PollIntervalSeconds *int `json:"pollIntervalSeconds,omitempty"`
	// Concurrency is how many lanes run side by side, 1 to activities.MaxConcurrency; default
	// DefaultConcurrency.
	Concurrency *int `json:"concurrency,omitempty"`
	// ExitWhenEmpty ends the run, with its counts as the result, when nothing is due.
	ExitWhenEmpty bool `json:"exitWhenEmpty,omitempty"`
	// Carried is what an earlier run of the same workflow hands over. Leave it out.
	Carried *models.RunState `json:"carried,omitempty"`

	unknown string // a member that no input has
}

// ConfigureInput is the argument of the update "configure"; what is left out stays as it is.
type ConfigureInput struct {
	BatchSize           *int `json:"batchSize,omitempty"`
	PollIntervalSeconds *int `json:"pollIntervalSeconds,omitempty"`
	Concurrency         *int `json:"concurrency,omitempty"`

	unknown string // a member that it does not have
}

// addTurn adds what a turn did.
func addTurn(c *models.RunCounts, r models.TurnReport) {
	c.Turns++
	addJobs(c, r)
}

func addJobs(c *models.RunCounts, r models.TurnReport) {
	c.Leased += int64(r.Leased)
	c.Completed += int64(r.Completed)
	c.Retried += int64(r.Retried)
	c.Rescheduled += int64(r.Rescheduled)
	c.Failed += int64(r.Failed)
	c.Cancelled += int64(r.Cancelled)
	c.Lost += int64(r.Lost)
	c.Released += int64(r.Released)
}

// setSettings changes the settings that the arguments name.
func setSettings(s *models.RunSettings, batch, poll, concurrency *int) {
	for _, f := range []struct{ to, from *int }{
		{&s.BatchSize, batch},
		{&s.PollIntervalSeconds, poll},
		{&s.Concurrency, concurrency},
	} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
}

// check refuses an input that a run cannot use. A state that an earlier run of the workflow carried
// over is in range; one from elsewhere may not be.
func (in Input) check() error {
	if err := checkRanges(in.BatchSize, in.PollIntervalSeconds, in.Concurrency); err != nil || in.Carried == nil {
		return err
	}
	s := in.Carried.Settings
	if err := checkRanges(&s.BatchSize, &s.PollIntervalSeconds, &s.Concurrency); err != nil {
		return temporal.NewNonRetryableApplicationError(
			"carried is what a run hands over to the next one: leave it out of the input ("+err.Error()+")",
			ErrTypeInvalidInput, nil)
	}
	return nil
}

// checkRanges names the first argument that is out of its range; nil is in range.
func checkRanges(batch, poll, concurrency *int) error {
	for _, f := range []struct {
		name  string
		value *int
		max   int
	}{
		{"batchSize", batch, models.MaxBatchSize},
		{"pollIntervalSeconds", poll, models.MaxPollIntervalSeconds},
		{"concurrency", concurrency, models.MaxConcurrency},
	} {
		if f.value != nil && (*f.value < 1 || *f.value > f.max) {
			return temporal.NewNonRetryableApplicationError(
				fmt.Sprintf("%s is %d: want 1 to %d", f.name, *f.value, f.max), ErrTypeInvalidInput, nil)
		}
	}
	return nil
}
