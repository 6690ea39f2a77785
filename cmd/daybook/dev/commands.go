// Package dev has daybook dev and daybook demo, which start servers of their own, work and serve as
// package start does and import as package books does; and daybook init, which begins a program.
package dev

import (
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

// Commands are the commands of the group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{demoCommand(a), devCommand(a), initCommand(a)}
}
