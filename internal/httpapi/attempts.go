package httpapi

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
	// Times and FirstStartedAt are left out for one attempt.
	Times          int        `json:"times,omitempty" doc:"How many attempts in a row, all put off for the same reason, this is the last of"`
	FirstStartedAt *time.Time `json:"firstStartedAt,omitempty" doc:"When the first of those began"`
}

func attempt(a *models.Attempt) Attempt {
	out := Attempt{
		Number: a.Attempt, Version: a.Version, Outcome: string(a.Outcome), StartedAt: a.StartedAt, EndedAt: a.EndedAt,
		Milliseconds: float64(a.EndedAt.Sub(a.StartedAt).Microseconds()) / 1000, ErrorCode: text(a.ErrorCode), Error: text(a.Error), Worker: a.Worker,
		FirstStartedAt: a.FirstStartedAt,
	}
	if a.Times > 1 {
		out.Times = a.Times
	}
	return out
}
