package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/models"
)

// AccountingJobFilter says which jobs to list. The zero value of each field means any.
type AccountingJobFilter struct {
	OrgID string
	State models.JobState
	// Code is the last error's.
	Code models.ErrorCode
	// Since leaves out what was last changed before.
	Since time.Time
	// Limit is how many are listed at most; default DefaultLimit.
	Limit int
}

// AccountingJobs lists jobs, the last changed one first.
func (l *Listing) AccountingJobs(ctx context.Context, f AccountingJobFilter) ([]models.AccountingJob, error) {
	jobs := []models.AccountingJob{}
	return jobs, wrap("list jobs", l.accountingJobs(ctx, f).Order("updated_at DESC, id DESC").Find(&jobs).Error)
}

func (l *Listing) accountingJobs(ctx context.Context, f AccountingJobFilter) *gorm.DB {
	q := l.db.WithContext(ctx).Limit(cmp.Or(f.Limit, DefaultLimit))
	if f.OrgID != "" {
		q = q.Where("org_id = ?", f.OrgID)
	}
	if f.State != "" {
		q = q.Where("state = ?", f.State)
	}
	if f.Code != "" {
		q = q.Where("last_error_code = ?", f.Code)
	}
	if !f.Since.IsZero() {
		q = q.Where("updated_at >= ?", f.Since)
	}
	return q
}

// AccountingJob reads the job of a document, or returns ErrJobNotFound.
func (l *Listing) AccountingJob(ctx context.Context, org, document string) (models.AccountingJob, error) {
	var job models.AccountingJob
	err := l.db.WithContext(ctx).Where("org_id = ? AND document_id = ?", org, document).Take(&job).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return job, fmt.Errorf("%w: organization %s has none for document %s; enqueue the document first", ErrJobNotFound, org, document)
	}
	return job, wrap("read the job", err)
}

// AccountingJobsAfter lists jobs as Jobs does, but in the order of their ids, which is that of their creation, the last one
// first, and only those after a job of that order; the empty id: from the beginning.
func (l *Listing) AccountingJobsAfter(ctx context.Context, f AccountingJobFilter, after string) ([]models.AccountingJob, error) {
	q := l.accountingJobs(ctx, f).Order("id DESC")
	if after != "" {
		q = q.Where("id < ?", after)
	}
	jobs := []models.AccountingJob{}
	return jobs, wrap("list jobs", q.Find(&jobs).Error)
}
