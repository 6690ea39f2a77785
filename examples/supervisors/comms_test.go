package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// message is a process that sends messages: send_email or send_sms.
type message struct {
	channel, insert, validation string
}

var messages = []message{
	{"email", `INSERT INTO comms.email_message (to_address, subject, body) VALUES ('ada@example.com', 'Welcome', 'Hello Ada')`, "There is no email message 17."},
	{
		"sms", `INSERT INTO comms.sms_message (to_number, body) VALUES ('+4915112345678', 'Hello Ada')`,
		"There is no text message 17.",
	},
}

// each runs a test for both processes. The message has the number 1.
func each(t *testing.T, test func(b *bundle, m message)) {
	t.Parallel()
	for _, m := range messages {
		t.Run(m.channel, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(m.insert)
			test(b, m)
		})
	}
}

func (m message) kickoff(b *bundle, id int) string {
	b.t.Helper()
	return b.text(fmt.Sprintf(`SELECT comms.kickoff_send_%s($1)`, m.channel), id)
}

// supervise runs the supervisor of the first process, as its task does.
func (m message) supervise(b *bundle) string {
	b.t.Helper()
	return b.call("comms.send_"+m.channel+"_supervisor",
		fmt.Sprintf(`{"task_type": "db_function", "db_function": "comms.send_%[1]s_supervisor", "send_%[1]s_task_id": 1}`,
			m.channel))
}

// handle calls a handler for the first attempt.
func (m message) handle(b *bundle, outcome string) string {
	b.t.Helper()
	return b.call(fmt.Sprintf("comms.record_%s_%s", m.channel, outcome),
		fmt.Sprintf(`{"original_payload": {"send_%s_attempt_id": 1}, "error": "busy", "worker_payload": {}}`, m.channel))
}

// facts counts attempts, and their outcomes.
func (m message) facts(b *bundle) string {
	b.t.Helper()
	return b.text(fmt.Sprintf(`
SELECT format('%%s attempts, %%s failed, %%s succeeded', (SELECT count(*) FROM comms.send_%[1]s_attempt),
              (SELECT count(*) FROM comms.send_%[1]s_attempt_failed), (SELECT count(*) FROM comms.send_%[1]s_attempt_succeeded))`, m.channel))
}

func (m message) ended(b *bundle) func() bool {
	return func() bool { return b.count(`SELECT count(*) FROM queues.open_task`) == 0 }
}

// A message is sent once, and its supervisor ends.
func TestMessageIsSent(t *testing.T) {
	each(t, func(b *bundle, m message) {
		var sent []map[string]any
		b.providers[m.channel] = func(p map[string]any) (any, error) { sent = append(sent, p); return nil, nil }
		require.Empty(b.t, m.kickoff(b, 1))
		b.work(m.ended(b))
		assert.Len(b.t, sent, 1)
		assert.Equal(b.t, "1 attempts, 0 failed, 1 succeeded", m.facts(b))
		assert.Equal(b.t, "succeeded", m.supervise(b), "also when it is called again")
		assert.Zero(b.t, b.count(`SELECT count(*) FROM queues.open_task`))
	})
}

// Failures are tried again, with a pause that doubles, until one succeeds.
func TestMessageIsTriedAgain(t *testing.T) {
	each(t, func(b *bundle, m message) {
		tries := 0
		b.providers[m.channel] = func(map[string]any) (any, error) {
			if tries++; tries < 3 {
				return nil, errors.New("busy")
			}
			return nil, nil
		}
		require.Empty(b.t, m.kickoff(b, 1))
		b.work(m.ended(b))
		assert.Equal(b.t, "3 attempts, 2 failed, 1 succeeded", m.facts(b))
		const pauses = `
SELECT count(*) FROM (SELECT created_at - lag(created_at) OVER (ORDER BY send_%[1]s_attempt_id) AS pause, row_number() OVER (ORDER BY send_%[1]s_attempt_id) AS n
  FROM comms.send_%[1]s_attempt) a WHERE a.pause >= interval '20 ms' * power(2, n - 2)`
		assert.Equal(b.t, 2, b.count(fmt.Sprintf(pauses, m.channel)))
		assert.Equal(b.t, "busy",
			b.text(fmt.Sprintf(`SELECT min(error_message) FROM comms.send_%s_attempt_failed`, m.channel)))
	})
}

// After the last attempt the process is stuck, and its supervisor ends.
func TestMessageIsStuck(t *testing.T) {
	each(t, func(b *bundle, m message) {
		stuck := fmt.Sprintf(`SELECT comms.is_send_%s_stuck(1)::text`, m.channel)
		b.providers[m.channel] = func(map[string]any) (any, error) { return nil, errors.New("busy") }
		require.Empty(b.t, m.kickoff(b, 1))
		assert.Equal(b.t, "false", b.text(stuck))
		b.work(m.ended(b))
		assert.Equal(b.t, "3 attempts, 3 failed, 0 succeeded", m.facts(b))
		assert.Equal(b.t, "true", b.text(stuck))
		assert.Equal(b.t, "max_attempts_reached", m.supervise(b))

		// With more attempts it goes on, when its supervisor is enqueued again.
		b.providers[m.channel] = func(map[string]any) (any, error) { return nil, nil }
		b.exec(fmt.Sprintf(`CREATE OR REPLACE FUNCTION comms.send_%[1]s_settings(OUT max_attempts integer, OUT base_interval interval, OUT longest_interval interval,
 OUT attempt_timeout interval) LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$SELECT 4, interval '20 ms', interval '100 ms', interval '1 hour'$$;
SELECT queues.enqueue('db_function', '{"task_type": "db_function", "db_function": "comms.send_%[1]s_supervisor", "send_%[1]s_task_id": 1}')`, m.channel))
		b.work(m.ended(b))
		assert.Equal(b.t, "4 attempts, 3 failed, 1 succeeded", m.facts(b))
		assert.Equal(b.t, "false", b.text(stuck))
	})
}

// A kickoff that was made before does nothing, and one of what is not there says so.
func TestKickoff(t *testing.T) {
	each(t, func(b *bundle, m message) {
		for range 3 {
			require.Empty(b.t, m.kickoff(b, 1))
		}
		assert.Equal(b.t, 1, b.open("db_function"))
		assert.Equal(b.t, m.validation, m.kickoff(b, 17))
		b.exec(m.insert)
		b.exec(fmt.Sprintf(`UPDATE comms.%s_message SET %s = 'nowhere' WHERE %[1]s_message_id = 2`, m.channel,
			map[string]string{"email": "to_address", "sms": "to_number"}[m.channel]))
		assert.Contains(b.t, m.kickoff(b, 2), "message 2 has no ")
		assert.Equal(b.t, 1, b.open("db_function"))
	})
}

// A supervisor that runs again, because its worker ended before it completed the task, makes no
// second attempt while one is outstanding, nor before the pause after a failure is over.
func TestSupervisorRunsTwice(t *testing.T) {
	each(t, func(b *bundle, m message) {
		require.Empty(b.t, m.kickoff(b, 1))
		for range 3 {
			assert.Equal(b.t, "succeeded", m.supervise(b))
		}
		assert.Equal(b.t, "1 attempts, 0 failed, 0 succeeded", m.facts(b))
		assert.Equal(b.t, 1, b.open(m.channel))

		b.slow(m)
		require.Equal(b.t, "succeeded", m.handle(b, "failure"))
		for range 3 {
			assert.Equal(b.t, "succeeded", m.supervise(b))
		}
		assert.Equal(b.t, "1 attempts, 1 failed, 0 succeeded", m.facts(b))
	})
}

// slow gives the process the settings that it comes with, whose pauses do not end within a test.
func (b *bundle) slow(m message) {
	b.t.Helper()
	b.exec(fmt.Sprintf(`CREATE OR REPLACE FUNCTION comms.send_%s_settings(OUT max_attempts integer, OUT base_interval interval, OUT longest_interval interval,
 OUT attempt_timeout interval) LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$SELECT 5, interval '1 minute', interval '1 hour', interval '1 hour'$$`, m.channel))
}

// Handlers that are called again change nothing: the first outcome of an attempt stays, and an
// attempt that has one is not worked again.
func TestHandlersAreIdempotent(t *testing.T) {
	each(t, func(b *bundle, m message) {
		require.Empty(b.t, m.kickoff(b, 1))
		require.Equal(b.t, "succeeded", m.supervise(b))
		for _, outcome := range []string{"success", "success", "failure"} {
			assert.Equal(b.t, "succeeded", m.handle(b, outcome))
		}
		assert.Equal(b.t, "1 attempts, 0 failed, 1 succeeded", m.facts(b))
		assert.Equal(b.t, "attempt_not_open",
			b.call(fmt.Sprintf("comms.get_%s_payload", m.channel), fmt.Sprintf(`{"send_%s_attempt_id": 1}`, m.channel)))
	})
}

// What no supervisor or handler can know is a status of its own, and never an error.
func TestUnknownIDs(t *testing.T) {
	each(t, func(b *bundle, m message) {
		for _, id := range []string{`null`, `"x"`, `1.5`, `-1`, `{}`, `99999999999999999999`} {
			assert.Equal(b.t, "missing_send_"+m.channel+"_task_id",
				b.call("comms.send_"+m.channel+"_supervisor", fmt.Sprintf(`{"send_%s_task_id": %s}`, m.channel, id)))
		}
		assert.Equal(b.t, "send_"+m.channel+"_task_not_found", m.supervise(b))
		assert.Equal(b.t, "attempt_not_found", m.handle(b, "success"))
		assert.Equal(b.t, "attempt_not_found", m.handle(b, "failure"))
		assert.Zero(b.t, b.count(`SELECT count(*) FROM queues.task`))
	})
}

// An attempt that never gets an outcome counts as failed in the end. The next one is made by the
// check after that.
func TestAttemptWithoutOutcome(t *testing.T) {
	each(t, func(b *bundle, m message) {
		require.Empty(b.t, m.kickoff(b, 1))
		require.Equal(b.t, "succeeded", m.supervise(b))
		b.exec(fmt.Sprintf(`UPDATE comms.send_%s_attempt SET created_at = created_at - interval '2 hours'`, m.channel))
		require.Equal(b.t, "succeeded", m.supervise(b))
		assert.Equal(b.t, "1 attempts, 1 failed, 0 succeeded", m.facts(b))
		assert.Equal(b.t, "no outcome within 01:00:00",
			b.text(fmt.Sprintf(`SELECT error_message FROM comms.send_%s_attempt_failed`, m.channel)))
		require.Equal(b.t, "succeeded", m.supervise(b))
		assert.Equal(b.t, "2 attempts, 1 failed, 0 succeeded", m.facts(b))
	})
}

// A supervisor that meets an error undoes what it did, says so, and enqueues its next run.
func TestSupervisorThatFails(t *testing.T) {
	each(t, func(b *bundle, m message) {
		require.Empty(b.t, m.kickoff(b, 1))
		b.exec(fmt.Sprintf(`ALTER TABLE comms.send_%s_attempt ADD CONSTRAINT broken CHECK (false)`, m.channel))
		assert.Equal(b.t, "supervisor_failed", m.supervise(b))
		assert.Equal(b.t, "0 attempts, 0 failed, 0 succeeded", m.facts(b))
		assert.Equal(b.t, 2, b.open("db_function"), "that of the kickoff, and the next one")
		assert.Zero(b.t, b.open(m.channel))
		b.exec(fmt.Sprintf(`ALTER TABLE comms.send_%s_attempt DROP CONSTRAINT broken`, m.channel))
		b.providers[m.channel] = func(map[string]any) (any, error) { return nil, nil }
		b.work(m.ended(b))
		assert.Equal(b.t, "1 attempts, 0 failed, 1 succeeded", m.facts(b))
	})
}
