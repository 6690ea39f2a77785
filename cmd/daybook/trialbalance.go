package main

import (
	"io"
	"math/big"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// balanceRow is one line of a trial balance, for programs: amounts in minor units, and the same as decimals.
type balanceRow struct {
	Account      string             `json:"account"`
	Name         string             `json:"name"`
	Type         models.AccountType `json:"type,omitempty"`
	Currency     string             `json:"currency"`
	DebitMinor   *big.Int           `json:"debit_minor"`
	CreditMinor  *big.Int           `json:"credit_minor"`
	BalanceMinor *big.Int           `json:"balance_minor"`
	Debit        string             `json:"debit"`
	Credit       string             `json:"credit"`
	Balance      string             `json:"balance"`
}

// trialBalance is what was posted, by account, and the total of each currency.
type trialBalance struct {
	Accounts []balanceRow `json:"accounts"`
	Totals   []balanceRow `json:"totals"`
	// Balanced says that debits equal credits in each currency.
	Balanced bool `json:"balanced"`
}

func newBalanceRow(l store.BalanceLine) balanceRow {
	balance := new(big.Int).Sub(l.Debit, l.Credit)
	return balanceRow{
		Account: l.Account, Name: l.Name, Type: l.Type, Currency: l.Currency,
		DebitMinor: l.Debit, CreditMinor: l.Credit, BalanceMinor: balance,
		Debit: formatMinor(l.Debit, l.Currency), Credit: formatMinor(l.Credit, l.Currency), Balance: formatMinor(balance, l.Currency),
	}
}

// newTrialBalance adds up lines, which come in the order of their currencies.
func newTrialBalance(lines []store.BalanceLine) trialBalance {
	b := trialBalance{Accounts: []balanceRow{}, Totals: []balanceRow{}, Balanced: true}
	var total *store.BalanceLine
	end := func() {
		if total == nil {
			return
		}
		row := newBalanceRow(*total)
		b.Totals = append(b.Totals, row)
		b.Balanced = b.Balanced && row.BalanceMinor.Sign() == 0
	}
	for _, l := range lines {
		if total == nil || total.Currency != l.Currency {
			end()
			total = &store.BalanceLine{Name: "total", Currency: l.Currency, Debit: new(big.Int), Credit: new(big.Int)}
		}
		b.Accounts = append(b.Accounts, newBalanceRow(l))
		total.Debit.Add(total.Debit, l.Debit)
		total.Credit.Add(total.Credit, l.Credit)
	}
	end()
	return b
}

func trialBalanceCommand(a *app) *cobra.Command {
	var org, currency string
	var all bool
	command := &cobra.Command{
		Use:   "trial-balance --org ORG|--all",
		Short: "Sum what was posted by account; debits and credits are equal in each currency",
		Long: "Sums what was posted by currency and account; the balance is debit less credit. --all adds up the accounts of the same\n" +
			"code of all organizations. Should debits and credits differ, the command fails.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (org == "") != all {
				return usagef("give either --org or --all")
			}
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			if !all {
				if _, err := db.Organization(c.Context(), org); err != nil {
					return err
				}
			}
			lines, err := store.TrialBalance(c.Context(), db.Pool, org, currency)
			if err != nil {
				return err
			}
			b := newTrialBalance(lines)
			if err := a.emit(b, func(w io.Writer) error { return a.printTrialBalance(w, b) }); err != nil {
				return err
			}
			if !b.Balanced {
				return tagged(errOutOfBalance, "debits and credits differ; the database refuses such entries, so somebody changed them by other means")
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&org, "org", "", "the organization")
	flags.BoolVar(&all, "all", false, "all organizations together")
	flags.StringVar(&currency, "currency", "", "only in this currency")
	return command
}

func (a *app) printTrialBalance(w io.Writer, b trialBalance) error {
	t := newTable("CURRENCY", "ACCOUNT", "NAME", "DEBIT", "CREDIT", "BALANCE")
	t.right = []int{3, 4, 5}
	next := 0
	for i, r := range b.Accounts {
		t.add(r.Currency, r.Account, r.Name, r.Debit, r.Credit, r.Balance)
		if i == len(b.Accounts)-1 || b.Accounts[i+1].Currency != r.Currency {
			total := b.Totals[next]
			next++
			t.add(total.Currency, "", "total", total.Debit, total.Credit, total.Balance)
		}
	}
	return a.print(w, t)
}
