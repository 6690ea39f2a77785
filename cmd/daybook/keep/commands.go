// Package keep has the commands "to move in, keep and erase".
package keep

import (
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

// Commands are the commands of the group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{adoptCommand(a), archiveCommand(a), eraseCommand(a), erasuresCommand(a)}
}
