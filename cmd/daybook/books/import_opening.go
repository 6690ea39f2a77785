package books

import (
	"cmp"
	"context"
	"io"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
)

func importOpeningCommand(a *cli.App) *cobra.Command {
	var options importFlags
	var of importer.OpeningOptions
	var on string
	command := &cobra.Command{
		Use:   "opening PATH…|- --against ACCOUNT --reason TEXT --org ORG",
		Short: "Import the open items of another system as opening balances",
		Long: "Imports open items from CSV whose first line names its columns: account, number, issue_date, amount, currency and,\n" +
			"optionally, counterparty, due_date and document. Each line is a document that posts its amount, a debit positive, to its\n" +
			"account, and the other side to --against. It is an open item, which payments are matched with. The column document is the\n" +
			"id of the document that the item stands for: imported later, that one is not posted again.",
		Example: "  daybook import opening open-items.csv --against 9000 --on 2026-01-01 --reason 'opening balances 2026' --org acme",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			of.By = cmp.Or(of.By, cli.SystemUser())
			if of.On, err = parseDay("--on", on); err != nil {
				return err
			}
			read := func(r io.Reader) iter.Seq2[importer.LineDocument, error] { return importer.Opening(r, of) }
			options.check = func(ctx context.Context, pool *pgxpool.Pool) error {
				return hasAccount(ctx, pool, of.Org, of.Against, a.Create)
			}
			return importLines(c.Context(), a, options, "opening", read, args, ".csv")
		},
	}
	options.add(a, command)
	flags := command.Flags()
	flags.StringVar(&of.Org, "org", "", "the organization whose items these are")
	flags.StringVar(&of.Against, "against", "", "the account that takes the other side of each item")
	flags.StringVar(&of.Reason, "reason", "", "why they are posted, such as opening balances 2026")
	flags.StringVar(&of.By, "by", "", "who imports them (default the system's user)")
	flags.StringVar(&on, "on", "", "the day on which they are posted, the first of the books; default: each on its issue date")
	for _, name := range []string{"org", "against", "reason"} {
		_ = command.MarkFlagRequired(name)
	}
	return command
}

// hasAccount refuses an account that an organization's chart does not have. An organization that is
// unknown is left to the import, unless that makes it known.
func hasAccount(ctx context.Context, pool *pgxpool.Pool, org, account string, create bool) error {
	_, there, err := ledgerdb.AccountExists(ctx, pool, org, account)
	if err != nil || there {
		return err
	}
	if never, err := store.NeverHeardOf(ctx, pool, org); err != nil || never && !create {
		return err
	}
	return cli.Usagef("--against %s: the chart of %s has no such account: `daybook accounts list --org %s` shows it, "+
		"`daybook accounts put` adds to it", account, org, org)
}

// standFor puts on record which documents open items stand for.
func standFor(ctx context.Context, tx pgx.Tx, items []ImportItem) error {
	var of []ledgerdb.StandsFor
	for i := range items {
		if items[i].standsFor != "" {
			d := &items[i].Document
			of = append(of, ledgerdb.StandsFor{OrgID: d.OrgID, OpenItem: d.ID, DocumentID: items[i].standsFor})
		}
	}
	return ledgerdb.StandForDocuments(ctx, tx, of)
}
