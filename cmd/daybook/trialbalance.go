package main

import (
	"context"
	"io"
	"math/big"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/minor"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
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
	// Opening and closing balances are there when a span of days was asked for.
	OpeningMinor *big.Int `json:"opening_minor,omitempty"`
	ClosingMinor *big.Int `json:"closing_minor,omitempty"`
	Opening      *string  `json:"opening,omitempty"`
	Closing      *string  `json:"closing,omitempty"`
}

// trialBalance is what was posted, by account, and the total of each currency.
type trialBalance struct {
	From     *models.Date `json:"from,omitempty"`
	To       *models.Date `json:"to,omitempty"`
	Accounts []balanceRow `json:"accounts"`
	Totals   []balanceRow `json:"totals"`
	// Balanced says that debits equal credits in each currency, before, in and after the span.
	Balanced bool `json:"balanced"`
}

// newBalanceRow makes a row without opening and closing balance.
func newBalanceRow(b ledgerdb.SpanBalance) balanceRow {
	balance := new(big.Int).Sub(b.Debit, b.Credit)
	return balanceRow{
		Account: b.Account, Name: b.Name, Type: b.Type, Currency: b.Currency,
		DebitMinor: b.Debit, CreditMinor: b.Credit, BalanceMinor: balance,
		Debit: minor.Decimal(b.Debit, b.Currency), Credit: minor.Decimal(b.Credit, b.Currency), Balance: minor.Decimal(balance, b.Currency),
	}
}

// newSpanRow makes a row with both.
func newSpanRow(b ledgerdb.SpanBalance) balanceRow {
	r := newBalanceRow(b)
	r.OpeningMinor, r.ClosingMinor = b.Opening, b.Closing
	r.Opening, r.Closing = new(minor.Decimal(b.Opening, b.Currency)), new(minor.Decimal(b.Closing, b.Currency))
	return r
}

// trialRows makes the rows of a trial balance.
func trialRows(t ledgerdb.Trial, row func(ledgerdb.SpanBalance) balanceRow) trialBalance {
	b := trialBalance{Accounts: []balanceRow{}, Totals: []balanceRow{}, Balanced: t.Balanced}
	for _, l := range t.Accounts {
		b.Accounts = append(b.Accounts, row(l))
	}
	for _, total := range t.Totals {
		total.Name = "total"
		b.Totals = append(b.Totals, row(total))
	}
	return b
}

func trialBalanceCommand(a *app) *cobra.Command {
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
				return usagef("give either --org or --all-orgs")
			}
			var err error
			if filter.From, filter.To, err = span.parse(); err != nil {
				return err
			}
			if err = checkCurrency(filter.Currency); err != nil {
				return err
			}
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			if !all {
				if _, err := db.Organization(c.Context(), filter.OrgID); err != nil {
					return err
				}
			}
			b, err := readTrialBalance(c.Context(), db, filter, span.given())
			if err != nil {
				return err
			}
			if err := a.emit(b, func(w io.Writer) error { return a.printTrialBalance(w, b) }); err != nil {
				return err
			}
			if !b.Balanced {
				return tagged(errOutOfBalance, "debits and credits differ; the database refuses such entries, so they were changed by other means")
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

// currencyCode is what an ISO 4217 code looks like. No entry has another one, so that asking for "eur" would show nothing.
var currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)

// checkCurrency refuses what is no currency; empty: all.
func checkCurrency(code string) error {
	if code != "" && !currencyCode.MatchString(code) {
		return usagef("--currency %q: want three capital letters, such as EUR", code)
	}
	return nil
}

// readTrialBalance sums everything, or a span of days.
func readTrialBalance(ctx context.Context, db *database, f ledgerdb.BalanceFilter, spanned bool) (trialBalance, error) {
	t, err := ledgerdb.ReadTrial(ctx, db.Pool, f)
	if err != nil || !spanned {
		return trialRows(t, newBalanceRow), err
	}
	b := trialRows(t, newSpanRow)
	b.From, b.To = &f.From, &f.To
	return b, nil
}

func (a *app) printTrialBalance(w io.Writer, b trialBalance) error {
	t := newTable("CURRENCY", "ACCOUNT", "NAME", "DEBIT", "CREDIT", "BALANCE")
	t.right = []int{3, 4, 5}
	if b.From != nil {
		t = newTable("CURRENCY", "ACCOUNT", "NAME", "OPENING", "DEBIT", "CREDIT", "CLOSING")
		t.right = []int{3, 4, 5, 6}
	}
	add := func(r balanceRow) {
		if r.Opening == nil {
			t.add(r.Currency, r.Account, r.Name, r.Debit, r.Credit, r.Balance)
			return
		}
		t.add(r.Currency, r.Account, r.Name, *r.Opening, r.Debit, r.Credit, *r.Closing)
	}
	next := 0
	for i, r := range b.Accounts {
		add(r)
		if i == len(b.Accounts)-1 || b.Accounts[i+1].Currency != r.Currency {
			add(b.Totals[next])
			next++
		}
	}
	return a.print(w, t)
}
