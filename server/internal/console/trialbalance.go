package console

import (
	"context"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/days"
)

var trialBalancePage = view{
	Title: "Trial balance", Template: "trial-balance", Nav: "trial-balance",
	Lead: "What was posted by account. Balances are debits less credits.",
}

// trialBalance adds the page of the trial balance.
func (c *console) trialBalance() {
	c.addToMenu(menuEntry{Group: "Ledger", Name: "Trial balance", Path: "trial-balance"})
	c.ledgerPage("GET "+Root+"trial-balance", trialBalancePage, c.trialBalancePage)
}

// trialCurrency is the trial balance of one currency.
type trialCurrency struct {
	Currency string
	Accounts []ledgerdb.SpanBalance
	Total    ledgerdb.SpanBalance
	// Balanced says that debits equal credits, before, in and after the span.
	Balanced bool
}

// balanceFilter reads what a page about balances is to sum: period is a month or a year, in place
// of from and to.
func balanceFilter(r *request, org string) (ledgerdb.BalanceFilter, error) {
	f := ledgerdb.BalanceFilter{OrgID: org, Currency: r.FormValue("currency")}
	from, to, err := spanParameters(r)
	if period := r.FormValue("period"); err == nil && period != "" {
		if !from.IsZero() || !to.IsZero() {
			return f, wrongParameter("give either a period, or the first and the last day")
		}
		if from, to, err = days.Span(period); err != nil {
			err = wrongParameter("period %v", err)
		}
	}
	f.From, f.To = from, to
	return f, err
}

// balanceFields are the inputs of balanceFilter.
func balanceFields() []field {
	return []field{
		{Name: "period", Label: "Month or year", Placeholder: "2026-03"},
		{Name: "from", Label: "or posted from", Type: "date"},
		{Name: "to", Label: "to", Type: "date"},
		{Name: "currency", Label: "Currency", Placeholder: "EUR"},
	}
}

func (c *console) trialBalancePage(ctx context.Context, r *request, org string) (*view, error) {
	form := r.filter(filters{
		Action: Root + "trial-balance", Hidden: r.keptOrg(), Clear: r.withoutFilters("period", "from", "to", "currency"),
		Fields: balanceFields(),
	})
	f, err := balanceFilter(r, org)
	if err != nil {
		return nil, err
	}
	trial, err := ledgerdb.ReadTrial(ctx, c.Pool, f)
	if err != nil {
		return nil, err
	}
	currencies := make([]trialCurrency, len(trial.Totals))
	rest := trial.Accounts
	for i, total := range trial.Totals {
		n := 0
		for n < len(rest) && rest[n].Currency == total.Currency {
			n++
		}
		currencies[i] = trialCurrency{total.Currency, rest[:n], total, total.Opening.Sign() == 0 &&
			total.Closing.Sign() == 0}
		rest = rest[n:]
	}
	return &view{Data: map[string]any{
		"Org": org, "Currencies": currencies, "Balanced": trial.Balanced,
		"Spanned": !f.From.IsZero() || !f.To.IsZero(), "From": f.From, "To": f.To,
		"Filters": form,
	}}, nil
}
