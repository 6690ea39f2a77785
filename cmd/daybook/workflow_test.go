package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/internal/camel"
	"github.com/daybook-dev/daybook/cmd/daybook/start"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// changesOf calls a workflow command that must succeed, and returns what it did by kind.
func changesOf(t *testing.T, args ...string) map[string]start.WorkflowChange {
	t.Helper()
	r := call(t.Context(), "", append(append([]string{"workflow"}, args...), "--json")...)
	require.Zero(t, r.exit, "%v: %s", args, r.err)
	var said struct{ Workflows []start.WorkflowChange }
	require.NoError(t, camel.Unmarshal([]byte(r.out), &said))
	changes := map[string]start.WorkflowChange{}
	for _, c := range said.Workflows {
		changes[c.Kind] = c
	}
	return changes
}

// shown returns how a kind's workflow stands.
func shown(t *testing.T, kind string) health.WorkflowState {
	t.Helper()
	r := call(t.Context(), "", "workflow", "show", kind, "--json")
	require.Zero(t, r.exit, r.err)
	var said struct{ Workflows []health.WorkflowState }
	require.NoError(t, camel.Unmarshal([]byte(r.out), &said))
	require.Len(t, said.Workflows, 1)
	return said.Workflows[0]
}

// TestWorkflowCommands goes through the life of a workflow, with a worker that runs as the
// documented roles.
func TestWorkflowCommands(t *testing.T) {
	server := temporaltest.Shared(t)
	inNamespace(t, server, server.Namespace(t))
	b := setup(t)
	b.ok("migrate", "up", "--roles")

	assert.Equal(t, failure.ExitNotFound, call(t.Context(), "", "workflow", "pause").exit, "none runs")
	assert.Equal(t, health.NeverStarted, shown(t, "jobs").State)
	started := changesOf(t, "start")
	require.Len(t, started, 3)
	assert.Equal(t, "started", started["jobs"].Result)
	assert.Equal(t, "job-queue-worker-production", started["jobs"].WorkflowID)
	assert.Contains(t, started["jobs"].Says, "No worker polls job-queue yet")
	again := changesOf(t, "start", "jobs", "--batch-size", "7")
	assert.Equal(t, "already_running", again["jobs"].Result)
	assert.Equal(t, started["jobs"].RunID, again["jobs"].RunID)
	assert.Contains(t, again["jobs"].Says, "daybook workflow configure")
	assert.Equal(t, "sent", changesOf(t, "resume", "--kind", "tasks", "--wait", "10ms")["tasks"].Result,
		"no worker answers")
	began := time.Now()
	r := call(t.Context(), "", "workflow", "configure", "jobs", "--concurrency", "2", "--wait", "10ms")
	assert.Less(t, time.Since(began), 5*time.Second, "no worker is asked before the wait begins")
	assert.Equal(t, failure.ExitUnavailable, r.exit, r.err)
	assert.Contains(t, r.err, "start `daybook worker`")

	t.Setenv("DAYBOOK_TASKS_DATABASE_URL", b.As(t, "worker_service_user").Config().ConnString())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan result, 1)
	go func() {
		ended <- call(ctx, "", "--database-url", b.As(t, "daybook_worker").Config().ConnString(), "worker", "--name", "w1")
	}()
	configured := changesOf(t, "configure", "jobs", "--concurrency", "2", "--poll-interval", "1")
	assert.Contains(t, configured["jobs"].Says, "batches of 50, 1 s between polls, 2 lanes")
	paused := changesOf(t, "pause")
	require.Len(t, paused, 3)
	assert.Equal(t, "paused", paused["jobs"].Result)
	assert.NotNil(t, paused["jobs"].Since)
	s := shown(t, "jobs")
	assert.True(t, s.Paused)
	assert.Equal(t, "w1", s.Workers[0].Name)
	assert.Contains(t, b.ok("workflow", "show"), "jobs: paused since")
	assert.Equal(t, "running", changesOf(t, "resume", "jobs")["jobs"].Result)
	b.ok("workflow", "pause", "--kind", "tasks", "--no-wait")
	b.ok("workflow", "resume", "--no-wait")
	assert.Contains(t, b.ok("actions", "list", "--subject", "task-queue-worker-production", "--json"),
		`"task-queue-worker-production": "sent"`, "--kind names it as an argument does")
	assert.Contains(t, b.ok("actions", "list", "--action", "workflow.resume"),
		"accounting-queue-worker-production job-queue-worker-production task-queue-worker-production")

	assert.Equal(t, failure.ExitUsage, call(t.Context(), "", "workflow", "cancel").exit,
		"nothing is ended by leaving a word out")
	assert.Equal(t, "cancelled", changesOf(t, "cancel", "jobs")["jobs"].Result)
	assert.Contains(t, b.ok("workflow", "show", "jobs"), "jobs: was cancelled at")
	assert.Equal(t, failure.ExitNotFound, call(t.Context(), "", "workflow", "resume", "jobs").exit)
	assert.Equal(t, "sent", changesOf(t, "cancel", "--all", "--no-wait")["tasks"].Result)

	changesOf(t, "start", "jobs", "--id", "mine")
	assert.Equal(t, "cancelled", changesOf(t, "cancel", "jobs", "--id", "mine")["jobs"].Result)
	other := changesOf(t, "start", "jobs", "--id", "mine", "--task-queue", "elsewhere")
	assert.Contains(t, other["jobs"].Says, "No worker polls elsewhere yet")
	assert.Equal(t, "mine", other["jobs"].WorkflowID)
	assert.Eventually(t, func() bool { return shown(t, "jobs").ID == "mine" }, time.Minute, 100*time.Millisecond,
		"it is found under its id")
	assert.Equal(t, "elsewhere", shown(t, "jobs").TaskQueue)
	stop()
	assert.Zero(t, (<-ended).exit)
}

// TestWorkflowCommandsActOnEveryRun: a workflow of the same kind that was started under another id
// is paused, resumed and configured as well; --id means one.
func TestWorkflowCommandsActOnEveryRun(t *testing.T) {
	server := temporaltest.Shared(t)
	inNamespace(t, server, server.Namespace(t))
	b := setup(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan result, 1)
	go func() { ended <- call(ctx, "", "--database-url", b.URL, "worker") }()
	defer func() {
		stop()
		assert.Zero(t, (<-ended).exit)
	}()
	changesOf(t, "start", "jobs")
	changesOf(t, "start", "jobs", "--id", "by-hand")
	require.Eventually(t, func() bool { return len(shown(t, "jobs").Others) == 1 }, time.Minute, 100*time.Millisecond,
		"Temporal lists it")
	assert.Contains(t, b.ok("workflow", "show", "jobs"), "by-hand")

	says := b.ok("workflow", "pause", "jobs")
	assert.Contains(t, says, "jobs (job-queue-worker-production): paused;")
	assert.Contains(t, says, "jobs (by-hand): paused;")
	paused := func(id string) bool {
		var said struct{ Workflows []health.WorkflowState }
		b.json(&said, "workflow", "show", "jobs", "--id", id)
		return said.Workflows[0].Paused
	}
	assert.True(t, paused("by-hand"))
	assert.Contains(t, b.ok("workflow", "configure", "jobs", "--batch-size", "7"), "jobs (by-hand): batches of 7,")
	assert.NotContains(t, b.ok("workflow", "resume", "jobs", "--id", "by-hand"), "production")
	assert.False(t, paused("by-hand"))
	assert.True(t, paused("job-queue-worker-production"))
	says = b.ok("workflow", "cancel", "jobs")
	assert.Contains(t, says, "jobs (job-queue-worker-production): ended")
	assert.Contains(t, says, "jobs (by-hand): ended")
	assert.Equal(t, failure.ExitNotFound, b.run("workflow", "pause", "jobs", "--id", "never-started").exit)
}

func TestWorkflowUsage(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	for _, args := range [][]string{
		{"start", "job"},
		{"start", "--batch-size", "0"},
		{"start", "--batch-size", "100000"},
		{"start", "--id", "x"},
		{"start", "--task-queue", "x"},
		{"configure", "jobs"},
		{"configure", "--poll-interval", "9999999"},
		{"pause", "--kind", "documents"},
		{"cancel", "jobs", "--all"},
		{"pause", "--wait", "-1s"},
	} {
		r := call(t.Context(), "", append([]string{"workflow"}, args...)...)
		assert.Equal(t, failure.ExitUsage, r.exit, "%v: %s", args, r.err)
	}
	for _, args := range [][]string{{"cancel", "--id", "x"}, {"cancel", "--id", "x", "--all"}, {"pause", "--id", "x"}} {
		r := call(t.Context(), "", append([]string{"workflow"}, args...)...)
		assert.Equal(t, failure.ExitUsage, r.exit, args)
		assert.Contains(t, r.err,
			"--id x names one workflow: say of which one kind it is, with --kind: accounting, jobs or tasks", args)
	}
}
