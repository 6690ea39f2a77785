package workers_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// memo is what Temporal itself knows of the run, without a worker.
func (b *bundle) memo(id string) map[string]string {
	b.t.Helper()
	d, err := b.client.DescribeWorkflow(b.t.Context(), id, "")
	require.NoError(b.t, err)
	fields := map[string]string{}
	for name, p := range d.RawResponse.GetWorkflowExecutionInfo().GetMemo().GetFields() {
		fields[name] = string(p.GetData())
	}
	return fields
}

// TestMemoSaysWhatTheRunIs reads the memo also when no worker runs: then neither query nor current
// details answer.
func TestMemoSaysWhatTheRunIs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w, err := workers.NewAccounting(workers.AccountingOptions{
		Client: b.client, Pool: b.Pool,
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	stop := b.runWorker(w)
	id := b.run(`{"batchSize": 20, "pollIntervalSeconds": 60}`)
	b.eventually("it is on record", 10*time.Second, func() bool { return len(b.memo(id)) > 0 })
	assert.Equal(t, map[string]string{
		models.MemoKind: `"accounting"`, models.MemoAbout: `"Daybook, kind accounting: posts documents to the ledger"`,
		models.MemoState: `"running"`, models.MemoSettings: `{"batchSize":20,"pollIntervalSeconds":60,"concurrency":3}`,
	}, b.memo(id))

	_, err = b.configure(id, workflows.ConfigureInput{BatchSize: new(30)})
	require.NoError(t, err)
	require.NoError(t, b.client.SignalWorkflow(t.Context(), id, "", models.SignalPause, nil))
	b.eventually("the pause is on record", 10*time.Second,
		func() bool { return b.memo(id)[models.MemoState] == `"paused"` })
	stop()
	paused := b.memo(id)
	assert.Equal(t, `{"batchSize":30,"pollIntervalSeconds":60,"concurrency":3}`, paused[models.MemoSettings])
	since, err := time.Parse(time.RFC3339, strings.Trim(paused[models.MemoPausedSince], `"`))
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), since, time.Minute)

	b.start(workers.AccountingOptions{})
	require.NoError(t, b.client.SignalWorkflow(t.Context(), id, "", models.SignalResume, nil))
	b.eventually("the resumption is on record", 20*time.Second,
		func() bool { return b.memo(id)[models.MemoState] == `"running"` })
	assert.NotContains(t, b.memo(id), models.MemoPausedSince)
}

// TestRunsPageFitsItsBox reads what the Temporal UI shows of a run: short lines of Markdown that
// all its versions render.
func TestRunsPageFitsItsBox(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(workers.AccountingOptions{})
	fixture.ManyReady(t, b.Pool, org, "inv-", 1200)
	about := workflows.Describe(workflows.AccountingWorkflow)
	id := temporaltest.Unique("described")
	_, err := b.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: workflows.AccountingTaskQueue, StaticSummary: about.Summary, StaticDetails: about.Details,
	}, workflows.AccountingWorkflow, workflows.Input{Concurrency: new(1)})
	require.NoError(t, err)
	b.eventually("a turn has ended", 30*time.Second, func() bool { return b.status(id).Counts.Completed == 1200 })

	v, err := b.client.QueryWorkflow(t.Context(), id, "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(t, v.Get(&metadata))
	now := metadata.GetCurrentDetails()
	assert.Contains(t, now, "- Last turn (lane 0, ")
	assert.Regexp(t, `- Since .* UTC: 1,200 jobs \(1,200 completed\) in \d turns?\n`, now)
	assert.Contains(t, now, "- Settings: 1 lane, 50 jobs at a time, waits 10 s for work")
	for _, text := range []string{about.Details, now} {
		for line := range strings.Lines(text) {
			assert.LessOrEqual(t, len(line), 120, line)
			assert.False(t, strings.HasPrefix(line, "|"), "not every version of the UI renders tables: %s", line)
		}
	}
}

// TestSummariesSayWhatTurnsDid reads the summaries of a lane's activities: the next one says what
// the turn before it did.
func TestSummariesSayWhatTurnsDid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(workers.AccountingOptions{})
	fixture.ManyReady(t, b.Pool, org, "inv-", 1200)
	id := b.run(`{"exitWhenEmpty": true, "concurrency": 1}`)
	require.NoError(t, b.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	summaries := b.summaries(id)
	require.GreaterOrEqual(t, len(summaries), 2)
	assert.Equal(t, "lane 0: turn 1 works what is due, for up to 5 s", summaries[0])
	assert.Regexp(t, `^lane 0: turn 1 worked [\d,]+ jobs \([\d,]+ completed\); turn 2 works what is due, for up to 5 s$`,
		summaries[1])
}

// TestLanesBeginWithATurn reads what the first workflow task of a run asks for: turns that do not
// wait. On an empty queue they end, and the run is idle while one lane waits.
func TestLanesBeginWithATurn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(workers.AccountingOptions{})
	id := b.run(`{"concurrency": 2, "pollIntervalSeconds": 3600}`)
	b.eventually("it is idle", 20*time.Second, func() bool { return b.status(id).IdleSince != nil })
	summaries := b.summaries(id)
	assert.Equal(t, []string{
		"lane 0: turn 1 works what is due, for up to 5 s",
		"lane 1: turn 2 works what is due, for up to 5 s",
	}, summaries[:2])
	assert.Regexp(t, `^lane [01]: turn 3 waits for work, and works for up to 5 s$`, summaries[2])
	assert.Zero(t, b.status(id).Counts.Turns, "turns that found nothing are not counted")
	assert.Equal(t, 1, b.pendingActivities(id), "one lane waits for work")
}

// summaries are those of the activities that a run has asked for, in their order.
func (b *bundle) summaries(id string) []string {
	b.t.Helper()
	var summaries []string
	events := b.client.GetWorkflowHistory(b.t.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(b.t, err)
		if e.GetEventType() != enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
			continue
		}
		var summary string
		require.NoError(b.t, converter.GetDefaultDataConverter().FromPayload(e.GetUserMetadata().GetSummary(), &summary))
		summaries = append(summaries, summary)
	}
	return summaries
}
