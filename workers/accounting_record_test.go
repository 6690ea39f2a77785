package workers_test

import (
	"compress/gzip"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// TestRecordHistories writes histories of the present workflow code to workflows/testdata. See
// workflows.Version.
func TestRecordHistories(t *testing.T) {
	if os.Getenv("DAYBOOK_RECORD_HISTORIES") == "" {
		t.Skip("records histories only when DAYBOOK_RECORD_HISTORIES is set")
	}
	b := setup(t)
	b.start(workers.AccountingOptions{Name: "worker"})
	fixture.ManyReady(t, b.Pool, org, "inv-", 3000)
	fixture.Ready(t, b.Pool, fixture.Unbalanced(org, "bad"))
	id := b.run(`{"exitWhenEmpty": true}`)
	require.NoError(t, b.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	b.record("drain", id, "")

	id = b.run(`{"concurrency": 2, "pollIntervalSeconds": 2}`)
	b.eventually("it waits", 20*time.Second, func() bool { return b.status(id).IdleSince != nil })
	fixture.ManyReady(t, b.Pool, org, "more-", 500)
	b.eventually("it works", 20*time.Second, func() bool { return b.status(id).Counts.Completed > 0 })
	require.NoError(t, b.client.SignalWorkflow(t.Context(), id, "", models.SignalPause, nil))
	_, err := b.configure(id, workflows.ConfigureInput{BatchSize: new(20), Concurrency: new(4)})
	require.NoError(t, err)
	require.NoError(t, b.client.SignalWorkflow(t.Context(), id, "", models.SignalResume, nil))
	first := b.runID(id)
	for n := 0; b.status(id).Runs == 1; n++ {
		_, err := b.configure(id, workflows.ConfigureInput{BatchSize: new(20 + n%5)})
		require.NoError(t, err)
	}
	b.record("messages", id, first)
	fixture.ManyReady(t, b.Pool, org, "last-", 2000)
	b.eventually("all is done", 30*time.Second, func() bool { return b.states()[models.JobCompleted] == 5500 })
	require.NoError(t, b.client.CancelWorkflow(t.Context(), id, ""))
	require.Error(t, b.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	b.record("carried", id, b.runID(id))
}

func (b *bundle) runID(id string) string {
	b.t.Helper()
	d, err := b.client.DescribeWorkflow(b.t.Context(), id, "")
	require.NoError(b.t, err)
	return d.RawResponse.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

// identity is what says on which machine something ran: who did it, and the name of a worker's own
// task queue.
var identity = regexp.MustCompile(`[0-9]+@[A-Za-z0-9._-]+@?|[A-Za-z0-9._-]+:[0-9a-f-]{36}`)

// record writes the history of one run, without the machine's name.
func (b *bundle) record(scenario, id, run string) {
	b.t.Helper()
	var h history.History
	events := b.client.GetWorkflowHistory(b.t.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(b.t, err)
		h.Events = append(h.Events, e)
	}
	text, err := protojson.Marshal(&h)
	require.NoError(b.t, err)
	f, err := os.Create(fmt.Sprintf("../workflows/testdata/v%d-%s.json.gz", workflows.Version, scenario))
	require.NoError(b.t, err)
	z := gzip.NewWriter(f)
	_, err = z.Write(identity.ReplaceAll(text, []byte("worker")))
	require.NoError(b.t, err)
	require.NoError(b.t, z.Close())
	require.NoError(b.t, f.Close())
	b.t.Logf("%s: %d events", scenario, len(h.Events))
}
