package eventlog_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/internal/telemetry/events/eventlog"
)

// logged is what a sink of a mode logs of events from a level on: level and outcome of each line.
func logged(mode eventlog.Mode, from slog.Level, batch ...events.Event) (lines []string, text string) {
	var out bytes.Buffer
	s := eventlog.New(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: from})), mode)
	if s == nil {
		return nil, ""
	}
	s.Observe(batch)
	for line := range strings.Lines(out.String()) {
		var l struct{ Level, Outcome string }
		_ = json.Unmarshal([]byte(line), &l)
		lines = append(lines, l.Level+" "+l.Outcome)
	}
	return lines, out.String()
}

var eachEvent = []events.Event{
	{Name: events.Leased},
	{Name: events.Completed},
	{Name: events.Retried},
	{Name: events.Rescheduled},
	{Name: events.Failed},
	{Name: events.Cancelled},
	{Name: events.Reclaimed},
	{Name: events.Reclaimed, Counted: true},
	{Name: events.GivenBack},
}

func TestLevels(t *testing.T) {
	t.Parallel()
	info, _ := logged(eventlog.Problems, slog.LevelInfo, eachEvent...)
	assert.Equal(t, []string{"INFO retried", "WARN failed", "INFO cancelled", "INFO reclaimed", "WARN reclaimed"}, info)
	debug, _ := logged(eventlog.Problems, slog.LevelDebug, eachEvent...)
	assert.Len(t, debug, len(eachEvent))
	assert.Contains(t, debug, "DEBUG leased")
	all, _ := logged(eventlog.All, slog.LevelInfo, eachEvent...)
	assert.Contains(t, all, "INFO completed")
	assert.NotContains(t, all, "INFO leased")
	none, _ := logged(eventlog.None, slog.LevelDebug, eachEvent...)
	assert.Empty(t, none)
}

// A task that failed is completed: the line does not send people to dead letters.
func TestATaskThatFailed(t *testing.T) {
	t.Parallel()
	_, text := logged(eventlog.Problems, slog.LevelInfo,
		events.Event{Name: events.Failed, Kind: "tasks", Type: "email", JobID: "17"})
	assert.Contains(t, text, `"msg":"task failed: it is completed, and its error is noted with it"`)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	_, text := logged(eventlog.Problems, slog.LevelInfo, events.Event{
		Name: events.Failed, Kind: "jobs", OrgID: "acme", Type: "webhook", JobID: "j1", DocumentID: "d1", Attempt: 3,
		Code:  "TIMEOUT",
		Error: "POST https://u:hunter22@example.com failed\nsecond line", Owner: "growth", Worker: "host/1",
		Turn: "run/0/1", Trace: "00-aa-bb-01",
		At: time.Unix(1, 0), Waited: 1500 * time.Millisecond, Took: 250 * time.Microsecond,
	})
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &line))
	delete(line, "time")
	assert.Equal(t, map[string]any{
		"level": "WARN", "msg": "job failed for good: it is a dead letter", "kind": "jobs", "org": "acme",
		"type": "webhook", "job": "j1", "document": "d1",
		"attempt": 3.0, "outcome": "failed", "code": "TIMEOUT",
		"error":       "POST https://u:[redacted]@example.com failed\nsecond line",
		"duration_ms": 0.25, "waited_ms": 1500.0, "owner": "growth", "worker": "host/1", "turn": "run/0/1",
		"trace": "00-aa-bb-01",
	}, line)
}
