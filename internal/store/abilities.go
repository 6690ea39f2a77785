package store

import (
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// SourceDaybook is the name of the source that every worker reads: daybook.documents.
const SourceDaybook = "daybook"

// Abilities are what a worker reads and has, by name. It works the accounting jobs of those
// organizations whose source it reads and whose hooks it has, and leaves all others alone.
type Abilities struct {
	Sources, Hooks []string
}

// name is the form of the name of a source, a hook or a fleet. The columns' checks say the same.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)

// CheckName returns ErrInvalid for a text that cannot be the name of a source or a hook.
func CheckName(s string) error { return checkNamed("source or hook", s) }

// CheckFleet returns ErrInvalid for a text that cannot be the name of a fleet, as daybook.fleet_of
// does.
func CheckFleet(s string) error { return checkNamed("fleet", s) }

func checkNamed(what, s string) error {
	if !name.MatchString(s) {
		return Invalid("%q: a %s is named by 1 to 63 of a-z, 0-9, '_', '.' and '-', beginning with a letter or digit", s,
			what)
	}
	return nil
}

// check refuses what is no name.
func (a Abilities) check() error {
	for _, s := range slices.Concat(a.Sources, a.Hooks) {
		if err := CheckName(s); err != nil {
			return err
		}
	}
	return nil
}

// Needs are the source of an organization's documents and the hooks that are called with its
// postings.
type Needs struct {
	Source string   `json:"source"`
	Hooks  []string `json:"hooks"`
}

// NeedsOf reads the needs of each organization, known to Daybook or not, as they are on record now.
func NeedsOf(ctx context.Context, q Querier, orgs []string) (map[string]Needs, error) {
	const stmt = `
SELECT k.id, coalesce(o.source, d.source), coalesce(o.hooks, d.hooks)
  FROM daybook.defaults d
 CROSS JOIN unnest($1::text[]) AS k (id)
  LEFT JOIN daybook.organizations o ON o.id = k.id`
	needs := make(map[string]Needs, len(orgs))
	var org string
	var n Needs
	err := Each(ctx, q, []any{&org, &n.Source, &n.Hooks}, func() error {
		needs[org] = n
		n.Hooks = nil
		return nil
	}, stmt, orgs)
	return needs, Wrap("read the organizations' sources", err)
}

// AccountingFor is the kind Accounting as a worker with these abilities sees it.
func AccountingFor(a Abilities) (*Kind, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	return accounting(a), nil
}

// Left is what a worker leaves to others: jobs that are due, of organizations with the same needs.
type Left struct {
	Needs
	Organizations int64 `json:"organizations"`
	Jobs          int64 `json:"jobs"`
}

// Left counts the jobs that are due and that the worker leaves, by what they need.
func (s *Store) Left(ctx context.Context) ([]Left, error) {
	if left, err := s.HasLeft(ctx); !left {
		return nil, err
	}
	return s.kind.left(ctx, s.pool, "")
}

// leftFor is for how long it is known that nothing is due for other workers, unless there is a
// scan: until the next poll with the default interval.
const leftFor = 11 * time.Second

// HasLeft reports whether there is any job that is due and that the worker leaves. It asks nothing
// while a poll has just seen that there is none. Of the accounting queue it looks first at the
// organizations that name a source or hooks of their own: most often the worker leaves none of
// them. Of background jobs see hasForeign.
func (s *Store) HasLeft(ctx context.Context) (bool, error) {
	const stmt = `
SELECT (EXISTS (SELECT 1 FROM daybook.defaults d WHERE NOT (d.source = ANY (@sources) AND d.hooks <@ @hooks))
        OR EXISTS (
       SELECT 1
         FROM daybook.organizations o
        CROSS JOIN daybook.defaults d
        WHERE (o.source IS NOT NULL OR o.hooks IS NOT NULL)
          AND NOT (coalesce(o.source, d.source) = ANY (@sources) AND coalesce(o.hooks, d.hooks) <@ @hooks)))
   AND EXISTS (
       SELECT 1
         FROM daybook.accounting_work_queue q
        CROSS JOIN daybook.defaults d
         LEFT JOIN daybook.organizations o ON o.id = q.org_id
        WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp() AND o.paused_at IS NULL
          AND NOT (coalesce(o.source, d.source) = ANY (@sources) AND coalesce(o.hooks, d.hooks) <@ @hooks))`
	if s.kind.abilities == nil {
		return s.hasForeign(ctx)
	}
	if s.due.NothingLeft(leftFor) {
		return false, nil
	}
	left, err := inOrder(ctx, s.pool, pgx.RowTo[bool], stmt, s.kind.able(Args{}))
	return len(left) > 0 && left[0], Wrap("look for jobs of other workers", err)
}

// WaitingFor counts the jobs that are due and wait for a source other than daybook, or for hooks,
// by what they need; org empty: of all organizations.
func WaitingFor(ctx context.Context, q Querier, org string) ([]Left, error) {
	return Accounting.left(ctx, q, org)
}

// left counts the jobs that are due and that a worker with the kind's abilities leaves, by what
// they need; org empty: of all organizations. Jobs of paused organizations wait for something else.
func (k *Kind) left(ctx context.Context, q Querier, org string) ([]Left, error) {
	const stmt = `
SELECT coalesce(o.source, d.source), coalesce(o.hooks, d.hooks), count(DISTINCT q.org_id), count(*)
  FROM daybook.accounting_work_queue q
 CROSS JOIN daybook.defaults d
  LEFT JOIN daybook.organizations o ON o.id = q.org_id
 WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp() AND o.paused_at IS NULL AND (@org = '' OR q.org_id = @org)
   AND NOT (coalesce(o.source, d.source) = ANY (@sources) AND coalesce(o.hooks, d.hooks) <@ @hooks)
 GROUP BY 1, 2
 ORDER BY 1, 2`
	left, err := Collect(ctx, q, pgx.RowToStructByPos[Left], stmt, k.able(Args{"org": org}))
	return left, Wrap("count what waits for sources and hooks", err)
}

// NamesOnRecord reads the names of all sources and hooks that the defaults or an organization have.
func NamesOnRecord(ctx context.Context, q Querier) (sources, hooks []string, err error) {
	const stmt = `
SELECT ARRAY(SELECT source FROM daybook.defaults UNION SELECT source FROM daybook.organizations WHERE source IS NOT NULL),
       ARRAY(SELECT unnest(hooks) FROM daybook.defaults UNION SELECT unnest(hooks) FROM daybook.organizations)`
	err = q.QueryRow(ctx, stmt).Scan(&sources, &hooks)
	return sources, hooks, Wrap("read the names of sources and hooks", err)
}
