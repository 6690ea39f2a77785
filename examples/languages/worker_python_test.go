package languages_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/queue"
)

// TestPythonWorker has the worker in Python meet what the one in TypeScript does beside the cases of
// all languages, and what is Python's own.
func TestPythonWorker(t *testing.T) {
	t.Parallel()
	languages := languages()
	command, env := languages[1].command(t)
	takesOptions(t, command, env, "testdata/options.py")
	meets(t, command, env, clientScenarios)
	meets(t, command, env, map[string]func(c *conformance){
		"pythonic outcomes": (*conformance).pythonicOutcomes, "hangs on": (*conformance).hangsOn, "polls rarely": (*conformance).pollsRarely,
	})
}

// pythonic are what a handler in Python may do beside that, and what is said of it.
var pythonic = []struct{ do, want, said string }{
	{"exits", "pending 1 HANDLER_ERROR by the policy", "SystemExit: 1"},
	{"bare", "pending 1 HANDLER_ERROR by the policy", "bare"},
	{"rolls back", "pending 1 HANDLER_ERROR by the policy", "psycopg.Rollback"},
	{"rolls back in step", "pending 1 HANDLER_ERROR by the policy", "step 'effect': psycopg.Rollback"},
	{"odd text", "pending 1 HANDLER_ERROR by the policy", "? "},
	{"conflicts", "pending 1 HANDLER_ERROR effects b b b b b b b b b b by the policy", "SerializationFailure: could not serialize"},
}

// pythonicOutcomes: what ends a thread fails the attempt, whatever it says. What loses against other
// transactions is done again ten times at most.
func (c *conformance) pythonicOutcomes() {
	ids := make([]string, len(pythonic))
	for i, k := range pythonic {
		ids[i] = c.enqueue("quick", fmt.Sprintf(`{"do": %q, "note": "a"}`, k.do), queue.JobOptions{})
	}
	c.start()
	c.until("all are worked", workedStmt)
	for i, k := range pythonic {
		assert.Equal(c.t, k.want, c.text(stateStmt, ids[i]), k.do)
		assert.True(c.t, strings.HasPrefix(c.text(`SELECT coalesce(last_error, '') FROM daybook.jobs WHERE id = $1`, ids[i]), k.said), k.do)
	}
}

// claimLost: a job that a claim has leased whose answer is lost is worked all the same, although the
// process of the claim lives.
func (c *conformance) claimLost() {
	c.start()
	c.until("it is on record", `SELECT count(*) = 1 FROM daybook.live_job_workers`)
	c.goWorker().start()
	_, err := c.Pool.Exec(c.t.Context(), `
SELECT daybook.enqueue_job('acme', 'patient', '{"do": "note", "note": "a"}');
SELECT count(*) FROM daybook.claim_jobs((SELECT w.name FROM daybook.job_workers w WHERE starts_with(w.id, '/sql/')), 1)`,
		pgx.QueryExecModeSimpleProtocol)
	require.NoError(c.t, err)
	id := c.text(`SELECT id FROM daybook.jobs`)
	assert.Equal(c.t, "leased 1", c.text(`SELECT state || ' ' || run_count FROM daybook.jobs WHERE id = $1`, id))
	c.until("it is worked", `SELECT state = 'completed' FROM daybook.jobs WHERE id = $1`, id)
	assert.Equal(c.t, "completed 2 effects a", c.text(stateStmt, id))
}

// claimsFail: a worker whose claims are cancelled goes on with what it has, and claims when it can,
// whatever limits its role has.
func (c *conformance) claimsFail() { c.claimsCancelled("-c statement_timeout=3s -c lock_timeout=3s") }

// claimsWait: without such limits none goes on waiting that the worker has given up.
func (c *conformance) claimsWait() { c.claimsCancelled("") }

func (c *conformance) claimsCancelled(options string) {
	running := c.enqueue("patient", `{"do": "hang"}`, queue.JobOptions{})
	u, err := url.Parse(c.URL)
	require.NoError(c.t, err)
	values := u.Query()
	values.Set("options", options)
	u.RawQuery = strings.ReplaceAll(values.Encode(), "+", "%20")
	worker := c.start("DAYBOOK_DATABASE_URL=" + u.String())
	c.until("it runs", runsStmt, running)
	tx, err := c.Pool.Begin(c.t.Context())
	require.NoError(c.t, err)
	_, err = tx.Exec(c.t.Context(), `LOCK TABLE daybook.job_wait_checks`)
	require.NoError(c.t, err)
	const claims = `FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%claim_jobs%' AND application_name = 'daybook worker'`
	c.until("a claim waits", `SELECT count(*) = 1 `+claims)
	pid := c.text(`SELECT pid::text ` + claims)
	c.until("it is cancelled", `SELECT count(*) = 0 FROM pg_stat_activity WHERE pid::text = $1`, pid)
	require.NoError(c.t, tx.Rollback(c.t.Context()))
	id := c.enqueue("quick", `{"do": "note", "note": "a"}`, queue.JobOptions{})
	c.until("it is worked", `SELECT state = 'completed' FROM daybook.jobs WHERE id = $1`, id)
	assert.Equal(c.t, "leased 1", c.text(`SELECT state || ' ' || run_count FROM daybook.jobs WHERE id = $1`, running))
	_, err = queue.CancelJob(c.t.Context(), c.Pool, running)
	require.NoError(c.t, err)
	c.stopped(worker)
}

// staleConnections: after a restart of the server, the first connection that is found lost stands for
// all that a worker has kept.
func (c *conformance) staleConnections() {
	for range 9 {
		c.enqueue("quick", `{"do": "nap"}`, queue.JobOptions{})
	}
	id := c.enqueue("patient", `{"do": "hang"}`, queue.JobOptions{})
	c.start("POLL=3600")
	c.until("nine are done", `SELECT count(*) = 9 FROM daybook.jobs WHERE state = 'completed'`)
	ended := c.text(`
SELECT clock_timestamp()::text FROM (SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
 WHERE application_name = 'daybook worker' AND datname = current_database()) t`)
	c.until("its lease is renewed", `SELECT last_attempted_at > $2::timestamptz FROM daybook.jobs WHERE id = $1`, id, ended)
	assert.Equal(c.t, "true", c.text(`SELECT (last_attempted_at < $2::timestamptz + interval '6 seconds')::text FROM daybook.jobs WHERE id = $1`, id, ended))
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

// hangsOn: a handler that goes on after its time leaves no transaction open.
func (c *conformance) hangsOn() {
	id := c.enqueue("quick", `{"do": "hang in step", "note": "a"}`, queue.JobOptions{})
	c.start()
	c.until("its time is over", `SELECT coalesce(last_error_code, '') = 'TIMEOUT' FROM daybook.jobs WHERE id = $1`, id)
	c.until("its transaction is", `
SELECT count(*) = 0 FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = 'daybook worker' AND state = 'idle in transaction' AND query LIKE '%app.effects%'`)
}

// pollsRarely: a worker that waits for its next look stops at once.
func (c *conformance) pollsRarely() {
	worker := c.start("POLL=3600")
	c.until("it is on record", `SELECT count(*) = 1 FROM daybook.live_job_workers`)
	began := time.Now()
	c.stopped(worker)
	assert.Less(c.t, time.Since(began), 20*time.Second)
}
