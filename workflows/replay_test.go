package workflows_test

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/workflows"
)

// TestReplay replays every recorded history with the present code.
func TestReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/v*.json.gz")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			r := worker.NewWorkflowReplayer()
			r.RegisterWorkflowWithOptions(workflows.Accounting, workflow.RegisterOptions{Name: workflows.AccountingWorkflow})
			require.NoError(t, r.ReplayWorkflowHistory(nil, load(t, file)))
		})
	}
}

// TestEveryVersionHasAHistory fails when the code's version was raised and nobody recorded what it does.
func TestEveryVersionHasAHistory(t *testing.T) {
	t.Parallel()
	for v := 1; v <= workflows.Version; v++ {
		files, err := filepath.Glob(fmt.Sprintf("testdata/v%d-*.json.gz", v))
		require.NoError(t, err)
		require.NotEmpty(t, files, "version %d", v)
	}
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
