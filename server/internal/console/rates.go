package console

import (
	"context"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// ratesShown is how many rates the page shows.
const ratesShown = 200

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
}

func (c *console) rateList(ctx context.Context, r *request, org string) (*view, error) {
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
		"Filters": filters{
			Action: Root + "rates", Hidden: r.keptOrg(), Clear: r.withoutFilters("currency"),
			Fields: []field{{Name: "currency", Label: "Currency", Value: r.FormValue("currency"), Placeholder: "USD"}},
		},
	}
	if own != "" {
		e, err := books.ExchangeDifferences(ctx, c.Pool, org, models.Date{})
		if err != nil {
			return nil, err
		}
		data["Exchange"] = e
	}
	return &view{Data: data}, nil
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
	changed, err := books.PutRates(ctx, c.Pool, org, []models.CurrencyRate{rate})
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
