package store

import "context"

// NeedsSet is what a change of an organization's needs, or of the defaults, led to.
type NeedsSet struct {
	// Changed is false when all was so already.
	Changed bool `json:"changed"`
	// Returned counts the jobs that are pending again: they had failed because the source before did not know their documents.
	Returned int `json:"returned"`
}

// SetSource puts on record which source an organization's documents are read from; empty: the default.
func SetSource(ctx context.Context, q Querier, org, source string) (NeedsSet, error) {
	var s NeedsSet
	err := q.QueryRow(ctx, `SELECT changed, returned FROM daybook.set_source($1, nullif($2, ''))`, org, source).Scan(&s.Changed, &s.Returned)
	return s, wrap("set the source of organization "+org, err)
}

// SetHooks puts on record which hooks an organization's postings are told to; nil: the default, empty: none.
func SetHooks(ctx context.Context, q Querier, org string, hooks []string) (NeedsSet, error) {
	var s NeedsSet
	err := q.QueryRow(ctx, `SELECT changed FROM daybook.set_hooks($1, $2)`, org, hooks).Scan(&s.Changed)
	return s, wrap("set the hooks of organization "+org, err)
}

// SetDefaultSource puts on record which source documents are read from of organizations that name none.
func SetDefaultSource(ctx context.Context, q Querier, source string) (NeedsSet, error) {
	var s NeedsSet
	err := q.QueryRow(ctx, `SELECT changed, returned FROM daybook.set_default_source($1)`, source).Scan(&s.Changed, &s.Returned)
	return s, wrap("set the default source", err)
}

// SetDefaultHooks puts on record which hooks are told of organizations that name none.
func SetDefaultHooks(ctx context.Context, q Querier, hooks []string) (NeedsSet, error) {
	var s NeedsSet
	err := q.QueryRow(ctx, `SELECT changed FROM daybook.set_default_hooks($1)`, hooks).Scan(&s.Changed)
	return s, wrap("set the default hooks", err)
}
