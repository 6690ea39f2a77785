package console

import (
	"context"
	"strconv"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

const (
	// importsListed is how many imports a page of the list has.
	importsListed = 50
	// undoneAtOnce is how many documents a click undoes, at most; keptListed how many that are kept a
	// page lists.
	undoneAtOnce = 2000
	keptListed   = 100
)

var importsPage = view{
	Title: "Imports", Template: "imports", Nav: "imports",
	Lead: "What was imported, by whom, and how it is taken back.",
}

// imports adds the list of imports, and the page on which one is undone.
func (c *console) imports() {
	c.addToMenu(menuEntry{Group: "Ledger", Name: "Imports", Path: "imports"})
	c.ledgerPage("GET "+Root+"imports", importsPage, c.importList)
	c.ledgerPage("GET "+Root+"imports/{id}", importsPage, c.importPage)
	c.action(Root+"imports/{id}/undo", tokens.ScopeOperate, "imports.undo", c.undoImport)
}

func (c *console) importList(ctx context.Context, r *request, org string) (*view, error) {
	o := books.ImportsOptions{OrgID: org, Limit: importsListed + 1}
	if text := r.FormValue("before"); text != "" {
		var err error
		if o.Before, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, wrongParameter("before is %q: want the number of an import", text)
		}
	}
	list, err := books.Imports(ctx, c.Pool, o)
	if err != nil {
		return nil, err
	}
	next := ""
	if len(list) > importsListed {
		list = list[:importsListed]
		next = strconv.FormatInt(list[importsListed-1].ID, 10)
	}
	return &view{Data: map[string]any{"Org": org, "Imports": list, "Pager": pagerBy(r, "before", next)}}, nil
}

// importID is the import in the address.
func importID(r *request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, errNoPage
	}
	return id, nil
}

// importPage shows an import and what an undo of it would do, which it finds out by a dry run.
func (c *console) importPage(ctx context.Context, r *request, org string) (*view, error) {
	id, err := importID(r)
	if err != nil {
		return nil, err
	}
	would, err := books.UndoImport(ctx, c.Pool, id,
		books.UndoOptions{OrgID: org, After: r.FormValue("after"), Limit: undoneAtOnce, DryRun: true})
	if err != nil {
		return nil, err
	}
	data := map[string]any{
		"Org": org, "Import": would.Import, "Would": would, "Undoes": would.Removed + would.Reversed + would.Restored,
		"Kept": would.Kept[:min(len(would.Kept), keptListed)], "After": r.FormValue("after"),
		"Undo": button{
			Action: Root + "imports/" + strconv.FormatInt(id, 10) + "/undo", Label: "Undo the import", Tone: "danger",
			Hidden: []field{{Name: "org", Value: org}, {Name: "after", Value: r.FormValue("after")}},
			Confirm: "What was never posted is removed, and workers reverse what is posted. A document that the import changed " +
				"becomes what it was before. A click undoes 2,000 documents at most.",
		},
		"Reasons": keptReasons,
	}
	return &view{
		Title: "Import " + strconv.FormatInt(id, 10), Lead: "", Template: "import", Data: data,
		Trail: []trail{{"Imports", r.link("imports")}},
	}, nil
}

// keptReasons say why an undo leaves a document as it is.
var keptReasons = map[models.KeptCode]string{
	models.KeptNotFound:      "its row is gone",
	models.KeptDeleted:       "it was deleted since",
	models.KeptChanged:       "it was changed since",
	models.KeptFormerUnknown: "what it was before the import is not kept",
	models.KeptClosed: "it is posted in a closed period: open the period, or set the policy to the first open day, and " +
		"undo again",
}

func (c *console) undoImport(ctx context.Context, r *request) (done, error) {
	id, err := importID(r)
	if err != nil {
		return done{}, err
	}
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	subject := strconv.FormatInt(id, 10)
	u, err := books.UndoImport(ctx, c.Pool, id,
		books.UndoOptions{OrgID: org, After: r.PostFormValue("after"), Limit: undoneAtOnce})
	d := done{
		Org: org, Subject: subject, To: r.link("imports/"+subject, "after", u.Next),
		Text: "Undone: " + number(u.Removed) + " removed, " + number(u.Reversed) + " to be reversed, " + number(u.Restored) +
			" restored, " + number(len(u.Kept)) + " kept.",
		Details: map[string]any{
			"removed": u.Removed, "reversed": u.Reversed, "restored": u.Restored, "kept": len(u.Kept),
		},
	}
	if u.Next != "" {
		d.Text += " There is more: undo again."
	}
	if err == nil {
		d.unless(u.Removed+u.Reversed+u.Restored > 0, "nothing was left to undo")
	}
	return d, err
}
