package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/work"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

func (b *bundle) job(org, document string) answers.AccountingJob {
	b.t.Helper()
	var d work.ShownAccountingJob
	b.json(&d, "accounting", "show", org, document)
	return d.AccountingJob
}

func TestEnqueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	args := []string{"accounting", "enqueue", "--create", "acme", "d", "--version"}
	assert.Contains(t, b.ok(append(args, "3", "--priority", "high")...), "enqueued (job ")
	assert.Contains(t, b.ok(append(args, "2")...), "unchanged (job ")
	assert.Contains(t, b.ok(append(args, "4")...), "coalesced (job ")
	job := b.job("acme", "d")
	assert.Equal(t, int64(4), job.Version)
	assert.Equal(t, "high", job.Priority)
}

func TestJobsRetry(t *testing.T) {
	t.Parallel()
	b := posted(t)
	assert.Contains(t, b.ok("accounting", "retry", "es", "invoice-2", "--delay", "1h"), "requeued (job ")
	job := b.job("es", "invoice-2")
	assert.Equal(t, "pending", job.State)
	assert.WithinDuration(t, time.Now().Add(time.Hour), job.ReadyAt, time.Minute)

	// What waits for its backoff is made due at once.
	var n struct{ Pending int }
	b.json(&n, "accounting", "retry", "--state", "pending", "--all")
	assert.Equal(t, 1, n.Pending)
	b.work()
	b.json(&n, "accounting", "retry", "--state", "failed", "--all", "--code", "TIMEOUT")
	assert.Equal(t, 0, n.Pending)
	b.json(&n, "accounting", "retry", "--state", "failed", "--all", "--org", "de")
	assert.Equal(t, 0, n.Pending)
	b.json(&n, "accounting", "retry", "--state", "failed", "--all", "--org", "es", "--code", "UNBALANCED")
	assert.Equal(t, 1, n.Pending)
	assert.Equal(t, "pending", b.job("es", "invoice-2").State)
}

func TestRetryingManyLeavesOutWhatChangedSince(t *testing.T) {
	t.Parallel()
	b := posted(t)
	before, err := store.Now(t.Context(), b.Pool)
	require.NoError(t, err)
	b.ok("accounting", "retry", "es", "invoice-2")
	b.work() // it fails again, after the moment that counts
	f := store.AccountingRetryFilter{State: models.JobFailed, Before: before}
	n, err := store.MarkAccountingJobsPending(t.Context(), b.Pool, []string{b.job("es", "invoice-2").ID}, f, 0)
	require.NoError(t, err)
	assert.Zero(t, n)
}

// However many batches it takes, each job that is to be retried is looked for once.
func TestRetryingManyReadsEachJobOnce(t *testing.T) {
	t.Parallel()
	const failed = 6000
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at, run_count, last_error, last_error_code)
SELECT 'acme', 'd' || n, 1, 'failed', clock_timestamp(), 1, 'e', 'UNBALANCED' FROM generate_series(1, $1::int) n`,
		failed)
	require.NoError(t, err)
	pool, reads := fixture.Reads(t, db.Pool)
	n, err := work.RetryAccountingJobs(t.Context(), pool, store.AccountingRetryFilter{State: models.JobFailed}, 0)
	require.NoError(t, err)
	assert.Equal(t, failed, n)
	read, _ := reads("daybook.accounting_work_queue")
	assert.Less(t, read, int64(10*failed))
}

func TestJobsCancel(t *testing.T) {
	t.Parallel()
	b := posted(t)
	assert.Contains(t, b.ok("accounting", "cancel", "es", "invoice-2"), "cancelled (job ")
	r := b.run("accounting", "cancel", "es", "invoice-1")
	assert.Equal(t, failure.ExitConflict, r.exit)
	assert.Contains(t, r.err, "mark the document not ready or deleted")
}

func TestRulesApplyReturnsFailedJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("import", "ndjson", "dev/documents.ndjson", "--create")
	b.work()
	var s struct{ Queues []answers.QueueStats }
	b.json(&s, "status")
	assert.Equal(t, int64(11), s.Queues[0].FailedByCode["NO_MATCHING_RULE"])

	type applied struct{ Organizations []books.Change }
	var first, second applied
	args := []string{"rules", "apply", "../../internal/moving/sample/rules.yaml", "--all-orgs"}
	r := b.run(args...)
	assert.Regexp(t, `^ORGANIZATION +VERSION +RESULT +JOBS RETURNED\nde +1 +changed `, r.out)
	assert.Contains(t, r.err, "organization de lacks accounts 1000, ", "the missing accounts are named")
	b.ok("accounts", "import", "../../internal/moving/sample/chart.csv", "--all-orgs")
	b.json(&first, args...)
	require.Len(t, first.Organizations, 3)
	assert.Equal(t, books.Change{OrgID: "de", Version: 1}, first.Organizations[0], "the same rules again change nothing")

	changed := strings.Replace(read(t, "../../internal/moving/sample/rules.yaml"), "ruleset: sample", "ruleset: other", 1)
	b.json(&second, "rules", "apply", write(t, t.TempDir()+"/rules.yaml", changed), "--org", "es")
	assert.Equal(t, []books.Change{{OrgID: "es", Version: 2, Changed: true}}, second.Organizations)
	assert.Contains(t, b.ok("rules", "show", "--org", "es"), "ruleset: other")
	assert.Contains(t, b.ok("rules", "show", "--org", "de"), "ruleset: sample")
	b.work()
	assert.Equal(t, "completed", b.job("es", "invoice-1").State)
	assert.Contains(t, b.ok("accounts", "list", "--org", "de"), "Accounts receivable")
}

func TestRulesCheck(t *testing.T) {
	t.Parallel()
	r := call(t.Context(), "", "rules", "check", "../../internal/moving/sample/rules.yaml")
	assert.Equal(t, failure.ExitOK, r.exit, r.err)
	assert.Contains(t, r.out, `rule set "sample" is in order`)

	const wrong = "ruleset: x\nrules:\n  - id: a\n    when: doc.nothing\n    lines: []\n"
	r = call(t.Context(), wrong, "rules", "check", "-")
	assert.Equal(t, failure.ExitUsage, r.exit)
	assert.Contains(t, r.err, "4:14", "the place is named")
	r = call(t.Context(), wrong, "rules", "check", "-", "--json")
	assert.Equal(t, failure.ExitUsage, r.exit)
	assert.Contains(t, r.out, `"valid": false`)
}

func TestAccountsImportNamesTheLine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for input, want := range map[string]string{
		"number,name\n": "the first line must name the columns code, name and type",
		"code,name,type\n1000,Bank,asset\n1,Cash,bag": "line 3: the type is \"bag\"",
		"code,name,type\n,Bank,asset\n":               "line 2: the code",
		"code,name,type\n":                            "there is no account",
		"code,name,type\n1,A,asset\n1,B,asset\n":      "account 1 is listed twice",
	} {
		r := call(t.Context(), input, "--database-url", b.URL, "accounts", "import", "-", "--org", "acme", "--create")
		assert.Equal(t, failure.ExitUsage, r.exit, input)
		assert.Contains(t, r.err, want)
	}
}
