package work

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
)

// ChangedNeeds is what a change of an organization's source or hooks led to, for programs. OrgID is
// empty for the default.
type ChangedNeeds struct {
	OrgID string `json:"org_id,omitempty"`
	store.NeedsSet
}

// needsFlags name what gets a source or hooks.
type needsFlags struct {
	cli.OrganizationFlags
	// ofAll: the default of organizations that name none. follow: what is named follows the default.
	ofAll, follow bool
}

func (n *needsFlags) add(c *cobra.Command) {
	n.OrganizationFlags.Add(c)
	c.Flags().BoolVar(&n.ofAll, "default", false, "every organization that names none of its own, present or future")
	c.Flags().BoolVar(&n.follow, "follow-default", false, "let these organizations follow the default again")
}

func (n *needsFlags) check() error {
	if n.ofAll {
		if len(n.IDs) > 0 || n.All || n.follow {
			return cli.Usagef("--default stands alone")
		}
		return nil
	}
	if err := n.OrganizationFlags.Check(); err != nil {
		return cli.Usagef("give either --org, once or more, or --all-orgs, or --default")
	}
	return nil
}

func organizationsSourceCommand(a *cli.App) *cobra.Command {
	var orgs needsFlags
	command := &cobra.Command{
		Use:   "source (NAME|--follow-default) (--org ORG…|--all-orgs|--default)",
		Short: "Set the source from which the documents of organizations are read",
		Long: "Sets the source from which the documents of organizations are read. Only workers that have this source work their\n" +
			"jobs; `daybook worker` has daybook, the table daybook.documents. The command waits for transactions that post by the old\n" +
			"source, and makes jobs pending that failed with DOCUMENT_UNKNOWN. Nothing that is posted changes.",
		Example: "  daybook organizations source shop --org acme\n  daybook organizations source shop --default",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if (len(args) == 1 && args[0] != "") == orgs.follow {
				return cli.Usagef("give either the source's name or --follow-default")
			}
			source := strings.Join(args, "")
			return changeNeeds(c.Context(), a, &orgs,
				func(ctx context.Context, tx pgx.Tx, org string) (store.NeedsSet, error) {
					if orgs.ofAll {
						return store.SetDefaultSource(ctx, tx, source)
					}
					return store.SetSource(ctx, tx, org, source)
				})
		},
	}
	orgs.add(command)
	return command
}

func organizationsHooksCommand(a *cli.App) *cobra.Command {
	var orgs needsFlags
	var none bool
	command := &cobra.Command{
		Use:   "hooks (NAME…|--none|--follow-default) (--org ORG…|--all-orgs|--default)",
		Short: "Set the hooks that are called with what is posted for organizations",
		Long: "Sets the hooks (workers.AccountingOptions.Hooks) that are called with what is posted for organizations; they replace those\n" +
			"set before. Only workers that have all of these hooks work the organizations' jobs; `daybook worker` has none.",
		Example: "  daybook organizations hooks shop-booked --org acme\n  daybook organizations hooks --none --org acme",
		RunE: func(c *cobra.Command, args []string) error {
			ways := 0
			for _, given := range []bool{len(args) > 0, none, orgs.follow} {
				if given {
					ways++
				}
			}
			if ways != 1 {
				return cli.Usagef("give either the hooks' names, or --none, or --follow-default")
			}
			var hooks []string
			if !orgs.follow {
				hooks = append([]string{}, args...)
			}
			return changeNeeds(c.Context(), a, &orgs,
				func(ctx context.Context, tx pgx.Tx, org string) (store.NeedsSet, error) {
					if orgs.ofAll {
						return store.SetDefaultHooks(ctx, tx, hooks)
					}
					return store.SetHooks(ctx, tx, org, hooks)
				})
		},
	}
	orgs.add(command)
	command.Flags().BoolVar(&none, "none", false, "no hook")
	return command
}

// changeNeeds changes the named organizations, or the default, each in a transaction of its own,
// and shows what came of it.
func changeNeeds(ctx context.Context, a *cli.App, orgs *needsFlags,
	change func(ctx context.Context, tx pgx.Tx, org string) (store.NeedsSet, error),
) error {
	if err := orgs.check(); err != nil {
		return err
	}
	db, err := a.Open(ctx, 2)
	if err != nil {
		return err
	}
	defer db.Close()
	ids := []string{""}
	if !orgs.ofAll {
		if ids, err = orgs.Resolve(ctx, db); err != nil {
			return err
		}
	}
	results := make([]ChangedNeeds, 0, len(ids))
	for _, id := range ids {
		r := ChangedNeeds{OrgID: id}
		err := store.Begin(ctx, db.Pool, func(tx pgx.Tx) error {
			var err error
			if r.NeedsSet, err = change(ctx, tx, id); err != nil {
				return err
			}
			return actions.Note(ctx, tx, id, "", map[string]any{"changed": r.Changed, "returned": r.Returned})
		})
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	return a.Emit(map[string]any{"organizations": results}, func(w io.Writer) error {
		t := cli.NewTable("ORGANIZATION", "RESULT", "JOBS RETURNED")
		t.Right = []int{2}
		for _, r := range results {
			name := r.OrgID
			if orgs.ofAll {
				name = "(default)"
			}
			t.Add(name, cli.ChangedText(r.Changed), fmt.Sprint(r.Returned))
		}
		return a.Print(w, t)
	})
}
