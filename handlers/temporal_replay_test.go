package handlers

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"
)

// TestActivityWorkflowReplays replays the recorded histories of the workflow that runs activities
// with the present code: such workflows may run for days while Daybook is upgraded.
// DAYBOOK_RECORD_HISTORIES=1 has the tests of activities record them anew, under the names of the
// first version.
func TestActivityWorkflowReplays(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"completed", "failed", "cancelled"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(historyFile(name))
			require.NoError(t, err)
			defer func() { require.NoError(t, f.Close()) }()
			z, err := gzip.NewReader(f)
			require.NoError(t, err)
			h, err := client.HistoryFromJSON(z, client.HistoryJSONOptions{})
			require.NoError(t, err)
			r := worker.NewWorkflowReplayer()
			r.RegisterWorkflowWithOptions(runJobActivity, workflow.RegisterOptions{Name: ActivityWorkflow})
			require.NoError(t, r.ReplayWorkflowHistory(nil, h))
		})
	}
}

func historyFile(name string) string {
	return filepath.Join("testdata", "v1-activity-"+name+".json.gz")
}

// record writes the history of a job's workflow, when histories are to be recorded.
func (b *bundle) record(c client.Client, id, name string) {
	b.t.Helper()
	if os.Getenv("DAYBOOK_RECORD_HISTORIES") == "" {
		return
	}
	h := &history.History{}
	for events := c.GetWorkflowHistory(b.t.Context(), WorkflowID(id), "", false,
		enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		require.NoError(b.t, err)
		h.Events = append(h.Events, e)
	}
	text, err := protojson.Marshal(h)
	require.NoError(b.t, err)
	require.NoError(b.t, os.MkdirAll("testdata", 0o750))
	f, err := os.Create(historyFile(name))
	require.NoError(b.t, err)
	z := gzip.NewWriter(f)
	_, err = z.Write(text)
	require.NoError(b.t, err)
	require.NoError(b.t, z.Close())
	require.NoError(b.t, f.Close())
}
