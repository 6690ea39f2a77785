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
		strings.Join([]string{store.Accounting.Name, models.AccountingJob{}.TableName(), workflows.AccountingWorkflow, workflows.AccountingTaskQueue}, " "),
		strings.Join([]string{store.Jobs.Name, models.Job{}.TableName(), workflows.JobsWorkflow, workflows.JobsTaskQueue}, " "),
	}, names)
}

// TestEveryKindHasItsFiles: CONTRIBUTING.md lists the files of a kind, and each kind of the list has them.
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
				files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(strings.ReplaceAll(pattern, "KIND", q.Name))))
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
		`SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'daybook.attempts'::regclass AND conname = 'attempts_kind'`).Scan(&check))
	for _, q := range store.Queues() {
		assert.Contains(t, check, "'"+q.Name+"'", "attempts_kind in migrations/00001_common.sql")
	}
}

// begun makes a job of each kind, of an organization of its own, and returns their ids by kind.
func (b *bundle) begun() map[string]string {
	b.t.Helper()
	ids := map[string]string{}
	for kind, stmt := range map[string]string{
		"accounting": `SELECT job_id FROM daybook.enqueue_accounting_job('org-accounting', 'd', 1)`,
		"jobs":       `SELECT job_id FROM daybook.enqueue_job('org-jobs', 'mail', '{}')`,
	} {
		var id string
		require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), stmt).Scan(&id))
		ids[kind] = id
	}
	require.Len(b.t, ids, len(store.Queues()), "one of each kind")
	return ids
}

// TestEveryQueueCounts: an organization is known, and a database used, by a job of any kind.
func TestEveryQueueCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	empty, err := store.IsEmpty(ctx, b.Pool)
	require.NoError(t, err)
	assert.True(t, empty)
	b.begun()
	unknown, err := store.UnknownOrganizations(ctx, b.Pool, []string{"org-jobs", "unknown", "org-accounting"})
	require.NoError(t, err)
	assert.Equal(t, []string{"unknown"}, unknown)
	b.exec(`DELETE FROM daybook.accounting_work_queue`)
	empty, err = store.IsEmpty(ctx, b.Pool)
	require.NoError(t, err)
	assert.False(t, empty)
}

// TestAuditOfEveryQueue damages a row of each kind.
func TestAuditOfEveryQueue(t *testing.T) {
	t.Parallel()
	for _, q := range store.Queues() {
		for name, test := range map[string]struct{ damage, check, says string }{
			"finished without a time": {`UPDATE {table} SET state = 'cancelled'`, "contradictory_row", "has no time of its end"},
			"leased by no turn":       {`UPDATE {table} SET state = 'leased'`, "contradictory_row", "no turn holds it"},
			"held while pending":      {`UPDATE {table} SET turn_id = 'run/0/1', fence = 1`, "contradictory_row", "a turn holds it"},
			"failed for no reason":    {`UPDATE {table} SET state = 'failed', finished_at = now()`, "contradictory_row", "nothing says why"},
			"completed twice": {
				`INSERT INTO daybook.attempts (kind, job_id, org_id, document_id, version, type, attempt, outcome, started_at, turn_id, fence)
				 SELECT '{kind}', id, org_id, CASE '{kind}' WHEN 'accounting' THEN 'd' END, CASE '{kind}' WHEN 'accounting' THEN 1 END,
				        CASE '{kind}' WHEN 'jobs' THEN 'mail' END, 1, 'completed', now(), 'run/0/1', 1
				   FROM {table}, generate_series(1, 2)`,
				"completed_twice", "completed attempts 2, requests 1",
			},
		} {
			t.Run(q.Name+", "+name, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				id := b.begun()[q.Name]
				assert.Empty(t, wrong(b.audit(audit.Options{})))
				b.exec(`ALTER TABLE ` + q.Table + ` DROP CONSTRAINT sound`)
				b.exec(strings.NewReplacer("{table}", q.Table, "{kind}", q.Name).Replace(test.damage))
				r := b.audit(audit.Options{})
				check := test.check + "_in_" + q.Name
				assert.Equal(t, map[string]int64{check: 1}, wrong(r))
				for _, c := range r.Checks {
					if c.Kind == check {
						assert.Contains(t, c.Findings[0].Detail, "job "+id)
						assert.Contains(t, c.Findings[0].Detail, test.says)
						assert.Equal(t, "org-"+q.Name, c.Findings[0].OrgID)
					}
				}
				assert.Zero(t, b.audit(audit.Options{OrgID: "another"}).Wrong())
			})
		}
	}
}
