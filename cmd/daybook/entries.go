package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/models"
)

func entriesCommand(a *app) *cobra.Command {
	var filter listing.EntryFilter
	var page pageFlags
	command := &cobra.Command{
		Use:   "entries --org ORG",
		Short: "List posted entries, the latest posting date first",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var after listing.EntryPlace
			if err := page.read(&after); err != nil {
				return err
			}
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			if _, err := db.Organization(c.Context(), filter.OrgID); err != nil {
				return err
			}
			list, err := readEntries(c.Context(), db, filter, page, after)
			if err != nil {
				return err
			}
			return a.emit(answers.EntryListOf(list.Entries, list.Next), func(w io.Writer) error {
				defer a.more(list.Next)
				return a.printEntries(w, list.Entries)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&filter.OrgID, "org", "", "the organization")
	flags.StringVar(&filter.DocumentID, "document", "", "only of this document")
	flags.StringVar(&filter.Account, "account", "", "only to this account")
	page.add(command, "entries", store.DefaultLimit)
	_ = command.MarkFlagRequired("org")
	return command
}

// entriesPage is a page of entries.
type entriesPage struct {
	Entries []ledgerdb.EntryLine
	Next    string
}

func readEntries(ctx context.Context, db *database, f listing.EntryFilter, page pageFlags, after listing.EntryPlace) (list entriesPage, err error) {
	f.Limit = page.limit + 1
	list.Entries, err = db.Entries(ctx, f, after)
	list.Entries, list.Next = cursor.Page(page.limit, list.Entries, func(l ledgerdb.EntryLine) any { return listing.Place(&l) })
	return list, err
}

func (a *app) printEntries(w io.Writer, lines []ledgerdb.EntryLine) error {
	t := newTable("DATE", "DOCUMENT", "KIND", "ACCOUNT", "DEBIT", "CREDIT", "CURRENCY", "RULE")
	t.right = []int{4, 5}
	for i := range lines {
		l := &lines[i]
		amount := minor.Decimal64(l.Amount, l.Currency)
		debit, credit := amount, ""
		if l.Side == models.Credit {
			debit, credit = "", amount
		}
		t.add(l.PostingDate.String(), l.DocumentID, string(l.Kind), l.Account, debit, credit, l.Currency, l.RuleID+"/"+l.RuleLineID)
	}
	return a.print(w, t)
}
