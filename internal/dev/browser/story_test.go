//go:build browser

package browser_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// openWorking is open with the organization acme, whose documents a real worker posts.
func openWorking(t *testing.T) *tab {
	t.Helper()
	server := temporaltest.Shared(t)
	temporal := server.Client(t, server.Namespace(t))
	b := open(t, temporal)
	fixture.Organization(t, b.Pool, "acme")
	b.run(temporal)
	return b
}

// run has a real worker work the accounting queue until the test ends.
func (b *tab) run(c client.Client) {
	b.t.Helper()
	w, err := workers.NewAccounting(workers.AccountingOptions{
		Client: c, Pool: b.Pool,
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(b.t, err)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(context.WithoutCancel(b.t.Context()))
	go func() { ended <- w.Run(ctx) }()
	b.t.Cleanup(func() {
		stop()
		assert.NoError(b.t, <-ended)
		w.Close()
	})
	_, err = c.ExecuteWorkflow(b.t.Context(),
		client.StartWorkflowOptions{ID: "accounting-queue-worker-production", TaskQueue: workflows.AccountingTaskQueue},
		workflows.AccountingWorkflow, workflows.Input{PollIntervalSeconds: new(1)})
	require.NoError(b.t, err)
}

// state is that of a document's job.
func (b *tab) state(document string) models.JobState {
	b.t.Helper()
	return fixture.Job(b.t, b.Pool, "acme", document).State
}

// saleRule is the condition of the sample's rule for sales.
const saleRule = `doc.type == "invoice" && doc.direction == "out"`

// TestMendARule is what a person on call does: from the overview to a failed document in three
// clicks, the reason, the rules, and the document posted by the worker.
func TestMendARule(t *testing.T) {
	t.Parallel()
	b := openWorking(t)
	tip := fixture.Invoice("acme", "tip-1", 1000)
	tip.Type = "tip"
	fixture.Ready(t, b.Pool, tip)
	require.Eventually(t, func() bool { return b.state("tip-1") == models.JobFailed }, patience, 50*time.Millisecond)
	b.sample()

	b.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	b.see("NO_MATCHING_RULE")
	b.click("NO_MATCHING_RULE")
	b.click("tip-1")
	b.see("no rule matches the document")
	b.click("Mend the rules")

	rules := string(sample.Rules())
	require.Contains(t, rules, saleRule)
	b.fill("textarea[name=source]",
		strings.Replace(rules, saleRule, `(doc.type == "invoice" || doc.type == "tip") && doc.direction == "out"`, 1))
	b.click("Preview")
	b.see("failed job comes back")
	assert.Equal(t, models.JobFailed, b.state("tip-1"), "a preview changes nothing")
	b.click("Store and activate…")
	b.click("Activate")
	b.see("Version 2 is active")
	require.Eventually(t, func() bool { return b.state("tip-1") == models.JobCompleted }, patience, 50*time.Millisecond,
		"the worker posts it")
	b.visit("documents?org=acme&document=tip-1")
	b.see("rule set version 2")

	b.visit("actions")
	b.see("rules")
	b.see("on call")
}

// TestWorkflowIsPausedAndResumed presses the buttons of the workers' page: the real workflow is
// paused, resumed and given other settings.
func TestWorkflowIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	b := openWorking(t)
	b.signIn("", tokens.ScopeRead, tokens.ScopeOperate)

	b.visit("workers")
	b.see("Workers polling")
	b.click("Pause…")
	b.press("details.confirm[open] button")
	b.see("Paused: no new turn begins.")
	fixture.Ready(t, b.Pool, fixture.Invoice("acme", "inv-1", 1000))
	b.see("paused")
	b.accessible("workers")
	b.visit("")
	b.see("WORKFLOW_PAUSED")

	b.visit("workers")
	b.click("Resume")
	b.see("Resumed.")
	require.Eventually(t, func() bool { return b.state("inv-1") == models.JobCompleted }, patience, 50*time.Millisecond,
		"the document that came meanwhile is posted")
	b.see("Change settings…")
	b.click("Change settings…")
	b.fill("#accounting-batch", "70")
	b.press("details.confirm[open] button")
	b.see("The settings hold from the next turn on.")
	b.see("70")
}

// TestRetryManyByErrorCode retries what failed with a code, after a count, and watches it being
// done.
func TestRetryManyByErrorCode(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	fixture.Organization(t, b.Pool, "acme")
	b.jobs()
	b.sample()
	b.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	b.click("Dead letters")
	b.see("NETWORK_ERROR")
	b.click("Retry…")
	b.see("3 dead letters match")
	assert.Equal(t, 3, b.count("failed"), "to look at the count changes nothing")
	b.click("Retry now")
	b.see("It is finished.")
	assert.Equal(t, 3, b.count("pending"))
}

// count is how many jobs of the type mail are in a state.
func (b *tab) count(state string) int {
	b.t.Helper()
	return fixture.Count(b.t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE type = 'mail' AND state = $1`, state)
}
