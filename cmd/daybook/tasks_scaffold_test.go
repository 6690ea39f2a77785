package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
)

// The files that the command writes are applied as they are, and are never overwritten by accident.
func TestScaffold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := filepath.Join(t.TempDir(), "new", "migrations")
	var wrote struct{ Files []string }
	b.json(&wrote, "tasks", "scaffold", "send_reminder", "--schema", "shop", "--channel", "email", "--max-attempts", "2",
		"--out", dir, "--prefix", "00007_")
	assert.Equal(t, []string{
		filepath.Join(dir, "00007_send_reminder.sql"),
		filepath.Join(dir, "00007_send_reminder_test.sql"),
	}, wrote.Files)
	for _, path := range wrote.Files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = b.Pool.Exec(t.Context(), string(text))
		require.NoError(t, err)
	}

	again := []string{"tasks", "scaffold", "send_reminder", "--out", dir, "--prefix", "00007_"}
	require.NoError(t, os.Remove(wrote.Files[0]))
	r := b.run(append(again, "--json")...)
	assert.Equal(t, failure.ExitConflict, r.exit)
	var problem struct {
		Error struct{ Code, Message string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.err), &problem))
	assert.Equal(t, "FILE_EXISTS", problem.Error.Code)
	assert.Contains(t, problem.Error.Message, wrote.Files[1])
	assert.NoFileExists(t, wrote.Files[0], "one of two is not written")
	b.ok(append(again, "--force")...)
	text, err := os.ReadFile(wrote.Files[0])
	require.NoError(t, err)
	assert.Contains(t, string(text), "CREATE TABLE app.send_reminder_task")
}

// A bad name is refused, in words, without a database.
func TestScaffoldOfABadName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := call(t.Context(), "", "tasks", "scaffold", "Send Reminder", "--out", dir)
	assert.Equal(t, failure.ExitUsage, r.exit)
	assert.Contains(t, r.err, `the name "Send Reminder": want a small letter`)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, files)
}
