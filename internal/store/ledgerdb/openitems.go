package ledgerdb

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// ItemPlace is the place of an open item in a list: a page begins behind it. The zero value is
// before the first.
type ItemPlace struct {
	Counterparty string      `json:"c"`
	Account      string      `json:"a"`
	Currency     string      `json:"m"`
	IssueDate    models.Date `json:"d"`
	Document     string      `json:"i"`
}

// PlaceOf is the item's place.
func PlaceOf(i *models.OpenItem) ItemPlace {
	return ItemPlace{i.Counterparty, i.Account, i.Currency, i.IssueDate, i.DocumentID}
}

// Item is an item of that place, which has nothing else.
func (p ItemPlace) Item() *models.OpenItem {
	return &models.OpenItem{
		Counterparty: p.Counterparty, Account: p.Account, Currency: p.Currency, IssueDate: p.IssueDate, DocumentID: p.Document,
	}
}

// ItemQuery says which open items to list; the zero value of a field means any.
type ItemQuery struct {
	OrgID string
	// On is the day; none: by all that is posted.
	On           models.Date
	Counterparty *string
	Account      string
	Currency     string
	After        ItemPlace
	// Limit is how many are listed at most; default DefaultLimit.
	Limit int
}

// OpenItems lists open items in the order of counterparty, account, currency, issue date and
// document.
func OpenItems(ctx context.Context, q store.Querier, f ItemQuery) ([]models.OpenItem, error) {
	const stmt = `
SELECT document_id, account_code, currency, role, type, direction, number, counterparty, issue_date, due_date, amount::text, open_amount::text,
       coalesce(group_id, 0)
  FROM daybook.open_items(@org, @on::date)
 WHERE (@counterparty::text IS NULL OR counterparty = @counterparty) AND (@account = '' OR account_code = @account)
   AND (@currency = '' OR currency = @currency)
   AND (@day::date IS NULL OR (counterparty COLLATE "C", account_code COLLATE "C", currency COLLATE "C", issue_date, document_id COLLATE "C")
                              > (@party, @after_account, @after_currency, @day, @document))
 ORDER BY counterparty COLLATE "C", account_code COLLATE "C", currency COLLATE "C", issue_date, document_id COLLATE "C"
 LIMIT @most`
	list, err := store.Collect(ctx, q, readItem, stmt, store.Args{
		"org": f.OrgID, "on": timeOf(f.On), "counterparty": f.Counterparty, "account": f.Account, "currency": f.Currency,
		"party": f.After.Counterparty, "after_account": f.After.Account, "after_currency": f.After.Currency,
		"day": timeOf(f.After.IssueDate), "document": f.After.Document, "most": cmp.Or(max(f.Limit, 0), store.DefaultLimit),
	})
	return list, store.Wrap("list the open items", err)
}

// ItemsOf lists the items of a document and of those in its group, the oldest first, also those of
// which nothing is open.
func ItemsOf(ctx context.Context, q store.Querier, org, document string) ([]models.OpenItem, error) {
	const stmt = `
SELECT document_id, account_code, currency, role, type, direction, number, counterparty, issue_date, due_date, amount::text, open_amount::text,
       coalesce(group_id, 0)
  FROM daybook.items_of_document($1, $2)
 ORDER BY issue_date, document_id COLLATE "C", account_code COLLATE "C", currency COLLATE "C"`
	list, err := store.Collect(ctx, q, readItem, stmt, org, document)
	return list, store.Wrap("read the document's open items", err)
}

// ItemFor is the document whose items are those of a document: itself, or the open item that stands
// for it because another system has posted it.
func ItemFor(ctx context.Context, q store.Querier, org, document string) (item string, err error) {
	err = q.QueryRow(ctx, `SELECT daybook.open_item_of($1, $2)`, org, document).Scan(&item)
	return item, store.Wrap("read which open item stands for the document", err)
}

func readItem(row pgx.CollectableRow) (i models.OpenItem, err error) {
	var amount, open string
	err = row.Scan(&i.DocumentID, &i.Account, &i.Currency, &i.Role, &i.Type, &i.Direction, &i.Number, &i.Counterparty,
		&i.IssueDate, &i.DueDate, &amount, &open, &i.GroupID)
	if err != nil {
		return i, err
	}
	var badAmount, badOpen error
	i.Amount, badAmount = WholeNumber(amount)
	i.Open, badOpen = WholeNumber(open)
	return i, errors.Join(badAmount, badOpen)
}

// GroupOf lists the documents of a group, in the order in which they came to it. The group is the
// given one, or if that is 0 the one that the document is in.
func GroupOf(ctx context.Context, q store.Querier, org string, group int64, document string) ([]models.Reconciled, error) {
	const stmt = `
SELECT document_id, group_id, matched_by, reason, actor, created_at
  FROM daybook.reconciled
 WHERE org_id = $1
   AND group_id = CASE WHEN $2::bigint > 0 THEN $2::bigint ELSE (SELECT r.group_id FROM daybook.reconciled r WHERE r.org_id = $1 AND r.document_id = daybook.open_item_of($1, $3)) END
 ORDER BY created_at, document_id`
	list, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (r models.Reconciled, err error) {
		return r, row.Scan(&r.DocumentID, &r.GroupID, &r.MatchedBy, &r.Reason, &r.Actor, &r.CreatedAt)
	}, stmt, org, group, document)
	return list, store.Wrap("read the group", err)
}

// Reconcile puts documents, and the groups that they are in, into one group, and returns its
// number.
func Reconcile(ctx context.Context, tx pgx.Tx, org string, documents []string, reason, actor string,
) (group int64, err error) {
	err = tx.QueryRow(ctx, `SELECT daybook.reconcile($1, $2, $3, 'hand', $4)`, org, documents, reason, actor).Scan(&group)
	return group, store.Wrap("put the documents together", err)
}

// Unreconcile takes documents out of their groups, or if there are none dissolves the group, and
// returns those that are in none any more.
func Unreconcile(ctx context.Context, tx pgx.Tx, org string, documents []string, group int64) ([]string, error) {
	var of *int64
	if documents == nil {
		of = &group
	}
	list, err := store.Collect(ctx, tx, pgx.RowTo[string], `SELECT * FROM daybook.unreconcile($1, $2, $3)`, org, documents, of)
	return list, store.Wrap("take the documents apart", err)
}

// MatchOpenItems puts documents together whose open items belong together by rules, and returns
// them.
func MatchOpenItems(ctx context.Context, tx pgx.Tx, org string, rules []models.MatchedBy, actor string,
) ([]models.Match, error) {
	const stmt = `
SELECT document_id, other_id, matched_by, group_id, account_code, currency, amount::text FROM daybook.match_open_items($1, $2, $3)`
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = string(r)
	}
	list, err := store.Collect(ctx, tx, func(row pgx.CollectableRow) (m models.Match, err error) {
		var amount string
		err = row.Scan(&m.DocumentID, &m.OtherID, &m.MatchedBy, &m.GroupID, &m.Account, &m.Currency, &amount)
		if err == nil {
			m.Amount, err = WholeNumber(amount)
		}
		return m, err
	}, stmt, org, names, actor)
	return list, store.Wrap("match the open items", err)
}
