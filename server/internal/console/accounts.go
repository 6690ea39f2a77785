package console

import (
	"context"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
)

const (
	// ledgerLines is how many entries an account's page shows; a list of entries goes on from page to
	// page.
	ledgerLines = 200
	// accountsShown is how many accounts of a chart are shown.
	accountsShown = 2000
)

var errNoAccount = failure.New(failure.AccountNotFound, "no such account")

var accountsPage = view{
	Title: "Accounts", Template: "accounts", Nav: "accounts",
	Lead: "The chart of accounts: what may be posted to.",
}

// accounts adds the chart of accounts, and what was posted to an account.
func (c *console) accounts() {
	c.addToMenu(menuEntry{Group: "Ledger", Name: "Accounts", Path: "accounts"})
	c.accountsEdit()
	c.ledgerPage("GET "+Root+"accounts", accountsPage, func(ctx context.Context, r *request, org string) (*view, error) {
		if code := r.FormValue("account"); code != "" {
			return c.accountPage(ctx, r, org, code)
		}
		accounts, err := books.Accounts(ctx, c.Pool, org)
		if err != nil {
			return nil, err
		}
		return &view{Data: map[string]any{
			"Accounts": accounts[:min(len(accounts), accountsShown)], "Total": len(accounts),
			"Org": org,
		}}, nil
	})
}

// accountLine is an entry to an account with the balance after it.
type accountLine struct {
	ledgerdb.LedgerLine
	Line entryLine
}

// accountPage shows what was posted to an account, with the running balance: the way from a sum of
// the trial balance to its entries.
func (c *console) accountPage(ctx context.Context, r *request, org, code string) (*view, error) {
	form := r.filter(filters{
		Action: Root + "accounts", Hidden: append(r.keptOrg(), field{Name: "account", Value: code}),
		Clear: r.withoutFilters("period", "from", "to", "currency"), Fields: balanceFields(),
	})
	f, err := balanceFilter(r, org)
	if err != nil {
		return nil, err
	}
	f.Account = code
	accounts, err := books.Accounts(ctx, c.Pool, org)
	if err != nil {
		return nil, err
	}
	account, err := accountOf(accounts, org, code)
	if err != nil {
		return nil, err
	}
	ledger, err := ledgerdb.ReadAccountLedger(ctx, c.Pool, f, ledgerLines)
	if err != nil {
		return nil, err
	}
	lines := make([]accountLine, len(ledger.Lines))
	for i, l := range ledger.Lines {
		lines[i] = accountLine{l, entryLine{Account: l.Account, Side: l.Side, Amount: l.Amount, Currency: l.Currency}}
	}
	return &view{
		Title: "Account " + code, Lead: account.Name, Template: "account",
		Trail: []trail{{
			"Trial balance",
			r.link("trial-balance", "period", r.FormValue("period"), "from", r.FormValue("from"), "to", r.FormValue("to")),
		}},
		Data: map[string]any{
			"Org": org, "Account": account, "Balances": ledger.Balances, "Lines": lines, "More": ledger.More,
			"From": f.From, "To": f.To, "Currency": f.Currency,
			"Filters": form,
		},
	}, nil
}
