package listing

import (
	"context"

	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// foundJobs reads the accounting jobs of a query.
func (l *Listing) foundJobs(ctx context.Context, q *gorm.DB) ([]models.AccountingJob, error) {
	jobs, err := find[models.AccountingJob]("list jobs", q)
	if err == nil {
		err = l.sayWhyBare(ctx, jobs)
	}
	return jobs, err
}

// sayWhyBare adds to completed jobs why their documents are posted without an entry.
func (l *Listing) sayWhyBare(ctx context.Context, jobs []models.AccountingJob) error {
	const stmt = `
SELECT i.org_id, i.document_id, i.no_entries
  FROM daybook.impacts i
 WHERE (i.org_id, i.document_id) IN ? AND i.kind = 'post' AND i.entry_count = 0 AND i.no_entries <> ''
   AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.seq = i.seq + 1)`
	at := map[[2]string]*models.AccountingJob{}
	var keys [][]any
	for i := range jobs {
		if j := &jobs[i]; j.State == models.JobCompleted {
			at[[2]string{j.OrgID, j.DocumentID}] = j
			keys = append(keys, []any{j.OrgID, j.DocumentID})
		}
	}
	if len(keys) == 0 {
		return nil
	}
	var bare []models.Impact
	if err := l.db.WithContext(ctx).Raw(stmt, keys).Scan(&bare).Error; err != nil {
		return store.Wrap("look why documents have no entry", err)
	}
	for _, i := range bare {
		at[[2]string{i.OrgID, i.DocumentID}].NoEntries = i.NoEntries
	}
	return nil
}
