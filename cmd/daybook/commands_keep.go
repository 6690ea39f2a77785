package main

import "github.com/spf13/cobra"

// keepCommands are the commands of the group.
func keepCommands(a *app) []*cobra.Command {
	return []*cobra.Command{adoptCommand(a), archiveCommand(a), eraseCommand(a), erasuresCommand(a)}
}
