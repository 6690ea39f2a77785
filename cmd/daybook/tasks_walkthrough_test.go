package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/workflows"
)

// command runs a line of a terminal in a folder.
func (b *bundle) command(dir string, words []string) {
	b.t.Helper()
	for i, word := range words {
		if strings.HasPrefix(word, "migrations") {
			words[i] = filepath.Join(dir, word)
		}
		if word == "$DAYBOOK_DATABASE_URL" {
			words[i] = b.URL
		}
	}
	switch words[0] {
	case "daybook":
		b.ok(words[1:]...)
	case "psql":
		b.psql(words)
	default:
		b.t.Fatalf("the test does not know how to run %q", words)
	}
}

// psql runs it; where there is none, the file that it would read.
func (b *bundle) psql(words []string) {
	b.t.Helper()
	if _, err := exec.LookPath("psql"); err == nil {
		out, err := exec.CommandContext(b.t.Context(), words[0], words[1:]...).CombinedOutput()
		require.NoError(b.t, err, "%s", out)
		if strings.HasSuffix(words[len(words)-1], "_test.sql") {
			assert.Empty(b.t, string(out), "the tests end without a word")
		}
		return
	}
	text, err := os.ReadFile(words[len(words)-1])
	require.NoError(b.t, err)
	_, err = b.Pool.Exec(b.t.Context(), string(text))
	require.NoError(b.t, err)
}

// TestWalkthrough does what docs/tasks.md says, block by block, with a worker beside it.
func TestWalkthrough(t *testing.T) {
	b := setup(t)
	b.workTasks()
	dir := t.TempDir()
	blocks, err := pages.Of("docs/tasks.md", "")
	require.NoError(t, err)
	done := 0
	for _, block := range blocks {
		if block.Section != "A supervisor in ten minutes" {
			continue
		}
		done++
		if strings.Contains(block.Text, "SELECT account_id, closed_at") {
			b.awaitClosed()
		}
		if block.Language == "sql" {
			_, err := b.Pool.Exec(t.Context(), block.Text)
			require.NoError(t, err, block.Text)
			continue
		}
		for line := range strings.Lines(block.Text) {
			b.command(dir, pages.Words(line))
		}
	}
	assert.Equal(t, 5, done)
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM shop.close_trial_attempt_succeeded`))
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.open_tasks WHERE state = 'waiting'`),
		"the supervisor looks once more")
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.error`))
}

// awaitClosed waits until the worker has closed the account.
func (b *bundle) awaitClosed() {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		return fixture.Count(b.t, b.Pool, `SELECT count(*) FROM shop.accounts WHERE closed_at IS NOT NULL`) == 1
	}, time.Minute, 20*time.Millisecond)
}

// workTasks runs the program's worker and its workflow of tasks, as daybook dev does.
func (b *bundle) workTasks() {
	b.t.Helper()
	server := temporaltest.Shared(b.t)
	namespace := server.Namespace(b.t)
	inNamespace(b.t, server, namespace)
	ctx, stop := context.WithCancel(b.t.Context())
	ended := make(chan result, 1)
	go func() { ended <- call(ctx, "", "--database-url", b.URL, "worker") }()
	b.t.Cleanup(func() {
		stop()
		r := <-ended
		assert.Zero(b.t, r.exit, r.err)
	})
	_, err := server.Client(b.t, namespace).ExecuteWorkflow(b.t.Context(),
		client.StartWorkflowOptions{ID: "tasks", TaskQueue: workflows.TasksTaskQueue}, workflows.TasksWorkflow,
		workflows.Input{})
	require.NoError(b.t, err)
}
