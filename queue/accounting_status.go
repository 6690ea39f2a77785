package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// AccountingJobStatus is what became of a document: how its job stands, and what is posted of it.
type AccountingJobStatus struct {
	JobID string
	// State is the job's.
	State models.JobState
	// Version is the newest document version that was asked for.
	Version int64
	// PostedVersion is the version that is posted now; nil: none. A version whose content came to the
	// same as what was posted before counts as posted.
	PostedVersion *int64
	// LiveImpactID is the impact that posts it; nil: none.
	LiveImpactID *int64
	// Attempts counts those since the last request that set the count to 0, the running one included.
	Attempts int
	// NextTry is when a pending job is due; nil: it is not pending.
	NextTry *time.Time
	// FinishedAt is when the job was completed, failed or cancelled; nil: it is pending or leased.
	FinishedAt *time.Time
	// ErrorCode and Error are the last attempt's; empty: there was none. A job that is tried again
	// has one while it is pending.
	ErrorCode models.ErrorCode
	Error     string
}

// Ended reports whether nothing more will happen until a request asks for it, or the cause of a
// failure is gone.
func (s AccountingJobStatus) Ended() bool {
	return s.State == models.JobCompleted || s.State == models.JobFailed || s.State == models.JobCancelled
}

// Posted reports whether the newest version that was asked for is posted.
func (s AccountingJobStatus) Posted() bool {
	return s.PostedVersion != nil && *s.PostedVersion >= s.Version
}

// ReadAccountingJobStatus says what became of a document, as q sees it: a transaction also sees its
// own changes.
//
// Errors: ErrJobNotFound, ErrEmptyID, ErrIDTooLong, ErrInvalidText, ErrNoTransaction (a GORM handle
// outside of one: pass SQL of its db.DB()).
func ReadAccountingJobStatus(ctx context.Context, q Querier, d Document) (AccountingJobStatus, error) {
	if err := errors.Join(check(q), checkIDs(d.OrgID, d.ID)); err != nil {
		return AccountingJobStatus{}, err
	}
	s, err := store.ReadAccountingJobStatus(ctx, q, d.OrgID, d.ID)
	return accountingJobStatus(s), err
}

// WaitAccountingJobOptions say what to wait for. The zero value waits for the latest request.
type WaitAccountingJobOptions struct {
	// Version is the least document version that must have ended, such as Marked.Version. 0: any.
	Version int64
	// FirstPoll is the pause after the first read of the status; each further one is half as long
	// again. Default 20 ms.
	FirstPoll time.Duration
	// MaxPoll is the longest pause. Default 2 s.
	MaxPoll time.Duration
}

// WaitAccountingJob returns when the job has ended for the version asked for, or for a newer one.
// The returned status says how: posted, failed or cancelled. A newer version that is asked for
// meanwhile is waited for as well, because the older one is then not posted.
//
// Give ctx a deadline: the job of a document that is not ready does not end, nor does one that no
// worker works. When ctx ends, WaitAccountingJob returns ctx's error and the last status that it
// read.
//
// It reads the status at growing intervals (see WaitAccountingJobOptions), and holds no connection
// in between if q is a pool. For many documents, query their statuses in bulk instead.
//
// q must not be a transaction: what a transaction enqueues is worked only after its commit.
//
// Errors: ErrInTransaction, and those of ReadAccountingJobStatus and ctx.
func WaitAccountingJob(ctx context.Context, q Querier, d Document,
	o WaitAccountingJobOptions,
) (AccountingJobStatus, error) {
	if o.Version < 0 {
		return AccountingJobStatus{}, ErrNegativeVersion
	}
	if err := outsideTransaction(q); err != nil {
		return AccountingJobStatus{}, err
	}
	if err := checkIDs(d.OrgID, d.ID); err != nil {
		return AccountingJobStatus{}, err
	}
	var last AccountingJobStatus
	err := poll(ctx, o.FirstPoll, o.MaxPoll, func() (bool, error) {
		s, err := store.ReadAccountingJobStatus(ctx, q, d.OrgID, d.ID)
		if err != nil {
			return false, err
		}
		last = accountingJobStatus(s)
		if s.Wrote {
			return false, errWrote
		}
		return last.Ended() && last.Version >= o.Version, nil
	})
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("wait for document %s of organization %s: %w", d.ID, d.OrgID, err)
	}
	return last, err
}

func accountingJobStatus(s store.AccountingJobStatus) AccountingJobStatus {
	out := AccountingJobStatus{
		JobID: s.JobID, State: s.State, Version: s.VersionHint, PostedVersion: s.PostedVersion,
		LiveImpactID: s.LiveImpactID,
		Attempts:     s.RunCount, FinishedAt: s.FinishedAt, ErrorCode: s.ErrorCode, Error: s.Error,
	}
	if s.State == models.JobPending {
		out.NextTry = &s.ReadyAt
	}
	return out
}
