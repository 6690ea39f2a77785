package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/work"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	b := posted(t)
	b.ok("accounting", "enqueue", "--create", "de", "later", "--version", "1", "--ready-at", "2999-01-01T00:00:00Z")
	b.ok("accounting", "enqueue", "--create", "de", "now", "--version", "1")
	b.ok("accounting", "enqueue", "--create", "de", "stuck", "--version", "1")
	_, err := b.Pool.Exec(t.Context(), `
UPDATE daybook.accounting_work_queue
   SET state = 'leased', turn_id = 'gone', fence = 1, leased_generation = generation, run_count = 1,
       attempt_started_at = now(), last_attempted_at = now() - interval '16 minutes'
 WHERE document_id = 'stuck'`)
	require.NoError(t, err)

	status := func(args ...string) answers.QueueStats {
		var s struct{ Queues []answers.QueueStats }
		b.json(&s, append([]string{"status"}, args...)...)
		require.Len(t, s.Queues, len(store.Queues()))
		return s.Queues[0]
	}
	s := status()
	assert.Equal(t, "accounting", s.Kind)
	assert.Equal(t, map[string]int64{"pending": 2, "leased": 1, "completed": 10, "failed": 1, "cancelled": 0}, s.Counts)
	assert.Equal(t, int64(1), s.Due)
	assert.Equal(t, int64(1), s.StaleLeases)
	assert.Equal(t, map[string]int64{"UNBALANCED": 1}, s.FailedByCode)
	require.NotNil(t, s.OldestPending)
	assert.Equal(t, "now", s.OldestPending.DocumentID)
	require.NotNil(t, s.OldestDue)
	assert.Equal(t, "now", s.OldestDue.DocumentID)

	es := status("--org", "es")
	assert.Equal(t, int64(1), es.Counts["completed"])
	assert.Nil(t, es.OldestPending)
	assert.Nil(t, es.OldestDue)
	text := b.ok("status")
	assert.Contains(t, text, "accounting: oldest pending: document now of organization de")
	assert.Contains(t, text, "accounting: due longest: document now of organization de")
}

// Programs read the same keys of every queue, whatever there is in it.
func TestStatusShowsEveryQueueAlike(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(), `
SELECT daybook.enqueue_job('acme', 'mail', '{}', ready_at => '2999-01-01');
SELECT daybook.enqueue_job('acme', 'mail', '{"n": 1}'), daybook.enqueue_job('acme', 'mail', '{"n": 2}'), daybook.enqueue_job('beta', 'mail', '{}');
UPDATE daybook.jobs SET state = 'leased', turn_id = 'gone', fence = 1, leased_generation = generation, run_count = 1,
       attempt_started_at = now(), last_attempted_at = now() - interval '1 minute' WHERE payload = '{"n": 1}';
UPDATE daybook.jobs SET state = 'failed', last_error = 'no', last_error_code = 'HANDLER_ERROR', finished_at = now() WHERE org_id = 'beta'`)
	require.NoError(t, err)

	var s struct{ Queues []answers.QueueStats }
	b.json(&s, "status")
	require.Len(t, s.Queues, len(store.Queues()))
	jobs := s.Queues[1]
	assert.Equal(t, "jobs", jobs.Kind)
	assert.Equal(t, map[string]int64{"pending": 2, "leased": 1, "completed": 0, "failed": 1, "cancelled": 0}, jobs.Counts)
	assert.Equal(t, int64(1), jobs.Due)
	assert.Equal(t, int64(1), jobs.StaleLeases)
	assert.Equal(t, map[string]int64{"HANDLER_ERROR": 1}, jobs.FailedByCode)
	require.NotNil(t, jobs.OldestDue)
	assert.Equal(t, "mail", jobs.OldestDue.Type)
	assert.Equal(t, "acme", jobs.OldestDue.OrgID)

	var raw struct{ Queues []map[string]any }
	b.json(&raw, "status")
	for _, q := range raw.Queues {
		delete(q, "oldestDue") // it is there only if there is such a job
		delete(q, "oldestPending")
		keys := slices.Sorted(maps.Keys(q))
		assert.Equal(t, []string{"at", "counts", "due", "estimated", "failedByCode", "kind", "staleLeases", "waiting"},
			keys)
	}
	text := b.ok("status")
	assert.Regexp(t, `(?m)^accounting +0 +0 +0 +0 +0 +0 +0 +0$`, text)
	assert.Regexp(t, `(?m)^jobs +2 +1 +0 +1 +1 +0 +1 +0$`, text)
	assert.Regexp(t, `(?m)^jobs: due longest: job \S+ \(mail\) of organization acme, for `, text)
	assert.Regexp(t, `(?m)^ +1 +jobs +HANDLER_ERROR$`, text)

	b.json(&s, "status", "--org", "beta")
	assert.Equal(t, int64(1), s.Queues[1].Counts["failed"])
	assert.Zero(t, s.Queues[1].Counts["pending"])
}

func TestJobsListFilters(t *testing.T) {
	t.Parallel()
	b := posted(t)
	list := func(args ...string) []answers.AccountingJob {
		var l answers.AccountingJobList
		b.json(&l, append([]string{"accounting", "list"}, args...)...)
		return l.Jobs
	}
	assert.Len(t, list(), 11)
	assert.Len(t, list("--limit", "3"), 3)
	assert.Len(t, list("--org", "de"), 7)
	assert.Len(t, list("--since", "1h"), 11)
	assert.Empty(t, list("--since", "2999-01-01"))
	assert.Empty(t, list("--state", "pending"))
	failed := list("--state", "failed", "--code", "UNBALANCED")
	require.Len(t, failed, 1)
	assert.Equal(t, "invoice-2", failed[0].DocumentID)

	table := b.ok("accounting", "list", "--state", "failed")
	assert.Contains(t, table, "UNBALANCED")
	assert.NotContains(t, table, "\x1b", "no colours outside of a terminal")
}

func TestJobsShow(t *testing.T) {
	t.Parallel()
	b := posted(t)
	var d work.ShownAccountingJob
	b.json(&d, "accounting", "show", "es", "invoice-1")
	assert.Equal(t, "completed", d.State)
	require.Len(t, d.History, 1)
	assert.Equal(t, "completed", d.History[0].Outcome)
	require.Len(t, d.Impacts, 1)
	assert.Equal(t, "sale", d.Impacts[0].RuleID)
	assert.Contains(t, b.ok("accounting", "show", "es", "invoice-2"), "UNBALANCED")
}

func TestEntries(t *testing.T) {
	t.Parallel()
	b := posted(t)
	list := func(args ...string) []answers.Entry {
		var l answers.EntryList
		b.json(&l, append([]string{"entries", "--org", "es"}, args...)...)
		return l.Entries
	}
	assert.Len(t, list(), 5)
	assert.Len(t, list("--limit", "2"), 2)
	assert.Empty(t, list("--document", "invoice-2"))
	withheld := list("--document", "invoice-1", "--account", "1450")
	require.Len(t, withheld, 1)
	assert.Equal(t, answers.Minor("24300"), withheld[0].AmountMinor)
	assert.Equal(t, "debit", withheld[0].Side)
	assert.Equal(t, "invoice-1", withheld[0].DocumentID)
	assert.Equal(t, "2026-02-02", withheld[0].PostingDate)
	assert.Contains(t, b.ok("entries", "--org", "es", "--account", "1450"), "243.00")
}

func TestTrialBalance(t *testing.T) {
	t.Parallel()
	b := posted(t)
	var all, one answers.TrialBalance
	b.json(&all, "trial-balance", "--all-orgs")
	assert.True(t, all.Balanced)
	require.Len(t, all.Totals, 3)
	for _, total := range all.Totals {
		assert.Equal(t, answers.Minor("0"), total.ClosingMinor, total.Currency)
	}
	b.json(&one, "trial-balance", "--org", "jp", "--currency", "JPY")
	require.Len(t, one.Totals, 1)
	assert.Equal(t, answers.Decimal("28305"), one.Totals[0].Debit, "yen have no decimals")
	assert.Contains(t, b.ok("trial-balance", "--org", "es"), "Taxes withheld by customers   243.00")
}

func TestTrialBalanceFailsOutOfBalance(t *testing.T) {
	t.Parallel()
	b := posted(t)
	for _, stmt := range []string{
		`ALTER TABLE daybook.entries DISABLE TRIGGER entries_append_only`,
		`UPDATE daybook.entries SET amount_minor = amount_minor + 1 WHERE account_code = '1450'`,
	} {
		_, err := b.Pool.Exec(t.Context(), stmt)
		require.NoError(t, err)
	}
	r := b.run("trial-balance", "--all-orgs")
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Contains(t, r.err, "debits and credits differ")
	assert.Contains(t, r.out, "0.01", "the figures are printed all the same")
}
