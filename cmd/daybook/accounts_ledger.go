package main

import (
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/models"
)

// accountLedger is what was posted to an account, for programs.
type accountLedger struct {
	OrgID   string         `json:"org_id"`
	Account models.Account `json:"account"`
	From    models.Date    `json:"from"`
	To      models.Date    `json:"to"`
	// Balances are of the whole span, a row a currency.
	Balances []answers.AccountBalance `json:"balances"`
	Entries  []answers.LedgerEntry    `json:"entries"`
	// More says that there are entries past the limit; Next is the cursor of the page with them.
	More bool   `json:"more"`
	Next string `json:"next_cursor,omitempty"`
}

func accountsLedgerCommand(a *app) *cobra.Command {
	var filter ledgerdb.BalanceFilter
	var span spanFlags
	var page pageFlags
	command := &cobra.Command{
		Use:   "ledger CODE --org ORG",
		Short: "List what was posted to an account, with the running balance",
		Long: "Lists the entries to an account in the order of their posting dates, with the balance after each: debits less credits,\n" +
			"a currency at a time. What was posted before the first day makes up the opening balance. The opening and the closing balance are those of the\n" +
			"whole span on every page.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if filter.From, filter.To, err = span.parse(); err != nil {
				return err
			}
			if err = checkCurrency(filter.Currency); err != nil {
				return err
			}
			var after ledgerdb.LedgerPlace
			if err = page.read(&after); err != nil {
				return err
			}
			filter.Account = args[0]
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			account, err := findAccount(c, db, filter.OrgID, filter.Account)
			if err != nil {
				return err
			}
			l, err := ledgerdb.ReadAccountLedgerAfter(c.Context(), db.Pool, filter, after, page.limit)
			if err != nil {
				return err
			}
			out := accountLedger{
				OrgID: filter.OrgID, Account: account, From: filter.From, To: filter.To,
				Balances: answers.List(l.Balances, answers.AccountBalanceOf), Entries: answers.List(l.Lines, answers.LedgerEntryOf), More: l.More,
			}
			if out.More {
				out.Next = cursor.Of(l.Lines[len(l.Lines)-1].Place())
			}
			return a.emit(out, func(w io.Writer) error {
				defer a.more(out.Next)
				return a.printAccountLedger(w, out)
			})
		},
	}
	orgFlag(command, &filter.OrgID)
	flags := command.Flags()
	span.add(flags)
	flags.StringVar(&filter.Currency, "currency", "", "only in this currency, such as EUR")
	page.add(command, "entries", store.DefaultLimit)
	return command
}

// findAccount reads an account of the organization's chart.
func findAccount(c *cobra.Command, db *database, org, code string) (models.Account, error) {
	if _, err := db.Organization(c.Context(), org); err != nil {
		return models.Account{}, err
	}
	accounts, err := books.Accounts(c.Context(), db.Pool, org)
	if err != nil {
		return models.Account{}, err
	}
	for _, account := range accounts {
		if account.Code == code {
			return account, nil
		}
	}
	return models.Account{}, tagged(errNoAccount, "organization %s has no account %s; `daybook accounts list` shows those that it has", org, code)
}

func (a *app) printAccountLedger(w io.Writer, l accountLedger) error {
	t := newTable("DATE", "DOCUMENT", "KIND", "IMPACT", "DEBIT", "CREDIT", "BALANCE", "CURRENCY", "RULE")
	t.right = []int{3, 4, 5, 6}
	for _, b := range l.Balances {
		t.add(l.From.String(), "", "opening", "", "", "", b.Opening, b.Currency, "")
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		debit, credit := sides(models.Side(e.Side), e.Amount)
		t.add(e.PostingDate, e.DocumentID, e.Kind, strconv.FormatInt(e.ImpactID, 10), debit, credit,
			e.Balance, e.Currency, e.RuleID+"/"+e.RuleLineID)
	}
	for _, b := range l.Balances {
		t.add(l.To.String(), "", "closing", "", b.Debit, b.Credit, b.Closing, b.Currency, "")
	}
	return a.print(w, t)
}
