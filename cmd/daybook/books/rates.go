package books

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

func ratesCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "rates",
		Short: "Set and list what currencies are worth in an organization's own currency",
	}
	command.AddCommand(ratesOwnCommand(a), ratesListCommand(a), ratesSetCommand(a), ratesImportCommand(a))
	return command
}

func ratesOwnCommand(a *cli.App) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:     "own CURRENCY --org ORG",
		Short:   "Set an organization's own currency, into which exchange differences are computed",
		Example: "  daybook rates own EUR --org acme",
		Args:    cobra.ExactArgs(1),
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) error {
			change, err := books.SetOwnCurrency(c.Context(), db.Pool, org, args[0])
			if err != nil {
				return err
			}
			return a.Emit(change, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: %s\n", args[0], cli.ChangedText(change.Changed))
				return err
			})
		}),
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	_ = command.MarkFlagRequired("org")
	return command
}

func ratesListCommand(a *cli.App) *cobra.Command {
	var org string
	var o books.RatesOptions
	var page cli.PageFlags
	command := &cobra.Command{
		Use:   "list --org ORG",
		Short: "List rates, the latest day first",
		Args:  cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			if err := checkCurrency(o.Currency); err != nil {
				return err
			}
			var after ledgerdb.RatePlace
			if err := page.Read(&after); err != nil {
				return err
			}
			o.After, o.Limit = after.Rate(), page.Limit+1
			own, err := books.OwnCurrency(c.Context(), db.Pool, org)
			if err != nil {
				return err
			}
			list, err := books.Rates(c.Context(), db.Pool, org, o)
			if err != nil {
				return err
			}
			list, next := cursor.Page(page.Limit, list, func(r models.CurrencyRate) any { return ledgerdb.PlaceOfRate(&r) })
			return a.Emit(answers.RateListOf(own, list, next), func(w io.Writer) error {
				defer a.More(next)
				t := cli.NewTable("CURRENCY", "FROM", "RATE", "IN", "SOURCE", "SET BY")
				t.Right = []int{2}
				for _, r := range list {
					t.Add(r.Currency, r.ValidOn.String(), r.Rate, own, r.Source, r.Actor)
				}
				return a.Print(w, t)
			})
		}),
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	command.Flags().StringVar(&o.Currency, "currency", "", "only of this currency")
	page.Add(command, "rates", store.DefaultLimit)
	_ = command.MarkFlagRequired("org")
	return command
}

func ratesSetCommand(a *cli.App) *cobra.Command {
	var org, on string
	var rate models.CurrencyRate
	command := &cobra.Command{
		Use:     "set CURRENCY --on DAY --rate RATE --org ORG",
		Short:   "Set what one unit of a currency is worth from a day on",
		Example: "  daybook rates set USD --on 2026-03-31 --rate 0.9248 --source ECB --org acme",
		Args:    cobra.ExactArgs(1),
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) (err error) {
			rate.Currency = args[0]
			if rate.ValidOn, err = parseDay("--on", on); err != nil {
				return err
			}
			return putRates(c, a, db, org, []models.CurrencyRate{rate})
		}),
	}
	flags := command.Flags()
	flags.StringVar(&org, "org", "", "the organization")
	flags.StringVar(&on, "on", "", "the day, such as 2026-03-31")
	flags.StringVar(&rate.Rate, "rate", "", "units of the own currency for one of this one, such as 0.9248")
	flags.StringVar(&rate.Source, "source", "", "where the rate is from")
	for _, name := range []string{"org", "on", "rate"} {
		_ = command.MarkFlagRequired(name)
	}
	return command
}

func ratesImportCommand(a *cli.App) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "import FILE|- --org ORG",
		Short: "Set rates from a CSV file with the columns currency, valid_on, rate and, optionally, source",
		Args:  cobra.ExactArgs(1),
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) error {
			data, err := a.ReadInput(args[0])
			if err != nil {
				return err
			}
			rates, err := books.ParseRates(data)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return putRates(c, a, db, org, rates)
		}),
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	_ = command.MarkFlagRequired("org")
	return command
}

func putRates(c *cobra.Command, a *cli.App, db *cli.Database, org string, rates []models.CurrencyRate) error {
	changed, err := books.PutRates(c.Context(), db.Pool, org, rates, books.PutRatesOptions{})
	if err != nil {
		return err
	}
	return a.Emit(map[string]any{"rates": len(rates), "changed": changed}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s, %d of them new or changed\n", phrase.Plural(int64(len(rates)), "rate", "rates"), changed)
		return err
	})
}
