package console

import (
	"cmp"
	"context"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/models"
)

const (
	// agedShown is how many counterparties the page of open items shows.
	agedShown = 500
	// itemsShown is how many items of a counterparty a page shows.
	itemsShown = 200
)

var openItemsPage = view{
	Title: "Open items", Template: "open-items", Nav: "open-items",
	Lead: "What is owed and paid, by counterparty. Amounts are debits less credits: what a customer owes is positive.",
}

// openItems adds what is open, and the actions that say which documents belong together.
func (c *console) openItems() {
	c.addToMenu(menuEntry{Group: "Ledger", Name: "Open items", Path: "open-items"})
	c.ledgerPage("GET "+Root+"open-items", openItemsPage, c.openItemsOf)
	c.action(Root+"open-items/reconcile", tokens.ScopeOperate, "open-items.reconcile", c.reconcile)
	c.action(Root+"open-items/unreconcile", tokens.ScopeOperate, "open-items.unreconcile", c.unreconcile)
	c.action(Root+"open-items/match", tokens.ScopeOperate, "open-items.match", c.matchOpenItems)
}

// openItemsOf shows a group, the items of a counterparty, or the sums of all counterparties.
func (c *console) openItemsOf(ctx context.Context, r *request, org string) (*view, error) {
	if r.FormValue("group") != "" {
		return c.groupPage(ctx, r, org)
	}
	form := r.filter(filters{
		Action: Root + "open-items", Hidden: r.keptOrg(), Clear: r.withoutFilters("on"),
		Fields: []field{{Name: "on", Label: "On", Type: "date"}},
	})
	on, err := dayParameter("the day", r.FormValue("on"))
	if err != nil {
		return nil, err
	}
	if r.FormValue("counterparty") != "" || r.FormValue("unnamed") != "" {
		return c.counterpartyPage(ctx, r, org, on)
	}
	if on.IsZero() {
		on = models.NewDate(r.now.UTC().Date())
	}
	form.Fields[0].Value = on.String()
	list, err := books.Ageing(ctx, c.Pool, org, books.AgeingOptions{On: on})
	if err != nil {
		return nil, err
	}
	names, err := accountNames(ctx, c, org, list, func(a *models.Aged) string { return a.Account })
	if err != nil {
		return nil, err
	}
	return &view{Data: map[string]any{
		"Org": org, "On": on, "Rows": list[:min(len(list), agedShown)], "Total": len(list), "Names": names, "Sums": agedSums(list),
		"Match": button{
			Action: Root + "open-items/match", Label: "Match", Hidden: []field{{Name: "org", Value: org}}, Next: r.URL.RequestURI(),
			Confirm: "Documents are put together of which the one refers to the other, whose number a payment of the amount names, or " +
				"whose counterparty and amount are equal and no other item fits. Nothing is posted; groups can be taken apart.",
		},
		"Filters": form,
	}}, nil
}

// agedSums adds up all counterparties, by account and currency: on each account what is open is its
// balance.
func agedSums(list []models.Aged) (sums []models.Aged) {
	at := map[[2]string]int{}
	for _, a := range list {
		key := [2]string{a.Account, a.Currency}
		i, known := at[key]
		if !known {
			i, at[key] = len(sums), len(sums)
			sums = append(sums, models.Aged{
				Account: a.Account, Role: a.Role, Currency: a.Currency, Open: new(big.Int), NotDue: new(big.Int),
				Due30: new(big.Int), Due60: new(big.Int), Due90: new(big.Int), Longer: new(big.Int),
			})
		}
		sum := &sums[i]
		sum.Items += a.Items
		for _, pair := range [][2]*big.Int{
			{sum.Open, a.Open},
			{sum.NotDue, a.NotDue},
			{sum.Due30, a.Due30},
			{sum.Due60, a.Due60},
			{sum.Due90, a.Due90},
			{sum.Longer, a.Longer},
		} {
			pair[0].Add(pair[0], pair[1])
		}
	}
	slices.SortFunc(sums, func(a, b models.Aged) int {
		return cmp.Or(strings.Compare(a.Account, b.Account), strings.Compare(a.Currency, b.Currency))
	})
	return sums
}

// counterpartyPage lists the open items of a counterparty, or of documents that name none.
func (c *console) counterpartyPage(ctx context.Context, r *request, org string, on models.Date) (*view, error) {
	name := r.FormValue("counterparty")
	o := books.OpenItemsOptions{On: on, Counterparty: &name, Limit: itemsShown + 1}
	if text := r.FormValue("cursor"); text != "" {
		var after ledgerdb.ItemPlace
		if err := cursor.Read(text, &after); err != nil {
			return nil, wrongParameter("%v", err)
		}
		o.After = after.Item()
	}
	list, err := books.OpenItems(ctx, c.Pool, org, o)
	if err != nil {
		return nil, err
	}
	list, next := cursor.Page(itemsShown, list, func(i models.OpenItem) any { return ledgerdb.PlaceOf(&i) })
	names, err := accountNames(ctx, c, org, list, func(i *models.OpenItem) string { return i.Account })
	if err != nil {
		return nil, err
	}
	title := name
	if title == "" {
		title = "Without a counterparty"
	}
	return &view{
		Title: title, Template: "open-items-of", Trail: []trail{{"Open items", r.link("open-items", "on", r.FormValue("on"))}},
		Lead: "What is open of each document. Tick those that belong together.",
		Data: map[string]any{
			"Org": org, "Counterparty": name, "On": on, "Items": list, "Pager": pagerOf(r, next), "Next": r.URL.RequestURI(),
			"Names": names,
		},
	}, nil
}

// groupPage shows the documents of a group, and what is open of it.
func (c *console) groupPage(ctx context.Context, r *request, org string) (*view, error) {
	id, err := strconv.ParseInt(r.FormValue("group"), 10, 64)
	if err != nil {
		return nil, wrongParameter("the group is no number")
	}
	g, err := books.Group(ctx, c.Pool, org, id)
	if err != nil {
		return nil, err
	}
	names, err := accountNames(ctx, c, org, g.Items, func(i *models.OpenItem) string { return i.Account })
	if err != nil {
		return nil, err
	}
	take := func(documents ...string) []field {
		fields := []field{{Name: "org", Value: org}, {Name: "group", Value: strconv.FormatInt(id, 10)}}
		for _, d := range documents {
			fields = append(fields, field{Name: "document", Value: d})
		}
		return fields
	}
	leave := map[string]button{}
	for _, d := range g.Documents {
		leave[d.DocumentID] = button{
			Action: Root + "open-items/unreconcile", Label: "Take out", Tone: "quiet", Hidden: take(d.DocumentID),
			Next: r.link("open-items"),
		}
	}
	return &view{
		Title: "Group " + strconv.FormatInt(id, 10), Template: "open-items-group",
		Lead:  "Documents that belong together: credits pay debits, the oldest first.",
		Trail: []trail{{"Open items", r.link("open-items")}},
		Data: map[string]any{
			"Org": org, "Group": g, "Names": names, "Leave": leave,
			"Add": button{
				Action: Root + "open-items/reconcile", Label: "Add", Next: r.URL.RequestURI(),
				Hidden: []field{{Name: "org", Value: org}, {Name: "document", Value: g.Documents[0].DocumentID}},
				Fields: []field{
					{Name: "document", ID: "f-add", Label: "A document's id"}, {Name: "reason", Label: "Why (optional)"},
				},
			},
			"Dissolve": button{
				Action: Root + "open-items/unreconcile", Label: "Dissolve", Tone: "danger", Hidden: take(), Next: r.link("open-items"),
				Confirm: "All documents leave the group, and their items are open again. Nothing is posted.",
			},
		},
	}, nil
}

func (c *console) reconcile(ctx context.Context, r *request) (done, error) {
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	documents := r.PostForm["document"]
	d := done{Org: org}
	if len(documents) > 0 {
		d.Subject = documents[0]
	}
	g, err := books.Reconcile(ctx, c.Pool, org, documents, r.PostFormValue("reason"))
	if err != nil {
		return d, err
	}
	d.To = address(r.chosenOrg(), "open-items", "group", strconv.FormatInt(g.ID, 10))
	d.Text = plural(len(g.Documents), "document is", "documents are") + " in the group."
	return d, nil
}

func (c *console) unreconcile(ctx context.Context, r *request) (done, error) {
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	d := done{Org: org, Subject: r.PostFormValue("group")}
	var out []string
	if documents := r.PostForm["document"]; len(documents) > 0 {
		d.Subject = documents[0]
		out, err = books.Unreconcile(ctx, c.Pool, org, documents)
	} else {
		id, wrong := strconv.ParseInt(r.PostFormValue("group"), 10, 64)
		if wrong != nil {
			return d, wrongParameter("the group is no number")
		}
		out, err = books.DissolveGroup(ctx, c.Pool, org, id)
	}
	d.Text = plural(len(out), "document has", "documents have") + " left the group."
	return d, err
}

func (c *console) matchOpenItems(ctx context.Context, r *request) (done, error) {
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	actions.About(ctx, org, "", nil)
	list, err := books.MatchOpenItems(ctx, c.Pool, org, books.MatchOptions{})
	return done{Org: org, Text: plural(len(list), "pair of documents was", "pairs of documents were") + " put together."}, err
}
