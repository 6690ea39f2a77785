package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// role is a role of the database, as `daybook migrate up --roles` makes it.
type role string

// The roles; docs/cli.md says what each may do.
const (
	// noRole is for commands that use no database of the caller's.
	noRole role = ""
	// owner is the owner of the schema.
	owner    role = "the schema's owner"
	reader   role = "daybook_reader"
	operator role = "daybook_operator"
	domain   role = "daybook_domain"
	worker   role = "daybook_worker"
	serving  role = "daybook_server"
)

// commandRoles say which role each command needs: the one with the fewest rights with which all of
// it works. A command that stands here as a group says it for all of its commands that do not stand
// here themselves. docs/cli.md has the same table.
var commandRoles = map[string]role{
	"accounting":             reader,
	"accounting cancel":      domain,
	"accounting elsewhere":   domain,
	"accounting enqueue":     domain,
	"accounting repost":      operator,
	"accounting retry":       domain,
	"accounts":               reader,
	"accounts import":        operator,
	"actions":                reader,
	"adopt":                  owner,
	"archive":                worker,
	"archive list":           reader,
	"archive restore":        owner,
	"archive verify":         reader,
	"audit":                  reader,
	"demo":                   noRole,
	"dev":                    noRole,
	"doctor":                 reader,
	"entries":                reader,
	"erase":                  owner,
	"erasures":               reader,
	"explain":                reader,
	"exchange":               reader,
	"exchange book":          operator,
	"export":                 reader,
	"import":                 domain,
	"import list":            reader,
	"import undo":            operator,
	"init":                   noRole,
	"journal":                domain,
	"journal list":           reader,
	"jobs":                   reader,
	"jobs cancel":            operator,
	"jobs decrypt":           operator,
	"jobs limit":             operator,
	"jobs edit":              operator,
	"jobs enqueue":           domain,
	"jobs resume":            operator,
	"jobs retry":             operator,
	"leases":                 reader,
	"leases release":         operator,
	"man":                    noRole,
	"openapi":                noRole,
	"migrate":                owner,
	"migrate status":         reader,
	"open-items":             reader,
	"open-items match":       operator,
	"open-items reconcile":   operator,
	"open-items unreconcile": operator,
	"organizations":          operator,
	"organizations list":     reader,
	"organizations hooks":    domain,
	"organizations source":   domain,
	"periods":                operator,
	"periods adjustments":    reader,
	"periods check":          reader,
	"periods closings":       reader,
	"periods list":           reader,
	"queues":                 operator,
	"queues list":            reader,
	"rates":                  operator,
	"rates list":             reader,
	"rules":                  reader,
	"rules activate":         operator,
	"rules apply":            operator,
	"rules test":             noRole,
	"schedules":              operator,
	"schedules list":         noRole,
	"serve":                  serving,
	"statement":              reader,
	"status":                 reader,
	"tasks":                  reader,
	"tasks archive":          operator,
	"tasks cap":              operator,
	"tasks enqueue":          domain,
	"tasks pause":            operator,
	"tasks resume":           operator,
	"tasks scaffold":         noRole,
	"templates":              noRole,
	"tokens":                 operator,
	"tokens list":            reader,
	"top":                    reader,
	"trial-balance":          reader,
	"version":                noRole,
	"worker":                 worker,
	"workflow":               operator,
	"workflow show":          noRole,
	"year-end":               operator,
}

// roleOf is the role that a command needs, by its path without the program's name. found is false
// for one that the table lacks.
func roleOf(path string) (r role, found bool) {
	for path != "" {
		if r, found = commandRoles[path]; found {
			return r, true
		}
		path = path[:max(strings.LastIndexByte(path, ' '), 0)]
	}
	return noRole, false
}

// tellRoles has the help of each command say which role of the database it needs.
func tellRoles(root *cobra.Command) {
	for _, command := range root.Commands() {
		tellRoles(command)
	}
	if root.HasSubCommands() {
		return
	}
	if r, _ := roleOf(pathOf(root)); r != noRole {
		root.Long = fmt.Sprintf("%s\n\nIt needs the rights of %s in the database.",
			strings.TrimRight(cmp.Or(root.Long, root.Short+"."), "\n"), r)
	}
}

// pathOf is a command's path without the program's name.
func pathOf(c *cobra.Command) string { return strings.TrimPrefix(c.CommandPath(), "daybook ") }

// roleAdvice says what to do when a command's role lacks a right.
func roleAdvice(path string) string {
	r, found := roleOf(strings.TrimPrefix(path, "daybook "))
	if !found || r == noRole {
		return "Connect as a role that has it (DAYBOOK_DATABASE_URL)."
	}
	advice := fmt.Sprintf("`%s` needs the rights of %s: connect as that role, or as a member of it "+
		"(DAYBOOK_DATABASE_URL).", path, r)
	if r != owner {
		advice += " `daybook migrate up --roles`, run as the schema's owner, makes the role and gives it what it needs."
	}
	return advice
}
