package workers_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workflows"
)

// enqueueVisits enqueues n tasks that complete, and five that fail.
func (b *bundle) enqueueVisits(n int) {
	b.t.Helper()
	const visits = `SELECT count(queues.enqueue('db_function', jsonb_build_object('db_function', $2::text, 'channels', '[]'::jsonb))::text) FROM generate_series(1, $1::int)`
	b.exec(visits, n, "app.supervise")
	b.exec(visits, 5, "app.nothing")
}

// TestRecordTaskHistories writes histories of syncTaskQueueWorkflow: one that ends when nothing is
// due, one that gets messages and continues as new, and the run after it.
func TestRecordTaskHistories(t *testing.T) {
	if os.Getenv("DAYBOOK_RECORD_HISTORIES") == "" {
		t.Skip("records histories only when DAYBOOK_RECORD_HISTORIES is set")
	}
	b := setup(t)
	b.exec(business)
	b.startTasks(b.As(t, taskRole), nil)
	b.enqueueVisits(500)
	id := b.runTasks(`{"exitWhenEmpty": true}`)
	var counts models.RunCounts
	require.NoError(t, b.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), &counts))
	require.Equal(t, []int64{500, 5}, []int64{counts.Completed, counts.Failed})
	b.record("tasks-drain", id, "")

	id = b.runTasks(`{"concurrency": 2, "pollIntervalSeconds": 2}`)
	b.eventually("it waits", 20*time.Second, func() bool { return b.status(id).IdleSince != nil })
	b.enqueueVisits(300)
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
	b.record("tasks-messages", id, first)
	b.enqueueVisits(200)
	b.eventually("all is done", 30*time.Second, func() bool { return b.completedTasks() == 1015 })
	require.NoError(t, b.client.CancelWorkflow(t.Context(), id, ""))
	require.Error(t, b.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	b.record("tasks-carried", id, b.runID(id))
}
