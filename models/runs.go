package models

import "time"

// What the workflow that runs a queue shows of itself: the names and types that programs use which
// watch runs or send them messages, and which need no workflow code for that.

// The names of the signals, the query and the update of a queue's workflow.
const (
	SignalPause  = "pause"
	SignalResume = "resume"
	// SignalFound comes from the worker: a turn has found work. Its argument is FoundWork.
	SignalFound     = "found"
	QueryStatus     = "status"
	UpdateConfigure = "configure"
)

// ScheduledJobWorkflow is the type of the workflow that each firing of a schedule starts.
const ScheduledJobWorkflow = "enqueueScheduledJob"

// The fields of a run's memo. Temporal shows the memo and answers questions about it
// (DescribeWorkflow) also while no worker runs, other than current details and the query
// status, which a worker must answer.
const (
	// MemoKind is the kind of queue: accounting, jobs or tasks.
	MemoKind = "kind"
	// MemoAbout says in one line what the run is for.
	MemoAbout = "about"
	// MemoState is MemoStateRunning or MemoStatePaused.
	MemoState = "state"
	// MemoPausedSince is since when the run is paused, by RFC 3339; missing: it is not paused, or was
	// so when it was started.
	MemoPausedSince = "pausedSince"
	// MemoSettings are the RunSettings of the run.
	MemoSettings = "settings"
)

// The values of MemoState.
const (
	MemoStateRunning = "running"
	MemoStatePaused  = "paused"
)

// Limits of the settings, the same for the environment and for the workflow's input.
const (
	MaxBatchSize           = 1000
	MaxPollIntervalSeconds = 3600
	MaxConcurrency         = 100
)

// DefaultConcurrency is how many lanes run side by side when neither input nor update says
// otherwise.
const DefaultConcurrency = 3

// TaskQueueOf returns the Temporal task queue of a kind for the workers of a fleet: the kind's own
// (AccountingTaskQueue, JobsTaskQueue and TasksTaskQueue of package workflows) for the fleet
// without a name, and one of the fleet's own, such as "job-queue-shop", for another.
func TaskQueueOf(taskQueue, fleet string) string {
	if fleet == "" {
		return taskQueue
	}
	return taskQueue + "-" + fleet
}

// WorkflowIDOf returns the id of the workflow that runs a kind on a task queue, as the
// documentation starts it, such as "job-queue-worker-production".
func WorkflowIDOf(taskQueue string) string { return taskQueue + "-worker-production" }

// RunSettings are the settings of a run.
type RunSettings struct {
	BatchSize           int `json:"batchSize"`
	PollIntervalSeconds int `json:"pollIntervalSeconds"`
	Concurrency         int `json:"concurrency"`
}

// RunState is what survives continue-as-new.
type RunState struct {
	Settings RunSettings `json:"settings"`
	Paused   bool        `json:"paused,omitempty"`
	// PausedSince is when the signal pause came; nil: the run is not paused, or an earlier version of
	// the code was told to pause.
	PausedSince *time.Time   `json:"pausedSince,omitempty"`
	Counts      RunCounts    `json:"counts"`
	LastTurn    *TurnSummary `json:"lastTurn,omitempty"`
	// IdleSince is since when nothing was due; nil: there is work.
	IdleSince *time.Time `json:"idleSince,omitempty"`
	StartedAt time.Time  `json:"startedAt"`
	// Runs counts the runs of the workflow, this one included.
	Runs int `json:"runs"`
	// LeftBehind names turns that still hold leases, on rows that another transaction held locked.
	LeftBehind []string `json:"leftBehind,omitempty"`
	// Silent names turns whose worker fell silent and that may still hold leases. A run with
	// ExitWhenEmpty waits for them.
	Silent []string `json:"silent,omitempty"`
	// MoreKnown says that the last refill before continue-as-new was full.
	MoreKnown bool `json:"moreKnown,omitempty"`
}

// RunCounts adds up what turns did since the workflow was started.
type RunCounts struct {
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

// TurnSummary is one finished turn.
type TurnSummary struct {
	ID     string     `json:"id"`
	Lane   int        `json:"lane"`
	At     time.Time  `json:"at"`
	Report TurnReport `json:"report"`
}

// FoundWork is the argument of SignalFound.
type FoundWork struct {
	TurnID string `json:"turnId"`
	// Full says that there is probably more than one lane takes.
	Full bool `json:"full,omitempty"`
}

// RunStatus answers the query "status".
type RunStatus struct {
	RunState
	// Lanes is how many lanes are working on a turn now.
	Lanes int `json:"lanesWorking"`
	// Draining says that no new turn begins: the run is about to end or to continue as new.
	Draining bool `json:"draining,omitempty"`
}

// TurnReport counts what a turn did.
type TurnReport struct {
	Leased      int `json:"leased"`
	Completed   int `json:"completed"`
	Retried     int `json:"retried"`
	Rescheduled int `json:"rescheduled"`
	Failed      int `json:"failed"`
	Cancelled   int `json:"cancelled"`
	// Lost counts attempts that ended with their worker.
	Lost int `json:"lost"`
	// Released counts jobs that were given back uncounted.
	Released int `json:"released"`
	// More says that the last refill was full: there is probably more to do.
	More bool `json:"more,omitempty"`
	// LeftBehind names the turn when rows that another transaction held locked are still leased by
	// it.
	LeftBehind []string `json:"leftBehind,omitempty"`
	// Silent names turns of earlier activities that fell silent and still hold leases: these are
	// worked there, or reclaimed.
	Silent []string `json:"silent,omitempty"`
	// Stopped says that the turn was told to stop.
	Stopped bool `json:"stopped,omitempty"`
}

// TurnTrouble is what a turn's heartbeats say while the database fails its statements.
type TurnTrouble struct {
	// Says is the newest error, Since when the first came, by the worker's clock.
	Says  string    `json:"says"`
	Since time.Time `json:"since"`
}

// TurnHeartbeat is the part of a turn's heartbeat that others than the activity's next attempt
// read.
type TurnHeartbeat struct {
	// Trouble is nil while the database answers.
	Trouble *TurnTrouble `json:"trouble,omitempty"`
}
