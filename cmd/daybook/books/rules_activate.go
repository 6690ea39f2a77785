package books

import (
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

func rulesActivateCommand(a *cli.App) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "activate VERSION --org ORG",
		Short: "Make a stored version the one that an organization posts by",
		Long: "Makes a stored version the one that an organization posts by. Jobs that had failed for the rules before are pending\n" +
			"again. What is posted already stays as it is.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			version, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || version < 1 {
				return cli.Usagef("VERSION is %q: want a number such as 3; `daybook rules list` shows them", args[0])
			}
			db, err := a.Open(c.Context(), 2)
			if err != nil {
				return err
			}
			defer db.Close()
			result, err := books.ActivateRules(c.Context(), db.Pool, org, version, books.ActivateOptions{})
			if err != nil {
				return err
			}
			return showApplied(a, result.Name, []books.Change{result})
		},
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	_ = command.MarkFlagRequired("org")
	return command
}

func rulesListCommand(a *cli.App) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "list --org ORG",
		Short: "List the versions of an organization's rules, the newest first",
		Args:  cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			lines, err := books.RuleSets(c.Context(), db.Pool, org)
			if err != nil {
				return err
			}
			return a.Emit(map[string]any{"ruleSets": lines}, func(w io.Writer) error {
				t := cli.NewTable("VERSION", "", "STORED", "SHA-256", "NAME")
				t.Right = []int{0}
				for _, l := range lines {
					state := ""
					if l.Active {
						state = "active"
					}
					t.Add(strconv.FormatInt(l.Version, 10), state, cli.FormatTime(l.CreatedAt), l.SHA256[:12], l.Name)
				}
				return a.Print(w, t)
			})
		}),
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	_ = command.MarkFlagRequired("org")
	return command
}
