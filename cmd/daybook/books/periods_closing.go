package books

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// onePeriodFlags name one period, by its month or its first day.
type onePeriodFlags struct{ org, month, from string }

func (f *onePeriodFlags) add(c *cobra.Command) {
	orgFlag(c, &f.org)
	c.Flags().StringVar(&f.month, "month", "", "the month, such as 2026-03")
	c.Flags().StringVar(&f.from, "from", "", "the first day of the period")
}

func (f *onePeriodFlags) period() (models.Period, error) {
	switch {
	case (f.month == "") == (f.from == ""):
		return models.Period{}, cli.Usagef("give either --month or --from")
	case f.month != "":
		return parseMonth(f.month)
	}
	day, err := parseDay("--from", f.from)
	return models.Period{StartsOn: day}, err
}

func periodsCheckCommand(a *cli.App) *cobra.Command {
	var flags onePeriodFlags
	command := &cobra.Command{
		Use:   "check --org ORG (--month MONTH | --from DAY)",
		Short: "List what is to be done before a period is closed",
		Long: "Lists what is to be done before a period is closed: documents that are not posted, open periods before it, accounts for\n" +
			"suspense and roundings with a balance, and what else is open. It ends with 1 while something is left that has to be done.\n" +
			"Of a closed period it lists what is open now. It changes nothing.",
		Example: "  daybook periods check --org acme --month 2026-03",
		Args:    cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			wanted, err := flags.period()
			if err != nil {
				return err
			}
			period, list, err := books.ClosingList(c.Context(), db.Pool, flags.org, wanted)
			if err != nil {
				return err
			}
			required := 0
			for _, i := range list {
				if i.Required {
					required++
				}
			}
			shown := answers.ClosingListOf(period, list)
			if err := a.Emit(shown, func(w io.Writer) error { return printClosingList(a, w, period, list) }); err != nil || shown.Ready {
				return err
			}
			return cli.Tagged(errNotReady, "%s has to be done before the period from %s to %s is closed",
				phrase.Plural(int64(required), "thing", "things"), period.StartsOn, period.EndsOn)
		}),
	}
	flags.add(command)
	return command
}

func printClosingList(a *cli.App, w io.Writer, p models.Period, list []models.ClosingItem) error {
	if _, err := fmt.Fprintf(w, "%s to %s: %s\n", p.StartsOn, p.EndsOn, p.State); err != nil {
		return err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "Nothing is left to be done.")
		return err
	}
	t := cli.NewTable("WHAT", "REQUIRED", "COUNT", "ACCOUNT", "AMOUNT", "CURRENCY", "WHAT TO DO", "SUCH AS")
	t.Right = []int{2, 4}
	for _, i := range list {
		t.Add(string(i.Code), yesOrEmpty(i.Required), strconv.FormatInt(i.Count, 10), i.Account, closingAmount(i), i.Currency,
			i.WhatToDo, strings.Join(i.Examples[:min(len(i.Examples), 3)], ", "))
	}
	return a.Print(w, t)
}

func yesOrEmpty(yes bool) string {
	if yes {
		return "yes"
	}
	return ""
}

// closingAmount is the amount of a row, with the decimals of its currency.
func closingAmount(i models.ClosingItem) string {
	if i.Amount == nil {
		return ""
	}
	return minor.Decimal(i.Amount, i.Currency)
}

// closingItemText says what is open in a line.
func closingItemText(i models.ClosingItem) string {
	return strings.Join(slices.DeleteFunc([]string{string(i.Code), i.Account, closingAmount(i), i.Currency},
		func(s string) bool { return s == "" }), " ")
}

func periodsAdjustmentsCommand(a *cli.App) *cobra.Command {
	var flags onePeriodFlags
	var page cli.PageFlags
	command := &cobra.Command{
		Use:   "adjustments --org ORG (--month MONTH | --from DAY)",
		Short: "List what was posted of a period after it was closed",
		Long: "Lists what was posted of a period after it was first closed: on the first open day after it, because the policy for\n" +
			"closed periods says so (later_day), or on its own days while it was open again (opened_again).",
		Args: cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			wanted, err := flags.period()
			if err != nil {
				return err
			}
			options := books.AdjustmentOptions{Limit: page.Limit}
			if err := page.Read(&options.After); err != nil {
				return err
			}
			list, after, err := books.Adjustments(c.Context(), db.Pool, flags.org, wanted, options)
			if err != nil {
				return err
			}
			shown := answers.AdjustmentList{Adjustments: answers.List(list, answers.AdjustmentOf)}
			if after != 0 {
				shown.NextCursor = cursor.Of(after)
			}
			return a.Emit(shown, func(w io.Writer) error {
				defer a.More(shown.NextCursor)
				if len(list) == 0 {
					a.Say("Nothing was posted of the period after it was closed.")
				}
				t := cli.NewTable("IMPACT", "DOCUMENT", "KIND", "REASON", "DOCUMENT DATE", "POSTED ON", "AT", "DEBITS", "CURRENCY")
				t.Right = []int{0, 7}
				for _, i := range list {
					debits := ""
					if i.Debits != nil {
						debits = minor.Decimal(i.Debits, i.Currency)
					}
					t.Add(strconv.FormatInt(i.ImpactID, 10), i.DocumentID, string(i.Kind), string(i.Reason), i.DocumentDate.String(),
						i.PostingDate.String(), cli.OptionalTime(&i.CreatedAt), debits, i.Currency)
				}
				return a.Print(w, t)
			})
		}),
	}
	flags.add(command)
	page.Add(command, "impacts", store.DefaultLimit)
	return command
}

func periodsClosingsCommand(a *cli.App) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "closings --org ORG",
		Short: "List the closings and openings of periods, with their hashes",
		Long: "Lists the closings and openings of periods, the oldest first, with the hash of what each closed or opened and of the one\n" +
			"before it. --json has all of them, with signatures and with what was open: keep it outside of the database, and compare\n" +
			"it later. `daybook audit` checks the chain.",
		Args: cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			list, err := books.Closings(c.Context(), db.Pool, org, books.ClosingOptions{})
			if err != nil {
				return err
			}
			shown, err := answers.ClosingsOf(list)
			if err != nil {
				return err
			}
			return a.Emit(map[string]any{"closings": shown}, func(w io.Writer) error {
				t := cli.NewTable("NUMBER", "ACTION", "FROM", "TO", "AT", "BY", "IMPACTS", "ENTRIES", "SIGNED", "HASH")
				t.Right = []int{0, 6, 7}
				for _, i := range list {
					t.Add(strconv.Itoa(i.Number), string(i.Action), i.StartsOn.String(), i.EndsOn.String(), cli.OptionalTime(&i.CreatedAt), i.ClosedBy,
						strconv.FormatInt(i.Impacts, 10), strconv.FormatInt(i.Entries, 10), yesOrEmpty(i.Signature != nil), i.Hash)
				}
				return a.Print(w, t)
			})
		}),
	}
	orgFlag(command, &org)
	return command
}
