package main

import "github.com/spf13/cobra"

// lookCommands are the commands of the group.
func lookCommands(a *app) []*cobra.Command {
	return []*cobra.Command{statusCommand(a), doctorCommand(a), topCommand(a), explainCommand(a), leasesCommand(a), actionsCommand(a)}
}
