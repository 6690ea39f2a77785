package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/dev"
	"github.com/daybook-dev/daybook/cmd/daybook/keep"
	"github.com/daybook-dev/daybook/cmd/daybook/look"
	"github.com/daybook-dev/daybook/cmd/daybook/start"
	"github.com/daybook-dev/daybook/cmd/daybook/work"
)

// commandGroup is a group of the root's help.
type commandGroup struct {
	id, title string
	commands  []*cobra.Command
}

// commandGroups are the groups of the root's help, in the order in which a person comes to need
// them.
func commandGroups(a *cli.App) []commandGroup {
	return []commandGroup{
		{"start", "To begin:", slices.Concat(start.Commands(a), dev.Commands(a))},
		{"look", "To see how it goes:", look.Commands(a)},
		{"work", "To have work done:", work.Commands(a)},
		{"books", "To keep the books:", books.Commands(a)},
		{"keep", "To move in, keep and erase:", keep.Commands(a)},
		{"other", "Besides:", []*cobra.Command{manCommand(a), openAPICommand(a), versionCommand(a)}},
	}
}

// addCommands adds the commands of all groups.
func addCommands(a *cli.App, root *cobra.Command) {
	for _, group := range commandGroups(a) {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, c := range group.commands {
			c.GroupID = group.id
			root.AddCommand(c)
		}
	}
}
