package store_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/models"
)

// tasks enqueues tasks of the types, in their order.
func (b *bundle) tasks(types ...string) {
	b.t.Helper()
	b.exec(`SELECT queues.enqueue_tasks($1::text[], array_fill('{}'::jsonb, ARRAY[cardinality($1::text[])]))`, types)
}

// tasksDone enqueues, leases and completes n tasks.
func (b *bundle) tasksDone(n int) {
	b.t.Helper()
	for range n {
		b.tasks("email")
	}
	b.exec(`SELECT queues.complete_tasks(ARRAY(SELECT task_id FROM queues.dequeue_available_tasks($1)))`, n)
}

// damage runs a statement that breaks what facts must be, without the triggers that keep them.
func (b *bundle) damage(stmt string) {
	b.t.Helper()
	for _, table := range []string{"task", "task_lease", "task_completed", "error"} {
		b.exec(`ALTER TABLE queues.` + table + ` DISABLE TRIGGER USER`)
	}
	b.exec(stmt)
	for _, table := range []string{"task", "task_lease", "task_completed", "error"} {
		b.exec(`ALTER TABLE queues.` + table + ` ENABLE TRIGGER USER`)
	}
}

func (b *bundle) tasksStatus(org string) store.QueueStatus {
	b.t.Helper()
	all, err := store.Status(b.t.Context(), b.Pool, org)
	require.NoError(b.t, err)
	last := all[len(all)-1]
	require.Equal(b.t, "tasks", last.Kind)
	return last
}

// TestCheckEndsAllExpiredTasks: one check of a worker ends all leases that have expired, not only
// as many as one statement does.
func TestCheckEndsAllExpiredTasks(t *testing.T) {
	t.Parallel()
	const tasks = 3500
	b := setup(t)
	b.tasks(slices.Repeat([]string{"email"}, tasks)...)
	b.exec(`SELECT queues.dequeue_available_tasks($1)`, tasks)
	b.exec(`UPDATE queues.open_task SET leased_until = clock_timestamp() - interval '1 second', arrived = pg_current_xact_id() WHERE leased_until IS NOT NULL`)
	got, _, err := store.NewTaskQueue(b.Pool).Check(t.Context())
	require.NoError(t, err)
	assert.Equal(t, tasks, got.Jobs)
}

func TestStatusOfTasks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	empty, err := store.IsEmpty(t.Context(), b.Pool)
	require.NoError(t, err)
	assert.True(t, empty)
	b.tasksDone(2)
	b.tasks("email", "sms", "sms")
	b.exec(`SELECT queues.enqueue('fax', '{}', now() + interval '1 hour')`)
	b.exec(`SELECT queues.fail_task(1, 'busy'), queues.fail_task(1, 'no'), queues.fail_task(3, 'busy')`)
	b.exec(`SELECT queues.dequeue_next_available_task()`)
	b.exec(`SELECT queues.dequeue_next_available_task()`)
	b.exec(`UPDATE queues.open_task SET leased_until = clock_timestamp() - interval '1 second', arrived = pg_current_xact_id() WHERE task_id = 3`)
	s := b.tasksStatus("")
	assert.Equal(t, map[models.JobState]int64{
		models.JobPending: 2, models.JobLeased: 2, models.JobCompleted: 1,
		models.JobFailed: 1, models.JobCancelled: 0,
	}, s.Counts)
	assert.EqualValues(t, 1, s.Due)
	assert.EqualValues(t, 1, s.StaleLeases)
	require.NotNil(t, s.OldestDue)
	assert.Equal(t, "5", s.OldestDue.JobID)
	assert.Equal(t, "sms", s.OldestDue.Type)
	assert.Zero(t, b.tasksStatus("acme").Open(), "tasks have no organization")

	groups, err := store.Leases(t.Context(), b.Pool)
	require.NoError(t, err)
	require.Len(t, groups, 1)
	assert.Equal(t, "tasks", groups[0].Kind)
	assert.EqualValues(t, 2, groups[0].Jobs)
	assert.EqualValues(t, 1, groups[0].Expired)
	reclaimed, err := store.ReclaimExpired(t.Context(), b.Pool)
	require.NoError(t, err)
	assert.Equal(t, store.QueueReclaimed{Kind: "tasks", Reclaimed: store.Reclaimed{Jobs: 1}}, reclaimed[len(reclaimed)-1])
	assert.Zero(t, b.tasksStatus("").StaleLeases)

	list, err := store.ListOrganizations(t.Context(), b.Pool, "", 0)
	require.NoError(t, err)
	assert.Empty(t, list)
	empty, err = store.IsEmpty(t.Context(), b.Pool)
	require.NoError(t, err)
	assert.False(t, empty)
	report := b.audit(audit.Options{})
	assert.Contains(t, report.Figures.Queues, accounting.QueueFigures{Kind: "tasks", Open: 4, Failed: 2})
}

// taskDamages break each rule on purpose. Before, tasks 1 and 2 are completed, 3 is leased, and 4
// and 5 are ready.
var taskDamages = map[string]damage{
	"completed without a lease": {
		`DELETE FROM queues.task_lease WHERE task_id = 1`, "completed_without_lease",
		"task 1 is completed, and was never leased",
	},
	"open and not found": {
		`DELETE FROM queues.open_task WHERE task_id = 4`, "unreachable", "task 4 is not completed, and no dequeue finds it",
	},
	"added without queues.enqueue": {
		`INSERT INTO queues.task (task_type, payload) VALUES ('email', '{}')`, "unreachable",
		"task 6 is not completed, and no dequeue finds it",
	},
	"completed by hand": {
		`INSERT INTO queues.task_completed (task_id) VALUES (3)`, "unreachable",
		"task 3 is completed, and open all the same",
	},
	"open and unknown": {
		`INSERT INTO queues.open_task (task_id, task_type, scheduled_at) VALUES (99, 'email', 'tomorrow')`, "unreachable",
		"task 99 is open, and does not exist",
	},
	"open as another type": {
		`UPDATE queues.open_task SET task_type = 'fax' WHERE task_id = 4`, "unreachable",
		"task 4 is of the type sms, and open as fax",
	},
	"open too early": {
		// What became ready earlier may be behind a cursor, which is another finding.
		`WITH forgotten AS (DELETE FROM queues.task_cursor) UPDATE queues.open_task SET scheduled_at = scheduled_at + CASE task_id WHEN 5 THEN interval '-1 day' ELSE interval '1 day' END WHERE task_id > 3`,
		"unreachable", "task 5 is open for an earlier time",
	},
	"a lease without its fact": {
		`DELETE FROM queues.task_lease WHERE task_id = 3`, "unreachable",
		"task 3 is leased, and its lease is not on record",
	},
	"hidden by a cursor": {
		`INSERT INTO queues.task_cursor (scope, seen_to, unseen, last_at, last_id, passed)
		 SELECT s, pg_snapshot_xmax(pg_current_snapshot()), '{}', now() + interval '1 minute', 0, '{5}' FROM unnest('{sms,fax,!sms,!fax}'::text[]) s WHERE s IN ('sms', 'fax', '!sms')`,
		"unreachable", "task 4 is ready, and the cursor",
	},
	"a lease whose end is hidden": {
		`INSERT INTO queues.task_cursor (scope, seen_to, unseen, last_at, last_id, passed) VALUES ('@', pg_snapshot_xmax(pg_current_snapshot()), '{}', 'infinity', 0, '{}')`,
		"unreachable", "task 3 has a lease, and the cursor",
	},
	"a fact of no task": {
		`INSERT INTO queues.error (task_id, error_message) VALUES (99, 'x')`, "fact_of_no_task",
		"an error of task 99, which does not exist",
	},
}

// TestAuditOfTasksAfterTheClockWasSetBack: a task that was leased was due, whatever time it was
// scheduled for.
func TestAuditOfTasksAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.tasks("email")
	b.exec(`SELECT queues.dequeue_next_available_task()`)
	b.damage(`UPDATE queues.task SET scheduled_at = scheduled_at + interval '1 day'; UPDATE queues.open_task SET scheduled_at = scheduled_at + interval '1 day'`)
	b.exec(`SELECT queues.give_back_tasks(ARRAY[1], ARRAY(SELECT task_lease_id FROM queues.open_task))`)
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.dequeue_available_tasks(1)`))
	assert.Empty(t, wrong(b.audit(audit.Options{})))
}

// TestAuditOfTasks breaks each rule, without the triggers that keep it.
func TestAuditOfTasks(t *testing.T) {
	t.Parallel()
	for name, c := range taskDamages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.tasksDone(2)
			b.tasks("email", "sms", "sms")
			b.exec(`SELECT queues.dequeue_next_available_task()`)
			assert.Empty(t, wrong(b.audit(audit.Options{})))
			check := c.check + "_in_tasks"
			b.damage(c.stmt)
			r := b.audit(audit.Options{})
			assert.Equal(t, map[string]int64{check: 1}, wrong(r))
			for _, found := range r.Checks {
				if found.Kind == check {
					require.NotEmpty(t, found.Findings)
					assert.Contains(t, found.Findings[0].Detail, c.says)
				}
			}
			assert.Zero(t, b.audit(audit.Options{OrgID: "acme"}).Wrong(), "tasks have no organization")
			if c.check == "unreachable" &&
				fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.task_lease WHERE task_id = 3`) > 0 {
				b.exec(`SELECT queues.rebuild_open_tasks()`)
				assert.Empty(t, wrong(b.audit(audit.Options{})), "what it says to do helps")
			}
		})
	}
}
