// Package work has the commands "to have work done": jobs, tasks, documents, and what holds them
// back.
package work

import (
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

// Commands are the commands of the group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		jobsCommand(a), tasksCommand(a), accountingCommand(a), queuesCommand(a), schedulesCommand(a),
		organizationsCommand(a), templatesCommand(a),
	}
}
