package listing

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/models"
)

// StartAccountingRetry chooses the failed accounting jobs that f means, in batches that
// store.RunBulk makes pending as store.MarkAccountingJobPending does, after a delay. f.State and
// f.Limit are not looked at. With dryRun they are counted, and the operation has no id.
func (l *Listing) StartAccountingRetry(ctx context.Context, f AccountingJobFilter, delay time.Duration,
	dryRun bool,
) (models.BulkOperation, error) {
	mode := "now"
	op := models.BulkOperation{
		Kind: models.KindAccounting, Action: models.BulkRetry, Mode: &mode,
		States: models.Words{string(models.JobFailed)},
	}
	if seconds := delay.Seconds(); seconds > 0 {
		mode, op.DelaySeconds = "later", &seconds
	}
	if f.OrgID != "" {
		op.OrgID = &f.OrgID
	}
	f.State, f.Limit = models.JobFailed, -1
	return l.beginBulk(ctx, dryRun, op, BulkEdit{},
		func(l *Listing) *gorm.DB { return l.accountingJobs(ctx, f).Model(&models.AccountingJob{}) })
}
