package main

import "github.com/spf13/cobra"

func tasksCommand(a *app) *cobra.Command {
	command := &cobra.Command{Use: "tasks", Short: "Write processes that are supervised in SQL"}
	command.AddCommand(tasksScaffoldCommand(a))
	return command
}
