package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/look"
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
