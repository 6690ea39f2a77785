package books

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// OpenItemsOptions says which open items to list; the zero value lists the first 100 of all that is
// posted.
type OpenItemsOptions struct {
	// On is the day: what was posted until then counts; none: all.
	On models.Date
	// Counterparty is whose items; nil: all. An empty one: those without.
	Counterparty *string
	// Account and Currency are those of the items; empty: all.
	Account, Currency string
	// After is the last item of the page before; nil: from the first on.
	After *models.OpenItem
	// Limit is how many are listed at most; default 100.
	Limit int
}

// OpenItems lists what is open, in the order of counterparty, account, currency, issue date and
// document. What is open of an account adds up to its balance on that day.
//
// Errors: ErrOrganizationNotFound.
func OpenItems(ctx context.Context, db DB, org string, o OpenItemsOptions) ([]models.OpenItem, error) {
	if err := readable(ctx, db, org); err != nil {
		return nil, err
	}
	q := ledgerdb.ItemQuery{
		OrgID: org, On: o.On, Counterparty: o.Counterparty, Account: o.Account, Currency: o.Currency, Limit: o.Limit,
	}
	if o.After != nil {
		q.After = ledgerdb.PlaceOf(o.After)
	}
	return ledgerdb.OpenItems(ctx, db, q)
}

// DocumentItems are the items of a document.
type DocumentItems struct {
	// Items are those of the document, or of the open item that stands for it, also those of which
	// nothing is open.
	Items []models.OpenItem
	// Group is the group that it is in; nil: none.
	Group *models.ItemGroup
}

// OpenItemsOf reads the items of a document by all that is posted, and the group that it is in. A
// document without items has none of either. Errors: ErrOrganizationNotFound.
func OpenItemsOf(ctx context.Context, db DB, org, document string) (d DocumentItems, err error) {
	if err = readable(ctx, db, org); err != nil {
		return d, err
	}
	err = store.ReadSnapshot(ctx, db, func(tx pgx.Tx) error {
		all, err := ledgerdb.ItemsOf(ctx, tx, org, document)
		if err != nil {
			return err
		}
		documents, err := ledgerdb.GroupOf(ctx, tx, org, 0, document)
		if err != nil {
			return err
		}
		item, err := ledgerdb.ItemFor(ctx, tx, org, document)
		if err != nil {
			return err
		}
		for _, i := range all {
			if i.DocumentID == item {
				d.Items = append(d.Items, i)
			}
		}
		if len(documents) > 0 {
			d.Group = groupOf(documents, all)
		}
		return nil
	})
	return d, err
}

// Group reads a group of documents that belong together. Errors: ErrGroupNotFound,
// ErrOrganizationNotFound.
func Group(ctx context.Context, db DB, org string, id int64) (g models.ItemGroup, err error) {
	if err = readable(ctx, db, org); err != nil {
		return g, err
	}
	err = store.ReadSnapshot(ctx, db, func(tx pgx.Tx) error {
		g, err = readGroup(ctx, tx, org, id)
		return err
	})
	return g, err
}

func readGroup(ctx context.Context, q store.Querier, org string, id int64) (models.ItemGroup, error) {
	var documents []models.Reconciled
	var err error
	if id > 0 {
		documents, err = ledgerdb.GroupOf(ctx, q, org, id, "")
	}
	if err != nil {
		return models.ItemGroup{}, err
	}
	if len(documents) == 0 {
		return models.ItemGroup{}, noGroup(org, id)
	}
	items, err := ledgerdb.ItemsOf(ctx, q, org, documents[0].DocumentID)
	if err != nil {
		return models.ItemGroup{}, err
	}
	return *groupOf(documents, items), nil
}

func noGroup(org string, id int64) error {
	return store.Refuse(ErrGroupNotFound, fmt.Sprintf("organization %s has no group %d of documents", org, id),
		"list the open items: `daybook open-items list`")
}

// groupOf adds up the items of a group.
func groupOf(documents []models.Reconciled, items []models.OpenItem) *models.ItemGroup {
	g := &models.ItemGroup{ID: documents[0].GroupID, Documents: documents, Items: items, Closed: true}
	for _, i := range items {
		at, found := slices.BinarySearchFunc(g.Open, i, func(s models.ItemSum, i models.OpenItem) int {
			return slices.Compare([]string{s.Account, s.Currency}, []string{i.Account, i.Currency})
		})
		if !found {
			g.Open = slices.Insert(g.Open, at, models.ItemSum{Account: i.Account, Currency: i.Currency, Open: new(big.Int)})
		}
		g.Open[at].Open.Add(g.Open[at].Open, i.Open)
	}
	for _, s := range g.Open {
		g.Closed = g.Closed && s.Open.Sign() == 0
	}
	return g
}

// Reconcile puts documents into one group, which says that they belong together: an invoice and its
// payments, credit notes, refunds and deposits. The groups that they are in become one. Each must
// have been posted to an account of receivables, payables or advances. Nothing is posted.
//
// Errors: ErrInvalid, DOCUMENT_NOT_FOUND (one has nothing on such an account),
// ErrOrganizationNotFound.
func Reconcile(ctx context.Context, db DB, org string, documents []string, reason string) (g models.ItemGroup, err error) {
	if slices.ContainsFunc(append([]string{reason}, documents...), func(s string) bool { return !store.ValidText(s) }) {
		return g, store.ErrInvalidText
	}
	err = change(ctx, db, org, false, func(tx pgx.Tx) error {
		id, err := ledgerdb.Reconcile(ctx, tx, org, documents, reason, actions.By(ctx))
		if err != nil {
			return err
		}
		if g, err = readGroup(ctx, tx, org, id); err != nil {
			return err
		}
		// The reason stays with the documents: an erasure of any of them finds it there, and would not here.
		return actions.Note(ctx, tx, org, documents[0], map[string]any{"group": id, "documents": len(documents)})
	})
	return g, err
}

// Unreconcile takes documents out of their groups, and returns those that are in none any more: one
// that would be alone in its group leaves it as well. Nothing is posted.
//
// Errors: ErrInvalid, ErrGroupNotFound (none of them is in a group), ErrOrganizationNotFound.
func Unreconcile(ctx context.Context, db DB, org string, documents []string) ([]string, error) {
	if len(documents) == 0 || slices.ContainsFunc(documents, func(s string) bool { return !store.ValidText(s) }) {
		return nil, store.Invalid("name the documents")
	}
	return unreconcile(ctx, db, org, documents, 0)
}

// DissolveGroup takes all documents out of a group, and returns them. Nothing is posted. Errors:
// ErrGroupNotFound, ErrOrganizationNotFound.
func DissolveGroup(ctx context.Context, db DB, org string, id int64) ([]string, error) {
	return unreconcile(ctx, db, org, nil, id)
}

func unreconcile(ctx context.Context, db DB, org string, documents []string, group int64) (out []string, err error) {
	err = change(ctx, db, org, false, func(tx pgx.Tx) error {
		if out, err = ledgerdb.Unreconcile(ctx, tx, org, documents, group); err != nil {
			return err
		}
		if len(out) == 0 && documents != nil {
			return store.Refuse(ErrGroupNotFound, fmt.Sprintf("of the documents given, none of organization %s is in a group", org),
				"show what a document is in: `daybook open-items show DOCUMENT`")
		}
		if len(out) == 0 {
			return noGroup(org, group)
		}
		slices.Sort(out)
		subject, details := fmt.Sprint(group), map[string]any{"documents": out}
		if documents != nil {
			subject = documents[0]
		}
		return actions.Note(ctx, tx, org, subject, details)
	})
	return out, err
}
