package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/store/actions"
)

// recordedCommands are the commands that change something, by what the log of actions calls them.
// Enqueuing and importing are not among them: that is what applications do, and the rows that they
// write say when.
var recordedCommands = map[string]string{
	"accounting cancel":      "accounting.cancel",
	"accounting elsewhere":   "accounting.elsewhere",
	"accounting repost":      "accounting.repost",
	"accounting retry":       "accounting.retry",
	"accounts import":        "accounts.import",
	"adopt accounting-queue": "adopt.accounting-queue",
	"adopt async-operations": "adopt.async-operations",
	"archive move":           "archive.move",
	"archive restore":        "archive.restore",
	"erase":                  "erase",
	"import undo":            "imports.undo",
	"journal delete":         "journals.delete",
	"journal put":            "journals.put",
	"jobs cancel":            "jobs.cancel",
	"jobs decrypt":           "jobs.decrypt",
	"jobs edit":              "jobs.edit",
	"jobs limit":             "limits.set",
	"jobs resume":            "jobs.resume",
	"jobs retry":             "jobs.retry",
	"leases release":         "leases.release",
	"open-items match":       "open-items.match",
	"open-items reconcile":   "open-items.reconcile",
	"open-items unreconcile": "open-items.unreconcile",
	"organizations cap":      "organizations.cap",
	"organizations hooks":    "organizations.hooks",
	"organizations pause":    "organizations.pause",
	"organizations rate":     "organizations.rate",
	"organizations resume":   "organizations.resume",
	"organizations source":   "organizations.source",
	"periods add":            "periods.add",
	"periods close":          "periods.close",
	"periods open":           "periods.open",
	"periods policy":         "periods.policy",
	"year-end":               "years.close",
	"queues create":          "queues.create",
	"queues delete":          "queues.delete",
	"queues pause":           "queues.pause",
	"queues release":         "queues.release",
	"queues resume":          "queues.resume",
	"queues set":             "queues.set",
	"exchange book":          "exchange.book",
	"rates import":           "rates.set",
	"rates own":              "rates.own",
	"rates set":              "rates.set",
	"rules activate":         "rules.activate",
	"rules apply":            "rules.apply",
	"schedules create":       "schedules.create",
	"schedules delete":       "schedules.delete",
	"schedules pause":        "schedules.pause",
	"schedules resume":       "schedules.resume",
	"schedules trigger":      "schedules.trigger",
	"tasks archive":          "tasks.archive",
	"tasks cap":              "tasks.cap",
	"tasks pause":            "tasks.pause",
	"tasks resume":           "tasks.resume",
	"tokens create":          "tokens.create",
	"tokens revoke":          "tokens.revoke",
	"workflow cancel":        "workflow.cancel",
	"workflow configure":     "workflow.configure",
	"workflow pause":         "workflow.pause",
	"workflow resume":        "workflow.resume",
	"workflow start":         "workflow.start",
}

// unrecordedFlags are not kept with an action: they may hold what is secret, say nothing of what was
// asked for, or, as reason, are kept with the documents, where an erasure of any of them finds it.
var unrecordedFlags = map[string]bool{
	"payload": true, "patch": true, "json": true, "database-url": true, "log-level": true,
	"org": true, "reason": true,
}

// recordActions has the commands of recordedCommands write what they did into the log of actions.
func recordActions(a *cli.App, root *cobra.Command) {
	for _, command := range root.Commands() {
		recordActions(a, command)
	}
	name := strings.TrimPrefix(root.CommandPath(), "daybook ")
	action, inner := recordedCommands[name], root.RunE
	if action == "" || inner == nil {
		return
	}
	root.RunE = func(c *cobra.Command, args []string) error {
		if onlyLooks(c) {
			return inner(c, args)
		}
		ctx, taken := actions.Begin(c.Context(), actions.Action{Via: actions.CLI, Action: action, Actor: cli.SystemUser()})
		org, subject := soleOrganization(c), strings.Join(args, " ")
		if isDocument(action, args) {
			org, subject = args[0], args[1]
		}
		taken.About(org, subject, givenFlags(c))
		c.SetContext(ctx)
		err := inner(c, args)
		if !errors.Is(err, cli.ErrUsage) && !errors.Is(err, cli.ErrNoDatabaseURL) &&
			!errors.Is(err, cli.ErrBadDatabaseURL) {
			record(ctx, a, taken, err)
		}
		return err
	}
}

// isDocument reports whether a command's arguments are ORG DOCUMENT: the action is about the
// document, and in the log of that organization.
func isDocument(action string, args []string) bool {
	return strings.HasPrefix(action, "accounting.") && len(args) == 2
}

// onlyLooks reports whether the command changes nothing this time: it counts only, or shows what it
// would do.
func onlyLooks(c *cobra.Command) bool {
	flags := c.Flags()
	if dry, err := flags.GetBool("dry-run"); err == nil {
		return dry
	}
	if apply, err := flags.GetBool("apply"); err == nil {
		undo, _ := flags.GetBool("undo")
		return !apply && !undo
	}
	if post, err := flags.GetString("post"); err == nil {
		return post == ""
	}
	return false
}

// record writes an action. What keeps it from the log is told, and changes nothing of what was
// done.
func record(ctx context.Context, a *cli.App, taken *actions.Taken, err error) {
	if taken.Written(err) {
		return
	}
	if a.DatabaseURL == "" {
		a.Say("This is not in the log of actions: set DAYBOOK_DATABASE_URL to have it there.")
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	pool, noted := a.Pool(ctx, 1)
	if noted == nil {
		defer cli.ClosePool(pool)
		noted = taken.End(ctx, pool, err)
	}
	if noted != nil && err == nil { // an error that is told already is most often the same
		a.Log.Warn("what was done is not in the log of actions", "error", noted)
	}
}

// givenFlags are the flags that were given, with their values.
func givenFlags(c *cobra.Command) map[string]any {
	given := map[string]any{}
	c.Flags().Visit(func(f *pflag.Flag) {
		// What is erased must not stay here; the proof has the ground.
		erased := c.Name() == "erase" && (f.Name == "link" || f.Name == "ground")
		if !unrecordedFlags[f.Name] && !erased {
			given[f.Name] = f.Value.String()
		}
	})
	return given
}

// soleOrganization is the organization that the command names, if it names one.
func soleOrganization(c *cobra.Command) string {
	if many, err := c.Flags().GetStringArray("org"); err == nil {
		if len(many) == 1 {
			return many[0]
		}
		return ""
	}
	one, err := c.Flags().GetString("org")
	if err != nil {
		return ""
	}
	return one
}
