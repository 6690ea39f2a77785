package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/activities"
)

// DefaultConcurrency is how many lanes run side by side when neither input nor update says otherwise.
const DefaultConcurrency = 3

// ErrTypeInvalidInput is the type of the application error with which a run fails whose input is out of range.
const ErrTypeInvalidInput = "INVALID_INPUT"

// Input starts syncAccountingQueueWorkflow. Every field may be left out: then the environment of the worker
// that answers first decides, and its defaults.
type Input struct {
	// BatchSize is how many jobs are leased at a time, 1 to activities.MaxBatchSize; default 50.
	BatchSize *int `json:"batchSize,omitempty"`
	// PollIntervalSeconds is how long to wait for work when none is due, 1 to activities.MaxPollIntervalSeconds; default 10.
	PollIntervalSeconds *int `json:"pollIntervalSeconds,omitempty"`
	// Concurrency is how many lanes run side by side, 1 to activities.MaxConcurrency; default DefaultConcurrency.
	Concurrency *int `json:"concurrency,omitempty"`
	// ExitWhenEmpty ends the run, with its counts as the result, when nothing is due.
	ExitWhenEmpty bool `json:"exitWhenEmpty,omitempty"`
	// Carried is what an earlier run of the same workflow hands over. Leave it out.
	Carried *State `json:"carried,omitempty"`

	unknown string // a member that no input has
}

// Settings are the settings of a run.
type Settings struct {
	BatchSize           int `json:"batchSize"`
	PollIntervalSeconds int `json:"pollIntervalSeconds"`
	Concurrency         int `json:"concurrency"`
}

// ConfigureInput is the argument of the update "configure"; what is left out stays as it is.
type ConfigureInput struct {
	BatchSize           *int `json:"batchSize,omitempty"`
	PollIntervalSeconds *int `json:"pollIntervalSeconds,omitempty"`
	Concurrency         *int `json:"concurrency,omitempty"`

	unknown string // a member that it does not have
}

// State is what survives continue-as-new.
type State struct {
	Settings Settings `json:"settings"`
	Paused   bool     `json:"paused,omitempty"`
	// PausedSince is when the signal pause came; nil: the run is not paused, or an earlier version of the code was told to pause.
	PausedSince *time.Time   `json:"pausedSince,omitempty"`
	Counts      Counts       `json:"counts"`
	LastTurn    *TurnSummary `json:"lastTurn,omitempty"`
	// IdleSince is since when nothing was due; nil: there is work.
	IdleSince *time.Time `json:"idleSince,omitempty"`
	StartedAt time.Time  `json:"startedAt"`
	// Runs counts the runs of the workflow, this one included.
	Runs int `json:"runs"`
	// LeftBehind names turns that still hold leases, on rows that another transaction held locked.
	LeftBehind []string `json:"leftBehind,omitempty"`
	// Silent names turns whose worker fell silent and that may still hold leases. A run with ExitWhenEmpty waits for them.
	Silent []string `json:"silent,omitempty"`
	// MoreKnown says that the last refill before continue-as-new was full.
	MoreKnown bool `json:"moreKnown,omitempty"`
}

// Counts adds up what turns did since the workflow was started.
type Counts struct {
	Turns       int64 `json:"turns"`
	Leased      int64 `json:"leased"`
	Completed   int64 `json:"completed"`
	Retried     int64 `json:"retried"`
	Rescheduled int64 `json:"rescheduled"`
	Failed      int64 `json:"failed"`
	Cancelled   int64 `json:"cancelled"`
	Lost        int64 `json:"lost"`
	Released    int64 `json:"released"`
}

// add adds what a turn did.
func (c *Counts) add(r activities.ProcessOutput) {
	c.Turns++
	c.addJobs(r)
}

func (c *Counts) addJobs(r activities.ProcessOutput) {
	c.Leased += int64(r.Leased)
	c.Completed += int64(r.Completed)
	c.Retried += int64(r.Retried)
	c.Rescheduled += int64(r.Rescheduled)
	c.Failed += int64(r.Failed)
	c.Cancelled += int64(r.Cancelled)
	c.Lost += int64(r.Lost)
	c.Released += int64(r.Released)
}

// TurnSummary is one finished turn.
type TurnSummary struct {
	ID     string                   `json:"id"`
	Lane   int                      `json:"lane"`
	At     time.Time                `json:"at"`
	Report activities.ProcessOutput `json:"report"`
}

// Status answers the query "status".
type Status struct {
	State
	// Lanes is how many lanes are working on a turn now.
	Lanes int `json:"lanesWorking"`
	// Draining says that no new turn begins: the run is about to end or to continue as new.
	Draining bool `json:"draining,omitempty"`
}

// set changes the settings that the arguments name.
func (s *Settings) set(batch, poll, concurrency *int) {
	for _, f := range []struct{ to, from *int }{{&s.BatchSize, batch}, {&s.PollIntervalSeconds, poll}, {&s.Concurrency, concurrency}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
}

// check refuses an input that a run cannot use. A state that an earlier run of the workflow carried over is in range; one from elsewhere
// may not be.
func (in Input) check() error {
	if err := checkRanges(in.BatchSize, in.PollIntervalSeconds, in.Concurrency); err != nil || in.Carried == nil {
		return err
	}
	s := in.Carried.Settings
	if err := checkRanges(&s.BatchSize, &s.PollIntervalSeconds, &s.Concurrency); err != nil {
		return temporal.NewNonRetryableApplicationError(
			"carried is what a run hands over to the next one: leave it out of the input ("+err.Error()+")", ErrTypeInvalidInput, nil)
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
		{"batchSize", batch, activities.MaxBatchSize},
		{"pollIntervalSeconds", poll, activities.MaxPollIntervalSeconds},
		{"concurrency", concurrency, activities.MaxConcurrency},
	} {
		if f.value != nil && (*f.value < 1 || *f.value > f.max) {
			return temporal.NewNonRetryableApplicationError(
				fmt.Sprintf("%s is %d: want 1 to %d", f.name, *f.value, f.max), ErrTypeInvalidInput, nil)
		}
	}
	return nil
}
