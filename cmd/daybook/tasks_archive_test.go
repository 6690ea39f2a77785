package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/work"
	"github.com/daybook-dev/daybook/failure"
)

func TestTasksArchive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 5 {
		b.task("email", "--payload", `{"n": 1}`)
	}
	_, err := b.Pool.Exec(t.Context(), `SELECT queues.complete_task(task_id) FROM queues.dequeue_available_tasks(4)`)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "archive")
	assert.Equal(t, "0 tasks moved to 0 files\n", b.ok("tasks", "archive", "--before", "1h", "--to", dir))
	var done work.ArchivedTasks
	b.json(&done, "tasks", "archive", "--before", time.Now().Format(time.RFC3339Nano), "--to", dir, "--batch", "3")
	assert.EqualValues(t, 4, done.Tasks)
	assert.EqualValues(t, 2, done.Files)
	files, err := filepath.Glob(filepath.Join(dir, "tasks", "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 3)
	var task struct {
		TaskID  int64 `json:"task_id"`
		Payload map[string]int
		Leases  []any
	}
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &task))
	assert.EqualValues(t, 1, task.TaskID)
	assert.Equal(t, map[string]int{"n": 1}, task.Payload)
	assert.Len(t, task.Leases, 1)
	assert.Equal(t, failure.ExitNotFound, b.run("tasks", "show", "1").exit)
	assert.Equal(t, []int64{5}, b.taskIDs())
	for code, args := range map[string][]string{
		"USAGE":   {"--before", "soon", "--to", dir},
		"INVALID": {"--before", "1h", "--to", "s3://bucket"},
	} {
		r := b.run(append([]string{"tasks", "archive", "--json"}, args...)...)
		assert.Equal(t, failure.ExitUsage, r.exit, args)
		assert.Contains(t, r.err, `"`+code+`"`)
	}
	for _, args := range [][]string{
		{},
		{"--before", "1h"},
		{"--before", "2999-01-01", "--to", dir},
		{"--before", "", "--to", dir},
		{"--before", "1h", "--to", ""},
		{"--before", "1h", "--to", dir, "--batch", "0"},
	} {
		assert.Equal(t, failure.ExitUsage, b.run(append([]string{"tasks", "archive"}, args...)...).exit, args)
	}
}
