package main

import (
	"slices"

	"github.com/spf13/cobra"
)

// commandGroups are the groups of the root's help, in the order in which a person comes to need them.
var commandGroups = []struct {
	id, title string
	commands  []string
}{
	{"start", "To begin:", []string{"demo", "dev", "migrate", "workflow", "worker", "serve", "tokens"}},
	{"look", "To see how it goes:", []string{"status", "doctor", "top", "explain", "leases", "actions"}},
	{"work", "To have work done:", []string{"jobs", "tasks", "accounting", "queues", "schedules", "organizations", "templates"}},
	{"books", "To keep the books:", []string{"import", "accounts", "rules", "periods", "entries", "trial-balance", "audit", "export"}},
	{"keep", "To move in, keep and erase:", []string{"adopt", "archive", "erase", "erasures"}},
	{"other", "Besides:", []string{"man", "openapi", "version"}},
}

// groupCommands puts the root's commands into the groups of its help.
func groupCommands(root *cobra.Command) {
	for _, group := range commandGroups {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, c := range root.Commands() {
			if slices.Contains(group.commands, c.Name()) {
				c.GroupID = group.id
			}
		}
	}
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
}
