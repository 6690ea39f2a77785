// Package start has the commands "to begin": the schema, the workflows, the worker, the server and
// its tokens.
package start

import (
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

// Commands are the commands of the group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{migrateCommand(a), workflowCommand(a), workerCommand(a), serveCommand(a), tokensCommand(a)}
}
