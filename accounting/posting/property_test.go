package posting_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

// amounts are mostly of the size that documents have, sometimes as large as an int64 can be.
func amounts() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(-100_000, 100_000), rapid.Int64())
}

func documents() *rapid.Generator[*models.Document] {
	return rapid.Custom(func(t *rapid.T) *models.Document {
		small := rapid.Int64Range(-100_000, 100_000)
		currencies := rapid.SampledFrom([]string{"EUR", "USD", "JPY"})
		rates := rapid.SampledFrom([]models.Rate{{}, models.MustRate("7"), models.MustRate("19")})
		doc := &models.Document{
			Type: rapid.SampledFrom([]models.DocumentType{
				"invoice", "credit_note", "payment", "refund", "payout",
				"delivery", "order",
			}).Draw(t, "type"),
			Direction: rapid.SampledFrom([]models.Direction{"out", "in"}).Draw(t, "direction"),
			Currency:  currencies.Draw(t, "currency"),
			IssueDate: day,
		}
		net := amounts()
		if rapid.Bool().Draw(t, "ordinary") {
			net = small
		}
		for range rapid.IntRange(0, 6).Draw(t, "lines") {
			doc.Content.Lines = append(doc.Content.Lines, models.Line{
				Kind: rapid.SampledFrom([]string{"item", "shipping", "stock"}).Draw(t, "kind"),
				Net:  net.Draw(t, "net"), Cost: net.Draw(t, "cost"), Rate: rates.Draw(t, "rate"),
			})
		}
		for range rapid.IntRange(0, 3).Draw(t, "taxes") {
			doc.Content.Taxes = append(doc.Content.Taxes, models.Tax{Rate: rates.Draw(t, "rate"), Amount: net.Draw(t, "tax")})
		}
		doc.Content.Amount, doc.Content.Fee = net.Draw(t, "amount"), net.Draw(t, "fee")
		if rapid.Bool().Draw(t, "settled") {
			doc.Content.Settled = &models.Money{
				Amount:   net.Draw(t, "arrived"),
				Currency: currencies.Draw(t, "settled currency"),
			}
		}
		// A document that is right but for a few minor units, now and then.
		doc.Content.Payable = rapid.Int64Range(-4, 4).Draw(t, "off")
		for _, l := range doc.Content.Lines {
			doc.Content.Payable += l.Net
		}
		for _, tax := range doc.Content.Taxes {
			doc.Content.Payable += tax.Amount
		}
		return doc
	})
}

func TestEvaluateBalancesOrSaysWhy(t *testing.T) {
	t.Parallel()
	rules, chart := matrix(t)
	rapid.Check(t, func(t *rapid.T) {
		checkImpact(t, rules, chart, documents().Draw(t, "document"))
	})
}

func TestNegatedRuleMirrors(t *testing.T) {
	t.Parallel()
	rules, chart := matrix(t)
	rapid.Check(t, func(t *rapid.T) {
		doc := documents().Draw(t, "document")
		doc.Type, doc.Direction = models.DocumentInvoice, models.DirectionOut
		sale, saleErr := rules.Evaluate(doc, chart)
		doc.Type = models.DocumentCreditNote
		note, noteErr := rules.Evaluate(doc, chart)
		if failed, ok := errors.AsType[*posting.Error](noteErr); ok && failed.Code == models.CodeAmountSign {
			return // a credit note is never negative
		}
		if saleErr != nil {
			var a, b *posting.Error
			require.ErrorAs(t, saleErr, &a)
			require.ErrorAs(t, noteErr, &b)
			require.Equal(t, a.Code, b.Code)
			return
		}
		require.NoError(t, noteErr)
		for i := range note.Entries {
			note.Entries[i].Side = note.Entries[i].Side.Opposite()
		}
		require.Equal(t, sale.Entries, note.Entries)
	})
}

// checkImpact holds what is true of every evaluation: a typed error, or entries that balance in
// each currency.
func checkImpact(t require.TestingT, rules *posting.RuleSet, chart posting.Chart, doc *models.Document) {
	impact, err := rules.Evaluate(doc, chart)
	if err != nil {
		require.Nil(t, impact)
		var e *posting.Error
		require.ErrorAs(t, err, &e)
		require.NotEmpty(t, e.Code)
		require.NotEmpty(t, e.Message)
		return
	}
	sums := map[string]int64{}
	for _, e := range impact.Entries {
		require.Positive(t, e.Amount)
		require.True(t, chart.HasAccount(e.Account), e.Account)
		require.NotEmpty(t, e.RuleLineID)
		require.Len(t, e.Currency, 3)
		switch e.Side {
		case models.Debit:
			sums[e.Currency] += e.Amount
		case models.Credit:
			sums[e.Currency] -= e.Amount
		default:
			require.Fail(t, "no side", "%q", e.Side)
		}
	}
	for currency, sum := range sums {
		require.Zero(t, sum, currency)
	}
}
