package store

import "context"

// NeedsSet is the result of a change of an organization's needs, or of the defaults.
type NeedsSet struct {
	// Changed is false when the request changed nothing.
	Changed bool `json:"changed"`
	// Returned counts the jobs that are pending again: they had failed because the source before did not know their documents.
	Returned int `json:"returned"`
}

// SetSource puts on record from which source an organization's documents are read; empty: the default.
func SetSource(ctx context.Context, q Querier, org, source string) (NeedsSet, error) {
	return setNeeds(ctx, q, "set the source of organization "+org, `SELECT changed, returned FROM daybook.set_source($1, nullif($2, ''))`, org, source)
}

// SetHooks puts on record which hooks are called with an organization's postings; nil: the default, empty: none.
func SetHooks(ctx context.Context, q Querier, org string, hooks []string) (NeedsSet, error) {
	return setNeeds(ctx, q, "set the hooks of organization "+org, `SELECT changed, 0 FROM daybook.set_hooks($1, $2)`, org, hooks)
}

// SetDefaultSource puts on record from which source the documents of organizations that name none are read.
func SetDefaultSource(ctx context.Context, q Querier, source string) (NeedsSet, error) {
	return setNeeds(ctx, q, "set the default source", `SELECT changed, returned FROM daybook.set_default_source($1)`, source)
}

// SetDefaultHooks puts on record which hooks are called with the postings of organizations that name none.
func SetDefaultHooks(ctx context.Context, q Querier, hooks []string) (NeedsSet, error) {
	return setNeeds(ctx, q, "set the default hooks", `SELECT changed, 0 FROM daybook.set_default_hooks($1)`, hooks)
}

func setNeeds(ctx context.Context, q Querier, doing, stmt string, values ...any) (NeedsSet, error) {
	var s NeedsSet
	err := q.QueryRow(ctx, stmt, values...).Scan(&s.Changed, &s.Returned)
	return s, Wrap(doing, err)
}
