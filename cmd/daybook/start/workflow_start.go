package start

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workflows"
)

// queueSettings are the flags of a workflow's settings.
type queueSettings struct{ batchSize, pollInterval, concurrency int }

func (f *queueSettings) add(command *cobra.Command, batchSize, pollInterval string) {
	command.Flags().IntVar(&f.batchSize, "batch-size", 0,
		fmt.Sprintf("how many jobs are leased at a time, 1 to %d%s", models.MaxBatchSize, batchSize))
	command.Flags().IntVar(&f.pollInterval, "poll-interval", 0,
		fmt.Sprintf("seconds between two polls when nothing is due, 1 to %d%s", models.MaxPollIntervalSeconds,
			pollInterval))
	command.Flags().IntVar(&f.concurrency, "concurrency", 0,
		fmt.Sprintf("how many lanes run side by side, 1 to %d", models.MaxConcurrency))
}

// read returns the settings that were given; nil: it was not.
func (f *queueSettings) read(command *cobra.Command) (in workflows.ConfigureInput, err error) {
	for _, one := range []struct {
		flag  string
		value int
		most  int
		to    **int
	}{
		{"batch-size", f.batchSize, models.MaxBatchSize, &in.BatchSize},
		{"poll-interval", f.pollInterval, models.MaxPollIntervalSeconds, &in.PollIntervalSeconds},
		{"concurrency", f.concurrency, models.MaxConcurrency, &in.Concurrency},
	} {
		if !command.Flags().Changed(one.flag) {
			continue
		}
		if one.value < 1 || one.value > one.most {
			return in, cli.Usagef("--%s %d: want 1 to %d", one.flag, one.value, one.most)
		}
		*one.to = new(one.value)
	}
	return in, nil
}

func workflowStartCommand(a *cli.App) *cobra.Command {
	var of workflowsOf
	var settings queueSettings
	var taskQueue string
	command := &cobra.Command{
		Use:   "start [KIND…]",
		Short: "Start the workflows that run the queues: of all kinds, or of those that are named",
		Long: "Starts the workflow of each kind, as `temporal workflow start` does. One that runs already, under this id or another one, is left as it is. It runs for\n" +
			"ever, through restarts of workers and of Temporal; a worker must run for anything to be worked.",
		Example: "  daybook workflow start\n  daybook workflow start jobs --batch-size 200",
		RunE: func(c *cobra.Command, args []string) error {
			given, err := settings.read(c)
			if err != nil {
				return err
			}
			which, _, err := of.resolve(args)
			if err != nil {
				return err
			}
			if taskQueue != "" && len(which) != 1 {
				return cli.Usagef("--task-queue is that of one workflow: say of which kind")
			}
			for i := range which {
				if taskQueue != "" {
					which[i].TaskQueue = taskQueue
				}
			}
			return a.WithTemporal(c.Context(), func(temporal client.Client) error {
				return startWorkflows(a, c, temporal, which, given)
			})
		},
	}
	of.add(command, false)
	settings.add(command, " (default 50)", " (default 10)")
	command.Flags().StringVar(&taskQueue, "task-queue", "",
		"the task queue of its workers, with one kind (default the documented one, such as "+cli.AccountingLoop.TaskQueue+
			")")
	return command
}

// startWorkflows starts those that do not run, and says of the others that they do.
func startWorkflows(a *cli.App, c *cobra.Command, temporal client.Client, which []health.Workflow,
	given workflows.ConfigureInput,
) error {
	states, err := health.Workflows(c.Context(), temporal, which, askedFor)
	if err != nil {
		return err
	}
	aboutWorkflows(c.Context(), states)
	var changes []WorkflowChange
	for _, s := range states {
		change, err := startWorkflow(c, temporal, s, given)
		if err != nil {
			return err
		}
		changes = append(changes, change)
	}
	return emitChanges(c.Context(), a, changes)
}

// startWorkflow starts a workflow unless it runs, with the documented input.
func startWorkflow(c *cobra.Command, temporal client.Client, s health.WorkflowState,
	given workflows.ConfigureInput,
) (WorkflowChange, error) {
	const defaultBatch, defaultPoll = 50, 10
	already := func() WorkflowChange {
		says := "runs already (" + s.ID + "); it was left as it is"
		if given != (workflows.ConfigureInput{}) {
			says += ". To change its settings: `daybook workflow configure --kind " + s.Kind + "`"
		}
		return change(s, "already_running", says+".")
	}
	if s.State == health.Running {
		return already(), nil
	}
	input := workflows.Input{
		BatchSize: given.BatchSize, PollIntervalSeconds: given.PollIntervalSeconds,
		Concurrency: given.Concurrency,
	}
	if input.BatchSize == nil {
		input.BatchSize = new(defaultBatch)
	}
	if input.PollIntervalSeconds == nil {
		input.PollIntervalSeconds = new(defaultPoll)
	}
	about := workflows.Describe(s.Type)
	run, err := temporal.ExecuteWorkflow(c.Context(), client.StartWorkflowOptions{
		ID: s.ID, TaskQueue: s.TaskQueue, StaticSummary: about.Summary, StaticDetails: about.Details,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL, WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, s.Type, input)
	if running, ok := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); ok {
		s.RunID = running.RunId
		return already(), nil
	}
	if err != nil {
		return WorkflowChange{}, fmt.Errorf("start workflow %s: %w", s.ID, err)
	}
	s.RunID = run.GetRunID()
	says := "started (" + s.ID + ")."
	if len(s.Workers) == 0 {
		says += " No worker polls " + s.TaskQueue + " yet: start `daybook worker`."
	}
	return change(s, "started", says), nil
}
