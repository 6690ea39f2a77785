package health_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/watching/health"
)

func TestOldestDue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO daybook.jobs (id, org_id, type, payload, ready_at, first_ready_at)
SELECT 'j' || n, 'acme', 'mail', '{}', now() - n * interval '1 minute', now() FROM generate_series(0, 3) n;
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, ready_at) VALUES (1, 'acme', 'd', now() - interval '1 hour');
SELECT queues.enqueue('mail', '{}', now() - interval '2 minutes')`)
	r := b.check()
	all := of(r, health.OldestDue)
	if assert.Len(t, all, 3) {
		assert.Equal(t, "j3", all[0].Example)
		assert.EqualValues(t, 4, all[0].Count)
		assert.Equal(t, health.Critical, all[0].Severity, "none was completed")
		assert.Equal(t, "accounting", all[1].Kind)
		assert.Equal(t, health.Critical, all[1].Severity)
		assert.Contains(t, all[1].Says, "1 h")
		assert.Equal(t, "tasks", all[2].Kind)
	}
	assert.False(t, r.Working)
	assert.Contains(t, r.Summary, "Nothing is worked: the oldest due job of type mail has waited for 3 min")
	assert.Contains(t, r.Summary, "no document was completed in the last minute")

	// A worker holds a job, which may take long.
	b.exec(`DELETE FROM daybook.accounting_work_queue;
INSERT INTO daybook.jobs (id, org_id, type, payload, state, run_count, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at)
  VALUES ('held', 'acme', 'mail', '{}', 'leased', 1, 't', 1, 0, now(), now())`)
	r = b.check()
	assert.Contains(t, r.Summary,
		"Not everything is worked (jobs is): the oldest due task of type mail has waited for 2 min")

	b.exec(`DELETE FROM queues.open_task`)
	r = b.check()
	assert.Equal(t, health.Warning, one(t, r, health.OldestDue).Severity)
	assert.True(t, r.Working)
	assert.Contains(t, r.Summary, "It is not known whether work gets done: nothing was completed in the last minute, "+
		"but the oldest due job has waited for 3 min")

	b.exec(`SELECT queues.enqueue('mail', '{}'); INSERT INTO queues.task_completed (task_id) SELECT max(task_id) FROM queues.task`)
	assert.Contains(t, b.check().Summary, "1 completed in the last minute, but the oldest due job has waited for 3 min")
}

func TestFailedJobsAreGrouped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
SELECT 'm' || n, 'acme', 'email', '{}', 'failed', 'dial tcp 10.0.0.1:25: connection refused', 'NETWORK_ERROR', now() - n * interval '1 hour', 5 FROM generate_series(1, 3) n;
INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count) VALUES
  ('p', 'acme', 'email', '{}', 'failed', 'no recipient', 'PAYLOAD_INVALID', now(), 1), ('n', 'acme', 'email', '{}', 'failed', 'gone', 'NOT_FOUND', now(), 1), ('h', 'acme', 'shrink', '{}', 'failed', 'no worker has a handler', 'HANDLER_MISSING', now(), 0),
  ('w', 'acme', 'webhook', '{}', 'failed', 'https://hooks.local: the host''s address is private, loopback, link-local or reserved; DAYBOOK_WEBHOOK_ALLOW_NETWORKS can allow it', 'PAYLOAD_INVALID', now(), 1),
  ('f', 'acme', 'bill', '{}', 'failed', 'payload: unknown field "currency"', 'PAYLOAD_INVALID', now(), 1), ('k', 'acme', 'payout', '{}', 'failed', '{"$encrypted": {"key": "age1x", "wrapped": "", "data": ""}}', 'KEY_UNKNOWN', now(), 1);
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, state, last_error, last_error_code, finished_at, updated_at) VALUES
  (1, 'acme', 'invoice 7', 'failed', 'no rule matches', 'NO_MATCHING_RULE', now(), now()), (1, 'acme', 'd', 'failed', 'in March', 'PERIOD_CLOSED', now(), now()),
  (1, 'acme', 'u', 'failed', 'unknown', 'DOCUMENT_UNKNOWN', now(), now());
SELECT queues.enqueue('sms', '{}');
INSERT INTO queues.error (task_id, error_message) SELECT task_id, 'refused' FROM queues.task;
INSERT INTO queues.task_completed (task_id) SELECT task_id FROM queues.task`)
	r := b.check()
	said := map[string]health.Finding{}
	for _, f := range of(r, health.FailedJobs) {
		said[f.Kind+" "+f.Type+" "+f.ErrorCode] = f
	}
	assert.Len(t, said, 10)
	assert.Contains(t, said["jobs email NOT_FOUND"].Todo, "daybook jobs cancel --all --type email --code NOT_FOUND",
		"or the finding stays")
	assert.Contains(t, said["accounting  DOCUMENT_UNKNOWN"].Todo, "daybook accounting cancel acme u")
	network := said["jobs email NETWORK_ERROR"]
	assert.EqualValues(t, 3, network.Count)
	assert.Equal(t, "m1", network.Example, "the newest")
	assert.Contains(t, network.Says, "the called server cannot be reached")
	assert.Contains(t, network.Says, "connection refused")
	assert.Contains(t, network.Todo, "DAYBOOK_SMTP_HOST")
	assert.Contains(t, network.Todo, "daybook jobs retry --all --type email --code NETWORK_ERROR")
	payload := said["jobs email PAYLOAD_INVALID"]
	assert.Contains(t, payload.Todo, "daybook jobs cancel --all --type email --code PAYLOAD_INVALID")
	assert.NotContains(t, payload.Todo, "jobs retry", "the same payload fails again")
	assert.Contains(t, payload.Todo, "docs/edit-jobs.md")
	local := said["jobs webhook PAYLOAD_INVALID"]
	assert.Contains(t, local.Todo, "name its network in the variable that the error names, and restart the worker",
		"the payload is right")
	assert.Contains(t, local.Todo, "daybook jobs retry --all --type webhook --code PAYLOAD_INVALID")
	newer := said["jobs bill PAYLOAD_INVALID"]
	assert.Contains(t, newer.Todo, "docs/deploying.md", "the worker's program may be older")
	assert.Contains(t, newer.Todo, "daybook jobs retry --all --type bill --code PAYLOAD_INVALID")
	locked := said["jobs payout KEY_UNKNOWN"]
	assert.Contains(t, locked.Says, "it is encrypted under the key age1x")
	assert.NotContains(t, locked.Says, "wrapped")
	assert.Contains(t, locked.Todo, "docs/encryption.md")
	rule := said["accounting  NO_MATCHING_RULE"]
	assert.Contains(t, rule.Says, "no posting rule")
	assert.Contains(t, rule.Todo, "daybook rules apply")
	assert.Contains(t, rule.Todo, "`daybook accounting show acme 'invoice 7'`")
	assert.Contains(t, said["accounting  PERIOD_CLOSED"].Todo, "daybook periods open")
	assert.Contains(t, said["tasks sms "].Says, "refused.")
	assert.Equal(t, "shrink", one(t, r, health.HandlerMissing).Type)
}

func TestRetryingJobsAreGrouped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
INSERT INTO daybook.jobs (id, org_id, type, payload, last_error, last_error_code, run_count, ready_at)
SELECT 'm' || n, 'acme', 'email', '{}', 'dial tcp: connection refused', 'NETWORK_ERROR', 1, now() + interval '5 minutes' FROM generate_series(1, 12) n;
INSERT INTO daybook.jobs (id, org_id, type, payload, ready_at) VALUES ('later', 'acme', 'email', '{}', now() + interval '1 hour');
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, last_error, last_error_code, run_count, ready_at) VALUES (1, 'acme', 'd', 'too slow', 'TIMEOUT', 1, now() + interval '5 minutes')`)
	all := of(b.check(), health.RetryingJobs)
	if assert.Len(t, all, 2) {
		assert.Equal(t, health.Warning, all[0].Severity, "many")
		assert.EqualValues(t, 12, all[0].Count)
		assert.Equal(t, "TIMEOUT", all[1].ErrorCode)
		assert.Equal(t, health.Info, all[1].Severity)
	}
}

func TestWhatHoldsJobsBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
INSERT INTO daybook.organizations (id, paused_at, max_in_flight, source) VALUES ('asleep', now() - interval '3 hours', NULL, NULL), ('slow', NULL, 1, NULL), ('shop', NULL, NULL, 'erp');
INSERT INTO daybook.job_workers (id, name, types) VALUES ('w', 'w', '{mail}');
INSERT INTO daybook.jobs (id, org_id, type, payload, ready_at) VALUES
  ('a', 'asleep', 'mail', '{}', now() - interval '1 hour'), ('b', 'slow', 'mail', '{}', now() - interval '2 hours'), ('c', 'acme', 'shrink', '{}', now() - interval '2 minutes');
INSERT INTO daybook.jobs (id, org_id, type, payload, state, run_count, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at, capped)
  VALUES ('held', 'slow', 'mail', '{}', 'leased', 1, 't', 1, 0, now(), now(), true);
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, ready_at) VALUES (1, 'shop', 'd', now() - interval '2 minutes');
SELECT queues.enqueue('mail', '{}'), queues.limit_tasks('mail', true, NULL)`)
	r := b.check()
	assert.Contains(t, one(t, r, health.OrganizationPaused).Says,
		"Organization asleep has been paused for 3 h: 1 due job has waited for 1 h.")
	assert.Contains(t, one(t, r, health.CapReached).Says, "Organization slow has 1 job at work, as many as the cap "+
		"allows: 1 due job has waited for 2 h. At work longest: job held of type mail, for ")
	assert.Contains(t, one(t, r, health.HandlerMissing).Says, "No worker that runs has a handler for jobs of type shrink")
	assert.Contains(t, one(t, r, health.SourceMissing).Says, "source erp")
	assert.Contains(t, one(t, r, health.TypePaused).Todo, "daybook tasks resume --type mail")
	assert.Empty(t, of(r, health.OldestDue), "what is held back is no riddle")
}

// TestTasksHeldBackByALimitOfAll: the advice is the command that undoes what was done.
func TestTasksHeldBackByALimitOfAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT queues.enqueue('mail', '{}'), queues.limit_tasks('*', true, NULL)`)
	f := one(t, b.check(), health.TypePaused)
	assert.Contains(t, f.Says, "All tasks, those of type mail among them, have been paused for ")
	assert.Contains(t, f.Says, ": 1 due task has waited for ")
	assert.Equal(t, "Resume them when they may be worked: `daybook tasks resume --all`.", f.Todo)
	b.exec(`SELECT queues.limit_tasks('mail', true, NULL)`)
	assert.Contains(t, one(t, b.check(), health.TypePaused).Todo,
		"`daybook tasks resume --all` and `daybook tasks resume --type mail`")
	b.exec(`SELECT queues.limit_tasks('*', false, NULL)`)
	assert.Equal(t, "Resume them when they may be worked: `daybook tasks resume --type mail`.",
		one(t, b.check(), health.TypePaused).Todo)

	b.exec(`INSERT INTO daybook.job_types (kind, type, worker, last_seen) VALUES ('tasks', 'mail', 'w', now());
SELECT queues.limit_tasks('mail', false, NULL);
SELECT * FROM queues.claim_tasks(1, 'mail');
SELECT queues.limit_tasks('*', NULL, 1), queues.enqueue('mail', '{}')`)
	f = one(t, b.check(), health.CapReached)
	assert.Contains(t, f.Says,
		"All types of tasks together, mail among them, have 1 task at work, as many as the cap allows: ")
	assert.Contains(t, f.Todo, "`daybook tasks cap --all --max-in-flight 2`")
}

func TestStaleLeases(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
INSERT INTO daybook.jobs (id, org_id, type, payload, state, run_count, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at, worker)
  VALUES ('old', 'acme', 'mail', '{}', 'leased', 1, 't', 1, 0, now(), now() - interval '5 minutes', 'w7'), ('new', 'acme', 'mail', '{}', 'leased', 1, 't', 1, 0, now(), now(), 'w8')`)
	f := one(t, b.check(), health.StaleLeases)
	assert.EqualValues(t, 1, f.Count)
	assert.Contains(t, f.Says, "w7")
	assert.Contains(t, f.Todo, "daybook leases release")
}

// Leases and jobs that wait have times of a clock that was set back since. A retry of the present
// clock, and a claim by SQL, are as they should be.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const leased = `state, run_count, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at`
	b.exec(`
INSERT INTO daybook.jobs (id, org_id, type, payload, ready_at, updated_at) VALUES
  ('waits', 'acme', 'mail', '{}', now() + interval '59 minutes', now() + interval '59 minutes'), ('again', 'acme', 'mail', '{}', now() + interval '1 hour', now());
INSERT INTO daybook.jobs (id, org_id, type, payload, ` + leased + `) VALUES
  ('held', 'acme', 'mail', '{}', 'leased', 1, 't', 1, 0, now(), now() + interval '1 minute'), ('claim', 'acme', 'mail', '{}', 'leased', 1, '/async-operations/1', 1, 0, now(), now() + interval '4 minutes');
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, ` + leased +
		`) VALUES (1, 'acme', 'd', 'leased', 1, 't', 1, 0, now(), now() + interval '2 minutes');
INSERT INTO queues.task (task_type, payload, enqueued_at, scheduled_at) VALUES ('mail', '{}', now() + interval '3 minutes', now() + interval '3 minutes'), ('mail', '{}', now(), now());
SELECT queues.rebuild_open_tasks(), queues.dequeue_next_available_task()`)
	says := func() map[string]string {
		found := map[string]string{}
		for _, f := range of(b.check(), health.ClockSkew) {
			found[f.Kind] = f.Says
		}
		return found
	}
	assert.Regexp(t, `^2 jobs .* up to 5[89] min`, says()["jobs"])
	assert.Regexp(t, `^1 job .* up to [12] min`, says()["accounting"])
	assert.Regexp(t, `^1 task .* up to [23] min`, says()["tasks"])
	b.exec(`UPDATE queues.open_task SET leased_until = leased_until + interval '20 minutes' WHERE leased_until IS NOT NULL`)
	assert.Contains(t, says()["tasks"], "2 tasks")
}

// Many paused organizations are one finding beyond the first ten.
func TestManyPausedOrganizations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO daybook.organizations (id, paused_at) SELECT 'o' || n, now() FROM generate_series(1, 30) n;
INSERT INTO daybook.jobs (org_id, type, payload) SELECT 'o' || n, 'mail', '{}' FROM generate_series(1, 30) n`)
	all := of(b.check(), health.OrganizationPaused)
	if assert.Len(t, all, 11) {
		assert.EqualValues(t, 20, all[10].Count)
		assert.Contains(t, all[10].Says, "20 more organizations")
	}
}

// So are many types and named queues.
func TestManyTypesAndQueues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO daybook.queues (name, paused_at) SELECT 'q' || n, now() FROM generate_series(1, 30) n;
INSERT INTO daybook.jobs (org_id, type, payload, queue, ready_at) SELECT 'o', 't' || n, '{}', CASE WHEN n > 30 THEN 'q' || n - 30 END, now() - interval '1 hour' FROM generate_series(1, 60) n;
INSERT INTO daybook.jobs (org_id, type, payload, state, finished_at, last_error, last_error_code) SELECT 'o', 't' || n % 30, '{}', 'failed', now(), 'e', 'TIMEOUT' FROM generate_series(0, 59) n;
SELECT queues.enqueue('t' || n, '{}', now() - interval '2 minutes') FROM generate_series(1, 30) n`)
	r := b.check()
	for code, says := range map[health.Code]string{
		health.OldestDue: "20 more types are so: 20 jobs.", health.QueuePaused: "20 more queues are so: 20 jobs.",
		health.FailedJobs: "20 more types are so: 40 jobs.",
	} {
		all := slices.DeleteFunc(of(r, code), func(f health.Finding) bool { return f.Kind != "jobs" })
		if assert.Len(t, all, 11, code) {
			assert.Equal(t, says, all[10].Says, code)
			assert.Empty(t, all[10].Type+all[10].Queue, code)
		}
	}
	assert.Len(t, of(r, health.OldestDue), 22, "of jobs and of tasks")
	assert.Contains(t, r.Summary, "the oldest due job of type t")
}

// The owner of a type is on each of its findings.
func TestFindingsNameTheOwner(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.note_job_types('jobs', 'w', '{mail}', '{""}', '{team-mail}', '{3}', '{60}', '{1}', '{f}'), daybook.note_job_types('tasks', 'w', '{sms}', '{""}', '{""}', '{3}', '{60}', '{1}', '{f}'),
       queues.enqueue('fax', '{}');
INSERT INTO daybook.jobs (org_id, type, payload, ready_at) VALUES ('acme', 'mail', '{}', now() - interval '5 minutes')`)
	r := b.check()
	assert.Equal(t, "team-mail", one(t, r, health.OldestDue).Owner)
	assert.Contains(t, one(t, r, health.HandlerMissing).Says, "No worker that runs has a processor for tasks of type fax")
}

// A queue that grew during the last minutes is found, and one that is merely deep is not.
func TestBacklogGrows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO daybook.depths (seconds, at, kind, due, waiting, leased, failed, oldest_due_seconds)
SELECT 60, date_trunc('minute', now()) - n * interval '1 minute', kind, CASE kind WHEN 'jobs' THEN 2000 - 150 * n ELSE 5000 END, 0, 0, 0, 0
  FROM generate_series(0, 9) n, (VALUES ('jobs'), ('tasks')) k (kind)`)
	f := one(t, b.check(), health.BacklogGrows)
	assert.Equal(t, "jobs", f.Kind)
	assert.Contains(t, f.Says, "More jobs become due than are worked")

	r := health.Check(t.Context(), health.Options{Pool: b.Pool, OrgID: "acme"})
	assert.Empty(t, of(r, health.BacklogGrows))
	assert.Contains(t, r.Checked, health.Checked{Name: "backlog", Skipped: true}, "depths are of all organizations")
}
