package books

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

func periodsCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{Use: "periods", Short: "List, add, close and open periods of posting dates"}
	command.AddCommand(
		periodsListCommand(a), periodsAddCommand(a), periodsCheckCommand(a),
		periodsCloseCommand(a), periodsOpenCommand(a), periodsAdjustmentsCommand(a), periodsClosingsCommand(a),
		periodsPolicyCommand(a),
	)
	return command
}

func orgFlag(c *cobra.Command, org *string) {
	c.Flags().StringVar(org, "org", "", "the organization")
	_ = c.MarkFlagRequired("org")
}

func periodsListCommand(a *cli.App) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "list --org ORG",
		Short: "List an organization's periods, oldest first",
		Args:  cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			policy, err := books.ClosedPeriodPolicy(c.Context(), db.Pool, org)
			if err != nil {
				return err
			}
			periods, err := books.Periods(c.Context(), db.Pool, org)
			if err != nil {
				return err
			}
			return a.Emit(map[string]any{"policy": policy, "periods": periods}, func(w io.Writer) error {
				if err := a.Print(w, periodsTable(periods)); err != nil {
					return err
				}
				a.Say("A date in no period is open, unless it lies before a closed one, or between the last closed one and the first open one after it.\n"+
					"The policy for closed dates: %s.", policy)
				return nil
			})
		}),
	}
	orgFlag(command, &org)
	return command
}

func periodsTable(periods []models.Period) *cli.Table {
	t := cli.NewTable("FROM", "TO", "STATE", "CLOSED")
	for _, p := range periods {
		t.Add(p.StartsOn.String(), p.EndsOn.String(), string(p.State), cli.OptionalTime(p.ClosedAt))
	}
	return t
}

func periodsAddCommand(a *cli.App) *cobra.Command {
	var org, monthName, year, from, to string
	command := &cobra.Command{
		Use:   "add --org ORG (--month MONTH | --year YEAR | --from DAY --to DAY)",
		Short: "Add open periods",
		Example: "  daybook periods add --org acme --year 2026\n  daybook periods add --org acme --from 2026-01-01 --to " +
			"2026-03-31",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			periods, err := periodsToAdd(monthName, year, from, to)
			if err != nil {
				return err
			}
			key, err := a.ClosingKey()
			if err != nil {
				return err
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			added, err := books.AddPeriods(c.Context(), db.Pool, org, periods, books.AddPeriodsOptions{Key: key})
			if err != nil {
				return err
			}
			return a.Emit(map[string]any{"orgId": org, "added": len(added)}, func(w io.Writer) error {
				if n := len(periods) - len(added); n > 0 {
					nothing := ""
					if len(added) == 0 {
						nothing = "Nothing was changed: "
					}
					a.Say("%s%s there already; `daybook periods list` shows them.", nothing,
						phrase.Plural(int64(n), "period was", "periods were"))
				}
				return a.Print(w, periodsTable(added))
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
		return nil, cli.Usagef("give either --month, --year, or --from and --to")
	case year != "":
		return parseYear(year)
	case monthName != "":
		p, err := parseMonth(monthName)
		return []models.Period{p}, err
	case from == "" || to == "":
		return nil, cli.Usagef("give both --from and --to")
	}
	first, last, err := (&spanFlags{from: from, to: to}).parse()
	return []models.Period{{StartsOn: first, EndsOn: last}}, err
}

func periodsCloseCommand(a *cli.App) *cobra.Command {
	var options books.CloseOptions
	command := periodsChangeCommand(a, "close",
		func(ctx context.Context, db books.DB, org string, p models.Period) (c books.PeriodChange, err error) {
			if options.Key, err = a.ClosingKey(); err != nil {
				return c, err
			}
			return books.ClosePeriod(ctx, db, org, p, options)
		})
	command.Use = "close --org ORG (--month MONTH | --year YEAR | --from DAY) [--force]"
	command.Short = "Close a period, or a year: nothing is posted into it any more"
	command.Long = "Closes a period, or all of a year together. The command waits for chunks that are being posted for the organization; after that\n" +
		"nothing is posted into the period until it is opened, nor on days before it that are in no open period. Periods before it that\n" +
		"are open stay open, and it says so. `daybook periods policy` says what happens to documents with such a date.\n\n" +
		"If jobs have failed or wait whose documents have such a date, the command names them and closes nothing; --force closes\n" +
		"all the same. It goes by the dates of the documents, of their postings, and those that the rules compute. Documents in an\n" +
		"application's own tables that were never posted are not seen. `daybook periods check` says what else is open.\n\n" +
		"The closing is a row of a chain of hashes, which `daybook audit` checks. DAYBOOK_CLOSING_KEY names the private key that signs it."
	command.Flags().BoolVar(&options.Force, "force", false,
		"close it although documents with a date in it, or before it, are not posted")
	return command
}

func periodsOpenCommand(a *cli.App) *cobra.Command {
	command := periodsChangeCommand(a, "open",
		func(ctx context.Context, db books.DB, org string, p models.Period) (books.PeriodChange, error) {
			return books.OpenPeriod(ctx, db, org, p, books.OpenOptions{})
		})
	command.Use = "open --org ORG (--month MONTH | --year YEAR | --from DAY)"
	command.Short = "Open a period, or a year, and try again what had failed because it was closed"
	command.Long = "Opens a period, or all of a year together. Jobs of the organization that had failed with " +
		"PERIOD_CLOSED are pending again."
	return command
}

type periodChange func(ctx context.Context, db books.DB, org string, p models.Period) (books.PeriodChange, error)

func periodsChangeCommand(a *cli.App, verb string, change periodChange) *cobra.Command {
	var org, monthName, year, from string
	command := &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			wanted, err := periodsToChange(monthName, year, from)
			if err != nil {
				return err
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			changed, stillOpen := make([]books.PeriodChange, 0, len(wanted)), []models.Period(nil)
			err = store.Begin(c.Context(), db.Pool, func(tx pgx.Tx) error {
				if year != "" {
					if wanted, err = periodsWithin(c.Context(), tx, org, wanted); err != nil {
						return err
					}
				}
				for _, p := range wanted {
					done, err := change(c.Context(), books.In(tx), org, p)
					if err != nil {
						return err
					}
					changed = append(changed, done)
				}
				stillOpen, err = openBefore(c.Context(), tx, org, changed[0].StartsOn)
				return err
			})
			if err != nil {
				return err
			}
			if n := len(stillOpen); n > 0 && verb == "close" {
				a.Say("Note: %s still open, from %s on: documents can be posted there. `daybook periods list` shows them.",
					phrase.Plural(int64(n), "period before is", "periods before are"), stillOpen[0].StartsOn)
			}
			if last := changed[len(changed)-1].EndsOn; verb == "close" && !last.Before(today()) {
				a.Say("Note: the period to %s is not over: no document that comes later can be posted there.", last)
			}
			return showPeriodChanges(a, changed, year != "")
		},
	}
	orgFlag(command, &org)
	command.Flags().StringVar(&monthName, "month", "", "the month, such as 2026-03")
	command.Flags().StringVar(&year, "year", "", "all periods of a year such as 2026, or none of them")
	command.Flags().StringVar(&from, "from", "", "the first day of the period")
	return command
}

func today() models.Date {
	now := time.Now()
	return models.NewDate(now.Year(), now.Month(), now.Day())
}

// periodsWithin are the organization's periods from the first to the last day of some.
func periodsWithin(ctx context.Context, tx pgx.Tx, org string, span []models.Period) ([]models.Period, error) {
	all, err := books.Periods(ctx, books.In(tx), org)
	if err != nil {
		return nil, err
	}
	first, last := span[0].StartsOn, span[len(span)-1].EndsOn
	within := slices.DeleteFunc(all,
		func(p models.Period) bool { return p.StartsOn.Before(first) || last.Before(p.EndsOn) })
	if len(within) == 0 {
		return nil, cli.Tagged(books.ErrPeriodNotFound,
			"organization %s has no period from %s to %s: `daybook periods list` shows those that it has", org, first, last)
	}
	return within, nil
}

// ChangedPeriod is a period after its change, for programs.
type ChangedPeriod struct {
	books.PeriodChange
	// Open and Closing are those of PeriodChange.
	Open    []answers.ClosingItem `json:"open,omitempty"`
	Closing *answers.Closing      `json:"closing,omitempty"`
}

func changedPeriod(c *books.PeriodChange) (out ChangedPeriod, err error) {
	out = ChangedPeriod{PeriodChange: *c, Open: answers.List(c.Open, answers.ClosingItemOf)}
	if c.Closing != nil {
		out.Closing = new(answers.Closing)
		*out.Closing, err = answers.ClosingOf(c.Closing)
	}
	return out, err
}

// showPeriodChanges prints one change, or those of a year.
func showPeriodChanges(a *cli.App, changed []books.PeriodChange, list bool) error {
	all := make([]ChangedPeriod, len(changed))
	for i := range changed {
		var err error
		if all[i], err = changedPeriod(&changed[i]); err != nil {
			return err
		}
	}
	var shown any = all[0]
	if list {
		shown = map[string]any{"periods": all}
	}
	return a.Emit(shown, func(w io.Writer) error {
		for _, p := range changed {
			if p.Unposted != nil {
				a.Say("%s", p.Unposted.Sentence())
			}
			for _, i := range p.Open {
				if i.Account != "" {
					a.Say("Open: %s", closingItemText(i))
				}
			}
			if !p.Changed && p.Returned == 0 {
				a.Say("Nothing was changed: the period from %s on is %s already.", p.StartsOn, p.State)
			}
			if _, err := fmt.Fprintf(w, "%s to %s: %s%s\n", p.StartsOn, p.EndsOn, p.State,
				returnedText(p.Returned)); err != nil {
				return err
			}
		}
		return nil
	})
}

// openBefore are the periods before a day that are open: a closing leaves them so.
func openBefore(ctx context.Context, tx pgx.Tx, org string, day models.Date) ([]models.Period, error) {
	all, err := books.Periods(ctx, books.In(tx), org)
	return slices.DeleteFunc(all,
		func(p models.Period) bool { return p.State != models.PeriodOpen || !p.StartsOn.Before(day) }), err
}

func returnedText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s pending again", phrase.Plural(int64(n), "job is", "jobs are"))
}

// periodsToChange returns the period that is named, of which the last day is set only for a month;
// or the months of a year.
func periodsToChange(monthName, year, from string) ([]models.Period, error) {
	named := slices.DeleteFunc([]string{monthName, year, from}, func(text string) bool { return text == "" })
	switch {
	case len(named) != 1:
		return nil, cli.Usagef("give either --month, --year or --from")
	case year != "":
		return parseYear(year)
	case monthName != "":
		p, err := parseMonth(monthName)
		return []models.Period{p}, err
	}
	day, err := parseDay("--from", from)
	return []models.Period{{StartsOn: day}}, err
}

func periodsPolicyCommand(a *cli.App) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "policy fail|first_open_day --org ORG",
		Short: "Choose what happens to documents with a posting date in a closed period",
		Long: "Chooses what happens to documents with a posting date in a closed period: they fail with PERIOD_CLOSED until the period is\n" +
			"opened, or they are posted on the first open day after it. Jobs that had failed with PERIOD_CLOSED are " +
			"pending again.",
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{string(models.PolicyFail), string(models.PolicyFirstOpenDay)},
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) error {
			done, err := books.SetClosedPeriodPolicy(c.Context(), db.Pool, org, models.ClosedPeriodPolicy(args[0]))
			if err != nil {
				return err
			}
			return a.Emit(map[string]any{"orgId": org, "policy": args[0], "changed": done.Changed, "returned": done.Returned},
				func(w io.Writer) error {
					if !done.Changed && done.Returned == 0 {
						a.Say("Nothing was changed: the policy is %s already.", args[0])
					}
					_, err := fmt.Fprintf(w, "%s: %s%s\n", org, args[0], returnedText(done.Returned))
					return err
				})
		}),
	}
	orgFlag(command, &org)
	return command
}
