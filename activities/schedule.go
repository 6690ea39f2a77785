package activities

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/activity"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// Schedules is the activity of periodic jobs. Its method is registered under its name.
type Schedules struct{ pool *pgxpool.Pool }

// NewSchedules returns the activity on a pool, which stays the caller's to close.
func NewSchedules(pool *pgxpool.Pool) *Schedules { return &Schedules{pool: pool} }

// ScheduledJob is the job that each firing of a schedule enqueues. It is kept in Temporal, so its
// payload names secrets and never holds them.
type ScheduledJob struct {
	// ScheduleID is the id under which Temporal knows the schedule.
	ScheduleID string          `json:"scheduleId"`
	OrgID      string          `json:"orgId"`
	Type       string          `json:"type"`
	Payload    json.RawMessage `json:"payload"`
	Priority   models.Priority `json:"priority,omitempty"`
	// MaxAttempts is 0 when the policy of the type's handler says.
	MaxAttempts int `json:"maxAttempts,omitempty"`
	// One keeps a firing from enqueuing a second job while one of the schedule waits or runs.
	One bool `json:"unique,omitempty"`
	// Again has a running job worked once more after its attempt: then the firing is a request, which
	// is not skipped. It counts with One alone.
	Again bool `json:"again,omitempty"`
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
	// Duplicate says that the job existed already: the firing was executed before, or the job of an
	// earlier firing is still open.
	Duplicate bool `json:"duplicate,omitempty"`
	// Result says what the firing did: enqueued, skipped (the job of an earlier firing is open),
	// unchanged, rescheduled or coalesced.
	Result queue.Result `json:"result,omitempty"`
}

// EnqueueScheduledJob enqueues a firing's job. Further calls with the same key enqueue nothing.
func (s *Schedules) EnqueueScheduledJob(ctx context.Context, in EnqueueScheduledInput) (EnqueueScheduledOutput, error) {
	j := in.Job
	payload := queue.RawPayload{Type: j.Type, Data: j.Payload}
	options := queue.JobOptions{IdempotencyKey: in.Key, Priority: j.Priority, MaxAttempts: j.MaxAttempts, Queue: j.Queue}
	if err := queue.CheckJob(j.OrgID, payload, options); err != nil {
		return EnqueueScheduledOutput{}, translateRefusal(ctx, err)
	}
	raw, err := payload.MarshalJSON()
	if err != nil {
		return EnqueueScheduledOutput{}, translateRefusal(ctx, err)
	}
	job := store.NewJob{
		OrgID: j.OrgID, Type: j.Type, Payload: raw, IdempotencyKey: in.Key, Priority: j.Priority,
		MaxAttempts: j.MaxAttempts,
		Queue:       j.Queue, Unique: j.One && j.Again,
	}
	if j.One && !j.Again {
		job.SkipWhileOpen = "schedule/" + j.ScheduleID
	}
	var done store.EnqueuedJob
	err = store.Begin(ctx, s.pool, func(tx pgx.Tx) (err error) {
		done, err = store.EnqueueJob(ctx, tx, job)
		return err
	})
	out := EnqueueScheduledOutput{JobID: done.JobID, Duplicate: done.Duplicate, Result: queue.Result(done.Result)}
	if out.Result == queue.Skipped {
		activity.GetLogger(ctx).Info("the firing is skipped: the job of an earlier one waits or runs",
			"schedule", j.ScheduleID, "org", j.OrgID, "job", out.JobID)
	}
	return out, translateRefusal(ctx, err)
}
