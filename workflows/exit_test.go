package workflows_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workflows"
)

// TestExitLooksOnceMoreForWhatWasGivenBack: a turn that is told of what was left behind may find
// nothing due and nothing held, because the job was given back after it had looked. So a run that
// exits when the queue is empty ends only after a turn that was told of none.
func TestExitLooksOnceMoreForWhatWasGivenBack(t *testing.T) {
	t.Parallel()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	var asked []activities.ProcessInput
	env.RegisterActivityWithOptions(func(context.Context) (activities.Settings, error) {
		return activities.Settings{BatchSize: 50, PollIntervalSeconds: 10}, nil
	}, activity.RegisterOptions{Name: "ReadSettings"})
	env.RegisterActivityWithOptions(func(_ context.Context, in activities.ProcessInput) (models.TurnReport, error) {
		asked = append(asked, in)
		switch len(asked) {
		case 1:
			return models.TurnReport{Leased: 2, Completed: 1, LeftBehind: []string{in.TurnID}}, nil
		case 3:
			return models.TurnReport{Leased: 1, Completed: 1}, nil
		}
		return models.TurnReport{}, nil
	}, activity.RegisterOptions{Name: "ProcessBatch"})
	one := 1
	env.ExecuteWorkflow(workflows.Accounting, workflows.Input{ExitWhenEmpty: true, Concurrency: &one})
	require.NoError(t, env.GetWorkflowError())
	var counts models.RunCounts
	require.NoError(t, env.GetWorkflowResult(&counts))
	assert.EqualValues(t, 2, counts.Completed)
	require.Len(t, asked, 4)
	assert.Equal(t, []string{asked[0].TurnID}, asked[1].LeftBehind)
	assert.Empty(t, asked[2].LeftBehind)
}
