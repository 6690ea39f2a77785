package main

import (
	"slices"

	"github.com/spf13/cobra"
)

// commandGroup is a group of the root's help.
type commandGroup struct {
	id, title string
	commands  []*cobra.Command
}

// commandGroups are the groups of the root's help, in the order in which a person comes to need them.
func commandGroups(a *app) []commandGroup {
	return []commandGroup{
		{"start", "To begin:", slices.Concat(startCommands(a), devCommands(a))},
		{"look", "To see how it goes:", lookCommands(a)},
		{"work", "To have work done:", workCommands(a)},
		{"books", "To keep the books:", booksCommands(a)},
		{"keep", "To move in, keep and erase:", keepCommands(a)},
		{"other", "Besides:", []*cobra.Command{manCommand(a), openAPICommand(a), versionCommand(a)}},
	}
}

// addCommands adds the commands of all groups.
func addCommands(a *app, root *cobra.Command) {
	for _, group := range commandGroups(a) {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, c := range group.commands {
			c.GroupID = group.id
			root.AddCommand(c)
		}
	}
}
