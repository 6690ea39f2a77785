package languages_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/queue"
)

// oddities are what a handler in TypeScript may throw or return beside the cases of all languages.
var oddities = []struct{ do, want string }{
	{"retry after nan", `pending 1 HANDLER_ERROR by the policy`},
	{"retry after ages", `pending 1 HANDLER_ERROR after 1000000000`},
	{"unprintable", `pending 1 HANDLER_ERROR by the policy`},
	{"odd code", `pending 1 404 by the policy`},
	{"half a pair", `completed 1 RESULT_NOT_STORED`},
	{"half a pair as key", `completed 1 RESULT_NOT_STORED`},
	{"whole pair", `completed 1 {"text": "😀"}`},
	{"backslash", `completed 1 {"text": "\\u0000 \\\\ud83d \"{["}`},
	{"deep", `completed 1 RESULT_NOT_STORED`},
	{"deepest", `completed 1 ` + strings.Repeat("[", 500) + "1" + strings.Repeat("]", 500)},
}

// TestTypeScriptWorker has the worker in TypeScript meet what the others meet by other means.
func TestTypeScriptWorker(t *testing.T) {
	t.Parallel()
	languages := languages()
	command, env := languages[len(languages)-1].command(t)
	for name, scenario := range map[string]func(c *conformance){
		"odd outcomes":     (*conformance).oddOutcomes,
		"locked neighbour": (*conformance).lockedNeighbour, "hangs in a step": (*conformance).hangsInStep,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &conformance{DB: daybooktest.New(t), t: t, command: command, env: env}
			daybooktest.AddOrganization(t, c.Pool, daybooktest.Organization{ID: "acme"})
			scenario(c)
		})
	}
}

func (c *conformance) oddOutcomes() {
	ids := make([]string, len(oddities))
	for i, k := range oddities {
		ids[i] = c.enqueue("quick", fmt.Sprintf(`{"do": %q, "note": "a"}`, k.do), queue.JobOptions{})
	}
	c.start()
	c.until("all are worked", workedStmt)
	for i, k := range oddities {
		assert.Equal(c.t, k.want, c.text(stateStmt, ids[i]), k.do)
	}
}

// lockedNeighbour: an attempt whose end waits for a transaction of an application keeps no other
// from having its lease renewed, and its job from ending when that transaction has.
func (c *conformance) lockedNeighbour() {
	locked := c.enqueue("quick", `{"do": "hang"}`, queue.JobOptions{})
	other := c.enqueue("patient", `{"do": "hang"}`, queue.JobOptions{})
	c.start()
	c.until("they run", `SELECT count(*) = 2 FROM daybook.jobs WHERE working`)
	tx, err := c.Pool.Begin(c.t.Context())
	require.NoError(c.t, err)
	_, err = tx.Exec(c.t.Context(), `SELECT FROM daybook.jobs WHERE id = $1 FOR UPDATE`, locked)
	require.NoError(c.t, err)
	const age = `SELECT extract(epoch FROM clock_timestamp() - last_attempted_at)`
	c.until("its lease is old", age+` > 8 FROM daybook.jobs WHERE id = $1`, locked)
	assert.Equal(c.t, "true", c.text(`SELECT ((`+age+` FROM daybook.jobs WHERE id = $1) < 5)::text`, other))
	require.NoError(c.t, tx.Rollback(c.t.Context()))
	c.until("its attempt ends", `SELECT state = 'pending' FROM daybook.jobs WHERE id = $1`, locked)
	assert.Equal(c.t, "pending 1 TIMEOUT by the policy", c.text(stateStmt, locked))
}

// hangsInStep: a handler that does not return from a step in a transaction holds up no stop, and
// leaves no transaction behind.
func (c *conformance) hangsInStep() {
	id := c.enqueue("patient", `{"do": "hang in step", "note": "a"}`, queue.JobOptions{})
	worker := c.start("GRACE=0.2")
	c.until("it has written", `
SELECT count(*) = 1 FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = 'daybook worker' AND state = 'idle in transaction' AND query LIKE '%app.effects%'`)
	c.stopped(worker)
	c.until("its sessions have ended", `
SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'daybook worker'`)
	assert.Equal(c.t, "pending 0 SNOOZED", c.text(`SELECT concat_ws(' ', state, run_count, last_error_code) FROM daybook.jobs WHERE id = $1`, id))
}
