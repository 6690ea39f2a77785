package store

import (
	"context"
	"slices"

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
	// Organizations says that its jobs belong to organizations. Else there are none of one organization, and lists of organizations leave
	// the kind out.
	Organizations bool
	operations
}

// operations are the statements about a kind that operations need.
type operations interface {
	// status adds to s how the kind stands: of one organization, or of all.
	status(ctx context.Context, tx pgx.Tx, org string, s *QueueStatus) error
	// open counts the pending, leased and failed jobs of each organization of a span of ids.
	open(ctx context.Context, tx pgx.Tx, in organizationSpan) (map[string]OpenJobs, error)
	// withOpenJobs are the first organizations of a span that have such a job, in the order of their ids.
	withOpenJobs(ctx context.Context, tx pgx.Tx, in organizationSpan, limit int) ([]string, error)
	// known returns those of the organizations that have a job.
	known(ctx context.Context, q Querier, orgs []string) ([]string, error)
	// empty reports that there is no job.
	empty(ctx context.Context, q Querier) (bool, error)
	// wakeAll has those that wait for jobs of the kind look again when the transaction has committed.
	wakeAll(ctx context.Context, tx pgx.Tx) error
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
		{Accounting.Name, Accounting.table, "syncAccountingQueueWorkflow", "accounting-queue", true, Accounting},
		{Jobs.Name, Jobs.table, "syncJobQueueWorkflow", "job-queue", true, Jobs},
		{taskQueue.Name, "queues.task", "syncTaskQueueWorkflow", "task-queue", false, tasksQueue{}},
	}
}

// OrganizationQueues lists the kinds whose jobs belong to organizations, in the order of Queues.
func OrganizationQueues() []Queue {
	return slices.DeleteFunc(Queues(), func(q Queue) bool { return !q.Organizations })
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

// leases implements operations.
func (k *Kind) leases(ctx context.Context, pool *pgxpool.Pool) ([]LeaseGroup, error) {
	return NewQueue(pool, k).Leases(ctx)
}

// reclaimExpired implements operations.
func (k *Kind) reclaimExpired(ctx context.Context, pool *pgxpool.Pool) (Reclaimed, error) {
	return NewQueue(pool, k).ReclaimExpired(ctx)
}

// wakeAll implements operations.
func (k *Kind) wakeAll(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, k.sql(`SELECT daybook.wake_job_queue()`))
	return Wrap("wake those that wait for jobs", err)
}

// wakeQueues has those that wait for work of any kind look again when the transaction has committed.
func wakeQueues(ctx context.Context, tx pgx.Tx) error {
	for _, q := range Queues() {
		if err := q.wakeAll(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}
