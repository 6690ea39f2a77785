package work

import (
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

func tasksCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "tasks",
		Short: "Enqueue, search, show, pause and cap tasks, and write processes that are supervised in SQL",
	}
	command.AddCommand(tasksEnqueueCommand(a), tasksListCommand(a), tasksShowCommand(a), tasksHistoryCommand(a),
		tasksPauseCommand(a), tasksResumeCommand(a),
		tasksCapCommand(a), tasksLimitsCommand(a), tasksArchiveCommand(a), tasksScaffoldCommand(a))
	return command
}
