package main

import (
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
)

func rulesActivateCommand(a *app) *cobra.Command {
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
				return usagef("VERSION is %q: want a number such as 3; `daybook rules list` shows them", args[0])
			}
			db, err := a.open(c.Context(), 2)
			if err != nil {
				return err
			}
			defer db.close()
			result, err := books.ActivateRules(c.Context(), db.Pool, org, version, books.ActivateOptions{})
			if err != nil {
				return err
			}
			return a.showApplied(result.Name, []books.Change{result})
		},
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	_ = command.MarkFlagRequired("org")
	return command
}

func rulesListCommand(a *app) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "list --org ORG",
		Short: "List the versions of an organization's rules, the newest first",
		Args:  cobra.NoArgs,
		RunE: a.onDatabase(func(c *cobra.Command, db *database, _ []string) error {
			lines, err := books.RuleSets(c.Context(), db.Pool, org)
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"ruleSets": lines}, func(w io.Writer) error {
				t := newTable("VERSION", "", "STORED", "SHA-256", "NAME")
				t.right = []int{0}
				for _, l := range lines {
					state := ""
					if l.Active {
						state = "active"
					}
					t.add(strconv.FormatInt(l.Version, 10), state, formatTime(l.CreatedAt), l.SHA256[:12], l.Name)
				}
				return a.print(w, t)
			})
		}),
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	_ = command.MarkFlagRequired("org")
	return command
}
