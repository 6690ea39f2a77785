package workers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/tasks"
	"github.com/daybook-dev/daybook/workers"
)

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	minutes := workers.ProcessorOptions{ChunkSize: 7, Timeout: 10 * time.Minute}
	for message, o := range map[string]workers.AccountingOptions{
		"MaxConcurrentActivities is 1: it must be at least 2":    {MaxConcurrentActivities: 1},
		"MaxConcurrentActivities is -3":                          {MaxConcurrentActivities: -3},
		"MaxConcurrentWorkflowTasks is 1: it must be at least 2": {MaxConcurrentWorkflowTasks: 1},
		"Settings.BatchSize is 1001: want 1 to 1000":             {Settings: workers.Settings{BatchSize: 1001}},
		"Settings.PollIntervalSeconds is 4000: want 1 to 3600":   {Settings: workers.Settings{PollIntervalSeconds: 4000}},
		"more than 1h": {Processor: chunks{}, ProcessorOptions: minutes},
		"ProcessorOptions are for a Processor or JobProcessor": {ProcessorOptions: minutes},
		"set Processor or JobProcessor, not both":              {Processor: chunks{}, JobProcessor: reports{}},
		"Settings.RetryBaseSeconds is -1: want at least 1":     {Settings: workers.Settings{RetryBaseSeconds: -1}},
		"ProcessorOptions are out of range: timeout -1s": {
			Processor:        chunks{},
			ProcessorOptions: workers.ProcessorOptions{Timeout: -time.Second},
		},
	} {
		o.Client, o.Pool = b.client, b.Pool
		_, err := workers.NewAccounting(o)
		require.ErrorContains(t, err, message)
	}
	for message, o := range map[string]workers.JobsOptions{
		"MaxConcurrentActivities is 1: it must be at least 2":    {MaxConcurrentActivities: 1},
		"MaxConcurrentWorkflowTasks is 1: it must be at least 2": {MaxConcurrentWorkflowTasks: 1},
		"Settings.BatchSize is -1: want 1 to 1000":               {Settings: workers.Settings{BatchSize: -1}},
		`Fleet is "a b": a fleet is named by`:                    {Fleet: "a b"},
	} {
		o.Client, o.Pool, o.Registry = b.client, b.Pool, jobs.NewRegistry()
		_, err := workers.NewJobs(o)
		require.ErrorContains(t, err, message)
	}
}

func TestAFleetThatCannotBeOneIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := workers.NewDueJobs(workers.DueJobsOptions{Pool: b.Pool, Registry: jobs.NewRegistry(), Fleet: "a b"})
	require.ErrorIs(t, err, queue.ErrInvalid)
	_, err = workers.NewTasks(workers.TasksOptions{
		Client: b.client, Pool: b.Pool, Registry: tasks.NewRegistry(),
		Fleet: "Shop",
	})
	require.ErrorIs(t, err, queue.ErrInvalid)
	_, err = workers.NewAccounting(workers.AccountingOptions{Client: b.client, Pool: b.Pool, Fleet: "Shop"})
	require.ErrorIs(t, err, queue.ErrInvalid)
}

func TestTextsThatPostgreSQLCannotHold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const wrong = "a\x00b"
	_, err := workers.NewJobs(workers.JobsOptions{
		Client: b.client, Pool: b.Pool, Registry: jobs.NewRegistry(),
		Name: wrong,
	})
	require.ErrorIs(t, err, queue.ErrInvalidText)
	_, err = workers.NewTasks(workers.TasksOptions{
		Client: b.client, Pool: b.Pool, Registry: tasks.NewRegistry(),
		Name: wrong,
	})
	require.ErrorIs(t, err, queue.ErrInvalidText)
	_, err = workers.NewAccounting(workers.AccountingOptions{Client: b.client, Pool: b.Pool, Owner: wrong})
	require.ErrorIs(t, err, queue.ErrInvalidText)
	require.ErrorContains(t, err, "Owner")
}

// An audit without a pool is an error, not a panic.
func TestAuditOfNoPool(t *testing.T) {
	t.Parallel()
	_, err := workers.Audit(t.Context(), nil, nil, accounting.AuditOptions{})
	require.ErrorContains(t, err, "the pool is nil")
}
