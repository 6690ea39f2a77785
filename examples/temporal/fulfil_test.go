package fulfil_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	fulfil "github.com/daybook-dev/daybook/examples/temporal"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

func TestMain(m *testing.M) { pgtest.Main(m, temporaltest.Stop) }

// setup starts a worker of the application's workflows.
func setup(t *testing.T) (db *pgtest.DB, temporal client.Client) {
	t.Helper()
	db = pgtest.New(t)
	server := temporaltest.Shared(t)
	temporal = server.Client(t, server.Namespace(t))
	w := worker.New(temporal, fulfil.TaskQueue, worker.Options{})
	w.RegisterWorkflow(fulfil.ShipWorkflow)
	w.RegisterWorkflow(fulfil.OrderWorkflow)
	w.RegisterActivity(&fulfil.Steps{DB: db.Pool})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return db, temporal
}

// A job starts a workflow once, whatever attempts there are, and ends with its result.
func TestAJobWaitsForAWorkflow(t *testing.T) {
	t.Parallel()
	db, temporal := setup(t)
	s := &fulfil.Shipping{Temporal: temporal, Patience: time.Millisecond, Pause: time.Minute}
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, s.Work)
	job, err := queue.EnqueueJob(t.Context(), db.Pool, "acme", fulfil.Ship{OrderID: "7"}, queue.JobOptions{})
	require.NoError(t, err)

	drained := queuetest.DrainJobs(t, db.Pool, registry, queuetest.JobsOptions{})
	assert.Equal(t, 1, drained.Rescheduled, "the workflow takes longer than the attempt waits")
	s.Patience = time.Minute
	drained = queuetest.DrainJobs(t, db.Pool, registry, queuetest.JobsOptions{Advance: 2 * time.Minute})
	drained.RequireCompleted(t)
	status, err := queue.ReadJobStatus(t.Context(), db.Pool, job.ID)
	require.NoError(t, err)
	assert.JSONEq(t, `"parcel-of-7"`, string(status.Result))

	// As if the worker had died before the job was completed: the next attempt meets the result.
	fixture.Uncomplete(t, db.Pool, job.ID)
	queuetest.DrainJobs(t, db.Pool, registry, queuetest.JobsOptions{}).RequireCompleted(t)
}

// A step of a workflow enqueues a job and goes on with its result; a dead letter fails the step.
func TestAWorkflowWaitsForAJob(t *testing.T) {
	t.Parallel()
	for order, want := range map[string]string{"7": "receipt-7", "8": "declined"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			db, temporal := setup(t)
			registry := jobs.NewRegistry()
			jobs.Register(registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[fulfil.Charge]) error {
				if job.Payload.OrderID == "8" {
					return jobs.Final(assert.AnError)
				}
				job.SetResult("receipt-" + job.Payload.OrderID)
				return nil
			})
			run, err := temporal.ExecuteWorkflow(t.Context(),
				client.StartWorkflowOptions{ID: "order-" + order, TaskQueue: fulfil.TaskQueue}, fulfil.OrderWorkflow, order)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				return len(queuetest.DrainJobs(t, db.Pool, registry, queuetest.JobsOptions{}).Jobs) > 0
			}, time.Minute, 50*time.Millisecond)
			var receipt string
			err = run.Get(t.Context(), &receipt)
			if order == "8" {
				require.ErrorContains(t, err, assert.AnError.Error())
				return
			}
			require.NoError(t, err)
			assert.JSONEq(t, `"`+want+`"`, receipt)
		})
	}
}
