package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/minor"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
)

func entriesCommand(a *app) *cobra.Command {
	var filter listing.EntryFilter
	command := &cobra.Command{
		Use:   "entries --org ORG",
		Short: "List posted entries, the newest impact first",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if filter.Limit < 1 {
				return usagef("--limit must be at least 1")
			}
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			if _, err := db.Organization(c.Context(), filter.OrgID); err != nil {
				return err
			}
			lines, err := db.Entries(c.Context(), filter)
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"entries": lines}, func(w io.Writer) error {
				if err := a.printEntries(w, lines); err != nil {
					return err
				}
				if len(lines) == filter.Limit {
					a.say("There may be more than these %d: raise --limit.", filter.Limit)
				}
				return nil
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&filter.OrgID, "org", "", "the organization")
	flags.StringVar(&filter.DocumentID, "document", "", "only of this document")
	flags.StringVar(&filter.Account, "account", "", "only to this account")
	flags.IntVar(&filter.Limit, "limit", store.DefaultLimit, "how many at most")
	_ = command.MarkFlagRequired("org")
	return command
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
