package languages_test

import (
	"syscall"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/queue"
)

// stepsStmt is what a job has kept.
const stepsStmt = `
SELECT coalesce(string_agg(concat_ws(' ', name, attempt, times, done, result), ', ' ORDER BY name), '') FROM daybook.job_steps WHERE job_id = $1`

// stepsKilled: a worker, in Go, goes on behind the steps that a killed one has kept.
func (c *conformance) stepsKilled() {
	id := c.enqueue("patient", `{"do": "hang behind steps", "note": "a"}`, queue.JobOptions{})
	victim := c.start()
	c.until("its steps are kept", `SELECT count(*) = 3 FROM daybook.job_steps WHERE job_id = $1 AND done`, id)
	assert.Equal(c.t, `effect 1 1 t {"attempt": 1}, first 1 1 t [1], rounds 1 3 t 3`, c.text(stepsStmt, id))
	require.NoError(c.t, victim.Process.Kill())
	<-victim.ended
	c.goWorker().start()
	c.until("it is worked again", `SELECT state = 'completed' FROM daybook.jobs WHERE id = $1`, id)
	assert.Equal(c.t, `completed 2 [[1], {"attempt": 1}, 3] effects a a a a`, c.text(stateStmt, id))
}

// stepsOfAnother: a worker goes on behind the steps that one in Go has kept. The positions and
// times are noted alike.
func (c *conformance) stepsOfAnother() {
	id := c.enqueue("quick", `{"do": "steps", "note": "a"}`, queue.JobOptions{})
	other := c.goWorker().start()
	c.until("some steps are kept", `SELECT count(*) = 3 FROM daybook.job_steps WHERE job_id = $1`, id)
	c.stopped(other)
	c.start()
	c.until("it is worked", `SELECT state = 'completed' FROM daybook.jobs WHERE id = $1`, id)
	assert.Equal(c.t, `completed 2 [[1], {"attempt": 1}, 3] effects a a a a`, c.text(stateStmt, id))
	assert.Equal(c.t, "first 1, effect 2, rounds 3", c.text(`
SELECT string_agg(name || ' ' || position, ', ' ORDER BY position) FROM daybook.job_steps
 WHERE job_id = $1 AND started_at <= kept_at AND kept_at <= clock_timestamp()`, id))
}

// pausedInStep: a worker that is paused in a step until its lease is another's keeps nothing of it,
// and none of its effects.
func (c *conformance) pausedInStep() {
	id, paused := c.inStep()
	require.NoError(c.t, paused.Process.Signal(syscall.SIGSTOP))
	c.goWorker().start()
	c.until("another works it", `SELECT state = 'completed' FROM daybook.jobs WHERE id = $1`, id)
	require.NoError(c.t, paused.Process.Signal(syscall.SIGCONT))
	c.stopped(paused)
	c.onceBySecond(id)
}

// killedInStep: of a step in a transaction whose worker dies between the effect and the keeping
// nothing is there.
func (c *conformance) killedInStep() {
	id, victim := c.inStep()
	require.NoError(c.t, victim.Process.Kill())
	<-victim.ended
	c.goWorker().start()
	c.until("another works it", `SELECT state = 'completed' FROM daybook.jobs WHERE id = $1`, id)
	c.onceBySecond(id)
}

// inStep starts a worker whose attempt has written the effect of a step, and has not kept it.
func (c *conformance) inStep() (id string, worker *process) {
	c.t.Helper()
	id = c.enqueue("patient", `{"do": "pause in step", "note": "a"}`, queue.JobOptions{})
	worker = c.start()
	c.until("it has written", `
SELECT count(*) > 0
  FROM pg_locks l
  JOIN pg_database d ON d.oid = l.database AND d.datname = current_database() -- other tests' tables have the same numbers
  JOIN pg_class t ON t.oid = l.relation
 WHERE t.relname = 'effects' AND l.mode = 'RowExclusiveLock'`)
	return id, worker
}

// onceBySecond checks that the second attempt alone has had an effect.
func (c *conformance) onceBySecond(id string) {
	c.t.Helper()
	assert.Equal(c.t, `completed 2 {"attempt": 2} effects a`, c.text(stateStmt, id))
	assert.Equal(c.t, `effect 2 1 t {"attempt": 2}`, c.text(stepsStmt, id))
}

// encrypted: a worker without keys works no job whose payload or steps are encrypted.
func (c *conformance) encrypted() {
	const sealed = `{"$encrypted": {"key": "k", "wrapped": "AA==", "data": "AA=="}}`
	payload := c.enqueue("quick", sealed, queue.JobOptions{})
	step := c.enqueue("quick", `{"do": "refuse step", "note": "a"}`, queue.JobOptions{})
	_, err := c.Pool.Exec(c.t.Context(), `UPDATE daybook.jobs SET awaited = true WHERE id = $1`, step)
	require.NoError(c.t, err)
	_, err = c.Pool.Exec(c.t.Context(), `
INSERT INTO daybook.job_steps (job_id, name, position, attempt, result, started_at) VALUES ($1, 'effect', 1, 1, $2, now())`, step, sealed)
	require.NoError(c.t, err)
	c.start()
	c.until("both are worked", workedStmt)
	assert.Equal(c.t, "pending 1 KEY_UNKNOWN by the policy", c.text(stateStmt, payload))
	assert.Equal(c.t, "pending 1 KEY_UNKNOWN by the policy", c.text(stateStmt, step))
}
