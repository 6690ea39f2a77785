package listing

import (
	"context"
	"database/sql"
	"slices"
	"strconv"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// maxFinds is how many jobs with the same key, and documents with the same id, a search shows.
const maxFinds = 50

// Finds is what has a text as its id, its idempotency key or its document's id.
type Finds struct {
	Jobs       []models.Job
	Accounting []models.AccountingJob
	// Documents are those that have no job, or none any more, but a row of daybook.documents or
	// impacts.
	Documents []DocumentPlace
	Tasks     []ListedTask
	// More says that there are others.
	More bool
}

// DocumentPlace names a document.
type DocumentPlace struct{ OrgID, ID string }

// Find looks for a text as the id or idempotency key of a background job, the id or document of an
// accounting job and, with tasks, the id of a task: in one organization, or in all when org is
// empty. Each is found by an index.
func (l *Listing) Find(ctx context.Context, org, text string, tasks bool) (Finds, error) {
	var f Finds
	db := l.db.WithContext(ctx)
	var err error
	if f.Jobs, err = find[models.Job]("find jobs",
		where(db.Omit("payload", "result").Where("id = ?", text), "org_id = ?", org)); err != nil {
		return f, err
	}
	keyed, err := find[models.Job]("find jobs by key",
		where(db.Omit("payload", "result").Where("idempotency_key = ?", text), "org_id = ?", org).Limit(maxFinds+1))
	if err != nil {
		return f, err
	}
	if f.More = len(keyed) > maxFinds; f.More {
		keyed = keyed[:maxFinds]
	}
	for _, j := range keyed {
		if j.ID != text {
			f.Jobs = append(f.Jobs, j)
		}
	}
	byID, err := find[models.AccountingJob]("find accounting jobs", where(db.Where("id = ?", text), "org_id = ?", org))
	if err != nil {
		return f, err
	}
	documents, err := l.FindAccountingJobs(ctx, AccountingJobFilter{OrgID: org, Limit: maxFinds}, text, "")
	if err != nil {
		return f, err
	}
	f.More = f.More || documents.Next != ""
	f.Accounting = slices.Concat(byID, documents.Jobs)
	if len(documents.Jobs) == 0 {
		if f.Documents, err = l.documentsWithoutJob(ctx, org, text); err != nil {
			return f, err
		}
	}
	if id, notNumber := strconv.ParseInt(text, 10, 64); tasks && notNumber == nil {
		f.Tasks, err = l.tasks(ctx, []int64{id})
	}
	return f, err
}

// documentsWithoutJob finds the documents with an id that are posted, or in daybook.documents.
func (l *Listing) documentsWithoutJob(ctx context.Context, org, document string) (found []DocumentPlace, err error) {
	const stmt = `
SELECT o.id AS org_id, @document AS id
  FROM (SELECT o.id FROM daybook.organizations o WHERE @org = '' OR o.id = @org ORDER BY o.id LIMIT 20000) o
 CROSS JOIN LATERAL (
       SELECT FROM (
              (SELECT FROM daybook.impacts i WHERE i.org_id = o.id AND i.document_id = @document LIMIT 1)
               UNION ALL
              (SELECT FROM daybook.documents d WHERE d.org_id = o.id AND d.id = @document LIMIT 1)) x
        LIMIT 1) x
 ORDER BY o.id
 LIMIT @most`
	err = l.bounded(ctx, func(l *Listing) error {
		return l.db.Raw(stmt, sql.Named("org", org), sql.Named("document", document),
			sql.Named("most", maxFinds)).Scan(&found).Error
	})
	return found, store.Wrap("find documents", err)
}
