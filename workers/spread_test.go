package workers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// TestLanesSpreadOverWorkers has three workers wait, the first of them for longest, when a workflow
// of three lanes begins. The first lane begins on the worker that runs the workflow; the two others
// go to the polls that have waited longest, in the one partition of the task queue: to two workers.
func TestLanesSpreadOverWorkers(t *testing.T) {
	t.Parallel()
	b := setupTemporal(t, "matching.numTaskqueueReadPartitions=1", "matching.numTaskqueueWritePartitions=1")
	fixture.Organization(t, b.Pool, org)
	documents := []string{"inv-1", "inv-2", "inv-3"}
	h := newHold(documents...)
	for n := range 3 {
		name := fmt.Sprintf("worker-%d", n)
		b.start(workers.AccountingOptions{JobProcessor: h, Name: name})
		b.eventually(name+" waits", 20*time.Second, func() bool {
			waits := 0
			for _, kind := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
				d, err := b.client.DescribeTaskQueue(t.Context(), workflows.AccountingTaskQueue, kind)
				require.NoError(t, err)
				waits += len(d.GetPollers())
			}
			return waits == 2*(n+1)
		})
	}
	for _, d := range documents {
		fixture.Ready(t, b.Pool, fixture.Invoice(org, d, 1000))
	}
	b.run(`{"batchSize": 1}`)
	for range documents {
		<-h.reached
	}
	assert.Equal(t, 2, fixture.Count(t, b.Pool,
		`SELECT count(DISTINCT worker) FROM daybook.accounting_work_queue WHERE split_part(turn_id, '/', 2) <> '0'`))
	for _, d := range documents {
		close(h.proceed[d])
	}
	b.eventually("all are done", 20*time.Second, func() bool { return b.states()[models.JobCompleted] == 3 })
}
