package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// JobStatus is what became of a job.
type JobStatus struct {
	JobID string
	// OrgID is the organization that the job belongs to. A program that answers for several
	// organizations compares it with its caller's.
	OrgID string
	// Type names the handler.
	Type string
	// State: models.JobFailed is the dead letter. A job that ends within some 20 ms of its beginning
	// is never models.JobLeased.
	State models.JobState
	// Attempts counts those since the last RetryReset, the running one included.
	Attempts int
	// NextTry is when a pending job is due, or is to be due when it need not wait for others any
	// more; nil: it is not pending.
	NextTry *time.Time
	// FinishedAt is when the job was completed, failed or cancelled; nil: it is pending or leased.
	FinishedAt *time.Time
	// ErrorCode and Error are the last attempt's; empty: there was none. A job that is tried again
	// has one while it is pending.
	ErrorCode models.ErrorCode
	Error     string
	// Result is what the handler passed to SetResult; nil: nothing, or the job is not completed.
	Result json.RawMessage
	// Progress is what the handler last passed to Progress; nil: nothing.
	Progress json.RawMessage
}

// Ended reports whether nothing more will happen until a retry asks for it, or a worker has the
// handler that was missing.
func (s JobStatus) Ended() bool {
	return s.State == models.JobCompleted || s.State == models.JobFailed || s.State == models.JobCancelled
}

// Completed reports whether the job was done.
func (s JobStatus) Completed() bool { return s.State == models.JobCompleted }

// ReadJobStatus says what became of a job, as q sees it: a transaction also sees its own changes.
//
// Errors: ErrJobNotFound (also when cleaning up has removed the job), ErrNoTransaction (a GORM
// handle outside of one: pass SQL of its db.DB()), ErrNoQuerier, ErrInvalidText.
func ReadJobStatus(ctx context.Context, q Querier, jobID string) (JobStatus, error) {
	if err := cmp.Or(check(q), checkText("job's id", jobID)); err != nil {
		return JobStatus{}, err
	}
	s, err := store.ReadJobStatus(ctx, q, jobID)
	return jobStatus(s), err
}

// WaitJobOptions say how to wait. The zero value of each field is its default.
type WaitJobOptions struct {
	// FirstPoll is the pause after the first read of the status; each further one is half as long
	// again. Default 20 ms.
	FirstPoll time.Duration
	// MaxPoll is the longest pause. Default 2 s.
	MaxPoll time.Duration
}

// WaitJob returns when the job has ended. The returned status says how: completed with its result,
// failed or cancelled. A job that is to be tried again has not ended.
//
// Give ctx a deadline: a job that no worker works does not end, nor does one of a paused
// organization. When ctx ends, WaitJob returns ctx's error and the last status that it read.
//
// It reads the status at growing intervals (see WaitJobOptions), and holds no connection in between
// if q is a pool. For many jobs, query their statuses in bulk instead.
//
// q must not be a transaction: what a transaction enqueues is worked only after its commit.
//
// Errors: ErrInTransaction, and those of ReadJobStatus and ctx.
func WaitJob(ctx context.Context, q Querier, jobID string, o WaitJobOptions) (JobStatus, error) {
	if err := cmp.Or(outsideTransaction(q), checkText("job's id", jobID)); err != nil {
		return JobStatus{}, err
	}
	var last JobStatus
	err := poll(ctx, o.FirstPoll, o.MaxPoll, func() (bool, error) {
		s, err := store.ReadJobStatus(ctx, q, jobID)
		if err != nil {
			return false, err
		}
		last = jobStatus(s)
		if s.Wrote {
			return false, errWrote
		}
		return last.Ended(), nil
	})
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("wait for job %s: %w", jobID, err)
	}
	return last, err
}

func jobStatus(s store.JobStatus) JobStatus {
	out := JobStatus{
		JobID: s.JobID, OrgID: s.OrgID, Type: s.Type, State: s.State, Attempts: s.RunCount, FinishedAt: s.FinishedAt,
		ErrorCode: s.ErrorCode, Error: s.Error, Result: s.Result, Progress: s.Progress,
	}
	if s.State == models.JobPending {
		out.NextTry = &s.ReadyAt
	}
	return out
}
