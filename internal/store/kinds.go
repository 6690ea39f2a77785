package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Queue is a kind of queue as operations see it: what people look at, change and check for every
// kind alike. What the worker asks of a kind is another list: the port of internal/engine.
type Queue struct {
	// Name is the kind's in reports, in attempts and on the command line.
	Name string
	// Table holds its jobs.
	Table string
	// WorkflowType and TaskQueue are Temporal's names for the workflow that runs the kind.
	WorkflowType, TaskQueue string
	operations
}

// operations are the statements about a kind that operations need.
type operations interface {
	// status adds to s how the kind stands: of one organization, or of all.
	status(ctx context.Context, tx pgx.Tx, org string, s *QueueStatus) error
	// open counts the pending, leased and failed jobs of each organization of a span of ids.
	open(ctx context.Context, tx pgx.Tx, in organizationSpan) (map[string]OpenJobs, error)
	// leases returns what is leased, turn by turn.
	leases(ctx context.Context, q batcher) ([]LeaseGroup, error)
	// reclaimExpired ends the expired leases at once.
	reclaimExpired(ctx context.Context, pool *pgxpool.Pool) (Reclaimed, error)
	// checks are those of the audit.
	checks() []Check
	// old are the rows that go when they are old.
	old() []OldRows
}

// Queues lists every kind of queue, in the order in which operations show them. It is the one list
// of kinds: a kind that stands here is shown, paused, capped, reclaimed and audited like the
// others.
func Queues() []Queue {
	return []Queue{
		{Accounting.Name, Accounting.table, "syncAccountingQueueWorkflow", "accounting-queue", Accounting},
		{Jobs.Name, Jobs.table, "syncJobQueueWorkflow", "job-queue", Jobs},
		{taskQueue.Name, "queues.task", "syncTaskQueueWorkflow", "task-queue", tasksQueue{}},
	}
}

// Organizations reports whether its jobs belong to organizations, as those of the kinds do whose
// rows are updated in place. Else there are none of one organization, and lists of organizations
// leave the kind out.
func (q Queue) Organizations() bool {
	_, ok := q.operations.(*Kind)
	return ok
}

// OrganizationQueues lists the kinds whose jobs belong to organizations, in the order of Queues.
func OrganizationQueues() (kinds []*Kind) {
	for _, q := range Queues() {
		if k, ok := q.operations.(*Kind); ok {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// Leases returns what is leased of every kind, kind by kind, the longest unrenewed first.
func Leases(ctx context.Context, db batcher) ([]LeaseGroup, error) {
	groups := []LeaseGroup{}
	for _, q := range Queues() {
		some, err := q.leases(ctx, db)
		if err != nil {
			return nil, err
		}
		groups = append(groups, some...)
	}
	return groups, nil
}

// QueueReclaimed is what became of the expired leases of a queue.
type QueueReclaimed struct {
	Kind string
	Reclaimed
}

// ReclaimExpired ends the leases of every kind that have expired, at once, and says what became of
// those of each, in the order of Queues: see Store.ReclaimExpired. It is for people who know that a
// worker is gone.
func ReclaimExpired(ctx context.Context, pool *pgxpool.Pool) ([]QueueReclaimed, error) {
	var all []QueueReclaimed
	for _, q := range Queues() {
		got, err := q.reclaimExpired(ctx, pool)
		if err != nil {
			return all, err
		}
		all = append(all, QueueReclaimed{q.Name, got})
	}
	return all, nil
}

// reclaimExpired implements operations.
func (k *Kind) reclaimExpired(ctx context.Context, pool *pgxpool.Pool) (Reclaimed, error) {
	return NewQueue(pool, k).ReclaimExpired(ctx)
}

// wakeQueues has those that wait for jobs of organizations look again when the transaction has
// committed.
func wakeQueues(ctx context.Context, tx pgx.Tx) error {
	for _, k := range OrganizationQueues() {
		if _, err := tx.Exec(ctx, k.sql(`SELECT daybook.wake_job_queue()`)); err != nil {
			return Wrap("wake those that wait for jobs", err)
		}
	}
	return nil
}

const (
	// StaleAfter is how long after its last renewal a lease expires. Any worker may reclaim an
	// expired lease.
	StaleAfter = 10 * time.Second
	// RenewEvery is the pause between two renewals of a lease.
	RenewEvery = 3 * time.Second
)

// LeaseGroup is what one turn holds.
type LeaseGroup struct {
	Kind   string `json:"kind"`
	Worker string `json:"worker"`
	Turn   string `json:"turn_id"`
	// Detached: no activity works the turn; its process alone holds the jobs, which last longer than
	// a turn.
	Detached bool  `json:"detached"`
	Jobs     int64 `json:"jobs"`
	// Working counts those that are charged with an attempt when their lease ends.
	Working int64 `json:"working"`
	// Expired counts those that were not renewed for StaleAfter.
	Expired int64 `json:"expired"`
	// Renewed is when the oldest of the leases was taken or renewed.
	Renewed time.Time `json:"renewed_at"`
}

// leases implements operations.
func (k *Kind) leases(ctx context.Context, q batcher) ([]LeaseGroup, error) {
	const stmt = `
SELECT /* jobs */'jobs'/* accounting: 'accounting' */, coalesce(worker, ''), turn_id, detached, count(*), count(*) FILTER (WHERE working),
       count(*) FILTER (WHERE last_attempted_at < statement_timestamp() - make_interval(secs => $1)), min(last_attempted_at)
  FROM daybook.jobs
 WHERE state = 'leased'
 GROUP BY worker, turn_id, detached
 ORDER BY min(last_attempted_at), turn_id`
	groups, err := byKey(ctx, q, pgx.RowToStructByPos[LeaseGroup], k.sql(stmt), StaleAfter.Seconds())
	return groups, Wrap("read leases", err)
}

// IsEmpty reports whether the database was not used yet: it has no schema daybook, or holds no
// organization, no document and no job of any kind.
func IsEmpty(ctx context.Context, q Querier) (bool, error) {
	const exists = `SELECT to_regclass('daybook.accounting_work_queue') IS NOT NULL`
	const stmt = `
SELECT NOT EXISTS (SELECT 1 FROM daybook.organizations) AND NOT EXISTS (SELECT 1 FROM daybook.documents)`
	var there, empty bool
	if err := q.QueryRow(ctx, exists).Scan(&there); err != nil || !there {
		return err == nil, Wrap("look for the schema", err)
	}
	err := q.QueryRow(ctx, stmt).Scan(&empty)
	for _, queue := range Queues() {
		if err == nil && empty {
			err = q.QueryRow(ctx, `SELECT NOT EXISTS (SELECT 1 FROM `+queue.Table+`)`).Scan(&empty)
		}
	}
	return empty, Wrap("look for data", err)
}

// ServerPrograms returns the directory of the server's own programs, such as pg_dump. Only a
// superuser may ask.
func ServerPrograms(ctx context.Context, q Querier) (string, error) {
	return value[string](ctx, q, "ask for the server's programs",
		`SELECT setting FROM pg_catalog.pg_config WHERE name = 'BINDIR'`)
}
