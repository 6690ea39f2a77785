package listing

import (
	"context"
	"slices"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// ownersOf returns who owns which of the types of background jobs.
func (l *Listing) ownersOf(ctx context.Context, jobs []models.Job) (map[string]string, error) {
	types := make([]string, len(jobs))
	for i := range jobs {
		types[i] = jobs[i].Type
	}
	slices.Sort(types)
	if types = slices.Compact(types); len(types) == 0 {
		return map[string]string{}, nil
	}
	// By the listing's own handle, which is the transaction of a search: a second connection might
	// have to be waited for.
	var rows []struct{ Type, Owner string }
	q := l.db.WithContext(ctx).Table("daybook.job_types").Select("type",
		"owner").Where("kind = ? AND type IN ? AND owner <> ''", store.Jobs.Name, types)
	if err := q.Scan(&rows).Error; err != nil {
		return nil, store.Wrap("read the owners of types", err)
	}
	owners := make(map[string]string, len(rows))
	for _, r := range rows {
		owners[r.Type] = r.Owner
	}
	return owners, nil
}
