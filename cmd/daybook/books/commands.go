// Package books has the commands "to keep the books".
package books

import (
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

// Commands are the commands of the group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		importCommand(a), accountsCommand(a), rulesCommand(a), periodsCommand(a), entriesCommand(a),
		openItemsCommand(a), ratesCommand(a), exchangeCommand(a),
		trialBalanceCommand(a), statementCommand(a), yearEndCommand(a), auditCommand(a), exportCommand(a),
	}
}
