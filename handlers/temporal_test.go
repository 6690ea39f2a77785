package handlers

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// picture is the argument of the test's workflows.
type picture struct {
	Name  string `json:"name"`
	Sizes []int  `json:"sizes"`
}

// workflowQueue is where the test's workflows are worked.
const workflowQueue = "media"

// workflows registers the type resize, worked by a workflow. Its worker is started by poll;
// attempts after that wait for the workflow's end.
func (b *bundle) workflows(c TemporalConfig, f any) (temporal client.Client, poll func()) {
	b.t.Helper()
	server := temporaltest.Shared(b.t)
	temporal = server.Client(b.t, server.Namespace(b.t))
	c.Client, c.Pool, c.Workflow, c.TaskQueue = temporal, b.Pool, "Resize", workflowQueue
	c.Timeout = max(c.Timeout, 2*time.Second)
	h, err := NewTemporal(c)
	require.NoError(b.t, err)
	policy := FunctionPolicy(time.Minute)
	policy.Base = time.Minute
	jobs.RegisterRaw(b.registry, "resize", policy, h.Handle)
	return temporal, func() {
		h.c.Timeout = time.Minute
		w := worker.New(temporal, workflowQueue, worker.Options{})
		w.RegisterWorkflowWithOptions(f, workflow.RegisterOptions{Name: "Resize"})
		require.NoError(b.t, w.Start())
		b.t.Cleanup(w.Stop)
	}
}

// patient waits in an attempt until the workflow has ended.
var patient = TemporalConfig{Timeout: time.Minute}

func TestWorkflowWorksAJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var runs atomic.Int32
	_, poll := b.workflows(patient, func(ctx workflow.Context, p picture) (map[string]any, error) {
		runs.Add(1)
		var about TemporalJob
		err := json.Unmarshal(workflow.GetInfo(ctx).Memo.Fields["daybook"].GetData(), &about)
		return map[string]any{"name": p.Name, "files": len(p.Sizes), "org": about.OrgID}, err
	})
	poll()
	id := b.enqueue(image())
	b.work()
	want := map[string]any{"name": "a.png", "files": 2.0, "org": org}
	assert.Equal(t, want, result[map[string]any](t, b.job(id)))

	// As if the worker had ended before the job was completed: the next attempt finds the result.
	fixture.Uncomplete(t, b.Pool, id)
	b.work()
	assert.Equal(t, want, result[map[string]any](t, b.job(id)))
	assert.EqualValues(t, 1, runs.Load(), "it runs once")
}

func TestWorkflowTakesLongerThanAnAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// Its worker is started late: until then the workflow waits in Temporal.
	c, poll := b.workflows(TemporalConfig{Pause: 10 * time.Minute}, func(workflow.Context, picture) error { return nil })
	id := b.enqueue(image())
	b.work()
	j := b.job(id)
	assert.Equal(t, models.CodeSnoozed, j.Code, j.Error)
	assert.InDelta(t, 10*time.Minute, j.Wait, float64(time.Minute))
	poll()
	require.NoError(t, c.GetWorkflow(t.Context(), WorkflowID(id), "").Get(t.Context(), nil))
	b.due()
	b.work()
	assert.Equal(t, models.JobCompleted, b.job(id).State)
	assert.Equal(t, 1, b.count(`SELECT run_count FROM daybook.jobs WHERE id = $1`, id), "waiting counts no attempt")
}

// A run that failed fails one attempt; the next one starts another.
func TestWorkflowFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var runs atomic.Int32
	_, poll := b.workflows(patient, func(workflow.Context, picture) (string, error) {
		if runs.Add(1) == 1 {
			return "", temporal.NewApplicationErrorWithOptions("no room", "DISK_FULL",
				temporal.ApplicationErrorOptions{NextRetryDelay: 30 * time.Second})
		}
		return "done", nil
	})
	poll()
	id := b.enqueue(image())
	b.work()
	j := b.job(id)
	assert.Equal(t, models.ErrorCode("DISK_FULL"), j.Code, j.Error)
	assert.Contains(t, j.Error, "no room")
	jittered(t, 30*time.Second, j.Wait)
	b.due()
	b.work()
	assert.Equal(t, "done", result[string](t, b.job(id)))
	assert.EqualValues(t, 2, runs.Load())
}

// The workflow fails while no attempt waits for it: the next attempt reports that, and does not
// start another run instead.
func TestWorkflowFailsBetweenAttempts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var runs atomic.Int32
	c, poll := b.workflows(TemporalConfig{}, func(workflow.Context, picture) error {
		runs.Add(1)
		return errors.New("no room")
	})
	id := b.enqueue(image())
	b.work()
	require.Equal(t, models.CodeSnoozed, b.job(id).Code)
	poll()
	require.Error(t, c.GetWorkflow(t.Context(), WorkflowID(id), "").Get(t.Context(), nil))
	b.due()
	b.work()
	j := b.job(id)
	assert.Equal(t, models.CodeHandlerError, j.Code, j.Error)
	assert.Contains(t, j.Error, "no room")
	assert.EqualValues(t, 1, runs.Load())
}

func TestWorkflowFailsFinally(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, poll := b.workflows(patient, func(ctx workflow.Context, p picture) (string, error) {
		switch p.Name {
		case "slow":
			return "", workflow.Sleep(ctx, time.Hour)
		case "large":
			return strings.Repeat("x", 64<<10), nil
		}
		return "", temporal.NewNonRetryableApplicationError("no such picture", "ValueError", nil)
	})
	poll()
	first, large := b.enqueue(image()),
		b.enqueue(queue.RawPayload{Type: "resize", Data: json.RawMessage(`{"name": "large"}`)})
	b.work()
	j := b.job(first)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, models.CodeHandlerError, j.Code)
	assert.Contains(t, j.Error, "ValueError: no such picture")
	assert.Equal(t, models.JobCompleted, b.job(large).State, "the workflow has done its work")
	assert.Equal(t, models.CodeResultNotStored, b.job(large).Code)
	assert.Contains(t, b.job(large).Error, "more than 65536 bytes")

	// A person tries it again: it runs again.
	before := b.job(first).Error
	_, err := queue.RetryJob(t.Context(), b.Pool, first, queue.RetryOptions{Mode: queue.RetryReset})
	require.NoError(t, err)
	b.work()
	assert.Equal(t, models.JobFailed, b.job(first).State)
	assert.NotEqual(t, before, b.job(first).Error, "it names another run")
}

func TestWorkflowIsEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end   func(c client.Client, id string) error
		state models.JobState
		code  models.ErrorCode
	}{
		"cancelled": {
			func(c client.Client, id string) error { return c.CancelWorkflow(t.Context(), id, "") },
			models.JobCancelled, models.CodeJobCancelled,
		},
		"terminated": {
			func(c client.Client, id string) error { return c.TerminateWorkflow(t.Context(), id, "", "") },
			models.JobFailed, models.CodeHandlerError,
		},
		"timed out": {func(client.Client, string) error { return nil }, models.JobPending, models.CodeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			config := TemporalConfig{}
			if name == "timed out" {
				config.RunTimeout = 4 * time.Second
			}
			temporal, poll := b.workflows(config,
				func(ctx workflow.Context, _ picture) error { return workflow.Sleep(ctx, time.Hour) })
			id := b.enqueue(image())
			b.work()
			require.Equal(t, models.CodeSnoozed, b.job(id).Code)
			if name == "cancelled" {
				poll()
			}
			require.NoError(t, c.end(temporal, WorkflowID(id)))
			require.Error(t, temporal.GetWorkflow(t.Context(), WorkflowID(id), "").Get(t.Context(), nil))
			if name != "cancelled" {
				poll()
			}
			b.due()
			b.work()
			j := b.job(id)
			assert.Equal(t, c.state, j.State, j.Error)
			assert.Equal(t, c.code, j.Code, j.Error)
		})
	}
}

// An outage of Temporal counts no attempt.
func TestWorkflowWithoutTemporal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lazy, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1"})
	require.NoError(t, err)
	t.Cleanup(lazy.Close)
	h, err := NewTemporal(TemporalConfig{
		Client: lazy, Pool: b.Pool, Workflow: "Resize", TaskQueue: workflowQueue,
		Timeout: 50 * time.Millisecond,
	})
	require.NoError(t, err)
	jobs.RegisterRaw(b.registry, "resize", FunctionPolicy(0), h.Handle)
	j := b.run(image())
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, models.CodeSnoozed, j.Code, j.Error)
}

func TestWorkflowIsForItsOrganizations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.workflows(TemporalConfig{Organizations: []string{"org_2"}}, func(workflow.Context) error { return nil })
	j := b.run(image())
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, models.CodeAuthenticationFailed, j.Code, j.Error)
}

func TestWorkflowsInTheFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lazy, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1"})
	require.NoError(t, err)
	t.Cleanup(lazy.Close)
	file := filepath.Join(t.TempDir(), "functions.yaml")
	variables := map[string]string{"DAYBOOK_FUNCTIONS_FILE": file}
	require.NoError(t, os.WriteFile(file,
		[]byte(`[{type: resize, workflow: Resize, task_queue: media, timeout: 1m, pause: 5m, run_timeout: 24h, attempts: 7}]`), 0o600))
	builtin, err := Register(b.registry, Config{Pool: b.Pool, Environment: variables, Temporal: lazy})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, builtin.Close()) })
	assert.Contains(t, builtin.Types, "resize")
	for _, registration := range b.registry.Registrations() {
		if registration.Type == "resize" {
			assert.Equal(t, 70*time.Second, registration.Policy.Timeout)
			assert.Equal(t, 7, registration.Policy.MaxAttempts)
		}
	}
	without, err := Register(jobs.NewRegistry(), Config{Pool: b.Pool, Environment: variables})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, without.Close()) })
	assert.NotContains(t, without.Types, "resize")
	assert.Contains(t, without.Missing["resize"], "no Temporal client")

	for content, want := range map[string]string{
		`[{type: resize, workflow: Resize}]`:                                              "task_queue where",
		`[{type: resize, workflow: Resize, task_queue: media, url: "https://f.example"}]`: "keep one of them",
		`[{type: resize, workflow: Resize, task_queue: media, timeout: 3h}]`:              "timeout must be",
		`[{type: resize, workflow: Resize, task_queue: media, pause: -1s}]`:               "must not be negative",
		`[{type: resize, url: "https://f.example.com", secret: f, task_queue: media}]`:    "name it by workflow or activity",
		`[{type: resize, workflow: Resize, activity: Resize, task_queue: media}]`:         "activity in its place",
		`[{type: resize, activity: Resize}]`:                                              "task_queue where",
		`[{type: resize, activity: Resize, task_queue: media, activity_attempts: 101}]`:   "1 to 100",
		`[{type: resize, workflow: Resize, task_queue: media, heartbeat: 1s}]`:            "are for an activity",
		`[{type: webhook, workflow: Resize, task_queue: media}]`:                          "has a handler already",
	} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, err := Register(jobs.NewRegistry(), Config{Pool: b.Pool, Environment: variables, Temporal: lazy})
		require.ErrorContains(t, err, want)
	}
	_, err = NewTemporal(TemporalConfig{Workflow: "Resize", TaskQueue: "media"})
	require.ErrorContains(t, err, "client and a pool")
}
