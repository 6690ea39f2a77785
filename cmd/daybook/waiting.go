package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

// longCommands are commands that may take minutes and have no bar, with what they do meanwhile.
var longCommands = map[string]string{
	"accounting repost": "reposting", "accounting retry": "retrying", "accounts import": "importing accounts",
	"adopt accounting-queue": "adopting", "adopt async-operations": "adopting",
	"archive move": "moving to the archive", "archive restore": "restoring", "archive verify": "verifying the archive",
	"audit": "checking the ledger", "erase": "erasing", "export": "exporting", "jobs cancel": "cancelling",
	"jobs edit":   "editing",
	"jobs retry":  "retrying",
	"jobs resume": "going on", "migrate up": "migrating", "rules activate": "activating the rules",
	"rules apply":       "applying the rules",
	"statement balance": "adding up", "statement income": "adding up", "statement cash": "adding up",
	"statement vat": "adding up", "tasks archive": "archiving", "trial-balance": "adding up",
}

// showWaiting has the commands of longCommands say that they go on, on the error stream, and never
// beside JSON.
func showWaiting(a *cli.App, root *cobra.Command) {
	for _, command := range root.Commands() {
		showWaiting(a, command)
	}
	label, inner := longCommands[strings.TrimPrefix(root.CommandPath(), "daybook ")], root.RunE
	if label == "" || inner == nil {
		return
	}
	root.RunE = func(c *cobra.Command, args []string) error {
		defer a.Waiting(label)()
		return inner(c, args)
	}
}
