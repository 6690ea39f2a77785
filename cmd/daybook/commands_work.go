package main

import "github.com/spf13/cobra"

// workCommands are the commands of the group.
func workCommands(a *app) []*cobra.Command {
	return []*cobra.Command{jobsCommand(a), tasksCommand(a), accountingCommand(a), queuesCommand(a), schedulesCommand(a), organizationsCommand(a), templatesCommand(a)}
}
