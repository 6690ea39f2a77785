package books

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/minor"
)

func trialBalanceCommand(a *cli.App) *cobra.Command {
	var filter ledgerdb.BalanceFilter
	var span spanFlags
	var all bool
	command := &cobra.Command{
		Use:   "trial-balance --org ORG|--all-orgs",
		Short: "Sum what was posted by account; debits and credits are equal in each currency",
		Long: "Sums what was posted by currency and account; the balance is debit less credit. --all-orgs adds up the accounts of the same\n" +
			"code of all organizations. If debits and credits differ, the command fails.\n\n" +
			"With --period, or --from and --to, it shows the opening balance, what was posted in the span, and the closing balance.\n" +
			"The days are posting dates. No account is closed at the end of a year: its balance is carried forward.",
		Example: "  daybook trial-balance --org acme --period 2026-03",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (filter.OrgID == "") != all {
				return cli.Usagef("give either --org or --all-orgs")
			}
			var err error
			if filter.From, filter.To, err = span.parse(); err != nil {
				return err
			}
			if err = checkCurrency(filter.Currency); err != nil {
				return err
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			if !all {
				if _, err := db.Organization(c.Context(), filter.OrgID); err != nil {
					return err
				}
			}
			t, err := ledgerdb.ReadTrial(c.Context(), db.Pool, filter)
			if err != nil {
				return err
			}
			b := answers.TrialBalanceOf(&filter, &t)
			if err := a.Emit(b, func(w io.Writer) error { return PrintTrialBalance(a, w, b, span.given()) }); err != nil {
				return err
			}
			if !b.Balanced {
				return cli.Tagged(errOutOfBalance,
					"debits and credits differ; the database refuses such entries, so they were changed by other means")
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&filter.OrgID, "org", "", "the organization")
	flags.BoolVar(&all, "all-orgs", false, "all organizations together")
	flags.StringVar(&filter.Currency, "currency", "", "only in this currency, such as EUR")
	span.add(flags)
	return command
}

// checkCurrency refuses what is no currency; empty: all.
func checkCurrency(code string) error {
	if code != "" && !minor.IsCurrency(code) {
		return cli.Usagef("--currency %q: want three capital letters, such as EUR", code)
	}
	return nil
}

// PrintTrialBalance writes a trial balance for people. spanned: it is one of a span, with opening
// and closing balances.
func PrintTrialBalance(a *cli.App, w io.Writer, b answers.TrialBalance, spanned bool) error {
	t := cli.NewTable("CURRENCY", "ACCOUNT", "NAME", "DEBIT", "CREDIT", "BALANCE")
	t.Right = []int{3, 4, 5}
	if spanned {
		t = cli.NewTable("CURRENCY", "ACCOUNT", "NAME", "OPENING", "DEBIT", "CREDIT", "CLOSING")
		t.Right = []int{3, 4, 5, 6}
	}
	add := func(r answers.AccountBalance, name string) {
		cells := []string{r.Currency, r.Account, name}
		if spanned {
			cells = append(cells, string(r.Opening))
		}
		t.Add(append(cells, string(r.Debit), string(r.Credit), string(r.Closing))...)
	}
	next := 0
	for i, r := range b.Accounts {
		add(r, r.Name)
		if i == len(b.Accounts)-1 || b.Accounts[i+1].Currency != r.Currency {
			add(b.Totals[next], "total")
			next++
		}
	}
	return a.Print(w, t)
}
