package queue_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/queue"
)

// TestWithLog logs a request of each kind, and none without a log in the context.
func TestWithLog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var out bytes.Buffer
	ctx := queue.WithLog(t.Context(), slog.New(slog.NewJSONHandler(&out, nil)))
	job, err := queue.EnqueueJob(ctx, b.Pool, org, welcome{UserID: "1"}, queue.JobOptions{IdempotencyKey: "k"})
	require.NoError(t, err)
	_, err = queue.EnqueueJob(ctx, b.Pool, org, welcome{UserID: "1"}, queue.JobOptions{IdempotencyKey: "k"})
	require.NoError(t, err)
	_, err = queue.EnqueueJob(ctx, b.Pool, "", welcome{}, queue.JobOptions{})
	require.Error(t, err)
	document, err := queue.EnqueueAccountingJob(ctx, b.Pool,
		queue.AccountingJob{OrgID: org, DocumentID: "inv", Version: 1})
	require.NoError(t, err)
	task, err := queue.EnqueueTask(ctx, b.Pool, queue.RawTask{Type: "db_function"}, queue.TaskOptions{})
	require.NoError(t, err)
	_, err = queue.EnqueueJob(t.Context(), b.Pool, org, welcome{UserID: "2"}, queue.JobOptions{})
	require.NoError(t, err)

	var lines []map[string]any
	for text := range strings.Lines(out.String()) {
		line := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(text), &line))
		assert.Equal(t, "job enqueued", line["msg"])
		for _, key := range []string{"time", "level", "msg"} {
			delete(line, key)
		}
		lines = append(lines, line)
	}
	assert.Equal(t, []map[string]any{
		{"kind": "jobs", "org": org, "type": "welcome", "job": job.ID, "outcome": "enqueued"},
		{"kind": "jobs", "org": org, "type": "welcome", "job": job.ID, "outcome": "unchanged"},
		{"kind": "accounting", "org": org, "document": "inv", "job": document.JobID, "outcome": "enqueued"},
		{"kind": "tasks", "type": "db_function", "job": strconv.FormatInt(task.ID, 10), "outcome": "enqueued"},
	}, lines)
}
