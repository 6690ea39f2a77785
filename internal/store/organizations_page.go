package store

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// KnownOrganization is an organization's configuration, without its jobs.
type KnownOrganization struct {
	OrgID string `json:"org_id"`
	Name  string `json:"name,omitempty"`
	// ActiveRuleSet is the version that posts; nil: none.
	ActiveRuleSet *int64 `json:"active_rule_set,omitempty"`
	// PausedAt and MaxInFlight are those of Limits.
	PausedAt    *time.Time `json:"paused_at,omitempty"`
	MaxInFlight *int       `json:"max_in_flight,omitempty"`
	// Source and Hooks are what its accounting jobs need of a worker; OwnSource and OwnHooks say that it names them itself, not by the default.
	Source    string   `json:"source"`
	Hooks     []string `json:"hooks"`
	OwnSource bool     `json:"own_source"`
	OwnHooks  bool     `json:"own_hooks"`
}

// OrganizationsPage says which organizations are listed; the zero value means all.
type OrganizationsPage struct {
	// OrgID is the only one; Prefix is what their ids begin with.
	OrgID, Prefix string
	// HeldBack means those that are paused or capped.
	HeldBack bool
	// After continues a list: ids that are greater.
	After string
	// Limit is how many there are at most; 0: DefaultLimit.
	Limit int
}

// KnownOrganizations lists the organizations that have a configuration, in the order of their ids. Other than ListOrganizations it counts no jobs, so it
// costs the same however many there are.
func KnownOrganizations(ctx context.Context, q Querier, p OrganizationsPage) ([]KnownOrganization, error) {
	const stmt = `
SELECT o.id, coalesce(o.name, ''), o.active_rule_set, o.paused_at, o.max_in_flight, coalesce(o.source, d.source), coalesce(o.hooks, d.hooks), o.source IS NOT NULL, o.hooks IS NOT NULL
  FROM daybook.organizations o
 CROSS JOIN (SELECT source, hooks FROM daybook.defaults WHERE one) d
 WHERE (@org = '' OR o.id = @org) AND (@prefix = '' OR starts_with(o.id, @prefix)) AND o.id > @after
   AND (NOT @held::boolean OR o.paused_at IS NOT NULL OR o.max_in_flight IS NOT NULL)
 ORDER BY o.id
 LIMIT @limit`
	list, err := Collect(ctx, q, pgx.RowToStructByPos[KnownOrganization], stmt, Args{
		"org": p.OrgID, "prefix": p.Prefix, "held": p.HeldBack, "after": p.After, "limit": cmp.Or(max(p.Limit, 0), DefaultLimit),
	})
	return list, Wrap("list organizations", err)
}
