package console

import (
	"context"
	"fmt"
	"math/big"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/models"
)

// errParameter: a parameter of the address, or a field of a form, cannot be read.
var errParameter = failure.New(failure.Invalid, "a field is wrong")

func wrongParameter(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errParameter, fmt.Sprintf(format, args...))
}

// ledger adds the pages about documents, books and rules.
func (c *console) ledger() {
	c.documents()
	c.openItems()
	c.entries()
	c.trialBalance()
	c.statements()
	c.accounts()
	c.rates()
	c.rules()
	c.periods()
}

// ledgerPage adds a page about one organization's documents, books or rules. Where neither the
// address nor the token names one, it asks for one, unless there is only one.
func (c *console) ledgerPage(pattern string, page view,
	handle func(ctx context.Context, r *request, org string) (*view, error),
) {
	c.page(pattern, tokens.ScopeRead, func(ctx context.Context, r *request) (*view, error) {
		if err := r.ParseForm(); err != nil {
			return nil, unreadableForm(err)
		}
		org, err := r.org()
		if err != nil {
			return nil, err
		}
		if org == "" {
			// Not those that the switch remembers: one that was added since would be passed over.
			known, err := store.Collect(ctx, c.Pool, pgx.RowTo[string],
				`SELECT id FROM daybook.organizations ORDER BY id LIMIT $1`, orgsSuggested)
			if err != nil {
				return nil, err
			}
			if len(known) != 1 {
				return &view{
					Title: page.Title, Template: "organization-choice", Nav: page.Nav,
					Data: map[string]any{"Orgs": known, "All": len(known) < orgsSuggested},
				}, nil
			}
			org = known[0]
		}
		if _, err := c.Listing.Organization(ctx, org); err != nil {
			return nil, err
		}
		v, err := handle(ctx, r, org)
		if err != nil {
			return nil, err
		}
		v.Nav = page.Nav
		if v.Title == "" {
			v.Title = page.Title
		}
		if v.Template == "" {
			v.Template = page.Template
		}
		if v.Lead == "" && v.Title == page.Title {
			v.Lead = page.Lead
		}
		return v, nil
	})
}

// money writes an amount of minor units as a decimal number with the decimals of its currency, in
// groups of three digits.
func money(amount any, currency string) string {
	n := new(big.Int)
	switch v := amount.(type) {
	case int64:
		n.SetInt64(v)
	case *big.Int:
		n = v
	}
	whole, decimals, dotted := strings.Cut(minor.Decimal(n, currency), ".")
	text := number(whole)
	if whole == "-0" {
		text = "−0"
	}
	if dotted {
		text += "." + decimals
	}
	return text
}

// rateText writes a tax rate, such as 9.975 %. None is empty.
func rateText(rate models.Rate) string {
	if rate.IsZero() {
		return ""
	}
	return rate.String() + "\u202f%"
}

// add sums numbers.
func add(numbers ...int) int {
	sum := 0
	for _, n := range numbers {
		sum += n
	}
	return sum
}

// dayParameter reads a date of the address; none is the zero date.
func dayParameter(label, text string) (models.Date, error) {
	if text == "" {
		return models.Date{}, nil
	}
	d, err := models.ParseDate(text)
	if err != nil {
		return d, wrongParameter("%s: %v", label, err)
	}
	return d, nil
}

// spanParameters reads the first and the last day of a list.
func spanParameters(r *request) (from, to models.Date, err error) {
	if from, err = dayParameter("from", r.FormValue("from")); err != nil {
		return from, to, err
	}
	if to, err = dayParameter("to", r.FormValue("to")); err != nil {
		return from, to, err
	}
	if !from.IsZero() && !to.IsZero() && to.Time().Before(from.Time()) {
		return from, to, wrongParameter("the last day, %s, is before the first, %s", to, from)
	}
	return from, to, nil
}

// withoutFilters is the address of the page without the parameters; empty when none of them is set.
func (r *request) withoutFilters(names ...string) string {
	set := false
	pairs := make([]string, 0, 2*len(names))
	for _, name := range names {
		set = set || r.FormValue(name) != ""
		pairs = append(pairs, name, "")
	}
	if !set {
		return ""
	}
	return r.here(pairs...)
}

// keptOrg keeps the chosen organization in a form.
func (r *request) keptOrg() []field { return []field{{Name: "org", Value: r.chosenOrg()}} }
