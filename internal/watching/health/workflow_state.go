package health

import (
	"strings"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Workflow names the workflow that runs a kind of queue.
type Workflow struct {
	Kind string `json:"kind"`
	// ID is the workflow's, Type its type, and TaskQueue Temporal's task queue.
	ID        string `json:"workflow_id"`
	Type      string `json:"type"`
	TaskQueue string `json:"task_queue"`
	// Exact: no run under another id is meant.
	Exact bool `json:"-"`

	// fleet is whose it is, own the task queue of the kind.
	fleet, own string
}

// Documented are the workflows as the documentation starts them, one a kind: those of the fleet
// without a name.
func Documented() []Workflow { return OfFleet("") }

// OfFleet are the workflows of a fleet, one a kind.
func OfFleet(fleet string) []Workflow {
	var all []Workflow
	for _, q := range store.Queues() {
		taskQueue := models.TaskQueueOf(q.TaskQueue, fleet)
		all = append(all, Workflow{
			Kind: q.Name, ID: models.WorkflowIDOf(taskQueue), Type: q.WorkflowType,
			TaskQueue: taskQueue, fleet: fleet, own: q.TaskQueue,
		})
	}
	return all
}

// isOthers reports whether a task queue is that of another fleet. One of a name that no fleet has
// may be any worker's: it counts as the fleet's without a name.
func (w Workflow) isOthers(taskQueue string) bool {
	if w.fleet != "" {
		return taskQueue != w.TaskQueue
	}
	return w.own != "" && strings.HasPrefix(taskQueue, w.own+"-")
}

// RunState is how a workflow stands.
type RunState string

// The states of a workflow. Ended is every end but that of a run that continued as new;
// WorkflowState.Ended says which.
const (
	NeverStarted RunState = "not_started"
	Running      RunState = "running"
	Ended        RunState = "ended"
)

// WorkflowState is how a kind's workflow stands, as Temporal says.
type WorkflowState struct {
	Workflow
	State RunState `json:"state"`
	RunID string   `json:"run_id,omitempty"`
	// Others are the ids of further workflows of the kind that run.
	Others []string `json:"other_workflow_ids,omitempty"`
	// Unpaused is one of them that is not paused; empty: there is none.
	Unpaused string `json:"-"`
	// StartedAt is when the run began, ClosedAt when it ended; Ended says how ("cancelled", "failed"
	// …), and Failure why.
	StartedAt *time.Time `json:"started_at,omitempty"`
	ClosedAt  *time.Time `json:"closed_at,omitempty"`
	Ended     string     `json:"ended,omitempty"`
	Failure   string     `json:"failure,omitempty"`
	// Paused says that no turn begins, PausedSince since when, and Settings what the run works with:
	// as a worker answers, or else as the run's memo has it, which is there also while no worker
	// runs.
	Paused      bool                `json:"paused,omitempty"`
	PausedSince *time.Time          `json:"paused_since,omitempty"`
	Settings    *models.RunSettings `json:"settings,omitempty"`
	// Answered says that a worker answered for the workflow: then Status is its answer. Silent is why
	// none did.
	Answered bool              `json:"answered"`
	Status   *models.RunStatus `json:"status,omitempty"`
	Silent   string            `json:"silent,omitempty"`
	// Retrying are activities that have failed, and are tried again.
	Retrying []RetryingActivity `json:"retrying,omitempty"`
	// Trouble is what the database answers a worker's turn that waits for it; nil: no turn waits so.
	Trouble *models.TurnTrouble `json:"trouble,omitempty"`
	// Workers are those that polled the task queue lately, the latest first.
	Workers []PollingWorker `json:"workers"`
}

// Live counts the workers that poll: one that runs does so once a minute. now is the time of the
// report. Temporal noted the polls by its own clock, which says nothing of the time: when a worker
// has just answered, the last poll stands for the present, whatever now is.
func (s WorkflowState) Live(now time.Time) (n int) {
	if s.Answered && len(s.Workers) > 0 {
		now = s.Workers[0].LastPoll
	}
	for _, w := range s.Workers {
		if now.Sub(w.LastPoll) < pollsEvery {
			n++
		}
	}
	return n
}

// Runs are the ids of all the workflows of the kind that run.
func (s WorkflowState) Runs() []string {
	if s.State != Running {
		return nil
	}
	return append([]string{s.ID}, s.Others...)
}

// pollsEvery is within what time a worker that lives polls again: a poll ends after a minute.
const pollsEvery = 75 * time.Second

// RetryingActivity is an activity that failed and is tried again.
type RetryingActivity struct {
	Type    string    `json:"type"`
	Attempt int32     `json:"attempt"`
	Failure string    `json:"failure"`
	Since   time.Time `json:"since"`
}

// PollingWorker is a worker as Temporal knows it.
type PollingWorker struct {
	// Name is its identity: the worker's name, or host and process id.
	Name     string    `json:"name"`
	LastPoll time.Time `json:"last_poll"`
}
