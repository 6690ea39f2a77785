package books

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/models"
)

func journalCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "journal",
		Short: "Write, list and delete journals: entries that a person decides, posted without a rule",
	}
	command.AddCommand(journalPutCommand(a), journalListCommand(a), journalDeleteCommand(a))
	return command
}

func journalPutCommand(a *cli.App) *cobra.Command {
	var j books.Journal
	var org, date, dimensions string
	var dry bool
	command := &cobra.Command{
		Use:   "put --org ORG --date DAY --reason TEXT ACCOUNT=AMOUNT ACCOUNT=AMOUNT…",
		Short: "Write a journal, which a worker posts as it is",
		Long: "Writes a journal, which a worker posts as it is: no rule is asked. A debit is positive, a credit negative, and they\n" +
			"balance in each currency. An amount is followed by its currency, unless it is that of --currency, or the\n" +
			"organization's own. With --id the same command again changes nothing, and another one replaces the journal: what was\n" +
			"posted of it is reversed. Many journals are imported: `daybook import hledger`.",
		Example: "  daybook journal put --org acme --date 2026-03-31 --reason \"Accrued rent\" --currency EUR 6310=500.00 3500=-500.00",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if j.Date, err = models.ParseDate(date); err != nil {
				return cli.Usagef("--date: %v", err)
			}
			if j.Dimensions, err = models.ParseDimensions(dimensions); err != nil {
				return cli.Usagef("--dimensions: %v", err)
			}
			j.By = cmp.Or(j.By, cli.SystemUser())
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			if j.Currency == "" && slices.ContainsFunc(args, namesNoCurrency) {
				if j.Currency, err = books.OwnCurrency(c.Context(), db.Pool, org); err != nil {
					return err
				}
			}
			for _, arg := range args {
				e, err := journalEntry(arg, j.Currency)
				if err != nil {
					return err
				}
				j.Entries = append(j.Entries, e)
			}
			change := books.JournalChange{OrgID: org, DocumentID: j.ID}
			if dry {
				actions.Drop(c.Context())
				change.PostingDate, err = books.CheckJournal(c.Context(), db.Pool, org, j)
			} else {
				actions.About(c.Context(), org, j.ID, nil)
				change, err = books.PutJournal(c.Context(), db.Pool, org, j)
			}
			if err != nil {
				return err
			}
			return emitJournal(a, change, dry, "written, to be posted on "+change.PostingDate.String())
		},
	}
	flags := command.Flags()
	flags.StringVar(&org, "org", "", "the organization")
	flags.StringVar(&date, "date", "", "the day on which it is posted, such as 2026-03-31")
	flags.StringVar(&j.Reason, "reason", "", "why it is posted")
	flags.StringVar(&j.By, "by", "", "who wrote it (default the system's user)")
	flags.StringVar(&j.ID, "id", "", "names the journal (default an id of its own)")
	flags.StringVar(&j.Currency, "currency", "", "the currency of amounts that name none (default the organization's own)")
	flags.StringVar(&j.Number, "number", "", "its number")
	flags.StringVar(&j.Counterparty, "counterparty", "", "the customer or supplier that it is about")
	flags.StringVar(&dimensions, "dimensions", "", "those of all entries, such as cost_centre=sales,project=7")
	flags.BoolVar(&dry, "dry-run", false, "write nothing, and say whether it could be posted")
	for _, name := range []string{"org", "date", "reason"} {
		_ = command.MarkFlagRequired(name)
	}
	return command
}

// journalEntry reads ACCOUNT=AMOUNT, and a currency behind it.
func journalEntry(arg, currency string) (models.JournalEntry, error) {
	at := strings.LastIndexByte(arg, '=')
	if at < 1 {
		return models.JournalEntry{}, cli.Usagef("%q: want ACCOUNT=AMOUNT, such as 6310=500.00", arg)
	}
	e := models.JournalEntry{Account: arg[:at]}
	amount, named := splitCurrency(arg[at+1:])
	e.Currency = named
	var err error
	if currency = cmp.Or(e.Currency, currency); currency == "" {
		return e, cli.Usagef("%q: write the currency behind the amount, or give --currency: the organization has none of its own", arg)
	}
	if e.Amount, err = minor.Parse(amount, currency); err != nil {
		return e, cli.Usagef("%q: %v", arg, err)
	}
	return e, nil
}

// splitCurrency splits an amount from the currency behind it, if there is one.
func splitCurrency(text string) (amount, currency string) {
	text = strings.TrimSpace(text)
	if n := len(text) - 3; n > 0 && minor.IsCurrency(text[n:]) {
		return text[:n], text[n:]
	}
	return text, ""
}

// namesNoCurrency reports whether an ACCOUNT=AMOUNT has no currency behind it.
func namesNoCurrency(arg string) bool {
	_, currency := splitCurrency(arg[strings.LastIndexByte(arg, '=')+1:])
	return currency == ""
}

func emitJournal(a *cli.App, c books.JournalChange, dry bool, did string) error {
	return a.Emit(answers.JournalChange{
		OrgID: c.OrgID, DocumentID: c.DocumentID, Changed: c.Changed, Version: c.Version, JobID: c.JobID,
		PostingDate: c.PostingDate.String(),
	}, func(w io.Writer) error {
		text := "journal " + c.DocumentID + " " + did
		switch {
		case dry:
			text = "dry run, nothing is written: it would be posted on " + c.PostingDate.String()
		case !c.Changed:
			text = "nothing was changed: journal " + c.DocumentID + " is so already"
		}
		_, err := fmt.Fprintln(w, text)
		if err == nil && c.Changed {
			a.Say("Next: `daybook explain %s %s` shows what became of it.", c.OrgID, c.DocumentID)
		}
		return err
	})
}

func journalListCommand(a *cli.App) *cobra.Command {
	var org string
	var o books.JournalsOptions
	var page cli.PageFlags
	command := &cobra.Command{
		Use:   "list --org ORG",
		Short: "List journals, the latest first",
		Args:  cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			if err := page.Read(&o.Before); err != nil {
				return err
			}
			o.Limit = page.Limit + 1
			list, err := books.Journals(c.Context(), db.Pool, org, o)
			if err != nil {
				return err
			}
			list, next := cursor.Page(page.Limit, list, func(d models.Document) any { return d.ID })
			return a.Emit(answers.JournalListOf(list, next), func(w io.Writer) error {
				defer a.More(next)
				t := cli.NewTable("JOURNAL", "DATE", "DEBITS", "BY", "STATE", "REASON")
				for i := range list {
					d := &list[i]
					state := ""
					if d.DeletedAt != nil {
						state = "deleted"
					}
					t.Add(d.ID, d.IssueDate.String(), debitsOf(d), d.Content.Journal.By, state, d.Content.Journal.Reason)
				}
				return a.Print(w, t)
			})
		}),
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	_ = command.MarkFlagRequired("org")
	page.Add(command, "journals", store.DefaultLimit)
	return command
}

// debitsOf are the sums of a journal's debits.
func debitsOf(d *models.Document) string {
	var parts []string
	for _, s := range d.Content.Journal.Debits(d.Currency) {
		parts = append(parts, models.FormatMinor(s.Amount, s.Currency))
	}
	return strings.Join(parts, ", ")
}

func journalDeleteCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "delete ORG JOURNAL",
		Short: "Delete a journal: a worker reverses what is posted of it",
		Args:  cobra.ExactArgs(2),
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) error {
			actions.About(c.Context(), args[0], args[1], nil)
			change, err := books.DeleteJournal(c.Context(), db.Pool, args[0], args[1])
			if err != nil {
				return err
			}
			return emitJournal(a, change, false, "deleted; what is posted of it will be reversed")
		}),
	}
	return command
}
