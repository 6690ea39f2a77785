package books

import (
	"io"
	"math/big"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/text/minor"
)

func openItemsAgeingCommand(a *cli.App) *cobra.Command {
	var org, on string
	command := &cobra.Command{
		Use:   "ageing --org ORG",
		Short: "Sum what is open by counterparty and by how long it has been due",
		Long: "Sums what is open on a day by counterparty, account and currency: not due yet, and due for 1 to 30, 31 to 60, 61 to 90\n" +
			"and more days. A document without a due date is due on its issue date.",
		Example: "  daybook open-items ageing --org acme --on 2026-03-31",
		Args:    cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			day, err := parseDay("--on", on)
			if err != nil {
				return err
			}
			list, err := books.Ageing(c.Context(), db.Pool, org, books.AgeingOptions{On: day})
			if err != nil {
				return err
			}
			return a.Emit(answers.AgeingOf(day, list), func(w io.Writer) error {
				t := cli.NewTable("COUNTERPARTY", "ACCOUNT", "CURRENCY", "ITEMS", "OPEN", "NOT DUE", "1-30 DAYS", "31-60", "61-90", "LONGER")
				t.Right = []int{3, 4, 5, 6, 7, 8, 9}
				for _, r := range list {
					text := func(n *big.Int) string { return minor.Decimal(n, r.Currency) }
					t.Add(r.Counterparty, r.Account, r.Currency, strconv.FormatInt(r.Items, 10), text(r.Open), text(r.NotDue), text(r.Due30),
						text(r.Due60), text(r.Due90), text(r.Longer))
				}
				return a.Print(w, t)
			})
		}),
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	command.Flags().StringVar(&on, "on", "", "the day, such as 2026-03-31; default: today, in UTC")
	_ = command.MarkFlagRequired("org")
	return command
}

func openItemsStatementCommand(a *cli.App) *cobra.Command {
	var org string
	var o books.CounterpartyOptions
	var span spanFlags
	command := &cobra.Command{
		Use:   "statement --counterparty NAME --org ORG",
		Short: "List what a counterparty's documents have posted, with the balance after each",
		Long: "Lists what a counterparty's documents have posted on accounts of receivables, payables and advances in a span of posting\n" +
			"dates, with the balance before and after, and what is open of each document at its end. Documents that name no\n" +
			"counterparty and are in a group with them are of it, too.",
		Example: "  daybook open-items statement --org acme --counterparty 'Sample Customer' --period 2026",
		Args:    cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) (err error) {
			if o.From, o.To, err = span.parse(); err != nil {
				return err
			}
			list, err := books.CounterpartyStatement(c.Context(), db.Pool, org, o)
			if err != nil {
				return err
			}
			return a.Emit(answers.CounterpartyStatementOf(o.Counterparty, list), func(w io.Writer) error {
				t := cli.NewTable("ACCOUNT", "CURRENCY", "POSTED", "DOCUMENT", "NUMBER", "TYPE", "DUE", "AMOUNT", "BALANCE", "OPEN")
				t.Right = []int{7, 8, 9}
				for _, l := range list {
					text := func(n *big.Int) string { return minor.Decimal(n, l.Currency) }
					if l.ImpactID == 0 {
						t.Add(l.Account, l.Currency, "", "before", "", "", "", "", text(l.Balance), "")
						continue
					}
					t.Add(l.Account, l.Currency, l.PostingDate.String(), l.DocumentID, l.Number, string(l.Type), l.DueDate.String(),
						text(l.Amount), text(l.Balance), text(l.Open))
				}
				return a.Print(w, t)
			})
		}),
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	command.Flags().StringVar(&o.Counterparty, "counterparty", "", "the counterparty's name, as its documents have it")
	span.add(command.Flags())
	_ = command.MarkFlagRequired("org")
	_ = command.MarkFlagRequired("counterparty")
	return command
}
