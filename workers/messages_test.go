package workers_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

func (b *bundle) configure(id string, in workflows.ConfigureInput) (models.RunSettings, error) {
	b.t.Helper()
	var s models.RunSettings
	h, err := b.client.UpdateWorkflow(b.t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: models.UpdateConfigure, Args: []any{in},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return s, err
	}
	return s, h.Get(b.t.Context(), &s)
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(workers.AccountingOptions{})
	id := b.run(`{"pollIntervalSeconds": 60}`)
	b.eventually("it waits for work", 10*time.Second, func() bool { return b.status(id).IdleSince != nil })

	require.NoError(t, b.client.SignalWorkflow(t.Context(), id, "", models.SignalPause, nil))
	b.eventually("the waiting fetch has ended", 10*time.Second, func() bool { return b.pendingActivities(id) == 0 })
	assert.True(t, b.status(id).Paused)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000))
	// Nothing can be seen to happen, so look at it from the other end: no lane fetches.
	assert.Zero(t, b.pendingActivities(id))
	assert.Equal(t, models.JobPending, fixture.Job(t, b.Pool, org, "inv-1").State)

	require.NoError(t, b.client.SignalWorkflow(t.Context(), id, "", models.SignalResume, nil))
	b.eventually("it goes on", 10*time.Second, func() bool { return b.states()[models.JobCompleted] == 1 })
	b.eventually("the turn is reported", 15*time.Second, func() bool { return b.status(id).Counts.Completed == 1 })
	status := b.status(id)
	assert.False(t, status.Paused)
	require.NotNil(t, status.LastTurn)
	assert.Equal(t, 1, status.LastTurn.Report.Completed)
}

func (b *bundle) pendingActivities(id string) int {
	b.t.Helper()
	d, err := b.client.DescribeWorkflow(b.t.Context(), id, "")
	require.NoError(b.t, err)
	return len(d.RawResponse.GetPendingActivities())
}

func TestConfigure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(workers.AccountingOptions{Settings: workers.Settings{
		BatchSize: 7, PollIntervalSeconds: 11,
		RetryBaseSeconds: 300,
	}})
	id := b.run(`{"concurrency": 2}`)
	b.eventually("it has its settings", 10*time.Second, func() bool {
		return b.status(id).Settings == models.RunSettings{BatchSize: 7, PollIntervalSeconds: 11, Concurrency: 2}
	})

	s, err := b.configure(id, workflows.ConfigureInput{BatchSize: new(100), Concurrency: new(5)})
	require.NoError(t, err)
	assert.Equal(t, models.RunSettings{BatchSize: 100, PollIntervalSeconds: 11, Concurrency: 5}, s)

	for message, in := range map[string]workflows.ConfigureInput{
		"batchSize is 0: want 1 to 1000":              {BatchSize: new(0)},
		"pollIntervalSeconds is 3601: want 1 to 3600": {PollIntervalSeconds: new(3601)},
		"concurrency is -1: want 1 to 100":            {Concurrency: new(-1)},
		"nothing to configure":                        {},
	} {
		_, err := b.configure(id, in)
		require.ErrorContains(t, err, message)
	}
	handle, err := b.client.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: models.UpdateConfigure, WaitForStage: client.WorkflowUpdateStageCompleted,
		Args: []any{map[string]int{"batchSize": 9, "concurency": 2}},
	})
	require.NoError(t, err)
	require.ErrorContains(t, handle.Get(t.Context(), nil), `the input has no member "concurency"`)
	assert.Equal(t, s, b.status(id).Settings)
	fixture.ManyReady(t, b.Pool, org, "inv-", 1000)
	b.eventually("the new settings work", 20*time.Second, func() bool { return b.states()[models.JobCompleted] == 1000 })
}

func TestInputOutOfRangeFailsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(workers.AccountingOptions{})
	for message, input := range map[string]string{
		"batchSize is 0: want 1 to 1000":            `{"batchSize": 0}`,
		"batchSize is 1001: want 1 to 1000":         `{"batchSize": 1001}`,
		"pollIntervalSeconds is -3: want 1 to 3600": `{"pollIntervalSeconds": -3}`,
		"concurrency is 101: want 1 to 100":         `{"concurrency": 101}`,
		"unable to decode":                          `{"batchSize": "fifty"}`,
		"carried is what a run hands over":          `{"carried": {}}`,
		`input.batchSize`:                           `{"batchSize": 2.9}`,
		`the input has no member "batch_size"`:      `{"batch_size": 50, "concurrency": 2}`,
	} {
		err := b.client.GetWorkflow(t.Context(), b.run(input), "").Get(t.Context(), nil)
		require.ErrorContains(t, err, message)
	}
}

// TestLastSignalCounts sends both signals before there is a worker, so that the workflow finds them
// in one task.
func TestLastSignalCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	paused, runs := b.run(`{}`), b.run(`{}`)
	for _, one := range []struct{ id, name string }{
		{paused, models.SignalResume},
		{paused, models.SignalPause},
		{runs, models.SignalPause},
		{runs, models.SignalResume},
	} {
		require.NoError(t, b.client.SignalWorkflow(t.Context(), one.id, "", one.name, nil))
	}
	b.start(workers.AccountingOptions{})
	for id, want := range map[string]bool{paused: true, runs: false} {
		b.eventually("it has its settings", 30*time.Second, func() bool { return b.status(id).Settings.BatchSize > 0 })
		assert.Equal(t, want, b.status(id).Paused)
	}
}

func TestStartsWithoutInput(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(workers.AccountingOptions{})
	b.cli("workflow", "start", "--task-queue", "accounting-queue", "--type", "syncAccountingQueueWorkflow",
		"--workflow-id", "bare")
	b.eventually("it has the defaults", 10*time.Second, func() bool {
		return b.status("bare").Settings == models.RunSettings{BatchSize: 50, PollIntervalSeconds: 10, Concurrency: 3}
	})
}

// TestCancelDrains cancels a run in the middle of a backlog.
func TestCancelDrains(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(workers.AccountingOptions{})
	b.ready(backlog)
	id := b.run(`{}`)
	b.eventually("it works", 20*time.Second, func() bool { return b.states()[models.JobCompleted] > 500 })

	require.NoError(t, b.client.CancelWorkflow(t.Context(), id, ""))

	err := b.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil)
	require.ErrorContains(t, err, "canceled")
	d, err := b.client.DescribeWorkflow(t.Context(), id, "")
	require.NoError(t, err)
	assert.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_CANCELED, d.Status)
	assert.Zero(t, b.states()[models.JobLeased])
	assert.NotZero(t, b.states()[models.JobPending], "it ended before the queue was empty")
}

// TestContinueAsNewKeepsEverything hands every field of the state to a next run.
func TestContinueAsNewKeepsEverything(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(workers.AccountingOptions{})
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	carried := models.RunState{
		Settings: models.RunSettings{BatchSize: 33, PollIntervalSeconds: 44, Concurrency: 2},
		Paused:   true, Counts: models.RunCounts{
			Turns: 5, Completed: 6, Retried: 7, Rescheduled: 8, Failed: 9,
			Cancelled: 10, Lost: 11, Released: 12, Leased: 13,
		},
		LastTurn: &models.TurnSummary{ID: "a/0/1", Lane: 1, At: since}, StartedAt: since, Runs: 3,
		LeftBehind: []string{"a/0/1"},
	}
	input, err := json.Marshal(workflows.Input{Carried: &carried})
	require.NoError(t, err)
	id := b.run(string(input))

	b.eventually("it is there", 10*time.Second, func() bool { return b.status(id).Runs == 4 })
	got := b.status(id).RunState
	carried.Runs = 4
	assert.Equal(t, carried, got)

	require.NoError(t, b.client.SignalWorkflow(t.Context(), id, "", models.SignalResume, nil))
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000))
	b.eventually("it works on", 10*time.Second, func() bool { return b.states()[models.JobCompleted] == 1 })
	b.eventually("nothing is left behind by that turn any more", 30*time.Second,
		func() bool { return len(b.status(id).LeftBehind) == 0 })
}

// TestContinuesAsNewUnderSignals sends signals, updates and work to a run until it has continued as
// new several times: none of them is lost.
func TestContinuesAsNewUnderSignals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(workers.AccountingOptions{})
	id := b.run(`{"concurrency": 2}`)
	b.eventually("it runs", 10*time.Second, func() bool { return b.status(id).Settings.BatchSize == 50 })
	sent := 0
	for b.status(id).Runs < 4 {
		require.Less(t, sent, 1000, "it must continue as new")
		sent++
		require.NoError(t, b.client.SignalWorkflow(t.Context(), id, "", models.SignalPause, nil))
		_, err := b.configure(id, workflows.ConfigureInput{BatchSize: new(sent)})
		require.NoError(t, err)
		require.NoError(t, b.client.SignalWorkflow(t.Context(), id, "", models.SignalResume, nil))
		fixture.Ready(t, b.Pool, fixture.Invoice(org, fmt.Sprint("inv-", sent), 1000))
	}

	b.eventually("all work is done", 30*time.Second, func() bool { return b.states()[models.JobCompleted] == sent })
	b.eventually("all turns are counted, over all runs", 30*time.Second,
		func() bool { return b.status(id).Counts.Completed == int64(sent) })
	status := b.status(id)
	assert.Equal(t, sent, status.Settings.BatchSize)
	assert.False(t, status.Paused)
}
