package workflows_test

import (
	"compress/gzip"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/workflows"
)

// registered are the workflows by the names under which workers register them.
var registered = map[string]any{
	workflows.AccountingWorkflow:   workflows.Accounting,
	workflows.JobsWorkflow:         workflows.Jobs,
	workflows.TasksWorkflow:        workflows.Tasks,
	workflows.ScheduledJobWorkflow: workflows.ScheduledJob,
}

// TestReplay replays every recorded history with the present code, also under another run id, as it
// is when an operator resets the workflow.
func TestReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/v*.json.gz")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		for of, run := range map[string]string{"as recorded": "", "after a reset": "b7e3a1f0-2c4d-4e5f-8a9b-0c1d2e3f4a5b"} {
			t.Run(filepath.Base(file)+" "+of, func(t *testing.T) {
				t.Parallel()
				r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
					Interceptors: []interceptor.WorkerInterceptor{workflows.SignalOrder()},
				})
				require.NoError(t, err)
				for name, f := range registered {
					r.RegisterWorkflowWithOptions(f, workflow.RegisterOptions{Name: name})
				}
				require.NoError(t, r.ReplayWorkflowHistoryWithOptions(nil, load(t, file),
					worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{RunID: run}}))
			})
		}
	}
}

// A replayer that took any code would prove nothing.
func TestReplayFindsAnotherCommand(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"jobs-drain", "schedule-fired"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := load(t, fmt.Sprintf("testdata/v%d-%s.json.gz", workflows.Version, name))
			quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
			r := worker.NewWorkflowReplayer()
			r.RegisterWorkflowWithOptions(func(ctx workflow.Context) error { return workflow.Sleep(ctx, time.Hour) },
				workflow.RegisterOptions{Name: workflowOf(h)})
			require.ErrorContains(t, r.ReplayWorkflowHistory(quiet, h), "TMPRL1100")
		})
	}
}

// TestEveryVersionHasAHistory fails when the code's version was raised without a record of what
// each workflow does.
func TestEveryVersionHasAHistory(t *testing.T) {
	t.Parallel()
	for v := 1; v <= workflows.Version; v++ {
		files, err := filepath.Glob(fmt.Sprintf("testdata/v%d-*.json.gz", v))
		require.NoError(t, err)
		recorded := map[string]bool{}
		for _, file := range files {
			recorded[workflowOf(load(t, file))] = true
		}
		for name := range registered {
			assert.True(t, recorded[name], "version %d of %s", v, name)
		}
	}
}

// TestHistoriesShowEveryEnd fails when what was recorded leaves out one of the ways in which a run
// ends.
func TestHistoriesShowEveryEnd(t *testing.T) {
	t.Parallel()
	const (
		completed = enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED
		continued = enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW
		cancelled = enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED
		failed    = enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED
	)
	ends := map[string]map[enums.EventType]bool{}
	files, err := filepath.Glob(fmt.Sprintf("testdata/v%d-*.json.gz", workflows.Version))
	require.NoError(t, err)
	for _, file := range files {
		h := load(t, file)
		name := workflowOf(h)
		if ends[name] == nil {
			ends[name] = map[enums.EventType]bool{}
		}
		ends[name][h.GetEvents()[len(h.GetEvents())-1].GetEventType()] = true
	}
	assert.Equal(t, map[string]map[enums.EventType]bool{
		workflows.AccountingWorkflow:   {completed: true, continued: true, cancelled: true},
		workflows.JobsWorkflow:         {completed: true, continued: true, cancelled: true},
		workflows.TasksWorkflow:        {completed: true, continued: true, cancelled: true},
		workflows.ScheduledJobWorkflow: {completed: true, failed: true},
	}, ends)
}

// workflowOf is the name of the workflow whose history it is.
func workflowOf(h *history.History) string {
	return h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
}

func load(t *testing.T, file string) *history.History {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	h, err := client.HistoryFromJSON(z, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h
}
