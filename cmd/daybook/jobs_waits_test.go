package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/look"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// A job is enqueued with a callback, whose token is shown once.
func TestEnqueueWithACallback(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var made answers.EnqueuedJob
	b.json(&made, "jobs", "enqueue", "--create", "mail", "--org", "acme", "--callback", "paid", "--callback-within", "1h")
	assert.Len(t, made.CallbackToken, 43)
	shown := b.ok("jobs", "show", made.ID)
	assert.Contains(t, shown, "paid")
	assert.NotContains(t, shown, made.CallbackToken)
	assert.Contains(t, b.ok("jobs", "enqueue", "--create", "mail", "--org", "acme", "--callback", "paid"),
		"POST /api/callbacks/")
}

// A job that waits for others is shown as one that waits, and not as one that is due in thousands
// of years; the status counts it.
func TestWaitingJobsAreShownAsWaiting(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.background("mail", "--org", "acme", "--sequence", "order-7", "--delay", "1h")
	b.background("mail", "--org", "acme", "--sequence", "order-7")
	after := b.background("mail", "--org", "acme", "--after", first)
	_, err := b.Pool.Exec(t.Context(), `SELECT daybook.check_waits()`)
	require.NoError(t, err)

	assert.Contains(t, b.ok("jobs", "list", "--waits", "jobs"), after)
	assert.NotContains(t, b.ok("jobs", "list", "--waits", "jobs", "--queue", "default"), first)
	list := b.ok("jobs", "list")
	assert.Contains(t, list, "waits for its turn or for other jobs")
	assert.Contains(t, list, "waits for other jobs")
	assert.Contains(t, b.ok("jobs", "show", after), "job "+first+" (pending)")
	assert.Regexp(t, `jobs +3 +0 +2 +0 `, b.ok("status", "--no-temporal"))
	for _, args := range [][]string{
		{"jobs", "list"},
		{"jobs", "show", after},
		{"status", "--no-temporal"},
		{"jobs", "list", "--json"},
		{"jobs", "show", after, "--json"},
		{"status", "--no-temporal", "--json"},
	} {
		assert.NotContains(t, b.ok(args...), "9999-12", args)
	}
	var shown struct {
		RunAt time.Time `json:"runAt"`
		Waits bool      `json:"waits"`
	}
	require.NoError(t, json.Unmarshal([]byte(b.ok("jobs", "show", after, "--json")), &shown))
	assert.True(t, shown.Waits)
	assert.WithinDuration(t, time.Now(), shown.RunAt, time.Hour)
	var s look.ShownStatus
	b.json(&s, "status", "--no-temporal")
	assert.EqualValues(t, 2, s.Queues[1].Waiting)
	for _, f := range s.Findings {
		assert.Equal(t, health.NoToken, f.Code, f.Says)
	}

	_, err = b.Pool.Exec(t.Context(),
		`UPDATE daybook.jobs SET state = 'completed', finished_at = clock_timestamp() WHERE id = $1`, first)
	require.NoError(t, err)
	b.json(&s, "status", "--no-temporal")
	assert.EqualValues(t, 0, s.Queues[1].Waiting)
}

// TestLimitsOfQueues: a queue is limited by key as a type is, and a job in the line says how many are at
// work and ahead of it.
func TestLimitsOfQueues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for args, exit := range map[string]int{
		"jobs limit --queue bnak --parallel 2": failure.ExitNotFound, "jobs limits --queue bnak": failure.ExitNotFound,
		"jobs limit mail --queue bank --parallel 2": failure.ExitUsage, "jobs limit --parallel 2": failure.ExitUsage,
		"jobs limits mail --queue bank": failure.ExitUsage,
	} {
		r := b.run(strings.Fields(args)...)
		assert.Equal(t, exit, r.exit, "%s: %s", args, r.err)
	}
	b.ok("queues", "create", "bank")
	assert.Contains(t, b.ok("jobs", "limit", "--queue", "bank", "--by", "org_id", "--parallel", "2"),
		"The limit of the queue bank is set.")
	assert.Regexp(t, `(?m)^TYPE +QUEUE +BY .*\n +bank +org_id +2 +a person$`, b.ok("jobs", "limits"))
	var last string
	for range 4 {
		last = b.background("mail", "--org", "acme", "--queue", "bank")
		_, err := b.Pool.Exec(t.Context(), `SELECT daybook.check_waits()`)
		require.NoError(t, err)
	}
	assert.Regexp(t, `(?m)^acme +acme +2 +2 `, b.ok("jobs", "limits", "--queue", "bank"))
	assert.Contains(t, b.ok("jobs", "show", last),
		"the limit of its key acme in the queue bank: 2 of 2 at work, 1 ahead of it")
	assert.Contains(t, b.ok("jobs", "limit", "--queue", "bank", "--remove"), "The limit of the queue bank is removed.")
}
