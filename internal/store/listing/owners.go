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
	return store.Owners(ctx, l.pool, store.Jobs.Name, types)
}
