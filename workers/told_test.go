package workers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// said are the lines with this message; without lines it is empty.
func (w *written) said(t *testing.T, message string) (lines []map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(w.String())))
	for d.More() {
		var line map[string]any
		require.NoError(t, d.Decode(&line))
		if line["msg"] == message {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestWorkerTellsItsLife: what it works when it starts, what is left when it is told to stop, and
// how that ended.
func TestWorkerTellsItsLife(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begun, release := make(chan struct{}), make(chan struct{})
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.Policy{}, func(context.Context, *jobs.Job[errand]) error {
		close(begun)
		<-release
		return nil
	})
	log := &written{}
	w, err := workers.NewJobs(workers.JobsOptions{
		Client: b.client, Pool: b.Pool, Registry: r, Name: "teller",
		Log: slog.New(slog.NewJSONHandler(log, nil)),
	})
	require.NoError(t, err)
	t.Cleanup(w.Close)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	_, err = queue.EnqueueJob(t.Context(), b.Pool, org, errand{}, queue.JobOptions{})
	require.NoError(t, err)
	b.runJobs(`{}`)
	<-begun

	starts := log.said(t, "the worker has started")
	require.Len(t, starts, 1)
	for key, want := range map[string]any{
		"kind": "jobs", "worker": "teller", "taskQueue": workflows.JobsTaskQueue,
		"activities": 3.0, "workflowTasks": 5.0,
	} {
		assert.Equal(t, want, starts[0][key], key)
	}
	assert.Contains(t, starts[0]["database"], "/"+b.Name)
	assert.Positive(t, starts[0]["schema"])
	assert.Positive(t, starts[0]["connections"])

	cancel()
	const stops = "the worker stops: it leases nothing more, and handlers that run may go on for the grace period"
	b.eventually("it says that it stops", 10*time.Second, func() bool { return len(log.said(t, stops)) == 1 })
	assert.EqualValues(t, 1, log.said(t, stops)[0]["handlers"])
	assert.Equal(t, "20s", log.said(t, stops)[0]["grace"])
	assert.Empty(t, log.said(t, "the worker has stopped"))

	close(release)
	require.NoError(t, <-ran)
	w.Close()
	stopped := log.said(t, "the worker has stopped")
	require.Len(t, stopped, 1)
	assert.EqualValues(t, 0, stopped[0]["interrupted"])
	assert.EqualValues(t, 0, stopped[0]["handlers"])
	assert.NotEmpty(t, stopped[0]["after"])
}
