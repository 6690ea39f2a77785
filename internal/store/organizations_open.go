package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// OpenJobs counts an organization's jobs of one queue that are not done.
type OpenJobs struct {
	// Kind is the queue's.
	Kind    string `json:"kind"`
	Pending int64  `json:"pending"`
	Leased  int64  `json:"leased"`
	// Failed jobs are dead letters.
	Failed int64 `json:"failed"`
}

// OrganizationSettings say how an organization's jobs are worked.
type OrganizationSettings struct {
	// ActiveRuleSet is the version that posts; nil: none.
	ActiveRuleSet *int64 `json:"active_rule_set,omitempty"`
	// PausedAt, MaxInFlight, Rate and RateSeconds are those of Limits.
	PausedAt    *time.Time `json:"paused_at,omitempty"`
	MaxInFlight *int       `json:"max_in_flight,omitempty"`
	Rate        *int       `json:"rate,omitempty"`
	RateSeconds *float64   `json:"rate_seconds,omitempty"`
	// Source and Hooks are what its accounting jobs need of a worker, its own or the default's.
	Source string   `json:"source"`
	Hooks  []string `json:"hooks"`
}

// OrganizationSummary is an organization with the jobs that it has open.
type OrganizationSummary struct {
	OrgID string `json:"org_id"`
	// Known is false for an organization that has jobs only: it has no rules, no accounts and no
	// name.
	Known bool   `json:"known"`
	Name  string `json:"name,omitempty"`
	OrganizationSettings
	// Queues counts its jobs queue by queue, in the order of OrganizationQueues, also where it has
	// none.
	Queues []OpenJobs `json:"queues" db:"-"`
}

// organizationSpan are the ids after one and up to another; the zero value is all of them.
type organizationSpan struct {
	after string
	// last is nil for a span to the end.
	last *string
}

// ListOrganizations lists the organizations that Daybook knows or has an open or failed job of, in
// the order of the ids: the first limit ones whose ids come after one; limit 0: all of them. All
// figures are of one moment. Jobs of other organizations are not counted.
func ListOrganizations(ctx context.Context, db Beginner, after string, limit int) ([]OrganizationSummary, error) {
	const stmt = `
SELECT coalesce(o.id, k.id) AS org_id, o.id IS NOT NULL AS known, coalesce(o.name, '') AS name, o.active_rule_set, o.paused_at, o.max_in_flight, o.rate, o.rate_seconds,
       coalesce(o.source, (SELECT d.source FROM daybook.defaults d WHERE d.one)) AS source, coalesce(o.hooks, (SELECT d.hooks FROM daybook.defaults d WHERE d.one)) AS hooks
  FROM (SELECT * FROM daybook.organizations o WHERE o.id > $2 AND ($3::text IS NULL OR o.id <= $3)) o
  FULL JOIN (SELECT DISTINCT id FROM unnest($1::text[]) AS u (id)) k ON k.id = o.id
 ORDER BY 1`
	var list []OrganizationSummary
	err := ReadSnapshot(ctx, db, func(tx pgx.Tx) error {
		in, err := pageOfOrganizations(ctx, tx, after, limit)
		if err != nil {
			return err
		}
		queues := OrganizationQueues()
		open := make([]map[string]OpenJobs, len(queues))
		orgs := []string{}
		for i, q := range queues {
			if open[i], err = q.open(ctx, tx, in); err != nil {
				return err
			}
			orgs = slices.AppendSeq(orgs, maps.Keys(open[i]))
		}
		if list, err = Collect(ctx, tx, pgx.RowToStructByName[OrganizationSummary], stmt, orgs, in.after,
			in.last); err != nil {
			return err
		}
		for i := range list {
			for n, q := range queues {
				jobs := open[n][list[i].OrgID]
				jobs.Kind = q.Name
				list[i].Queues = append(list[i].Queues, jobs)
			}
		}
		return nil
	})
	return list, Wrap("list organizations", err)
}

// pageOfOrganizations is the span of the first limit organizations after one; limit 0: all of them.
func pageOfOrganizations(ctx context.Context, tx pgx.Tx, after string, limit int) (organizationSpan, error) {
	in := organizationSpan{after: after}
	if limit <= 0 {
		return in, nil
	}
	const known = `SELECT o.id FROM daybook.organizations o WHERE o.id > $1 ORDER BY o.id LIMIT $2`
	ids, err := Collect(ctx, tx, pgx.RowTo[string], known, after, limit)
	if err != nil {
		return in, err
	}
	for _, q := range OrganizationQueues() {
		more, err := q.withOpenJobs(ctx, tx, in, limit)
		if err != nil {
			return in, err
		}
		ids = append(ids, more...)
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) >= limit {
		in.last = &ids[limit-1]
	}
	return in, nil
}

// withOpenJobs are the first organizations of a span that have a job of the kind that is not done,
// in the order of their ids.
func (k *Kind) withOpenJobs(ctx context.Context, tx pgx.Tx, in organizationSpan, limit int) ([]string, error) {
	const stmt = `
SELECT DISTINCT org_id
  FROM (SELECT org_id FROM daybook.jobs WHERE state = 'pending'
         UNION ALL
        SELECT org_id FROM daybook.jobs WHERE state = 'leased'
         UNION ALL
        SELECT org_id FROM daybook.jobs WHERE state = 'failed') open
 WHERE org_id > $1 AND ($2::text IS NULL OR org_id <= $2)
 ORDER BY org_id
 LIMIT $3`
	return Collect(ctx, tx, pgx.RowTo[string], k.sql(stmt), in.after, in.last, limit)
}

// open implements operations. Each state on its own is counted in that state's partial index,
// however many completed jobs there are.
func (k *Kind) open(ctx context.Context, tx pgx.Tx, in organizationSpan) (map[string]OpenJobs, error) {
	const stmt = `
SELECT org_id, sum(pending)::bigint, sum(leased)::bigint, sum(failed)::bigint
  FROM (SELECT org_id, count(*) AS pending, 0 AS leased, 0 AS failed FROM daybook.jobs WHERE state = 'pending' GROUP BY org_id
         UNION ALL
        SELECT org_id, 0, count(*), 0 FROM daybook.jobs WHERE state = 'leased' GROUP BY org_id
         UNION ALL
        SELECT org_id, 0, 0, count(*) FROM daybook.jobs WHERE state = 'failed' GROUP BY org_id) counted
 WHERE org_id > $1 AND ($2::text IS NULL OR org_id <= $2)
 GROUP BY org_id`
	all := map[string]OpenJobs{}
	var org string
	var jobs OpenJobs
	err := Each(ctx, tx, []any{&org, &jobs.Pending, &jobs.Leased, &jobs.Failed}, func() error {
		all[org] = jobs
		return nil
	}, k.sql(stmt), in.after, in.last)
	return all, err
}

// KnownOrganization is an organization's configuration, without its jobs.
type KnownOrganization struct {
	OrgID string `json:"org_id"`
	Name  string `json:"name,omitempty"`
	OrganizationSettings
	// OwnSource and OwnHooks say that it names its source and hooks itself, not by the default.
	OwnSource bool `json:"own_source"`
	OwnHooks  bool `json:"own_hooks"`
}

// OrganizationsPage says which organizations are listed; the zero value means all.
type OrganizationsPage struct {
	// OrgID is the only one; Prefix is what their ids begin with.
	OrgID, Prefix string
	// HeldBack means those that are paused or capped, or have a rate.
	HeldBack bool
	// After continues a list: ids that are greater.
	After string
	// Limit is how many there are at most; 0: DefaultLimit.
	Limit int
}

// KnownOrganizations lists the organizations that have a configuration, in the order of their ids.
// Other than ListOrganizations it counts no jobs, so it costs the same however many there are.
func KnownOrganizations(ctx context.Context, q Querier, p OrganizationsPage) ([]KnownOrganization, error) {
	const stmt = `
SELECT o.id, coalesce(o.name, ''), o.active_rule_set, o.paused_at, o.max_in_flight, o.rate, o.rate_seconds, coalesce(o.source, d.source), coalesce(o.hooks, d.hooks), o.source IS NOT NULL, o.hooks IS NOT NULL
  FROM daybook.organizations o
 CROSS JOIN (SELECT source, hooks FROM daybook.defaults WHERE one) d
 WHERE (@org = '' OR o.id = @org) AND (@prefix = '' OR starts_with(o.id, @prefix)) AND o.id > @after
   AND (NOT @held::boolean OR o.paused_at IS NOT NULL OR o.max_in_flight IS NOT NULL OR o.rate IS NOT NULL)
 ORDER BY o.id
 LIMIT @limit`
	list, err := Collect(ctx, q, pgx.RowToStructByPos[KnownOrganization], stmt, Args{
		"org": p.OrgID, "prefix": p.Prefix, "held": p.HeldBack, "after": p.After,
		"limit": cmp.Or(max(p.Limit, 0), DefaultLimit),
	})
	return list, Wrap("list organizations", err)
}
