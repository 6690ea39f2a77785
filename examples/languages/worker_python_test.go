package languages_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/queue"
)

// TestPythonWorker has the worker in Python meet what the one in TypeScript does beside the cases of
// all languages, and what is Python's own.
func TestPythonWorker(t *testing.T) {
	t.Parallel()
	languages := languages()
	command, env := languages[1].command(t)
	for name, scenario := range map[string]func(c *conformance){
		"odd outcomes": (*conformance).oddOutcomes, "exits": (*conformance).exits,
		"locked neighbour": (*conformance).lockedNeighbour, "behind a pooler": (*conformance).behindAPooler,
		"hangs in a step": (*conformance).hangsInStep, "hangs on": (*conformance).hangsOn, "polls rarely": (*conformance).pollsRarely,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &conformance{DB: daybooktest.New(t), t: t, command: command, env: env}
			daybooktest.AddOrganization(t, c.Pool, daybooktest.Organization{ID: "acme"})
			scenario(c)
		})
	}
}

// exits: what ends a thread fails the attempt, whatever it says.
func (c *conformance) exits() {
	exits := c.enqueue("quick", `{"do": "exits"}`, queue.JobOptions{})
	odd := c.enqueue("quick", `{"do": "odd text"}`, queue.JobOptions{})
	c.start()
	c.until("both are worked", workedStmt)
	assert.Equal(c.t, "pending 1 HANDLER_ERROR by the policy", c.text(stateStmt, exits))
	assert.Equal(c.t, "SystemExit: 1", c.text(`SELECT last_error FROM daybook.jobs WHERE id = $1`, exits))
	assert.Equal(c.t, "? ", c.text(`SELECT last_error FROM daybook.jobs WHERE id = $1`, odd))
}

// behindAPooler: two workers share sessions with each other, which know no statements that either has
// prepared.
func (c *conformance) behindAPooler() {
	through := "DAYBOOK_DATABASE_URL=" + pgtest.Pooler(c.t, c.URL, pgtest.PoolTransactions)
	for range 60 {
		c.enqueue("quick", `{"do": "note", "note": "a"}`, queue.JobOptions{})
	}
	workers := []*process{c.start(through), c.start(through)}
	c.until("all are worked", `SELECT count(*) = 60 FROM daybook.jobs WHERE state = 'completed' AND run_count = 1`)
	for _, w := range workers {
		c.stopped(w)
		assert.NotContains(c.t, w.log.String(), "prepared statement")
	}
}

// hangsOn: a handler that goes on after its time leaves no transaction open, and is told of.
func (c *conformance) hangsOn() {
	id := c.enqueue("quick", `{"do": "hang in step", "note": "a"}`, queue.JobOptions{})
	worker := c.start("GRACE=0.2")
	c.until("its time is over", `SELECT last_error_code = 'TIMEOUT' FROM daybook.jobs WHERE id = $1`, id)
	c.until("its transaction is", `
SELECT count(*) = 0 FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = 'daybook worker' AND state = 'idle in transaction' AND query LIKE '%app.effects%'`)
	c.stopped(worker)
	assert.Equal(c.t, "pending 1 TIMEOUT by the policy", c.text(stateStmt, id))
	assert.Contains(c.t, worker.log.String(), "its handler goes on and keeps its place")
}

// pollsRarely: a worker that waits for its next look stops at once.
func (c *conformance) pollsRarely() {
	worker := c.start("POLL=3600")
	c.until("it is on record", `SELECT count(*) = 1 FROM daybook.live_job_workers`)
	began := time.Now()
	c.stopped(worker)
	assert.Less(c.t, time.Since(began), 20*time.Second)
}
