package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/cmd/daybook/work"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workflows"
)

// inNamespace points the environment at a namespace of the tests' Temporal server.
func inNamespace(t *testing.T, server *temporaltest.Server, namespace string) {
	t.Helper()
	t.Setenv("TEMPORAL_ADDRESS", server.Address)
	t.Setenv("TEMPORAL_NAMESPACE", namespace)
	t.Setenv("TEMPORAL_CONFIG_FILE", "/dev/null")
}

// worksSample has a worker with these flags post the sample documents, and stop.
func worksSample(t *testing.T, b *bundle, server *temporaltest.Server, namespace string, flags ...string) result {
	t.Helper()
	for _, org := range []string{"de", "es", "jp"} {
		b.sample(org)
	}
	b.ok("import", "ndjson", "dev/documents.ndjson", "--create")

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan result, 1)
	go func() {
		ended <- call(ctx, "", slices.Concat([]string{"--database-url", b.URL}, flags, []string{"worker", "--name", "w1"})...)
	}()

	c := server.Client(t, namespace)
	run, err := c.ExecuteWorkflow(t.Context(),
		client.StartWorkflowOptions{ID: "w", TaskQueue: workflows.AccountingTaskQueue},
		workflows.AccountingWorkflow, workflows.Input{ExitWhenEmpty: true})
	require.NoError(t, err)
	var counts models.RunCounts
	require.NoError(t, run.Get(t.Context(), &counts))
	assert.Equal(t, int64(10), counts.Completed)
	assert.Equal(t, int64(1), counts.Failed)
	stop()
	r := <-ended
	assert.Equal(t, failure.ExitOK, r.exit, r.err)
	return r
}

func TestWorkerPostsAndDrains(t *testing.T) {
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	inNamespace(t, server, namespace)
	b := setup(t)
	r := worksSample(t, b, server, namespace)
	said := ""
	for line := range strings.Lines(r.err) {
		if strings.Contains(line, "not configured") {
			assert.Empty(t, said, "once")
			said = line
		}
	}
	for _, missing := range []string{
		"email", "DAYBOOK_SMTP_HOST", "report", "DAYBOOK_REPORTS_BUCKET", "db_function",
		"DAYBOOK_DB_FUNCTIONS",
	} {
		assert.Contains(t, said, missing)
	}
	assert.NotContains(t, said, "webhook")
	assert.Equal(t, 1, strings.Count(r.err, `"msg":"the worker starts"`))
	assert.Contains(t, r.err,
		`"kinds":["accounting","jobs","tasks"],"temporal":"`+server.Address+`","namespace":"`+namespace+`"`)
	assert.Equal(t, 3, strings.Count(r.err, `"msg":"the worker has started"`), "one a queue")
	for line := range strings.Lines(r.err) {
		if strings.Contains(line, `"msg":"the worker has started"`) {
			assert.Contains(t, line, `"version":"`+readVersion().Version+`"`)
		}
	}
	assert.Equal(t, 3, strings.Count(r.err, `"msg":"the worker has stopped"`))
	assert.Contains(t, r.err, "a second signal ends it at once")

	var d work.ShownAccountingJob
	b.json(&d, "accounting", "show", "es", "invoice-1")
	require.Len(t, d.History, 1)
	assert.Equal(t, "w1", d.History[0].Worker)
	var s struct{ Queues []answers.QueueStats }
	b.json(&s, "status")
	assert.Equal(t, int64(10), s.Queues[0].Counts["completed"])
}

func TestWorkerRefusesAnUnknownNamespace(t *testing.T) {
	server := temporaltest.Shared(t)
	inNamespace(t, server, "not-made")
	r := setup(t).run("worker")
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Contains(t, r.err, "temporal operator namespace create")
}

// TestWorkerRefusesWhatItCannotUse: what no worker can work with is a wrong call, and is said with
// the name of the flag or the variable.
func TestWorkerRefusesWhatItCannotUse(t *testing.T) {
	server := temporaltest.Shared(t)
	inNamespace(t, server, server.Namespace(t))
	b := setup(t)
	refused := func(says string, args ...string) {
		t.Helper()
		r := b.run(append([]string{"worker"}, args...)...)
		assert.Equal(t, failure.ExitUsage, r.exit, args)
		assert.Contains(t, r.err, says)
	}
	refused("--activities 1: want at least 2", "--activities", "1")
	refused("--workflow-tasks 1: want at least 2", "--workflow-tasks", "1")
	refused("--pick-interval 5s: want 0, which is the default, to 1s", "--pick-interval", "5s")
	t.Setenv("ACCOUNTING_QUEUE_BATCH_SIZE", "abc")
	refused(`ACCOUNTING_QUEUE_BATCH_SIZE is "abc": want a number from 1 to 1000`)
}
