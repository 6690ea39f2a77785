package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Queue is a kind of queue as operations see it: what people look at, change and check for every kind alike. What the worker asks of a
// kind is another list: the port of internal/engine.
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
	leases(ctx context.Context, pool *pgxpool.Pool) ([]LeaseGroup, error)
	// reclaimExpired ends the expired leases at once.
	reclaimExpired(ctx context.Context, pool *pgxpool.Pool) (Reclaimed, error)
	// checks are those of the audit.
	checks() []Check
	// old are the rows that go when they are old.
	old() []OldRows
}

// Queues lists every kind of queue, in the order in which operations show them. It is the one list of kinds: a kind that stands here is
// shown, paused, capped, reclaimed and audited like the others.
func Queues() []Queue {
	return []Queue{
		{Accounting.Name, Accounting.table, "syncAccountingQueueWorkflow", "accounting-queue", Accounting},
		{Jobs.Name, Jobs.table, "syncJobQueueWorkflow", "job-queue", Jobs},
		{taskQueue.Name, "queues.task", "syncTaskQueueWorkflow", "task-queue", tasksQueue{}},
	}
}

// Organizations reports whether its jobs belong to organizations, as those of the kinds do whose rows are updated in place. Else there are none of one
// organization, and lists of organizations leave the kind out.
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
func Leases(ctx context.Context, pool *pgxpool.Pool) ([]LeaseGroup, error) {
	groups := []LeaseGroup{}
	for _, q := range Queues() {
		some, err := q.leases(ctx, pool)
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

// ReclaimExpired ends the leases of every kind that have expired, at once, and says what became of those of each, in the order of
// Queues: see Store.ReclaimExpired. It is for people who know that a worker is gone.
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

// wakeQueues has those that wait for jobs of organizations look again when the transaction has committed.
func wakeQueues(ctx context.Context, tx pgx.Tx) error {
	for _, k := range OrganizationQueues() {
		if _, err := tx.Exec(ctx, k.sql(`SELECT daybook.wake_job_queue()`)); err != nil {
			return Wrap("wake those that wait for jobs", err)
		}
	}
	return nil
}
