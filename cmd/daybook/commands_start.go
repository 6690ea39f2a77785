package main

import "github.com/spf13/cobra"

// startCommands are the commands of the group.
func startCommands(a *app) []*cobra.Command {
	return []*cobra.Command{migrateCommand(a), workflowCommand(a), workerCommand(a), serveCommand(a), tokensCommand(a)}
}
