package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
)

// TestQueues makes, changes, pauses and deletes a named queue, as docs/cli.md says.
func TestQueues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var made, set, paused struct {
		Name        string
		Fleet       string
		MaxParallel int
		Rate        int
		RateSeconds float64
		PausedAt    *string
	}
	b.json(&made, "queues", "create", "bank", "--max-parallel", "10", "--rate", "100", "--per", "1m", "--fleet", "shop")
	assert.Equal(t, "bank", made.Name)
	assert.Equal(t, "shop", made.Fleet)
	assert.Equal(t, 10, made.MaxParallel)
	assert.InDelta(t, 60, made.RateSeconds, 0)
	b.json(&set, "queues", "set", "bank", "--rate", "0")
	assert.Zero(t, set.Rate)
	assert.Equal(t, 10, set.MaxParallel, "what is not given stays")
	b.json(&paused, "queues", "pause", "bank")
	assert.NotNil(t, paused.PausedAt)
	b.ok("queues", "resume", "bank")
	// A worker that was started anew is one worker; what operations by SQL claim is none.
	_, err := b.Pool.Exec(t.Context(), `INSERT INTO daybook.job_workers (id, name, types, fleet)
SELECT w.id, w.name, '{mail}', f.id FROM daybook.fleets f, (VALUES ('1', 'a'), ('2', 'a'), ('3', 'b'), ('async-operations', 'async operations by SQL')) w (id, name) WHERE f.name = 'shop'`)
	require.NoError(t, err)
	var listed struct{ Queues []struct{ Workers int } }
	b.json(&listed, "queues", "list", "bank")
	assert.Equal(t, 2, listed.Queues[0].Workers)
	assert.Contains(t, b.ok("queues", "list"), "bank")
	assert.Equal(t, failure.ExitConflict, b.run("queues", "create", "bank").exit)
	assert.Equal(t, failure.ExitNotFound, b.run("queues", "set", "none").exit)
	b.ok("queues", "delete", "bank")
	for _, action := range []string{"pause", "resume", "delete", "set", "list"} {
		r := b.run("queues", action, "bank")
		assert.Equal(t, failure.ExitNotFound, r.exit, action)
		assert.Contains(t, r.err, "there is no queue 'bank': `daybook queues list` shows which there are", action)
		assert.Contains(t, b.run("queues", action, "default").err,
			"it has no settings: pause an organization or the workflow instead", action)
	}
}

// A command that changes nothing says so, and the log of actions does not say otherwise.
func TestQueueThatIsNotChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("queues", "create", "bank", "--max-parallel", "2")
	r := b.run("queues", "set", "bank")
	assert.Equal(t, failure.ExitUsage, r.exit)
	assert.Contains(t, r.err, "nothing to set: give --fleet, --max-parallel")
	for _, args := range [][]string{{"set", "bank", "--max-parallel", "2"}, {"resume", "bank"}} {
		r := b.run(append([]string{"queues"}, args...)...)
		assert.Equal(t, failure.ExitOK, r.exit)
		assert.Contains(t, r.err, "Nothing was changed: the queue bank is so already.")
	}
	var claimed int
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT count(*) FROM daybook.actions WHERE details->>'changed' = 'true'`).Scan(&claimed))
	assert.Equal(t, 1, claimed, "the queue was made")
	assert.Contains(t, b.ok("jobs", "retry", "--all"), "no job matches: nothing was changed")
	assert.Contains(t, b.ok("accounting", "retry", "--state", "failed", "--all"), "no job matches: nothing was changed")
}
