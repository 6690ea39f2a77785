package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/queue"
)

// Domain code without Go writes the document and asks for it in one statement.
func TestEnqueueFromACTE(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const stmt = `
WITH doc AS (
    INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content, accounting_ready_at, accounting_ready_version)
    SELECT 'org_1', 'doc_' || i, 'invoice', 'out', 'EUR', '2026-03-14', '{}', now(), i FROM generate_series(1, 3) i
    RETURNING org_id, id, accounting_ready_version
)
SELECT doc.id, job.job_id, job.result
  FROM doc, LATERAL daybook.enqueue_accounting_job(doc.org_id, doc.id, doc.accounting_ready_version) AS job
 ORDER BY doc.id`
	rows, err := b.Pool.Query(t.Context(), stmt)
	require.NoError(t, err)
	defer rows.Close()
	var n int64
	for rows.Next() {
		n++
		var id, job, result string
		require.NoError(t, rows.Scan(&id, &job, &result))
		assert.Equal(t, string(queue.Enqueued), result)
		assert.NotEmpty(t, job)
	}
	require.NoError(t, rows.Err())
	assert.EqualValues(t, 3, n)
	assert.EqualValues(t, 3, fixture.Job(t, b.Pool, org, "doc_3").VersionHint)
}

func TestEnqueueManyFromACTE(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const stmt = `
WITH doc AS (
    INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content, accounting_ready_version)
    SELECT 'org_1', 'doc_' || i, 'invoice', 'out', 'EUR', '2026-03-14', '{}', i FROM generate_series(1, 500) i
    RETURNING org_id, id, accounting_ready_version
), keys AS (
    SELECT array_agg(org_id) AS orgs, array_agg(id) AS ids, array_agg(accounting_ready_version) AS versions FROM doc
)
SELECT count(*) FROM keys, LATERAL daybook.enqueue_accounting_jobs(keys.orgs, keys.ids, keys.versions) AS job WHERE job.result = 'enqueued'`
	assert.Equal(t, 500, fixture.Count(t, b.Pool, stmt))
	assert.EqualValues(t, 321, fixture.Job(t, b.Pool, org, "doc_321").VersionHint)
}

func TestNamedArguments(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.putDocument()
	for _, c := range []struct{ stmt, want string }{
		{
			`SELECT result FROM daybook.enqueue_accounting_job(version_hint => 3, document_id => 'doc_1', org_id => 'org_1')`,
			"enqueued",
		},
		{`SELECT result FROM daybook.enqueue_accounting_job(org_id => 'org_1', document_id => 'doc_1', version_hint => 4, ready_at => now() + interval '1 hour', priority => 1)`, "coalesced"},
		{`SELECT result FROM daybook.enqueue_accounting_jobs(org_ids => ARRAY['org_1'], document_ids => ARRAY['doc_1'], version_hints => ARRAY[4], priorities => ARRAY[1])`, "unchanged"},
		{`SELECT result FROM daybook.mark_accounting_job_pending(org_id => 'org_1', document_id => 'doc_1', delay_seconds => 2.5)`, "rescheduled"},
		{`SELECT result FROM daybook.cancel_accounting_job(org_id => 'org_1', document_id => 'doc_1')`, "cancelled"},
		{
			`SELECT result FROM daybook.mark_document_ready(org_id => 'org_1', document_id => 'doc_1', priority => 3)`,
			"unchanged",
		},
		{`SELECT result FROM daybook.mark_document_not_ready(org_id => 'org_1', document_id => 'doc_1')`, "unchanged"},
		{`SELECT result FROM daybook.mark_document_deleted(org_id => 'org_1', document_id => 'doc_1')`, "unchanged"},
	} {
		var result string
		require.NoError(t, b.Pool.QueryRow(t.Context(), c.stmt).Scan(&result), c.stmt)
		assert.Equal(t, c.want, result, c.stmt)
	}
}

// Nulls in the arrays are the defaults of a single request.
func TestEnqueueManyDefaults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.clock()
	b.exec(`SELECT daybook.enqueue_accounting_jobs(ARRAY['org_1', 'org_1'], ARRAY['doc_1', 'doc_2'], ARRAY[1, 1],
	                                               ARRAY[NULL, now() + interval '1 hour'], ARRAY[NULL, 3])`)
	job := b.job()
	assert.Equal(t, queue.Normal, job.Priority)
	assert.False(t, job.ReadyAt.Before(before))
	assert.False(t, job.ReadyAt.After(b.clock()))
	job = fixture.Job(t, b.Pool, org, "doc_2")
	assert.Equal(t, queue.Low, job.Priority)
	assert.WithinDuration(t, before.Add(time.Hour), job.ReadyAt, 10*time.Second)
}
