package books_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// pays is money received on a day of March 2026.
func pays(of, id, counterparty string, day int, amount int64, refers ...string) *models.Document {
	return &models.Document{
		OrgID: of, ID: id, Type: models.DocumentPayment, Direction: models.DirectionIn, Currency: "EUR",
		IssueDate: models.NewDate(2026, 3, day),
		Content:   models.Content{Counterparty: counterparty, Amount: amount, RefersTo: refers},
	}
}

// sold is an invoice of a day of March 2026 over an amount without tax.
func sold(of, id, counterparty string, day int, amount int64) *models.Document {
	return &models.Document{
		OrgID: of, ID: id, Type: models.DocumentInvoice, Direction: models.DirectionOut, Currency: "EUR",
		IssueDate: models.NewDate(2026, 3, day),
		Content: models.Content{
			Number: "N-" + id, Counterparty: counterparty, DueDate: models.NewDate(2026, 3, day).AddDays(14),
			Lines: []models.Line{{Kind: "item", Net: amount}}, Total: amount, Payable: amount,
		},
	}
}

func (b *bundle) openItems(of string, on models.Date) map[string]string {
	b.t.Helper()
	list, err := books.OpenItems(b.t.Context(), b.Pool, of, books.OpenItemsOptions{On: on, Limit: 1000})
	require.NoError(b.t, err)
	out := map[string]string{}
	for _, i := range list {
		out[i.DocumentID+" "+i.Account] = i.Open.String()
	}
	return out
}

func (b *bundle) reconcile(documents ...string) models.ItemGroup {
	b.t.Helper()
	g, err := books.Reconcile(b.t.Context(), b.Pool, org, documents, "")
	require.NoError(b.t, err)
	return g
}

// Within a group, credits pay debits, the oldest first: partial payments, overpayments, and what is
// posted later.
func TestReconcile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, sold(org, "a", "Ada", 1, 1000), sold(org, "b", "Ada", 5, 500), pays(org, "p", "", 10, 1200),
		pays(org, "q", "", 20, 400))
	b.work()
	all := map[string]string{"a 1200": "1000", "b 1200": "500", "p 1200": "-1200", "q 1200": "-400"}
	assert.Equal(t, all, b.openItems(org, models.Date{}))

	g := b.reconcile("a", "b", "p")
	assert.Len(t, g.Documents, 3)
	assert.False(t, g.Closed)
	assert.Equal(t, []models.ItemSum{{Account: "1200", Currency: "EUR", Open: big.NewInt(300)}}, g.Open)
	assert.Equal(t, map[string]string{"b 1200": "300", "q 1200": "-400"}, b.openItems(org, models.Date{}), "partly paid")
	assert.Equal(t, map[string]string{"a 1200": "1000", "b 1200": "500"}, b.openItems(org, models.NewDate(2026, 3, 9)), "before")

	g = b.reconcile("b", "q")
	assert.Len(t, g.Documents, 4, "the group of one of them grows")
	assert.Equal(t, map[string]string{"q 1200": "-100"}, b.openItems(org, models.Date{}), "overpaid")
	d, err := books.OpenItemsOf(t.Context(), b.Pool, org, "a")
	require.NoError(t, err)
	require.Len(t, d.Items, 1)
	assert.Equal(t, "0", d.Items[0].Open.String())
	assert.Equal(t, g, *d.Group)
	got, err := books.Group(t.Context(), b.Pool, org, g.ID)
	require.NoError(t, err)
	assert.Equal(t, g, got)
	list, err := books.OpenItems(t.Context(), b.Pool, org, books.OpenItemsOptions{Counterparty: new("Ada")})
	require.NoError(t, err)
	require.Len(t, list, 1, "a payment of no known counterparty is of that of its group")

	out, err := books.Unreconcile(t.Context(), b.Pool, org, []string{"p", "q", "b"})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "p", "q"}, out, "what would be alone leaves the group")
	assert.Equal(t, all, b.openItems(org, models.Date{}))
}

func TestReconcileRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, sold(org, "a", "", 1, 1000))
	b.work()
	for _, documents := range [][]string{nil, {"a"}, {"a", "a"}} {
		_, err := books.Reconcile(t.Context(), b.Pool, org, documents, "")
		require.ErrorIs(t, err, books.ErrInvalid, "%q", documents)
	}
	_, err := books.Reconcile(t.Context(), b.Pool, org, []string{"a", "none"}, "")
	require.ErrorIs(t, err, store.ErrDocumentNotFound)
	_, err = books.Reconcile(t.Context(), b.Pool, "none", []string{"a", "b"}, "")
	require.ErrorIs(t, err, books.ErrOrganizationNotFound)
	_, err = books.Unreconcile(t.Context(), b.Pool, org, nil)
	require.ErrorIs(t, err, books.ErrInvalid)
	_, err = books.Group(t.Context(), b.Pool, org, 7)
	require.ErrorIs(t, err, books.ErrGroupNotFound)
	_, err = books.DissolveGroup(t.Context(), b.Pool, org, 7)
	require.ErrorIs(t, err, books.ErrGroupNotFound)
	_, err = books.Unreconcile(t.Context(), b.Pool, org, []string{"a", "none"})
	require.ErrorIs(t, err, books.ErrGroupNotFound, "neither is in a group")
	d, err := books.OpenItemsOf(t.Context(), b.Pool, org, "none")
	require.NoError(t, err)
	assert.Equal(t, books.DocumentItems{}, d)
}

// TestOpenItemsAddUp: what is open adds up to the accounts' balances on each day, whatever is
// posted, deleted, put together and taken apart in which order.
func TestOpenItemsAddUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		of := fmt.Sprintf("%s_%d", org, run)
		fixture.Organization(t, b.Pool, of)
		execute(rt, b.Pool, `UPDATE daybook.organizations SET closed_period_policy = 'first_open_day' WHERE id = $1`, of)
		execute(rt, b.Pool, `
INSERT INTO daybook.periods (org_id, starts_on, ends_on) SELECT $1, d, d + 2 FROM unnest('{2026-03-01,2026-03-04,2026-03-07,2026-03-10}'::date[]) AS d`, of)
		var known []string
		some := func() []string { return rapid.SliceOfN(rapid.SampledFrom(known), 1, 4).Draw(rt, "documents") }
		for n := range rapid.IntRange(1, 25).Draw(rt, "steps") {
			id, day := fmt.Sprint(n), rapid.IntRange(1, 9).Draw(rt, "day")
			amount := rapid.Int64Range(1, 5).Draw(rt, "amount") * 100
			party := rapid.SampledFrom([]string{"", "Ada", "Bo"}).Draw(rt, "counterparty")
			step := rapid.SampledFrom([]string{"sale", "payment", "purchase", "again", "delete", "put", "take", "dissolve", "close", "open"}).Draw(rt, "step")
			if len(known) == 0 && step != "payment" {
				step = "sale"
			}
			switch step {
			case "sale", "purchase", "payment", "again":
				doc := sold(of, id, party, day, amount)
				if step == "payment" {
					doc = pays(of, id, party, day, amount)
				}
				if step == "purchase" {
					doc.Direction, doc.Content.Prepaid, doc.Content.Payable = models.DirectionIn, 50, amount-50
				}
				if step == "again" {
					doc.ID = rapid.SampledFrom(known).Draw(rt, "document")
				}
				fixture.Ready(t, b.Pool, doc)
				known = append(known, doc.ID)
				if rapid.Bool().Draw(rt, "posted now") {
					b.work()
				}
			case "delete":
				b.tx(func(ctx context.Context, tx pgx.Tx) {
					require.NoError(rt, second(store.MarkDocumentDeleted(ctx, tx, of, rapid.SampledFrom(known).Draw(rt, "document"))))
				})
				known = slices.DeleteFunc(known, func(id string) bool {
					return fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.documents WHERE org_id = $1 AND id = $2 AND deleted_at IS NOT NULL`, of, id) > 0
				})
			case "put":
				_, err := books.Reconcile(t.Context(), b.Pool, of, some(), "")
				if err != nil && !errors.Is(err, store.ErrDocumentNotFound) {
					require.ErrorIs(rt, err, books.ErrInvalid, "one alone")
				}
			case "take":
				if _, err := books.Unreconcile(t.Context(), b.Pool, of, some()); err != nil {
					require.ErrorIs(rt, err, books.ErrGroupNotFound, "none is in a group")
				}
			case "dissolve":
				d, err := books.OpenItemsOf(t.Context(), b.Pool, of, some()[0])
				require.NoError(rt, err)
				if d.Group != nil {
					require.NoError(rt, second(books.DissolveGroup(t.Context(), b.Pool, of, d.Group.ID)))
				}
			case "close":
				execute(rt, b.Pool, `
UPDATE daybook.periods SET state = 'closed', closed_at = clock_timestamp()
 WHERE org_id = $1 AND state = 'open' AND starts_on <= date '2026-02-28' + $2::integer`, of, day)
			case "open":
				execute(rt, b.Pool, `
UPDATE daybook.periods SET state = 'open', closed_at = NULL WHERE org_id = $1 AND date '2026-02-28' + $2::integer BETWEEN starts_on AND ends_on`, of, day)
			}
		}
		b.work()
		for day := range 11 {
			differ := fixture.Count(t, b.Pool, `
SELECT count(*)
  FROM (SELECT e.account_code, e.currency, sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) AS balance
          FROM daybook.entries e JOIN daybook.impacts i ON i.id = e.impact_id
          JOIN daybook.accounts a ON a.org_id = e.org_id AND a.code = e.account_code AND a.role IN ('receivable', 'payable', 'advance')
         WHERE e.org_id = $1 AND i.posting_date <= date '2026-03-01' + $2::integer - 1
         GROUP BY e.account_code, e.currency) b
  FULL JOIN (SELECT account_code, currency, sum(open_amount) AS open FROM daybook.open_items($1, date '2026-03-01' + $2::integer - 1)
              GROUP BY account_code, currency) o USING (account_code, currency)
 WHERE coalesce(balance, 0) <> coalesce(open, 0)`, of, day)
			require.Zero(rt, differ, "on day %d", day)
		}
		keptItemsChangeNothing(rt, b.Pool, of)
		require.Zero(rt, fixture.Count(t, b.Pool, `
SELECT count(*) FROM (SELECT FROM daybook.reconciled WHERE org_id = $1 GROUP BY group_id HAVING count(*) = 1) alone`, of))
		require.Zero(rt, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.open_items($1) WHERE sign(open_amount) <> sign(amount) OR abs(open_amount) > abs(amount)`, of))
	})
}

func execute(t *rapid.T, db store.DB, stmt string, args ...any) {
	_, err := db.Exec(context.Background(), stmt, append([]any{pgx.QueryExecModeExec}, args...)...)
	require.NoError(t, err, stmt)
}

// keptItemsChangeNothing: what is open is the same without what is kept of closed days.
func keptItemsChangeNothing(t *rapid.T, pool *pgxpool.Pool, of string) {
	tx, err := pool.Begin(context.Background())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	for _, stmt := range []string{
		`CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT d, o.* FROM generate_series(0, 11) d CROSS JOIN LATERAL daybook.open_items($1, date '2026-02-28' + d) o`,
		`DELETE FROM daybook.closed_item_days WHERE org_id = $1`,
		`CREATE TEMP TABLE plain ON COMMIT DROP AS SELECT d, o.* FROM generate_series(0, 11) d CROSS JOIN LATERAL daybook.open_items($1, date '2026-02-28' + d) o`,
	} {
		execute(t, tx, stmt, of)
	}
	var differ string
	require.NoError(t, tx.QueryRow(context.Background(), `
SELECT coalesce(string_agg(x::text, ' '), '') FROM ((TABLE kept EXCEPT TABLE plain) UNION ALL (TABLE plain EXCEPT TABLE kept)) x`).Scan(&differ))
	require.Empty(t, differ)
}

// A closing keeps nothing of a group of which nothing is open: what leaves it later is kept then.
func TestWhatLeavesAGroupOfClosedDaysIsOpen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, sold(org, "a", "Ada", 1, 1000), pays(org, "p", "Ada", 2, 1000))
	b.work()
	b.reconcile("a", "p")
	require.NoError(t, addPeriods(t.Context(), b.Pool, org, books.Month(2026, 3)))
	require.NoError(t, second(books.ClosePeriod(t.Context(), b.Pool, org, books.Month(2026, 3), books.CloseOptions{})))
	require.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.closed_items`))
	require.NoError(t, second(books.Unreconcile(t.Context(), b.Pool, org, []string{"p"})))
	assert.Equal(t, map[string]string{"a 1200": "1000", "p 1200": "-1000"}, b.openItems(org, models.NewDate(2026, 3, 31)))
	assert.Equal(t, 2, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.closed_items`))
}

// A stricter transaction might not see what a group has become, and would tear it apart.
func TestGroupsInAStricterTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, stmt := range []string{
		`SELECT daybook.reconcile('org_1', '{a,b}')`, `SELECT daybook.unreconcile('org_1', '{a}')`,
		`SELECT * FROM daybook.match_open_items('org_1')`,
	} {
		err := pgx.BeginTxFunc(t.Context(), b.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), stmt)
			return err
		})
		require.Equal(t, "DB010", store.SQLState(err), "%s: %v", stmt, err)
		require.ErrorContains(t, err, "isolation level", stmt)
	}
}
