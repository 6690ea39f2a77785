package answers

import (
	"time"

	"github.com/daybook-dev/daybook/models"
)

// Attempt is one try at a job.
type Attempt struct {
	Number       int       `json:"number" doc:"From 1"`
	Version      int64     `json:"version,omitempty" doc:"The document version, of an accounting job"`
	Outcome      string    `json:"outcome" enum:"completed,retried,rescheduled,failed,cancelled,lost"`
	StartedAt    time.Time `json:"startedAt"`
	EndedAt      time.Time `json:"endedAt"`
	Milliseconds float64   `json:"milliseconds" doc:"How long it took"`
	ErrorCode    string    `json:"errorCode,omitempty"`
	Error        string    `json:"error,omitempty"`
	Worker       string    `json:"worker"`
	TurnID       string    `json:"turnId,omitempty" doc:"The turn that it was part of"`
	// WorkflowRunID is left out for what no workflow works.
	WorkflowRunID string `json:"workflowRunId,omitempty" doc:"The run of the Temporal workflow that it was part of"`
	// Times and FirstStartedAt are left out for one attempt.
	Times          int        `json:"times,omitempty" doc:"How many attempts in a row, all put off for the same reason, this is the last of"`
	FirstStartedAt *time.Time `json:"firstStartedAt,omitempty" doc:"When the first of those began"`
}

// AttemptOf makes the answer of an attempt at an accounting job.
func AttemptOf(a *models.Attempt) Attempt {
	out := Attempt{
		Number: a.Attempt, Version: a.Version, Outcome: string(a.Outcome), StartedAt: a.StartedAt, EndedAt: a.EndedAt,
		Milliseconds: float64(a.EndedAt.Sub(a.StartedAt).Microseconds()) / 1000, ErrorCode: Text(a.ErrorCode),
		Error: Text(a.Error), Worker: a.Worker,
		TurnID: a.TurnID, WorkflowRunID: a.WorkflowRunID, FirstStartedAt: a.FirstStartedAt,
	}
	if a.Times > 1 {
		out.Times = a.Times
	}
	return out
}

// jobAttempt makes the answer of an attempt at a background job.
func jobAttempt(a *models.JobAttempt) Attempt {
	return AttemptOf(&models.Attempt{
		Attempt: a.Attempt, Outcome: a.Outcome, StartedAt: a.StartedAt, EndedAt: a.EndedAt, ErrorCode: a.ErrorCode,
		Error: a.Error, Worker: a.Worker,
		TurnID: a.TurnID, WorkflowRunID: a.WorkflowRunID, Times: a.Times, FirstStartedAt: a.FirstStartedAt,
	})
}
