package health_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/watching/health"
)

func TestWhatNamedQueuesHoldBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
INSERT INTO daybook.job_workers (id, name, types) VALUES ('w', 'w', '{mail}'), ('async-operations', 'async operations by SQL', '{mail}');
SELECT daybook.set_queue('reports'), daybook.set_queue('print', 'printers'), daybook.set_queue('narrow', NULL, 1), daybook.set_queue('slow', NULL, NULL, 1, 60), daybook.set_queue('plain'), daybook.set_queue('shared', per_process => 1);
SELECT daybook.pause_queue('reports'), daybook.pause_queue('plain');
INSERT INTO daybook.queue_rates (queue, starts, at) VALUES ('slow', 0, now());
INSERT INTO daybook.jobs (id, org_id, type, payload, queue, fleet, ready_at) VALUES
  ('a', 'acme', 'mail', '{}', 'reports', 0, now() - interval '1 hour'), ('b', 'acme', 'press', '{}', 'print', daybook.queue_fleet('print'), now() - interval '2 hours'),
  ('c', 'acme', 'mail', '{}', 'narrow', 0, now() - interval '3 minutes'), ('d', 'acme', 'mail', '{}', 'slow', 0, now()),
  ('e', 'acme', 'mail', '{}', 'shared', 0, now() - interval '30 seconds');
INSERT INTO daybook.jobs (id, org_id, type, payload, queue, state, run_count, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at)
  SELECT 'held ' || queue, 'acme', 'mail', '{}', queue, 'leased', 1, 't', 1, 0, now(), now() FROM unnest(ARRAY['narrow', 'shared']) AS queue`)
	r := b.check()
	paused := one(t, r, health.QueuePaused)
	assert.Equal(t, health.Warning, paused.Severity)
	assert.Contains(t, paused.Says, "Queue reports has been paused for ")
	assert.Contains(t, paused.Says, "1 due job has waited for 1 h.")
	assert.Contains(t, paused.Todo, "daybook queues resume reports")
	unworked := one(t, r, health.QueueUnworked)
	assert.Equal(t, "print", unworked.Queue)
	assert.Contains(t, unworked.Says,
		"Queue print is worked by the workers of the fleet printers, and none of them runs: ")
	assert.Contains(t, unworked.Todo, "DAYBOOK_FLEET=printers daybook worker")
	caps := of(r, health.CapReached)
	if assert.Len(t, caps, 3) {
		assert.Contains(t, caps[0].Says, "Queue narrow has 1 job at work, as many as its limit allows: ")
		assert.Equal(t, health.Warning, caps[0].Severity)
		assert.Contains(t, caps[1].Says, "Queue shared has 1 job at work, as many as its workers may have, 1 each: ",
			"of the one process")
		assert.Contains(t, caps[0].Todo, "`daybook queues set narrow --max-parallel 2`")
		assert.Contains(t, caps[1].Todo, "`daybook queues set shared --per-process 2`")
		assert.Contains(t, caps[2].Todo, "`daybook queues set slow --rate 2`")
		assert.Contains(t, caps[2].Says, "Queue slow has begun as many jobs as its rate of 1 in 1 min allows: ")
		assert.Equal(t, health.Info, caps[2].Severity)
	}
	assert.Empty(t, of(r, health.OldestDue), "what a queue holds back is no riddle")
	assert.Empty(t, of(r, health.HandlerMissing))
}

// An organization that is at its rate is told from one at its cap.
func TestOrganizationAtItsRate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
INSERT INTO daybook.job_workers (id, name, types) VALUES ('w', 'w', '{mail}');
INSERT INTO daybook.organizations (id, max_in_flight, rate, rate_seconds) VALUES ('acme', 5, 10, 60), ('at rest', NULL, 1, 1);
INSERT INTO daybook.organization_rates (org_id, starts, at) VALUES ('acme', 0.5, now()), ('at rest', 0, now() - interval '1 minute');
INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ('a', 'acme', 'mail', '{}'), ('b', 'at rest', 'mail', '{}')`)
	f := one(t, b.check(), health.CapReached)
	assert.Equal(t, health.Info, f.Severity)
	assert.Equal(t, "acme", f.OrgID)
	assert.Contains(t, f.Says, "Organization acme has begun as many jobs as its rate of 10 in 1 min allows: 1 due job")
	assert.Equal(t, "If more may begin, raise the rate: `daybook organizations rate --org acme --rate 20 --per 1m0s`, or "+
		"remove it: `daybook organizations rate --org acme --none`.", f.Todo)
}

// Jobs that hang are named before it is advised to make room for more.
func TestHangingJobsFillAQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
INSERT INTO daybook.job_workers (id, name, types) VALUES ('w', 'w', '{mail}');
SELECT daybook.set_queue('bank', NULL, 2);
INSERT INTO daybook.jobs (id, org_id, type, payload, queue, ready_at) VALUES ('a', 'acme', 'mail', '{}', 'bank', now() - interval '1 hour');
INSERT INTO daybook.jobs (id, org_id, type, payload, queue, state, run_count, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at, worker)
SELECT 'hung-' || n, 'acme', 'mail', '{}', 'bank', 'leased', 1, 't', 1, 0, now() - n * interval '1 hour', now(), 'w7' FROM generate_series(2, 3) n`)
	f := one(t, b.check(), health.CapReached)
	assert.Contains(t, f.Says, "At work longest: job hung-3 of type mail, for 3 h, on worker w7.")
	assert.Regexp(t, "^See first whether it hangs: `daybook jobs show hung-3`. If it does, end it: `daybook jobs "+
		"cancel hung-3`", f.Todo)
	assert.Contains(t, f.Todo, "`daybook queues set bank --max-parallel 4`")
}

func TestSequenceHeld(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.enqueue_job('acme', 'mail', '{}', sequence => s) FROM unnest(ARRAY['order-7', 'order-7', 'order-7', 'alone', 'goes', 'goes']) AS s`)
	b.exec(`SELECT daybook.check_waits()`)
	b.exec(`
UPDATE daybook.jobs j SET state = 'failed', run_count = 3, last_error = 'no', last_error_code = 'TIMEOUT', finished_at = clock_timestamp() - interval '1 hour'
  FROM daybook.job_sequences s WHERE s.holder = j.id AND s.key IN ('order-7', 'alone')`)
	r := b.check()
	assert.Contains(t, r.Summary, ", 2 wait for their turn in a sequence, nothing else waits")
	f := one(t, r, health.SequenceHeld)
	assert.EqualValues(t, 2, f.Count)
	assert.Equal(t, health.Warning, f.Severity)
	assert.Contains(t, f.Says, "Sequence order-7 of organization acme has stood still for 1 h, because its job of type "+
		"mail failed for good (TIMEOUT): 2 jobs wait behind it.")
	assert.Contains(t, f.Todo, "daybook jobs retry "+f.Example)
	b.exec(`UPDATE daybook.jobs SET state = 'cancelled' WHERE id = $1`, f.Example)
	b.exec(`SELECT daybook.check_waits()`)
	assert.Empty(t, of(b.check(), health.SequenceHeld), "the next one has the turn")
}

// A job that has the turn and is due only in 90 days keeps those behind it waiting, although they
// could be worked.
func TestSequenceWaitsForALateJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.enqueue_job('acme', 'mail', '{}', sequence => s) FROM unnest(ARRAY['order 7', 'order 7', 'order 7', 'alone', 'soon', 'soon', 'asks', 'asks', 'all later', 'all later']) AS s`)
	b.exec(`SELECT daybook.check_waits()`)
	b.exec(`
UPDATE daybook.jobs j SET ready_at = now() + CASE s.key WHEN 'soon' THEN interval '5 hours' ELSE interval '90 days 1 minute' END,
       last_error_code = CASE WHEN s.key = 'asks' THEN 'AWAITING_CALLBACK' END
  FROM daybook.job_sequences s WHERE s.holder = j.id;
UPDATE daybook.jobs SET first_ready_at = now() + interval '100 days' WHERE sequence = 'all later' AND ready_at > '9999-01-01'`)
	r := b.check()
	assert.Contains(t, r.Summary, ", 2 wait for their turn in a sequence, nothing else waits")
	f := one(t, r, health.SequenceHeld)
	assert.EqualValues(t, 2, f.Count)
	assert.Equal(t, health.Warning, f.Severity)
	assert.Equal(t, "Sequence order 7 of organization acme waits for job "+f.Example+
		" of type mail, which has the turn and is due only in 90 d: 2 jobs wait behind it.", f.Says)
	assert.Contains(t, f.Todo, "`daybook jobs retry "+f.Example+"`")
	b.exec(`SELECT daybook.retry_job($1)`, f.Example)
	assert.Empty(t, of(b.check(), health.SequenceHeld), "its time has come: it is due now")
}

// What is due at this moment does not stand beside "nothing waits".
func TestSummaryDoesNotContradictTheCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO daybook.jobs (org_id, type, payload) VALUES ('acme', 'mail', '{}')`)
	assert.Contains(t, b.check().Summary, "nothing waits longer than ")
	b.exec(`DELETE FROM daybook.jobs;
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, state, last_error_code, last_error, run_count, finished_at)
SELECT 1, 'acme', n::text, 'failed', 'UNBALANCED', 'e', 1, now() FROM generate_series(1, 12) n`)
	assert.Contains(t, b.check().Summary, "nothing waits, but 12 documents could not be posted; 1 warning.")
}

// What no worker can work now waits, whatever else is worked.
func TestSummaryCountsWhatWaitsForAWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
INSERT INTO daybook.job_workers (id, name, types) VALUES ('w', 'w', '{known}');
INSERT INTO daybook.jobs (id, org_id, type, payload, ready_at) VALUES
  ('a', 'acme', 'mail', '{}', now() - interval '8 minutes'), ('b', 'acme', 'mail', '{}', now() - interval '8 minutes'),
  ('c', 'acme', 'known', '{}', now() - interval '24 seconds'), ('d', 'asleep', 'known', '{}', now() - interval '1 hour');
INSERT INTO daybook.organizations (id, paused_at) VALUES ('asleep', now())`)
	assert.Contains(t, b.check().Summary,
		"2 wait for a worker that has their type, 1 is held back, nothing else waits longer than 24 s")
	b.exec(`UPDATE daybook.jobs SET ready_at = now() + interval '1 hour' WHERE id IN ('b', 'c', 'd')`)
	assert.Contains(t, b.check().Summary, "1 waits for a worker that has its type, nothing else waits")
}

// A job that waits for others, or for a callback, is neither due nor tried again.
func TestWaitingJobsAreNotDue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
INSERT INTO daybook.jobs (id, org_id, type, payload, last_error, last_error_code, run_count, ready_at) VALUES
  ('called', 'acme', 'mail', '{}', 'asks', 'AWAITING_CALLBACK', 1, now() + interval '1 hour'), ('turn', 'acme', 'mail', '{}', 'no', 'TIMEOUT', 1, '9999-12-31 00:00:00+00')`)
	r := b.check()
	assert.Empty(t, of(r, health.RetryingJobs))
	assert.Empty(t, of(r, health.OldestDue))
	assert.Contains(t, r.Summary, "nothing waits")
}
