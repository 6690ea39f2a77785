package listing

import (
	"context"
	"slices"
	"strconv"

	"github.com/daybook-dev/daybook/models"
)

// maxFinds is how many jobs with the same key, and documents with the same id, a search shows.
const maxFinds = 50

// Finds is what has a text as its id, its idempotency key or its document's id.
type Finds struct {
	Jobs       []models.Job
	Accounting []models.AccountingJob
	Tasks      []ListedTask
	// More says that there are others.
	More bool
}

// Find looks for a text as the id or idempotency key of a background job, the id or document of an accounting job and, with tasks, the id of a
// task: in one organization, or in all when org is empty. Each is found by an index.
func (l *Listing) Find(ctx context.Context, org, text string, tasks bool) (Finds, error) {
	var f Finds
	db := l.db.WithContext(ctx)
	var err error
	if f.Jobs, err = find[models.Job]("find jobs", where(db.Omit("payload", "result").Where("id = ?", text), "org_id = ?", org)); err != nil {
		return f, err
	}
	keyed, err := find[models.Job]("find jobs by key", where(db.Omit("payload", "result").Where("idempotency_key = ?", text), "org_id = ?", org).Limit(maxFinds+1))
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
	if id, notNumber := strconv.ParseInt(text, 10, 64); tasks && notNumber == nil {
		f.Tasks, err = l.tasks(ctx, []int64{id})
	}
	return f, err
}
