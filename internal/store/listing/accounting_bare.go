package listing

import (
	"context"
	"encoding/json"

	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// foundJobs reads the accounting jobs of a query.
func (l *Listing) foundJobs(ctx context.Context, q *gorm.DB) ([]models.AccountingJob, error) {
	jobs, err := find[models.AccountingJob]("list jobs", q)
	if err == nil {
		err = store.Wrap("look why documents have no entry", l.sayWhyBare(ctx, jobs))
	}
	return jobs, err
}

// sayWhyBare adds to completed jobs why their documents are posted without an entry.
func (l *Listing) sayWhyBare(ctx context.Context, jobs []models.AccountingJob) error {
	const stmt = `
SELECT k.n, i.no_entries
  FROM jsonb_to_recordset(?::jsonb) AS k (n integer, org text, document text)
 CROSS JOIN LATERAL (
        SELECT x.kind, x.no_entries FROM daybook.impacts x
         WHERE x.org_id = k.org AND x.document_id = k.document ORDER BY x.seq DESC LIMIT 1) i
 WHERE i.kind = 'post' AND i.no_entries <> ''`
	type key struct {
		N        int    `json:"n"`
		Org      string `json:"org"`
		Document string `json:"document"`
	}
	var keys []key
	for i := range jobs {
		if j := &jobs[i]; j.State == models.JobCompleted {
			keys = append(keys, key{i, j.OrgID, j.DocumentID})
		}
	}
	if len(keys) == 0 {
		return nil
	}
	asked, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	var bare []struct {
		N         int
		NoEntries models.NoEntries
	}
	if err := l.db.WithContext(ctx).Raw(stmt, string(asked)).Scan(&bare).Error; err != nil {
		return err
	}
	for _, b := range bare {
		jobs[b.N].NoEntries = b.NoEntries
	}
	return nil
}
