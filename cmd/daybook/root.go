package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/queue"
)

// run executes the command line and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a, err := cli.New(stdin, stdout, stderr)
	if err != nil {
		_, _ = io.WriteString(stderr, "daybook: "+err.Error()+"\n")
		return failure.ExitUsage
	}
	a.Version = readVersion().Version
	root := newRoot(a)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return failure.ExitOK
	}
	if name, unknown := strings.CutPrefix(err.Error(), "unknown command "); unknown && command == root && !a.Begun {
		// Cobra's own words, with a list below them.
		name, _, _ = strings.Cut(name, " for ")
		err = cli.UnknownCommand(root, strings.Trim(name, `"`))
	}
	if !a.Begun {
		err = cli.Usagef("%s", err.Error())
		// Reading the flags may have ended before it came to this one.
		a.JSON = a.JSON || slices.Contains(args, "--json")
	}
	return report(ctx, a, err, command.CommandPath())
}

func newRoot(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "daybook",
		Short: "Post business documents as balanced entries, exactly once",
		Long: "Daybook is a durable work queue in PostgreSQL, run by a Temporal workflow, that turns business documents into\n" +
			"balanced double-entry bookings exactly once.\n\n" +
			"Try it: daybook demo. The database is named by DAYBOOK_DATABASE_URL, Temporal by TEMPORAL_ADDRESS and the other\n" +
			"settings of Temporal's own programs.",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if err := a.SetUp(); err != nil {
				return err
			}
			if a.Environment.LogEnqueue == "1" {
				c.SetContext(queue.WithLog(c.Context(), a.Log))
			}
			return nil
		},
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.Version = readVersion().line() // adds --version
	root.SetVersionTemplate("{{.Version}}")
	flags := root.PersistentFlags()
	flags.BoolVar(&a.JSON, "json", false, "print JSON for programs")
	flags.StringVar(&a.DatabaseURL, "database-url", "",
		"the database, instead of DAYBOOK_DATABASE_URL (other users of the machine may see it)")
	flags.StringVar(&a.DirectURL, "database-direct-url", "",
		"the same database past a pooler in transaction mode, for migrations, LISTEN and locks "+
			"(default DAYBOOK_DATABASE_DIRECT_URL, unless --database-url is given)")
	flags.StringVar(&a.LogLevel, "log-level", "", "debug, info, warn or error (default DAYBOOK_LOG_LEVEL, or else info)")
	addCommands(a, root)
	tellRoles(root)
	showWaiting(a, root)
	recordActions(a, root)
	watchBegin(a, root)
	completeFlags(a, root)
	root.SetHelpCommand(helpCommand(root))
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	root.SetFlagErrorFunc(cli.UnknownFlag)
	return root
}

// helpCommand shows the help of a command. Cobra's own takes a name that it does not know for a
// success.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			command, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return cli.Usagef("there is no command %s", strings.Join(args, " "))
			}
			command.InitDefaultHelpFlag()
			return command.Help()
		},
	}
}

// watchBegin notes when a command's own code begins, has those that refuse their arguments say what
// they want, and makes commands that only group others refuse unknown names.
func watchBegin(a *cli.App, command *cobra.Command) {
	if check := command.Args; check != nil {
		command.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return cli.Usagef("%s: want `%s`", err, c.UseLine())
			}
			return nil
		}
	}
	if inner := command.RunE; inner != nil {
		command.RunE = func(c *cobra.Command, args []string) error {
			a.Begin(c)
			return inner(c, args)
		}
	} else if command.HasParent() && command.HasSubCommands() {
		command.RunE = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			return cli.UnknownCommand(c, args[0])
		}
	}
	for _, c := range command.Commands() {
		watchBegin(a, c)
	}
}
