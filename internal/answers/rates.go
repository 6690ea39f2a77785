package answers

import (
	"github.com/daybook-dev/daybook/models"
)

// CurrencyRate is what a currency was worth in the organization's own one from a day on.
type CurrencyRate struct {
	Currency string `json:"currency" minLength:"3" maxLength:"3"`
	ValidOn  string `json:"validOn" format:"date" doc:"It is valid until the next rate"`
	Rate     string `json:"rate" doc:"Units of the own currency for one of this one, such as 0.92"`
	Source   string `json:"source,omitempty" maxLength:"250" doc:"Where it is from, such as a central bank"`
	Actor    string `json:"actor,omitempty" readOnly:"true" doc:"Who set it"`
}

// RateList are rates of currencies.
type RateList struct {
	OwnCurrency string         `json:"ownCurrency,omitempty" doc:"The organization's own; absent: it has none"`
	Rates       []CurrencyRate `json:"rates"`
	NextCursor  string         `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
}

// RateListOf makes the answer of rates.
func RateListOf(own string, list []models.CurrencyRate, next string) RateList {
	return RateList{OwnCurrency: own, NextCursor: next, Rates: List(list, func(r *models.CurrencyRate) CurrencyRate {
		return CurrencyRate{r.Currency, r.ValidOn.String(), r.Rate, r.Source, r.Actor}
	})}
}

// ExchangeDifference is what two items that pay each other have won or lost by rates.
type ExchangeDifference struct {
	Group           int64   `json:"group"`
	Account         string  `json:"account"`
	Currency        string  `json:"currency"`
	DebitDocument   string  `json:"debitDocument"`
	DebitDay        string  `json:"debitDay" format:"date"`
	DebitRate       string  `json:"debitRate,omitempty" doc:"Absent: there is none"`
	CreditDocument  string  `json:"creditDocument"`
	CreditDay       string  `json:"creditDay" format:"date"`
	CreditRate      string  `json:"creditRate,omitempty" doc:"Absent: there is none"`
	AmountMinor     Minor   `json:"amountMinor" doc:"In minor units of the items' currency"`
	Amount          Decimal `json:"amount" doc:"The same as a decimal number"`
	DifferenceMinor Minor   `json:"differenceMinor,omitempty" doc:"In minor units of the own currency, positive where it is a gain; absent: a rate is missing"`
	Difference      Decimal `json:"difference,omitempty" doc:"The same as a decimal number"`
}

// Exchange is what was won and lost by rates until a day.
type Exchange struct {
	Currency      string               `json:"currency" doc:"The organization's own"`
	Differences   []ExchangeDifference `json:"differences"`
	RealisedMinor Minor                `json:"realisedMinor" doc:"Their sum, in minor units"`
	Realised      Decimal              `json:"realised" doc:"The same as a decimal number"`
	Missing       int                  `json:"missing,omitempty" doc:"How many have no rate"`
	Accounts      []string             `json:"accounts,omitempty" doc:"Adjustment, gain and loss account of the last booking"`
	BookedMinor   Minor                `json:"bookedMinor,omitempty" doc:"What stands on the adjustment account, in minor units; absent: nothing was booked yet"`
	Booked        Decimal              `json:"booked,omitempty" doc:"The same as a decimal number"`
	ToBookMinor   Minor                `json:"toBookMinor,omitempty" doc:"What is left to book, in minor units"`
	ToBook        Decimal              `json:"toBook,omitempty" doc:"The same as a decimal number"`
	DocumentID    string               `json:"documentId,omitempty" doc:"The journal that was written"`
}

// ExchangeOf makes the answer of exchange differences.
func ExchangeOf(e *models.Exchange, document string) Exchange {
	out := Exchange{
		Currency: e.Currency, Missing: e.Missing, Accounts: e.Accounts, DocumentID: document,
		Differences: List(e.Differences, func(d *models.ExchangeDifference) ExchangeDifference {
			one := ExchangeDifference{
				Group: d.GroupID, Account: d.Account, Currency: d.Currency, DebitDocument: d.DebitDocument, DebitDay: d.DebitDay.String(),
				DebitRate: d.DebitRate, CreditDocument: d.CreditDocument, CreditDay: d.CreditDay.String(), CreditRate: d.CreditRate,
			}
			one.AmountMinor, one.Amount = Amount(d.Amount, d.Currency)
			one.DifferenceMinor, one.Difference = Amount(d.Difference, e.Currency)
			return one
		}),
	}
	out.RealisedMinor, out.Realised = Amount(e.Realised, e.Currency)
	out.BookedMinor, out.Booked = Amount(e.Booked, e.Currency)
	out.ToBookMinor, out.ToBook = Amount(e.ToBook, e.Currency)
	return out
}
