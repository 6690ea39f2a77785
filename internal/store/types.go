package store

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// TypeOnRecord is a type of jobs as the workers that have a handler for it put it on record.
type TypeOnRecord struct {
	// Kind is the name of a queue. Type is empty for the kind accounting, which has one row.
	Kind string `json:"kind"`
	Type string `json:"type,omitempty"`
	// AliasOf is the type whose handler works it, if Type is another name of that.
	AliasOf string `json:"aliasOf,omitempty"`
	// Owner is the team or contact responsible; empty: no worker has said.
	Owner string `json:"owner,omitempty"`
	// MaxAttempts is how many attempts a job has that says nothing else; 0: the kind's rule holds.
	MaxAttempts int `json:"maxAttempts,omitempty"`
	// Timeout is how long an attempt may take; 0: it is not said.
	Timeout time.Duration `json:"-"`
	// Parallel is how many a worker works side by side, or, of a bulk type, how many share a call.
	Parallel int  `json:"parallel,omitempty"`
	Bulk     bool `json:"bulk,omitempty"`
	// Secrets are members of payloads and results that are not shown to people.
	Secrets []string `json:"secrets,omitempty"`
	// Worker is the one that wrote the row last, at LastSeen: workers do so every minute.
	Worker    string    `json:"worker"`
	FirstSeen time.Time `json:"firstSeen"`
	LastSeen  time.Time `json:"lastSeen"`
}

// TypesOnRecord returns the types of all kinds, in the order of kinds and names.
func TypesOnRecord(ctx context.Context, q Querier) ([]TypeOnRecord, error) {
	const stmt = `
SELECT kind, type, alias_of, owner, max_attempts, make_interval(secs => timeout_seconds) AS timeout, parallel, bulk, worker, first_seen, last_seen
  FROM daybook.job_types
 ORDER BY kind, type`
	types, err := Collect(ctx, q, pgx.RowToStructByNameLax[TypeOnRecord], stmt)
	return types, Wrap("read the types on record", err)
}

// Owners returns who owns which of the named types of a kind. Types without an owner are left out.
func Owners(ctx context.Context, q Querier, kind string, types []string) (map[string]string, error) {
	const stmt = `SELECT type, owner FROM daybook.job_types WHERE kind = $1 AND type = ANY ($2) AND owner <> ''`
	owners := map[string]string{}
	var jobType, owner string
	err := Each(ctx, q, []any{&jobType, &owner}, func() error {
		owners[jobType] = owner
		return nil
	}, stmt, kind, types)
	return owners, Wrap("read the owners of types", err)
}

// SecretsOf returns the members of a background job's payload and result that its type's handler declares not to be shown.
func SecretsOf(ctx context.Context, q Querier, jobType string) ([]string, error) {
	const stmt = `SELECT coalesce((SELECT secrets FROM daybook.job_types WHERE kind = 'jobs' AND type = $1), '{}')`
	return value[[]string](ctx, q, "read what a type keeps secret", stmt, jobType)
}

// typeColumns are types as the arguments of a statement.
type typeColumns struct {
	types, aliases, owners []string
	attempts, parallel     []int32
	timeouts               []float64
	bulk                   []bool
	// secrets are the names of each type, with newlines between them.
	secrets []string
}

func columnsOf(types []TypeOnRecord) typeColumns {
	c := typeColumns{types: []string{}, aliases: []string{}, owners: []string{}, attempts: []int32{}, parallel: []int32{}, timeouts: []float64{}, bulk: []bool{}, secrets: []string{}}
	for _, t := range types {
		c.types, c.aliases, c.owners = append(c.types, t.Type), append(c.aliases, t.AliasOf), append(c.owners, clip(t.Owner))
		c.attempts, c.parallel = append(c.attempts, int32(t.MaxAttempts)), append(c.parallel, int32(t.Parallel))
		c.secrets = append(c.secrets, strings.Join(t.Secrets, "\n"))
		c.timeouts, c.bulk = append(c.timeouts, t.Timeout.Seconds()), append(c.bulk, t.Bulk)
	}
	return c
}

// NoteTypes puts types of the store's kind on record, under the name of a worker that has handlers for them.
func (s *Store) NoteTypes(ctx context.Context, worker string, types []TypeOnRecord) error {
	const stmt = `SELECT daybook.note_job_types(@kind, @worker, @types, @aliases, @owners, @attempts, @timeouts, @parallel, @bulk, @secrets)::text`
	c := columnsOf(types)
	_, err := byKey(ctx, s.pool, ignoreRow, stmt, Args{
		"kind": s.kind.Name, "worker": worker, "types": c.types, "aliases": c.aliases, "owners": c.owners, "attempts": c.attempts, "timeouts": c.timeouts,
		"parallel": c.parallel, "bulk": c.bulk, "secrets": c.secrets,
	})
	return Wrap("put types on record", err)
}

// NoteTypes puts types of tasks on record, under the name of a worker that has processors for them.
func (q *TaskQueue) NoteTypes(ctx context.Context, worker string, types []TypeOnRecord) error {
	const stmt = `SELECT queues.note_task_types(@worker, @types, @owners, @timeouts, @parallel)::text`
	c := columnsOf(types)
	_, err := askTasks(ctx, q, ignoreRow, stmt, Args{"worker": worker, "types": c.types, "owners": c.owners, "timeouts": c.timeouts, "parallel": c.parallel})
	return Wrap("put types of tasks on record", err)
}
