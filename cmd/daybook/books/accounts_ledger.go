package books

import (
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/models"
)

// AccountLedger is what was posted to an account, for programs.
type AccountLedger struct {
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

func accountsLedgerCommand(a *cli.App) *cobra.Command {
	var filter ledgerdb.BalanceFilter
	var span spanFlags
	var page cli.PageFlags
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
			if err = page.Read(&after); err != nil {
				return err
			}
			filter.Account = args[0]
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			account, err := findAccount(c, db, filter.OrgID, filter.Account)
			if err != nil {
				return err
			}
			l, err := ledgerdb.ReadAccountLedgerAfter(c.Context(), db.Pool, filter, after, page.Limit)
			if err != nil {
				return err
			}
			out := AccountLedger{
				OrgID: filter.OrgID, Account: account, From: filter.From, To: filter.To,
				Balances: answers.List(l.Balances, answers.AccountBalanceOf),
				Entries:  answers.List(l.Lines, answers.LedgerEntryOf), More: l.More,
			}
			if out.More {
				out.Next = cursor.Of(l.Lines[len(l.Lines)-1].Place())
			}
			return a.Emit(out, func(w io.Writer) error {
				defer a.More(out.Next)
				return printAccountLedger(a, w, out)
			})
		},
	}
	orgFlag(command, &filter.OrgID)
	flags := command.Flags()
	span.add(flags)
	flags.StringVar(&filter.Currency, "currency", "", "only in this currency, such as EUR")
	page.Add(command, "entries", store.DefaultLimit)
	return command
}

// findAccount reads an account of the organization's chart.
func findAccount(c *cobra.Command, db *cli.Database, org, code string) (models.Account, error) {
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
	return models.Account{}, cli.Tagged(errNoAccount,
		"organization %s has no account %s; `daybook accounts list` shows those that it has", org, code)
}

func printAccountLedger(a *cli.App, w io.Writer, l AccountLedger) error {
	t := cli.NewTable("DATE", "DOCUMENT", "KIND", "IMPACT", "DEBIT", "CREDIT", "BALANCE", "CURRENCY", "RULE")
	t.Right = []int{3, 4, 5, 6}
	for _, b := range l.Balances {
		t.Add(l.From.String(), "", "opening", "", "", "", string(b.Opening), b.Currency, "")
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		debit, credit := cli.Sides(models.Side(e.Side), string(e.Amount))
		t.Add(e.PostingDate, e.DocumentID, e.Kind, strconv.FormatInt(e.ImpactID, 10), debit, credit,
			string(e.Balance), e.Currency, e.RuleID+"/"+e.RuleLineID)
	}
	for _, b := range l.Balances {
		t.Add(l.To.String(), "", "closing", "", string(b.Debit), string(b.Credit), string(b.Closing), b.Currency, "")
	}
	return a.Print(w, t)
}
