package queuetest_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/tasks"
)

func TestNothingToWorkOn(t *testing.T) {
	t.Parallel()
	pool := new(pgxpool.Pool)
	for name, c := range map[string]struct {
		run  func(tb *failing)
		says string
	}{
		"jobs without pool": {func(tb *failing) {
			queuetest.DrainJobs(tb, nil, jobs.NewRegistry(),
				queuetest.JobsOptions{})
		}, "the pool is nil"},
		"jobs without registry": {
			func(tb *failing) { queuetest.DrainJobs(tb, pool, nil, queuetest.JobsOptions{}) },
			"the registry is nil",
		},
		"documents without pool": {
			func(tb *failing) { queuetest.DrainAccounting(tb, nil, queuetest.AccountingOptions{}) },
			"the pool is nil",
		},
		"tasks without pool": {func(tb *failing) {
			queuetest.DrainTasks(tb, nil, tasks.NewRegistry(),
				queuetest.TasksOptions{})
		}, "the pool is nil"},
		"tasks without registry": {
			func(tb *failing) { queuetest.DrainTasks(tb, pool, nil, queuetest.TasksOptions{}) },
			"the registry is nil",
		},
		"audit without pool":   {func(tb *failing) { queuetest.RequireSound(tb, nil, nil) }, "the pool is nil"},
		"enqueued jobs of nil": {func(tb *failing) { queuetest.EnqueuedJobs[greet](tb, nil) }, "the Querier is nil"},
		"enqueued tasks of nil": {
			func(tb *failing) { queuetest.EnqueuedTasks[queue.RawTask](tb, (*pgxpool.Pool)(nil)) },
			"the Querier is nil",
		},
	} {
		assert.Contains(t, failure(t, c.run), c.says, name)
	}
}
