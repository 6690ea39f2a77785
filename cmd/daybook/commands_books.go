package main

import "github.com/spf13/cobra"

// booksCommands are the commands of the group.
func booksCommands(a *app) []*cobra.Command {
	return []*cobra.Command{importCommand(a), accountsCommand(a), rulesCommand(a), periodsCommand(a), entriesCommand(a), trialBalanceCommand(a), auditCommand(a), exportCommand(a)}
}
