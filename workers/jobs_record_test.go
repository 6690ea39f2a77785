package workers_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// errand is a job that ends as its payload says.
type errand struct {
	Number int    `json:"number"`
	End    string `json:"end"`
}

func (errand) JobType() string { return "errand" }

// errands has a registry of the type errand, whose second attempt comes after a second.
func errands() *jobs.Registry {
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.Policy{Owner: "tests", MaxAttempts: 3, Base: time.Second, Parallel: 500},
		func(_ context.Context, job *jobs.Job[errand]) error {
			switch {
			case job.Payload.End == "retried" && job.Attempt == 1:
				return errors.New("not yet")
			case job.Payload.End == "failed":
				return jobs.Final(errors.New("never"))
			case job.Payload.End == "cancelled":
				return jobs.Cancel("nothing left to do")
			}
			return nil
		})
	return r
}

// enqueueErrands enqueues n jobs that complete, and five of each other end.
func (b *bundle) enqueueErrands(n int) {
	b.t.Helper()
	var all []queue.NewJob
	for i := range n {
		all = append(all, queue.NewJob{OrgID: org, Payload: errand{Number: i, End: "completed"}})
	}
	for _, end := range []string{"retried", "failed", "cancelled"} {
		for i := range 5 {
			all = append(all, queue.NewJob{OrgID: org, Payload: errand{Number: i, End: end}})
		}
	}
	_, err := queue.EnqueueJobs(b.t.Context(), b.Pool, all)
	require.NoError(b.t, err)
}

// startJobs runs a worker of background jobs until the test ends.
func (b *bundle) startJobs(r *jobs.Registry) {
	b.t.Helper()
	w, err := workers.NewJobs(workers.JobsOptions{
		Client: b.client, Pool: b.Pool, Registry: r, Name: "worker",
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(b.t, err)
	b.runWorker(w)
}

// runJobs starts the workflow of background jobs with the input as JSON and returns its id.
func (b *bundle) runJobs(input string) string {
	b.t.Helper()
	id := temporaltest.Unique("job-queue-worker")
	_, err := b.client.ExecuteWorkflow(b.t.Context(),
		client.StartWorkflowOptions{ID: id, TaskQueue: workflows.JobsTaskQueue},
		workflows.JobsWorkflow, json.RawMessage(input))
	require.NoError(b.t, err)
	return id
}

// jobsIn counts the background jobs in a state.
func (b *bundle) jobsIn(state string) int {
	b.t.Helper()
	return fixture.Count(b.t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE state::text = $1`, state)
}

// TestRecordJobHistories writes histories of syncJobQueueWorkflow: one that ends when nothing is
// due, one that gets messages and continues as new, and the run after it, in which what is tried
// again completes.
func TestRecordJobHistories(t *testing.T) {
	if os.Getenv("DAYBOOK_RECORD_HISTORIES") == "" {
		t.Skip("records histories only when DAYBOOK_RECORD_HISTORIES is set")
	}
	b := setup(t)
	b.startJobs(errands())
	b.enqueueErrands(1000)
	id := b.runJobs(`{"exitWhenEmpty": true}`)
	var counts models.RunCounts
	require.NoError(t, b.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), &counts))
	require.GreaterOrEqual(t, counts.Completed, int64(1000))
	require.Equal(t, []int64{5, 5, 5}, []int64{counts.Retried, counts.Failed, counts.Cancelled})
	b.record("jobs-drain", id, "")

	id = b.runJobs(`{"concurrency": 2, "pollIntervalSeconds": 2}`)
	b.eventually("it waits", 20*time.Second,
		func() bool { return b.status(id).IdleSince != nil && b.jobsIn("completed") == 1005 })
	b.enqueueErrands(300)
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
	b.record("jobs-messages", id, first)
	b.enqueueErrands(500)
	b.eventually("all is done", 30*time.Second,
		func() bool { return b.jobsIn("completed") == 1815 && b.status(id).Counts.Retried >= 10 })
	require.NoError(t, b.client.CancelWorkflow(t.Context(), id, ""))
	require.Error(t, b.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	b.record("jobs-carried", id, b.runID(id))
}

// TestRecordScheduleHistories writes histories of enqueueScheduledJob: started by a schedule,
// started by hand, and with a job that can never be enqueued.
func TestRecordScheduleHistories(t *testing.T) {
	if os.Getenv("DAYBOOK_RECORD_HISTORIES") == "" {
		t.Skip("records histories only when DAYBOOK_RECORD_HISTORIES is set")
	}
	b := setup(t)
	b.startJobs(errands())
	job := activities.ScheduledJob{
		ScheduleID: "beat", OrgID: org, Type: "errand",
		Payload: []byte(`{"number": 1, "end": "completed"}`),
	}
	h, err := b.client.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID:   temporaltest.Unique("beat"),
		Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Second}}},
		Action: &client.ScheduleWorkflowAction{
			ID: "schedule-beat", Workflow: workflows.ScheduledJobWorkflow, TaskQueue: workflows.JobsTaskQueue,
			Args: []any{job},
		},
	})
	require.NoError(t, err)
	var fired *client.ScheduleWorkflowExecution
	b.eventually("it fires", 20*time.Second, func() bool {
		d, err := h.Describe(t.Context())
		if err != nil || len(d.Info.RecentActions) == 0 {
			return false
		}
		fired = d.Info.RecentActions[0].StartWorkflowResult
		return true
	})
	require.NoError(t, h.Delete(t.Context()))
	require.NoError(t, b.client.GetWorkflow(t.Context(), fired.WorkflowID, fired.FirstExecutionRunID).Get(t.Context(),
		nil))
	b.record("schedule-fired", fired.WorkflowID, fired.FirstExecutionRunID)

	byHand := func(id string, job activities.ScheduledJob) client.WorkflowRun {
		run, err := b.client.ExecuteWorkflow(t.Context(),
			client.StartWorkflowOptions{ID: id, TaskQueue: workflows.JobsTaskQueue},
			workflows.ScheduledJobWorkflow, job)
		require.NoError(t, err)
		return run
	}
	run := byHand("by-hand", job)
	require.NoError(t, run.Get(t.Context(), nil))
	b.record("schedule-by-hand", run.GetID(), run.GetRunID())

	job.Type = "not a type"
	run = byHand("refused", job)
	require.ErrorContains(t, run.Get(t.Context(), nil), "type: INVALID,")
	b.record("schedule-refused", run.GetID(), run.GetRunID())
}
