package queue_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// Domain code without Go writes a row and enqueues the job that follows it in one statement.
func TestEnqueueJobFromACTE(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE usr (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text)`)
	const stmt = `
WITH usr_ AS (
    INSERT INTO usr (email) SELECT 'a' || i FROM generate_series(1, 3) i RETURNING *
), job AS (
    SELECT usr_.id, e.job_id, e.duplicate
      FROM usr_, daybook.enqueue_job('org_1', 'welcome', jsonb_build_object('user_id', usr_.id::text), 'welcome/' || usr_.id,
                                     links => jsonb_build_array(jsonb_build_object('kind', 'user', 'id', usr_.id::text))) e
)
SELECT count(*) FROM usr_ JOIN job USING (id) WHERE NOT job.duplicate`
	assert.Equal(t, 3, fixture.Count(t, b.Pool, stmt))
	assert.Equal(t, 3, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.jobs j JOIN daybook.job_links l ON l.job_id = j.id JOIN usr ON usr.id::text = l.id AND usr.id::text = j.payload ->> 'user_id'`))
}

// PostgreSQL does not run a CTE that only selects when the query does not read from it:
// docs/jobs.md warns of that.
func TestACTEThatNobodyReadsIsNotRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`WITH job AS (SELECT * FROM daybook.enqueue_job('org_1', 'welcome', '{}')) SELECT 1`)
	assert.Zero(t, b.queuedJobs())
	b.exec(`WITH job AS (SELECT * FROM daybook.enqueue_job('org_1', 'welcome', '{}')) SELECT count(*) FROM job`)
	assert.Equal(t, 1, b.queuedJobs())
}

// What the Go functions refuse, the SQL functions refuse as well, by one and by many.
func TestSQLRequestsThatAreWrong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct{ name, state, arguments string }{
		{"no organization", "DB010", `'', 'mail', '{}'`},
		{"null organization", "DB010", `NULL, 'mail', '{}'`},
		{"null type", "DB010", `'o', NULL, '{}'`},
		{"a type of two lines", "DB010", `'o', E'mail\n', '{}'`},
		{"long type", "DB010", `'o', repeat('t', 65), '{}'`},
		{"empty key", "DB010", `'o', 'mail', '{}', idempotency_key => ''`},
		{"long key", "DB010", `'o', 'mail', '{}', idempotency_key => repeat('€', 86)`},
		{"priority 0", "DB010", `'o', 'mail', '{}', priority => 0`},
		{"priority that is no smallint", "DB010", `'o', 'mail', '{}', priority => 40000`},
		{"no attempts", "DB010", `'o', 'mail', '{}', max_attempts => 0`},
		{"1001 attempts", "DB010", `'o', 'mail', '{}', max_attempts => 1001`},
		{"never", "DB010", `'o', 'mail', '{}', ready_at => 'infinity'`},
		{"links that are none", "DB010", `'o', 'mail', '{}', links => '{"kind": "k", "id": "i"}'`},
		{"links of JSON null", "DB010", `'o', 'mail', '{}', links => 'null'`},
		{"a link that is none", "DB010", `'o', 'mail', '{}', links => '["k"]'`},
		{"a link with a number", "DB010", `'o', 'mail', '{}', links => '[{"kind": "k", "id": 1}]'`},
		{"a link without id", "DB010", `'o', 'mail', '{}', links => '[{"kind": "k"}]'`},
		{"a link with an empty id", "DB010", `'o', 'mail', '{}', links => '[{"kind": "k", "id": ""}]'`},
		{"33 links", "DB010", `'o', 'mail', '{}', links => (SELECT jsonb_agg('{"kind": "k", "id": "i"}'::jsonb) FROM generate_series(1, 33))`},
		{"null payload", "DB021", `'o', 'mail', NULL`},
		{"JSON null", "DB021", `'o', 'mail', 'null'`},
		{"a list", "DB021", `'o', 'mail', '[]'`},
		{"501 keys", "DB021", `'o', 'mail', (SELECT jsonb_object_agg(i, i) FROM generate_series(1, 501) i)`},
		{"131073 bytes", "DB020", `'o', 'mail', jsonb_build_object('a', repeat('x', 131064))`},
	} {
		_, err := b.Pool.Exec(t.Context(), `SELECT daybook.enqueue_job(`+c.arguments+`)`)
		assertState(t, c.state, err, c.name)

		// The same as the second of two in bulk.
		names, values := []string{"org_ids", "types", "payloads"}, strings.SplitN(c.arguments, ", ", 4)
		types := map[string]string{
			"org_ids": "text", "types": "text", "payloads": "jsonb", "idempotency_key": "text", "priority": "integer",
			"max_attempts": "integer",
			"ready_at":     "timestamptz", "links": "jsonb",
		}
		plural := map[string]string{
			"org_ids": "org_ids", "types": "types", "payloads": "payloads", "idempotency_key": "idempotency_keys",
			"priority":     "priorities",
			"max_attempts": "max_attempts", "ready_at": "ready_ats", "links": "links",
		}
		if strings.Contains(c.arguments, "SELECT") || strings.Contains(c.arguments, "build_object") ||
			strings.Contains(c.arguments, "repeat('t', 65)") {
			continue // their commas are not between arguments
		}
		good := map[string]string{"org_ids": "'o'", "types": "'mail'", "payloads": "'{}'"}
		if len(values) == 4 {
			name, value, _ := strings.Cut(values[3], " => ")
			names, values[3] = append(names, name), value
			good[name] = "NULL"
		}
		var arguments []string
		for i, name := range names {
			arguments = append(arguments, plural[name]+" => ARRAY["+good[name]+", "+values[i]+"]::"+types[name]+"[]")
		}
		_, err = b.Pool.Exec(t.Context(), `SELECT daybook.enqueue_jobs(`+strings.Join(arguments, ", ")+`)`)
		assertState(t, c.state, err, c.name+", in bulk")
	}
	_, err := b.Pool.Exec(t.Context(), `SELECT daybook.enqueue_jobs('{o}', '{mail,mail}', ARRAY['{}']::jsonb[])`)
	assertState(t, "DB010", err, "arrays of two lengths")
	_, err = b.Pool.Exec(t.Context(),
		`SELECT daybook.enqueue_jobs('{o}', '{mail}', ARRAY['{}']::jsonb[], priorities => '{1,2}')`)
	assertState(t, "DB010", err, "more priorities than jobs")
	assert.Zero(t, b.queuedJobs())
	b.exec(`SELECT daybook.enqueue_jobs('{}', '{}', '{}'), daybook.enqueue_jobs(NULL, NULL, NULL)`)
	assert.Zero(t, b.queuedJobs())
}

func assertState(t *testing.T, want string, err error, name string) {
	t.Helper()
	var pg *pgconn.PgError
	if assert.ErrorAs(t, err, &pg, name) {
		assert.Equal(t, want, pg.Code, "%s: %s", name, pg.Message)
	}
}

// The limits hold in the bulk form and for payloads near them.
func TestSQLLimitsInBulk(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
SELECT daybook.enqueue_jobs('{o,o,o}', '{mail,mail,mail}', ARRAY[
    (SELECT jsonb_object_agg(i, i) FROM generate_series(1, 500) i),
    jsonb_build_object('a', repeat('x', 131063)),
    ('{"a":' || repeat('[', 9) || repeat(']', 9) || '}')::jsonb])`)
	assert.Equal(t, 3, b.queuedJobs())
	assert.Equal(t, models.MaxPayloadBytes,
		fixture.Count(t, b.Pool, `SELECT max(octet_length(payload::text)) FROM daybook.jobs`))
	for state, payload := range map[string]string{
		"DB020": `jsonb_build_object('a', repeat('x', 131064))`,
		"DB021": `('{"a":' || repeat('[', 10) || repeat(']', 10) || '}')::jsonb`,
	} {
		_, err := b.Pool.Exec(t.Context(), `SELECT daybook.enqueue_jobs('{o,o}', '{mail,mail}', ARRAY['{}', `+payload+`])`)
		assertState(t, state, err, payload)
	}
}

// People who come from a table async_operations find its function and views.
func TestAsyncOperations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const submission, form, workspace = "0197a0c0-0000-7000-8000-000000000001", "0197a0c0-0000-7000-8000-000000000002",
		"0197a0c0-0000-7000-8000-000000000003"
	var id string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `
SELECT daybook.enqueue_async_operation(p_operation_type => 'webhook', p_payload => '{"webhookUrl": "https://example.com/"}',
       p_submission_id => $1::uuid, p_form_id => $2::uuid, p_workspace_id => $3::uuid, p_max_attempts => 5)::text`,
		submission, form, workspace).Scan(&id))
	b.exec(`SELECT daybook.enqueue_async_operation('email', '{}')`)
	assert.Equal(t, workspace, b.queued(id).OrgID, "the workspace is the organization")
	assert.Equal(t, 5, *b.queued(id).MaxAttempts)

	b.exec(`
INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, error, started_at, turn_id, fence)
VALUES ($1, 'o', 'jobs', 'webhook', 1, 'retried', 'TIMEOUT', 'Connection timeout', now(), 't', 1),
       ($1, 'o', 'jobs', 'webhook', 2, 'failed', 'RATE_LIMITED', 'Rate limited', now(), 't', 2),
       ($1, 'o', 'jobs', 'webhook', 3, 'completed', NULL, NULL, now(), 't', 3)`, id)
	type operation struct {
		ID, OperationType, Status       string
		Payload                         json.RawMessage
		SubmissionID, FormID, Workspace string
		Attempts, MaxAttempts           int
		NextRetryAt, CompletedAt        *time.Time
		History                         []struct {
			Error     string    `json:"error"`
			Timestamp time.Time `json:"timestamp"`
			Attempt   int       `json:"attempt"`
		}
	}
	read := func() (o operation) {
		require.NoError(t, b.Pool.QueryRow(t.Context(), `
SELECT id, operation_type, status, payload, submission_id, form_id, workspace_id, attempts, max_attempts, next_retry_at, completed_at, error_history
  FROM daybook.async_operations WHERE id = $1`, id).
			Scan(&o.ID, &o.OperationType, &o.Status, &o.Payload, &o.SubmissionID, &o.FormID, &o.Workspace, &o.Attempts,
				&o.MaxAttempts,
				&o.NextRetryAt, &o.CompletedAt, &o.History))
		return o
	}
	o := read()
	assert.Equal(t, []string{"webhook", "pending", submission, form, workspace},
		[]string{o.OperationType, o.Status, o.SubmissionID, o.FormID, o.Workspace})
	assert.NotNil(t, o.NextRetryAt)
	require.Len(t, o.History, 2, "attempts that led to nothing")
	assert.Equal(t, "Rate limited", o.History[1].Error)
	assert.Equal(t, 2, o.History[1].Attempt)
	assert.False(t, o.History[1].Timestamp.IsZero())
	for _, c := range []struct {
		state  models.JobState
		status string
	}{
		{models.JobPending, "failed"},
		{models.JobLeased, "processing"},
		{models.JobFailed, "dead"},
		{models.JobCancelled, "cancelled"},
		{models.JobCompleted, "completed"},
	} {
		if c.state == models.JobFailed {
			b.exec(`UPDATE daybook.jobs SET turn_id = NULL, fence = NULL, leased_generation = NULL, worker = NULL, attempt_started_at = NULL, working = false, state = 'pending' WHERE id = $1`, id)
		}
		b.end(id, c.state)
		o := read()
		assert.Equal(t, c.status, o.Status)
		assert.Equal(t, c.state == models.JobPending, o.NextRetryAt != nil, c.status)
		assert.Equal(t, c.state == models.JobCompleted, o.CompletedAt != nil, c.status)
	}
	assert.Equal(t, 2, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.async_operations_status
 WHERE (operation_type, status, count, avg_attempts) IN (('webhook', 'completed', 1, 2), ('email', 'pending', 1, 0)) AND oldest <= newest`))
	assert.Equal(t, 2, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.job_status
 WHERE (type, state, count, average_attempts) IN (('webhook', 'completed', 1, 2), ('email', 'pending', 1, 0)) AND oldest <= newest`))
	var org string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT org_id FROM daybook.jobs WHERE type = 'email'`).Scan(&org))
	assert.Equal(t, "default", org, "without a workspace")
}

// A job that is due now wakes a waiting worker at the commit; one that is due later does not.
func TestEnqueueingWakesAWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	listener, err := b.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer listener.Release()
	// Who waits holds the exclusive lock, and listens.
	_, err = listener.Exec(t.Context(), `SELECT pg_advisory_lock(daybook.lock_class('wakers'), 2); LISTEN daybook_jobs`)
	require.NoError(t, err)
	woken := func() bool {
		// A notification of its own comes after all that were sent before.
		b.exec(`SELECT pg_notify('daybook_jobs', 'last')`)
		n, err := listener.Conn().WaitForNotification(t.Context())
		require.NoError(t, err)
		if n.Payload == "last" {
			return false
		}
		_, err = listener.Conn().WaitForNotification(t.Context())
		require.NoError(t, err)
		return true
	}
	ctx := context.WithoutCancel(t.Context())
	later := queue.JobOptions{RunAt: time.Now().Add(hour)}
	r := b.newJob(welcome{}, later)
	assert.False(t, woken(), "enqueue for later")
	_, err = queue.EnqueueJobs(ctx, b.Pool, []queue.NewJob{{OrgID: org, Payload: welcome{}, Options: later}})
	require.NoError(t, err)
	assert.False(t, woken(), "enqueue many for later")
	_, err = queue.RetryJob(ctx, b.Pool, r.ID, queue.RetryOptions{Mode: queue.RetryLater})
	require.NoError(t, err)
	assert.False(t, woken(), "retry later")
	_, err = queue.RetryJob(ctx, b.Pool, r.ID, queue.RetryOptions{})
	require.NoError(t, err)
	assert.True(t, woken(), "retry now")
	b.newJob(welcome{}, queue.JobOptions{IdempotencyKey: "k"})
	assert.True(t, woken(), "enqueue")
	b.newJob(welcome{}, queue.JobOptions{IdempotencyKey: "k"})
	assert.False(t, woken(), "a duplicate")
	_, err = queue.EnqueueJobs(ctx, b.Pool,
		[]queue.NewJob{{OrgID: org, Payload: welcome{}}, {OrgID: org, Payload: welcome{}, Options: later}})
	require.NoError(t, err)
	assert.True(t, woken(), "enqueue many")
}
