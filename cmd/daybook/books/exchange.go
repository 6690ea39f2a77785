package books

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
)

func exchangeCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "exchange",
		Short: "Show and book what was won and lost by rates of currencies",
	}
	command.AddCommand(exchangeShowCommand(a), exchangeBookCommand(a))
	return command
}

func exchangeShowCommand(a *cli.App) *cobra.Command {
	var org, until string
	command := &cobra.Command{
		Use:   "show --org ORG",
		Short: "Show what was won and lost where items in other currencies pay each other",
		Args:  cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			day, err := parseDay("--until", until)
			if err != nil {
				return err
			}
			e, err := books.ExchangeDifferences(c.Context(), db.Pool, org, books.ExchangeOptions{Until: day})
			if err != nil {
				return err
			}
			out := answers.ExchangeOf(&e, "")
			return a.Emit(out, func(w io.Writer) error {
				t := cli.NewTable("GROUP", "ACCOUNT", "DEBIT", "RATE", "CREDIT", "RATE", "CURRENCY", "AMOUNT", "DIFFERENCE")
				t.Right = []int{0, 3, 5, 7, 8}
				for _, d := range out.Differences {
					t.Add(strconv.FormatInt(d.Group, 10), d.Account, d.DebitDocument, d.DebitRate, d.CreditDocument, d.CreditRate, d.Currency,
						string(d.Amount), string(d.Difference))
				}
				if err := a.Print(w, t); err != nil {
					return err
				}
				return printExchange(w, &out)
			})
		}),
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	command.Flags().StringVar(&until, "until", "", "what was posted until this day, such as 2026-03-31; default: all")
	_ = command.MarkFlagRequired("org")
	return command
}

// printExchange says what was won or lost in all.
func printExchange(w io.Writer, e *answers.Exchange) error {
	if e.Missing > 0 {
		if _, err := fmt.Fprintf(w, "%d without a rate: `daybook rates set`\n", e.Missing); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("realised: %s %s", e.Realised, e.Currency)
	if e.ToBook != "" {
		text += fmt.Sprintf(", booked: %s, to book: %s", e.Booked, e.ToBook)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func exchangeBookCommand(a *cli.App) *cobra.Command {
	var org, until string
	var o books.ExchangeBooking
	command := &cobra.Command{
		Use:   "book --until DAY --org ORG",
		Short: "Write a journal for exchange differences that are not booked yet",
		Long: "Writes a journal, dated the day, for what was won or lost until it and does not stand on the adjustment account yet; a\n" +
			"worker posts it. Booked again it writes nothing. The accounts are kept for the next time.",
		Example: "  daybook exchange book --until 2026-03-31 --adjustment 1299 --gain 4840 --loss 6880 --org acme",
		Args:    cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) (err error) {
			if o.Until, err = parseDay("--until", until); err != nil {
				return err
			}
			b, err := books.BookExchangeDifferences(c.Context(), db.Pool, org, o)
			if err != nil {
				return err
			}
			out := answers.ExchangeOf(&b.Exchange, b.DocumentID)
			return a.Emit(out, func(w io.Writer) error {
				if err := printExchange(w, &out); err != nil || b.DocumentID == "" {
					return err
				}
				_, err := fmt.Fprintf(w, "journal %s is written\n", b.DocumentID)
				return err
			})
		}),
	}
	flags := command.Flags()
	flags.StringVar(&org, "org", "", "the organization")
	flags.StringVar(&until, "until", "", "the last day, such as 2026-03-31")
	flags.StringVar(&o.Adjustment, "adjustment", "", "the account that takes what receivables and payables are worth more or less")
	flags.StringVar(&o.Gain, "gain", "", "the account of gains")
	flags.StringVar(&o.Loss, "loss", "", "the account of losses")
	_ = command.MarkFlagRequired("org")
	_ = command.MarkFlagRequired("until")
	return command
}
