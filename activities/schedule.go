package activities

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// Schedules is the activity of periodic jobs. Its method is registered under its name.
type Schedules struct{ pool *pgxpool.Pool }

// NewSchedules returns the activity on a pool, which stays the caller's to close.
func NewSchedules(pool *pgxpool.Pool) *Schedules { return &Schedules{pool: pool} }

// ScheduledJob is the job that each firing of a schedule enqueues. It is kept in Temporal, so its payload names secrets and
// never holds them.
type ScheduledJob struct {
	// ScheduleID is the id under which Temporal knows the schedule.
	ScheduleID string          `json:"scheduleId"`
	OrgID      string          `json:"orgId"`
	Type       string          `json:"type"`
	Payload    json.RawMessage `json:"payload"`
	Priority   models.Priority `json:"priority,omitempty"`
	// MaxAttempts is 0 when the policy of the type's handler says.
	MaxAttempts int `json:"maxAttempts,omitempty"`
	// Unique keeps a firing from enqueuing a job while the one of an earlier firing waits or runs.
	Unique bool `json:"unique,omitempty"`
	// Queue is the named queue of the job; empty: none.
	Queue string `json:"queue,omitempty"`
}

// EnqueueScheduledInput is one firing.
type EnqueueScheduledInput struct {
	Job ScheduledJob `json:"job"`
	// Key is the same for every execution of the firing, and for no other firing.
	Key string `json:"key"`
}

// EnqueueScheduledOutput is the job that the firing led to.
type EnqueueScheduledOutput struct {
	JobID string `json:"jobId"`
	// Duplicate says that the job existed already: the firing was executed before, or the job of an earlier firing is still open.
	Duplicate bool `json:"duplicate,omitempty"`
}

// EnqueueScheduledJob enqueues a firing's job. Further calls with the same key enqueue nothing.
func (s *Schedules) EnqueueScheduledJob(ctx context.Context, in EnqueueScheduledInput) (EnqueueScheduledOutput, error) {
	j := in.Job
	var done queue.EnqueuedJob
	err := store.Begin(ctx, s.pool, func(tx pgx.Tx) (err error) {
		done, err = queue.EnqueueJob(ctx, tx, j.OrgID, queue.RawPayload{Type: j.Type, Data: j.Payload}, queue.JobOptions{
			IdempotencyKey: in.Key, Priority: j.Priority, MaxAttempts: j.MaxAttempts, Unique: j.Unique, Queue: j.Queue,
		})
		return err
	})
	return EnqueueScheduledOutput{JobID: done.ID, Duplicate: done.Duplicate}, translateRefusal(ctx, err)
}
