//go:build browser

package browser_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/tasks"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// past gives the charts an hour in which the queues had work.
func (b *tab) past() {
	b.t.Helper()
	b.exec(`
INSERT INTO daybook.history (seconds, at, kind, type, outcome, code, count, waited_seconds, took_seconds, waited, took)
SELECT 60, date_trunc('minute', now()) - n * interval '1 minute', kind, type, 'completed', '', 2 + (n * 37) % 5, 1, 1, '{0,0,0,0,60,20,5}', '{60,20,5}'
  FROM generate_series(1, 59) n, (VALUES ('accounting', ''), ('jobs', 'call')) k (kind, type)
ON CONFLICT DO NOTHING;
INSERT INTO daybook.depths (seconds, at, kind, due, waiting, leased, failed, oldest_due_seconds)
SELECT 60, date_trunc('minute', now()) - n * interval '1 minute', kind, (n * 13) % 4, 1, 2, 0, 1
  FROM generate_series(1, 59) n, (VALUES ('accounting'), ('jobs')) k (kind)
ON CONFLICT DO NOTHING`)
}

// runOthers has real workers work jobs and tasks until the test ends: calls end well, mails do not,
// and no worker has a handler for newsletters.
func (b *tab) runOthers(c client.Client) {
	b.t.Helper()
	registry := mailsAndCalls("")
	jobsWorker, err := workers.NewJobs(workers.JobsOptions{
		Client: c, Pool: b.Pool, Registry: registry,
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(b.t, err)
	tasksWorker, err := workers.NewTasks(workers.TasksOptions{
		Client: c, Pool: b.Pool, Registry: tasks.NewRegistry(),
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(b.t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(b.t.Context()))
	ended := make(chan error, 2)
	go func() { ended <- jobsWorker.Run(ctx) }()
	go func() { ended <- tasksWorker.Run(ctx) }()
	b.t.Cleanup(func() {
		stop()
		assert.NoError(b.t, <-ended)
		assert.NoError(b.t, <-ended)
		jobsWorker.Close()
		tasksWorker.Close()
	})
	for _, w := range health.Documented()[1:] {
		_, err := c.ExecuteWorkflow(b.t.Context(), client.StartWorkflowOptions{ID: w.ID, TaskQueue: w.TaskQueue}, w.Type,
			workflows.Input{})
		require.NoError(b.t, err)
	}
}

// TestPictures shows the pages whose pictures are in the documents. The first line and the queues
// below it are of one moment: what is due there is not "nothing waits" here.
func TestPictures(t *testing.T) {
	t.Parallel()
	server := temporaltest.Shared(t)
	temporal := server.Client(t, server.Namespace(t))
	b := open(t, temporal)
	fixture.Organization(t, b.Pool, "acme")
	b.run(temporal)
	b.runOthers(temporal)
	fixture.Ready(t, b.Pool, fixture.Invoice("acme", "INV-1001", 119_00), fixture.Unbalanced("acme", "INV-1004"))
	require.Eventually(t, func() bool { return b.state("INV-1001") == "completed" && b.state("INV-1004") == "failed" },
		patience, 50*time.Millisecond)
	for range 3 {
		b.enqueue(mail{"to acme", "hunter2"}, queue.JobOptions{})
		b.enqueue(call{"acme"}, queue.JobOptions{})
	}
	require.Eventually(t, func() bool { return b.count("failed") == 3 }, patience, 50*time.Millisecond)
	b.past()
	b.exec(`INSERT INTO daybook.jobs (org_id, type, payload) SELECT 'acme', 'newsletter', '{}' FROM generate_series(1, 3)`)
	b.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	b.as(1280, 1600, "light")
	b.visit("")
	text := b.text()
	assert.Contains(t, text, "1 document could not be posted")
	assert.Contains(t, text, "3 jobs failed")
	assert.NotContains(t, text, "nothing waits")
	assert.Contains(t, text, "3 wait for a worker that has their type")
	b.picture("console-overview")
	b.as(1280, 1600, "dark")
	b.picture("console-overview-dark")
	b.as(390, 844, "light")
	b.picture("console-phone")
	b.as(1280, 900, "light")
	b.visit("dead-letters")
	b.click("Retry…")
	b.click("Retry now")
	b.see("It is finished.")
	b.visit("workers")
	b.click("Pause…")
	b.press("details.confirm[open] button")
	b.visit("workers")
	b.click("Resume")
	b.visit("actions")
	b.see("on call")
	b.picture("console-actions")
}

// TestPicturesOfBooks shows the pages of the ledger whose pictures are in the documents.
func TestPicturesOfBooks(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	fixture.Organization(t, b.Pool, "acme")
	b.books()
	fixture.Ready(t, b.Pool,
		sold("INV-1001", "Hansen & Sons", "EUR", time.March, 3, 2_380_00), sold("INV-1002", "Iberia Foods", "EUR", time.March, 12, 640_00),
		sold("INV-1003", "Northwind Trading Company Ltd", "USD", time.March, 20, 310_000_00),
		paid("BANK-2", "Iberia Foods", "EUR", time.March, 28, 500_00))
	queuetest.DrainAccounting(t, b.Pool, queuetest.AccountingOptions{})
	fixture.Ready(t, b.Pool, fixture.Unbalanced("acme", "INV-1004"))
	queuetest.DrainAccounting(t, b.Pool, queuetest.AccountingOptions{})
	b.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	for _, page := range []struct {
		picture, path, sees string
		height              int64
	}{
		{"console-closing", "period?from=2026-03-01", "not ready to be closed", 820},
		{"console-open-items", "open-items?on=2026-03-31", "Hansen & Sons", 820},
		{"console-statements", "statements?kind=income&period=2026-03&compare=previous", "Close the year…", 1000},
	} {
		b.as(1280, page.height, "light")
		b.visit(page.path)
		b.see(page.sees)
		b.picture(page.picture)
	}
}
