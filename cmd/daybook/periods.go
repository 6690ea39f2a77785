package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

func periodsCommand(a *app) *cobra.Command {
	command := &cobra.Command{Use: "periods", Short: "List, add, close and open periods of posting dates"}
	command.AddCommand(
		periodsListCommand(a), periodsAddCommand(a),
		periodsCloseCommand(a), periodsOpenCommand(a),
		periodsPolicyCommand(a),
	)
	return command
}

func orgFlag(c *cobra.Command, org *string) {
	c.Flags().StringVar(org, "org", "", "the organization")
	_ = c.MarkFlagRequired("org")
}

func periodsListCommand(a *app) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "list --org ORG",
		Short: "List an organization's periods, oldest first",
		Args:  cobra.NoArgs,
		RunE: a.onDatabase(func(c *cobra.Command, db *database, _ []string) error {
			policy, err := books.ClosedPeriodPolicy(c.Context(), db.Pool, org)
			if err != nil {
				return err
			}
			periods, err := books.Periods(c.Context(), db.Pool, org)
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"policy": policy, "periods": periods}, func(w io.Writer) error {
				if err := a.print(w, periodsTable(periods)); err != nil {
					return err
				}
				a.say("A date in no period is open, unless it lies before a closed one, or between the last closed one and the first open one after it.\n"+
					"The policy for closed dates: %s.", policy)
				return nil
			})
		}),
	}
	orgFlag(command, &org)
	return command
}

func periodsTable(periods []models.Period) *table {
	t := newTable("FROM", "TO", "STATE", "CLOSED")
	for _, p := range periods {
		t.add(p.StartsOn.String(), p.EndsOn.String(), string(p.State), optionalTime(p.ClosedAt))
	}
	return t
}

func periodsAddCommand(a *app) *cobra.Command {
	var org, monthName, year, from, to string
	command := &cobra.Command{
		Use:     "add --org ORG (--month MONTH | --year YEAR | --from DAY --to DAY)",
		Short:   "Add open periods",
		Example: "  daybook periods add --org acme --year 2026\n  daybook periods add --org acme --from 2026-01-01 --to 2026-03-31",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			periods, err := periodsToAdd(monthName, year, from, to)
			if err != nil {
				return err
			}
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			added, err := books.AddPeriods(c.Context(), db.Pool, org, periods...)
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"orgId": org, "added": len(added)}, func(w io.Writer) error {
				if n := len(periods) - len(added); n > 0 {
					a.say("%s there already; `daybook periods list` shows them.", phrase.Plural(int64(n), "period was", "periods were"))
				}
				return a.print(w, periodsTable(added))
			})
		},
	}
	orgFlag(command, &org)
	flags := command.Flags()
	flags.StringVar(&monthName, "month", "", "a month such as 2026-03")
	flags.StringVar(&year, "year", "", "the twelve months of a year such as 2026")
	flags.StringVar(&from, "from", "", "the first day of one period")
	flags.StringVar(&to, "to", "", "the last day of it")
	return command
}

func periodsToAdd(monthName, year, from, to string) ([]models.Period, error) {
	named := 0
	for _, text := range []string{monthName, year, from + to} {
		if text != "" {
			named++
		}
	}
	switch {
	case named != 1:
		return nil, usagef("give either --month, --year, or --from and --to")
	case year != "":
		return parseYear(year)
	case monthName != "":
		p, err := parseMonth(monthName)
		return []models.Period{p}, err
	case from == "" || to == "":
		return nil, usagef("give both --from and --to")
	}
	first, last, err := (&spanFlags{from: from, to: to}).parse()
	return []models.Period{{StartsOn: first, EndsOn: last}}, err
}

func periodsCloseCommand(a *app) *cobra.Command {
	var options books.CloseOptions
	command := periodsChangeCommand(a, func(ctx context.Context, db books.DB, org string, p models.Period) (books.PeriodChange, error) {
		return books.ClosePeriod(ctx, db, org, p, options)
	})
	command.Use, command.Short = "close --org ORG (--month MONTH | --from DAY) [--force]", "Close a period: nothing is posted into it any more"
	command.Long = "Closes a period. The command waits for chunks that are being posted for the organization; after that nothing is posted\n" +
		"into the period until it is opened, nor on days before it that are in no open period. `daybook periods policy` says what\n" +
		"happens to documents with such a date.\n\n" +
		"If jobs have failed or wait whose documents have such a date, the command names them and closes nothing; --force closes\n" +
		"all the same. It goes by the dates of the documents and of their postings: a date that only a rule computes, and documents\n" +
		"in an application's own tables that were never posted, are not seen."
	command.Flags().BoolVar(&options.Force, "force", false, "close it although documents with a date in it, or before it, are not posted")
	return command
}

func periodsOpenCommand(a *app) *cobra.Command {
	command := periodsChangeCommand(a, books.OpenPeriod)
	command.Use, command.Short = "open --org ORG (--month MONTH | --from DAY)", "Open a period, and try again what had failed because it was closed"
	command.Long = "Opens a period. Jobs of the organization that had failed with PERIOD_CLOSED are pending again."
	return command
}

type periodChange func(ctx context.Context, db books.DB, org string, p models.Period) (books.PeriodChange, error)

func periodsChangeCommand(a *app, change periodChange) *cobra.Command {
	var org, monthName, from string
	command := &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			wanted, err := periodToChange(monthName, from)
			if err != nil {
				return err
			}
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			p, err := change(c.Context(), db.Pool, org, wanted)
			if err != nil {
				return err
			}
			return a.emit(p, func(w io.Writer) error {
				if p.Unposted != nil {
					a.say("%s", p.Unposted.Sentence())
				}
				_, err := fmt.Fprintf(w, "%s to %s: %s%s\n", p.StartsOn, p.EndsOn, p.State, returnedText(p.Returned))
				return err
			})
		},
	}
	orgFlag(command, &org)
	command.Flags().StringVar(&monthName, "month", "", "the month, such as 2026-03")
	command.Flags().StringVar(&from, "from", "", "the first day of the period")
	return command
}

func returnedText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s pending again", phrase.Plural(int64(n), "job is", "jobs are"))
}

// periodToChange returns the period that is named; its last day is set only for a month.
func periodToChange(monthName, from string) (models.Period, error) {
	if (monthName == "") == (from == "") {
		return models.Period{}, usagef("give either --month or --from")
	}
	if monthName != "" {
		return parseMonth(monthName)
	}
	day, err := parseDay("--from", from)
	return models.Period{StartsOn: day}, err
}

func periodsPolicyCommand(a *app) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "policy fail|first_open_day --org ORG",
		Short: "Choose what happens to documents with a posting date in a closed period",
		Long: "Chooses what happens to documents with a posting date in a closed period: they fail with PERIOD_CLOSED until the period is\n" +
			"opened, or they are posted on the first open day after it. Jobs that had failed with PERIOD_CLOSED are pending again.",
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{string(models.PolicyFail), string(models.PolicyFirstOpenDay)},
		RunE: a.onDatabase(func(c *cobra.Command, db *database, args []string) error {
			done, err := books.SetClosedPeriodPolicy(c.Context(), db.Pool, org, models.ClosedPeriodPolicy(args[0]))
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"orgId": org, "policy": args[0], "returned": done.Returned}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: %s%s\n", org, args[0], returnedText(done.Returned))
				return err
			})
		}),
	}
	orgFlag(command, &org)
	return command
}
