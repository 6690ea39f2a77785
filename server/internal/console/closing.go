package console

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/models"
)

// adjustmentsShown is how many impacts a page shows that were posted of a period after it was closed.
const adjustmentsShown = 50

// closingWords say what is open, by its code.
var closingWords = map[models.ClosingCode]string{
	models.ClosingFailed: "Documents that failed", models.ClosingWaiting: "Documents that wait to be posted",
	models.ClosingOpenBefore: "Open periods before it", models.ClosingUndated: "Documents of which Daybook knows no date",
	models.ClosingUnreconciled: "Payments and credit notes that are open", models.ClosingTax: "Documents with other taxes than are posted",
	models.ClosingExchange: "Exchange differences to book", models.ClosingRates: "Exchange rates that are missing",
	models.ClosingSuspense: "Suspense account with a balance", models.ClosingRounding: "Rounding account with a balance",
}

// openItem is a row of the closing list with the page where it is mended.
type openItem struct {
	models.ClosingItem
	// Name is that of its account.
	What, Name string
	// Address leads to all of them; empty: to none. Examples lead to single ones.
	Address  string
	Examples []openExample
}

type openExample struct{ Name, Address string }

// periodPage shows what is to be done before a period is closed, the button that closes it, and what
// came after its closing.
func (c *console) periodPage(ctx context.Context, r *request, org string) (*view, error) {
	day, err := dayParameter("from", r.FormValue("from"))
	if err == nil && day.IsZero() {
		err = wrongParameter("the period's first day is missing")
	}
	if err != nil {
		return nil, err
	}
	p, list, err := books.ClosingList(ctx, c.Pool, org, models.Period{StartsOn: day})
	if err != nil {
		return nil, err
	}
	o, err := c.Listing.Organization(ctx, org)
	if err != nil {
		return nil, err
	}
	after := books.AdjustmentOptions{Limit: adjustmentsShown}
	if text := r.FormValue("after"); text != "" {
		if after.After, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, wrongParameter("after is %q: want the number of an impact", text)
		}
	}
	adjustments, more, err := books.Adjustments(ctx, c.Pool, org, p, after)
	if err != nil {
		return nil, err
	}
	next := ""
	if more != 0 {
		next = strconv.FormatInt(more, 10)
	}
	all, err := books.Closings(ctx, c.Pool, org, books.ClosingOptions{})
	if err != nil {
		return nil, err
	}
	var closings []models.Closing
	for _, x := range all {
		if x.StartsOn == p.StartsOn {
			closings = append(closings, x)
		}
	}
	names, err := accountNames(ctx, c, org, list, func(i *models.ClosingItem) string { return i.Account })
	if err != nil {
		return nil, err
	}
	items, ready := make([]openItem, len(list)), true
	for i := range list {
		items[i] = openItemOf(r, org, p, list[i])
		items[i].Name = names[list[i].Account]
		ready = ready && !list[i].Required
	}
	return &view{
		Title: fmt.Sprintf("Period %s to %s", p.StartsOn, p.EndsOn), Template: "period",
		Trail: []trail{{"Periods", r.link("periods", "org", org)}},
		Data: map[string]any{
			"Org": org, "Period": p, "Items": items, "Ready": ready, "Change": periodButton(r, org, p, o.ClosedPeriodPolicy),
			"Adjustments": adjustments, "Pager": pagerBy(r, "after", next), "Closings": closings,
		},
	}, nil
}

// openItemOf links a row of the closing list to where it is mended.
func openItemOf(r *request, org string, p models.Period, i models.ClosingItem) openItem {
	o := openItem{ClosingItem: i, What: cmp.Or(closingWords[i.Code], string(i.Code))}
	page := func(example string) string { return r.link("documents", "org", org, "document", example) }
	switch i.Code {
	case models.ClosingFailed:
		o.Address = r.link("accounting", "org", org, "state", string(models.JobFailed))
	case models.ClosingWaiting:
		o.Address = r.link("accounting", "org", org, "state", string(models.JobPending))
	case models.ClosingOpenBefore:
		o.Address = r.link("periods", "org", org)
		page = func(example string) string { return r.link("period", "org", org, "from", example) }
	case models.ClosingSuspense, models.ClosingRounding:
		o.Address = r.link("accounts", "org", org, "account", i.Account, "currency", i.Currency, "to", p.EndsOn.String())
	case models.ClosingUnreconciled:
		o.Address = r.link("open-items", "org", org, "on", p.EndsOn.String())
	case models.ClosingExchange, models.ClosingRates:
		o.Address = r.link("rates", "org", org, "until", p.EndsOn.String()) + "#exchange"
		if i.Code == models.ClosingRates {
			page = func(example string) string { return r.link("rates", "org", org, "currency", example) }
		}
	case models.ClosingTax:
		o.Address = r.link("vat", "org", org, "from", p.StartsOn.String(), "to", p.EndsOn.String())
	case models.ClosingUndated:
	}
	for _, example := range i.Examples {
		o.Examples = append(o.Examples, openExample{example, page(example)})
	}
	return o
}
