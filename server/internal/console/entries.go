package console

import (
	"context"
	"fmt"
	"strings"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/listing"
)

// entriesListed is how many entries a page of the list has.
const entriesListed = 100

var entriesPage = view{
	Title: "Entries", Template: "entries", Nav: "entries",
	Lead: "What was posted, line by line, the latest posting date first.",
}

// entries adds the list of entries.
func (c *console) entries() {
	c.addToMenu(menuEntry{Group: "Ledger", Name: "Entries", Path: "entries"})
	c.ledgerPage("GET "+Root+"entries", entriesPage, c.entryList)
}

// postedLine is an entry in a list.
type postedLine struct {
	ledgerdb.EntryLine
	Line entryLine
}

func (c *console) entryList(ctx context.Context, r *request, org string) (*view, error) {
	form := r.filter(filters{
		Action: Root + "entries", Hidden: r.keptOrg(),
		Clear: r.withoutFilters("document", "account", "currency", "from", "to", "after"),
		Fields: []field{
			{Name: "account", Label: "Account"},
			{Name: "document", Label: "Document"},
			{Name: "currency", Label: "Currency", Placeholder: "EUR"},
			{Name: "from", Label: "Posted from", Type: "date"},
			{Name: "to", Label: "to", Type: "date"},
		},
	})
	f := listing.EntryFilter{
		OrgID: org, DocumentID: r.FormValue("document"), Account: r.FormValue("account"), Currency: r.FormValue("currency"),
		Limit: entriesListed + 1,
	}
	var err error
	if f.From, f.To, err = spanParameters(r); err != nil {
		return nil, err
	}
	var place listing.EntryPlace
	if after := r.FormValue("after"); after != "" {
		if place, err = readPlace(after); err != nil {
			return nil, err
		}
	}
	found, err := c.Listing.Entries(ctx, f, place)
	if err != nil {
		return nil, err
	}
	next := ""
	if len(found) > entriesListed {
		found = found[:entriesListed]
		last := found[entriesListed-1]
		next = fmt.Sprintf("%s.%d.%d", last.PostingDate, last.ImpactID, last.LineNo)
	}
	shown := make([]entryLine, len(found))
	for i, l := range found {
		shown[i] = entryLine{
			Account: l.Account, Side: l.Side, Amount: l.Amount, Currency: l.Currency, Dimensions: l.Dimensions.String(),
		}
	}
	if err := c.nameAccounts(ctx, org, shown); err != nil {
		return nil, err
	}
	lines := make([]postedLine, len(found))
	for i, l := range found {
		lines[i] = postedLine{l, shown[i]}
	}
	return &view{Data: map[string]any{
		"Lines": lines, "Pager": pagerBy(r, "after", next), "Filters": form,
	}}, nil
}

// readPlace reads the place after which a list of entries goes on, as its address has it.
func readPlace(text string) (listing.EntryPlace, error) {
	var place listing.EntryPlace
	day, line, _ := strings.Cut(text, ".")
	_, err := fmt.Sscanf(line, "%d.%d", &place.ImpactID, &place.LineNo)
	if err == nil {
		err = place.Day.Scan(day)
	}
	if err != nil {
		return place, wrongParameter("after is %q: take the address from the page before", text)
	}
	return place, nil
}
