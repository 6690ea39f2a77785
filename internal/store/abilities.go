package store

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// SourceDaybook is the name of the source that every worker reads: daybook.documents.
const SourceDaybook = "daybook"

// Abilities are what a worker reads and has, by name. It works the accounting jobs of those organizations whose source it
// reads and whose hooks it has, and leaves all others alone.
type Abilities struct {
	Sources, Hooks []string
}

// name is what a source or a hook may be called. The columns' checks say the same.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)

// CheckName returns ErrInvalid for what is no name of a source or a hook.
func CheckName(s string) error {
	if !name.MatchString(s) {
		return fmt.Errorf("%q: a source or hook is named by 1 to 63 of a-z, 0-9, '_', '.' and '-', beginning with a letter or digit: %w", s, ErrInvalid)
	}
	return nil
}

// check refuses names that cannot stand in a statement.
func (a Abilities) check() error {
	for _, s := range slices.Concat(a.Sources, a.Hooks) {
		if err := CheckName(s); err != nil {
			return err
		}
	}
	return nil
}

// needsOfOrganization are an organization's source and hooks, where o is its row or null.
const needsOfOrganization = `coalesce(o.source, (SELECT d.source FROM daybook.defaults d WHERE d.one)) AS source, coalesce(o.hooks, (SELECT d.hooks FROM daybook.defaults d WHERE d.one)) AS hooks`

// covers is the condition that a worker with these abilities may work an organization's documents, where o is its row or
// null. The names are part of the text: it is the same for as long as the worker lives, and every statement about leases
// keeps its parameters for what differs from call to call. CheckName lets nothing through that would have to be quoted.
func (a Abilities) covers() string {
	return `coalesce(o.source, (SELECT d.source FROM daybook.defaults d WHERE d.one)) = ANY (` + literal(a.Sources) + `)` +
		` AND coalesce(o.hooks, (SELECT d.hooks FROM daybook.defaults d WHERE d.one)) <@ ` + literal(a.Hooks)
}

// literal is an array of names in SQL.
func literal(names []string) string { return `'{` + strings.Join(names, ",") + `}'::text[]` }

// Needs are where an organization's documents are, and what its postings are told to.
type Needs struct {
	Source string   `json:"source"`
	Hooks  []string `json:"hooks"`
}

// NeedsOf reads the needs of each organization, known to Daybook or not, as they are on record now.
func NeedsOf(ctx context.Context, q Querier, orgs []string) (map[string]Needs, error) {
	const stmt = `
SELECT k.id, ` + needsOfOrganization + `
  FROM unnest($1::text[]) AS k (id)
  LEFT JOIN daybook.organizations o ON o.id = k.id`
	rows, err := q.Query(ctx, stmt, orgs)
	if err != nil {
		return nil, wrap("read the organizations' sources", err)
	}
	needs := make(map[string]Needs, len(orgs))
	var org string
	var n Needs
	_, err = pgx.ForEachRow(rows, []any{&org, &n.Source, &n.Hooks}, func() error {
		needs[org] = n
		n.Hooks = nil
		return nil
	})
	return needs, wrap("read the organizations' sources", err)
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

// anyLeft is the condition that there are organizations at all which the worker leaves: looking at them costs less than at jobs.
const anyLeft = `(EXISTS (SELECT 1 FROM daybook.organizations o WHERE NOT ({covered}))
        OR EXISTS (SELECT 1 FROM (VALUES (NULL::text, NULL::text[])) AS o (source, hooks) WHERE NOT ({covered})))`

// Left counts the jobs that are due and that the worker leaves, by what they need.
func (s *Store) Left(ctx context.Context) ([]Left, error) {
	const stmt = `
SELECT ` + needsOfOrganization + `, count(DISTINCT q.org_id), count(*)
  FROM {queue} q
  LEFT JOIN daybook.organizations o ON o.id = q.org_id
 WHERE ` + anyLeft + `
   AND q.state = 'pending' AND q.ready_at <= statement_timestamp() AND o.paused_at IS NULL AND NOT ({covered})
 GROUP BY 1, 2
 ORDER BY 1, 2`
	return readLeft(ctx, s.pool, s.kind.sql(stmt))
}

// HasLeft reports whether there is any such job.
func (s *Store) HasLeft(ctx context.Context) (bool, error) {
	const stmt = `
SELECT ` + anyLeft + ` AND EXISTS (
       SELECT 1
         FROM {queue} q
         LEFT JOIN daybook.organizations o ON o.id = q.org_id
        WHERE q.state = 'pending' AND q.ready_at <= statement_timestamp() AND o.paused_at IS NULL AND NOT ({covered}))`
	if s.kind.abilities == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	var left bool
	err := s.pool.QueryRow(ctx, s.kind.sql(stmt)).Scan(&left)
	return left, wrap("look for jobs of other workers", err)
}

// WaitingFor counts the jobs that are due and wait for a source other than daybook, or for hooks, by what they need; org
// empty: of all organizations. Jobs of paused organizations wait for something else.
func WaitingFor(ctx context.Context, q Querier, org string) ([]Left, error) {
	const stmt = `
SELECT ` + needsOfOrganization + `, count(DISTINCT q.org_id), count(*)
  FROM daybook.accounting_work_queue q
  LEFT JOIN daybook.organizations o ON o.id = q.org_id
 WHERE q.state = 'pending' AND q.ready_at <= statement_timestamp() AND o.paused_at IS NULL AND ($1 = '' OR q.org_id = $1)
   AND (coalesce(o.source, (SELECT d.source FROM daybook.defaults d WHERE d.one)) <> 'daybook'
        OR coalesce(o.hooks, (SELECT d.hooks FROM daybook.defaults d WHERE d.one)) <> '{}')
 GROUP BY 1, 2
 ORDER BY 1, 2`
	return readLeft(ctx, q, stmt, org)
}

func readLeft(ctx context.Context, q Querier, stmt string, args ...any) ([]Left, error) {
	rows, err := q.Query(ctx, stmt, args...)
	if err != nil {
		return nil, wrap("count what waits for sources and hooks", err)
	}
	left, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Left, err error) {
		err = row.Scan(&l.Source, &l.Hooks, &l.Organizations, &l.Jobs)
		return l, err
	})
	return left, wrap("count what waits for sources and hooks", err)
}

// NamesOnRecord reads the names of all sources and hooks that the defaults or an organization have.
func NamesOnRecord(ctx context.Context, q Querier) (sources, hooks []string, err error) {
	const stmt = `
SELECT ARRAY(SELECT source FROM daybook.defaults UNION SELECT source FROM daybook.organizations WHERE source IS NOT NULL),
       ARRAY(SELECT unnest(hooks) FROM daybook.defaults UNION SELECT unnest(hooks) FROM daybook.organizations)`
	err = q.QueryRow(ctx, stmt).Scan(&sources, &hooks)
	return sources, hooks, wrap("read the names of sources and hooks", err)
}
