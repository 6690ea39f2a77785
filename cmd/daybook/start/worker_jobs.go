package start

import (
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/workers"
)

// jobsWorker is the worker of the queue of jobs, with the built-in types that the environment
// configures.
func jobsWorker(a *cli.App, options workers.AccountingOptions) (*workers.Worker, func() error, error) {
	registry, builtin, err := a.BuiltinJobs(options.Pool, options.Client)
	if err != nil {
		return nil, nil, err
	}
	if len(builtin.Missing) > 0 {
		a.Log.Info("some built-in job types are not configured: their jobs wait for a worker that has them, and become "+
			"dead letters (HANDLER_MISSING) after five minutes", "types", builtin.Missing)
	}
	w, err := workers.NewJobs(workers.JobsOptions{
		Client: options.Client, Pool: options.Pool, DirectPool: options.DirectPool, Registry: registry,
		Name: options.Name, Log: options.Log,
		Metrics:                    options.Metrics,
		MaxConcurrentActivities:    options.MaxConcurrentActivities,
		MaxConcurrentWorkflowTasks: options.MaxConcurrentWorkflowTasks, PickInterval: options.PickInterval,
		NotifyEvents: options.NotifyEvents, Fleet: a.Environment.Fleet,
	})
	return w, builtin.Close, err
}
