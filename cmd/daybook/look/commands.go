// Package look has the commands "to see how it goes".
package look

import (
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

// Commands are the commands of the group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		statusCommand(a), doctorCommand(a), topCommand(a), explainCommand(a), leasesCommand(a),
		actionsCommand(a),
	}
}
