package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workflows"
)

// TestQueuesAreNamedAsElsewhere: the list of kinds says what the workflows and models say.
func TestQueuesAreNamedAsElsewhere(t *testing.T) {
	t.Parallel()
	var names []string
	for _, q := range store.Queues() {
		names = append(names, strings.Join([]string{q.Name, q.Table, q.WorkflowType, q.TaskQueue}, " "))
	}
	assert.Equal(t, []string{
		strings.Join([]string{
			store.Accounting.Name, models.AccountingJob{}.TableName(), workflows.AccountingWorkflow,
			workflows.AccountingTaskQueue,
		}, " "),
		strings.Join([]string{store.Jobs.Name, models.Job{}.TableName(), workflows.JobsWorkflow, workflows.JobsTaskQueue},
			" "),
		strings.Join([]string{
			store.NewTaskQueue(nil).Name(), "queues.task", workflows.TasksWorkflow,
			workflows.TasksTaskQueue,
		}, " "),
	}, names)
}

// lacks says of each kind what does not apply to it, and why. The tests of every kind read it.
var lacks = map[string]struct{ attempts, organizations string }{
	"tasks": {attempts: "their facts are the log", organizations: "a task belongs to none"},
}

// TestEveryKindHasItsFiles: CONTRIBUTING.md lists the files of a kind, and each kind of the list
// has them.
func TestEveryKindHasItsFiles(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Adding a kind\n")
	section, _, _ = strings.Cut(section, "\n## ")
	listed := 0
	for line := range strings.Lines(section) {
		cell, row := strings.CutPrefix(line, "| `")
		if !row {
			continue
		}
		cell, _, _ = strings.Cut(cell, " | ")
		for pattern := range strings.SplitSeq(strings.ReplaceAll(cell, "`", ""), ", ") {
			listed++
			assert.Contains(t, pattern, "KIND", "a file of a kind is named after it")
			for _, q := range store.Queues() {
				files, err := filepath.Glob(filepath.Join(root,
					filepath.FromSlash(strings.ReplaceAll(pattern, "KIND", q.Name))))
				require.NoError(t, err)
				assert.NotEmpty(t, files, "%s has no file %s", q.Name, pattern)
			}
		}
	}
	assert.Greater(t, listed, 10, "files that were listed")
}

// TestEveryKindMayLogAttempts: the table of attempts knows each kind of the list.
func TestEveryKindMayLogAttempts(t *testing.T) {
	t.Parallel()
	var check string
	require.NoError(t, setup(t).Pool.QueryRow(t.Context(),
		`SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'daybook.attempt_log'::regclass AND conname = 'attempts_kind'`).Scan(&check))
	for _, q := range store.Queues() {
		if lacks[q.Name].attempts != "" {
			assert.NotContains(t, check, "'"+q.Name+"'", lacks[q.Name].attempts)
			continue
		}
		assert.Contains(t, check, "'"+q.Name+"'", "attempts_kind in migrations/00001_common.sql")
	}
}

// TestKindsWithOrganizations: those, and only those, are the columns of lists of organizations.
func TestKindsWithOrganizations(t *testing.T) {
	t.Parallel()
	var with, listed []string
	for _, q := range store.Queues() {
		if lacks[q.Name].organizations == "" {
			with = append(with, q.Name)
		}
	}
	for _, q := range store.OrganizationQueues() {
		listed = append(listed, q.Name)
	}
	assert.Equal(t, with, listed)
}

// begin makes a job of a kind, of an organization of its own if the kind has some, and returns its
// id.
func (b *bundle) begin(kind string) (id string) {
	b.t.Helper()
	stmt, ok := map[string]string{
		"accounting": `SELECT job_id FROM daybook.enqueue_accounting_job('org-accounting', 'd', 1)`,
		"jobs":       `SELECT job_id FROM daybook.enqueue_job('org-jobs', 'mail', '{}')`,
		"tasks":      `SELECT queues.enqueue('email', '{}')::text`,
	}[kind]
	require.True(b.t, ok, "the test makes no job of %s", kind)
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), stmt).Scan(&id))
	return id
}

// TestEveryQueueCounts: a database is used by a job of any kind, and an organization known by one
// of its jobs.
func TestEveryQueueCounts(t *testing.T) {
	t.Parallel()
	for _, q := range store.Queues() {
		t.Run(q.Name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			ctx := t.Context()
			empty, err := store.IsEmpty(ctx, b.Pool)
			require.NoError(t, err)
			assert.True(t, empty)
			b.begin(q.Name)
			empty, err = store.IsEmpty(ctx, b.Pool)
			require.NoError(t, err)
			assert.False(t, empty)
			unknown, err := store.UnknownOrganizations(ctx, b.Pool, []string{"unknown", "org-" + q.Name})
			require.NoError(t, err)
			if lacks[q.Name].organizations != "" {
				assert.Len(t, unknown, 2, lacks[q.Name].organizations)
				return
			}
			assert.Equal(t, []string{"unknown"}, unknown)
		})
	}
}

// damage is something wrong with a job of a kind, and how the audit says so.
type damage struct{ stmt, check, says string }

// rowDamages are those of a kind whose rows are updated in place; {table} and {kind} stand for the
// kind's.
var rowDamages = map[string]damage{
	"finished without a time": {`UPDATE {table} SET state = 'cancelled'`, "contradictory_row", "has no time of its end"},
	"leased by no turn":       {`UPDATE {table} SET state = 'leased'`, "contradictory_row", "no turn holds it"},
	"held while pending": {
		`UPDATE {table} SET turn_id = 'run/0/1', fence = 1`, "contradictory_row",
		"a turn holds it",
	},
	"failed for no reason": {
		`UPDATE {table} SET state = 'failed', finished_at = now()`, "contradictory_row",
		"nothing says why",
	},
	"completed twice": {
		`INSERT INTO daybook.attempt_log (kind, job_id, org_id, document_id, version, type, attempt, outcome, started_at, turn_id, fence)
		 SELECT '{kind}', id, org_id, CASE '{kind}' WHEN 'accounting' THEN 'd' END, CASE '{kind}' WHEN 'accounting' THEN 1 END,
		        CASE '{kind}' WHEN 'jobs' THEN 'mail' END, 1, 'completed', now(), 'run/0/1', 1
		   FROM {table}, generate_series(1, 2)`,
		"completed_twice", "completed attempts 2, requests 1",
	},
}

// damages are what the tests of the audit break of each kind.
var damages = map[string]map[string]damage{"accounting": rowDamages, "jobs": rowDamages, "tasks": taskDamages}

// TestEveryCheckIsBroken: a test breaks what each check of each kind looks for.
func TestEveryCheckIsBroken(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	for kind, all := range damages {
		for _, d := range all {
			broken[d.check+"_in_"+kind] = true
		}
	}
	broken["waits_for_nothing"] = true // in package jobs, whose worker makes jobs wait
	for _, c := range store.QueueChecks() {
		assert.True(t, broken[c.Kind], "no test breaks %s", c.Kind)
		delete(broken, c.Kind)
	}
	assert.Empty(t, broken, "checks that are none")
	for _, q := range store.Queues() {
		assert.NotEmpty(t, damages[q.Name], q.Name)
	}
}

// TestAuditOfEveryQueue damages a row of each kind whose rows are updated in place.
// TestAuditOfTasks does it with facts.
func TestAuditOfEveryQueue(t *testing.T) {
	t.Parallel()
	for _, q := range store.Queues() {
		if !q.Organizations() {
			continue
		}
		for name, d := range damages[q.Name] {
			t.Run(q.Name+", "+name, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				id := b.begin(q.Name)
				assert.Empty(t, wrong(b.audit(audit.Options{})))
				b.exec(`ALTER TABLE ` + q.Table + ` DROP CONSTRAINT sound`)
				b.exec(strings.NewReplacer("{table}", q.Table, "{kind}", q.Name).Replace(d.stmt))
				r := b.audit(audit.Options{})
				check := d.check + "_in_" + q.Name
				assert.Equal(t, map[string]int64{check: 1}, wrong(r))
				for _, c := range r.Checks {
					if c.Kind == check {
						assert.Contains(t, c.Findings[0].Detail, "job "+id)
						assert.Contains(t, c.Findings[0].Detail, d.says)
						assert.Equal(t, "org-"+q.Name, c.Findings[0].OrgID)
					}
				}
				assert.Zero(t, b.audit(audit.Options{OrgID: "another"}).Wrong())
			})
		}
	}
}
