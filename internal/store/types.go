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
	// Encrypts says that members of its payloads are encrypted, which workers by SQL cannot read.
	Encrypts bool `json:"-"`
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
	owners, err := Pairs[string, string](ctx, q, stmt, kind, types)
	return owners, Wrap("read the owners of types", err)
}

// HasProcessor reports whether a worker has put on record in the last five minutes that it has a
// processor for tasks of the type.
func HasProcessor(ctx context.Context, q Querier, taskType string) (bool, error) {
	const stmt = `
SELECT EXISTS (SELECT FROM daybook.job_types t
                WHERE t.kind = 'tasks' AND t.type = $1 AND t.last_seen > clock_timestamp() - interval '5 minutes')`
	return value[bool](ctx, q, "look for a worker that has a processor", stmt, taskType)
}

// SecretsOf returns the members of a background job's payload and result that its type's handler
// declares not to be shown.
func SecretsOf(ctx context.Context, q Querier, jobType string) ([]string, error) {
	const stmt = `SELECT coalesce((SELECT secrets FROM daybook.job_types WHERE kind = 'jobs' AND type = $1), '{}')`
	return value[[]string](ctx, q, "read what a type keeps secret", stmt, jobType)
}

// typeColumns are types, and the worker that puts them on record, as the arguments of a statement.
// The secrets of each type have newlines between them.
func typeColumns(worker string, types []TypeOnRecord) Args {
	n := len(types)
	names, aliases, owners, secrets := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	attempts, parallel, timeouts := make([]int32, n), make([]int32, n), make([]float64, n)
	bulk, encrypts := make([]bool, n), make([]bool, n)
	for i, t := range types {
		names[i], aliases[i], owners[i], secrets[i] = t.Type, t.AliasOf, clip(t.Owner), strings.Join(t.Secrets, "\n")
		attempts[i], parallel[i], timeouts[i], bulk[i] = int32(t.MaxAttempts), int32(t.Parallel), t.Timeout.Seconds(),
			t.Bulk
		encrypts[i] = t.Encrypts
	}
	return Args{
		"worker": worker, "types": names, "aliases": aliases, "owners": owners, "attempts": attempts, "timeouts": timeouts,
		"parallel": parallel, "bulk": bulk,
		"secrets": secrets, "encrypts": encrypts,
	}
}

// NoteTypes puts types of the store's kind on record, under the name of a worker that has handlers
// for them.
func (s *Store) NoteTypes(ctx context.Context, worker string, types []TypeOnRecord) error {
	const stmt = `SELECT daybook.note_job_types(@kind, @worker, @types, @aliases, @owners, @attempts, @timeouts, @parallel, @bulk, @secrets, @encrypts)::text`
	a := typeColumns(worker, types)
	a["kind"] = s.kind.Name
	_, err := byKey(ctx, s.pool, ignoreRow, stmt, a)
	return Wrap("put types on record", err)
}

// NoteTypes puts types of tasks on record, under the name of a worker that has processors for them.
func (q *TaskQueue) NoteTypes(ctx context.Context, worker string, types []TypeOnRecord) error {
	const stmt = `SELECT queues.note_task_types(@worker, @types, @owners, @timeouts, @parallel)::text`
	_, err := askTasks(ctx, q, ignoreRow, stmt, typeColumns(worker, types))
	return Wrap("put types of tasks on record", err)
}
