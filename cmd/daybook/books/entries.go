package books

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/models"
)

func entriesCommand(a *cli.App) *cobra.Command {
	var filter listing.EntryFilter
	var page cli.PageFlags
	command := &cobra.Command{
		Use:   "entries --org ORG",
		Short: "List posted entries, the latest posting date first",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var after listing.EntryPlace
			if err := page.Read(&after); err != nil {
				return err
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			if _, err := db.Organization(c.Context(), filter.OrgID); err != nil {
				return err
			}
			list, err := readEntries(c.Context(), db, filter, page, after)
			if err != nil {
				return err
			}
			return a.Emit(answers.EntryListOf(list.Entries, list.Next), func(w io.Writer) error {
				defer a.More(list.Next)
				return printEntries(a, w, list.Entries)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&filter.OrgID, "org", "", "the organization")
	flags.StringVar(&filter.DocumentID, "document", "", "only of this document")
	flags.StringVar(&filter.Account, "account", "", "only to this account")
	page.Add(command, "entries", store.DefaultLimit)
	_ = command.MarkFlagRequired("org")
	return command
}

// entriesPage is a page of entries.
type entriesPage struct {
	Entries []ledgerdb.EntryLine
	Next    string
}

func readEntries(ctx context.Context, db *cli.Database, f listing.EntryFilter, page cli.PageFlags,
	after listing.EntryPlace,
) (list entriesPage, err error) {
	f.Limit = page.Limit + 1
	list.Entries, err = db.Entries(ctx, f, after)
	list.Entries, list.Next = cursor.Page(page.Limit, list.Entries,
		func(l ledgerdb.EntryLine) any { return listing.Place(&l) })
	return list, err
}

func printEntries(a *cli.App, w io.Writer, lines []ledgerdb.EntryLine) error {
	t := cli.NewTable("DATE", "DOCUMENT", "KIND", "ACCOUNT", "DEBIT", "CREDIT", "CURRENCY", "RULE", "DIMENSIONS")
	t.Right = []int{4, 5}
	for i := range lines {
		l := &lines[i]
		amount := minor.Decimal64(l.Amount, l.Currency)
		debit, credit := amount, ""
		if l.Side == models.Credit {
			debit, credit = "", amount
		}
		t.Add(l.PostingDate.String(), l.DocumentID, string(l.Kind), l.Account, debit, credit, l.Currency,
			l.RuleID+"/"+l.RuleLineID, l.Dimensions.String())
	}
	return a.Print(w, t)
}
