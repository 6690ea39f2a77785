package languages_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// typeScriptWorker starts the Temporal worker in TypeScript, which ends with the test.
func typeScriptWorker(t *testing.T, address, namespace string) {
	t.Helper()
	dir := compiled(t, "temporal")
	var log strings.Builder
	worker := exec.CommandContext(t.Context(), found(t, "node"), filepath.Join("dist", "worker.js"))
	worker.Dir = dir
	worker.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+address, "TEMPORAL_NAMESPACE="+namespace)
	worker.Stdout, worker.Stderr = &log, &log
	require.NoError(t, worker.Start())
	t.Cleanup(func() {
		_ = worker.Process.Kill()
		_ = worker.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
}

// A Temporal worker in TypeScript works jobs: by a workflow, and by activities. Their results,
// failures and heartbeats become the jobs', and a job that is cancelled cancels its activity.
func TestTypeScriptTemporalWorker(t *testing.T) {
	leisurely(t)
	t.Parallel()
	found(t, "node")
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	typeScriptWorker(t, server.Address, namespace)
	client := server.Client(t, namespace)
	db := daybooktest.New(t)
	file := filepath.Join(t.TempDir(), "functions.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
- {type: count_texts, workflow: countTexts, task_queue: texts, timeout: 2m}
- {type: count_words, activity: countWords, task_queue: texts, timeout: 2m}
- {type: watch, activity: watch, task_queue: texts, timeout: 2m, heartbeat: 30s}
`), 0o600))
	registry := jobs.NewRegistry()
	builtin, err := handlers.Register(registry,
		handlers.Config{Pool: db.Pool, Temporal: client, Environment: map[string]string{"DAYBOOK_FUNCTIONS_FILE": file}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, builtin.Close()) })

	enqueue := func(jobType, payload string) string {
		job, err := queue.EnqueueJob(t.Context(), db.Pool, "acme",
			queue.RawPayload{Type: jobType, Data: json.RawMessage(payload)}, queue.JobOptions{})
		require.NoError(t, err)
		return job.ID
	}
	status := func(id string) queue.JobStatus {
		s, err := queue.ReadJobStatus(t.Context(), db.Pool, id)
		require.NoError(t, err)
		return s
	}
	expected := map[string]string{
		enqueue("count_texts", `{"texts": ["one two", "three"]}`): `completed {"words": 3, "organization": "acme"}`,
		enqueue("count_texts", `{"texts": []}`):                   "failed NO_TEXT",
		enqueue("count_words", `{"text": "one two three"}`):       `completed {"words": 3}`,
		enqueue("count_words", `{}`):                              "failed NO_TEXT",
	}
	queuetest.DrainJobs(t, db.Pool, registry, queuetest.JobsOptions{Timeout: 3 * time.Minute})
	for id, want := range expected {
		s := status(id)
		assert.Equal(t, want, string(s.State)+" "+string(s.ErrorCode)+string(s.Result), s.Error)
	}

	watched := enqueue("watch", `{"name": "door"}`)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		queuetest.DrainJobs(t, db.Pool, registry, queuetest.JobsOptions{Timeout: 3 * time.Minute})
	}()
	assert.Eventually(t, func() bool { return string(status(watched).Progress) == `{"name": "door", "seen": 3}` },
		time.Minute, 100*time.Millisecond)
	_, err = queue.CancelJob(t.Context(), db.Pool, watched)
	require.NoError(t, err)
	<-worked
	assert.Equal(t, "cancelled", string(status(watched).State))
	assert.Eventually(t, func() bool {
		d, err := client.DescribeWorkflow(t.Context(), handlers.WorkflowID(watched), "")
		return err == nil && d.Status == enums.WORKFLOW_EXECUTION_STATUS_CANCELED
	}, time.Minute, 100*time.Millisecond)
}
