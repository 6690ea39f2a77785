package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/queue"
)

// TestRetryThatChangesNothingSaysWhy retries a dead letter beside an open job of the same payload,
// one of a deleted queue, and one that can be tried again.
func TestRetryThatChangesNothingSaysWhy(t *testing.T) {
	b := setup(t)
	b.ok("queues", "create", "bank")
	fail := func(data string, o queue.JobOptions) string {
		j, err := queue.EnqueueJob(t.Context(), b.Pool, "acme", queue.RawPayload{Type: "t", Data: json.RawMessage(data)}, o)
		require.NoError(t, err)
		_, err = b.Pool.Exec(t.Context(), `
UPDATE daybook.jobs SET state = 'failed', last_error = 'e', last_error_code = 'TIMEOUT', finished_at = now() WHERE id = $1`, j.ID)
		require.NoError(t, err)
		return j.ID
	}
	dead := fail(`{"n": 1}`, queue.JobOptions{Unique: true})
	open, err := queue.EnqueueJob(t.Context(), b.Pool, "acme",
		queue.RawPayload{Type: "t", Data: json.RawMessage(`{"n": 1.0}`)}, queue.JobOptions{Unique: true})
	require.NoError(t, err)
	require.False(t, open.Duplicate)
	fail(`{"n": 2}`, queue.JobOptions{Queue: "bank"})
	fail(`{"n": 3}`, queue.JobOptions{})
	b.ok("queues", "delete", "bank")

	said := b.ok("jobs", "retry", dead)
	assert.Contains(t, said, "unchanged (job "+dead+"): job "+open.ID+" is open")
	var change answers.Change
	b.json(&change, "jobs", "retry", dead)
	assert.Contains(t, change.Reason, open.ID)

	r := b.run("jobs", "retry", "--all")
	assert.Zero(t, r.exit, r.err)
	assert.Contains(t, r.out, "1 job is pending again")
	assert.Contains(t, r.err, "2 jobs were left alone: 1 because another job of the same payload or schedule is open")
	assert.Contains(t, r.err, "1 because their named queue was deleted")
	var op answers.BulkOperation
	b.json(&op, "jobs", "retry", "--all")
	assert.Equal(t, []int{2, 0, 2, 1, 1}, []int{op.Matched, op.Changed, op.Left, op.LeftOpen, op.LeftQueue})
}
