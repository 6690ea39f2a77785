package books

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

func openItemsCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "open-items",
		Short: "List what is owed and paid, and say which documents belong together",
	}
	command.AddCommand(openItemsListCommand(a), openItemsShowCommand(a), openItemsMatchCommand(a),
		openItemsReconcileCommand(a), openItemsUnreconcileCommand(a), openItemsAgeingCommand(a),
		openItemsStatementCommand(a))
	return command
}

func openItemsListCommand(a *cli.App) *cobra.Command {
	var org, counterparty, on string
	var o books.OpenItemsOptions
	var page cli.PageFlags
	command := &cobra.Command{
		Use:   "list --org ORG",
		Short: "List what is open of each document, by counterparty",
		Long: "Lists what is open of each document on accounts with the role receivable, payable or advance. Amounts are debits less\n" +
			"credits: what a customer owes is positive, what a supplier is owed negative. They add up to the accounts' balances on\n" +
			"the day. Of documents in a group, credits pay debits, the oldest first (https://github.com/daybook-dev/daybook/blob/main/docs/open-items.md).",
		Example: "  daybook open-items list --org acme --on 2026-03-31",
		Args:    cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) (err error) {
			if o.On, err = parseDay("--on", on); err != nil {
				return err
			}
			if err = checkCurrency(o.Currency); err != nil {
				return err
			}
			if c.Flags().Changed("counterparty") {
				o.Counterparty = &counterparty
			}
			var after ledgerdb.ItemPlace
			if err = page.Read(&after); err != nil {
				return err
			}
			if after != (ledgerdb.ItemPlace{}) {
				o.After = after.Item()
			}
			o.Limit = page.Limit + 1
			list, err := books.OpenItems(c.Context(), db.Pool, org, o)
			if err != nil {
				return err
			}
			list, next := cursor.Page(page.Limit, list, func(i models.OpenItem) any { return ledgerdb.PlaceOf(&i) })
			return a.Emit(answers.OpenItemListOf(list, next), func(w io.Writer) error {
				defer a.More(next)
				return a.Print(w, itemsTable(list))
			})
		}),
	}
	flags := command.Flags()
	flags.StringVar(&org, "org", "", "the organization")
	flags.StringVar(&on, "on", "", "what was open on this day, such as 2026-03-31; default: by all that is posted")
	flags.StringVar(&counterparty, "counterparty", "", "only of this counterparty; empty: of documents that name none")
	flags.StringVar(&o.Account, "account", "", "only on this account")
	flags.StringVar(&o.Currency, "currency", "", "only in this currency, such as EUR")
	page.Add(command, "open items", store.DefaultLimit)
	_ = command.MarkFlagRequired("org")
	return command
}

func itemsTable(list []models.OpenItem) *cli.Table {
	t := cli.NewTable("COUNTERPARTY", "ACCOUNT", "DOCUMENT", "NUMBER", "TYPE", "ISSUED", "DUE", "CURRENCY", "AMOUNT", "OPEN", "GROUP")
	t.Right = []int{8, 9, 10}
	for _, i := range list {
		t.Add(i.Counterparty, i.Account, i.DocumentID, i.Number, string(i.Type), i.IssueDate.String(), i.DueDate.String(),
			i.Currency, minor.Decimal(i.Amount, i.Currency), minor.Decimal(i.Open, i.Currency), groupText(i.GroupID))
	}
	return t
}

func groupText(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

func openItemsShowCommand(a *cli.App) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "show GROUP --org ORG",
		Short: "Show a group of documents that belong together, and what is open of it",
		Args:  cobra.ExactArgs(1),
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) error {
			id, err := parseGroup(args[0])
			if err != nil {
				return err
			}
			g, err := books.Group(c.Context(), db.Pool, org, id)
			if err != nil {
				return err
			}
			return a.Emit(answers.ItemGroupOf(&g), func(w io.Writer) error { return printGroup(a, w, &g) })
		}),
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	_ = command.MarkFlagRequired("org")
	return command
}

func parseGroup(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, cli.Usagef("%q is no group: give its number (`daybook open-items list`)", text)
	}
	return id, nil
}

// printGroup shows the items of a group, and what is open of it.
func printGroup(a *cli.App, w io.Writer, g *models.ItemGroup) error {
	if err := a.Print(w, itemsTable(g.Items)); err != nil {
		return err
	}
	if g.Closed {
		_, err := fmt.Fprintf(w, "group %d: nothing is open\n", g.ID)
		return err
	}
	for _, s := range g.Open {
		_, err := fmt.Fprintf(w, "group %d: %s %s is open on account %s\n", g.ID, minor.Decimal(s.Open, s.Currency), s.Currency,
			s.Account)
		if err != nil {
			return err
		}
	}
	return nil
}

func openItemsReconcileCommand(a *cli.App) *cobra.Command {
	var org, reason string
	command := &cobra.Command{
		Use:   "reconcile DOCUMENT DOCUMENT… --org ORG",
		Short: "Put documents that belong together into one group",
		Long: "Puts documents into one group: an invoice and its payments, credit notes, refunds and deposits. The groups that they\n" +
			"are in become one. Nothing is posted.",
		Example: "  daybook open-items reconcile --org acme 2026-0001 payment:812 --reason 'by phone'",
		Args:    cobra.MinimumNArgs(2),
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) error {
			g, err := books.Reconcile(c.Context(), db.Pool, org, args, reason)
			if err != nil {
				return err
			}
			return a.Emit(answers.ItemGroupOf(&g), func(w io.Writer) error { return printGroup(a, w, &g) })
		}),
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	command.Flags().StringVar(&reason, "reason", "", "why they belong together")
	_ = command.MarkFlagRequired("org")
	return command
}

func openItemsUnreconcileCommand(a *cli.App) *cobra.Command {
	var org string
	var group int64
	command := &cobra.Command{
		Use:   "unreconcile DOCUMENT…|--group GROUP --org ORG",
		Short: "Take documents out of their groups, or dissolve a group",
		Long: "Takes documents out of their groups; one that would be alone in its group leaves it, too. --group takes all documents\n" +
			"out of a group. Nothing is posted.",
		Example: "  daybook open-items unreconcile --org acme payment:812\n  daybook open-items unreconcile --org acme --group 17",
		RunE: func(c *cobra.Command, args []string) error {
			if (len(args) == 0) == (group == 0) || group < 0 {
				return cli.Usagef("give either documents or --group")
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			var out []string
			if group > 0 {
				out, err = books.DissolveGroup(c.Context(), db.Pool, org, group)
			} else {
				out, err = books.Unreconcile(c.Context(), db.Pool, org, args)
			}
			if err != nil {
				return err
			}
			return a.Emit(answers.Unreconciled{Documents: append([]string{}, out...)}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s out of groups\n", phrase.Plural(int64(len(out)), "document", "documents"))
				return err
			})
		},
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	command.Flags().Int64Var(&group, "group", 0, "all documents of this group")
	_ = command.MarkFlagRequired("org")
	return command
}
