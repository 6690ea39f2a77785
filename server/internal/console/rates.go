package console

import (
	"context"
	"strings"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

const (
	// ratesShown is how many rates the page shows.
	ratesShown = 200
	// differencesShown is how many exchange differences it shows.
	differencesShown = 100
)

var ratesPage = view{
	Title: "Rates", Template: "rates", Nav: "rates",
	Lead: "What currencies are worth in the organization's own one. A day without a rate has that of the latest day before it.",
}

// rates adds the page of rates, and the actions on them.
func (c *console) rates() {
	c.addToMenu(menuEntry{Group: "Ledger", Name: "Rates", Path: "rates"})
	c.ledgerPage("GET "+Root+"rates", ratesPage, c.rateList)
	c.action(Root+"rates/set", tokens.ScopeOperate, "rates.set", c.setRate)
	c.action(Root+"rates/own", tokens.ScopeOperate, "rates.own", c.setOwnCurrency)
	c.action(Root+"rates/book", tokens.ScopeOperate, "exchange.book", c.bookExchange)
}

func (c *console) rateList(ctx context.Context, r *request, org string) (*view, error) {
	form := r.filter(filters{
		Action: Root + "rates", Hidden: r.keptOrg(), Clear: r.withoutFilters("currency", "until"),
		Fields: []field{
			{Name: "currency", Label: "Currency", Placeholder: "USD"},
			{Name: "until", ID: "f-differences", Label: "Differences until", Type: "date"},
		},
	})
	own, err := books.OwnCurrency(ctx, c.Pool, org)
	if err != nil {
		return nil, err
	}
	list, err := books.Rates(ctx, c.Pool, org, books.RatesOptions{Currency: r.FormValue("currency"), Limit: ratesShown})
	if err != nil {
		return nil, err
	}
	hidden := []field{{Name: "org", Value: org}}
	data := map[string]any{
		"Org": org, "Own": own, "Rates": list,
		"Set": button{
			Action: Root + "rates/set", Label: "Set", Hidden: hidden, Next: r.URL.RequestURI(),
			Fields: []field{
				{Name: "currency", ID: "f-of", Label: "Currency", Placeholder: "USD"},
				{Name: "valid_on", Label: "From", Type: "date"},
				{Name: "rate", Label: "Worth in " + own, Placeholder: "0.9248"},
				{Name: "source", Label: "Source (optional)", Placeholder: "ECB"},
			},
		},
		"SetOwn": button{
			Action: Root + "rates/own", Label: "Set", Hidden: hidden, Next: r.URL.RequestURI(),
			Fields: []field{{Name: "currency", ID: "f-own", Label: "Own currency", Value: own, Placeholder: "EUR"}},
		},
		"Filters": form,
	}
	if own != "" {
		err = c.exchange(ctx, r, org, data)
	}
	return &view{Data: data}, err
}

// exchange adds what was won and lost by rates, and the button that books it.
func (c *console) exchange(ctx context.Context, r *request, org string, data map[string]any) error {
	until, err := dayParameter("until", r.FormValue("until"))
	if err != nil {
		return err
	}
	e, err := books.ExchangeDifferences(ctx, c.Pool, org, books.ExchangeOptions{Until: until})
	if err != nil {
		return err
	}
	shown := e.Differences[:min(len(e.Differences), differencesShown)]
	names, err := accountNames(ctx, c, org, shown, func(d *models.ExchangeDifference) string { return d.Account })
	if err != nil {
		return err
	}
	accounts, err := books.Accounts(ctx, c.Pool, org)
	if err != nil {
		return err
	}
	codes := make([]string, min(len(accounts), accountsShown))
	for i := range codes {
		codes[i] = accounts[i].Code
	}
	last := e.Accounts
	if last == nil {
		last = make([]string, 3)
	}
	if until.IsZero() {
		// The last day of the month before: what is booked is for a month that is being closed.
		now := r.now.UTC()
		until = models.NewDate(now.Year(), now.Month(), 0)
	}
	data["Exchange"], data["Differences"], data["Names"] = e, shown, names
	data["Book"] = button{
		Action: Root + "rates/book", Label: "Book", Hidden: []field{{Name: "org", Value: org}}, Next: r.URL.RequestURI(),
		Confirm: "A journal is written, dated the day, for the differences until it that do not stand on the adjustment account yet. A " +
			"worker posts it. The adjustment account must be used for nothing else.",
		Fields: []field{
			{Name: "until", Label: "Until", Value: until.String(), Type: "date"},
			{Name: "adjustment", Label: "Adjustment account", Value: last[0], Suggestions: codes},
			{Name: "gain", Label: "Account of gains", Value: last[1], Suggestions: codes},
			{Name: "loss", Label: "Account of losses", Value: last[2], Suggestions: codes},
		},
	}
	return nil
}

// bookExchange writes the journal of exchange differences.
func (c *console) bookExchange(ctx context.Context, r *request) (done, error) {
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	d := done{Org: org}
	o := books.ExchangeBooking{
		Adjustment: strings.TrimSpace(r.PostFormValue("adjustment")), Gain: strings.TrimSpace(r.PostFormValue("gain")),
		Loss: strings.TrimSpace(r.PostFormValue("loss")),
	}
	if o.Until, err = dayParameter("the day", r.PostFormValue("until")); err != nil {
		return d, err
	}
	b, err := books.BookExchangeDifferences(ctx, c.Pool, org, o)
	if err != nil {
		return d, err
	}
	d.Text = "Nothing was changed: all differences until " + o.Until.String() + " are booked already."
	if b.DocumentID != "" {
		d.Subject, d.To = b.DocumentID, documentAddress(r.chosenOrg(), b.DocumentID)
		d.Text = "The journal of " + money(b.ToBook, b.Currency) + " " + b.Currency + " is written. A worker posts it."
	}
	return d, nil
}

func (c *console) setRate(ctx context.Context, r *request) (done, error) {
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	rate := models.CurrencyRate{
		Currency: r.PostFormValue("currency"), Rate: r.PostFormValue("rate"), Source: r.PostFormValue("source"),
	}
	d := done{Org: org, Subject: rate.Currency, Text: "The rate is set."}
	if rate.ValidOn, err = dayParameter("the day", r.PostFormValue("valid_on")); err != nil {
		return d, err
	}
	changed, err := books.PutRates(ctx, c.Pool, org, []models.CurrencyRate{rate}, books.PutRatesOptions{})
	d.unless(changed > 0, "that is the rate already")
	return d, err
}

func (c *console) setOwnCurrency(ctx context.Context, r *request) (done, error) {
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	d := done{Org: org, Subject: r.PostFormValue("currency"), Text: "The own currency is set."}
	change, err := books.SetOwnCurrency(ctx, c.Pool, org, r.PostFormValue("currency"))
	d.unless(change.Changed, "that is the own currency already")
	return d, err
}
