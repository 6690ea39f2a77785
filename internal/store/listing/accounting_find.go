package listing

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// FoundAccountingJobs is a page of a search for accounting jobs.
type FoundAccountingJobs struct {
	Jobs []models.AccountingJob
	// Next is the cursor of the next page; empty: this is the last one.
	Next string
	// Searched is as that of FoundJobs; failed jobs are looked at by when they failed.
	Searched *time.Time
}

// FindAccountingJobs lists accounting jobs as FindJobs lists background jobs: failed ones by when
// they failed, all others by when they were enqueued, the last one first. document is one
// document's id; empty: any. f.Limit is how many a page has. cursor is a page's Next.
func (l *Listing) FindAccountingJobs(ctx context.Context, f AccountingJobFilter, document,
	cursor string,
) (found FoundAccountingJobs, err error) {
	err = l.bounded(ctx, func(l *Listing) error {
		found, err = l.findAccountingJobs(ctx, f, document, cursor)
		return err
	})
	return found, err
}

func (l *Listing) findAccountingJobs(ctx context.Context, f AccountingJobFilter, document,
	cursor string,
) (FoundAccountingJobs, error) {
	var found FoundAccountingJobs
	limit := cmp.Or(f.Limit, store.DefaultLimit)
	f.Limit = limit + 1
	byFailure := f.State == models.JobFailed
	q := l.accountingJobs(ctx, f)
	switch {
	case document != "" && f.OrgID != "":
		q = q.Where("document_id = ?", document)
	case document != "":
		q = q.Where("id IN ("+jobsOfDocument+")", document)
	}
	var floor *models.AccountingJob
	switch open, err := l.fewOpen(ctx, f.State, countOpenAccounting); {
	case err != nil:
		return found, err
	case document != "":
	case open:
		q = q.Where("id IN (WITH open AS MATERIALIZED (SELECT o.id FROM daybook.accounting_work_queue o WHERE o.state = "+
			"?) SELECT id FROM open)", string(f.State))
	case f.OrgID == "" && f.Code == "" && f.Since.IsZero() && f.Until.IsZero() && (byFailure || f.State == ""):
	default:
		if floor, err = l.accountingFloor(ctx, byFailure, cursor); err != nil {
			return found, err
		}
	}
	if floor != nil && byFailure {
		q = q.Where("updated_at >= ? AND (updated_at > ? OR id >= ?)", floor.UpdatedAt, floor.UpdatedAt, floor.ID)
	} else if floor != nil {
		q = q.Where("id >= ?", floor.ID)
	}
	q, err := accountingAfter(q, byFailure, cursor)
	if err != nil {
		return found, err
	}
	if found.Jobs, err = l.foundJobs(ctx, q); err != nil {
		return found, err
	}
	switch {
	case len(found.Jobs) > limit:
		found.Jobs = found.Jobs[:limit]
		found.Next = writeCursor(found.Jobs[limit-1].ID, &found.Jobs[limit-1].UpdatedAt, byFailure)
	case floor != nil:
		found.Next, found.Searched = writeCursor(floor.ID, &floor.UpdatedAt, byFailure), &floor.UpdatedAt
		if !byFailure {
			found.Searched = new(idTime(floor.ID))
		}
	}
	return found, nil
}

// jobsOfDocument finds the jobs of a document whose organization is not known. The index begins
// with the organization: each of the first 20,000 is probed.
const jobsOfDocument = `
SELECT q.id
  FROM (SELECT o.id FROM daybook.organizations o ORDER BY o.id LIMIT 20000) o
 CROSS JOIN LATERAL (SELECT q.id FROM daybook.accounting_work_queue q WHERE q.org_id = o.id AND q.document_id = ? OFFSET 0) q`

var countOpenAccounting = map[models.JobState]string{
	models.JobPending: `SELECT count(*) FROM (SELECT FROM daybook.accounting_work_queue WHERE state = 'pending' LIMIT ?) o`,
	models.JobLeased:  `SELECT count(*) FROM (SELECT FROM daybook.accounting_work_queue WHERE state = 'leased' LIMIT ?) o`,
}

// accountingFloor is jobsFloor for accounting jobs.
func (l *Listing) accountingFloor(ctx context.Context, byFailure bool, cursor string) (*models.AccountingJob, error) {
	q := l.db.WithContext(ctx).Model(&models.AccountingJob{})
	if byFailure {
		q = q.Where("state = 'failed'").Select("id, updated_at")
	} else {
		q = q.Select("id")
	}
	q, err := accountingAfter(q, byFailure, cursor)
	if err != nil {
		return nil, err
	}
	floor, err := atMostOne[models.AccountingJob](q.Offset(l.scan - 1))
	return floor, store.Wrap("look how far a search goes", err)
}

// accountingAfter is jobsAfter for accounting jobs.
func accountingAfter(q *gorm.DB, byFailure bool, cursor string) (*gorm.DB, error) {
	return after(q, byFailure, cursor, "updated_at DESC, id DESC", "updated_at <= ? AND (updated_at < ? OR id < ?)")
}

// AccountingJobByID reads an accounting job of an organization, or of any when org is empty;
// ErrJobNotFound when there is none.
func (l *Listing) AccountingJobByID(ctx context.Context, org, id string) (models.AccountingJob, error) {
	return one[models.AccountingJob]("read the job", where(l.db.WithContext(ctx).Where("id = ?", id), "org_id = ?", org),
		fmt.Errorf("%w: there is no accounting job %s; check the id", store.ErrJobNotFound, id))
}
