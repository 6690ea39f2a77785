package listing

import (
	"cmp"
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// AccountingJobFilter says which jobs to list. The zero value of each field means any.
type AccountingJobFilter struct {
	OrgID string
	State models.JobState
	// Code is the last error's.
	Code models.ErrorCode
	// Since leaves out what was last changed before, Until what was last changed at or after it.
	Since, Until time.Time
	// Limit is how many are listed at most; default DefaultLimit.
	Limit int
}

// AccountingJobs lists jobs, the last changed one first.
func (l *Listing) AccountingJobs(ctx context.Context, f AccountingJobFilter) ([]models.AccountingJob, error) {
	return l.foundJobs(ctx, l.accountingJobs(ctx, f).Order("updated_at DESC, id DESC"))
}

func (l *Listing) accountingJobs(ctx context.Context, f AccountingJobFilter) *gorm.DB {
	q := l.db.WithContext(ctx).Limit(cmp.Or(f.Limit, store.DefaultLimit))
	q = where(q, "org_id = ?", f.OrgID)
	q = where(q, "state = ?", f.State)
	q = where(q, "last_error_code = ?", f.Code)
	if !f.Since.IsZero() {
		q = q.Where("updated_at >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		q = q.Where("updated_at < ?", f.Until)
	}
	return q
}

// AccountingJob reads the job of a document, or returns ErrJobNotFound.
func (l *Listing) AccountingJob(ctx context.Context, org, document string) (models.AccountingJob, error) {
	return one[models.AccountingJob]("read the job",
		l.db.WithContext(ctx).Where("org_id = ? AND document_id = ?", org, document), store.NoAccountingJob(org, document))
}

// AccountingJobsAfter lists jobs as Jobs does, but in the order of their ids, which is that of
// their creation, the last one first, and only those after a job of that order; the empty id: from
// the beginning.
func (l *Listing) AccountingJobsAfter(ctx context.Context, f AccountingJobFilter,
	after string,
) ([]models.AccountingJob, error) {
	return l.foundJobs(ctx, where(l.accountingJobs(ctx, f).Order("id DESC"), "id < ?", after))
}
