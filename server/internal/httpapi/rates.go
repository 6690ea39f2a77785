package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// rates adds what currencies are worth, and what was won and lost by it.
func (s *server) rates() {
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listRates", Method: http.MethodGet, Path: "/api/rates", Tags: []string{tagLedger},
		Summary: "List what currencies are worth in the organization's own one, the latest day first",
	}, s.listRates, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "setRates", Method: http.MethodPut, Path: "/api/rates", Tags: []string{tagLedger},
		Summary: "Set rates of currencies, each from a day on",
		Metadata: map[string]any{
			exampleKey: `{"orgId": "acme", "rates": [{"currency": "USD", "validOn": "2026-03-31", "rate": "0.9248", "source": "ECB"}]}`,
			actionKey:  "rates.set",
		},
	}, s.setRates, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getExchangeDifferences", Method: http.MethodGet, Path: "/api/exchange", Tags: []string{tagLedger},
		Summary: "Get what was won and lost by rates where items in other currencies pay each other",
	}, s.getExchange, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "bookExchangeDifferences", Method: http.MethodPost, Path: "/api/exchange", Tags: []string{tagLedger},
		Summary: "Write a journal for exchange differences that are not booked yet",
		Description: "Its date is `until`, and a worker posts it. Booked again it writes nothing, and after documents were taken apart it " +
			"books what the differences are less. The accounts are kept for the next time.",
		Metadata: map[string]any{
			exampleKey: `{"orgId": "acme", "until": "2026-03-31", "adjustment": "1299", "gain": "4840", "loss": "6880"}`,
			actionKey:  "exchange.book",
		},
	}, s.bookExchange, http.StatusNotFound)
}

type listRatesInput struct {
	PageInput
	OrgID    string   `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
	Currency currency `query:"currency" doc:"Only this currency"`
}

type listRatesOutput struct {
	Body struct{ answers.RateList }
}

func (s *server) listRates(ctx context.Context, in *listRatesInput) (*listRatesOutput, error) {
	var after ledgerdb.RatePlace
	if err := in.decode(&after); err != nil {
		return nil, err
	}
	org, err := s.organization(ctx, in.OrgID)
	if err != nil {
		return nil, err
	}
	own, err := books.OwnCurrency(ctx, s.pool, org)
	if err != nil {
		return nil, err
	}
	list, err := books.Rates(ctx, s.pool, org,
		books.RatesOptions{Currency: string(in.Currency), After: after.Rate(), Limit: in.Limit + 1})
	if err != nil {
		return nil, err
	}
	out := &listRatesOutput{}
	list, next := page(in.PageInput, list, func(r models.CurrencyRate) any { return ledgerdb.PlaceOfRate(&r) })
	out.Body.RateList = answers.RateListOf(own, list, next)
	return out, nil
}

type setRatesInput struct {
	Body struct {
		OrgID string                 `json:"orgId,omitempty" maxLength:"255" doc:"The organization; default that of the token"`
		Rates []answers.CurrencyRate `json:"rates" minItems:"1" maxItems:"1000"`
	}
}

type setRatesOutput struct {
	Body struct {
		Changed int64 `json:"changed" doc:"How many are new, or another than before"`
	}
}

func (s *server) setRates(ctx context.Context, in *setRatesInput) (*setRatesOutput, error) {
	org, err := caller(ctx).reachOne(in.Body.OrgID, "body.orgId")
	if err != nil {
		return nil, err
	}
	actions.About(ctx, org, "", nil)
	rates := make([]models.CurrencyRate, len(in.Body.Rates))
	for i, r := range in.Body.Rates {
		rates[i] = models.CurrencyRate{Currency: r.Currency, Rate: r.Rate, Source: r.Source}
		if rates[i].ValidOn, err = day("body.rates", r.ValidOn); err != nil {
			return nil, err
		}
	}
	out := &setRatesOutput{}
	out.Body.Changed, err = books.PutRates(ctx, s.pool, org, rates, books.PutRatesOptions{})
	if err != nil {
		return nil, err
	}
	return out, nil
}

type getExchangeInput struct {
	OrgID string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
	Until string `query:"until" format:"date" doc:"What was posted until this day; default all"`
}

type getExchangeOutput struct {
	Body struct{ answers.Exchange }
}

func (s *server) getExchange(ctx context.Context, in *getExchangeInput) (*getExchangeOutput, error) {
	until, err := day("query.until", in.Until)
	if err != nil {
		return nil, err
	}
	org, err := s.organization(ctx, in.OrgID)
	if err != nil {
		return nil, err
	}
	e, err := books.ExchangeDifferences(ctx, s.pool, org, books.ExchangeOptions{Until: until})
	if err != nil {
		return nil, err
	}
	out := &getExchangeOutput{}
	out.Body.Exchange = answers.ExchangeOf(&e, "")
	return out, nil
}

type bookExchangeInput struct {
	Body struct {
		OrgID      string `json:"orgId,omitempty" maxLength:"255" doc:"The organization; default that of the token"`
		Until      string `json:"until" format:"date" doc:"The day until which they are booked, and the journal's date"`
		Adjustment string `json:"adjustment,omitempty" maxLength:"255" doc:"The account that takes what receivables and payables are worth more or less; default that of the booking before"`
		Gain       string `json:"gain,omitempty" maxLength:"255" doc:"The account of gains; default that of the booking before"`
		Loss       string `json:"loss,omitempty" maxLength:"255" doc:"The account of losses; default that of the booking before"`
	}
}

func (s *server) bookExchange(ctx context.Context, in *bookExchangeInput) (*getExchangeOutput, error) {
	org, err := caller(ctx).reachOne(in.Body.OrgID, "body.orgId")
	if err != nil {
		return nil, err
	}
	actions.About(ctx, org, "", nil)
	until, err := day("body.until", in.Body.Until)
	if err != nil {
		return nil, err
	}
	b, err := books.BookExchangeDifferences(ctx, s.pool, org, books.ExchangeBooking{
		Until: until, Adjustment: in.Body.Adjustment, Gain: in.Body.Gain, Loss: in.Body.Loss,
	})
	if err != nil {
		return nil, err
	}
	out := &getExchangeOutput{}
	out.Body.Exchange = answers.ExchangeOf(&b.Exchange, b.DocumentID)
	return out, nil
}
