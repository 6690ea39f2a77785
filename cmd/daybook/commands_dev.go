package main

import "github.com/spf13/cobra"

// devCommands are the commands of the group.
func devCommands(a *app) []*cobra.Command {
	return []*cobra.Command{demoCommand(a), devCommand(a)}
}
