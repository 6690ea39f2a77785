package inspect

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/models"
)

// AccountingFilter says which accounting jobs are meant. The zero value of each field means any.
type AccountingFilter struct {
	OrgID string
	State models.JobState
	// Code is the last error's.
	Code models.ErrorCode
	// Since and Until bound when the job was last changed: from Since on, before Until.
	Since, Until time.Time
}

// AccountingPage is a part of a list of accounting jobs.
type AccountingPage struct {
	Jobs []models.AccountingJob
	// Next is the cursor of the next page; empty: this is the last one.
	Next string
}

// AccountingJobs lists accounting jobs by when they were first enqueued, the last one first.
// Errors: ErrInvalid.
func (r *Reader) AccountingJobs(ctx context.Context, f AccountingFilter, p Page) (AccountingPage, error) {
	limit, err := r.limit(p)
	if err != nil {
		return AccountingPage{}, err
	}
	var after string
	if p.Cursor != "" && cursor.Read(p.Cursor, &after) != nil {
		return AccountingPage{}, store.Refuse(ErrInvalid, "the cursor is not one of this list",
			"leave it out to begin anew")
	}
	jobs, err := r.listing.AccountingJobsAfter(ctx, listing.AccountingJobFilter{
		OrgID: f.OrgID, State: f.State, Code: f.Code, Since: f.Since, Until: f.Until, Limit: limit + 1,
	}, after)
	var page AccountingPage
	page.Jobs, page.Next = cursor.Page(limit, jobs, func(j models.AccountingJob) any { return j.ID })
	return page, err
}

// AccountingDetail is the job of a document, with its history.
type AccountingDetail struct {
	models.AccountingJob
	// Attempts are the last ones, the newest first, DefaultLimit at most.
	Attempts []models.Attempt
}

// AccountingJob reads the job of a document. Errors: ErrJobNotFound.
func (r *Reader) AccountingJob(ctx context.Context, org, document string) (AccountingDetail, error) {
	var d AccountingDetail
	err := r.made()
	if err != nil {
		return d, err
	}
	if d.AccountingJob, err = r.listing.AccountingJob(ctx, org, document); err != nil {
		return d, err
	}
	d.Attempts, err = r.listing.Attempts(ctx, d.ID, listing.HistoryPage{Limit: DefaultLimit})
	return d, err
}
